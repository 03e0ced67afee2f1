"""How every view looks: one frame around a figure, and traces that tell the page about time.

A trace that changes with the moment says so in its `meta`, and the page moves it without asking
again: `at` holds one value per moment, `upto` values to be shown up to the moment, `bars` the
bars of a waterfall (`whole` are those in the quiet colour), `as` one value or one row per moment,
`nodes` and `stream` the network. `layout.meta.notes` is one sentence per moment.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.palette import DARK as DARK
from whorl.palette import LIGHT as LIGHT
from whorl.palette import Theme as Theme

THEMES = {"light": LIGHT, "dark": DARK}
FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
CAPTIONED = {"l": 66, "r": 16, "t": 54, "b": 52}  # margins of a view with a key and a caption


def figure(traces: list[dict[str, Any]], theme: Theme, **layout: Any) -> go.Figure:
    """A figure in the house's frame."""
    frame = {
        "template": {},
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": 13, "color": theme.ink},
        "margin": {"l": 66, "r": 16, "t": 32, "b": 52},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "autosize": True,
    }
    # Plotly would look at every property again, while a slider waits; the tests do that.
    return go.Figure(traces, frame | layout, _validate=False)


def axis(theme: Theme, title: str = "", **more: Any) -> dict[str, Any]:
    """An axis with quiet lines."""
    plain = {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "tickfont": {"size": 12},
        "tickangle": 0,
        "gridcolor": theme.line,
        "zerolinecolor": theme.line,
        "linecolor": theme.soft,
    }
    return plain | {"fixedrange": True, "ticks": "outside", "tickcolor": theme.line} | more


def message(text: str, theme: Theme) -> go.Figure:
    """A view that cannot be drawn, and says why."""
    note = words(text, 0.5, 0.5, 14, theme.soft)
    hidden = {"visible": False, "fixedrange": True}
    return figure([], theme, annotations=[note], xaxis=hidden, yaxis=hidden)


def caption(text: str, theme: Theme) -> dict[str, Any]:
    """A note above the plot, at the right; `CAPTIONED` leaves room for it and for a key."""
    place = {"xanchor": "right", "yanchor": "bottom", "align": "right", "yshift": 3}
    return words(text, 1, 1, 14, theme.ink) | place


def foot(text: str, theme: Theme) -> dict[str, Any]:
    """A quiet line below the plot."""
    place = {"xanchor": "left", "yanchor": "top", "yshift": -6}
    return words(text, 0, 0, 12, theme.soft) | place


def key(theme: Theme, *entries: tuple[str, str], captioned: bool = False) -> dict[str, Any]:
    """What the colours mean, in one line above the plot: a legend that does not wrap."""
    text = "   ".join(
        f'<span style="color:{colour}"><b>━━</b></span> {name}' for name, colour in entries
    )
    place = {"xanchor": "left", "yanchor": "bottom", "xshift": -52}
    return words(text, 0, 1, 12, theme.ink) | place | {"yshift": 24 if captioned else 4}


def words(text: str, x: float, y: float, size: int, colour: str) -> dict[str, Any]:
    """Words at a place of the card, from bottom left to top right."""
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "showarrow": False}
    return place | {"text": text, "font": {"size": size, "color": colour}}


def line(colour: str, width: float = 2.5, dash: str = "solid", **more: Any) -> dict[str, Any]:
    """A line through `x` and `y`, or `a`, `b` and `c`, with whatever else Plotly knows of it."""
    return _trace("lines", more) | {"line": {"color": colour, "width": width, "dash": dash}} | more


def dots(colour: str, size: float | np.ndarray = 10, **more: Any) -> dict[str, Any]:
    """Marked points without an entry in a legend."""
    marker = {"size": size, "color": colour} | more.pop("marker", {})
    return _trace("markers", more) | {"showlegend": False, "marker": marker} | more


def _trace(mode: str, more: dict[str, Any]) -> dict[str, Any]:
    silent = {} if "hovertemplate" in more else {"hoverinfo": "skip"}
    return {"type": "scatterternary" if "a" in more else "scatter", "mode": mode} | silent


def runner(colour: str, moment: int, at: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A point that moves with the moment along the coordinates `at`."""
    here = {name: values[moment : moment + 1] for name, values in at.items()}
    meta = {"at": {name: packed(values) for name, values in at.items()}}
    return dots(colour, **here, meta=meta, **more)


def track(
    name: str, at: dict[str, Any], moment: int, colour: str, dash: str = "dot", hover: str = ""
) -> list[dict[str, Any]]:
    """A path: all of it faintly, up to the moment strongly, and its head."""
    far = {letter: values[: moment + 1] for letter, values in at.items()}
    meta = {"upto": {letter: packed(values) for letter, values in at.items()}}
    hover = hover or "%{x:.3g}, %{y:.3g}"
    return [
        line(colour, 1.5, dash, **at, name=name, opacity=0.35, showlegend=False),
        line(colour, 3, **far, name=name, meta=meta),
        runner(colour, moment, at, name=name, hovertemplate=hover),
    ]


def bands(
    x: np.ndarray, edges: list[tuple[np.ndarray, np.ndarray, float, str]], colour: str
) -> list[dict[str, Any]]:
    """Areas between a lower and an upper edge, each with its opacity and its name."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    traces = []
    for low, high, opacity, name in edges:
        fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},{opacity})"}
        traces.append(line(colour, 0, x=x, y=low, showlegend=False))
        traces.append(line(colour, 0, x=x, y=high, name=name, **fill))
    return traces


def packed(values: Any) -> np.ndarray:
    """Numbers for the page's script, with as many digits as a screen shows, sent as bytes."""
    return np.ascontiguousarray(values, dtype=np.float32)


def signed(value: float) -> str:
    """A difference to read, with its sign."""
    text = number(float(value), 2)
    return text if value <= 0 else f"+{text}"


def number(value: float, digits: int = 3) -> str:
    """A number to read: few digits, a proper minus, tens as powers where they are far."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        text = f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:.0f}"
    else:
        mantissa, power = f"{value:.1e}".split("e")
        text = f"{mantissa}×10<sup>{int(power)}</sup>"
    return text.replace("-", "−")
