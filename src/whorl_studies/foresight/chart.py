"""The mean gap against the number of updates foreseen."""

from typing import Any

import numpy as np

from whorl.palette import BOTH
from whorl.study.report.charts import INTERVAL, Chart, axis, marks, shorts, signed_log
from whorl.study.report.words import number, plural

TABLE = "conditions"
GAP = 1e-4  # where the axis of mean gaps turns from linear to logarithmic
ARMS = {
    "turns": ("turns", BOTH.turning, "circle"),
    "halves": ("steps of 1, 1/2 and 0", BOTH.quiet, "square-open"),
    "quarters": ("steps of 1, 3/4 and 1/4", BOTH.quiet, "diamond-open"),
    "random": ("random directions", BOTH.other, "triangle-up"),
    "straight": ("along the residual", BOTH.native, "triangle-down"),
}


def chart(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
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
        "yaxis": axis("mean final loss less the native learner's", spread, GAP),
    }
    *most, last = [str(row[5]) for row in rows if row[0] == "turns"]
    summary = (
        "Below zero a learner that looks ahead finishes before the native one. Bars are 95 % "
        "intervals over trials. Turning pays, with its upper bound below zero, in "
        f"{', '.join(most)} and {last} of "
        f"{plural(int(rows[0][6]), 'condition')}, from left to right."
        f"{''.join(_rival(statistics, name, words) for name in ('random', 'straight'))}"
    )
    seen = dict(zip(horizons, words, strict=True))
    lines = [
        [ARMS[row[0]][0], seen[row[1]], *map(number, row[2:5]), f"{row[5]} of {row[6]}"]
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
    return (
        " Beside “{}” turns end lower in {} and higher in {} at the left, in {} and {} at the"
        " right.".format(ARMS[control][0], *found)
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
    bars = {"array": shorts(high - middle), "arrayminus": shorts(middle - low)}
    pays = "<br>pays in %{customdata[3]} conditions<extra></extra>"
    more = {
        "mode": "lines+markers",
        "name": shown,
        "error_y": bars | {"symmetric": False, "color": colour},
        "line": {"color": colour, "width": 2 if name == "turns" else 1},
        "customdata": [[*shorts(row[2:5]), f"{row[5]} of {row[6]}"] for row in rows],
        "hovertemplate": f"{shown}<br>{INTERVAL}{pays}",
    }
    return marks([horizons.index(row[1]) for row in rows], middle, colour, symbol, 9, **more)
