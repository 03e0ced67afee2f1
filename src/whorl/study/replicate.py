"""A study under many root seeds: where would its numbers have fallen?

Seeds can be shared among the workers of an engine. A worker takes several at a time, which a kind
of study may compute together (`Kind.many`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl import _progress
from whorl.fields import SEED
from whorl.ground import store
from whorl.ground.engines import Engine
from whorl.study import kinds, run
from whorl.study.design import Design, parse

Statistics = dict[str, float]
COLUMNS = (
    ("seed", pa.int64(), "root seed of the study"),
    ("statistic", pa.string(), "name, as in the study's statistics"),
    ("value", pa.float64(), "value under that seed"),
)
SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=False, metadata={"description": words})
        for name, kind, words in COLUMNS
    ]
)
KEEP = 20  # seeds between two writes
BATCH = 10  # seeds that a worker takes at a time


@dataclass(frozen=True)
class Batch:
    """The statistics of some seeds, as an engine reports them."""

    number: int
    found: dict[int, Statistics]


@dataclass(frozen=True)
class Seeds:
    """What a worker has to know; batches are numbered."""

    text: bytes
    quick: bool
    seeds: tuple[int, ...]
    size: int = BATCH

    def __call__(self, number: int) -> Batch:
        """The statistics of one batch."""
        here = self.seeds[number * self.size : (number + 1) * self.size]
        return Batch(number, statistics(_parsed(self.text), self.quick, here, begin=number))

    def kept(self, _left: set[int]) -> Iterator[Batch]:
        """What was finished while nobody listened: nothing, since only the caller writes."""
        return iter(())

    def give_up(self, number: int, reason: str) -> NoReturn:
        """A study has no row for a seed that cannot be computed."""
        first = self.seeds[number * self.size]
        raise ValueError(
            f"every root seed must have statistics, but for seed {first} and those after it "
            f"{reason}"
        )


@cache
def _parsed(text: bytes) -> Design:
    return parse(text)


def replicate(
    design: Design,
    seeds: Iterable[int],
    path: Path,
    *,
    quick: bool = False,
    engine: Engine | None = None,
    progress: Callable[[int], None] | bool = False,
) -> pa.Table:
    """Statistics of the study for every root seed, in a table that is written as it grows.

    Seeds that it holds already are kept.

    `engine` is one of `whorl.sweep`; left out, seeds are computed here, one after the other. The
    table is the same. `progress` is True for a bar, or a function that is told every seed.

    Examples:
        >>> from whorl.study import design, replicate
        >>> table = replicate.replicate(
        ...     design.shipped("threshold"), [1, 2], folder / "seeds.parquet", quick=True
        ... )
        >>> table.column_names
        ['seed', 'statistic', 'value']
    """
    wanted = list(seeds)
    with _progress.bar("replicate", progress is True) as bar:

        def told(number: int, seed: int) -> None:
            if bar is not None:
                bar.to(number / len(wanted))
            elif callable(progress):
                progress(seed)

        return _replicated(design, wanted, path, quick, engine, told)


def _replicated(
    design: Design,
    seeds: list[int],
    path: Path,
    quick: bool,
    engine: Engine | None,
    told: Callable[[int, int], None],
) -> pa.Table:
    rows = _held(path, design, quick)
    fresh = 0
    try:
        for number, (seed, found) in enumerate(_found(design, seeds, rows, quick, engine), 1):
            if found is not None:
                rows[seed] = found
                fresh += 1
                if fresh % KEEP == 0:
                    _write(path, design, quick, rows)
            told(number, seed)
    except (KeyboardInterrupt, ValueError):
        if fresh:
            _write(path, design, quick, rows)
        raise
    return _write(path, design, quick, rows)


def _found(
    design: Design,
    seeds: list[int],
    held: dict[int, Statistics],
    quick: bool,
    engine: Engine | None,
) -> Iterator[tuple[int, Statistics | None]]:
    """Every seed with its statistics as they come; None for those that are held."""
    if engine is None:
        for seed in seeds:
            yield (
                seed,
                None if seed in held else statistics(design, quick, [SEED.check(seed)])[seed],
            )
        return
    yield from ((seed, None) for seed in seeds if seed in held)
    fresh = tuple(dict.fromkeys(SEED.check(seed) for seed in seeds if seed not in held))
    work = Seeds(design.text, quick, fresh)
    for batch in engine.run(work, range(-(-len(fresh) // work.size))):
        yield from batch.found.items()


def statistics(
    design: Design, quick: bool, seeds: Iterable[int], *, begin: int = 0
) -> dict[int, Statistics]:
    """The statistics of a study under some root seeds.

    `begin` numbers the stage that comes first.
    """
    seeds = list(seeds)
    kind, judged = kinds.get(design.kind), None
    if kind.many is not None and len(seeds) > 1:
        each = [design.values(quick, seed=seed) for seed in seeds]
        try:
            made = kind.many(each, run.rotated(kind.stages(each[0]), begin))
            judged = [run.judged(kind, p, parts) for p, parts in zip(each, made, strict=True)]
        except ValueError:  # of one seed, it does not say which: alone, each answers for itself
            judged = None
    if judged is None:
        judged = [run.compute(design, quick, begin=begin, seed=seed) for seed in seeds]
    return {seed: run.named(t["statistics"]) for seed, t in zip(seeds, judged, strict=True)}


def _held(path: Path, design: Design, quick: bool) -> dict[int, Statistics]:
    def refused(rule: str) -> ValueError:
        return ValueError(f"{path} must {rule}: remove it or name another file")

    if not path.exists():
        return {}
    try:
        table = pq.ParquetFile(path).read()
        table.validate(full=True)  # names that are no text, among others
    except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
        raise refused("be a table of replicates, but it cannot be read") from wrong
    about = table.schema.metadata or {}
    if about.get(b"design") != design.sha256.encode() or about.get(b"quick") != str(quick).encode():
        raise refused("hold replicates of this design, but it was made from another")
    if (table.schema.names, table.schema.types) != (SCHEMA.names, SCHEMA.types):
        raise refused(f"have the columns {', '.join(SCHEMA.names)}, but it has others")
    rows: dict[int, Statistics] = {}
    for row in table.to_pylist():
        rows.setdefault(row["seed"], {})[row["statistic"]] = row["value"]
    if len({frozenset(found) for found in rows.values()}) > 1 or any(
        column.null_count for column in table
    ):
        raise refused("have the same statistics for every seed, but some are missing")
    return rows


def _write(path: Path, design: Design, quick: bool, rows: dict[int, Statistics]) -> pa.Table:
    flat = [(seed, name, value) for seed in sorted(rows) for name, value in rows[seed].items()]
    about = {"study": design.name, "design": design.sha256, "quick": str(quick)}
    arrays = [
        pa.array(list(column), field.type)
        for column, field in zip(zip(*flat, strict=True), SCHEMA, strict=True)
    ]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA.with_metadata(about))
    store.write(path, store.parquet(table))
    return table


def summary(table: pa.Table) -> dict[str, tuple[float, float, float]]:
    """Median and central 95 % of every statistic.

    Examples:
        >>> import pyarrow as pa
        >>> from whorl.study import replicate
        >>> replicate.summary(
        ...     pa.table({"seed": [1, 2, 3], "statistic": ["auc"] * 3, "value": [0.9, 0.9, 0.9]})
        ... )
        {'auc': (0.9, 0.9, 0.9)}
    """
    names, values = np.asarray(table["statistic"].to_pylist()), table["value"].to_numpy()
    found = {}
    for name in dict.fromkeys(names.tolist()):
        median, low, high = np.quantile(values[names == name], [0.5, 0.025, 0.975])
        found[name] = (float(median), float(low), float(high))
    return found
