"""What kinds of study compute with beyond the public names of whorl.

Batches of pairs on several threads, the marks of compiled programs, learners step by step, and
parts of laws. docs/howto/extend.md lists the modules that a kind may import.
"""

from whorl.budget import geometric_factors as geometric_factors
from whorl.budget import gyration as gyration
from whorl.fast import fused as fused
from whorl.fast import lanes as lanes
from whorl.fast.fused import keep as keep
from whorl.fast.programs import block_by_block as block_by_block
from whorl.fast.programs import in_chunks as in_chunks
from whorl.fast.rollout import ahead as ahead
from whorl.learning import baseline as baseline
from whorl.learning import schedule as schedule
from whorl.learning.ensemble import stacked as stacked
from whorl.learning.foresight import TURNS as TURNS
from whorl.learning.foresight import Rollout as Rollout
from whorl.learning.foresight import steps as steps
from whorl.learning.ledger import TERMS as TERMS
from whorl.learning.trajectory import mean_loss as mean_loss
from whorl.simplex import tangent_basis as tangent_basis
