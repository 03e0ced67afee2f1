"""Foresight: what looking ahead gains, by how far it looks (no figure of the paper).

One panel per condition: imbalances from top to bottom, depths and scales from left to right. Each
shows the mean gap to the native learner, in units of the native loss, against the number of native
updates that are looked ahead, with 95 % intervals, for turns and for the controls that look as far:
shorter steps, a random direction in place of the turn, and the reciprocal direction itself.
"""

import string

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from whorl import palette
from whorl.study.figures import style
from whorl.study.figures.style import Tables

TABLES = ("conditions",)
OPTIONS: dict[str, str] = {}  # what it shows that stands in a gate: the option, and the statistic
# The arms with their names, markers, colours and lines; the turns last, so that they lie on top.
ARMS = {
    "halves": (r"steps $1, \frac{1}{2}, 0$", "v", palette.LIGHT.quiet, ":"),
    "quarters": (r"steps $1, \frac{3}{4}, \frac{1}{4}$", "^", palette.SKY, ":"),
    "random": ("random direction", "D", palette.LIGHT.other, "-."),
    "straight": ("straight: 1, 2, 0 times the score", "s", palette.LIGHT.native, "--"),
    "turns": ("turns", "o", palette.LIGHT.turning, "-"),
}
# gaps below this share of the native loss are drawn to scale, larger ones by their logarithm
LINEAR = 0.1


@style.styled
def draw(tables: Tables) -> Figure:
    """Draw the figure from the table `conditions`."""
    rows = style.taken(
        tables,
        "conditions",
        ("arm", "horizon", "depth", "beta", "scale", "native", "gap", "lower", "upper"),
    )
    if missing := [arm for arm in ARMS if arm not in rows["arm"]]:
        raise ValueError(
            f"table conditions must have the arm {missing[0]}, but it has "
            f"{', '.join(dict.fromkeys(rows['arm'].tolist()))}"
        )
    if (apart := np.flatnonzero((rows["lower"] > rows["upper"]) | (rows["native"] <= 0))).size:
        raise ValueError(
            "table conditions must have lower below upper and native above zero, but row "
            f"{apart[0]} has not"
        )
    turns = rows["arm"] == "turns"
    horizons = list(dict.fromkeys(rows["horizon"][turns].tolist()))
    betas = list(dict.fromkeys(rows["beta"][turns].tolist()))
    across = list(
        dict.fromkeys(
            zip(rows["depth"][turns].tolist(), rows["scale"][turns].tolist(), strict=True)
        )
    )
    figure = style.figure(2.0 + 3.6 * len(betas))
    grid = figure.subplots(len(betas), len(across), sharex=True, sharey=True, squeeze=False)
    panels = list(grid.ravel())
    for line, beta in zip(grid, betas, strict=True):
        for axes, (depth, scale) in zip(line, across, strict=True):
            here = (rows["beta"] == beta) & (rows["depth"] == depth) & (rows["scale"] == scale)
            panel(axes, {name: values[here] for name, values in rows.items()}, horizons)
            name = string.ascii_lowercase[panels.index(axes) % 26]
            style.letter(axes, name, rf"depth {depth:g}, $\beta={beta:g}$, $s={scale:g}$")
    _frame(grid, horizons)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles[::-1],
        labels[::-1],
        loc="outside upper center",
        ncols=len(ARMS),
        handlelength=2.6,
        columnspacing=1.2,
        title="bars: 95 % intervals",
        title_fontsize=7.5,
    )
    return figure


def panel(axes: Axes, rows: dict[str, np.ndarray], horizons: list[int]) -> None:
    """One condition."""
    axes.axhline(0, color=palette.INK, linewidth=0.7, zorder=1)
    for number, (arm, (label, marker, colour, line)) in enumerate(ARMS.items()):
        order = [
            int(np.flatnonzero((rows["arm"] == arm) & (rows["horizon"] == horizon))[0])
            for horizon in horizons
        ]
        gap, lower, upper = (
            rows[name][order] / rows["native"][order] for name in ("gap", "lower", "upper")
        )
        places = np.arange(len(horizons)) + 0.07 * (number - 2)
        bars = [np.maximum(0.0, gap - lower), np.maximum(0.0, upper - gap)]
        look = {
            "marker": marker,
            "color": colour,
            "linestyle": line,
            "markerfacecolor": colour if arm == "turns" else "white",
        }
        sizes = {
            "linewidth": 0.9,
            "markersize": 2.8,
            "markeredgewidth": 0.7,
            "capsize": 1.0,
            "elinewidth": 0.7,
        }
        axes.errorbar(places, gap, bars, label=label, gid=arm, zorder=2 + number, **look, **sizes)  # pyright: ignore[reportArgumentType]


def _frame(grid: np.ndarray, horizons: list[int]) -> None:
    """Axes that all panels share."""
    first = grid[0, 0]
    first.set_yscale("symlog", linthresh=LINEAR, linscale=1.2)
    low, high = first.get_ylim()
    ticks = [
        tick
        for tick in (-1, -0.5, -0.1, -0.05, 0, 0.05, 0.1, 0.5, 1, 10, 100)
        if low <= tick <= high
    ]
    first.set_yticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
    first.yaxis.set_minor_locator(NullLocator())
    first.set_xticks(
        range(len(horizons)), ["end" if horizon < 0 else f"{horizon}" for horizon in horizons]
    )
    for axes in grid[-1]:
        axes.set_xlabel("native updates looked ahead")
    for axes in grid[:, 0]:
        axes.set_ylabel("gap / native loss")
