"""Three hundred networks: how far each runs ahead of, or behind, its native twin."""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.many import Many
from whorl.explorer.style import Theme
from whorl.explorer.views import spiral, views


@views.register("many", label="300 networks", order=8, subject="family")
def figure(family: Many, moment: int, theme: Theme) -> go.Figure | None:
    """Bands of the running gap over the family, and the network that the other views show."""
    if not len(family.gaps):
        return None
    outer, inner, middle, upper, top = np.quantile(
        family.gaps, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0
    )
    updates, own = np.arange(family.gaps.shape[1]), family.gaps[0]
    share = np.mean(family.gaps > 0, axis=0)
    notes = [f"native is ahead in {100 * part:.0f} % of {len(family.gaps)}" for part in share]
    low, high = float(min(outer.min(), own.min())), float(max(top.max(), own.max()))
    reach = (high - low) or 1.0
    areas = [(outer, top, 0.14, "90 % of them"), (inner, upper, 0.28, "50 %")]
    hover = {"hovertemplate": "%{y:.3g}"}
    traces = [
        *style.bands(updates, areas, theme.soft),
        style.line(theme.soft, 2, x=updates, y=middle, name="median", **hover),
        style.line(theme.turning, 3, x=updates, y=own, name="this one", **hover),
        style.runner(theme.turning, moment, {"x": updates, "y": own}, cliponaxis=False),
    ]
    zero = {"zeroline": True, "zerolinecolor": theme.ink, "zerolinewidth": 1.5}
    around = [low - 0.06 * reach, high + 0.06 * reach]
    return spiral.noted(
        traces,
        notes,
        moment,
        [("this one", theme.turning), ("median, 50 % and 90 % of all", theme.soft)],
        theme,
        xaxis=style.axis(theme, "update", range=[0, updates[-1]]),
        yaxis=style.axis(theme, "gap to native", range=around, **zero),
    )
