"""Where the final gap of a pair came from."""

from typing import TYPE_CHECKING

import numpy as np

from whorl import _check
from whorl.learning.ledger import TERMS, Ledger
from whorl.palette import FAINT
from whorl.plot._canvas import Drawn, beside, canvas, ink, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def waterfall(ledger: Ledger, *, ax: "Axes | None" = None) -> Drawn:
    """Draw how a ledger leads from the native learner's final loss, term by term, to the
    nonreciprocal learner's.

    Args:
        ledger: Of one pair.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Examples:
        >>> pair = wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0)
        >>> wh.plot.waterfall(pair.ledger).savefig(folder / "gap.pdf")
    """
    _check.instance("ledger", ledger, Ledger)
    first, last, *terms = (
        float(np.mean(np.asarray(one, dtype=float)))
        for one in (ledger.native, ledger.nonreciprocal, *(getattr(ledger.sums, t) for t in TERMS))
    )
    if not np.isfinite([first, last, *terms]).all():
        raise ValueError("ledger must hold finite losses, but one is not")
    ends = first + np.cumsum(terms)
    axes, drawn = canvas(ax, (5.6, 3.6))
    bottoms = np.concatenate([[0.0], ends - terms, [0.0]])
    heights = np.concatenate([[first], terms, [last]])
    colours = [
        theme().quiet,
        *(theme().hurts if term > 0 else theme().helps for term in terms),
        theme().quiet,
    ]
    # The coloured edge keeps a term visible that is too small for its own length; the signs beside
    # the bars make it read in grey.
    axes.barh(
        range(6),
        heights,
        left=bottoms,
        color=colours,
        edgecolor=colours,
        linewidth=1.2,
        height=0.62,
        zorder=2,
    )
    levels = np.concatenate([[first], ends])
    for number, level in enumerate(levels):
        axes.plot(
            [level, level], [number + 0.31, number + 0.69], color=FAINT, linewidth=0.8, zorder=1
        )
    low, high = min(0.0, *(bottoms + heights)), max(*bottoms, *(bottoms + heights))
    reach = (high - low) or 1.0
    # Numbers have a column of their own beside the axes: on a small grid they do not meet either.
    for number, height in enumerate(heights):
        sign = "+" if 0 < number < 5 else ""
        beside(axes, number, f"{height:{sign}.3g}", 4)
    axes.set_yticks(range(6), ["native ends", *TERMS, "nonreciprocal ends"])
    axes.axvline(0, color=ink(), linewidth=0.8)
    axes.set_xlim(low - (0.04 * reach if low < 0 else 0.0), high + 0.04 * reach)
    axes.set_ylim(5.6, -0.6)
    axes.set_xlabel("mean loss per sample")
    axes.set_title(_title(last - first, ledger))
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def _title(gap: float, ledger: Ledger) -> str:
    """Who ends lower and by how much; whether the account closes only where it does not."""
    lower = "native" if gap > 0 else "nonreciprocal"
    who = f"{lower} ends lower" if gap else "both end alike"
    pairs = np.size(ledger.start)
    many = f", means over {pairs} pairs" if pairs > 1 else ""
    open_end = "" if ledger.closed else f"\nDOES NOT CLOSE: {np.max(ledger.closure):.1e}"
    return f"gap {gap:+.3g}: {who}{many}{open_end}"
