"""How far laws that turn end below direct feedback, at the largest gain."""

from typing import Any

import numpy as np

from whorl.palette import BOTH
from whorl.study.report.charts import INTERVAL, Chart, axis, marks, shorts, signed_log
from whorl.study.report.words import number, plural

TABLE = "advantages"
SMALL = 0.1  # decades up to which the axis is linear
LAWS = {
    "critical": ("critical turn", BOTH.turning, "circle"),
    "paired": ("paired turns", BOTH.native, "square"),
    "kept": ("paired, cosine kept", BOTH.other, "diamond-open"),
    "geometric": ("geometric-mean law", BOTH.turning, "triangle-up-open"),
}


def chart(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
    """The advantage over direct feedback after the last update, condition by condition."""
    rows = _rows(table)
    places = list(dict.fromkeys(row[1] for row in rows))
    traces = [
        _law(name, [row for row in rows if row[0] == name], places)
        for name in LAWS
        if any(row[0] == name for row in rows)
    ]
    spread = np.array([value for row in rows for value in row[2:5]])
    layout = {
        "xaxis": {
            "title": {"text": "condition"},
            "tickvals": list(range(len(places))),
            "ticktext": places,
            "zeroline": False,
        },
        "yaxis": axis("decades of loss below direct feedback", spread, SMALL),
    }
    lines = [[LAWS[row[0]][0], row[1], *map(number, row[2:5])] for row in rows]
    wins = sum(row[3] > 0 for row in rows)
    loses = sum(row[4] < 0 for row in rows)
    summary = (
        "Above zero a law that turns ends below direct feedback of the same gain. Bars are 95 % "
        f"intervals over trials. Of {plural(len(rows), 'comparison')} at the largest gain, after "
        f"the last update, turning ends lower in {wins} and higher in {loses}."
    )
    head = ("law", "condition", "decades", "2.5 %", "97.5 %")
    return Chart(
        f"{anchor}-turning",
        "Who ends lower at equal gain?",
        summary,
        head,
        lines,
        {"data": traces, "layout": layout},
    )


def _rows(table: dict[str, np.ndarray]) -> list[tuple[Any, ...]]:
    """Law, condition, advantage and its bounds after the last update at the largest gain."""
    found = []
    for law in LAWS:
        here = (table["law"] == law) & (table["rival"] == "direct")
        here &= table["gain"] == table["gain"].max()
        if not here.any():
            continue
        here &= table["updates"] == table["updates"][here].max()
        for at in np.flatnonzero(here):
            place = f"{table['setting'][at]}, {table['depth'][at]}, {table['beta'][at]:g}"
            values = (float(table[name][at]) for name in ("advantage", "lower", "upper"))
            found.append((law, place, *values))
    return found


def _law(name: str, rows: list[tuple[Any, ...]], places: list[str]) -> dict[str, Any]:
    shown, colour, symbol = LAWS[name]
    middle, low, high = (signed_log(np.array([row[k] for row in rows]), SMALL) for k in (2, 3, 4))
    bars = {"array": shorts(high - middle), "arrayminus": shorts(middle - low)}
    more = {
        "mode": "markers",
        "name": shown,
        "error_y": bars | {"symmetric": False, "color": colour},
        "customdata": [shorts(row[2:5]) for row in rows],
        "hovertemplate": f"{shown}<br>{INTERVAL}<extra></extra>",
    }
    return marks([places.index(row[1]) for row in rows], middle, colour, symbol, 9, **more)
