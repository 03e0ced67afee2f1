"""How the loss falls, update by update."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from whorl import _check
from whorl.learning.results import Result
from whorl.palette import LINES
from whorl.plot._canvas import Drawn, canvas, series, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPAN = 10.0  # losses that span more than this factor are drawn on a logarithmic scale
POINTS = 2000  # per line, which is more than a figure has pixels


def learning_curve(results: Result | Mapping[str, Result], *, ax: "Axes | None" = None) -> Drawn:
    """Draw the loss over the updates, of one result or of several by name.

    A run has one line. A coupled pair has two, the nonreciprocal and the native learner; many pairs
    have the same two, as medians with a band for the middle half. Losses are mean over samples.

    Args:
        results: What `learn`, `train` or `train_many` returned with `record=True`, or several of
            them by name.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Raises:
        ValueError: If an argument is not a result, or has no losses.

    Examples:
        >>> run = wh.learn(net, x, y, rule=wh.exponentiated_gradient(), scale=0.2, epochs=2, seed=0)
        >>> figure = wh.plot.learning_curve({"exponentiated gradient": run})
    """
    named = dict(results) if isinstance(results, Mapping) else {"": results}
    if not named:
        raise ValueError("results must hold at least one result, but it is empty")
    curves = [line for name, one in named.items() for line in _curves(name, one)]
    axes, drawn = canvas(ax, (5.6, 3.6))
    pair = len(named) == 1 and len(curves) == 2
    colours = (theme().turning, theme().native) if pair else [series(n) for n in range(len(curves))]
    for number, ((label, losses), colour) in enumerate(zip(curves, colours, strict=True)):
        updates, few = np.arange(losses.shape[1]), losses.shape[1] < 3
        look = {"color": colour, "linestyle": LINES[number % 8], "marker": "o" if few else ""}
        keep = np.unique(np.linspace(0, len(updates) - 1, POINTS).round().astype(int))
        with np.errstate(invalid="ignore"):  # losses that are infinite leave gaps
            low, middle, high = np.quantile(losses[:, keep], [0.25, 0.5, 0.75], axis=0)
        axes.plot(updates[keep], middle, label=label, gid="loss", **look)
        if len(losses) > 1:
            axes.fill_between(updates[keep], low, high, color=colour, alpha=0.2, linewidth=0)
    _scaled(axes, np.concatenate([losses.ravel() for _, losses in curves]))
    axes.set_xlabel("update")
    if len(curves) > 1 or curves[0][0]:
        axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def _curves(name: str, one: Any) -> Iterator[tuple[str, np.ndarray]]:
    """A label, and losses from the start on, one row per pair, for every learner of a result."""
    _check.instance(f"result {name}".strip(), one, Result)
    if one.losses is None:
        raise ValueError(
            f"result {name or 'to draw'} must hold its losses, which record=True keeps, but it was "
            "made without"
        )
    both = isinstance(one.losses, tuple)
    learners = ("nonreciprocal", "native") if both else ("",)
    for learner, losses in zip(learners, one.losses if both else (one.losses,), strict=True):
        rows = np.atleast_2d(np.asarray(losses, dtype=float))
        start = np.broadcast_to(np.asarray(one.start, dtype=float).reshape(-1, 1), (len(rows), 1))
        yield ", ".join(filter(None, (name, learner))), np.concatenate([start, rows], axis=1)


def _scaled(axes: "Axes", losses: np.ndarray) -> None:
    """A logarithmic scale where losses span decades; zero and what is not finite leave gaps."""
    above = losses[np.isfinite(losses) & (losses > 0)]
    if above.size and above.max() > SPAN * above.min():
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylabel("loss (0 in gaps)" if (losses == 0).any() else "loss")
    else:
        axes.set_ylabel("loss")
        axes.set_ylim(bottom=0)
