"""The loss over updates: native, step-matched, adaptive."""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views
from whorl.registry import policies

DASHES = {"step_matched": "dash", "native": "solid", "adaptive": "solid"}


def _followed(run: Played) -> tuple[dict[str, np.ndarray], str]:
    """The losses to show, native first, and what they are."""
    own = run.state.policy
    several = run.state.system != "column"  # samples, of which one is watched
    if several and run.state.shown == "all":
        names = ["native", "step_matched", "adaptive", *run.losses]
        return {name: run.losses[name] for name in names}, "mean loss of six samples"
    watched = {
        name: np.sum(run.residual(who) ** 2, axis=1) / 2
        for name, who in {"native": "native", own: "learner"}.items()
    }
    if own == "native":
        watched = {"native": watched["native"]}
    return watched, "loss of the watched sample" if several else "loss"


@views.register("loss", label="Loss over updates", order=5)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure:
    """A curve for each learner, and where it stands at one moment.

    Where one sample learns alone, the loss is that sample's: nothing pulls at the others.
    """
    losses, about = _followed(run)
    colours = {"native": theme.native, "step_matched": theme.matched, "adaptive": theme.turning}
    colours = {name: colours.get(name, theme.streams[3]) for name in losses}
    names = {name: policies.get(name).label for name in colours}
    updates = np.arange(run.made + 1)
    traces: list[dict] = []
    for name, colour in colours.items():
        values = np.maximum(losses[name], 1e-18)
        curve = {
            "line": {
                "color": colour,
                "width": 4 if name == "native" else 2.5,
                "dash": DASHES.get(name, "dot"),
            },
            "name": names[name],
        }
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": updates,
                "y": values,
                "hovertemplate": "%{y:.3g}",
            }
            | curve
        )
    for name, colour in colours.items():
        values = np.maximum(losses[name], 1e-18)
        marker = {
            "marker": {"size": 10, "color": colour, "line": {"width": 1.5, "color": theme.paper}},
            "showlegend": False,
        }
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "cliponaxis": False,
                "x": [moment],
                "y": values[moment : moment + 1],
                "hoverinfo": "skip",
            }
            | marker
            | {"meta": {"at": {"x": style.packed(updates), "y": style.packed(values)}}}
        )
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "update", range=[0, max(run.made, 1)]),
        yaxis=style.axis(theme, about, type="log", exponentformat="power", nticks=6),
        annotations=[
            style.key(theme, *((names[name], colour) for name, colour in colours.items()))
        ],
        hovermode="x unified",
    )
