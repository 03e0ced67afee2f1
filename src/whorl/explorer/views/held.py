"""The critical turn: two eigenvalues that meet, and the rate that is largest where they do."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.held import Held
from whorl.explorer.style import Theme
from whorl.explorer.views import network, spiral, views

LEAST = 1e-3  # of an error: below it nothing is drawn


@views.register(
    "held_network", label="Network, held still", place="network", order=1, subject="held"
)
def _network(held: Held, _moment: int, theme: Theme) -> go.Figure:
    layers = [np.asarray(layer)[None] for layer in held.network.layers]
    return network.streams(layers, held.flows, None, 0, theme)


@views.register(
    "held_simplex",
    label="Eigenvalues of the loop",
    place="simplex",
    order=2,
    first=True,
    subject="held",
)
def _eigenvalues(held: Held, moment: int, theme: Theme) -> go.Figure:
    """The complex plane: both eigenvalues up to the angle, and where they meet."""
    traces: list[dict[str, Any]] = []
    for name, values in zip(("slower", "faster"), held.eigenvalues.T, strict=True):
        path = np.column_stack([values.real, values.imag])
        traces += spiral.plane_traces(name, path, moment, theme.turning)
    mean = float(held.bounds.turning)
    traces.append(_marked("meeting", mean, 0.0, theme.ink, "circle-open"))
    slow, fast = held.eigenvalues[0].real
    traces += [_marked("direct", value, 0.0, theme.native, "x-thin") for value in (slow, fast)]
    notes = [f"{spiral.pair(values)}" for values in held.eigenvalues]
    entries = [("two eigenvalues", theme.turning), ("direct feedback", theme.native)]
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "real part", range=[-0.05 * fast, 1.08 * fast], nticks=6),
        yaxis=style.axis(
            theme,
            "imaginary part",
            range=[-1.15 * mean, 1.15 * mean],
            scaleanchor="x",
            constrain="domain",
            nticks=5,
        ),
        annotations=[
            style.caption(notes[moment], theme),
            style.key(theme, *entries, captioned=True),
        ],
        meta={"notes": notes},
        margin=style.CAPTIONED,
    )


@views.register(
    "held_spiral",
    label="Rate against the angle",
    place="spiral",
    order=3,
    first=True,
    subject="held",
)
def _rate(held: Held, moment: int, theme: Theme) -> go.Figure:
    """How fast the slowest error decays in the end, beside direct feedback and the bound."""
    degrees, mean = np.degrees(held.angles), float(held.bounds.turning)
    slow = float(held.bounds.reciprocal)
    traces = [
        _level("direct", slow, theme.native, "dash"),
        _level("geometric mean", mean, theme.soft, "dot"),
        *spiral.plane_traces("rate", np.column_stack([degrees, held.rates]), moment, theme.turning),
        _marked("meeting", np.degrees(held.critical), mean, theme.ink, "circle-open"),
    ]
    notes = [
        f"φ = {angle:.4g}°: rate {style.number(rate)}, {rate / slow:.2f} × direct"
        for angle, rate in zip(degrees, held.rates, strict=True)
    ]
    entries = [
        ("rate", theme.turning),
        ("direct feedback", theme.native),
        ("geometric mean", theme.soft),
    ]
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "angle φ in degrees", range=[0, 90], tickvals=[0, 30, 60, 90]),
        yaxis=style.axis(theme, "rate a", range=[0, 1.12 * mean]),
        annotations=[
            style.caption(notes[moment], theme),
            style.key(theme, *entries, captioned=True),
        ],
        meta={"notes": notes},
        margin=style.CAPTIONED,
    )


@views.register("held_loss", label="Worst error over time", place="loss", order=5, subject="held")
def _left(held: Held, moment: int, theme: Theme) -> go.Figure:
    """What an error of one has become at most: the slopes in the end are the rates."""
    line = {"type": "scatter", "mode": "lines", "x": held.times, "hoverinfo": "skip"}
    traces = [
        line | {"y": held.left[0], "name": "direct", "line": {"color": theme.native, "width": 3}},
        line
        | {
            "y": held.left[moment],
            "name": "turned",
            "line": {"color": theme.turning, "width": 3},
            "meta": {"as": {"y": style.packed(held.left)}},
        },
    ]
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "time", range=[0, held.times[-1]]),
        yaxis=style.axis(
            theme,
            "largest error left of 1",
            type="log",
            exponentformat="power",
            range=[np.log10(LEAST), 0.2],
            dtick=1,
        ),
        annotations=[
            style.key(theme, ("turned by φ", theme.turning), ("direct feedback", theme.native))
        ],
    )


def _level(name: str, value: float, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [0, 90],
        "y": [value, value],
        "name": name,
        "line": {"color": colour, "width": 2, "dash": dash},
        "hoverinfo": "skip",
    }


def _marked(name: str, x: float, y: float, colour: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x],
        "y": [y],
        "name": name,
        "marker": {
            "symbol": symbol,
            "size": 14,
            "color": colour,
            "line": {"width": 2, "color": colour},
        },
        "hoverinfo": "skip",
    }
