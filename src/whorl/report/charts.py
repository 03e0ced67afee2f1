"""Charts to probe: the data of each, what it says in words, and its numbers as a table.

A chart is a Plotly figure as plain JSON. Colours that must be told apart are told apart by the
marker too, and can be seen on light and on dark ground; text and lines take the page's own.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whorl.report.comparison import short
from whorl.report.folder import Study
from whorl.report.words import number, plural

BLUE, ORANGE, RED, GREY = "#3a7fc4", "#cf6f17", "#d1434b", "#8b939b"
MOST = 3000  # points that a page can carry
TRIALS = 200
RATIO, COEFFICIENT = 0.1, 0.01  # where the axes turn from linear to logarithmic
POLICIES = {
    "step_matched": ("step-matched", ORANGE, "diamond"),
    "adaptive": ("adaptive", BLUE, "circle"),
}
TERMS = ("gap", "even", "handedness", "step", "drift")
GAP = 1e-4  # where the axis of mean gaps turns from linear to logarithmic
ARMS = {
    "turns": ("turns", BLUE, "circle"),
    "halves": ("steps of 1, 1/2 and 0", GREY, "square-open"),
    "quarters": ("steps of 1, 3/4 and 1/4", GREY, "diamond-open"),
    "random": ("random directions", ORANGE, "triangle-up"),
    "straight": ("along the residual", RED, "triangle-down"),
}


@dataclass(frozen=True)
class Chart:
    """One interactive chart."""

    id: str
    title: str
    summary: str
    head: tuple[str, ...]
    lines: list[list[str]]
    figure: dict[str, Any] = field(default_factory=dict)
    choices: list[dict[str, Any]] = field(default_factory=list)


def of(study: Study, anchor: str) -> list[Chart]:
    """The charts of a study, as its kind has them.

    None where a table is not the one that was judged.
    """
    makers = {
        "threshold": ("configurations", _threshold),
        "horizon": ("trials", _horizon),
        "foresight": ("conditions", _foresight),
    }
    name, make = makers.get(study.kind, ("", None))
    return (
        []
        if make is None or name in study.stale
        else [make(study.statistics, study.table(name), anchor)]
    )


def signed_log(values: np.ndarray, linear: float) -> np.ndarray:
    """Linear near zero, logarithmic far from it: one unit a decade."""
    return np.arcsinh(values / (2 * linear)) / np.log(10)


def _axis(title: str, values: np.ndarray, linear: float) -> dict[str, Any]:
    """A signed logarithmic axis with ticks at powers of ten."""
    largest = float(np.abs(values).max(initial=linear))
    powers = [
        10.0**k for k in range(int(np.floor(np.log10(linear))), int(np.ceil(np.log10(largest))) + 1)
    ]
    ticks = [-p for p in reversed(powers)] + [0.0] + powers
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    ticks = [t for t in ticks if 10 * min(low, -linear) <= t <= 10 * max(high, linear)]
    if len(ticks) > 7:  # those next to zero would touch
        ticks = [t for t in ticks if abs(t) != powers[0]]
    at = signed_log(np.array(ticks), linear)
    return {
        "title": {"text": title},
        "tickvals": _shorts(at),
        "ticktext": [f"{t:g}".replace("-", "−") for t in ticks],
        "zeroline": True,
    }


def _shorts(values: Any) -> list[float | None]:
    return [short(value) for value in values]


def _threshold(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
    """The coefficient against one sample's ratio; every point is one configuration."""
    wrong = table["predicted"] != table["favourable"]
    kept = np.flatnonzero(wrong | (np.arange(wrong.size) % (1 + wrong.size // MOST) == 0))[
        : 2 * MOST
    ]
    ratio, coefficient = (
        np.nan_to_num(table[name][kept], posinf=0, neginf=0) for name in ("ratio", "coefficient")
    )
    edge = float(signed_log(np.array([1.0]), RATIO)[0])
    line = {
        "type": "line",
        "x0": edge,
        "x1": edge,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"dash": "dash", "width": 1.5},
    }
    where = {
        "x": edge,
        "xanchor": "left",
        "xshift": 4,
        "yref": "paper",
        "y": 0,
        "yanchor": "bottom",
    }
    layout = {
        "xaxis": _axis("curvature ratio of one sample", ratio, RATIO),
        "yaxis": _axis("finite-step coefficient", coefficient, COEFFICIENT),
        "shapes": [line],
        "annotations": [where | {"text": "threshold: ratio 1", "showarrow": False}],
    }
    summary = (
        f"Each point is one configuration: {int(table['favourable'].sum())} of {wrong.size} have a "
        "negative coefficient, "
        f"so that a turn helps. "
        "Right of the dashed line the ratio of one sample says so; it is wrong for "
        f"{int(wrong.sum())}, which are ringed"
        f"{_rates(statistics)}. Both axes are logarithmic away from zero."
    )
    if kept.size < wrong.size:
        summary += f" {plural(kept.size, 'point')} are drawn, the wrong ones first."
    traces = _points(
        {name: column[kept] for name, column in table.items()},
        signed_log(ratio, RATIO),
        signed_log(coefficient, COEFFICIENT),
    )
    title = "Does the ratio of one sample predict the sign?"
    return Chart(
        f"{anchor}-scatter", title, summary, *_shares(table), {"data": traces, "layout": layout}
    )


def _rates(statistics: dict[str, float]) -> str:
    """How well the ratio does, with intervals, as far as it is known."""
    known = [
        (word, statistics[key], statistics[f"{key}.lower"], statistics[f"{key}.upper"])
        for key, word in (
            ("auc", "area under the ROC curve"),
            ("accuracy", "share of right predictions"),
        )
        if f"{key}.upper" in statistics
    ]
    return "".join(
        f"; {word} {number(value)}, from {number(low)} to {number(high)} over families"
        for word, value, low, high in known
    )


def _points(table: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Configurations by the true sign, and rings around those that the ratio gets wrong."""
    says = "family %{customdata[0]}, depth %{customdata[1]}, β %{customdata[2]}<br>ratio %{customdata[3]}<br>coefficient %{customdata[4]}"
    shown = np.stack(
        [table[name] for name in ("family", "depth", "beta", "ratio", "coefficient")], -1
    )
    wrong = table["predicted"] != table["favourable"]
    traces = []
    for sign, name, colour, symbol in (
        (1, "a turn helps", BLUE, "circle"),
        (0, "a turn hurts", ORANGE, "diamond"),
    ):
        here = np.flatnonzero(table["favourable"] == sign)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": _shorts(x[here]),
                "y": _shorts(y[here]),
                "customdata": [
                    [*_shorts(shown[k]), "<br>predicted wrongly" if wrong[k] else ""] for k in here
                ],
                "marker": {"color": colour, "symbol": symbol, "size": 6, "opacity": 0.7},
                "hovertemplate": f"{says}%{{customdata[5]}}<extra></extra>",
            }
        )
    ring = {"color": RED, "symbol": "circle-open", "size": 11, "line": {"width": 2}}
    rings = {
        "type": "scatter",
        "mode": "markers",
        "name": "predicted wrongly",
        "hoverinfo": "skip",
        "marker": ring,
    }
    return [*traces, rings | {"x": _shorts(x[wrong]), "y": _shorts(y[wrong])}]


def _shares(table: dict[str, np.ndarray]) -> tuple[tuple[str, ...], list[list[str]]]:
    """By depth and imbalance: how many are favourable, how many predicted rightly."""
    lines = []
    for depth in np.unique(table["depth"]):
        for beta in np.unique(table["beta"]):
            here = (table["depth"] == depth) & (table["beta"] == beta)
            right = int((table["predicted"] == table["favourable"])[here].sum())
            lines.append(
                [
                    str(depth),
                    number(float(beta)),
                    str(int(here.sum())),
                    str(int(table["favourable"][here].sum())),
                    str(right),
                ]
            )
    return ("depth", "β", "configurations", "a turn helps", "predicted rightly"), lines


def _horizon(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
    """The gap of every trial under both policies, joined, ordered by the step-matched one."""
    of_policy = {
        name: {term: table[term][table["policy"] == name] for term in ("trial", *TERMS)}
        for name in POLICIES
    }
    first = of_policy["step_matched"]
    order = np.argsort(first["gap"], kind="stable")[:: 1 + first["gap"].size // TRIALS]
    names = [str(int(trial)) if order.size <= 40 else "" for trial in first["trial"][order]]
    ticks = {"tickvals": [*range(order.size), order.size + 1.2], "ticktext": [*names, "mean"]}
    layout = {
        "xaxis": {
            "title": {"text": "trial, ordered by its step-matched gap"},
            "zeroline": False,
            "showgrid": False,
            **ticks,
        },
        "yaxis": {"title": {"text": "final loss less the native learner's"}, "zeroline": True},
    }
    traces = [
        _joined([part["gap"][order] for part in of_policy.values()]),
        *(_trials(name, part, order) for name, part in of_policy.items()),
    ]
    traces += [_mean(statistics, name, order.size + 0.8 * k) for k, name in enumerate(POLICIES, 1)]
    figure = {"data": traces, "layout": layout}
    return Chart(
        f"{anchor}-trials",
        "The gap of every trial",
        _gaps(statistics, of_policy),
        *_trial_lines(of_policy, order),
        figure,
    )


def _joined(gaps: list[np.ndarray]) -> dict[str, Any]:
    """A line from one policy's gap to the other's, for every trial."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [value for k in range(gaps[0].size) for value in (k, k, None)],
        "y": [value for pair in zip(*gaps, strict=True) for value in (*_shorts(pair), None)],
        "hoverinfo": "skip",
        "showlegend": False,
        "line": {"color": GREY, "width": 1},
    }


def _trials(policy: str, part: dict[str, np.ndarray], order: np.ndarray) -> dict[str, Any]:
    """The gaps of one policy, with the terms of the ledger under the pointer."""
    shown, colour, symbol = POLICIES[policy]
    terms = "<br>".join(f"{term} %{{customdata[{k}]}}" for k, term in enumerate(TERMS, 1))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": shown,
        "x": list(range(order.size)),
        "y": _shorts(part["gap"][order]),
        "customdata": [
            [int(part["trial"][k]), *(short(part[term][k]) for term in TERMS)] for k in order
        ],
        "marker": {"color": colour, "symbol": symbol, "size": 9},
        "hovertemplate": f"trial %{{customdata[0]}}, {shown}<br>{terms}<extra></extra>",
    }


