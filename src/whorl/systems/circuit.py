r"""Circuits: conductances on the edges of any graph, and nonlinear elements among them.

A current $i = g\,\varphi(u)$ flows through every edge, where $u$ is its voltage drop and $g > 0$
its conductance, the trainable parameter. A resistor has $\varphi(u) = u$; other elements have a
rising $\varphi$ of their own with $\varphi(0) = 0$. Kirchhoff's laws make the co-content
$\Theta = \sum g\,\Phi(u)$, with $\Phi' = \varphi$, stationary: for resistors, half the dissipated
power.

| drive | inputs | read | outputs | the force that pushes an output |
|---|---|---|---|---|
| voltages | voltages of the sources | voltages | voltages of the outputs | a current fed into it |
| currents | currents fed into the sources | currents | currents into the outputs, which are grounded | a voltage below ground |

Currents that are fed in and read out again at grounded outputs are conserved, unless there is
another ground. The way back is the circuit itself, driven by forces at its outputs: the slope of an
edge is the product of its current per conductance, $\varphi(u)$, and of the drop that the forces
cause there. Linear circuits are solved by a Cholesky factor whose lost digits are bounded and
restored (`_nodal`), large ones by SciPy's sparse LU, circuits with nonlinear elements by Levenberg
and Marquardt's method and then Newton's, with implicit derivatives.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int
from scipy.sparse import csc_matrix, csgraph
from scipy.sparse.linalg import splu

from whorl import _check, geometry, simplex
from whorl._check import Numbers
from whorl.fields import choice
from whorl.geometry import Block, Geometry, Positive, block
from whorl.registry import systems
from whorl.settling import STEPS, Influence, Settling, States, widened
from whorl.system import Blocks, Fields, Trace
from whorl.systems import _nodal

DENSE = 256  # free nodes up to which circuits keep all relative digits at any conductances
FULL = 2048  # free nodes up to which a dense factor is faster than a sparse one on random wiring
COARSE = 1e-8  # the largest relative error of a solution above DENSE free nodes
BEYOND = 60.0  # thermal voltages, behind which a diode is continued by its tangent
ROOM = 1.380649e-23 * 300.15 / 1.602176634e-19  # volts: the thermal voltage at 27 degrees Celsius
MOBILITIES = {
    "flat": geometry.uniform,
    "logarithmic": geometry.logarithmic,
    "proportional": geometry.proportional,
}
WORDS = ("voltages", "currents")
RECENT = 4  # sparse factorisations kept: a coupled pair of learners asks for two states in turn
_recent: dict[bytes, Any] = {}
_lock = Lock()
SHOWN = 12  # edges with names on one screen
MOST = 10**7  # nodes
NODES, SHARES = np.polynomial.legendre.leggauss(32)
Drops = Float[Array, "samples _edges"]
Law = Callable[[Array], Array]


class Names(NamedTuple):
    r"""What the parts of a circuit are called where it came from.

    Examples:
        >>> circuit, _ = wh.from_netlist("divider\nV1 a 0 1\nR1 a b 1k\nR2 b 0 3k\n.print v(b)")
        >>> circuit.names.nodes, circuit.names.edges
        (('a', 'b', '0'), ('R1', 'R2'))
    """

    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    sources: tuple[str, ...]
    meters: tuple[str, ...]  # what reads the currents; empty where voltages are read
    notes: tuple[str, ...] = ()  # lines that were skipped


class Element(eqx.Module):
    """What a nonlinear edge does: its current per conductance, a rising function of its drop."""

    @abstractmethod
    def current(self, drop: Array) -> Array:
        r"""The current per conductance $\varphi(u)$, element by element."""

    def content(self, drop: Array) -> Array:
        r"""The co-content per conductance $\Phi(u) = \int_0^u \varphi$, by Gauss's rule."""
        places = jnp.asarray((NODES + 1) / 2, dtype=drop.dtype)
        shares = jnp.asarray(SHARES / 2, dtype=drop.dtype)
        return (
            self.current(jnp.expand_dims(drop, -1) * places.reshape((1,) * drop.ndim + (-1,)))
            @ shares
        ) * drop


class Characteristic(Element):
    """A rising function of the user's, with the value 0 at 0."""

    law: Law = eqx.field(static=True)

    def current(self, drop: Array) -> Array:
        return self.law(drop)


