"""One update, turned either way: what it does to the loss beside a straight step of the same size.

The mean of both senses is the even term of the ledger, whose sign is that of Q for small steps.
"""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views


@views.register("effect", label="One update, both senses", order=7)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure | None:
    """The update that follows each moment; nothing where no update turns."""
    if not np.any(run.amounts):
        return None
    even, handed = run.entries[:, 0], run.entries[:, 1]
    heights = np.column_stack([even + handed, even - handed, even])
    heights = np.concatenate([heights, heights[-1:]])  # after the last update, the last one
    texts = ["|".join(style.signed(value) for value in row) for row in heights]
    turned = np.append(run.amounts, run.amounts[-1])
    notes = [_note(row[2], amount) for row, amount in zip(heights, turned, strict=True)]
    bar = {
        "type": "bar",
        "x": list(range(3)),
        "y": heights[moment],
        "marker": {"color": [theme.hurts if one > 0 else theme.helps for one in heights[moment]]},
        "text": texts[moment].split("|"),
        "textposition": "outside",
        "textfont": {"size": 11},
        "textangle": 0,
        "constraintext": "none",
        "cliponaxis": False,
        "hoverinfo": "skip",
        "width": 0.5,
        "meta": {
            "bars": {
                "y": style.packed(heights),
                "base": style.packed(np.zeros_like(heights)),
                "text": texts,
                "colours": [theme.soft, theme.hurts, theme.helps],
                "whole": [],
            }
        },
    }
    return style.figure(
        [bar],
        theme,
        xaxis=style.axis(
            theme,
            tickvals=list(range(3)),
            ticktext=["turn taken", "turn reversed", "mean of both"],
            showgrid=False,
        ),
        yaxis=style.axis(
            theme,
            "loss less a straight step's",
            zeroline=True,
            zerolinecolor=theme.ink,
            zerolinewidth=1.5,
            exponentformat="power",
            nticks=5,
        ),
        annotations=[style.caption(notes[moment], theme)],
        meta={"notes": notes},
        margin={"l": 96, "r": 16, "t": 32, "b": 44},
    )


def _note(even: float, amount: float) -> str:
    if amount == 0:
        return "no turn at this update: the gate is closed"
    return f"on average this turn {'helps' if even < 0 else 'hurts'}"
