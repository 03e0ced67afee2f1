"""Rock, paper, scissors in the same places: orbit, plane, kept product, shares, circulation."""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import PLANE
from whorl.explorer.cycle import PACE, Orbit
from whorl.explorer.moment import ACROSS, UP, corners, points
from whorl.explorer.style import Theme
from whorl.explorer.views import heat, network, simplex, spiral, views

HANDS = ("rock", "paper", "scissors")


@views.register(
    "orbit_network", label="One column, three shares", place="network", order=1, subject="orbit"
)
def _network(orbit: Orbit, moment: int, theme: Theme) -> go.Figure:
    flows = [np.ones((len(orbit.shares), 1)), orbit.shares]
    return network.streams([orbit.shares[:, :, None]], flows, None, moment, theme)


@views.register(
    "orbit_simplex",
    label="Orbit on the simplex",
    place="simplex",
    order=2,
    first=True,
    subject="orbit",
)
def _simplex(orbit: Orbit, moment: int, theme: Theme) -> go.Figure:
    centre = simplex.point("centre", np.full(3, 1 / 3), theme.ink, "cross-thin", 11)
    traces = simplex.track("orbit", orbit.shares, moment, theme.turning)
    return simplex.triangle([*traces, centre], theme, HANDS)


@views.register(
    "orbit_spiral",
    label="Orbit around the centre",
    place="spiral",
    order=3,
    first=True,
    subject="orbit",
)
def _plane(orbit: Orbit, moment: int, theme: Theme) -> go.Figure:
    path = (orbit.shares - 1 / 3) @ PLANE
    turn = style.number(float(np.abs(np.imag(orbit.rotation)).max()))
    notes = [f"eigenvalues at the centre  ± {turn} i"] * len(path)
    traces = [*spiral.track("orbit", path, moment, theme.turning), spiral.cross(theme)]
    reach = 1.08 * float(np.abs(path).max() or 1.0)
    return spiral.plane(traces, reach, notes, moment, [("orbit", theme.turning)], theme, "p")


@views.register("orbit_heat", label="What the motion keeps", place="heat", order=4, subject="orbit")
def _level(orbit: Orbit, moment: int, theme: Theme) -> go.Figure:
    """The product of the shares, which the motion keeps: the orbit is one of its level lines."""
    grid = points().prod(axis=1).reshape(len(UP), len(ACROSS)) * 27
    levels = {"start": 0, "end": 1, "size": 0.1, "coloring": "fill", "showlines": True}
    field = heat.contour(grid, contours=levels, line={"width": 0.6, "color": theme.soft})
    field["colorscale"] = [[0.0, theme.paper], [1.0, theme.scale[1][1]]]
    field["colorbar"] = heat.bar("27 p₁p₂p₃")
    at = dict(zip("xy", corners(orbit.shares).T, strict=True))
    traces = [
        field,
        *heat.frame(theme),
        style.line(theme.turning, **at, showlegend=False),
        style.runner(theme.ink, moment, at, marker={"size": 12}),
    ]
    return heat.triangle_figure(traces, theme, "the orbit is a level line of the product", "", "")


@views.register("orbit_loss", label="Shares over time", place="loss", order=5, subject="orbit")
def _shares(orbit: Orbit, moment: int, theme: Theme) -> go.Figure:
    times = PACE * np.arange(len(orbit.shares))
    colours = (theme.native, theme.turning, theme.matched)
    traces: list[dict] = []
    for hand, colour, dash, values in zip(
        HANDS, colours, ("solid", "dash", "dot"), orbit.shares.T, strict=True
    ):
        at = {"x": times, "y": values}
        traces.append(style.line(colour, 2.5, dash, **at, name=hand, hovertemplate="%{y:.3g}"))
        traces.append(style.runner(colour, moment, at))
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "time", range=[0, times[-1]]),
        yaxis=style.axis(theme, "share", range=[0, 1]),
        annotations=[style.key(theme, *zip(HANDS, colours, strict=True))],
        hovermode="x unified",
    )


@views.register("orbit_ledger", label="Circulation", place="ledger", order=6, subject="orbit")
def _work(orbit: Orbit, _moment: int, theme: Theme) -> go.Figure:
    """The score one-form around the orbit: zero for every gradient."""
    values = list(orbit.circulations.values())
    bar = {
        "type": "bar",
        "x": list(orbit.circulations),
        "y": values,
        "marker": {"color": [theme.turning, theme.native]},
        "width": 0.5,
        "text": [style.number(round(value, 12)) for value in values],
        "textposition": "outside",
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    reach = max(abs(value) for value in values) or 1.0
    low = -1.2 * reach if min(values) < -1e-9 else 0.0
    return style.figure(
        [bar],
        theme,
        xaxis=style.axis(theme, showgrid=False),
        yaxis=style.axis(theme, "∮ ω around the orbit", range=[low, 1.2 * reach]),
    )
