"""Every circuit by the skew share of its two loops that are not reciprocal."""

from typing import Any

import numpy as np

from whorl.palette import BOTH
from whorl.study.report.charts import Chart, marks, shorts
from whorl.study.report.words import number, plural

TABLE = "circuits"
MOST = 3000  # points that a page can carry
RULES = {
    "coupled": ("coupled learning", BOTH.other, "circle"),
    "alignment": ("feedback alignment", BOTH.turning, "triangle-up"),
}


def chart(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
    """The skew share of a loop against the number of nodes; every point is one circuit."""
    sizes = list(dict.fromkeys(table["nodes"].tolist()))
    kept = np.arange(table["nodes"].size)[:: 1 + table["nodes"].size // MOST]
    layout = {
        "xaxis": {
            "title": {"text": "nodes of the circuit"},
            "tickvals": list(range(len(sizes))),
            "ticktext": [str(size) for size in sizes],
            "zeroline": False,
        },
        "yaxis": {"title": {"text": "skew share of the loop"}, "rangemode": "tozero"},
    }
    total = int(table["nodes"].size)
    counts = {
        f"{name}_{what}": int(table[f"{name}_{what}"].sum())
        for name in RULES
        for what in ("turns", "rises")
    }
    summary = (
        f"Each point is the loop of one of {plural(total, 'circuit')}. Under equilibrium "
        "propagation the skew share is at most "
        f"{number(statistics.get('propagation_skew.max', float('nan')))}: those points would lie "
        f"on the axis. Coupled learning turns in {counts['coupled_turns']} and raises some squared "
        f"error at once in {counts['coupled_rises']}; feedback alignment turns in "
        f"{counts['alignment_turns']} and raises one in {counts['alignment_rises']}."
    )
    traces = [_points(name, table, kept, sizes, side) for side, name in enumerate(RULES)]
    head = ("nodes", "rule", "circuits", "median skew share", "turn", "raise some error at once")
    return Chart(
        f"{anchor}-loops",
        "Which rules follow a gradient?",
        summary,
        head,
        _lines(table, sizes),
        {"data": traces, "layout": layout},
    )


def _points(
    name: str, table: dict[str, np.ndarray], kept: np.ndarray, sizes: list[int], side: int
) -> dict[str, Any]:
    label, colour, symbol = RULES[name]
    rows = {column: values[kept] for column, values in table.items()}
    among = rows["circuit"] / max(1, int(table["circuit"].max()))
    places = np.array([sizes.index(size) for size in rows["nodes"].tolist()])
    x = places + 0.35 * (side - 1) + 0.3 * among
    told = [
        [
            int(size),
            int(which),
            f"{skew:.3g}",
            ("turns" if turns else "does not turn") + (", raises an error" if rises else ""),
        ]
        for size, which, skew, turns, rises in zip(
            rows["nodes"],
            rows["circuit"],
            rows[f"{name}_skew"],
            rows[f"{name}_turns"],
            rows[f"{name}_rises"],
            strict=True,
        )
    ]
    says = "%{customdata[0]} nodes, circuit %{customdata[1]}<br>skew share %{customdata[2]}"
    more = {
        "name": label,
        "look": {"opacity": 0.7},
        "customdata": told,
        "hovertemplate": f"{label}<br>{says}<br>%{{customdata[3]}}<extra></extra>",
    }
    return marks(shorts(x), rows[f"{name}_skew"], colour, symbol, 6, **more)


def _lines(table: dict[str, np.ndarray], sizes: list[int]) -> list[list[str]]:
    lines = []
    for size in sizes:
        here = table["nodes"] == size
        for name, (label, *_) in RULES.items():
            counts = [int(table[f"{name}_{what}"][here].sum()) for what in ("turns", "rises")]
            median = number(float(np.median(table[f"{name}_skew"][here])))
            lines.append([str(size), label, str(int(here.sum())), median, *map(str, counts)])
    return lines
