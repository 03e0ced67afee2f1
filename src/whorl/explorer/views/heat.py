"""Where would a turn help?

The coefficient Q over the simplex of one column, everything else at the current state.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.moment import ACROSS, HEIGHT, UP, Moment, corners
from whorl.explorer.style import Theme
from whorl.explorer.views import views

TRIANGLE = np.array([[0.5, HEIGHT], [0.0, 0.0], [1.0, 0.0], [0.5, HEIGHT]])


@views.register("heat", label="Would a turn help?", order=4, subject="instant")
def figure(seen: Moment, _moment: int, theme: Theme) -> go.Figure:
    """The map at one moment, with the column's path over the run."""
    place, way = corners(seen.column), corners(seen.path)
    line = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    traces = [
        *triangle_map(seen.grid, theme),
        line
        | {
            "x": way[:, 0],
            "y": way[:, 1],
            "line": {"color": theme.ink, "width": 1.5, "dash": "dot"},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "x": [place[0]],
            "y": [place[1]],
            "showlegend": False,
            "name": "current state",
        }
        | {
            "marker": {"size": 12, "color": theme.ink, "line": {"width": 2, "color": theme.paper}},
            "hovertemplate": "current state",
        }
        | {"meta": {"at": {"x": style.packed(way[:, 0]), "y": style.packed(way[:, 1])}}},
    ]
    return triangle_figure(traces, theme, seen.foot)


def triangle_map(grid: np.ndarray, theme: Theme, title: str = "Q") -> list[dict[str, Any]]:
    """A smooth map with its zero line, cut to the triangle."""
    unit = max(float(np.quantile(np.abs(grid), 0.1)), float(np.abs(grid).max()) * 1e-4, 1e-300)
    bent = np.sign(grid) * np.log10(1 + np.abs(grid) / unit)
    top = float(np.abs(bent).max()) or 1.0
    powers = np.linspace(-top, top, 5)
    labels = [style.number(float(np.sign(p) * unit * (10 ** abs(p) - 1)), 2) for p in powers]
    bar = {
        "thickness": 10,
        "len": 0.62,
        "x": 1.0,
        "xpad": 2,
        "y": 0.62,
        "outlinewidth": 0,
        "tickvals": powers.tolist(),
        "ticktext": labels,
    }
    common = {
        "type": "contour",
        "x": ACROSS,
        "y": UP,
        "z": np.round(bent, 4),
        "hoverinfo": "skip",
        "showlegend": False,
    }
    filled = common | {
        "colorscale": [list(stop) for stop in theme.scale],
        "zmin": -top,
        "zmax": top,
        "contours": {
            "start": -top,
            "end": top,
            "size": top / 12,
            "coloring": "fill",
            "showlines": False,
        },
        "line": {"width": 0},
        "colorbar": bar | {"title": {"text": title, "side": "top"}, "tickfont": {"size": 11}},
    }
    zero = common | {
        "contours": {"start": 0, "end": 0, "size": 1, "coloring": "none"},
        "line": {"color": theme.ink, "width": 2},
        "showscale": False,
    }
    return [filled, zero, *frame(theme)]


def frame(theme: Theme) -> list[dict[str, Any]]:
    """What lies outside the triangle is covered, and its edge drawn."""
    left, right, top, low = -0.02, 1.02, HEIGHT + 0.02, -0.02
    covers = [
        [(left, low), (left, top), (0.5, top), (0.5, HEIGHT), (0, 0), (left, low)],
        [(right, low), (right, top), (0.5, top), (0.5, HEIGHT), (1, 0), (right, low)],
        [(left, low), (0, 0), (1, 0), (right, low), (left, low)],
    ]
    fill = {
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "fillcolor": theme.paper,
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    edge = {
        "type": "scatter",
        "mode": "lines",
        "line": {"color": theme.soft, "width": 1},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    cover = [fill | {"x": [x for x, _ in ring], "y": [y for _, y in ring]} for ring in covers]
    return [*cover, edge | {"x": TRIANGLE[:, 0], "y": TRIANGLE[:, 1]}]


def triangle_figure(
    traces: list[dict[str, Any]],
    theme: Theme,
    foot: str,
    low: str = "turn helps",
    high: str = "turn hurts",
) -> go.Figure:
    """A triangle with equal axes and, by the colour bar, what its ends mean."""
    ends = [
        _word(high, 0.97, theme, theme.scale[-1][1]),
        _word(low, 0.14, theme, theme.scale[0][1]),
    ]
    return style.figure(
        traces,
        theme,
        xaxis={"visible": False, "range": [-0.02, 1.02], "fixedrange": True},
        yaxis={
            "visible": False,
            "range": [-0.02, HEIGHT + 0.02],
            "scaleanchor": "x",
            "fixedrange": True,
        },
        margin={"l": 10, "r": 84, "t": 12, "b": 30},
        annotations=[*ends, style.foot(foot, theme)],
    )


def _word(text: str, y: float, theme: Theme, colour: str) -> dict[str, Any]:
    plain = {
        "text": f"<b>{text}</b>",
        "x": 1.0,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "showarrow": False,
    }
    return plain | {"font": {"size": 12, "color": colour}, "xshift": 0}
