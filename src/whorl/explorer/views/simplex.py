"""The output simplex.

Where the watched sample's prediction goes, reciprocally and turning, and the target.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views

MARGIN = {"l": 30, "r": 30, "t": 34, "b": 32}
# Beside the tip.
LEGEND: dict[str, Any] = {
    "x": 0.0,
    "y": 1.0,
    "yanchor": "top",
    "font": {"size": 12},
    "itemwidth": 30,
    "bgcolor": "rgba(0,0,0,0)",
}


@views.register("simplex", label="Output simplex", order=2, first=True)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure:
    """Both paths up to one moment, and faintly all of them."""
    traces = []
    for name, path, colour, dash in (
        ("reciprocal", run.native, theme.native, "solid"),
        ("turning", run.learner, theme.turning, "dot"),
    ):
        if name == "reciprocal" or turns(run):
            traces += path_traces(name, path, moment, colour, dash)
    traces.append(point("target", run.target, theme.ink, "star", 13))
    traces.append(point("start", run.native[0], theme.soft, "circle-open", 9))
    return style.figure(
        traces, theme, ternary=ternary(theme), margin=MARGIN, legend=LEGEND, showlegend=True
    )


def turns(run: Played) -> bool:
    """Whether there is a second path to be seen."""
    return bool(np.any(run.amounts > 0))


def path_traces(
    name: str, path: np.ndarray, moment: int, colour: str, dash: str
) -> list[dict[str, Any]]:
    """A path: all of it faintly, up to the moment strongly, and its head."""
    whole = dict(zip("abc", path.T, strict=True))
    whole_short = {letter: style.packed(values) for letter, values in whole.items()}
    line = {"type": "scatterternary", "mode": "lines", "hoverinfo": "skip"}
    far = {letter: values[: moment + 1] for letter, values in whole.items()}
    head = {letter: values[moment : moment + 1] for letter, values in whole.items()}
    hover = "%{a:.3f}, %{b:.3f}, %{c:.3f}"
    return [
        line
        | whole
        | {
            "line": {"color": colour, "width": 1.5, "dash": dash},
            "opacity": 0.35,
            "showlegend": False,
        },
        line
        | far
        | {"line": {"color": colour, "width": 3}, "name": name, "meta": {"upto": whole_short}},
        {
            "type": "scatterternary",
            "mode": "markers",
            "name": name,
            "showlegend": False,
            "marker": {"size": 10, "color": colour},
        }
        | head
        | {"hovertemplate": hover, "meta": {"at": whole_short}},
    ]


def point(name: str, at: np.ndarray, colour: str, symbol: str, size: int) -> dict[str, Any]:
    """One marked point."""
    marker = {
        "size": size,
        "color": colour,
        "symbol": symbol,
        "line": {"width": 2, "color": colour},
    }
    place = {letter: [value] for letter, value in zip("abc", at, strict=True)}
    return {
        "type": "scatterternary",
        "mode": "markers",
        "name": name,
        "marker": marker,
        "hovertemplate": f"{name}: %{{a:.3f}}, %{{b:.3f}}, %{{c:.3f}}",
    } | place


def ternary(
    theme: Theme, names: tuple[str, str, str] = ("output 1", "output 2", "output 3")
) -> dict[str, Any]:
    """The three axes."""

    def side(title: str) -> dict[str, Any]:
        quiet = {
            "showticklabels": False,
            "ticks": "",
            "nticks": 5,
            "gridcolor": theme.line,
            "linecolor": theme.soft,
        }
        return quiet | {"title": {"text": title, "font": {"size": 12, "color": theme.soft}}}

    return {
        "sum": 1,
        "bgcolor": theme.paper,
        "aaxis": side(names[0]),
        "baxis": side(names[1]),
        "caxis": side(names[2]),
    }
