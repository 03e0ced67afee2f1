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
        traces += spiral.track(name, path, moment, theme.turning)
    mean = float(held.bounds.turning)
    traces.append(_marked("meeting", mean, 0.0, theme.ink, "circle-open"))
    slow, fast = held.eigenvalues[0].real
    traces += [_marked("direct", value, 0.0, theme.native, "x-thin") for value in (slow, fast)]
    across = {"range": [-0.05 * fast, 1.08 * fast], "nticks": 6}
    up = {"range": [-1.15 * mean, 1.15 * mean], "nticks": 5, "constrain": "domain"}
    return spiral.noted(
        traces,
        [spiral.pair(values) for values in held.eigenvalues],
        moment,
        [("two eigenvalues", theme.turning), ("direct feedback", theme.native)],
        theme,
        xaxis=style.axis(theme, "real part", **across),
        yaxis=style.axis(theme, "imaginary part", scaleanchor="x", **up),
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
        style.line(theme.native, 2, "dash", x=[0, 90], y=[slow, slow], name="direct"),
        style.line(theme.soft, 2, "dot", x=[0, 90], y=[mean, mean], name="geometric mean"),
        *spiral.track("rate", np.column_stack([degrees, held.rates]), moment, theme.turning),
        _marked("meeting", np.degrees(held.critical), mean, theme.ink, "circle-open"),
    ]
    notes = [
        f"φ = {angle:.4g}°: rate {style.number(rate)}, {rate / slow:.2f} × direct"
        for angle, rate in zip(degrees, held.rates, strict=True)
    ]
    entries = [("rate", theme.turning), ("direct feedback", theme.native)]
    angles = {"range": [0, 90], "tickvals": [0, 30, 60, 90]}
    return spiral.noted(
        traces,
        notes,
        moment,
        [*entries, ("geometric mean", theme.soft)],
        theme,
        xaxis=style.axis(theme, "angle φ in degrees", **angles),
        yaxis=style.axis(theme, "rate a", range=[0, 1.12 * mean]),
    )


@views.register("held_loss", label="Worst error over time", place="loss", order=5, subject="held")
def _left(held: Held, moment: int, theme: Theme) -> go.Figure:
    """What an error of one has become at most: the slopes in the end are the rates."""
    left = {"as": {"y": style.packed(held.left)}}
    traces = [
        style.line(theme.native, 3, x=held.times, y=held.left[0], name="direct"),
        style.line(theme.turning, 3, x=held.times, y=held.left[moment], name="turned", meta=left),
    ]
    entries = [("turned by φ", theme.turning), ("direct feedback", theme.native)]
    decades = {"type": "log", "exponentformat": "power", "dtick": 1}
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "time", range=[0, held.times[-1]]),
        yaxis=style.axis(theme, "largest error left of 1", range=[np.log10(LEAST), 0.2], **decades),
        annotations=[style.key(theme, *entries)],
    )


def _marked(name: str, x: float, y: float, colour: str, symbol: str) -> dict[str, Any]:
    marker = {"symbol": symbol, "line": {"width": 2, "color": colour}}
    return style.dots(colour, 14, x=[x], y=[y], name=name, marker=marker)