def _mean(statistics: dict[str, float], policy: str, at: float) -> dict[str, Any]:
    """The mean gap with its interval, beside the trials."""
    shown, colour, symbol = POLICIES[policy]
    mean, low, high = (
        statistics.get(f"gap.{policy}{end}", float("nan")) for end in ("", ".lower", ".upper")
    )
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [at],
        "y": [short(mean)],
        "error_y": {
            "array": [short(high - mean)],
            "arrayminus": [short(mean - low)],
            "symmetric": False,
            "color": colour,
            "thickness": 2,
        },
        "marker": {
            "color": colour,
            "symbol": symbol,
            "size": 13,
            "line": {"color": GREY, "width": 1},
        },
        "customdata": [[short(mean), short(low), short(high)]],
        "hovertemplate": f"mean, {shown}<br>gap %{{customdata[0]}}<br>95 %: %{{customdata[1]}} to %{{customdata[2]}}<extra></extra>",
        "showlegend": False,
    }


def _gaps(statistics: dict[str, float], of_policy: dict[str, dict[str, np.ndarray]]) -> str:
    matched, adaptive = (of_policy[name]["gap"] for name in POLICIES)
    better = int((adaptive < matched).sum())
    means = ", ".join(
        f"{POLICIES[name][0]} {number(statistics.get(f'gap.{name}'))}" for name in POLICIES
    )
    return (
        "A gap above zero: the native learner ends lower. The adaptive policy has the smaller gap "
        f"in {better} of "
        f"{plural(matched.size, 'trial')}. "
        f"Mean gaps: {means}; their bars are 95 % intervals over trials."
    )


