"""The tables of the structural study, and what their columns mean."""

from whorl.study.columns import DEPTH, ENTRY, FAMILY, PLACE, TASKS, VECTORS, WEIGHT, described

COLUMNS = described(f"""
tasks
{FAMILY}{TASKS}
weights
{FAMILY}{DEPTH}{PLACE}{WEIGHT}
responses
{FAMILY}{DEPTH}{ENTRY}
layer_sum | computed | float64 | Eq. 13 | entry of the response, summed over layers and columns
gram | computed | float64 | Eq. 12 | the same entry as J M J^T
operators
{FAMILY}{DEPTH}
selected | computed | int64 | Sec. V | sample with the largest residual
rank | computed | int64 | Sec. VII A | modes of the joint response above the tolerance
condition | computed | float64 | Sec. VII A | strongest over weakest retained mode of the joint \
response
selected_rank | computed | int64 | Sec. V | modes of the selected response above the tolerance
selected_condition | computed | float64 | Sec. V | its strongest over its weakest retained mode
factorisation | derived | float64 | Eqs. 12, 13 | relative Frobenius distance of the two routes
symmetry | derived | float64 | Eq. 12 | relative Frobenius size of the skew part
modes
{FAMILY}{DEPTH}
omega | key | float64 | Eq. 19 | rate of rotation
real | computed | float64 | Prop. 2 | real part of the eigenvalue of the residual's linearisation
imag | computed | float64 | Prop. 2 | its imaginary part, not negative
{VECTORS}
loss_rate | computed | float64 | Eq. 21 | rate of the selected loss as the outputs move
predicted_rate | computed | float64 | Eq. 21 | -alpha times the squared residual
pair_residual | derived | float64 | Prop. 2 | distance of the eigenvalue from -alpha + i omega
score_residual | derived | float64 | Eq. 21 | distance of the velocity from the commanded one
dissipation_residual | derived | float64 | Eq. 21 | distance of the two rates
trajectory_weights
{FAMILY}{DEPTH}
update | key | int64 | | updates made
{PLACE}
layer_sum | computed | float64 | Eq. 14 | weight of the learner that solves among the outputs
gauss_newton | computed | float64 | Eq. 17 | weight of the learner that solves among the parameters
trajectories
{FAMILY}{DEPTH}
update | key | int64 | | updates made
loss | computed | float64 | Eq. 5 | half the squared residual, summed over samples
discrepancy | derived | float64 | Eq. 17 | largest difference of a weight between the two learners
column_residual | derived | float64 | Eq. 3 | largest distance of a column sum from one
smallest | derived | float64 | Eq. 1 | smallest weight
control_weights
{DEPTH}{PLACE}{WEIGHT}
control_responses
{DEPTH}{ENTRY}
response | computed | float64 | Eq. 13 | entry of the response to one even input
controls
{DEPTH}
rank | computed | int64 | Supplement III | modes of the response above the tolerance
null_response | derived | float64 | Supplement III | size of the answer along the mode between the \
components
curvature
example | key | string | Sec. VI | sign of the coefficient
step | key | float64 | Eq. 24 | step
coefficient | computed | float64 | Eq. 25 | analytic coefficient
loss_plus | computed | float64 | Eq. 24 | loss after the step with a turn
loss_minus | computed | float64 | Eq. 24 | loss after the step with the opposite turn
loss_still | computed | float64 | Eq. 24 | loss after the step without a turn
even_difference | derived | float64 | Eq. 24 | mean of the turns less no turn
estimate | derived | float64 | Eq. 24 | even difference over the squared step
relative_error | derived | float64 | Eq. 24 | of the estimate against the coefficient
""")
