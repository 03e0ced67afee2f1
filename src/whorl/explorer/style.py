"""How every view looks.

Two themes, one frame around a figure, and what a trace tells the page about time.

A trace that changes with the moment says so in its `meta`, and the page moves it without asking
again: `at` holds one value a moment, `upto` values to be shown up to the moment, `bars` the bars of
a waterfall, `nodes` and `stream` the network. `layout.meta.notes` is one sentence a moment.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go


@dataclass(frozen=True)
class Theme:
    """Colours.

    The five of the data are Okabe and Ito's, which differ for every kind of colour vision.
    """

    ink: str
    soft: str
    grid: str
    paper: str
    native: str
    turning: str
    matched: str
    streams: tuple[str, ...]
    scale: tuple[tuple[float, str], ...]


LIGHT = Theme(
    ink="#1c2733",
    soft="#566472",
    grid="#e4e8ed",
    paper="#ffffff",
    native="#0072b2",
    turning="#d55e00",
    matched="#007a59",
    streams=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00"),
    scale=(
        (0.0, "#08519c"),
        (0.25, "#6baed6"),
        (0.5, "#f7f7f5"),
        (0.75, "#fdae6b"),
        (1.0, "#b34700"),
    ),
)
DARK = Theme(
    ink="#e9eef3",
    soft="#a9b6c3",
    grid="#2f3b48",
    paper="#18212b",
    native="#56b4e9",
    turning="#f0883e",
    matched="#2fc59a",
    streams=("#56b4e9", "#e69f00", "#2fc59a", "#e29ac2", "#9bd3f5", "#c9a83a"),
    scale=(
        (0.0, "#6baed6"),
        (0.25, "#2c6aa3"),
        (0.5, "#222c36"),
        (0.75, "#b3611d"),
        (1.0, "#fdae6b"),
    ),
)
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
    # Plotly looks at every property again; the tests do that once for all, and a slider need not
    # wait for it.
    return go.Figure(traces, frame | layout, _validate=False)


def axis(theme: Theme, title: str = "", **more: Any) -> dict[str, Any]:
    """An axis with quiet lines."""
    plain = {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "tickfont": {"size": 12},
        "gridcolor": theme.grid,
        "zerolinecolor": theme.grid,
        "linecolor": theme.soft,
    }
    return plain | {"fixedrange": True, "ticks": "outside", "tickcolor": theme.grid} | more


def message(text: str, theme: Theme) -> go.Figure:
    """A view that has nothing to show, and says why."""
    note = {
        "text": text,
        "x": 0.5,
        "y": 0.5,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "font": {"size": 14, "color": theme.soft},
    }
    hidden = {"visible": False, "fixedrange": True}
    return figure([], theme, annotations=[note], xaxis=hidden, yaxis=hidden)


def caption(text: str, theme: Theme) -> dict[str, Any]:
    """A note above the plot, at the right; `CAPTIONED` leaves room for it and for a key."""
    plain = {
        "text": text,
        "x": 1,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
    }
    return plain | {"align": "right", "yshift": 3, "font": {"size": 14, "color": theme.ink}}


def key(theme: Theme, *entries: tuple[str, str], captioned: bool = False) -> dict[str, Any]:
    """What the colours mean, in one line above the plot: a legend that does not wrap."""
    words = "   ".join(
        f'<span style="color:{colour}"><b>━━</b></span> {name}' for name, colour in entries
    )
    plain = {
        "text": words,
        "x": 0,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }
    return plain | {
        "xshift": -52,
        "yshift": 24 if captioned else 4,
        "font": {"size": 12, "color": theme.ink},
    }


def packed(values: Any) -> np.ndarray:
    """Numbers for the page's script, with as many digits as a screen shows.

    Plotly sends arrays as bytes.
    """
    return np.ascontiguousarray(values, dtype=np.float32)


def number(value: float, digits: int = 3) -> str:
    """A number to read: few digits, a proper minus, tens as powers where they are far."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        text = f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:.0f}"
    else:
        mantissa, power = f"{value:.1e}".split("e")
        text = f"{mantissa}×10<sup>{int(power)}</sup>"
    return text.replace("-", "−")
