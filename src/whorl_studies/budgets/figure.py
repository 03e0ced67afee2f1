"""Budgets: how far laws that turn end below direct feedback of the same gain (no figure of the
paper).

One row per setting and gain, one column per depth. Each panel shows the advantage over direct
feedback, in decades of loss, against the number of updates, with 95 % intervals: a colour for each
law, a marker for each imbalance.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from whorl import palette
from whorl.study.figures import style
from whorl.study.figures.style import Tables

TABLES = ("advantages",)
OPTIONS: dict[str, str] = {}  # what it shows that stands in a gate: the option, and the statistic
LAWS = {
    "critical": ("critical turn", palette.LIGHT.turning, "-"),
    "paired": ("paired turns", palette.LIGHT.native, "-"),
    "kept": ("paired, cosine kept", palette.LIGHT.other, "--"),
    "geometric": ("geometric-mean law", palette.LIGHT.turning, ":"),
}
MARKERS = "osD^vP"
NAMES = {"selected": "one sample shown", "joint": "all samples shown"}


@style.styled
def draw(tables: Tables) -> Figure:
    """Draw the figure from the table `advantages`."""
    names = ("setting", "law", "rival", "depth", "beta", "gain", "updates")
    rows = style.taken(tables, "advantages", (*names, "advantage", "lower", "upper"))
    if (apart := np.flatnonzero(rows["lower"] > rows["upper"])).size:
        raise ValueError(
            f"table advantages must have lower below upper, but row {apart[0]} has not"
        )
    rows = {name: values[rows["rival"] == "direct"] for name, values in rows.items()}
    if not len(rows["law"]):
        raise ValueError("table advantages must have the rival direct, but it has none")
    depths, betas = (list(dict.fromkeys(rows[name].tolist())) for name in ("depth", "beta"))
    lines = list(dict.fromkeys(zip(rows["setting"].tolist(), rows["gain"].tolist(), strict=True)))
    figure = style.figure(2.2 + 3.4 * len(lines))
    grid = figure.subplots(len(lines), len(depths), sharey="row", squeeze=False)
    for line, (setting, gain) in zip(grid, lines, strict=True):
        for axes, depth in zip(line, depths, strict=True):
            here = (rows["setting"] == setting) & (rows["gain"] == gain) & (rows["depth"] == depth)
            panel(axes, {name: values[here] for name, values in rows.items()}, betas)
            axes.set_title(f"{NAMES.get(setting, setting)}, depth {depth:g}, gain {gain:g}")
        line[0].set_ylabel("decades below direct")
    for axes in grid[-1]:
        axes.set_xlabel("updates")
    found: dict[str, object] = {}
    for axes in grid.ravel():
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=4)  # pyright: ignore[reportArgumentType]
    return figure


def panel(axes: Axes, rows: dict[str, np.ndarray], betas: list[float]) -> None:
    """One setting, gain and depth."""
    axes.axhline(0, color=palette.INK, linewidth=0.7, zorder=1)
    axes.set_xscale("log")
    read = list(dict.fromkeys(rows["updates"].tolist()))
    # Short labels: 4860 and 10000 are neighbours on a logarithmic axis.
    axes.set_xticks(read, [f"{one:g}" if one < 1000 else f"{one / 1000:.2g}k" for one in read])
    axes.xaxis.set_minor_locator(NullLocator())
    for law, (label, colour, line) in LAWS.items():
        for number, beta in enumerate(betas):
            here = (rows["law"] == law) & (rows["beta"] == beta)
            if not here.any():
                continue
            middle, low, high = (rows[name][here] for name in ("advantage", "lower", "upper"))
            axes.errorbar(
                rows["updates"][here] * (1 + 0.05 * (number - 1)),
                middle,
                [np.maximum(0.0, middle - low), np.maximum(0.0, high - middle)],
                label=rf"{label}, $\beta={beta:g}$",
                gid=f"{law}-{beta:g}",
                color=colour,
                linestyle=line,
                marker=MARKERS[number % len(MARKERS)],
                markerfacecolor=colour if line == "-" else "white",
                markersize=2.8,
                linewidth=0.9,
                markeredgewidth=0.7,
                elinewidth=0.7,
                capsize=1.0,
            )
