"""Figures of a fit: flows, and columns with their intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from whorl import _check
from whorl.palette import FAINT, MARKERS
from whorl.plot._canvas import canvas, series
from whorl.regress.estimator import FlowRegressor
from whorl.regress.words import labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (5.6, 4.0)  # inches, of a picture on a figure of its own
ROOM = 24  # letters of a name
NAME = "name"  # of a mark, until its legend is there: a legend leaves out what begins with _


def flows(model: FlowRegressor, X: Any = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the transitions as bands from the parts before to the parts after (a Sankey picture).

    A band is as wide as the share that takes it: of the mean composition of `X`, or of equal parts
    without it.

    Examples:
        >>> from whorl.regress import FlowRegressor, flows
        >>> axes = flows(FlowRegressor().fit(np.asarray(x), np.asarray(y)), np.asarray(x))
    """
    check_is_fitted(model)
    axes, _ = canvas(ax, SIZE)
    matrix, (came, to) = model.matrix, _named(model)
    share = np.full(len(came), 1 / len(came))
    if X is not None:
        rows = np.asarray(X, dtype=np.float64)
        share = (rows / rows.sum(axis=1, keepdims=True)).mean(axis=0)
    bands = matrix * share
    room = 0.04
    left = _tops(share, room)
    right = _tops(bands.sum(axis=1), room)
    across = np.linspace(0, 1, 60)
    bend = across**2 * (3 - 2 * across)
    used = np.zeros(len(to))
    for j in range(len(came)):
        start = left[j]
        for i in np.argsort(-right):
            wide = bands[i, j]
            if wide <= 0:
                continue
            upper = start + (right[i] - used[i] - start) * bend
            axes.fill_between(across, upper - wide, upper, color=series(j), alpha=0.55, linewidth=0)
            start, used[i] = start - wide, used[i] + wide
    for side, at, tops, sizes, names in (
        ("right", -0.02, left, share, came),
        ("left", 1.02, right, bands.sum(axis=1), to),
    ):
        places = _apart(tops - sizes / 2, 0.05)
        for up, size, name in zip(places, sizes, names, strict=True):
            _label(axes, at, up, f"{name}  {size:.0%}", side)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.02, 1 + room * max(len(came), len(to))))
    axes.set_axis_off()
    return axes


def ternary(model: FlowRegressor, *, ax: "Axes | None" = None) -> "Axes":
    """Draw every column as a point of the triangle, with its bootstrap draws where there are any.

    For three parts after. `ax` must be of the projection "ternary".

    Examples:
        >>> from whorl.regress import FlowRegressor, ternary
        >>> axes = ternary(FlowRegressor().fit(np.asarray(x), np.asarray(y)))
    """
    import mpltern  # noqa: F401  (registers the ternary projection)

    check_is_fitted(model)
    matrix, (came, to) = model.matrix, _named(model)
    if len(to) != 3:
        raise ValueError(f"model must predict 3 parts to lie on a triangle, but it has {len(to)}")
    axes, _ = canvas(ax, SIZE, projection="ternary")
    bands = getattr(model, "intervals_", None)
    for j in range(len(came)):
        colour = series(j)
        if bands is not None:
            axes.plot(*bands.draws[:, :, j].T, ".", color=colour, alpha=0.15, markersize=3)
        axes.plot(*matrix[:, j, None], _marker(j), color=colour, markersize=7, label=NAME)
    axes.grid(color=FAINT, linewidth=0.5, alpha=0.5)
    for side, name in zip("tlr", to, strict=True):
        getattr(axes, f"set_{side}label")(name, parse_math=False)
    _legend(axes, came, loc="upper left", bbox_to_anchor=(-0.25, 1.15))
    return axes


def intervals(model: FlowRegressor, *, ax: "Axes | None" = None) -> "Axes":
    """Draw every entry of the matrix with its interval, one row per part before.

    Examples:
        >>> from whorl.regress import FlowRegressor, intervals
        >>> axes = intervals(FlowRegressor().fit(np.asarray(x), np.asarray(y)))
    """
    check_is_fitted(model)
    axes, _ = canvas(ax, SIZE)
    matrix, (came, to) = model.matrix, _named(model)
    bands = getattr(model, "intervals_", None)
    for i in range(len(to)):
        at = np.arange(len(came)) + (i - (len(to) - 1) / 2) * 0.7 / len(to)
        colour = series(i)
        if bands is not None:
            axes.hlines(at, bands.low[i], bands.high[i], color=colour, linewidth=2, alpha=0.7)
        axes.plot(matrix[i], at, _marker(i), color=colour, markersize=4, label=NAME)
    # Parts before from top to bottom: names of any length stay readable beside their rows.
    axes.set_yticks(np.arange(len(came)), came, parse_math=False)
    axes.set(xlim=(-0.03, 1.03), ylim=(len(came) - 0.5, -0.5), xlabel="share that goes to")
    axes.set_ylabel("from")
    _legend(
        axes,
        to,
        ncols=max(1, min(len(to), 44 // (max(map(len, to)) + 5))),
        loc="lower left",
        bbox_to_anchor=(0, 1),
    )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _tops(shares: np.ndarray, room: float) -> np.ndarray:
    """Upper edges of blocks of these heights, the first on top, with room between them."""
    below = np.concatenate([np.cumsum(shares[::-1])[::-1][1:], [0.0]])
    return below + shares + room * np.arange(len(shares))[::-1]


def _apart(places: np.ndarray, least: float) -> np.ndarray:
    """Heights from the top down, moved as little as keeps each `least` below the one before."""
    steps = least * np.arange(len(places))
    # What is asked for is a falling sequence once the steps are added: pooled means give it.
    groups: list[list[float]] = []
    for place in places + steps:
        groups.append([place, 1.0])
        while len(groups) > 1 and groups[-1][0] > groups[-2][0]:
            (mean, many), (last, more) = groups[-2], groups.pop()
            groups[-1] = [(mean * many + last * more) / (many + more), many + more]
    return np.concatenate([np.full(int(many), mean) for mean, many in groups]) - steps


def _marker(number: int) -> str:
    return MARKERS[number % len(MARKERS)]


def _named(model: FlowRegressor) -> tuple[list[str], list[str]]:
    """Names as far as a picture has room for them, in one direction and on one line."""
    came, to = (
        [n if len(n) <= ROOM else f"{n[: ROOM - 1]}…" for n in map(_check.plain, names)]
        for names in labels(model)
    )
    return came, to


# Names come from user files, so a dollar sign in them is not mathematics.
def _legend(axes: "Axes", names: list[str], **where: Any) -> None:
    shown = axes.legend(frameon=False, fontsize="small", **where).get_texts()
    for text, name in zip(shown, names, strict=True):
        text.set(text=name, parse_math=False)


def _label(axes: "Axes", across: float, up: float, text: str, side: Any) -> None:
    axes.text(across, up, text, ha=side, va="center", fontsize="small", parse_math=False)