class Diode(Element):
    r"""Shockley's law $\varphi(u) = v\,(e^{u/v} - 1)$, $v$ being `thermal`, the thermal voltage
    times the ideality.

    The conductance of its edge is that at zero drop: the saturation current is $g v$. Current flows
    from the first node of the edge to the second. Behind 60 thermal voltages (1.55 V at 27 degrees
    Celsius), where the current is $10^{26}$ times that of saturation, the law is continued by its
    tangent, so that nothing overflows while voltages are sought: no diode is there in the end,
    unless two ideal sources hold both of its ends. SPICE replaces Shockley's law below minus three
    thermal voltages by $-v\,(1 + (3v/(eu))^3)$, which is up to 0.4 percent of the saturation
    current away from it.

    Examples:
        >>> round(float(wh.Diode(0.025).current(jnp.array(0.025))), 6)
        0.042957
    """

    thermal: float = eqx.field(static=True)

    def __init__(self, thermal: float = ROOM) -> None:
        self.thermal = _check.number("thermal", thermal, above=0.0)

    def current(self, drop: Array) -> Array:
        top, over = self._parts(drop)
        return self.thermal * (jnp.expm1(top) + jnp.exp(top) * over)

    def content(self, drop: Array) -> Array:
        top, over = self._parts(drop)
        inside = jnp.expm1(top) - top
        return self.thermal**2 * (inside + jnp.expm1(top) * over + jnp.exp(top) * over**2 / 2)

    def _parts(self, drop: Array) -> tuple[Array, Array]:
        size = drop / self.thermal
        top = jnp.minimum(size, BEYOND)
        return top, size - top


