"""Threshold.

How often a turn would help, and how well one sample's curvature ratio tells (the paper's Fig. 3).

(a) Share of task families with a negative coefficient against the imbalance, for every depth, with
binomial standard errors. (b) Coefficient of the whole data set against the ratio of the selected
sample; what the threshold of one gets wrong is ringed.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from whorl import palette
from whorl.study.figures import style
from whorl.study.figures.style import Tables

TABLES = ("configurations", "statistics")
OPTIONS: dict[str, str] = {}  # what it shows that stands in a gate: the option, and the statistic
COLUMNS = ("family", "depth", "beta", "coefficient", "ratio", "favourable", "predicted")
LINEAR_RATIO, LINEAR_COEFFICIENT = (
    1.0,
    0.01,
)  # inside these the axes are linear, outside logarithmic


@style.styled
def draw(tables: Tables, *, single: bool = False) -> Figure:
    """Draw the figure from the tables `configurations` and `statistics`."""
    rows = style.taken(tables, "configurations", COLUMNS)
    for flag, meant in (("favourable", rows["coefficient"] < 0), ("predicted", rows["ratio"] > 1)):
        if (apart := np.flatnonzero(rows[flag] != meant)).size:
            raise ValueError(
                f"column {flag} of table configurations must follow from its row, but row "
                f"{apart[0]} contradicts it"
            )
    found = style.statistics(tables, *(f"accuracy{end}" for end in ("", ".lower", ".upper")))
    figure, (left, right) = style.panels((1, 2), 7.6, single, (1, 1.35))
    shares(left, rows)
    scatter(right, rows, found)
    return figure


def shares(axes: Axes, rows: dict[str, np.ndarray]) -> None:
    """Panel a."""
    style.letter(axes, "a", "how often a turn helps")
    betas, depths = np.unique(rows["beta"]), np.unique(rows["depth"])
    gap = (np.min(np.diff(betas)) if betas.size > 1 else 1.0) * 0.09
    for number, depth in enumerate(depths):
        cells = [
            rows["favourable"][(rows["depth"] == depth) & (rows["beta"] == beta)] for beta in betas
        ]
        share = np.array([cell.mean() if cell.size else np.nan for cell in cells])
        error = np.sqrt(share * (1 - share) / np.maximum(1, [cell.size for cell in cells]))
        axes.errorbar(
            betas + gap * (number - (depths.size - 1) / 2),
            share,
            error,
            color=palette.SERIES[number % 8],
            marker=palette.MARKERS[number % 8],
            linestyle=palette.LINES[number % 8],
            capsize=1.6,
            elinewidth=0.8,
            label=architecture(int(depth)),
            clip_on=False,
            zorder=3,
        )
    axes.set_xticks(betas, [f"{beta:g}" for beta in betas])
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(r"routing imbalance $\beta$")
    axes.set_ylabel(r"fraction of families with $\mathcal{Q}<0$")
    axes.legend(loc="lower right", title="bars: one standard error", title_fontsize=7.5)


def architecture(depth: int) -> str:
    """The depth, with the paper's name of the architecture.

    One layer, or a depth with hidden layers of width three.
    """
    return "depth 1 (L1)" if depth == 1 else f"depth {depth} (L{depth}-b3)"


def scatter(axes: Axes, rows: dict[str, np.ndarray], found: dict[str, float]) -> None:
    """Panel b."""
    style.letter(axes, "b", "coefficient against the ratio that predicts its sign")
    ratio, coefficient, helps = rows["ratio"], rows["coefficient"], rows["favourable"] == 1
    wrong = rows["favourable"] != rows["predicted"]
    axes.set_xscale("symlog", linthresh=LINEAR_RATIO, linscale=0.9)
    axes.set_yscale("symlog", linthresh=LINEAR_COEFFICIENT, linscale=0.6)
    _limits(axes, ratio, coefficient)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    shaded: dict[str, Any] = {"color": palette.PALE, "alpha": 0.55, "linewidth": 0, "zorder": 0}
    for x, y in (([left, 1], [bottom, 0]), ([1, right], [0, top])):
        axes.fill_between(x, *y, **shaded)
    axes.axhline(0, color=palette.GREY, linewidth=0.6, zorder=1)
    axes.axvline(1, color=palette.INK, linewidth=1.0, linestyle="--", zorder=1)
    kinds = (
        (helps, "o", palette.LIGHT.helps, r"$\mathcal{Q}<0$: turn helps"),
        (~helps, "^", palette.LIGHT.hurts, r"$\mathcal{Q}\geq0$: turn hurts"),
    )
    for where, marker, colour, label in kinds:
        axes.scatter(
            ratio[where],
            coefficient[where],
            s=9,
            marker=marker,
            color=colour,
            linewidths=0,
            alpha=0.75,
            label=label,
            zorder=2,
        )
    rings = f"misclassified: {int(wrong.sum())} of {ratio.size}"
    axes.scatter(
        ratio[wrong],
        coefficient[wrong],
        s=30,
        facecolors="none",
        edgecolors=palette.LIGHT.wrong,
        linewidths=0.9,
        label=rings,
        zorder=4,
    )
    axes.annotate(
        "threshold",
        (1, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-3, 0),
        textcoords="offset points",
        ha="right",
        va="top",
    )
    axes.set_xlabel(r"curvature ratio $\chi_s$ of the selected sample")
    axes.set_ylabel(r"coefficient $\mathcal{Q}$, all samples")
    look = {"title": "shaded: the threshold is wrong", "title_fontsize": 7.5}
    axes.legend(loc="upper right", handletextpad=0.2, alignment="left", **look)
    numbers = "\n".join(
        f"{label} {_number(found, name)}"
        for label, name in (("AUC", "auc"), ("accuracy", "accuracy"))
    )
    axes.text(0.02, 0.04, numbers, transform=axes.transAxes, ha="left", va="bottom", fontsize=7.5)


def _number(found: dict[str, float], name: str) -> str:
    """A statistic with its interval.

    Where all turns help, or none, there is nothing to rank and no area.
    """
    if name not in found:
        return "undefined: one sign only"
    return style.interval(found[name], found[f"{name}.lower"], found[f"{name}.upper"])


def _limits(axes: Axes, ratio: np.ndarray, coefficient: np.ndarray) -> None:
    """Room around the points, and ticks that a symmetric logarithm can be read by."""
    right, top = max(float(ratio.max()), 2.0), max(float(coefficient.max()), 2 * LINEAR_COEFFICIENT)
    axes.set_xlim(min(1.25 * float(ratio.min()), -1.25), 2.0 * right)
    axes.set_ylim(min(2.5 * float(coefficient.min()), -0.1), 30 * top)
    for axis, first, limits in (
        (axes.xaxis, 0, axes.get_xlim()),
        (axes.yaxis, -2, axes.get_ylim()),
    ):
        powers = range(first, int(np.log10(max(np.abs(limits)))) + 1)
        ticks = [
            (sign * 10.0**power, f"${'-' * (sign < 0)}{'1' if power == 0 else f'10^{{{power}}}'}$")
            for sign in (-1, 1)
            for power in powers
        ]
        kept = [
            (place, text) for place, text in [(0.0, "0"), *ticks] if limits[0] <= place <= limits[1]
        ]
        axis.set_ticks([place for place, _ in kept], [text for _, text in kept])
        axis.set_minor_locator(NullLocator())
