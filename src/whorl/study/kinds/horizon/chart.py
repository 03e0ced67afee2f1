"""The gap of every trial under both policies."""

from typing import Any

import numpy as np

from whorl.palette import BOTH
from whorl.study.report.charts import INTERVAL, Chart, marks, short, shorts
from whorl.study.report.words import number, plural

TABLE = "trials"
TRIALS = 200
POLICIES = {
    "step_matched": ("step-matched", BOTH.matched, "diamond"),
    "adaptive": ("adaptive", BOTH.turning, "circle"),
}
TERMS = ("gap", "even", "handedness", "step", "drift")


def chart(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
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
        "y": [value for pair in zip(*gaps, strict=True) for value in (*shorts(pair), None)],
        "hoverinfo": "skip",
        "showlegend": False,
        "line": {"color": BOTH.quiet, "width": 1},
    }


def _trials(policy: str, part: dict[str, np.ndarray], order: np.ndarray) -> dict[str, Any]:
    """The gaps of one policy, with the terms of the ledger under the pointer."""
    shown, colour, symbol = POLICIES[policy]
    terms = "<br>".join(f"{term} %{{customdata[{k}]}}" for k, term in enumerate(TERMS, 1))
    more = {
        "customdata": [[int(part["trial"][k]), *(short(part[t][k]) for t in TERMS)] for k in order],
        "hovertemplate": f"trial %{{customdata[0]}}, {shown}<br>{terms}<extra></extra>",
    }
    return marks([*range(order.size)], part["gap"][order], colour, symbol, 9, name=shown, **more)


def _mean(statistics: dict[str, float], policy: str, at: float) -> dict[str, Any]:
    """The mean gap with its interval, beside the trials."""
    shown, colour, symbol = POLICIES[policy]
    mean, low, high = (
        statistics.get(f"gap.{policy}{end}", float("nan")) for end in ("", ".lower", ".upper")
    )
    bars = {"array": [short(high - mean)], "arrayminus": [short(mean - low)], "symmetric": False}
    more = {
        "error_y": bars | {"color": colour, "thickness": 2},
        "look": {"line": {"color": BOTH.quiet, "width": 1}},
        "customdata": [[short(mean), short(low), short(high)]],
        "hovertemplate": f"mean, {shown}<br>{INTERVAL}<extra></extra>",
        "showlegend": False,
    }
    return marks([at], [mean], colour, symbol, 13, **more)


def _gaps(statistics: dict[str, float], of_policy: dict[str, dict[str, np.ndarray]]) -> str:
    matched, adaptive = (of_policy[name]["gap"] for name in POLICIES)
    better = int((adaptive < matched).sum())
    means = ", ".join(
        f"{POLICIES[name][0]} {number(statistics.get(f'gap.{name}'))}" for name in POLICIES
    )
    return (
        "A gap above zero: the native learner ends lower. The adaptive policy has the smaller gap "
        f"in {better} of {plural(matched.size, 'trial')}. Mean gaps: {means}; their bars are 95 % "
        "intervals over trials."
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
