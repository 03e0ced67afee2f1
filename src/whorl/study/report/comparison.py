"""The table "published | here | class | verdict", and our own distributions behind it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from whorl.study import design, published
from whorl.study.report.charts import short
from whorl.study.report.folder import RunFolder
from whorl.study.report.words import number

BINS = 30


@dataclass(frozen=True)
class Row(published.Comparison):
    """One published number next to ours."""

    keys: tuple[float | str, float | str]  # by which published and here are sorted


def rows(run: RunFolder) -> list[Row]:
    """Every published number of the studies in this run, ours written as the paper's is."""
    found = {study.name: study.statistics for study in run.paper}
    return [_row(line, found[line.study].get(line.statistic)) for line in run.numbers]


def _row(line: published.Comparison, value: float | None) -> Row:
    told = line.asdict()
    if line.percentile is not None and value is not None:
        told["here"] = alike(line.published, value)
    return Row(**told, keys=(_key(line.published), _key(value)))


def others(run: RunFolder) -> list[str]:
    """Studies with a name of the paper's, but another design than the one that ships."""
    return [
        study.name
        for study in run.paper
        if study.design.sha256 != design.shipped(study.name).sha256
    ]


def alike(printed: str, value: float) -> str:
    """A value written as another was printed.

    With its digits after the point, and its power of ten.
    """
    mantissa, exponent, power = printed.partition("e")
    digits = len(mantissa.partition(".")[2])
    return f"{value / 10 ** int(power):.{digits}f}e{power}" if exponent else f"{value:.{digits}f}"


def _key(value: Any) -> float | str:
    try:
        found = float(str(value).strip(" <.").replace("...", ""))
    except ValueError:
        return str(value)
    return found if np.isfinite(found) else str(value)


def replication(run: RunFolder, lines: list[Row]) -> list[dict[str, Any]]:
    """For every statistical number.

    A histogram of our values over root seeds, with the published value and that of this run.
    """
    found = {study.name: study.statistics for study in run.paper}
    return [
        _spread(
            line,
            published.distribution(line.study)[line.statistic],
            found[line.study][line.statistic],
        )
        for line in lines
        if line.percentile is not None
    ]


def _spread(line: Row, values: np.ndarray, here: float) -> dict[str, Any]:
    low, median, high = np.quantile(values, [0.025, 0.5, 0.975])
    different, counts = np.unique(values, return_counts=True)
    if different.size > BINS:
        counts, edges = np.histogram(values, BINS)
    elif different.size > 1:  # counted things: one bar a value
        half = np.diff(different).min() / 2
        edges = np.stack([different - half, different + half], -1)
    else:
        edges = np.stack([different, different], -1)
    bars = np.stack([edges[:-1], edges[1:]], -1) if edges.ndim == 1 else edges
    return {
        "study": line.study,
        "statistic": line.statistic,
        "bars": [[short(a), short(b)] for a, b in bars],
        "counts": counts.tolist(),
        "published": short(float(line.published)),
        "here": short(here),
        "inside": line.agrees,
        "summary": (
            f"The published value {line.published} stands at percentile {line.percentile:.1f} of "
            f"our {values.size} root seeds, "
            f"{'inside' if line.agrees else 'outside'} their central 95 %, from "
            f"{number(float(low))} to {number(float(high))} "
            f"with the median {number(float(median))}. This run has {line.here}."
        ),
        "line": [
            line.study,
            line.statistic,
            line.published,
            line.here,
            *(number(float(v)) for v in (low, median, high)),
            f"{line.percentile:.1f}",
        ],
    }
