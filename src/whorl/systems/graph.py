r"""A directed graph, loops allowed: every node splits what arrives among its outgoing edges.

Sources take the inputs, sinks keep what reaches them. A share $w_e > 0$ belongs to every edge, and
the shares of the edges that leave a node sum to one. With $x_v$ the flow that passes node $v$ in
all its visits, and $b_v$ what is fed in,

$$ x_v \sum_{e\colon v \to u \ne v} w_e = b_v + \sum_{e\colon u \to v,\, u \ne v} w_e x_u,
   \qquad F_s = \sum_{e\colon u \to s} w_e x_u . $$

This is $Ax = b$ for the graph's own M-matrix, and $F$ are the absorption probabilities of a Markov
chain. Written with what leaves a node, instead of one minus what stays, no row of it cancels; and
whatever the shares are, the columns of $A$ sum to what goes to the sinks: mass is conserved. A
potential $v$ at the sinks spreads back by the transposed equations, to the mean of $v$ over where a
particle from here ends, and the slope of an edge is its flow times the difference it bridges,
$\sum_s x_u (\psi_v - \psi_u)$.

Small graphs factor $A$ by `_nodal`, which keeps the relative precision of every flow, however
rarely a loop is left. Large graphs are solved on the host, by the route
of `_sparse` that suits them.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from whorl import _check, _construct, _precision, simplex
from whorl._check import Numbers
from whorl._show import plural
from whorl.fields import choice
from whorl.geometry import Simplex, block
from whorl.registry import systems
from whorl.system import Blocks, Fields, System, Trace
from whorl.systems._nodal import Triangles, triangles
from whorl.systems._sparse import Pattern
from whorl.systems.layered import Network

DENSE = 128  # splitting nodes up to which dense factors beat a call to the host
MOST = 1024  # splitting nodes up to which they are taken where the host would lose digits
SOLVERS = ("dense", "direct", "krylov")
Node = Hashable
Flows = Float[Array, "samples _nodes"]
Shares = Float[Array, "_edges"]
Split = Float[Array, "_height _nodes"]
Kept = Triangles | None


class Wiring:
    """Which node hands on to which: all of a graph but its numbers.

    Splitting nodes come first, then sinks. Nodes with similar numbers of edges share one block of
    columns, as tall as the next power of two: a few blocks hold any graph, and less than half of
    them is empty.
    """

    def __init__(
        self, nodes: tuple[Node, ...], sources: np.ndarray, sinks: int, ends: np.ndarray
    ) -> None:
        self.nodes, self.sources, self.sinks, self.ends = nodes, sources, sinks, ends
        self.splitting = len(nodes) - sinks
        self.tails, self.heads = ends
        self._key = hash((nodes, sources.tobytes(), sinks, ends.tobytes()))
        self._pack()
        at = np.flatnonzero(self.live)
        inside = at[self.onto[at] < self.splitting]
        # The places of edges into sinks.
        self.last = at[self.onto[at] >= self.splitting]
        # What leaves a node stands on the diagonal, what it hands on below or above it.
        self.pattern = Pattern(
            self.splitting,
            np.concatenate([self.off[at], self.onto[inside]]),
            np.concatenate([self.off[at], self.off[inside]]),
            np.concatenate([at, inside]),
            np.concatenate([np.ones(len(at)), -np.ones(len(inside))]),
        )

    def _pack(self) -> None:
        """Where every edge stands in the blocks, and what stands at every place of them."""
        degrees = np.bincount(self.tails, minlength=self.splitting)
        heights = 2 ** np.ceil(np.log2(np.maximum(degrees, 2))).astype(int)
        order = np.argsort(self.tails, kind="stable")
        # The number of an edge among those that leave the same node.
        number = np.empty(len(order), dtype=int)
        number[order] = np.arange(len(order)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        self.shapes = [
            (int(height), int((heights == height).sum())) for height in np.unique(heights)
        ]
        self.groups = [np.flatnonzero(heights == height) for height, _ in self.shapes]
        column, width, start = (np.empty(self.splitting, dtype=int) for _ in range(3))
        room = 0
        for (height, count), group in zip(self.shapes, self.groups, strict=True):
            column[group], width[group], start[group] = np.arange(count), count, room
            room += height * count
        self.places = (start + column)[self.tails] + number * width[self.tails]
        self.onto, self.off = np.zeros(room, dtype=int), np.zeros(room, dtype=int)
        self.onto[self.places], self.off[self.places] = self.heads, self.tails
        # What a node hands to itself it has again at once: such an edge carries nothing anywhere.
        self.live = self.onto != self.off
        self.live[np.setdiff1d(np.arange(room), self.places)] = False
        self.leading = self.cut(self.onto)

    def cut(self, flat: Any) -> list[Any]:
        """One row of numbers for all places as an array per block."""
        ends = np.cumsum([height * count for height, count in self.shapes])[:-1]
        ready = np if isinstance(flat, np.ndarray) else jnp
        parts = zip(ready.split(flat, ends), self.shapes, strict=True)
        return [part.reshape(shape) for part, shape in parts]

    def __hash__(self) -> int:
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Wiring)
            and (self._key, self.nodes, self.sinks) == (other._key, other.nodes, other.sinks)
            and np.array_equal(self.sources, other.sources)
            and np.array_equal(self.ends, other.ends)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Wiring, (self.nodes, self.sources, self.sinks, self.ends)

    def __repr__(self) -> str:
        return f"Wiring({plural(len(self.nodes), 'node')}, {plural(len(self.tails), 'edge')})"


@systems.register("graph")
class Graph(System):
    """A flow graph, with loops if you like: nodes split what arrives, sinks keep it.

    `edges` are pairs of nodes, from and to; a node is anything that can be hashed, and two edges
    may join the same two. `shares` has one positive number per edge, and those of the edges that
    leave a node sum to one; left out, they are even. `sources` take the inputs and `sinks` give the
    outputs, in their order. `rates` is one number, or one per splitting node, in the order of
    `nodes`. `solver` is "dense", "direct" or "krylov"; left out, it is the one that suits.

    Raises:
        ValueError: Where a node other than a sink has no outgoing edge, a sink cannot be reached
            from a source, a closed loop has no exit, or shares do not sum to one.

    Examples:
        >>> walk = wh.Graph(
        ...     [("a", "b"), ("b", "a"), ("a", "left"), ("b", "right")],
        ...     sources=["a"],
        ...     sinks=["left", "right"],
        ... )
        >>> print(np.round(wh.predict(walk, [[1.0]]), 6))
        [[0.666667 0.333333]]
    """

    node_rates: Float[Array, "_splitting"]
    splits: tuple[Split, ...] = block(Simplex())
    wiring: Wiring = eqx.field(static=True, kw_only=True)
    solver: str = eqx.field(static=True, kw_only=True)

    def __init__(
        self,
        edges: Sequence[tuple[Node, Node]],
        shares: Numbers | None = None,
        *,
        sources: Sequence[Node],
        sinks: Sequence[Node],
        rates: Numbers = 1.0,
        solver: str | None = None,
    ) -> None:
        self.wiring = _wired(edges, sources, sinks)
        given = _even(self.wiring) if shares is None else shares
        flat = _checked_shares(self.wiring, _check.array("shares", given, 1))
        self.splits = _packed(self.wiring, flat)
        self.node_rates = _checked_rates(self.wiring, rates, flat.dtype)
        self.solver = _suited(self.wiring, flat, solver)

    @classmethod
    def random(
        cls,
        nodes: int,
        edges: int,
        *,
        inputs: int,
        outputs: int,
        seed: int | np.random.Generator,
        dtype: Any = np.float64,
        **options: Any,
    ) -> "Graph":
        """Edges at random between `nodes`, of which the first are sources and the last sinks, with
        shares that are uniform on their simplices.

        Every node can be reached and can be left; the rest of the edges may form any loop.
        """
        sizes = [_check.count(*one) for one in (("inputs", inputs), ("outputs", outputs))]
        nodes = _check.count("nodes", nodes, sum(sizes))
        rng, inner = _construct.generator(seed), nodes - sizes[1]
        later, earlier = np.arange(sizes[0], nodes), np.arange(inner)
        ways = [
            (rng.integers(0, np.minimum(later, inner)), later),
            (earlier, rng.integers(earlier + 1, nodes)),
        ]
        least = len(later) + inner
        edges = _check.count("edges", edges, least)
        ways.append(tuple(rng.integers(0, (inner, nodes), (edges - least, 2)).T))
        tails, heads = (np.concatenate(parts) for parts in zip(*ways, strict=True))
        grown = rng.exponential(size=edges)
        shares = (grown / np.bincount(tails, grown)[tails]).astype(_construct.floating(dtype))
        ends = list(zip(tails.tolist(), heads.tolist(), strict=True))
        return cls(
            ends,
            shares,
            sources=range(sizes[0]),
            sinks=range(inner, nodes),
            **options,
        )

    @classmethod
    def from_network(cls, net: Network) -> "Graph":
        """The graph of a layered network, whose nodes are named `(layer, number)`."""
        _check.instance("net", net, Network)
        _check.need_known("net", "make its graph outside", net.layers)
        edges, shares, last = [], [], net.depth
        for number, layer in enumerate(map(np.asarray, net.layers)):
            for head, tail in np.argwhere(layer > 0).tolist():
                edges.append(((number, tail), (number + 1, head)))
                shares.append(layer[head, tail])
        sources, sinks = ([(at, k) for k in range(net.widths[at])] for at in (0, last))
        whole = cls(edges, np.array(shares, dtype=net.dtype), sources=sources, sinks=sinks)
        each = [np.asarray(rate) for rate in net.rates]
        rates: dict[Node, Any] = {
            (at, k): rate[k] for at, rate in enumerate(each) for k in range(len(rate))
        }
        kept = np.stack([rates[node] for node in whole.nodes[: whole.wiring.splitting]])
        return eqx.tree_at(lambda graph: graph.node_rates, whole, jnp.asarray(kept))

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        sources: Sequence[Node],
        sinks: Sequence[Node],
        weight: str | None = "share",
        **options: Any,
    ) -> "Graph":
        """A graph of networkx; an undirected edge counts both ways, except out of a sink.

        The edge attribute `weight`, any positive number and one where it is missing, is divided by
        its sum over the edges that leave a node.
        """
        if not all(hasattr(graph, name) for name in ("edges", "nodes", "is_directed")):
            raise ValueError(f"graph must be one of networkx, but it is {_check.shown(graph)}")
        ends = _check.listed("sinks", sinks)
        listed = list(graph.edges(data=True))
        if not graph.is_directed():
            listed += [(head, tail, data) for tail, head, data in listed if tail != head]
            listed = [edge for edge in listed if edge[0] not in ends]
        alone = [node for node in graph.nodes if not graph.degree(node)]
        if alone:
            raise ValueError(f"node {_check.shown(alone[0])} must have an edge, but it has none")
        weights = [
            _check.number("a weight", data.get(weight, 1.0), above=0.0) for *_, data in listed
        ]
        edges = [(tail, head) for tail, head, _ in listed]
        wiring = _wired(edges, sources, ends)
        shares = np.array(weights) / np.bincount(wiring.tails, weights)[wiring.tails]
        return cls(edges, shares, sources=sources, sinks=sinks, **options)

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph` of the same nodes and edges, in their order, with the attribute
        `share`.
        """
        from networkx import MultiDiGraph

        drawn = MultiDiGraph()
        drawn.add_nodes_from(self.nodes)
        shares = np.asarray(self.shares).tolist()
        ends = zip(self.edges, shares, strict=True)
        drawn.add_edges_from((*edge, {"share": share}) for edge, share in ends)
        return drawn

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The names of all nodes: first those that split, then the sinks."""
        return self.wiring.nodes

    @property
    def edges(self) -> list[tuple[Node, Node]]:
        """The names of the ends of every edge, from and to, as they were given."""
        ends = self.wiring.ends.T.tolist()
        return [(self.nodes[tail], self.nodes[head]) for tail, head in ends]

    @property
    def shares(self) -> Shares:
        """The share of every edge."""
        return _flat(self.splits)[self.wiring.places]

    def flows(self, inputs: Numbers) -> Float[Array, "samples edges"]:
        """What every edge carries, in all visits of its node together."""
        passed = self.trace(self.checked_inputs(inputs))[2]
        return self.shares[None, :] * passed[:, self.wiring.tails]

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of sources and number of sinks."""
        return len(self.wiring.sources), self.wiring.sinks

    @property
    def block_rates(self) -> tuple[Float[Array, "1 _nodes"], ...]:
        """One rate per node."""
        return tuple(self.node_rates[None, group] for group in self.wiring.groups)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Sources, nodes and sinks: flows are added up along paths through any node."""
        return self.sizes[0], self.wiring.splitting, self.sizes[1]

    def basis(self) -> Float[np.ndarray, "out e"]:
        """The zero-sum directions: no mass is ever made or lost."""
        return simplex.tangent_basis(self.sizes[1])

    def checked_inputs(self, inputs: Numbers) -> Float[Array, "samples in"]:
        """Rows of unit mass."""
        return _check.compositions("inputs", inputs, self.sizes[0], self.dtype)

    def checked_targets(self, targets: Numbers) -> Fields:
        """Rows of unit mass."""
        return _check.compositions("targets", targets, self.sizes[1], self.dtype)

    def outputs(self, inputs: Flows) -> Fields:
        """What every sink absorbs, for each sample."""
        return self.trace(inputs)[-1]

    def trace(self, inputs: Flows) -> Trace:
        """Inputs, what the solver keeps, the flow that passes each splitting node, and outputs."""
        kept, passed, outputs = _passed(self, inputs)
        if _check.known(passed) and not np.isfinite(passed).all():
            raise ValueError(
                "shares must lead out of every loop often enough for eight digits by solver "
                f"{self.solver!r}, but they do not: take solver='dense', which keeps all of them"
            )
        return inputs, kept, passed, outputs

    def sample(self, trace: Trace, number: Array) -> Trace:
        inputs, kept, passed, outputs = trace
        return inputs[number][None], kept, passed[number][None], outputs[number][None]

    def check_trace(self, trace: Trace) -> None:
        """Refuse flows so small that the response would be rounded to zero."""
        rates = [rate[0] for rate in self.block_rates]
        through = [trace[2][:, group] for group in self.wiring.groups]
        _precision.refuse_underflow(self.splits, rates, through)

    def forward(self, trace: Trace, velocities: Blocks) -> Fields:
        r"""How the outputs move when the shares do: $J\dot\theta$."""
        _, kept, passed, _ = trace
        fed, out = self._delivered(velocities, passed)
        return out + self._delivered(self.splits, self._onward(kept, fed))[1]

    def back(self, trace: Trace, potential: Fields) -> tuple[Split, ...]:
        """The slope of every share: the flow times the difference of potential it bridges."""
        # Not what the trace keeps: that is of the way forward, and another graph may lead back.
        return self._slopes(_factors(self), trace[2], potential)

    def scores(self, trace: Trace, potential: Fields) -> tuple[Split, ...]:
        return self.scores_of(self._slopes(trace[1], trace[2], potential))

    def _slopes(self, kept: Kept, passed: Flows, potential: Fields) -> tuple[Split, ...]:
        inside = jnp.zeros((len(potential), self.wiring.splitting), dtype=self.dtype)
        side = -self._bridged(self.splits, inside, potential)[0]
        differences = self._bridged(None, self._homeward(kept, side), potential)[1]
        through = (passed[:, None, group] for group in self.wiring.groups)
        return tuple(
            jnp.sum(flow * difference, axis=0)
            for flow, difference in zip(through, differences, strict=True)
        )

    def velocities(self, trace: Trace, potential: Fields) -> tuple[Split, ...]:
        # A slope is taken against the mean of its node already. What its average still is, is
        # round-off of the potential, and once it is gone even a column that is nearly all at one
        # edge keeps its digits.
        parts = zip(self.splits, self.scores(trace, potential), strict=True)
        return tuple(split * (score - simplex.mean(split, score)) for split, score in parts)

    def answer(self, trace: Trace, potential: Fields) -> Fields:
        if self.solver == "dense":
            return super().answer(trace, potential)
        # Between two solves on the host little is left to do, and less than to go back and forth.
        if _check.known(self, trace, potential):
            return jnp.asarray(_on_host(self, trace[2], potential), dtype=self.dtype)
        return _answered(self, trace, potential)

    def jet(self, inputs: Flows, scores: Blocks) -> tuple[Fields, Fields, Fields]:
        _, kept, passed, outputs = self.trace(inputs)
        pairs = list(zip(self.splits, scores, strict=True))
        first = [simplex.velocity(*pair) for pair in pairs]
        second = [simplex.acceleration(*pair) for pair in pairs]
        fed, out = self._delivered(first, passed)
        moved = self._onward(kept, fed)
        twice, bent = self._delivered(first, 2 * moved), self._delivered(second, passed)
        after = self._onward(kept, twice[0] + bent[0])
        return (
            outputs,
            out + self._delivered(self.splits, moved)[1],
            twice[1] + bent[1] + self._delivered(self.splits, after)[1],
        )

    # The equations. Arrays over edges stand in blocks, `(samples, height, nodes)`.

    def _parts(self) -> zip:
        """The nodes of every block, where its edges lead, and which of them carry something."""
        cut = self.wiring.cut
        return zip(self.wiring.groups, cut(self.wiring.onto), cut(self.wiring.live), strict=True)

    def _delivered(self, shares: Blocks, passed: Flows) -> tuple[Flows, Fields]:
        """What edges with these shares bring to each splitting node, less what they take from it,
        and what they bring to the sinks.
        """
        brought = jnp.zeros((len(passed), len(self.nodes)), dtype=self.dtype)
        for share, (group, onto, live) in zip(shares, self._parts(), strict=True):
            carried = jnp.where(live, share, 0.0)[None] * passed[:, None, group]
            brought = brought.at[:, onto].add(carried).at[:, group].add(-jnp.sum(carried, axis=1))
        here, out = jnp.split(brought, [self.wiring.splitting], axis=1)
        return here, out

    def _bridged(
        self, shares: Blocks | None, inside: Flows, potential: Fields
    ) -> tuple[Flows, list[Float[Array, "samples _height _nodes"]]]:
        """How much each node lies above the mean of where it leads, and how much above it every
        place lies that an edge leads to.
        """
        everywhere, found = jnp.concatenate([inside, potential], axis=1), []
        above = jnp.zeros_like(inside)
        for number, (group, onto, live) in enumerate(self._parts()):
            step = jnp.where(live[None], everywhere[:, onto] - inside[:, None, group], 0.0)
            found.append(step)
            if shares is not None:
                above = above.at[:, group].add(-jnp.sum(shares[number][None] * step, axis=1))
        return above, found

    def _kept(self) -> Kept:
        """What all solves at one state share; the host keeps its factors by itself."""
        if self.solver != "dense":
            return None
        inner = self.wiring.splitting
        whole = jnp.zeros((len(self.nodes), inner), dtype=self.dtype)
        for share, (group, onto, live) in zip(self.splits, self._parts(), strict=True):
            carried = jax.lax.stop_gradient(jnp.where(live, share, 0.0))
            whole = whole.at[onto, group[None, :]].add(carried)
        return triangles(whole[:inner], jnp.sum(whole[inner:], axis=0))

    def _onward(self, kept: Kept, fed: Flows) -> Flows:
        """The flow that passes each node, for what is fed in at each."""
        return jax.lax.custom_linear_solve(
            self._lost,
            fed,
            lambda _, side: self._solved(kept, side, back=False),
            lambda _, side: self._solved(kept, side, back=True),
        )

    def _homeward(self, kept: Kept, side: Flows) -> Flows:
        """The potential at each node, from what its edges to sinks bring back: the transposed
        equations.
        """
        return jax.lax.custom_linear_solve(
            self._risen,
            side,
            lambda _, side: self._solved(kept, side, back=True),
            lambda _, side: self._solved(kept, side, back=False),
        )

    def _lost(self, passed: Flows) -> Flows:
        """What leaves each splitting node, less what comes back: $Ax$."""
        return -self._delivered(self.splits, passed)[0]

    def _risen(self, inside: Flows) -> Flows:
        """How much each node lies above the mean of where it leads, sinks at zero: $A^T x$."""
        grounded = jnp.zeros((len(inside), self.wiring.sinks), dtype=self.dtype)
        return self._bridged(self.splits, inside, grounded)[0]

    def _solved(self, kept: Kept, side: Flows, *, back: bool) -> Flows:
        if kept is None:
            numbers = _flat(self.splits)
            return self.wiring.pattern.solve(numbers, side, route=self.solver, back=back)
        found = kept.solved(side.T, back).T
        # The residual is summed over edges, so that refinement restores what the factors lost.
        rest = side - (self._risen(found) if back else self._lost(found))
        return found + kept.solved(rest.T, back).T


# Compiled here, because most who ask for a state do not compile by themselves, and a loop that is
# not compiled in a program is compiled anew at every call.
@eqx.filter_jit
def _passed(graph: Graph, inputs: Flows) -> tuple[Kept, Flows, Fields]:
    """What the solver keeps, the flow that passes each splitting node, and outputs."""
    kept = graph._kept()
    fed = jnp.zeros((inputs.shape[0], graph.wiring.splitting), dtype=graph.dtype)
    passed = graph._onward(kept, fed.at[:, graph.wiring.sources].set(inputs))
    return kept, passed, graph._delivered(graph.splits, passed)[1]


@eqx.filter_jit
def _factors(graph: Graph) -> Kept:
    """What all solves at one state share."""
    return graph._kept()


def _flat(blocks: Blocks) -> Float[Array, "_places"]:
    """The numbers at all places of the blocks, in one row."""
    return jnp.concatenate([part.ravel() for part in blocks])


def _packed(wiring: Wiring, shares: Shares) -> tuple[Split, ...]:
    """The blocks that hold these shares."""
    if not _check.known(shares):
        room = jnp.zeros(len(wiring.onto), dtype=shares.dtype)
        return tuple(wiring.cut(room.at[wiring.places].set(shares)))
    # By NumPy, so that nothing has to be compiled to make a graph.
    flat = np.zeros(len(wiring.onto), dtype=shares.dtype)
    flat[wiring.places] = np.asarray(shares)
    return tuple(map(jnp.asarray, wiring.cut(flat)))


@eqx.filter_custom_jvp
def _answered(graph: Graph, trace: Trace, potential: Fields) -> Fields:
    """`answer` by one call to the host, from inside any JAX program."""

    def called(*numbers: Any) -> np.ndarray:
        state, passed, aim = jax.tree.unflatten(shape, numbers)
        return _on_host(eqx.combine(state, rest), passed, aim).astype(aim.dtype)

    known, rest = eqx.partition(graph, eqx.is_array)
    flat, shape = jax.tree.flatten((known, trace[2], potential))
    like = jax.ShapeDtypeStruct(potential.shape, potential.dtype)
    return jax.pure_callback(called, like, *flat, vmap_method="sequential")


@_answered.def_jvp
def _moved_answer(primals: Any, tangents: Any) -> Any:
    """Derivatives go through the two solves, one by one."""
    return eqx.filter_jvp(lambda graph, *at: System.answer(graph, *at), primals, tangents)


def _on_host(graph: Graph, passed: Any, potential: Any) -> np.ndarray:
    """`answer` for numbers that are known, in double precision.

    Along the columns of a block everything about their nodes is at hand. One look-up for where
    edges lead and one sum over what they bring are all that is left of the graph.
    """
    wiring = graph.wiring
    numbers = np.concatenate([np.ravel(split) for split in graph.splits])
    ready = wiring.pattern.equations(numbers, graph.solver)
    flows, aims = (np.asarray(rows, dtype=float) for rows in (passed, potential))
    rates, last = np.asarray(graph.node_rates, dtype=float), wiring.last
    weight, off, onto = numbers[last].astype(float), wiring.off[last], wiring.onto[last]
    everywhere = []
    for aim in aims:
        side = np.bincount(off, weight * aim[onto - wiring.splitting], wiring.splitting)
        everywhere.append(np.append(ready.solve(side, True), aim))
    brought = np.zeros((len(flows), len(wiring.nodes)))
    for split, group, heads in zip(graph.splits, wiring.groups, wiring.leading, strict=True):
        share = np.asarray(split, dtype=float)
        # Two arrays serve all steps: to make one of this size costs as much as to fill it.
        velocity, room = np.zeros(share.shape), np.empty(share.shape)
        for flow, fields in zip(flows, everywhere, strict=True):
            np.take(fields, heads, out=room, mode="clip")
            room -= fields[group]
            room *= flow[group] * rates[group]
            velocity += room
        velocity -= np.einsum("ij,ij->j", share, velocity)
        velocity *= share
        for row, flow in zip(brought, flows, strict=True):
            np.multiply(velocity, flow[group], out=room)
            row += np.bincount(heads.ravel(), room.ravel(), len(wiring.nodes))
            row[group] -= np.sum(room, axis=0)
    for row in brought:
        moved = ready.solve(row[: wiring.splitting], False)
        row += np.bincount(onto, weight * moved[off], len(wiring.nodes))
    return brought[:, wiring.splitting :]


# What a graph may be.


def _wired(
    edges: Sequence[tuple[Node, Node]], sources: Sequence[Node], sinks: Sequence[Node]
) -> Wiring:
    """The wiring that was asked for, after every refusal."""
    pairs = [_pair(number, edge) for number, edge in enumerate(_check.listed("edges", edges))]
    if not pairs:
        raise ValueError("edges must hold at least one edge, but it is empty")
    tails = dict.fromkeys(tail for tail, _ in pairs)
    nodes = tails | dict.fromkeys(head for _, head in pairs)
    inputs, outputs = _named("sources", sources, nodes), _named("sinks", sinks, nodes)
    for node in outputs:
        if node in tails:
            raise ValueError(
                f"sink {_check.shown(node)} must have no outgoing edge, but it has one"
            )
    for node in inputs:
        if node in outputs:
            raise ValueError(f"source {_check.shown(node)} must not be a sink, but it is one")
    for node in nodes:
        if node not in tails and node not in outputs:
            raise ValueError(
                f"node {_check.shown(node)} must have an outgoing edge or be a sink, but it is "
                "neither"
            )
    order = (*tails, *outputs)
    place = {node: number for number, node in enumerate(order)}
    ends = np.array([[place[tail], place[head]] for tail, head in pairs]).T
    wiring = Wiring(order, np.array([place[node] for node in inputs]), len(outputs), ends)
    _refuse_dead_ends(wiring)
    return wiring


def _pair(number: int, edge: Any) -> tuple[Node, Node]:
    """The two nodes of an edge."""
    if isinstance(edge, np.ndarray):
        edge = edge.tolist()
    if not isinstance(edge, tuple | list) or len(edge) != 2:
        raise ValueError(
            f"edge {number} must be a pair of nodes, from and to, but it is {_check.shown(edge)}"
        )
    for node in edge:
        if not isinstance(node, Hashable) or node != node:
            raise ValueError(
                f"edge {number} must join nodes that can be hashed and compared, but one is "
                f"{_check.shown(node)}"
            )
    return edge[0], edge[1]


def _named(name: str, given: Sequence[Node], nodes: dict[Node, None]) -> dict[Node, None]:
    """Nodes of the graph, each once."""
    listed = _check.listed(name, given)
    if not listed:
        raise ValueError(f"{name} must name at least one node, but it is empty")
    for node in listed:
        if not isinstance(node, Hashable) or node not in nodes:
            raise ValueError(
                f"{name} must be nodes of the graph, but {_check.shown(node)} is on no edge"
            )
    if len(once := dict.fromkeys(listed)) < len(listed):
        twice = next(node for node in once if listed.count(node) > 1)
        raise ValueError(f"{name} must name each node once, but {_check.shown(twice)} comes twice")
    return once


def _refuse_dead_ends(wiring: Wiring) -> None:
    sinks = np.arange(wiring.splitting, len(wiring.nodes))
    arrived = _reached(wiring, wiring.sources, wiring.tails, wiring.heads)
    if (lost := sinks[~arrived[sinks]]).size:
        node = _check.shown(wiring.nodes[int(lost[0])])
        raise ValueError(f"sink {node} must be reachable from a source, but no path leads there")
    leads = _reached(wiring, sinks, wiring.heads, wiring.tails)
    if (stuck := np.flatnonzero(~leads)).size:
        node = _check.shown(wiring.nodes[int(stuck[0])])
        raise ValueError(
            f"node {node} must lead to a sink, but every way from it ends in a closed loop without "
            "exit"
        )


def _reached(
    wiring: Wiring, starts: np.ndarray, tails: np.ndarray, heads: np.ndarray
) -> np.ndarray:
    """Which nodes a walk from `starts` can come to."""
    size = len(wiring.nodes)  # the number of one more node, from which all starts are reached
    rows, columns = np.append(tails, np.full(len(starts), size)), np.append(heads, starts)
    links = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(size + 1, size + 1))
    found = np.zeros(size + 1, dtype=bool)
    found[breadth_first_order(links, size, return_predecessors=False)] = True
    return found[:size]


def _even(wiring: Wiring) -> np.ndarray:
    return 1.0 / np.bincount(wiring.tails)[wiring.tails]


def _checked_shares(wiring: Wiring, shares: Shares) -> Shares:
    """One positive share per edge, of unit sum at every node."""
    if shares.shape != wiring.tails.shape:
        raise ValueError(
            f"shares must hold one number per edge, {len(wiring.tails)}, but it holds "
            f"{shares.shape[0]}"
        )
    if not _check.known(shares):
        return shares
    seen = np.asarray(shares)
    # Compiled programs take numbers below the smallest normal one for zero.
    if (low := seen < np.finfo(seen.dtype).tiny).any():
        edge = int(np.argmax(low))
        ends = " to ".join(_check.shown(wiring.nodes[int(end)]) for end in wiring.ends[:, edge])
        raise ValueError(f"shares must be positive, but that from {ends} is {seen[edge]:g}")
    sums = np.bincount(wiring.tails, seen.astype(float))
    off = np.abs(sums - 1) > _check.mass_tolerance(seen.dtype)
    if off.any():
        node = int(np.argmax(off))
        raise ValueError(
            f"shares must sum to 1 at every node, but those of {_check.shown(wiring.nodes[node])} "
            f"sum to {sums[node]:.15g}"
        )
    return shares


def _checked_rates(wiring: Wiring, rates: Numbers, dtype: Any) -> Float[Array, "_splitting"]:
    """One positive rate per splitting node."""
    values = _check.numbers("rates", rates, above=0.0)
    if values.shape not in ((), (wiring.splitting,)):
        raise ValueError(
            f"rates must be one number or one per splitting node, {wiring.splitting}, but the "
            f"shape is {values.shape}"
        )
    return jnp.broadcast_to(values.astype(dtype), (wiring.splitting,))


def _suited(wiring: Wiring, shares: Shares, solver: str | None) -> str:
    """The solver that was asked for, or the one that suits."""
    if solver is None:
        if (inner := wiring.splitting) <= DENSE:
            return "dense"
        side = np.zeros(inner)
        side[wiring.sources] = 1.0
        known = shares if _check.known(shares) else _even(wiring)
        numbers = np.asarray(_flat(_packed(wiring, jnp.asarray(known))))
        route = wiring.pattern.chosen(numbers, side)
        return route if wiring.pattern.sound(numbers, route) or inner > MOST else "dense"
    return choice("solver", solver, SOLVERS)