@systems.register("circuit")
class Circuit(Settling):
    """Conductances on the edges of a graph, driven at some nodes and read at others.

    Args:
        edges: Two different nodes per edge, `(edges, 2)`; several edges may join the same two.
        conductances: One positive number per edge, in siemens.
        sources: Nodes that the inputs drive, one per input.
        outputs: Nodes that are read, one per output.
        ground: Nodes at zero volts besides grounded outputs.
        drive: "voltages" holds the sources at the inputs, "currents" feeds the inputs into them;
            one word, or one per source.
        read: "voltages" reads the outputs' voltages, "currents" grounds the outputs and reads what
            flows into them.
        mobility: How a conductance answers a slope: "flat", "logarithmic", "proportional", or your
            own function of the conductances, positive and entry by entry.
        elements: Edges that are no resistors, by number: `Diode(...)`, or your own rising function
            of the drop with the value 0 at 0, in JAX.
        rates: How fast conductances may move, one number or one per edge; 0 freezes an edge.
        names: What nodes, edges and sources are called, as `from_netlist` knows it.

    Raises:
        ValueError: Where a node is not joined to a node of known voltage, or a value does not fit.

    Up to 256 free nodes, voltages and currents keep every relative digit, however far apart the
    conductances are. Larger circuits lose digits where a part hangs on weak edges, by the ratio of
    the strongest edge there to the weakest that leads out of it; those that keep fewer than eight
    are refused. So do drops along strong edges, in circuits of any size: `response` refuses a
    circuit where these may keep less than two.

    Examples:
        >>> divider = wh.Circuit([[0, 1], [1, 2]], [1.0, 3.0], sources=[0], outputs=[1], ground=[2])
        >>> print(wh.predict(divider, [[1.0]]))
        [[0.25]]
    """

    # Edges are data, so that one compiled program serves all circuits of one size.
    edges: Int[Array, "_edges 2"]
    rates: Float[Array, "_edges"]
    nodes: int = eqx.field(static=True)
    sources: tuple[int, ...] = eqx.field(static=True)
    sinks: tuple[int, ...] = eqx.field(static=True)  # the nodes that are read
    ground: tuple[int, ...] = eqx.field(static=True)
    drive: tuple[str, ...] = eqx.field(static=True)
    reading: str = eqx.field(static=True)
    mobility: Law = eqx.field(static=True)
    elements: tuple[tuple[Element, tuple[int, ...]], ...] = eqx.field(static=True)
    names: Names | None = eqx.field(static=True)
    conductances: Float[Array, "_edges"] = block(Positive(geometry.uniform))

    def __init__(
        self,
        edges: Numbers,
        conductances: Numbers,
        *,
        sources: Sequence[int],
        outputs: Sequence[int],
        ground: Sequence[int] = (),
        drive: str | Sequence[str] = "voltages",
        read: str = "voltages",
        mobility: str | Law = "flat",
        elements: Mapping[int, Element | Law] | None = None,
        rates: Numbers = 1.0,
        names: Names | None = None,
    ) -> None:
        seen = _edges(edges)
        self.edges, self.nodes = jnp.asarray(seen, dtype=jnp.int32), 1 + int(seen.max())
        self.conductances = _check.array("conductances", conductances, 1)
        _sized("conductances", self.conductances, len(seen))
        Positive().check("conductances", self.conductances)
        self.sources, self.sinks, self.ground = _roles(self.nodes, sources, outputs, ground)
        self.drive, self.reading = _drives(drive, len(self.sources)), choice("read", read, WORDS)
        self.mobility = _mobility(mobility)
        self.elements = _elements(elements or {}, len(self.edges))
        self.rates = _rates(rates, self.conductances)
        self.names = names
        _refuse_floating(self.nodes, seen, self.held)

    @property
    def held(self) -> tuple[int, ...]:
        """Nodes of known voltage: sources, grounds and grounded outputs, in this order."""
        driven = [self.sources[number] for number in self._columns("voltages")]
        return (*driven, *self.ground, *(self.sinks if self.reading == "currents" else ()))

    @property
    def free(self) -> tuple[int, ...]:
        """Nodes whose voltages settle."""
        return tuple(sorted(set(range(self.nodes)) - set(self.held)))

    @property
    def conserves(self) -> bool:
        """Whether all that is fed in comes out at the outputs."""
        fed = all(word == "currents" for word in self.drive)
        return fed and self.reading == "currents" and not self.ground

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of sources and number of outputs."""
        return len(self.sources), len(self.sinks)

    @property
    def geometries(self) -> tuple[Geometry, ...]:
        """Positive numbers with the circuit's mobility."""
        return (Positive(self.mobility),)

    @property
    def block_rates(self) -> tuple[ArrayLike, ...]:
        """One rate per edge."""
        return (self.rates,)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Sums over edges into nodes, and over nodes."""
        return len(self.sources), len(self.edges), self.nodes, len(self.sinks)

    @property
    def linear(self) -> bool:
        """Whether all edges are resistors."""
        return not self.elements

    def basis(self) -> Float[np.ndarray, "out e"]:
        """All directions, or the zero-sum ones where currents are conserved."""
        return simplex.tangent_basis(len(self.sinks)) if self.conserves else np.eye(len(self.sinks))

    def __str__(self) -> str:
        if self.names is None:
            return super().__str__()
        nodes, ends = self.names.nodes, np.asarray(self.edges).tolist()
        sizes = np.asarray(self.conductances).tolist()
        parts = list(zip(self.names.edges, ends, sizes, strict=True))
        lines = [
            f"  {name}   {nodes[a]} to {nodes[b]}   {size:.3g} S" for name, (a, b), size in parts
        ]
        if len(lines) > SHOWN:
            lines[SHOWN:] = [f"  and {len(lines) - SHOWN} more"]
        notes = [f"  skipped: {note}" for note in self.names.notes]
        return "\n".join([super().__str__(), *lines, *notes])

    # How it settles.

    def settle(self, inputs: Array, force: Fields) -> States:
        """The voltages of all nodes, `(samples, nodes)`."""
        return self._checked(_settled(self, inputs, force))

    def read(self, states: States) -> Fields:
        """Voltages of the outputs, or currents into them."""
        if self.reading == "voltages":
            return states[:, self.sinks]
        return self._arriving(self._flowing(self._drops(states)))

    def energy(self, states: States) -> Float[Array, "samples"]:
        """The co-content; the content, which is its negative here, where currents are read."""
        drops = self._drops(states)
        contents = self._piecewise(drops, drops**2 / 2, lambda one: one.content)
        return self._sign * (contents @ self.conductances)

    def check_trace(self, trace: Trace) -> None:
        """Refuse conductances so far apart that sums over the edges of a node drown the weak."""
        if not self.linear or not 0 < len(self.free) <= DENSE:
            return
        ends, others = np.asarray(self.edges).T
        rows, columns, values = _entries(ends, others, np.asarray(self.conductances))
        whole = np.zeros((self.nodes, self.nodes))
        np.add.at(whole, (rows, columns), values.astype(float))
        inside = whole[np.ix_(self.free, self.free)]
        scale = 1 / np.sqrt(np.diag(inside))
        least = np.linalg.eigvalsh(scale[:, None] * inside * scale)[0]
        if not float(jnp.finfo(self.dtype).eps) < 1e-2 * least:
            raise ValueError(_unsettled(self, 0))

    def reach(self, inputs: Array) -> tuple[States, Influence]:
        """States where nothing pushes, and how unit forces at each output move them."""
        states, influence = _reached(self, inputs)
        return self._checked(states), influence

    def reached(self, trace: Trace) -> tuple[States, Influence]:
        return trace[1], trace[2]

    def blur(self, trace: Trace) -> float:
        """What edges contribute to the response whose drops are round-off of voltages."""
        fine = 8 * float(jnp.finfo(self.dtype).eps)
        fine *= 1 if len(self.free) <= DENSE else self.nodes

        def doubtful(states: Array) -> tuple[np.ndarray, np.ndarray]:
            drops = np.abs(np.asarray(jax.vmap(self._drops)(states), dtype=float))
            largest = np.abs(states).max(axis=-1, keepdims=True)
            return drops, drops <= fine * largest

        _, still = doubtful(trace[1][:, None])
        pushed, unmoved = doubtful(trace[2])
        currents = np.asarray(self._currents(self._drops(trace[1])), dtype=float)
        slopes = np.where(still | unmoved, currents[:, None] * pushed, 0.0)
        weights = np.asarray(self.rates * self.mobility(self.conductances), dtype=float)
        # Four times: a sum that equals the response up to its own rounding is the response.
        return 4 * float(np.sum(weights * np.sum(slopes**2, axis=(0, 1))))

    # The ways forward and back, on the circuit of small signals around the state.

    def trace(self, inputs: Array) -> Trace:
        """Inputs, states, what unit forces at the outputs do to them, and outputs."""
        states, influence = self.reach(inputs)
        return inputs, states, influence, self.read(states)

    def sample(self, trace: Trace, number: Array) -> Trace:
        inputs, states, influence, outputs = trace
        forced = influence if self.linear else influence[number][None]
        return inputs[number][None], states[number][None], forced, outputs[number][None]

    def jacobians(self, trace: Trace) -> tuple[Float[Array, "samples out _edges"]]:
        """How the outputs move per conductance.

        A rising conductance feeds a current around its edge. By reciprocity an output moves by that
        current times the drop that a unit force at the output causes along the edge.
        """
        return (-self._sign * self._currents(self._drops(trace[1]))[:, None] * self._pushes(trace),)

    def forward(self, trace: Trace, velocities: Blocks) -> Fields:
        """How the outputs move when conductances do."""
        return self.jacobians(trace)[0] @ velocities[0]

    def scores(self, trace: Trace, potential: Fields) -> tuple[Block, ...]:
        """The score of every edge: its current per conductance times the drop that forces cause."""
        return self.scores_of((jnp.einsum("so,soe->e", potential, self.jacobians(trace)[0]),))

    def back(self, trace: Trace, potential: Fields) -> tuple[Block, ...]:
        """The slope of every edge, carried back by the conductances of this circuit.

        The states of the trace may be those of a circuit with other conductances.
        """
        inputs, states, _, outputs = trace
        own = (inputs, states, self._influence(states), outputs)
        return (jnp.einsum("so,soe->e", potential, self.jacobians(own)[0]),)

    def dense(self, trace: Trace) -> Float[Array, "n n"]:
        """The response as the sum over edges."""
        return jnp.sum(self.contributions(trace), axis=0)

    # What these are made of.

    @property
    def _sign(self) -> float:
        return 1.0 if self.reading == "voltages" else -1.0

    @property
    def _ends(self) -> tuple[Array, Array]:
        return self.edges[:, 0], self.edges[:, 1]

    def _checked(self, states: States) -> States:
        """The states, if they are numbers."""
        if _check.known(states) and not np.isfinite(states).all():
            raise ValueError(_unsettled(self, int(np.argmin(np.isfinite(states).all(axis=1)))))
        return states

    def _influence(self, states: States) -> Influence:
        """How unit forces at each output move these states, `(samples or 1, out, nodes)`."""
        units = jnp.eye(len(self.sinks), dtype=self.dtype)
        none = jnp.zeros((len(units), len(self.sources)), dtype=self.dtype)
        held, fed = self._bounds(none, units)
        small = self._small(self._drops(states))
        return jax.vmap(lambda row: self._solved(row, held, fed))(small)

    def _pushes(self, trace: Trace) -> Float[Array, "rows out _edges"]:
        """The drops that unit forces at each output cause along every edge."""
        return jax.vmap(self._drops)(trace[2])

    def _bounds(self, inputs: Array, force: Fields) -> tuple[Array, Array]:
        """Voltages of the held nodes and currents fed into all nodes, for every sample."""
        rows = inputs.shape[0]
        ground = jnp.zeros((rows, len(self.ground)), dtype=self.dtype)
        by_voltage, by_current = self._columns("voltages"), self._columns("currents")
        grounded = [-force] if self.reading == "currents" else []
        fed = jnp.zeros((rows, self.nodes), dtype=self.dtype)
        fed = fed.at[:, [self.sources[number] for number in by_current]].add(inputs[:, by_current])
        if self.reading == "voltages":
            fed = fed.at[:, self.sinks].add(force)
        return jnp.concatenate([inputs[:, by_voltage], ground, *grounded], axis=1), fed

    def _columns(self, word: str) -> list[int]:
        """The inputs that are voltages, or currents."""
        return [number for number, one in enumerate(self.drive) if one == word]

    def _drops(self, states: States) -> Drops:
        first, second = self._ends
        return states[:, first] - states[:, second]

    def _leaving(self, currents: Drops) -> States:
        """The sum of the currents that leave every node."""
        first, second = self._ends
        nothing = jnp.zeros((currents.shape[0], self.nodes), dtype=currents.dtype)
        return nothing.at[:, first].add(currents).at[:, second].add(-currents)

    def _arriving(self, currents: Drops) -> Fields:
        return -self._leaving(currents)[:, self.sinks]

    def _piecewise(self, drops: Drops, usual: Drops, act: Callable[[Element], Law]) -> Drops:
        """What resistors do, except at the edges of other elements."""
        for element, where in self.elements:
            usual = usual.at[:, where].set(act(element)(drops[:, where]))
        return usual

    def _currents(self, drops: Drops) -> Drops:
        """Currents per conductance."""
        return self._piecewise(drops, drops, lambda one: one.current)

    def _flowing(self, drops: Drops) -> Drops:
        """Currents."""
        return self.conductances[None, :] * self._currents(drops)

    def _small(self, drops: Drops) -> Float[Array, "rows _edges"]:
        """Conductances for small signals, one row per sample; one row in all where it is linear."""
        if self.linear:
            return self.conductances[None, :]

        def slope(element: Element) -> Law:
            return lambda at: jax.jvp(element.current, (at,), (jnp.ones_like(at),))[1]

        return self.conductances[None, :] * self._piecewise(drops, jnp.ones_like(drops), slope)

    def _solved(self, conductances: Float[Array, "edges"], held: Array, fed: Array) -> States:
        """Voltages of a linear circuit, from those of its held nodes and the currents fed in."""
        known = jnp.zeros((held.shape[0], self.nodes), dtype=self.dtype)
        known = known.at[:, self.held].set(held)
        if not self.free:
            return known
        needed = (fed - self._leaving(conductances[None, :] * self._drops(known)))[:, self.free]
        found = _laplace_solve(self, conductances, needed.T).T
        return known.at[:, self.free].set(found)

    # To and from graphs.

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        sources: Sequence[Hashable],
        outputs: Sequence[Hashable],
        ground: Sequence[Hashable] = (),
        **options: Any,
    ) -> "Circuit":
        """The circuit of a networkx graph, whose nodes are given by their labels.

        Args:
            graph: Any graph of networkx; the attribute `conductance` of an edge is 1 if left out.
            sources: Labels of the driven nodes, or the label of one.
            outputs: Labels of the nodes that are read.
            ground: Labels of nodes at zero volts.
            **options: What else `Circuit` takes.

        Returns:
            The circuit; its nodes are numbered in the order of `graph.nodes`.

        Examples:
            >>> import networkx as nx
            >>> ladder = wh.Circuit.from_networkx(
            ...     nx.path_graph("abc"), sources="a", outputs="b", ground="c"
            ... )
            >>> print(wh.predict(ladder, [[1.0]]))
            [[0.5]]
        """
        if not all(hasattr(graph, name) for name in ("edges", "nodes")):
            raise ValueError(f"graph must be one of networkx, but it is {_check.shown(graph)}")
        number = {label: place for place, label in enumerate(graph.nodes)}
        roles = {"sources": sources, "outputs": outputs, "ground": ground}
        roles = {
            name: [labels] if isinstance(labels, str) else _check.listed(name, labels)
            for name, labels in roles.items()
        }
        for name, labels in roles.items():
            known = (isinstance(label, Hashable) and label in number for label in labels)
            if strange := [label for label, ok in zip(labels, known, strict=True) if not ok]:
                raise ValueError(
                    f"{name} must be nodes of the graph, but {_check.shown(strange[0])} is not"
                )
        for first, second, about in (found := list(graph.edges(data=True))):
            ends = f"from {_check.shown(first)} to {_check.shown(second)}"
            if first == second:
                raise ValueError(f"edges must join two different nodes, but one goes {ends}")
            _check.number(f"conductance {ends}", about.get("conductance", 1.0), above=0.0)
        for label in graph.nodes:
            if not graph.degree(label):
                raise ValueError(f"node {_check.shown(label)} must have an edge, but it has none")
        return cls(
            [(number[a], number[b]) for a, b, _ in found],
            [about.get("conductance", 1.0) for *_, about in found],
            **{name: [number[label] for label in labels] for name, labels in roles.items()},
            **options,
        )

    def to_networkx(self) -> Any:
        """A `networkx.MultiGraph` with the attribute `conductance` on every edge.

        Examples:
            >>> divider = wh.Circuit(
            ...     [[0, 1], [1, 2]], [1.0, 3.0], sources=[0], outputs=[1], ground=[2]
            ... )
            >>> divider.to_networkx().edges(data="conductance")
            MultiEdgeDataView([(0, 1, 1.0), (1, 2, 3.0)])
        """
        import networkx as nx

        graph = nx.MultiGraph()
        graph.add_nodes_from(range(self.nodes))
        ends = np.asarray(self.edges).tolist()
        for (first, second), size in zip(ends, np.asarray(self.conductances), strict=True):
            graph.add_edge(first, second, conductance=float(size))
        return graph


# Compiled here, because most who ask for a state do not compile by themselves.
@eqx.filter_jit
def _settled(circuit: Circuit, inputs: Array, force: Fields) -> States:
    """The voltages of all nodes under forces at the outputs."""
    held, fed = circuit._bounds(inputs, force)
    if circuit.linear:
        return circuit._solved(circuit.conductances, held, fed)
    return _relaxed(circuit, held, fed)


@eqx.filter_jit
def _reached(circuit: Circuit, inputs: Array) -> tuple[States, Influence]:
    """States where nothing pushes, and how unit forces move them.

    A linear circuit makes one factor for both, and forces move all its samples alike.
    """
    still = circuit.no_force(inputs)
    if not circuit.linear:
        states = _relaxed(circuit, *circuit._bounds(inputs, still))
        return states, circuit._influence(states)
    units = jnp.eye(len(circuit.sinks), dtype=circuit.dtype)
    none = jnp.zeros((len(units), inputs.shape[1]), dtype=circuit.dtype)
    bounds = circuit._bounds(jnp.concatenate([inputs, none]), jnp.concatenate([still, units]))
    both = circuit._solved(circuit.conductances, *bounds)
    return both[: len(inputs)], both[None, len(inputs) :]


def _relaxed(circuit: Circuit, held: Float[Array, "samples held"], fed: States) -> States:
    """Voltages by a root finder, which starts at the answer of the conductances at zero drop.

    The finder balances currents, in which weak edges drown among strong ones: it leads near. From
    there Newton's method goes on in the form of a linear circuit, whose elements are their tangents
    and whose solution keeps every digit.
    """
    narrow = circuit.dtype
    circuit, held, fed = widened((circuit, held, fed))
    free, scale = jnp.asarray(circuit.free), jnp.max(circuit.conductances)
    fine = 256 * float(jnp.finfo(circuit.dtype).eps)
    finder = optx.LevenbergMarquardt(rtol=fine, atol=fine)
    known = circuit._solved(circuit.conductances, held, fed)
    if not circuit.free:
        return known.astype(narrow)

    def one(start: Float[Array, "nodes"], into: Float[Array, "nodes"]) -> Float[Array, "nodes"]:
        def unbalanced(voltages: Array, _: None) -> Array:
            drops = circuit._drops(start.at[free].set(voltages)[None, :])
            leaving = circuit._leaving(circuit._flowing(drops))[0]
            return (leaving - into)[free] / scale

        def tangent(voltages: Array, _: None) -> Array:
            drops = circuit._drops(start.at[free].set(voltages)[None, :])
            small = circuit._small(drops)
            # Nothing at resistors, to the last bit: only elements have a current of their own.
            own = circuit._leaving(small * drops - circuit._flowing(drops))[0]
            solved = circuit._solved(small[0], start[None, list(circuit.held)], (into + own)[None])
            return solved[0, free]

        near = optx.root_find(unbalanced, finder, start[free], max_steps=STEPS, throw=False).value
        exact = optx.FixedPointIteration(rtol=fine, atol=fine)
        near = jax.lax.stop_gradient(jnp.where(jnp.isfinite(near), near, start[free]))
        # A state that does not settle is NaN. The compiled program goes on; the caller refuses it.
        found = optx.fixed_point(tangent, exact, near, max_steps=STEPS, throw=False)
        whole = start.at[free].set(found.value)
        rising = jnp.all(circuit._small(circuit._drops(whole[None, :])) >= 0)
        settled = (found.result == optx.RESULTS.successful) & rising
        return jnp.where(settled, whole, jnp.nan)

    return jax.vmap(one)(known, fed).astype(narrow)


def _unsettled(circuit: Circuit, sample: int) -> str:
    """What to say of voltages that are no numbers."""
    if circuit.linear:
        sizes, free = np.asarray(circuit.conductances), len(circuit.free)
        kept = circuit.dtype if free <= DENSE else "float64"
        return (
            f"conductances must lie within {kept}'s digits of each other, but they go from "
            f"{sizes.min():.3g} to {sizes.max():.3g} in a circuit of {free} free nodes"
        )
    return (
        f"voltages must settle within {STEPS} steps, but those of sample {sample} do not; give "
        "elements that stay finite and rise at every drop that the drive can cause"
    )


def _laplace_solve(
    circuit: Circuit, conductances: Float[Array, "edges"], needed: Float[Array, "free samples"]
) -> Float[Array, "free samples"]:
    """Voltages of the free nodes that carry the needed currents away, all else at zero volts."""
    size = len(circuit.free)
    places = np.full(circuit.nodes, size)  # held nodes stand behind the last free one
    places[list(circuit.free)] = np.arange(size)
    first, second = (jnp.asarray(places)[end] for end in circuit._ends)
    nodal = _nodal.Circuit(first, second, conductances, size)
    fixed = nodal._replace(conductances=jax.lax.stop_gradient(conductances))
    if size <= FULL:
        solve = _nodal.solver(fixed, None if size <= DENSE else COARSE)
    else:
        solve = _sparse(fixed)
    return jax.lax.custom_linear_solve(
        nodal.carried, needed, lambda _, right: solve(right), symmetric=True
    )


def _sparse(circuit: _nodal.Circuit) -> Law:
    """Solve by SciPy's sparse LU, on the host and in double precision."""

    def solve(first: Any, second: Any, known: Any, right: Any) -> np.ndarray:
        values = np.asarray(known, dtype=float)
        found = _factors(circuit.free, np.asarray(first), np.asarray(second), values)
        if found is None:
            return np.full_like(right, np.nan)
        return found.solve(np.asarray(right, dtype=float)).astype(right.dtype)

    def called(right: Array) -> Array:
        shape = jax.ShapeDtypeStruct(right.shape, right.dtype)
        return jax.pure_callback(solve, shape, *circuit[:3], right, vmap_method="sequential")

    return called


