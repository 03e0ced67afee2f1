"""Where would a turn help? The coefficient Q over the simplex of one column."""

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
    """The map at one moment, everything else at the current state, with the column's path."""
    place, (x, y) = corners(seen.column), corners(seen.path).T
    here = style.dots(
        theme.ink,
        12,
        x=[place[0]],
        y=[place[1]],
        marker={"line": {"width": 2, "color": theme.paper}},
        name="current state",
        hovertemplate="current state",
        meta={"at": {"x": style.packed(x), "y": style.packed(y)}},
    )
    way = style.line(theme.ink, 1.5, "dot", x=x, y=y, showlegend=False)
    return triangle_figure([*triangle_map(seen.grid, theme), way, here], theme, seen.foot)


def contour(values: np.ndarray, **more: Any) -> dict[str, Any]:
    """A map over the triangle's bounding box."""
    plain = {"type": "contour", "hoverinfo": "skip", "showlegend": False}
    return plain | {"x": ACROSS, "y": UP, "z": np.round(values, 4)} | more


def bar(title: str, **more: Any) -> dict[str, Any]:
    """A colour bar right of the triangle."""
    plain = {"thickness": 10, "len": 0.62, "x": 1.0, "xpad": 2, "outlinewidth": 0}
    return plain | {"tickfont": {"size": 11}, "title": {"text": title, "side": "top"}} | more


def triangle_map(grid: np.ndarray, theme: Theme) -> list[dict[str, Any]]:
    """A smooth map with its zero line, cut to the triangle; colours are logarithms of its sizes."""
    unit = max(float(np.quantile(np.abs(grid), 0.1)), float(np.abs(grid).max()) * 1e-4, 1e-300)
    bent = np.sign(grid) * np.log10(1 + np.abs(grid) / unit)
    top = float(np.abs(bent).max()) or 1.0
    powers = np.linspace(-top, top, 5)
    labels = [style.number(float(np.sign(p) * unit * (10 ** abs(p) - 1)), 2) for p in powers]
    filled = contour(
        bent,
        colorscale=[list(stop) for stop in theme.scale],
        zmin=-top,
        zmax=top,
        contours={"start": -top, "end": top, "size": top / 12, "coloring": "fill"}
        | {"showlines": False},
        line={"width": 0},
        colorbar=bar("Q", y=0.62, tickvals=powers.tolist(), ticktext=labels),
    )
    zero = contour(
        bent,
        contours={"start": 0, "end": 0, "size": 1, "coloring": "none"},
        line={"color": theme.ink, "width": 2},
        showscale=False,
    )
    return [filled, zero, *frame(theme)]


def frame(theme: Theme) -> list[dict[str, Any]]:
    """What lies outside the triangle is covered, and its edge drawn."""
    left, right, top, low = -0.02, 1.02, HEIGHT + 0.02, -0.02
    covers = [
        [(left, low), (left, top), (0.5, top), (0.5, HEIGHT), (0, 0), (left, low)],
        [(right, low), (right, top), (0.5, top), (0.5, HEIGHT), (1, 0), (right, low)],
        [(left, low), (0, 0), (1, 0), (right, low), (left, low)],
    ]
    fill = {"fill": "toself", "fillcolor": theme.paper, "showlegend": False}
    cover = [
        style.line(theme.paper, 0, x=[x for x, _ in ring], y=[y for _, y in ring], **fill)
        for ring in covers
    ]
    x, y = TRIANGLE.T
    return [*cover, style.line(theme.soft, 1, x=x, y=y, showlegend=False)]


def triangle_figure(
    traces: list[dict[str, Any]],
    theme: Theme,
    foot: str,
    low: str = "turn helps",
    high: str = "turn hurts",
) -> go.Figure:
    """A triangle with equal axes and, by the colour bar, what its ends mean."""
    hidden = {"visible": False, "fixedrange": True}
    return style.figure(
        traces,
        theme,
        xaxis=hidden | {"range": [-0.02, 1.02]},
        yaxis=hidden | {"range": [-0.02, HEIGHT + 0.02], "scaleanchor": "x"},
        margin={"l": 10, "r": 84, "t": 12, "b": 30},
        annotations=[
            style.words(f"<b>{high}</b>", 1.0, 0.97, 12, theme.scale[-1][1]) | {"xanchor": "left"},
            style.words(f"<b>{low}</b>", 1.0, 0.14, 12, theme.scale[0][1]) | {"xanchor": "left"},
            style.foot(foot, theme),
        ],
    )
