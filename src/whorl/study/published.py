"""The paper's numbers next to ours, each compared as its class demands.

Exact, identity, or statistical. Never one as another.
"""

import math
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from whorl.study import kinds

ROUND_OFF = 1e-13  # what counts as round-off for quantities of order one
INSIDE = (2.5, 97.5)  # the central 95 %, in per cent


@dataclass(frozen=True)
class Number:
    """A published number and how it is to be compared.

    Examples:
        >>> from whorl.study import published
        >>> published.numbers()[0].study
        'structural'
    """

    study: str
    statistic: str
    printed: str
    kind: str
    where: str
    bound: float | None = None
    roundoff: bool = True
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """One line of the table "published | here | class | verdict".

    Examples:
        >>> from whorl.study import published
        >>> line = published.compare(published.numbers()[0], None)
        >>> line.agrees, line.verdict
        (False, 'no such value here')
    """

    study: str
    statistic: str
    published: str
    here: str
    kind: str
    verdict: str  # equal, holds or inside; DIFFERS, FAILS or outside
    agrees: bool
    percentile: float | None  # of the published value among ours, for the statistical class
    where: str
    note: str

    def asdict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


@cache
def numbers() -> tuple[Number, ...]:
    """Every published number, in the paper's order.

    Examples:
        >>> from whorl.study import published
        >>> len(published.numbers())
        75
    """
    places = {study: kinds.file(study, "published.toml") for study in kinds.names()}
    return tuple(
        Number(study=study, kind=row.pop("class"), **row)
        for study, place in places.items()
        if place.is_file()
        for row in tomllib.loads(place.read_text())["numbers"]
    )


@cache
def distribution(study: str) -> dict[str, np.ndarray]:
    """Our own values of every statistic over many root seeds, as shipped.

    Examples:
        >>> from whorl.study import published
        >>> len(published.distribution("threshold")["auc"])
        400
    """
    table = pq.read_table(BytesIO(kinds.file(study, "distribution.parquet").read_bytes()))
    names, values = np.asarray(table["statistic"].to_pylist()), table["value"].to_numpy()
    return {name: values[names == name] for name in np.unique(names)}


def compare(number: Number, value: float | None) -> Comparison:
    """One published number against the value of a run.

    Examples:
        >>> from whorl.study import published
        >>> number = next(
        ...     number
        ...     for number in published.numbers()
        ...     if number.statistic == "coefficient.negative"
        ... )
        >>> published.compare(number, -0.9271875).verdict
        'equal'
    """
    if value is None:
        return _line(number, "none", "no such value here", False)
    if number.kind == "exact":
        agrees, here = _same_digits(number.printed, value)
        return _line(number, here, "equal" if agrees else "DIFFERS", agrees)
    if number.kind == "identity":
        assert number.bound is not None
        holds = 0 <= value < (min(number.bound, ROUND_OFF) if number.roundoff else number.bound)
        return _line(number, alike("1.000e0", value), "holds" if holds else "FAILS", holds)
    at = percentile(float(number.printed), distribution(number.study)[number.statistic])
    inside = INSIDE[0] <= at <= INSIDE[1]
    here = alike(number.printed, value)
    return _line(number, here, "inside" if inside else "outside", inside, at)


def _line(
    number: Number, here: str, verdict: str, agrees: bool, at: float | None = None
) -> Comparison:
    first = (number.study, number.statistic, number.printed, here, number.kind)
    return Comparison(*first, verdict, agrees, at, number.where, number.note)


def alike(printed: str, value: float) -> str:
    """A value written as another was printed: as many digits, and a power of ten where it has one.

    Examples:
        >>> from whorl.study import published
        >>> published.alike("8.00995e-3", 0.0643367), published.alike("0.963", 0.9625)
        ('6.43367e-2', '0.963')
    """
    mantissa, exponent, _ = printed.partition("e")
    digits = len(mantissa.partition(".")[2])
    if not math.isfinite(value) or (not exponent and not digits and value != round(value)):
        return f"{value:.3g}"  # ours is no count, whatever theirs is
    if not exponent:
        return f"{value:.{digits}f}"
    lead, _, power = f"{value:.{digits}e}".partition("e")
    return f"{lead}e{int(power)}"


def percentile(value: float, among: np.ndarray) -> float:
    """Where a value stands among others, in per cent; equal ones count half.

    Examples:
        >>> from whorl.study import published
        >>> published.percentile(2.0, np.array([1.0, 2.0, 3.0, 4.0]))
        37.5
    """
    return float(100 * (np.mean(among < value) + np.mean(among == value) / 2))


def _same_digits(printed: str, value: float) -> tuple[bool, str]:
    """Whether a value, written with the digits that were printed, reads the same.

    Dots at the end mean cut, not rounded.
    """
    if printed.endswith("..."):
        digits = printed.removesuffix("...")
        return f"{value:.15f}".startswith(digits), f"{value:.{len(digits.partition('.')[2]) + 3}f}"
    if "." not in printed:  # a count, or nothing at all
        return value == int(printed), f"{value:g}"
    shown = f"{value:.{len(printed.partition('.')[2])}f}"
    return shown == printed, shown


def table(statistics: dict[str, dict[str, float]]) -> list[Comparison]:
    """All numbers of the studies that were run."""
    return [
        compare(number, statistics[number.study].get(number.statistic))
        for number in numbers()
        if number.study in statistics
    ]
