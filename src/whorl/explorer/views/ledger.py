"""The running ledger as a waterfall: from the native learner's loss, term by term, to the other's.

The four terms are the gap.
"""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views
from whorl.ledger import TERMS
from whorl.registry import policies


@views.register("ledger", label="Ledger of the gap", order=6)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure:
    """The account up to one moment."""
    accounts = run.accounts()
    native = run.losses["native"]
    learner = native if run.state.policy == "native" else run.losses[run.state.policy]
    heights = np.column_stack([native, accounts, learner])
    ends = native[:, None] + np.cumsum(accounts, axis=1)
    bases = np.column_stack([np.zeros_like(native), ends - accounts, np.zeros_like(native)])
    whole = theme.soft
    colours = [
        whole,
        *(theme.hurts if term > 0 else theme.helps for term in accounts[moment]),
        whole,
    ]
    texts = [
        "|".join(
            style.number(value, 2) if not 0 < place < 5 else style.signed(value)
            for place, value in enumerate(row)
        )
        for row in heights
    ]
    gaps = [
        f"gap {style.signed(after - before)}" for after, before in zip(learner, native, strict=True)
    ]
    tops = np.maximum(bases, bases + heights)
    low, high = min(0.0, float(np.min(bases + heights))), float(tops.max()) or 1.0
    bar = {
        "type": "bar",
        "x": list(range(6)),
        "y": heights[moment],
        "base": bases[moment],
        "marker": {"color": colours, "line": {"width": 0}},
        "text": texts[moment].split("|"),
        "textposition": "none",
        "textangle": 0,
        "constraintext": "none",
        "cliponaxis": False,
        "hoverinfo": "skip",
        "width": 0.66,
        "meta": {
            "bars": {
                "y": style.packed(heights),
                "base": style.packed(bases),
                "text": texts,
                "colours": [whole, theme.hurts, theme.helps],
                "whole": [0, 5],
                "labels": True,
            }
        },
    }
    names = [
        "native",
        *(term.replace("handedness", "handed-<br>ness") for term in TERMS),
        policies.get(run.state.policy).label if run.state.policy != "native" else "learner",
    ]
    return style.figure(
        [bar],
        theme,
        xaxis=style.axis(
            theme,
            tickvals=list(range(6)),
            ticktext=names,
            tickangle=0,
            showgrid=False,
            tickfont={"size": 11},
        ),
        yaxis=style.axis(
            theme,
            "mean loss of six samples" if run.state.system == "family" else "loss",
            range=[1.12 * low, 1.22 * high],
            nticks=6,
        ),
        annotations=[
            style.caption(gaps[moment], theme),
            *_labels(texts[moment].split("|"), tops[moment]),
        ],
        meta={"notes": gaps},
        margin={"l": 72, "r": 16, "t": 32, "b": 44},
    )


def _labels(texts: list[str], tops: np.ndarray) -> list[dict]:
    """A number above each bar, every other one a line higher, so that neighbours never touch."""
    return [
        {
            "text": text,
            "x": number,
            "y": float(top),
            "yanchor": "bottom",
            "yshift": 2 + 17 * (number in (2, 4)),
            "showarrow": False,
            "font": {"size": 11},
        }
        for number, (text, top) in enumerate(zip(texts, tops, strict=True))
    ]
