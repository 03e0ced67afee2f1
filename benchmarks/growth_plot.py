"""The picture of `growth.py`.

Processor time above, memory below, a column for each size, all relative to the smallest.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

mpl.use("Agg")

COLUMNS = ["width", "depth", "samples", "pairs", "updates"]
COLOURS = {  # Okabe and Ito's, told apart by every kind of eye
    "K @ v": "#0072B2",
    "Q": "#D55E00",
    "Q with scores": "#009E73",
    "train_many": "#0072B2",
    "train_many, sums": "#D55E00",
}
MARKS = dict(zip(COLOURS, "os^os", strict=True))


def draw(seen, exponent, path):
    """One panel for each size and kind of cost."""
    columns = [varied for varied in COLUMNS if any(size == varied for _, size in seen)]
    figure, axes = plt.subplots(
        2, len(columns), figsize=(12, 6.2), sharex="col", layout="constrained"
    )
    for column, varied in enumerate(columns):
        lines = {name: points for (name, size), points in seen.items() if size == varied}
        for row in (0, 1):
            panel(axes[row, column], varied, lines, row + 1, exponent)
        axes[0, column].set_title(f"in {varied}", fontsize=12)
        axes[1, column].set_xlabel(varied, fontsize=11)
    axes[0, 0].set_ylabel("processor time, relative", fontsize=11)
    axes[1, 0].set_ylabel("memory, relative", fontsize=11)
    figure.supxlabel(
        "numbers: measured exponents    dotted: quadratic in width, linear in all else",
        fontsize=10,
        color="0.3",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def panel(ax, varied, lines, at, exponent):
    """Lines with their exponents, and a dotted guide.

    Quadratic in width, linear in everything else.
    """
    sizes = np.array([point[0] for point in next(iter(lines.values()))], dtype=float)
    factor = sizes / sizes[0]
    slope = 2 if varied == "width" else 1
    ax.plot(sizes, factor**slope, ":", color="0.5", lw=1.2, zorder=0)
    for name, points in lines.items():
        values = np.array([point[at] for point in points]) / points[0][at]
        ax.plot(sizes, values, color=COLOURS[name], marker=MARKS[name], ms=4, lw=1.6)
    labels(ax, [(name, exponent(points, at)) for name, points in lines.items()])
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes], fontsize=9)
    ax.minorticks_off()
    ax.set_ylim(top=ax.get_ylim()[1] ** 1.5)  # room for the labels above the lines
    ax.tick_params(labelsize=9)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.spines[["top", "right"]].set_visible(False)


def labels(ax, entries):
    """Names and exponents in the colours of their lines, in the corner that rising lines leave
    empty.
    """
    for number, (name, slope) in enumerate(entries):
        ax.text(
            0.03,
            0.97 - 0.085 * number,
            f"{name}: {slope:.2f}",
            transform=ax.transAxes,
            va="top",
            color=COLOURS[name],
            fontsize=10,
        )
