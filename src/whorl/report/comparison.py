"""The table "published | here | class | verdict", and our own distributions behind it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from whorl.report.folder import Run, Study
from whorl.report.words import number
from whorl.study import design, kinds, published

BINS = 30


@dataclass(frozen=True)
class Row:
    """One published number next to ours."""

    study: str
    statistic: str
    published: str
    here: str
    kind: str
    verdict: str
    agrees: bool
    percentile: float | None
    where: str
    note: str
    keys: tuple[float | str, float | str]  # by which published and here are sorted


def studies(run: Run) -> list[Study]:
    """The studies that the paper has numbers for, by their names; none of a quick run."""
    return (
        []
        if run.quick
        else [
            s
            for s in run.studies
            if s.name in kinds.paper() and s.name == s.verdict["study"] == s.kind
        ]
    )


def rows(run: Run) -> list[Row]:
    """Every published number of the studies in this run."""
    found = {study.name: study.statistics for study in studies(run)}
    return [
        Row(
            study=line.study,
            statistic=line.statistic,
            published=line.published,
            here=alike(line.published, found[line.study][line.statistic])
            if line.percentile is not None
            else line.here,
            kind=line.kind,
            verdict=line.verdict,
            agrees=line.agrees,
            percentile=line.percentile,
            where=line.where,
            note=line.note,
            keys=(_key(line.published), _key(found[line.study].get(line.statistic))),
        )
        for line in published.table(found)
    ]


def others(run: Run) -> list[str]:
    """Studies with a name of the paper's, but another design than the one that ships."""
    return [
        study.name
        for study in studies(run)
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


def replication(run: Run, lines: list[Row]) -> list[dict[str, Any]]:
    """For every statistical number.

    A histogram of our values over root seeds, with the published value and that of this run.
    """
    found = {study.name: study.statistics for study in studies(run)}
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


def short(value: Any) -> float | None:
    """A number with the digits that a screen can show; None where it is none."""
    return float(f"{float(value):.6g}") if np.isfinite(value) else None
