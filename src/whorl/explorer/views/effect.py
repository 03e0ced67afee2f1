"""One update, turned either way, beside a straight step of the same size.

The mean of both senses is the even term of the ledger, whose sign is that of Q for small steps.
"""

import numpy as np
import plotly.graph_objects as go

from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views
from whorl.explorer.views.ledger import waterfall


@views.register("effect", label="One update, both senses", order=7)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure | None:
    """The update that follows each moment; nothing where no update turns."""
    if not np.any(run.amounts):
        return None
    even, handed = run.entries[:, 0], run.entries[:, 1]
    heights = np.column_stack([even + handed, even - handed, even])
    heights = np.concatenate([heights, heights[-1:]])  # after the last update, the last one
    turned = np.append(run.amounts, run.amounts[-1])
    return waterfall(
        ["turn taken", "turn reversed", "mean of both"],
        heights,
        np.zeros_like(heights),
        (),
        [_note(row[2], amount) for row, amount in zip(heights, turned, strict=True)],
        moment,
        theme,
        title="loss minus that of the straight step",
        exponentformat="power",
    )


def _note(even: float, amount: float) -> str:
    if amount == 0:
        return "no turn at this update: the gate is closed"
    return f"on average this turn {'helps' if even < 0 else 'hurts'}"
