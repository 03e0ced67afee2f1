"""Structural.

What closes exactly, and what finite precision can no longer tell apart (the paper's Fig. 2).

(a) Distance of the two routes to the response, by depth, with the registered tolerance. (b)
Condition numbers, with medians; open symbols have lost modes. (c) How many operators have which
rank. (d) What a turn does to one step, for the two signs of the coefficient.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from whorl import palette
from whorl.study.figures import style
from whorl.study.figures.style import Tables

TABLES = ("operators", "curvature", "statistics")
OPTIONS = {"tolerance": "factorisation.max"}  # shown, and the statistic whose gate has it
TOLERANCE = 1e-10
FULL = 6  # rank of a connected network with three sources and three outputs
# The rank, how it is drawn as a point (marker, filled), and how as a bar (colour, hatch).
RANKS = {
    6: ("o", True, palette.BLUE, ""),
    5: ("o", False, palette.GOLD, "////"),
    4: ("D", False, palette.VERMILION, "xxxx"),
}
LOWER = ("v", False, palette.PURPLE, "....")


@style.styled
def draw(tables: Tables, tolerance: float = TOLERANCE, *, single: bool = False) -> Figure:
    """Draw the figure from the tables `operators`, `curvature` and `statistics`."""
    operators = style.taken(
        tables, "operators", ("family", "depth", "rank", "condition", "factorisation")
    )
    curvature = style.taken(
        tables, "curvature", ("example", "step", "coefficient", "even_difference")
    )
    found = style.statistics(tables, *(f"slope.{name}" for name in np.unique(curvature["example"])))
    for name, least in (("factorisation", 0.0), ("condition", 1.0)):
        if (operators[name] < least).any():
            raise ValueError(
                f"column {name} of table operators must be at least {least:g}, but its smallest is "
                f"{operators[name].min():g}"
            )
    figure, (first, second, third, fourth) = style.panels((2, 2), 11.2, single)
    factorisation(first, operators, tolerance)
    conditions(second, operators)
    ranks(third, operators)
    differences(fourth, curvature, found)
    return figure


def factorisation(axes: Axes, rows: dict[str, np.ndarray], tolerance: float) -> None:
    """Panel a; a residual of exactly zero stands at a labelled floor."""
    style.letter(axes, "a", r"layer formula against $K=JMJ^{\mathsf{T}}$")
    values, depths = rows["factorisation"], np.unique(rows["depth"])
    zero = values == 0
    smallest = float(values[~zero].min()) if (~zero).any() else 1e-16
    floor = 10.0 ** (np.floor(np.log10(smallest)) - 1)
    axes.set_yscale("log")
    for place, depth in enumerate(depths):
        here = rows["depth"] == depth
        across = place + style.spread(int(here.sum()))
        plain = values[here] > 0
        axes.plot(
            across[plain],
            values[here][plain],
            "o",
            color=palette.BLUE,
            markersize=2.8,
            gid=f"depth {depth}",
        )
        if not plain.all():
            axes.plot(
                across[~plain],
                np.full((~plain).sum(), floor),
                "x",
                color=palette.BLUE,
                markersize=3,
                gid=f"zero {depth}",
                clip_on=False,
            )
    axes.axhline(tolerance, color=palette.INK, linestyle="--", linewidth=0.9)
    _beside(axes, f"tolerance {_power(tolerance)}", (1.0, tolerance), -2, ha="right", va="top")
    _beside(
        axes,
        f"largest {_power(float(values.max()))}",
        (0.02, float(values.max()) or floor),
        3,
        va="bottom",
    )
    if zero.any():
        axes.axhline(floor, color=palette.GREY, linestyle=":", linewidth=0.7)
        _beside(axes, "exactly 0", (1.0, floor), 2, ha="right")
    axes.set_ylim(floor / 2, 10 * max(tolerance, float(values.max())))
    axes.yaxis.set_major_locator(LogLocator(numticks=6))
    _depths(axes, depths)
    axes.set_ylabel("relative Frobenius distance")


def conditions(axes: Axes, rows: dict[str, np.ndarray]) -> None:
    """Panel b."""
    style.letter(axes, "b", "strongest over weakest retained mode")
    depths = np.unique(rows["depth"])
    axes.set_yscale("log")
    for rank in _ranks(rows):
        marker, filled, colour, _ = RANKS.get(rank, LOWER)
        across, up = [], []
        for place, depth in enumerate(depths):
            here = np.flatnonzero(rows["depth"] == depth)
            chosen = rows["rank"][here] == rank
            across += (place + style.spread(here.size))[chosen].tolist()
            up += rows["condition"][here][chosen].tolist()
        face = colour if filled else "white"
        axes.plot(
            across,
            up,
            marker,
            color=colour,
            markerfacecolor=face,
            markeredgewidth=0.8,
            markersize=3.4,
            label=f"rank {rank}",
            zorder=2,
        )
    medians = [float(np.median(rows["condition"][rows["depth"] == depth])) for depth in depths]
    axes.hlines(
        medians,
        np.arange(depths.size) - 0.38,
        np.arange(depths.size) + 0.38,
        colors=palette.FAINT,
        linewidth=4.0,
        label="median",
        zorder=1,
    )
    _depths(axes, depths)
    axes.set_ylabel("condition number")
    axes.legend(loc="upper left")


def ranks(axes: Axes, rows: dict[str, np.ndarray]) -> None:
    """Panel c."""
    style.letter(axes, "c", "operators by numerical rank")
    depths = np.unique(rows["depth"])
    bottom = np.zeros(depths.size)
    for rank in _ranks(rows):
        _, filled, colour, hatch = RANKS.get(rank, LOWER)
        counts = np.array(
            [np.sum((rows["depth"] == depth) & (rows["rank"] == rank)) for depth in depths]
        )
        some = np.flatnonzero(counts)  # a bar of no height would still have an edge
        if not some.size:
            continue  # and a legend without bars would show the colour of others
        bars = axes.bar(some, counts[some], bottom=bottom[some], width=0.62, color=colour if filled else "white", edgecolor=colour,
                        hatch=hatch, linewidth=0.8, label=f"rank {rank}")  # fmt: skip
        for bar, count in zip(bars, counts[some], strict=True):
            at = bar.get_x() + bar.get_width() / 2, bar.get_y() + count / 2
            box = (
                None
                if filled
                else {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
            )
            axes.text(
                *at,
                str(count),
                ha="center",
                va="center",
                color="white" if filled else palette.INK,
                bbox=box,
            )
        bottom += counts
    axes.set_ylim(0, 1.3 * bottom.max())
    whole = np.asarray(MaxNLocator(5, integer=True).tick_values(0, bottom.max()))
    axes.set_yticks(sorted({*whole[whole < 0.9 * bottom.max()].tolist(), float(bottom.max())}))
    _depths(axes, depths)
    axes.set_ylabel("operators")
    axes.legend(loc="upper left", ncols=4)


def differences(axes: Axes, rows: dict[str, np.ndarray], found: dict[str, float]) -> None:
    """Panel d.

    Sizes of the even difference on log-log axes, each with a guide of slope two through its largest
    step.
    """
    style.letter(axes, "d", "turned less straight, after one step")
    looks = {
        "negative": ("o", palette.LIGHT.helps, r"\mathcal{Q}<0"),
        "positive": ("s", palette.LIGHT.hurts, r"\mathcal{Q}>0"),
    }
    for number, example in enumerate(dict.fromkeys(rows["example"].tolist())):
        here = rows["example"] == example
        marker, colour, sign = looks.get(
            example,
            (palette.MARKERS[number % 8], palette.SERIES[number % 8], rf"\mathrm{{{example}}}"),
        )
        step, size = rows["step"][here], np.abs(rows["even_difference"][here])
        axes.loglog(
            step,
            size,
            marker,
            color=colour,
            label=rf"${sign}$, fitted slope {found[f'slope.{example}']:.6f}",
            zorder=3,
        )
        largest = int(np.argmax(step))
        ends = np.array([step.min() / 1.5, step.max() * 1.5])
        axes.loglog(
            ends,
            size[largest] * (ends / step[largest]) ** 2,
            "--",
            color=palette.GREY,
            linewidth=0.8,
            gid=f"guide {example}",
            zorder=1,
        )
    axes.plot([], [], "--", color=palette.GREY, linewidth=0.8, label="slope two")
    axes.set_xlabel(r"step $\eta$")
    axes.set_ylabel(r"$|\,$mean of both turns $-$ no turn$\,|$")
    axes.legend(loc="upper left")
    axes.set_ylim(top=axes.get_ylim()[1] * 30)


def _ranks(rows: dict[str, np.ndarray]) -> list[int]:
    return sorted({FULL, FULL - 1, *rows["rank"].tolist()}, reverse=True)


def _depths(axes: Axes, depths: np.ndarray) -> None:
    axes.set_xlim(-0.6, depths.size - 0.4)
    axes.set_xticks(np.arange(depths.size), [str(int(depth)) for depth in depths])
    axes.set_xlabel("depth (trainable layers)")


def _beside(axes: Axes, text: str, at: tuple[float, float], above: float, **look: Any) -> None:
    """Words at a height of the data and a share of the width."""
    axes.annotate(
        text,
        at,
        xycoords=("axes fraction", "data"),
        xytext=(0, above),
        textcoords="offset points",
        **look,
    )


def _power(value: float) -> str:
    """A number as a power of ten, for mathtext."""
    if value == 0:
        return "0"
    power = int(np.floor(np.log10(value) + 1e-12))
    lead = f"{value / 10.0**power:.1f}"
    return f"$10^{{{power}}}$" if lead == "1.0" else rf"${lead}\times10^{{{power}}}$"
