"""Rock, paper, scissors in the same places.

The column's orbit, its plane, the level it keeps, its shares, its circulation.
"""

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
    whole = np.ones((len(orbit.shares), 1))
    flows = [whole, orbit.shares]
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
    traces = [*simplex.path_traces("orbit", orbit.shares, moment, theme.turning, "dot"), centre]
    return style.figure(
        traces,
        theme,
        ternary=simplex.ternary(theme, HANDS),
        margin=simplex.MARGIN,
        legend=simplex.LEGEND,
        showlegend=True,
    )


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
    notes = [
        (
            "eigenvalues at the centre  ± "
            f"{style.number(float(np.abs(np.imag(orbit.rotation)).max()))} i"
        )
    ] * len(path)
    traces = [*spiral.plane_traces("orbit", path, moment, theme.turning), spiral.cross(theme)]
    return spiral.plane_figure(
        traces,
        1.08 * float(np.abs(path).max() or 1.0),
        notes,
        moment,
        [("orbit", theme.turning)],
        theme,
        "p",
    )


@views.register("orbit_heat", label="What the motion keeps", place="heat", order=4, subject="orbit")
def _level(orbit: Orbit, moment: int, theme: Theme) -> go.Figure:
    """The product of the shares.

    The motion keeps it, so that the orbit is one of its level lines.
    """
    grid = points().prod(axis=1).reshape(len(UP), len(ACROSS)) * 27
    way = corners(orbit.shares)
    line = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    colours = [[0.0, theme.paper], [1.0, theme.scale[1][1]]]
    levels = {"start": 0, "end": 1, "size": 0.1, "coloring": "fill", "showlines": True}
    bar = {
        "thickness": 10,
        "len": 0.62,
        "x": 1.0,
        "xpad": 2,
        "outlinewidth": 0,
        "tickfont": {"size": 11},
        "title": {"text": "27 p₁p₂p₃", "side": "top"},
    }
    field = {
        "type": "contour",
        "x": ACROSS,
        "y": UP,
        "z": np.round(grid, 4),
        "hoverinfo": "skip",
        "colorscale": colours,
        "contours": levels,
    }
    head = {
        "type": "scatter",
        "mode": "markers",
        "x": [way[moment, 0]],
        "y": [way[moment, 1]],
        "showlegend": False,
        "hoverinfo": "skip",
    }
    traces = [
        field | {"line": {"width": 0.6, "color": theme.soft}, "colorbar": bar},
        *heat.frame(theme),
        line | {"x": way[:, 0], "y": way[:, 1], "line": {"color": theme.turning, "width": 2.5}},
        head
        | {
            "marker": {"size": 12, "color": theme.ink},
            "meta": {"at": {"x": style.packed(way[:, 0]), "y": style.packed(way[:, 1])}},
        },
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
        line = {
            "line": {"color": colour, "width": 2.5, "dash": dash},
            "name": hand,
            "hovertemplate": "%{y:.3g}",
        }
        traces.append({"type": "scatter", "mode": "lines", "x": times, "y": values} | line)
    for colour, values in zip(colours, orbit.shares.T, strict=True):
        head = {
            "type": "scatter",
            "mode": "markers",
            "x": times[moment : moment + 1],
            "y": values[moment : moment + 1],
            "showlegend": False,
        }
        moving = {
            "marker": {"size": 10, "color": colour},
            "hoverinfo": "skip",
            "meta": {"at": {"x": style.packed(times), "y": style.packed(values)}},
        }
        traces.append(head | moving)
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
    }
    text = {
        "text": [style.number(round(value, 12)) for value in values],
        "textposition": "outside",
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    reach = max(abs(value) for value in values) or 1.0
    low = -1.2 * reach if min(values) < -1e-9 else 0.0
    return style.figure(
        [bar | text],
        theme,
        xaxis=style.axis(theme, showgrid=False),
        yaxis=style.axis(theme, "∮ ω around the orbit", range=[low, 1.2 * reach]),
    )
