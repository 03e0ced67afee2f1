"""A circuit in the places of a network: its currents as line widths, and the plane of residuals."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.style import Theme
from whorl.explorer.views import network, spiral, views
from whorl.explorer.wires import Wires

WIDEST = 14  # pixels of the line that carries all


@views.register(
    "wires_network", label="Currents of the circuit", place="network", order=1, subject="wires"
)
def _network(wires: Wires, _moment: int, theme: Theme) -> go.Figure:
    """Nodes and edges; a line is as wide as its current, and one without stays visible."""
    x, y = wires.places.T
    edges = np.sort(np.asarray(wires.circuit.edges), axis=1)
    traces: list[dict[str, Any]] = []
    for number, ends in enumerate(edges):
        # Edges between the same two nodes lie side by side.
        twins = np.flatnonzero((edges == ends).all(axis=1))
        bend = 0.4 * (np.searchsorted(twins, number) - (len(twins) - 1) / 2)
        across, up, _ = network.bow(x[ends], y[ends], bend)
        current = float(wires.currents[number])
        width = 0.8 + WIDEST * abs(current)
        traces.append(
            style.line(theme.native, width, x=across, y=up, opacity=0.6, meta={"current": current})
        )
    traces.append(style.dots(theme.ink, 11, x=x, y=y))
    names = ["in", *(f"{node}" for node in range(1, len(x) - 3)), "out 1", "out 2", "out 3"]
    labels = [
        {"text": name, "x": x[node], "y": y[node], "showarrow": False, "yshift": 16}
        | {"font": {"size": 12}, "bgcolor": theme.paper, "opacity": 0.9, "borderpad": 0}
        for node, name in enumerate(names)
    ]
    hidden = {"visible": False, "fixedrange": True}
    return style.figure(
        traces,
        theme,
        xaxis=hidden | {"range": [-0.1, 1.12]},
        yaxis=hidden | {"range": [-0.08, 1.16]},
        margin={"l": 12, "r": 12, "t": 8, "b": 30},
        annotations=[
            *labels,
            style.foot("as wide as the current; voltage falls to the right", theme),
        ],
    )


@views.register(
    "wires_spiral",
    label="Plane of small residuals",
    place="spiral",
    order=3,
    first=True,
    subject="wires",
)
def _plane(wires: Wires, moment: int, theme: Theme) -> go.Figure:
    """Paths of residuals from a ring, and the lines that they do not leave, where there are some."""
    colour = theme.native if len(wires.straight) else theme.turning
    traces: list[dict[str, Any]] = []
    for way in wires.straight:
        x, y = 1.3 * np.outer([-1, 1], way).T
        traces.append(style.line(theme.ink, 1.5, "dash", x=x, y=y, name="straight"))
    for ray in range(wires.paths.shape[1]):
        traces += spiral.track("residual", wires.paths[:, ray], moment, colour)
    traces.append(spiral.cross(theme))
    notes = [f"eigenvalues  {spiral.pair(np.linalg.eigvals(wires.loop))}"] * len(wires.paths)
    entries = [("residuals", colour), *[("straight lines", theme.ink)] * bool(len(wires.straight))]
    return spiral.plane(traces, 1.35, notes, moment, entries, theme)
