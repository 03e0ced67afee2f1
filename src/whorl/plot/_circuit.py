"""A circuit: every edge as wide as its conductance, and what every node is for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy.sparse import csgraph, csr_matrix

from whorl import _check
from whorl.plot._canvas import Drawn, canvas, ground, ink, theme
from whorl.systems.circuit import Circuit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST, THINNEST = 7.0, 0.6  # points
SPAN = 30.0  # conductances that span more than this factor are drawn by their logarithm
NODES, EDGES = 40, 24  # up to which names fit
MOST = 1000  # nodes
SWEEPS = 60


def circuit(
    system: Circuit,
    *,
    nodes: Sequence[str] | None = None,
    edges: Sequence[str] | None = None,
    ax: "Axes | None" = None,
) -> Drawn:
    r"""Draw a circuit, with its sources on the left and its outputs on the right.

    Lines are as wide as the conductance of their edge, and broken if the edge is not a resistor.
    Nodes that are driven, read or grounded have a mark of their own.

    Args:
        system: The circuit, of at most 1000 nodes.
        nodes: A name per node. Left out, the names that the circuit has, or its numbers.
        edges: A name per edge. Left out, the names that the circuit has.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Raises:
        ValueError: Where `system` is no circuit or too large, or the names do not fit.

    Examples:
        >>> text = "divider\nV1 a 0 1\nR1 a b 1k\nR2 b 0 3k\n.print v(b)\n.end"
        >>> divider, _ = wh.from_netlist(text)
        >>> figure = wh.plot.circuit(divider, nodes=["a", "b", "0"], edges=["R1", "R2"])
    """
    _check.instance("system", system, Circuit)
    if system.nodes > MOST:
        raise ValueError(
            f"system must have at most {MOST} nodes to be drawn, but it has {system.nodes}"
        )
    ends = np.asarray(system.edges)
    own = getattr(system, "names", None)  # of a netlist
    called = _names("nodes", nodes, own and own.nodes, system.nodes)
    named = _names("edges", edges, own and own.edges, len(ends))
    places = _places(system, ends)
    axes, drawn = canvas(ax, (6.0, 4.2))
    conductances = np.asarray(system.conductances, dtype=float)
    widths, scale = _widths(conductances)
    other = {number for _, members in system.elements for number in members}
    twins = np.sort(ends, axis=1)
    for number, (pair, width) in enumerate(zip(ends, widths, strict=True)):
        same = np.flatnonzero((twins == twins[number]).all(axis=1))
        bend = 0.35 * (np.searchsorted(same, number) - (len(same) - 1) / 2)
        bend *= 1 if pair[0] < pair[1] else -1
        name = named[number] if named and len(ends) <= EDGES else ""
        _edge(axes, places[pair], bend, width, number in other, name)
    _nodes(axes, system, places, called)
    low, high = conductances.min(), conductances.max()
    spans = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    axes.set_title(f"width: conductance, {spans} S{scale}")
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    return drawn


def _names(
    what: str, given: Sequence[str] | None, own: Sequence[str] | None, size: int
) -> list[str]:
    names = own if given is None else given
    if names is None:
        return [str(number) for number in range(size)] if what == "nodes" else []
    if len(listed := _check.listed(what, names)) != size:
        raise ValueError(f"{what} must have one name each, {size}, but there are {len(listed)}")
    return [_check.plain(str(name)) for name in listed]


def _widths(conductances: np.ndarray) -> tuple[np.ndarray, str]:
    """Widths in points, and what to say of their scale."""
    low, high = conductances.min(), conductances.max()
    if high <= SPAN * low:
        return np.maximum(THINNEST, WIDEST * conductances / high), ""
    share = np.log(conductances / low) / np.log(high / low)
    return THINNEST + (WIDEST - THINNEST) * share, " (logarithmic)"


def _places(system: Circuit, ends: np.ndarray) -> Float[np.ndarray, "nodes 2"]:
    """Places in the plane whose distances are near the numbers of edges between the nodes.

    From the two widest directions of these numbers, moved by majorisation of the stress (de Leeuw
    1977), and turned so that what is driven lies on the left.
    """
    size = system.nodes
    links = csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
    apart = csgraph.shortest_path(links, directed=False, unweighted=True)
    apart = np.where(np.isfinite(apart), apart, apart[np.isfinite(apart)].max() + 1.0)
    centred = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-centred @ apart**2 @ centred / 2)
    places = np.zeros((size, 2))
    places[:, : min(2, size)] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :2]
    # Nodes that the distances do not tell apart begin beside each other.
    places += 1e-3 * np.column_stack([np.cos(np.arange(size)), np.sin(np.arange(size))])
    weights = 1 / np.maximum(apart, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    for _ in range(SWEEPS):
        gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
        pull = weights * apart / np.maximum(gaps, 1e-9)
        places = inverse @ (pull.sum(axis=1)[:, None] * places - pull @ places)
    ahead = places[list(system.sinks)].mean(axis=0) - places[list(system.sources)].mean(axis=0)
    across, up = ahead / (np.hypot(*ahead) or 1.0)
    return places @ (np.array([[across, -up], [up, across]]) if across or up else np.eye(2))


def _edge(
    axes: "Axes", places: np.ndarray, bend: float, width: float, other: bool, name: str
) -> None:
    """A line, bowed where several join the same two nodes, with its name on its middle."""
    start, end = places
    aside = np.array([start[1] - end[1], end[0] - start[0]])
    along = np.linspace(0, 1, 21)[:, None]
    path = start + along * (end - start) + 2 * bend * along * (1 - along) * aside
    look: Any = {"linestyle": (0, (1.5, 0.8)) if other else "-", "solid_capstyle": "round"}
    axes.plot(*path.T, color=theme().native, linewidth=width, alpha=0.6, gid="edge", **look)
    if name:
        box = {"boxstyle": "square,pad=0.1", "facecolor": ground(), "edgecolor": "none"}
        look = {"ha": "center", "va": "center", "fontsize": "small", "parse_math": False}
        axes.text(
            float(path[10, 0]),
            float(path[10, 1]),
            name,
            color=ink(),
            bbox=box | {"alpha": 0.8},
            gid="name",
            **look,
        )


def _nodes(axes: "Axes", system: Circuit, places: np.ndarray, names: list[str]) -> None:
    held: dict[str, tuple[Sequence[int], str, str, float]] = {
        "": (range(system.nodes), "o", theme().soft, 16),
        "input": (system.sources, "s", theme().good, 70),
        "output": (system.sinks, "D", ink(), 58),
        "ground": (system.ground, "v", theme().other, 80),
    }
    few = system.nodes <= NODES
    for label, (members, marker, colour, size) in held.items():
        if len(members):
            axes.scatter(*places[list(members)].T, marker=marker, color=colour, label=label or None,
                         s=size if few else size / 3, zorder=3, gid=label or "node")  # fmt: skip
    if few:
        for place, name in zip(places, names, strict=True):
            axes.annotate(name, tuple(place), xytext=(6, 6), textcoords="offset points", zorder=4,
                          fontsize="small", color=ink(), parse_math=False)  # fmt: skip
    axes.legend(frameon=False, fontsize="small", ncols=3, loc="upper center",
                bbox_to_anchor=(0.5, 0.02))  # fmt: skip
