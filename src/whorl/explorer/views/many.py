"""Three hundred networks: how far each runs ahead of, or behind, its native twin."""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.many import Many
from whorl.explorer.style import Theme
from whorl.explorer.views import views


@views.register("many", label="300 networks", order=8, subject="family")
def figure(family: Many, moment: int, theme: Theme) -> go.Figure:
    """Bands of the running gap over the family, and the network that the other views show."""
    if family.why_not:
        return style.message(family.why_not, theme, empty=True)
    outer, inner, middle, upper, top = np.quantile(
        family.gaps, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0
    )
    updates = np.arange(family.gaps.shape[1])
    share = np.mean(family.gaps > 0, axis=0)
    notes = [f"native is ahead in {100 * part:.0f} % of {len(family.gaps)}" for part in share]
    own = family.gaps[0]
    low, high = float(min(outer.min(), own.min())), float(max(top.max(), own.max()))
    reach = (high - low) or 1.0
    marker = {
        "type": "scatter",
        "mode": "markers",
        "cliponaxis": False,
        "x": [moment],
        "y": own[moment : moment + 1],
        "showlegend": False,
        "hoverinfo": "skip",
    }
    traces = [
        *_band(updates, outer, top, theme.soft, 0.14, "90 % of them"),
        *_band(updates, inner, upper, theme.soft, 0.28, "50 %"),
        _line(updates, middle, theme.soft, 2, "median"),
        _line(updates, own, theme.turning, 3, "this one"),
        marker
        | {
            "marker": {"size": 10, "color": theme.turning},
            "meta": {"at": {"x": style.packed(updates), "y": style.packed(own)}},
        },
    ]
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, "update", range=[0, updates[-1]]),
        yaxis=style.axis(
            theme,
            "gap to native",
            zeroline=True,
            zerolinecolor=theme.ink,
            zerolinewidth=1.5,
            range=[low - 0.06 * reach, high + 0.06 * reach],
        ),
        annotations=[
            style.caption(notes[moment], theme),
            style.key(
                theme,
                ("this one", theme.turning),
                ("median, 50 % and 90 % of all", theme.soft),
                captioned=True,
            ),
        ],
        margin=style.CAPTIONED,
        meta={"notes": notes},
    )


def _line(x: np.ndarray, y: np.ndarray, colour: str, width: float, name: str) -> dict:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"color": colour, "width": width},
        "name": name,
        "hovertemplate": "%{y:.3g}",
    }


def _band(
    x: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, opacity: float, name: str
) -> list[dict]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip"}
    fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},{opacity})"}
    return [edge | {"y": low, "showlegend": False}, edge | fill | {"y": high, "name": name}]
