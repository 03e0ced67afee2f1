"""Systems that learn: one file per kind, with the same members in the same order."""

from whorl.systems.faced import Faced as Faced
from whorl.systems.faced import faced as faced
from whorl.systems.layered import Network as Network
