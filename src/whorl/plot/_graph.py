"""A graph with loops, every edge as wide as what it carries."""

from typing import TYPE_CHECKING, Any

import numpy as np

from whorl import _check
from whorl._check import Numbers
from whorl.plot._canvas import Drawn, canvas, ground, ink, theme
from whorl.systems.graph import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 9.0  # points, of the edge that carries most
NAMED = 60  # nodes up to which names fit
SWEEPS = 12


def graph(system: Graph, inputs: Numbers, *, sample: int = 0, ax: "Axes | None" = None) -> Drawn:
    """Draw a graph from its sources, on the left, to its sinks, on the right.

    Lines are as wide as the flow of one sample; those that lead back, to an earlier column or
    within one, close the loops and have the other colour and a broken line.

    Args:
        system: The graph.
        inputs: One row per sample, `(samples, in)`.
        sample: The sample whose flow is drawn.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Raises:
        ValueError: If `system` is not a graph, or the sample does not exist.

    Examples:
        >>> walk = wh.Graph.random(8, 20, inputs=2, outputs=3, seed=0)
        >>> figure = wh.plot.graph(walk, [[0.5, 0.5]])
    """
    _check.instance("system", system, Graph)
    rows = system.checked_inputs(inputs)
    chosen = _check.index("sample", sample, rows.shape[0])
    flows = np.asarray(system.flows(rows[chosen : chosen + 1]))[0]
    places = layout(system)
    axes, drawn = canvas(ax, (7.2, 4.2))
    tails, heads = system.wiring.ends
    back = places[heads, 0] <= places[tails, 0]
    for edge in np.argsort(flows):
        _line(
            axes,
            places[tails[edge]],
            places[heads[edge]],
            flows[edge] / flows.max(),
            bool(back[edge]),
        )
    _nodes(axes, system, places)
    axes.set_title("width: flow (broken: leads back)")
    axes.set_axis_off()
    axes.margins(0.08)
    return drawn


def layout(system: Graph) -> np.ndarray:
    """Places of all nodes, `(nodes, 2)`, from 0 to 1.

    Columns by the number of edges from the nearest source, sinks last; within a column in the
    order of the mean height of the neighbours.
    """
    wiring = system.wiring
    tails, heads = wiring.ends
    depth = np.full(len(wiring.nodes), -1)
    front, steps = wiring.sources, 0
    while front.size:
        depth[front] = steps
        reached = np.unique(heads[np.isin(tails, front)])
        front, steps = reached[depth[reached] < 0], steps + 1
    # What no source reaches carries nothing; it stands with the sources.
    depth = np.maximum(depth, 0)
    depth[wiring.splitting :] = max(1, depth[: wiring.splitting].max() + 1)
    height = np.zeros(len(depth))
    columns = [np.flatnonzero(depth == at) for at in range(depth.max() + 1)]
    for sweep in range(SWEEPS + 1):
        for members in columns if sweep % 2 == 0 else columns[::-1]:
            order = members if sweep == 0 else members[np.argsort(height[members], kind="stable")]
            height[order] = (np.arange(len(order)) + 0.5) / max(1, len(order))
        if sweep < SWEEPS:
            near = np.bincount(np.append(tails, heads), minlength=len(depth))
            pulled = np.bincount(
                np.append(tails, heads), height[np.append(heads, tails)], len(depth)
            )
            height = np.where(near > 0, pulled / np.maximum(near, 1), height)
    return np.column_stack([depth / depth.max(), 1 - height])


def _line(axes: "Axes", start: np.ndarray, end: np.ndarray, share: float, back: bool) -> None:
    from matplotlib.patches import FancyArrowPatch

    loop = bool(np.all(start == end))
    look: dict[str, Any] = {
        "arrowstyle": "-|>,head_length=4,head_width=2",
        "linewidth": max(0.3, WIDEST * share),
        "color": theme().turning if back else theme().native,
        "linestyle": (0, (2, 1)) if back else "-",
        "alpha": 0.6,
        "shrinkA": 7,
        "shrinkB": 7,
        "gid": "back" if back else "on",
    }
    if loop:
        # Out of the node and into it again, in a small circle above.
        aside = np.array([0.012, 0.0])
        start, end = start - aside, start + aside
        look |= {"connectionstyle": "arc3,rad=-2.2", "shrinkA": 3, "shrinkB": 3}
    else:
        look["connectionstyle"] = "arc3,rad=0.22" if back else "arc3,rad=0.07"
    axes.add_patch(FancyArrowPatch(tuple(start), tuple(end), **look))


def _nodes(axes: "Axes", system: Graph, places: np.ndarray) -> None:
    wiring = system.wiring
    colour = np.full(len(places), theme().soft, dtype=object)
    colour[wiring.sources], colour[wiring.splitting :] = theme().good, ink()
    few = len(places) <= NAMED
    axes.scatter(*places.T, s=190 if few else 8, c=list(colour), zorder=3, gid="nodes")
    if few:
        for name, place in zip(system.nodes, places, strict=True):
            words = str(name) if isinstance(name, str | int) else ",".join(map(str, _parts(name)))
            axes.annotate(
                words[:6],
                tuple(place),
                color=ground(),
                fontsize=7,
                ha="center",
                va="center",
                zorder=4,
            )


def _parts(name: Any) -> tuple[Any, ...]:
    return name if isinstance(name, tuple) else (name,)
