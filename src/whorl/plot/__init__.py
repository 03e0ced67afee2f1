"""Pictures of library objects, each a function that draws on the axes it is given, or else on a
new figure, and returns what it drew on. matplotlib is imported only when one is drawn.
"""

from whorl.plot._circuit import circuit as circuit
from whorl.plot._curve import learning_curve as learning_curve
from whorl.plot._eigenvalues import eigenvalues as eigenvalues
from whorl.plot._graph import graph as graph
from whorl.plot._ledger import waterfall as waterfall
from whorl.plot._replication import forest as forest
from whorl.plot._response import spectrum as spectrum
from whorl.plot._simplex import phase_portrait as phase_portrait
from whorl.plot._simplex import spiral as spiral
