"""Charts to probe: the data of each, what it says in words, and its numbers as a table.

A chart is a Plotly figure as plain JSON. Colours that must be told apart are told apart by the
marker too, and can be seen on light and on dark ground; text and lines take the page's own. What
is drawn of a kind is in its `chart`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whorl._show import plural
from whorl.study.report.folder import Study

# What a pointer reads of a mean with its bounds.
INTERVAL = "gap %{customdata[0]}<br>95 %: %{customdata[1]} to %{customdata[2]}"


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
    one = study.part("chart")
    if one is None or one.TABLE in study.stale:
        return []
    return [one.chart(study.statistics, study.table(one.TABLE), anchor)]


def signed_log(values: np.ndarray, linear: float) -> np.ndarray:
    """Linear near zero, logarithmic far from it: one unit per decade."""
    return np.arcsinh(values / (2 * linear)) / np.log(10)


def axis(title: str, values: np.ndarray, linear: float) -> dict[str, Any]:
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
        "tickvals": shorts(at),
        "ticktext": [f"{t:g}".replace("-", "−") for t in ticks],
        "zeroline": True,
    }


def short(value: Any) -> float | None:
    """A number with the digits that a screen can show; None where it is none."""
    return float(f"{float(value):.6g}") if np.isfinite(value) else None


def shorts(values: Iterable[Any]) -> list[float | None]:
    """Such numbers in a list, as a chart takes them."""
    return [short(value) for value in values]


def marks(x: Any, y: Any, colour: str, symbol: str, size: int, **more: Any) -> dict[str, Any]:
    """Points of a chart."""
    look = {"color": colour, "symbol": symbol, "size": size, **more.pop("look", {})}
    return {"type": "scatter", "mode": "markers", "x": x, "y": shorts(y), "marker": look} | more


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
