"""The running ledger as a waterfall: from the native loss, over four terms, to the other's."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views
from whorl.learning.ledger import TERMS
from whorl.registry import policies

NUMBERS = 76  # pixels right of the bars, for one number per bar


@views.register("ledger", label="Ledger of the gap", order=6)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure | None:
    """The account up to one moment; nothing where no update turns."""
    if not np.any(run.amounts):
        return None
    accounts, native = run.accounts(), run.losses["native"]
    learner = run.losses[run.state.policy]
    sizes = np.column_stack([native, accounts, learner])
    ends = native[:, None] + np.cumsum(accounts, axis=1)
    starts = np.column_stack([np.zeros_like(native), ends - accounts, np.zeros_like(native)])
    gaps = [
        f"gap {style.signed(after - before)}" for after, before in zip(learner, native, strict=True)
    ]
    low, high = min(0.0, float(ends.min())), float(max(sizes.max(), ends.max())) or 1.0
    return waterfall(
        ["native", *TERMS, policies.get(run.state.policy).label],
        sizes,
        starts,
        (0, 5),
        gaps,
        moment,
        theme,
        title="loss" if run.state.system == "column" else "mean loss of six samples",
        range=[1.06 * low, 1.06 * high],
    )


def waterfall(
    names: list[str],
    sizes: np.ndarray,
    starts: np.ndarray,
    whole: tuple[int, ...],
    notes: list[str],
    moment: int,
    theme: Theme,
    **axis: Any,
) -> go.Figure:
    """Bars from top to bottom with their numbers in a column, so that no numbers can touch.

    `sizes` and `starts` are (moments, bars); `whole` are the bars that are no difference.
    """
    colours = [
        theme.soft if bar in whole else theme.hurts if size > 0 else theme.helps
        for bar, size in enumerate(sizes[moment])
    ]
    texts = [
        [style.number(x, 2) if bar in whole else style.signed(x) for bar, x in enumerate(row)]
        for row in sizes
    ]
    moving = {
        "x": style.packed(sizes),
        "base": style.packed(starts),
        "text": ["|".join(row) for row in texts],
        "colours": [theme.soft, theme.hurts, theme.helps],
        "whole": list(whole),
    }
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(names))),
        "x": sizes[moment],
        "base": starts[moment],
        "marker": {"color": colours, "line": {"width": 0}},
        "hoverinfo": "skip",
        "width": 0.66,
        "meta": {"bars": moving},
    }
    beside = {"x": 1, "xref": "paper", "xanchor": "left", "showarrow": False}
    numbers = [
        beside | {"text": text, "y": number, "font": {"size": 12}}
        for number, text in enumerate(texts[moment])
    ]
    across = {"zeroline": True, "zerolinecolor": theme.ink, "zerolinewidth": 1.5, "nticks": 4}
    return style.figure(
        [bar],
        theme,
        xaxis=style.axis(theme, **across | axis),
        yaxis=style.axis(
            theme,
            tickvals=list(range(len(names))),
            ticktext=names,
            showgrid=False,
            range=[len(names) - 0.4, -0.6],
        ),
        annotations=[style.caption(notes[moment], theme) | {"xshift": NUMBERS - 16}, *numbers],
        meta={"notes": notes},
        margin={"l": 96, "r": NUMBERS, "t": 32, "b": 52},
    )