def _trial_lines(
    of_policy: dict[str, dict[str, np.ndarray]], order: np.ndarray
) -> tuple[tuple[str, ...], list[list[str]]]:
    head = ("trial", "policy", *TERMS)
    lines = [
        [str(int(p["trial"][k])), POLICIES[n][0], *(number(float(p[t][k])) for t in TERMS)]
        for k in order
        for n, p in of_policy.items()
    ]
    return head, lines


def _foresight(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
    """The mean gap against the number of updates foreseen, for turning and for controls with other
    actions.
    """
    kept = {
        name: list(dict.fromkeys(table["horizon"][table["arm"] == name].tolist())) for name in ARMS
    }
    horizons = kept["turns"]
    words = ["end" if k < 0 else str(k) for k in horizons]
    rows = [_ahead(statistics, table, name, horizon) for name in ARMS for horizon in kept[name]]
    traces = [
        _arm(name, [row for row in rows if row[0] == name], horizons) for name in ARMS if kept[name]
    ]
    spread = np.array([value for row in rows for value in row[2:5]])
    layout = {
        "xaxis": {
            "title": {"text": "updates foreseen"},
            "tickvals": list(range(len(words))),
            "ticktext": words,
            "zeroline": False,
        },
        "yaxis": _axis("mean final loss less the native learner's", spread, GAP),
    }
    *most, last = [str(row[5]) for row in rows if row[0] == "turns"]
    summary = (
        "Below zero a learner that looks ahead finishes before the native one. Bars are 95 % "
        "intervals over trials. Turning pays, with "
        f"its upper bound below zero, in {', '.join(most)} and {last} of "
        f"{plural(int(rows[0][6]), 'condition')}, from left to right."
        f"{''.join(_rival(statistics, name, words) for name in ('random', 'straight'))}"
    )
    lines = [
        [
            ARMS[row[0]][0],
            "end" if row[1] < 0 else str(row[1]),
            *map(number, row[2:5]),
            f"{row[5]} of {row[6]}",
        ]
        for row in rows
    ]
    head = (
        "chooses among",
        "updates foreseen",
        "mean gap",
        "2.5 %",
        "97.5 %",
        "conditions in which it pays",
    )
    return Chart(
        f"{anchor}-ahead",
        "How far ahead must a turn be seen?",
        summary,
        head,
        lines,
        {"data": traces, "layout": layout},
    )


def _rival(statistics: dict[str, float], control: str, horizons: list[str]) -> str:
    """How turning fares beside a control that has the same freedom of step, at the first and the
    last horizon.
    """
    ends = [k if k == "end" else f"k{k}" for k in (horizons[0], horizons[-1])]
    found = [
        f"{statistics.get(f'against.{control}.{k}.{how}', -1):.0f}"
        for k in ends
        for how in ("wins", "loses")
    ]
    if "-1" in found:
        return ""
    return " Beside “{}” turns end lower in {} and higher in {} at the left, in {} and {} at the right.".format(
        ARMS[control][0], *found
    )


def _ahead(
    statistics: dict[str, float], table: dict[str, np.ndarray], arm: str, horizon: int
) -> tuple[Any, ...]:
    """An arm at a horizon: the mean gap, its bounds, and in how many of its conditions it pays."""
    name = f"gap.{arm}.{'end' if horizon < 0 else f'k{horizon}'}"
    pays = table["pays"][(table["arm"] == arm) & (table["horizon"] == horizon)]
    return (
        arm,
        horizon,
        *(statistics.get(f"{name}{end}", 0.0) for end in ("", ".lower", ".upper")),
        int(pays.sum()),
        pays.size,
    )


def _arm(name: str, rows: list[tuple[Any, ...]], horizons: list[int]) -> dict[str, Any]:
    shown, colour, symbol = ARMS[name]
    middle, low, high = (signed_log(np.array([row[k] for row in rows]), GAP) for k in (2, 3, 4))
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": shown,
        "x": [horizons.index(row[1]) for row in rows],
        "y": _shorts(middle),
        "error_y": {
            "array": _shorts(high - middle),
            "arrayminus": _shorts(middle - low),
            "symmetric": False,
            "color": colour,
        },
        "line": {"color": colour, "width": 2 if name == "turns" else 1},
        "marker": {"color": colour, "symbol": symbol, "size": 9},
        "customdata": [
            [short(row[2]), short(row[3]), short(row[4]), f"{row[5]} of {row[6]}"] for row in rows
        ],
        "hovertemplate": f"{shown}<br>gap %{{customdata[0]}}<br>95 %: %{{customdata[1]}} to %{{customdata[2]}}"
        "<br>pays in %{customdata[3]} conditions<extra></extra>",
    }


def replication(choices: list[dict[str, Any]]) -> Chart:
    """Where each published number stands among ours over many root seeds; one at a time."""
    head = ("study", "quantity", "published", "here", "2.5 %", "median", "97.5 %", "percentile")
    inside = sum(choice["inside"] for choice in choices)
    summary = (
        f"The same studies under many root seeds: {inside} of "
        f"{plural(len(choices), 'published number')} stand inside the central 95 % of "
        f"our values, where 1 in 20 falls outside by chance."
    )
    lines = [choice["line"] for choice in choices]
    slim = [
        {key: value for key, value in choice.items() if key not in ("line", "inside")}
        for choice in choices
    ]
    return Chart(
        "replication", "Where would each number have fallen?", summary, head, lines, choices=slim
    )
