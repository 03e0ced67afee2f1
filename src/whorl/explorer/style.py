"""How every view looks.

One frame around a figure, and what a trace tells the page about time.

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
    # Plotly looks at every property again; the tests do that once for all, and a slider need not
    # wait for it.
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


def message(text: str, theme: Theme, *, empty: bool = False) -> go.Figure:
    """A view that has nothing to show, and says why; the page leaves it out where it is `empty`."""
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
    meta = {"empty": True} if empty else {}
    return figure([], theme, annotations=[note], xaxis=hidden, yaxis=hidden, meta=meta)


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


def foot(text: str, theme: Theme) -> dict[str, Any]:
    """A quiet line below the plot."""
    plain = {
        "text": text,
        "x": 0,
        "y": 0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
    }
    return plain | {"font": {"size": 12, "color": theme.soft}, "yshift": -6}


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
