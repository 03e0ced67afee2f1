"""The tables of the study of rules, and what their columns mean."""

from whorl.study.columns import BETA, DEPTH, FAMILY, PLACE, described

NODES = "nodes | key | int64 | | number of nodes of the circuit\n"
CIRCUIT = "circuit | key | int64 | | number of the circuit among those of its size\n"
SQUARE = """\
row | key | int64 | | row of the matrix: the output that moves
column | key | int64 | | column of the matrix: the output that has the residual
"""
COLUMNS = described(f"""
edges
{NODES}{CIRCUIT}edge | key | int64 | | number of the edge
from | drawn | int64 | | its first node
to | drawn | int64 | | its second node
conductance | drawn | float64 | | its conductance
way_back | drawn | float64 | | its conductance on the way back of feedback alignment
loops
{NODES}{CIRCUIT}{SQUARE}response | computed | float64 | Eq. 12 | K, by the circuit's own way back
impedance | computed | float64 | | Z, output voltage per current fed in
propagation | computed | float64 | | loop of equilibrium propagation in the limit
coupled | computed | float64 | | loop of coupled learning in the limit
alignment | computed | float64 | | loop of feedback alignment
nudges
{NODES}{CIRCUIT}way | key | string | | one-sided or centred
nudge | key | float64 | | stiffness of the springs times the trace of Z
bias | computed | float64 | | distance of the velocity from its limit, relative to the limit
circuits
{NODES}{CIRCUIT}target_0 | drawn | float64 | | wanted voltage of the first output
target_1 | drawn | float64 | | wanted voltage of the second output
target_2 | drawn | float64 | | wanted voltage of the third output
coupled_slowest | computed | float64 | Eq. 15 | least eigenvalue of the symmetric part, coupled
alignment_slowest | computed | float64 | Eq. 15 | the same of feedback alignment
propagation_skew | derived | float64 | Eq. 21 | skew share of the loop of equilibrium propagation
coupled_skew | derived | float64 | Eq. 21 | skew share of the loop of coupled learning
alignment_skew | derived | float64 | Eq. 21 | skew share of the loop of feedback alignment
identity | derived | float64 | | distance of coupled Z from K, relative to K
coupled_discriminant | derived | float64 | | of the characteristic polynomial; below 0 it turns
alignment_discriminant | derived | float64 | | the same of feedback alignment
coupled_rises | derived | int64 | Eq. 15 | 1 where some squared error rises at once
alignment_rises | derived | int64 | Eq. 15 | the same of feedback alignment
coupled_turns | derived | int64 | | 1 where the discriminant is negative
alignment_turns | derived | int64 | | the same of feedback alignment
one_sided_slope | derived | float64 | | power of the nudge with which the one-sided bias falls
centred_slope | derived | float64 | | power of the nudge with which the centred bias falls
weights
{FAMILY}{DEPTH}{BETA}{PLACE}weight | drawn | float64 | Eq. 11 | weight of the network
way_back | drawn | float64 | | weight of the way back of feedback alignment
network_loops
{FAMILY}{DEPTH}{BETA}{SQUARE}response | computed | float64 | Eq. 13 | K: equilibrium propagation
alignment | computed | float64 | | loop of feedback alignment
networks
{FAMILY}{DEPTH}{BETA}x_0 | drawn | float64 | | share of the input at source 0
x_1 | drawn | float64 | | share of the input at source 1
x_2 | drawn | float64 | | share of the input at source 2
alignment_slowest | computed | float64 | Eq. 15 | least eigenvalue of the symmetric part
response_skew | derived | float64 | Eq. 21 | skew share of the response
alignment_skew | derived | float64 | Eq. 21 | skew share of feedback alignment
alignment_discriminant | derived | float64 | | of its characteristic polynomial in the plane
alignment_rises | derived | int64 | Eq. 15 | 1 where some squared error rises at once
alignment_turns | derived | int64 | | 1 where the discriminant is negative
""")
