"""A laboratory for conservative physical learning: does a flow network follow a gradient, or does it turn?"""

from whorl.curvature import Curvature as Curvature
from whorl.curvature import curvature as curvature
from whorl.curvature import even_difference as even_difference
from whorl.curvature import turn_scores as turn_scores
from whorl.feedback import Law as Law
from whorl.feedback import SpectralLaw as SpectralLaw
from whorl.feedback import direct as direct
from whorl.feedback import leaky as leaky
from whorl.feedback import repair as repair
from whorl.feedback import rotational as rotational
from whorl.feedback import spectral as spectral
from whorl.flow import Flow as Flow
from whorl.flow import flow as flow
from whorl.integrability import Integrability as Integrability
from whorl.integrability import circulation as circulation
from whorl.integrability import exterior_derivative as exterior_derivative
from whorl.integrability import integrability as integrability
from whorl.integrability import one_form as one_form
from whorl.integrability import rock_paper_scissors as rock_paper_scissors
from whorl.ledger import Ledger as Ledger
from whorl.network import Network as Network
from whorl.network import loss as loss
from whorl.network import predict as predict
from whorl.network import residual as residual
from whorl.policy import Decision as Decision
from whorl.policy import Policy as Policy
from whorl.policy import View as View
from whorl.policy import adaptive as adaptive
from whorl.policy import native as native
from whorl.policy import step_matched as step_matched
from whorl.preconditioner import Preconditioner as Preconditioner
from whorl.preconditioner import preconditioner as preconditioner
from whorl.reciprocity import Certificate as Certificate
from whorl.reciprocity import ClosedLoop as ClosedLoop
from whorl.reciprocity import certify as certify
from whorl.reciprocity import closed_loop as closed_loop
from whorl.reciprocity import dissipation as dissipation
from whorl.response import Response as Response
from whorl.response import response as response
from whorl.task import Task as Task
from whorl.trajectory import Pair as Pair
from whorl.trajectory import train as train
from whorl.turn import quarter_turn as quarter_turn
from whorl.turn import sample_turn as sample_turn

__version__ = "0.1.0"
