"""Rules: what three ways to train a circuit do to its loop (no figure of the paper).

(a) The skew share of the loop by the number of nodes, one point per circuit. (b) The discriminant
of the characteristic polynomial against the slowest decay of the symmetric part: below zero a loop
turns, left of zero some squared error rises at once. (c) The bias of equilibrium propagation
against the nudge, with lines of slope one and two.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from whorl import palette
from whorl.study.figures import style
from whorl.study.figures.style import Tables

TABLES = ("circuits", "loops", "nudges")
OPTIONS: dict[str, str] = {}  # what it shows that stands in a gate: the option, and the statistic
RULES = {
    "coupled": ("coupled learning", "o", palette.LIGHT.other),
    "alignment": ("feedback alignment", "^", palette.LIGHT.turning),
    "propagation": ("equilibrium propagation", "s", palette.LIGHT.native),
}
WAYS = {
    "one-sided": ("one-sided", "o", palette.LIGHT.other, 1),
    "centred": ("centred", "s", palette.LIGHT.native, 2),
}
LEAST = 1e-17  # a skew share of exactly zero is drawn here


@style.styled
def draw(tables: Tables, *, single: bool = False) -> Figure:
    """Draw the figure from the tables `circuits`, `loops` and `nudges`."""
    judged = [
        f"{name}_{what}"
        for name in ("coupled", "alignment")
        for what in ("discriminant", "slowest")
    ]
    skews = [f"{name}_skew" for name in RULES]
    rows = style.taken(tables, "circuits", ["nodes", "circuit", *skews, *judged])
    loops = style.taken(tables, "loops", ["nodes", "circuit", "coupled", "alignment"])
    if loops["nodes"].size != 9 * rows["nodes"].size:
        raise ValueError(
            "table loops must have nine rows per circuit, but it has "
            f"{loops['nodes'].size} for {rows['nodes'].size} circuits"
        )
    nudges = style.taken(tables, "nudges", ["way", "nudge", "bias"])
    figure, axes = style.panels((1, 3), 6.6, single)
    shares(axes[0], rows)
    spectra(axes[1], rows, loops)
    biases(axes[2], nudges)
    return figure


def shares(axes: Axes, rows: dict[str, np.ndarray]) -> None:
    """Panel a."""
    style.letter(axes, "a", "how far from a gradient")
    sizes = np.unique(rows["nodes"])
    for number, (name, (label, marker, colour)) in enumerate(RULES.items()):
        for place, size in enumerate(sizes):
            values = np.maximum(rows[f"{name}_skew"][rows["nodes"] == size], LEAST)
            across = place + 0.26 * (number - 1) + style.spread(values.size, 0.1)
            axes.scatter(
                across,
                values,
                s=5,
                marker=marker,
                color=colour,
                alpha=0.6,
                linewidths=0,
                label=label if place == 0 else None,
                gid=name,
            )
    axes.set_yscale("log")
    axes.set_ylim(LEAST / 3, 30)
    axes.set_xticks(range(sizes.size), [f"{size:g}" for size in sizes])
    axes.set_xlabel("nodes of the circuit")
    axes.set_ylabel("skew share of the loop")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.72), handletextpad=0.2)


def spectra(axes: Axes, rows: dict[str, np.ndarray], loops: dict[str, np.ndarray]) -> None:
    """Panel b."""
    style.letter(axes, "b", "which turn, which rise")
    for name in ("coupled", "alignment"):
        label, marker, colour = RULES[name]
        sizes = np.sqrt(np.sum(loops[name].reshape(-1, 9) ** 2, axis=1))
        turning = rows[f"{name}_discriminant"]
        axes.scatter(
            rows[f"{name}_slowest"] / sizes,
            turning,
            s=8,
            marker=marker,
            color=colour,
            alpha=0.6,
            linewidths=0,
            gid=name,
            label=f"{label}: {int(np.sum(turning < 0))} turn",
        )
    axes.axhline(0, color=palette.INK, linewidth=0.8, linestyle="--", zorder=1)
    axes.axvline(0, color=palette.GREY, linewidth=0.6, zorder=1)
    axes.set_yscale("symlog", linthresh=1e-5, linscale=0.6)
    axes.set_ylim(bottom=-30)  # room for the legend below the points
    axes.set_xlabel("slowest decay / size of the loop")
    axes.set_ylabel("discriminant (below 0: turns)")
    axes.legend(loc="lower right", handletextpad=0.2)


def biases(axes: Axes, rows: dict[str, np.ndarray]) -> None:
    """Panel c."""
    style.letter(axes, "c", "what a finite nudge costs")
    nudges = np.unique(rows["nudge"])
    for name, (label, marker, colour, power) in WAYS.items():
        bands = np.array(
            [
                np.quantile(
                    rows["bias"][(rows["way"] == name) & (rows["nudge"] == nudge)],
                    [0.05, 0.5, 0.95],
                )
                for nudge in nudges
            ]
        ).T
        reach = [bands[1] - bands[0], bands[2] - bands[1]]
        axes.errorbar(
            nudges,
            bands[1],
            reach,
            marker=marker,
            color=colour,
            linestyle="none",
            capsize=1.6,
            elinewidth=0.8,
            label=label,
            gid=name,
        )
        guide = bands[1][-1] * (nudges / nudges[-1]) ** power
        axes.plot(nudges, guide, color=colour, linewidth=0.8, linestyle=("--", ":")[power - 1])
        axes.annotate(
            f"slope {power}", (nudges[0], guide[0]), xytext=(4, -9), textcoords="offset points"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(nudges, [f"{nudge:g}" for nudge in nudges])
    axes.minorticks_off()
    axes.set_xlabel("nudge, in 1 / trace Z")
    axes.set_ylabel("bias of the velocity")
    axes.legend(loc="lower right")
