"""Systems that learn: one file per kind, with the same members in the same order."""

from whorl.systems.layered import Network as Network
