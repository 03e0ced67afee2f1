"""The table "published | here | class | verdict", and our own distributions behind it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from whorl.study import design, published
from whorl.study.report.charts import short
from whorl.study.report.folder import RunFolder
from whorl.study.report.words import plain, typeset

BINS = 30
SAME = 1e-6  # values this close, relative to their size, are one number on a screen


@dataclass(frozen=True)
class Row(published.Comparison):
    """One published number next to ours."""

    keys: tuple[float | str, float | str]  # by which published and here are sorted


def rows(run: RunFolder) -> list[Row]:
    """Every published number of the studies in this run."""
    found = {study.name: study.statistics for study in run.paper}
    values = [found[line.study].get(line.statistic) for line in run.numbers]
    return [
        Row(**line.asdict(), keys=(_key(line.published), _key(value)))
        for line, value in zip(run.numbers, values, strict=True)
    ]


def others(run: RunFolder) -> list[str]:
    """Studies with a name of the paper's, but another design than the one that ships."""
    return [
        study.name
        for study in run.paper
        if study.design.sha256 != design.shipped(study.name).sha256
    ]


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
    cuts = np.quantile(values, [0.025, 0.5, 0.975])
    low, median, high = (typeset(published.alike(line.published, cut)) for cut in cuts)
    printed, ours = typeset(line.published), typeset(line.here)
    place = f"{'inside' if line.agrees else 'outside'} their central 95 %"
    bars, counts, wide = _bars(values, float(line.published))
    alone = (
        f"All our {values.size} root seeds give {median}; the paper has {printed}, this run {ours}."
    )
    return {
        "study": line.study,
        "name": plain(line.statistic),
        "bars": [[short(a), short(b)] for a, b in bars],
        "counts": counts.tolist(),
        "wide": wide,
        "published": short(float(line.published)),
        "here": short(here),
        "inside": line.agrees,
        "summary": alone
        if len(bars) == 1
        else (
            f"The published value {printed} stands at percentile {line.percentile:.1f} of our "
            f"{values.size} root seeds, {place}, from {low} to {high} with the median {median}. "
            f"This run has {ours}."
        ),
        "line": [
            line.study, plain(line.statistic), printed, ours, low, median, high,
            f"{line.percentile:.1f}",
        ],
    }  # fmt: skip


def _bars(values: np.ndarray, other: float) -> tuple[np.ndarray, np.ndarray, bool]:
    """A histogram as ends and heights of its bars, and whether its axis is logarithmic.

    Values that are one number but for its last digits are one bar, wide enough to be seen beside
    the number they are compared with. Values over more than a decade have bars of equal ratio.
    """
    middle = float(np.median(values))
    if np.ptp(values) <= SAME * abs(middle):
        half = abs(other - middle) / 20 if abs(other - middle) > SAME * abs(middle) else 0.5
        return np.array([[middle - half, middle + half]]), np.array([values.size]), False
    different, counts = np.unique(values, return_counts=True)
    if different.size <= BINS:  # counted things: one bar per value
        half = np.diff(different).min() / 2
        return np.stack([different - half, different + half], -1), counts, False
    wide = bool(values.min() > 0 and values.max() > 10 * values.min())
    scaled = np.log10(values) if wide else values
    counts, edges = np.histogram(scaled, BINS)
    edges = 10**edges if wide else edges
    return np.stack([edges[:-1], edges[1:]], -1), counts, wide