def _factors(size: int, first: np.ndarray, second: np.ndarray, values: np.ndarray) -> Any:
    """The sparse factors of these conductances, or None where they keep too few digits.

    The last few are kept, because one update solves with the same conductances more than once.
    """
    key = sha256(b"".join(part.tobytes() for part in (first, second, values))).digest()
    with _lock:
        if key in _recent:
            return _recent[key]
    rows, columns, entries = _entries(first, second, values)
    whole = csc_matrix((entries, (rows, columns)), shape=(size + 1, size + 1))[:-1]
    # The matrix is symmetric and diagonally dominant: it needs no pivots.
    try:
        found = splu(
            whole[:, :-1],
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        # Where all held nodes are at one volt every node is: what is found instead is what the
        # rounded sums over strong edges have forgotten of weak ones.
        even = found.solve(-whole[:, -1:].toarray().ravel())
        found = found if np.abs(even - 1).max() < COARSE else None
    except RuntimeError:  # singular to the last bit
        found = None
    with _lock:
        _recent[key] = found
        while len(_recent) > RECENT:
            _recent.pop(next(iter(_recent)))
    return found


def _entries(
    first: np.ndarray, second: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values whose sum is the Laplacian."""
    rows = np.concatenate([first, second, first, second])
    columns = np.concatenate([first, second, second, first])
    return rows, columns, np.concatenate([sizes, sizes, -sizes, -sizes])


# The doors.


def _edges(edges: Any) -> np.ndarray:
    seen = _check.numpy("edges", edges)
    if seen.ndim != 2 or seen.shape[1] != 2 or seen.shape[0] == 0:
        raise ValueError(f"edges must have shape (edges, 2), but their shape is {seen.shape}")
    if seen.dtype.kind not in "iu" or (seen < 0).any() or (seen >= MOST).any():
        raise ValueError(
            f"edges must hold node numbers from 0 to {MOST - 1}, but they hold "
            f"{_check.shown(seen.ravel()[:4].tolist())}"
        )
    for number, (first, second) in enumerate(seen.tolist()):
        if first == second:
            raise ValueError(
                f"edges must join two different nodes, but edge {number} joins {first} to itself"
            )
    return seen


def _roles(nodes: int, *given: Any) -> tuple[tuple[int, ...], ...]:
    names = ("sources", "outputs", "ground")
    roles = []
    for name, value in zip(names, given, strict=True):
        listed = _check.listed(name, value)
        roles.append(tuple(_check.index(f"each of {name}", one, nodes) for one in listed))
    for name, role in zip(names[:2], roles, strict=False):
        if not role:
            raise ValueError(f"{name} must name at least one node, but it is empty")
    counted = Counter(node for role in roles for node in role)
    if twice := [node for node, times in counted.items() if times > 1]:
        raise ValueError(
            f"sources, outputs and ground must be different nodes, but node {twice[0]} is there "
            "twice"
        )
    return tuple(roles)


def _drives(drive: Any, sources: int) -> tuple[str, ...]:
    words = (drive,) * sources if isinstance(drive, str) else tuple(_check.listed("drive", drive))
    if len(words) != sources:
        raise ValueError(
            f"drive must be one word or one per source, {sources}, but it has {len(words)}"
        )
    return tuple(choice("drive", word, WORDS) for word in words)


def _mobility(mobility: Any) -> Law:
    if isinstance(mobility, str) and mobility in MOBILITIES:
        return MOBILITIES[mobility]
    if isinstance(mobility, str) or not callable(mobility):
        raise ValueError(
            f"mobility must be one of {', '.join(MOBILITIES)} or a function, but it is "
            f"{_check.shown(mobility)}"
        )
    return cast(Law, mobility)


def _elements(given: Any, edges: int) -> tuple[tuple[Element, tuple[int, ...]], ...]:
    found: dict[Element, list[int]] = {}
    for number, element in dict(given).items():
        place = _check.index("each edge of elements", number, edges)
        if not isinstance(element, Element):
            if not callable(element):
                raise ValueError(
                    "elements must be Diode(...) or rising functions, but that of edge "
                    f"{place} is {_check.shown(element)}"
                )
            element = Characteristic(cast(Law, element))
        _refuse_falling(place, element)
        found.setdefault(element, []).append(place)
    return tuple((element, tuple(places)) for element, places in found.items())


def _refuse_falling(place: int, element: Element) -> None:
    # Known numbers, also where the circuit is made inside a compiled program.
    with jax.ensure_compile_time_eval():
        drops = jnp.linspace(-1.0, 1.0, 65)
        values = np.asarray(element.current(drops))
    if values.shape != drops.shape or not np.isfinite(values).all():
        raise ValueError(
            f"elements must give one finite current per drop, but that of edge {place} does not"
        )
    falls = (np.diff(values) < 0).any() or not values[-1] > values[0]
    if falls or abs(values[32]) > 1e-9 * np.abs(values).max():
        raise ValueError(
            f"elements must rise with the drop and be 0 at 0, but that of edge {place} does not"
        )


def _rates(rates: Any, conductances: Array) -> Float[Array, "edges"]:
    given = _check.numbers("rates", rates, least=0.0)
    if given.ndim:
        _sized("rates", given, conductances.shape[0])
    return jnp.broadcast_to(given, conductances.shape).astype(conductances.dtype)


def _sized(name: str, values: Array, edges: int) -> None:
    if values.shape != (edges,):
        raise ValueError(
            f"{name} must have one number per edge, {edges}, but their shape is {values.shape}"
        )


def _refuse_floating(nodes: int, edges: np.ndarray, held: Sequence[int]) -> None:
    """Every voltage must follow from known ones."""
    graph = csc_matrix((np.ones(len(edges)), tuple(edges.T)), shape=(nodes, nodes))
    _, part = csgraph.connected_components(graph, directed=False)
    lost = np.flatnonzero(~np.isin(part, part[list(held)]))
    if lost.size:
        raise ValueError(
            "every node must be joined to a node of known voltage (a driven source, a ground or a "
            f"grounded output), but node {lost[0]} is not"
        )
