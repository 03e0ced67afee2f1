"""Horizon: what a better step recovers, and what drift takes back (the paper's Fig. 4).

(a) Final-loss gaps to the native learner, trial by trial, with means and intervals. (b) The step
and the drift term of the account. (c) Adaptive gain over the step-matched policy for every
condition, with intervals.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from whorl import palette
from whorl.study.figures import style
from whorl.study.figures.style import Tables

if TYPE_CHECKING:
    import polars

TABLES = ("trials", "conditions", "statistics")
OPTIONS: dict[str, str] = {}  # what it shows that stands in a gate: the option, and the statistic
# The policies, their names, markers, colours and hatches.
POLICIES = {
    "step_matched": ("step-matched", "s", palette.LIGHT.matched, "////"),
    "adaptive": ("adaptive", "o", palette.LIGHT.turning, ""),
}


@style.styled
def draw(tables: Tables, *, single: bool = False) -> Figure:
    """Draw the figure from the tables `trials`, `conditions` and `statistics`."""
    trials = style.taken(tables, "trials", ("trial", "policy", "gap", "step", "drift"))
    conditions = style.taken(
        tables, "conditions", ("depth", "beta", "scale", "gain", "lower", "upper")
    )
    needed = [f"{name}.{policy}" for name in ("gap", "step", "drift") for policy in POLICIES]
    found = style.statistics(
        tables,
        *needed,
        *(f"gap.{policy}.{end}" for policy in POLICIES for end in ("lower", "upper")),
    )
    one, other = (np.unique(trials["trial"][trials["policy"] == policy]) for policy in POLICIES)
    if trials["trial"].size != 2 * one.size or not np.array_equal(one, other):
        raise ValueError(
            f"table trials must have every trial once under each of {', '.join(POLICIES)}, but it "
            "has not"
        )
    if (apart := np.flatnonzero(conditions["lower"] > conditions["upper"])).size:
        raise ValueError(
            f"table conditions must have lower below upper, but row {apart[0]} has not"
        )
    height = max(7.8, 1.6 + 0.42 * conditions["gain"].size)
    figure, (first, second, third) = style.panels((1, 3), height, single, (0.85, 1, 1.45))
    gaps(first, trials, found)
    terms(second, trials, found)
    gains(third, conditions)
    return figure


def gaps(axes: Axes, trials: dict[str, np.ndarray], found: dict[str, float]) -> None:
    """Panel a."""
    style.letter(axes, "a", "final gap to native")
    both = [_by_trial(trials, policy, "gap") for policy in POLICIES]
    for pair in zip(*both, strict=True):
        axes.plot([0, 1], pair, color=palette.GREY, linewidth=0.5, alpha=0.8, gid="trial", zorder=1)
    for place, (policy, (_, marker, colour, _)) in enumerate(POLICIES.items()):
        axes.plot(
            np.full(both[place].size, place),
            both[place],
            marker,
            color=colour,
            markersize=2.8,
            alpha=0.8,
            gid=f"trials {policy}",
        )
        mean, lower, upper = (found[f"gap.{policy}{end}"] for end in ("", ".lower", ".upper"))
        side = place + (0.24 if place else -0.24)
        bars = [[max(0.0, mean - lower)], [max(0.0, upper - mean)]]
        axes.errorbar([side], [mean], bars, fmt="D", color=colour, markeredgecolor=palette.INK, markersize=5.5, capsize=2.5, elinewidth=1.2,
                      ecolor=palette.INK, gid=f"mean {policy}", zorder=4)  # fmt: skip
    axes.axhline(0, color=palette.INK, linewidth=0.8, linestyle="--", zorder=0)
    top, bottom = max(0.0, trials["gap"].max()), min(0.0, trials["gap"].min())
    axes.set_ylim(bottom - 0.09 * ((top - bottom) or 1.0), top + 0.24 * ((top - bottom) or 1.0))
    axes.annotate(
        "native", (0.5, 0), xytext=(0, -2.5), textcoords="offset points", ha="center", va="top"
    )
    whole = {"color": palette.GREY, "markeredgecolor": palette.INK, "markersize": 5.5}
    axes.plot([], [], "-D", label="mean, 95 % interval", **whole)
    axes.legend(loc="upper center")
    axes.set_xlim(-0.5, 1.5)
    axes.set_xticks([0, 1], [label for label, *_ in POLICIES.values()])
    power = 3 * int(np.floor(np.log10(max(top, -bottom)) / 3)) if max(top, -bottom) > 0 else 0
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 10.0**power:g}")
    axes.set_ylabel(rf"final-loss gap ($10^{{{power}}}$; above 0: native ends lower)")


def terms(axes: Axes, trials: dict[str, np.ndarray], found: dict[str, float]) -> None:
    """Panel b."""
    style.letter(axes, "b", "step and drift terms")
    for place, term in enumerate(("step", "drift")):
        for shift, (policy, (label, marker, colour, hatch)) in zip(
            (-0.21, 0.21), POLICIES.items(), strict=True
        ):
            value, single = found[f"{term}.{policy}"], _by_trial(trials, policy, term)
            axes.bar(place + shift, value, 0.38, facecolor="white" if hatch else colour, edgecolor=colour, hatch=hatch, linewidth=0.8,
                     alpha=0.9, label=label if place == 0 else None, zorder=2)  # fmt: skip
            across = place + shift + style.spread(single.size, 0.13)
            axes.plot(
                across,
                single,
                marker,
                color=palette.INK,
                markersize=1.6,
                alpha=0.55,
                gid=f"{term} {policy}",
                zorder=3,
            )
    means = [found[f"{term}.{policy}"] for term in ("step", "drift") for policy in POLICIES]
    top, bottom = (pick([*trials["step"], *trials["drift"], *means, 0.0]) for pick in (max, min))
    reach, names = (top - bottom) or 1.0, []
    for term in ("step", "drift"):
        change = found[f"{term}.adaptive"] - found[f"{term}.step_matched"]
        names.append(f"{term} term\n${change:+.4f}$")
    recovered, taken = (
        found[f"{term}.step_matched"] - found[f"{term}.adaptive"] for term in ("step", "drift")
    )
    words = "adaptive less step-matched"
    if recovered > 0 > taken:
        words += f"\ndrift takes back {-taken / recovered:.0%} of that"
    axes.set_xlabel(words)
    axes.axhline(0, color=palette.INK, linewidth=0.8, zorder=4)
    axes.set_ylim(bottom - 0.05 * reach, top + 0.2 * reach)
    axes.set_xlim(-0.55, 1.55)
    axes.set_xticks([0, 1], names)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("part of the gap")
    axes.legend(loc="upper right")


def gains(axes: Axes, rows: dict[str, np.ndarray]) -> None:
    """Panel c: colour and filling tell the depth, the marker tells the scale."""
    style.letter(axes, "c", "adaptive gain over step-matched")
    depths, scales = np.unique(rows["depth"]).tolist(), np.unique(rows["scale"]).tolist()
    order = np.lexsort((rows["scale"], rows["depth"], rows["beta"]))
    for place, row in enumerate(order):
        look = _look(depths.index(rows["depth"][row]), scales.index(rows["scale"][row]))
        gain, low, high = (float(rows[name][row]) for name in ("gain", "lower", "upper"))
        bars = [[max(0.0, gain - low)], [max(0.0, high - gain)]]
        axes.errorbar(
            [gain],
            [place],
            xerr=bars,
            linestyle="",
            capsize=1.8,
            elinewidth=1.0,
            gid="condition",
            **look,
        )
    axes.vlines(0, -0.6, order.size - 0.5, colors=palette.INK, linewidth=0.8, zorder=1)
    _gain_axis(axes, np.concatenate([rows["gain"], rows["lower"], rows["upper"]]))
    betas = rows["beta"][order]
    groups = {float(beta): np.flatnonzero(betas == beta) for beta in np.unique(betas)}
    for places in list(groups.values())[1::2]:
        axes.axhspan(
            places[0] - 0.5, places[-1] + 0.5, color=palette.PALE, alpha=0.5, linewidth=0, zorder=0
        )
    rows_said = [
        rf"$\beta={rows['beta'][row]:g}$, depth {rows['depth'][row]:g}, $s={rows['scale'][row]:g}$"
        for row in order
    ]
    axes.set_yticks(np.arange(order.size), rows_said, fontsize=6.0)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)  # the line of zero is the only one
    axes.set_xlabel("gain (right of 0: adaptive ends lower)")
    handles = [
        Line2D([], [], label=f"depth {depth:g}", linestyle="", **_look(n, 0))
        for n, depth in enumerate(depths)
    ]
    handles += [
        Line2D([], [], label=rf"$s={scale:g}$", linestyle="", **_look(6, n))
        for n, scale in enumerate(scales)
    ]
    columns = min(len(handles), 4)
    axes.set_ylim(
        betas.size - 0.5 + 1.15 * (1 - (-len(handles) // columns)), -0.6
    )  # the legend has rows of its own
    axes.legend(
        handles=handles,
        loc="lower center",
        ncols=columns,
        columnspacing=1.4,
        handlelength=1.0,
        handletextpad=0.4,
        title="bars: 95 % intervals",
        title_fontsize=7.5,
    )


def _look(depth: int, scale: int) -> dict[str, Any]:
    """How a condition is drawn.

    Every second depth has open markers, so that neighbours differ in grey.
    """
    colour = palette.SERIES[depth % 8]
    face = "white" if depth % 2 else colour
    return {
        "color": colour,
        "marker": palette.MARKERS[scale % 8],
        "markerfacecolor": face,
        "markersize": 4.4,
        "markeredgewidth": 1.0,
    }


def _by_trial(trials: dict[str, np.ndarray], policy: str, column: str) -> np.ndarray:
    """One value per trial, in the order of trials."""
    here = trials["policy"] == policy
    return trials[column][here][np.argsort(trials["trial"][here], kind="stable")]


def _gain_axis(axes: Axes, values: np.ndarray) -> None:
    """A symmetric logarithm that shows zero, every interval, and few enough decades to read."""
    sizes = np.abs(values[values != 0])
    largest = float(sizes.max()) if sizes.size else 1.0
    smallest = max(float(sizes.min()) if sizes.size else 1.0, 1e-5 * largest)
    first, last = int(np.floor(np.log10(smallest))), int(np.ceil(np.log10(largest)))
    axes.set_xscale("symlog", linthresh=10.0**first, linscale=0.5)
    axes.set_xlim(
        2 * float(values.min()) if values.min() < -(10.0**first) else -0.5 * 10.0**first,
        2 * largest,
    )
    powers = range(last, first - 1, -1)
    ticks = [
        (0.0, "0"),
        *(
            (sign * 10.0**power, f"${'-' * (sign < 0)}10^{{{power}}}$")
            for power in powers
            for sign in (-1, 1)
        ),
    ]
    kept = [tick for tick in ticks if axes.get_xlim()[0] <= tick[0] <= axes.get_xlim()[1]]
    axes.set_xticks([place for place, _ in kept], [text for _, text in kept])
    axes.xaxis.set_minor_locator(NullLocator())


def of_cases(cases: "polars.LazyFrame") -> Tables:
    r"""The tables of this figure, from any table of cases, such as `whorl.sweep.scan` gives.

    Intervals are means plus and minus 1.96 standard errors over trials.

    Args:
        cases: One row per case, with the columns `depth`, `imbalance`, `scale`, `trial`, `flip`,
            `policy`, `gap`, `step` and `drift`; rows of other policies are left out.

    Raises:
        ValueError: If a trial is not there once under each policy, as in a sweep over something
            else besides.

    Examples:
        >>> from whorl import sweep
        >>> from whorl.study.kinds.horizon import figure
        >>> head = (
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\ntrials = 2\n"
        ... )
        >>> design = sweep.parse(
        ...     head + b"schedule.epochs = 1\npolicy.policy = ['step_matched', 'adaptive']"
        ... )
        >>> result = sweep.sweep(design, folder / "few")
        >>> sorted(figure.of_cases(sweep.scan(folder / "few")))
        ['conditions', 'statistics', 'trials']
    """
    import polars

    rows = cases.filter(polars.col("policy").is_in([*POLICIES])).rename({"imbalance": "beta"})
    keys = ("depth", "beta", "scale")
    _check_pairs(rows, (*keys, "trial", "flip"))
    trials = (
        rows.group_by("trial", "policy")
        .agg(polars.col("gap", "step", "drift").mean())
        .sort("trial", "policy")
        .collect(engine="streaming")
    )
    matched, turned = (
        polars.col("gap").filter(polars.col("policy") == policy).mean() for policy in POLICIES
    )
    gain = polars.col("gain")
    error = 1.96 * gain.std() / polars.len().sqrt()
    conditions = (
        rows.group_by(*keys, "trial")
        .agg((matched - turned).alias("gain"))
        .group_by(*keys)
        .agg(gain.mean(), lower=gain.mean() - error, upper=gain.mean() + error)
        .sort(*keys)
        .collect(engine="streaming")
    )
    tables = {"trials": trials, "conditions": conditions}
    return {
        "statistics": _means(trials.partition_by("policy", as_dict=True)),
        **{
            name: {column: table[column].to_numpy() for column in table.columns}
            for name, table in tables.items()
        },
    }


def _check_pairs(rows: "polars.LazyFrame", keys: tuple[str, ...]) -> None:
    import polars

    counted = rows.select(
        trials=polars.struct(*keys).n_unique(),
        kept=polars.struct(*keys, "policy").n_unique(),
        rows=polars.len(),
    )
    trials, kept, there = counted.collect(engine="streaming").row(0)
    if not 0 < 2 * trials == kept == there:
        raise ValueError(
            f"cases must have every trial of a {keys[0]}, imbalance and {keys[2]} once under each"
            f" of {', '.join(POLICIES)}, but there are {there} rows of {trials} trials"
        )


def _means(trials: dict[tuple[Any, ...], "polars.DataFrame"]) -> dict[str, np.ndarray]:
    """The statistics that the figure shows, with their intervals."""
    found: dict[str, float] = {}
    for (policy,), rows in trials.items():
        found |= {f"{name}.{policy}": float(rows[name].mean()) for name in ("gap", "step", "drift")}  # pyright: ignore[reportArgumentType]
        error = 1.96 * float(rows["gap"].std() or 0.0) / len(rows) ** 0.5  # pyright: ignore[reportArgumentType]
        found[f"gap.{policy}.lower"] = found[f"gap.{policy}"] - error
        found[f"gap.{policy}.upper"] = found[f"gap.{policy}"] + error
    return {"name": np.array([*found]), "value": np.array([*found.values()])}
