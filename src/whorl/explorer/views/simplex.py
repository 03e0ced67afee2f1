"""The output simplex: where the watched prediction goes, reciprocally and turning."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views

# The legend stands beside the tip.
LEGEND: dict[str, Any] = {"x": 0.0, "y": 1.0, "yanchor": "top", "itemwidth": 30}
LEGEND |= {"font": {"size": 12}, "bgcolor": "rgba(0,0,0,0)"}


@views.register("simplex", label="Output simplex", order=2, first=True)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure:
    """Both paths up to one moment, and faintly all of them."""
    traces = track("reciprocal", run.native, moment, theme.native, "solid")
    if turns(run):
        traces += track("turning", run.learner, moment, theme.turning)
    traces.append(point("target", run.target, theme.ink, "star", 13))
    traces.append(point("start", run.native[0], theme.soft, "circle-open", 9))
    return triangle(traces, theme)


def turns(run: Played) -> bool:
    """Whether there is a second path to be seen."""
    return bool(np.any(run.amounts > 0))


def track(
    name: str, path: np.ndarray, moment: int, colour: str, dash: str = "dot"
) -> list[dict[str, Any]]:
    """A path of shares."""
    at = dict(zip("abc", path.T, strict=True))
    return style.track(name, at, moment, colour, dash, "%{a:.3f}, %{b:.3f}, %{c:.3f}")


def point(name: str, at: np.ndarray, colour: str, symbol: str, size: int) -> dict[str, Any]:
    """One marked point, with an entry in the legend."""
    place = {letter: [value] for letter, value in zip("abc", at, strict=True)}
    marker = {"symbol": symbol, "line": {"width": 2, "color": colour}}
    hover = f"{name}: %{{a:.3f}}, %{{b:.3f}}, %{{c:.3f}}"
    return style.dots(
        colour, size, **place, marker=marker, name=name, hovertemplate=hover, showlegend=True
    )


def triangle(
    traces: list[dict[str, Any]],
    theme: Theme,
    names: tuple[str, str, str] = ("output 1", "output 2", "output 3"),
) -> go.Figure:
    """The simplex with its three corners named."""
    quiet = {"showticklabels": False, "ticks": "", "nticks": 5}
    quiet |= {"gridcolor": theme.line, "linecolor": theme.soft}
    font = {"size": 12, "color": theme.soft}
    sides = {
        f"{letter}axis": quiet | {"title": {"text": name, "font": font}}
        for letter, name in zip("abc", names, strict=True)
    }
    return style.figure(
        traces,
        theme,
        ternary={"sum": 1, "bgcolor": theme.paper} | sides,
        margin={"l": 30, "r": 30, "t": 34, "b": 32},
        legend=LEGEND,
        showlegend=True,
    )
