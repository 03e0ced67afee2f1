"""A circuit in the places of a network: its currents as line widths, and the plane of residuals."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.style import Theme
from whorl.explorer.views import spiral, views
from whorl.explorer.wires import Wires

WIDEST = 14  # pixels of the line that carries all


@views.register(
    "wires_network", label="Currents of the circuit", place="network", order=1, subject="wires"
)
def _network(wires: Wires, _moment: int, theme: Theme) -> go.Figure:
    """Nodes and edges; a line is as wide as its current, and thin ones stay visible."""
    x, y = wires.places.T
    traces: list[dict[str, Any]] = []
    for number, (one, other) in enumerate(np.asarray(wires.circuit.edges).tolist()):
        current = float(wires.currents[number])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [x[one], x[other]],
                "y": [y[one], y[other]],
                "line": {"color": theme.native, "width": 0.8 + WIDEST * abs(current)},
                "opacity": 0.6,
                "hoverinfo": "skip",
                "meta": {"current": current},
            }
        )
    names = ["in", *(f"{node}" for node in range(1, len(x) - 3)), "out 1", "out 2", "out 3"]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": x,
            "y": y,
            "text": names,
            "textposition": "top center",
            "textfont": {"size": 12, "color": theme.ink},
            "marker": {"size": 11, "color": theme.ink},
            "hoverinfo": "skip",
        }
    )
    hidden = {"visible": False, "fixedrange": True}
    return style.figure(
        traces,
        theme,
        xaxis=hidden | {"range": [-0.12, 1.12]},
        yaxis=hidden | {"range": [-0.15, 1.2]},
        margin={"l": 12, "r": 12, "t": 12, "b": 12},
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
        ends = 1.3 * np.outer([-1, 1], way)
        traces.append(
            {"type": "scatter", "mode": "lines", "x": ends[:, 0], "y": ends[:, 1]}
            | {"line": {"color": theme.ink, "width": 1.5, "dash": "dash"}, "name": "straight"}
            | {"hoverinfo": "skip"}
        )
    for ray in range(wires.paths.shape[1]):
        traces += spiral.plane_traces("residual", wires.paths[:, ray], moment, colour)
    traces.append(spiral.cross(theme))
    values = np.linalg.eigvals(wires.loop)
    notes = [f"eigenvalues  {spiral.pair(values)}"] * len(wires.paths)
    entries = [("residuals", colour), *[("straight lines", theme.ink)] * bool(len(wires.straight))]
    return spiral.plane_figure(traces, 1.35, notes, moment, entries, theme)
