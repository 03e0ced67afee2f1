"""The gap of every trial under both policies."""

from typing import Any

import numpy as np

from whorl.palette import BOTH
from whorl.study.report.charts import Chart, short, shorts
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
    return {
        "type": "scatter",
        "mode": "markers",
        "name": shown,
        "x": list(range(order.size)),
        "y": shorts(part["gap"][order]),
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
            "line": {"color": BOTH.quiet, "width": 1},
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
