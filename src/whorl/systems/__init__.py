"""Systems that learn: one file per kind, with the same members in the same order."""

from whorl.systems.circuit import Circuit as Circuit
from whorl.systems.circuit import Diode as Diode
from whorl.systems.faced import Faced as Faced
from whorl.systems.faced import faced as faced
from whorl.systems.graph import Graph as Graph
from whorl.systems.imperfect import Imperfect as Imperfect
from whorl.systems.layered import Network as Network
from whorl.systems.netlist import from_netlist as from_netlist
from whorl.systems.netlist import to_netlist as to_netlist
from whorl.systems.signed import Signed as Signed
from whorl.systems.transport import Transport as Transport
