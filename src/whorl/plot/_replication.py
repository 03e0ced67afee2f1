"""Where published numbers fall among our own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from whorl import _check
from whorl.palette import FAINT, GREY
from whorl.plot._canvas import Drawn, beside, canvas, ground, ink, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSIDE = (2.5, 97.5)  # per cent
EDGE = 3.0  # what is farther out is drawn here, as an arrow


def forest(
    published: Mapping[str, float],
    distributions: Mapping[str, Any],
    *,
    title: str = "",
    ax: "Axes | None" = None,
) -> Drawn:
    """Draw each published value against the distribution of ours, one line per statistic.

    `distributions` holds values under many seeds by name, as `whorl.study.published.distribution`
    does. A line is scaled by its own central 95 %, on either side of the median, so that statistics
    of any size stand beside each other; the percentile is that of the published value among ours,
    ties by half.

    Args:
        published: Published values by name.
        distributions: Our values under many seeds, by the same names.
        title: Above the picture.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Examples:
        >>> figure = wh.plot.forest(
        ...     {"gap": 0.1}, {"gap": np.random.default_rng(0).normal(size=100)}
        ... )
    """
    for what, given in (("published", published), ("distributions", distributions)):
        if not isinstance(given, Mapping):
            raise ValueError(f"{what} must be values by name, but it is {_check.shown(given)}")
    if not published:
        raise ValueError("published must hold at least one value, but it is empty")
    axes, drawn = canvas(ax, (7.0, 1.7 + 0.26 * len(published)))
    axes.axvspan(-1, 1, color=GREY, alpha=0.18, linewidth=0, zorder=0)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    for place, (name, value) in enumerate(published.items()):
        _line(axes, place, float(_check.scalar(name, value)), _values(name, distributions))
    count = len(published)
    axes.set_yticks(range(count), list(published))
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlim(-EDGE - 0.2, EDGE + 0.2)
    axes.set_xlabel("distance from our median\n(band: our central 95 %)")
    beside(axes, -0.9, "published", 6, color=GREY)
    beside(axes, -0.9, "percentile", 60, color=GREY)
    axes.set_title(
        title or "published values (diamonds)\namong ours (bars: 50 and 95 %)",
        loc="left",
        pad=24,
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return drawn


def _values(name: str, distributions: Mapping[str, Any]) -> np.ndarray:
    if name not in distributions:
        raise ValueError(
            f"distributions must hold {name}, but they hold "
            f"{', '.join(map(str, distributions)) or 'nothing'}"
        )
    values = np.asarray(distributions[name])
    if (
        values.dtype.kind not in "fiub"
        or values.ndim != 1
        or values.size == 0
        or not np.isfinite(values).all()
    ):
        raise ValueError(f"distribution of {name} must be a row of finite numbers, but it is not")
    return values


def _line(axes: "Axes", place: int, value: float, ours: np.ndarray) -> None:
    low, first, middle, third, high = (
        float(cut) for cut in np.quantile(ours, [0.025, 0.25, 0.5, 0.75, 0.975])
    )
    percentile = 100 * (np.mean(ours < value) + np.mean(ours == value) / 2)
    inside = INSIDE[0] <= percentile <= INSIDE[1]

    def scaled(x: float) -> float:
        half = high - middle if x > middle else middle - low
        return (x - middle) / half if half > 0 else float(np.sign(x - middle)) * 2 * EDGE

    axes.plot(
        [scaled(low), scaled(high)],
        [place, place],
        color=GREY,
        linewidth=1.2,
        gid="central 95",
        zorder=2,
    )
    axes.plot(
        [scaled(first), scaled(third)],
        [place, place],
        color=GREY,
        linewidth=4,
        gid="central 50",
        zorder=2,
    )
    axes.plot(0, place, "|", color=ink(), markersize=8, zorder=3)
    at = scaled(value)
    colour, face = (theme().good, theme().good) if inside else (theme().bad, ground())
    marker = "D" if abs(at) <= EDGE else (">" if at > 0 else "<")
    axes.plot(float(np.clip(at, -EDGE, EDGE)), place, marker, color=colour, markerfacecolor=face, markeredgewidth=1.4, markersize=6,
              gid="published", zorder=4, clip_on=False)  # fmt: skip
    beside(axes, place, f"{value:.5g}", 6)
    beside(axes, place, f"{percentile:.1f} %{'' if inside else ', outside'}", 60, color=colour)
