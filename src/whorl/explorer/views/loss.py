"""The loss over updates: native, step-matched, adaptive."""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Run
from whorl.explorer.style import Theme

DASHES = {"native": "solid", "step_matched": "dash", "adaptive": "solid"}


def figure(run: Run, moment: int, theme: Theme) -> go.Figure:
    """Three curves, and where each stands at one moment."""
    colours = {"native": theme.native, "step_matched": theme.matched, "adaptive": theme.turning}
    updates = np.arange(run.made + 1)
    traces: list[dict] = []
    for name, colour in colours.items():
        values = np.maximum(run.losses[name], 1e-18)
        curve = {
            "line": {
                "color": colour,
                "width": 4 if name == "native" else 2.5,
                "dash": DASHES[name],
            },
            "name": style.NAMES[name],
        }
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": updates,
                "y": values,
                "hovertemplate": "%{y:.3g}",
            }
            | curve
        )
    for name, colour in colours.items():
        values = np.maximum(run.losses[name], 1e-18)
        marker = {
            "marker": {"size": 10, "color": colour, "line": {"width": 1.5, "color": theme.paper}},
            "showlegend": False,
        }
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "cliponaxis": False,
                "x": [moment],
                "y": values[moment : moment + 1],
                "hoverinfo": "skip",
            }
            | marker
            | {"meta": {"at": {"x": style.packed(updates), "y": style.packed(values)}}}
        )
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "update", range=[0, max(run.made, 1)]),
        yaxis=style.axis(theme, "mean loss", type="log", exponentformat="power", nticks=6),
        annotations=[
            style.key(theme, *((style.NAMES[name], colour) for name, colour in colours.items()))
        ],
        hovermode="x unified",
    )
