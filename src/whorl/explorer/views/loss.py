"""The loss over updates: native, step-matched, adaptive."""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views
from whorl.registry import policies

DASHES = {"step_matched": "dash", "native": "solid", "adaptive": "solid"}


@views.register("loss", label="Loss over updates", order=5)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure:
    """A curve for each learner, and where it stands at one moment.

    Where one sample learns alone, the loss is that sample's: nothing pulls at the others.
    """
    losses, about = _followed(run)
    colours = {"native": theme.native, "step_matched": theme.matched, "adaptive": theme.turning}
    updates = np.arange(run.made + 1)
    curves, heads, entries = [], [], []
    for name, values in losses.items():
        colour, label = colours.get(name, theme.streams[3]), policies.get(name).label
        at = {"x": updates, "y": np.maximum(values, 1e-18)}
        width, dash = 4 if name == "native" else 2.5, DASHES.get(name, "dot")
        curves.append(style.line(colour, width, dash, **at, name=label, hovertemplate="%{y:.3g}"))
        marker = {"line": {"width": 1.5, "color": theme.paper}}
        heads.append(style.runner(colour, moment, at, marker=marker, cliponaxis=False))
        entries.append((label, colour))
    return style.figure(
        [*curves, *heads],
        theme,
        xaxis=style.axis(theme, "update", range=[0, max(run.made, 1)]),
        yaxis=style.axis(theme, about, type="log", exponentformat="power", nticks=6),
        annotations=[style.key(theme, *entries)],
        hovermode="x unified",
    )


def _followed(run: Played) -> tuple[dict[str, np.ndarray], str]:
    """The losses to show, native first, and what they are."""
    own = run.state.policy
    several = run.state.system != "column"  # samples, of which one is watched
    if several and run.state.shown == "all":
        names = dict.fromkeys(["native", "step_matched", "adaptive", *run.losses])
        return {name: run.losses[name] for name in names}, "mean loss of six samples"
    shown = {"native": "native"} if own == "native" else {"native": "native", own: "learner"}
    watched = {name: np.sum(run.residual(who) ** 2, axis=1) / 2 for name, who in shown.items()}
    return watched, "loss of the watched sample" if several else "loss"
