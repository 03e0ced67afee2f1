"""A study under many root seeds: where would its numbers have fallen?

Seeds can be shared among the workers of an engine of `whorl.sweep`. A worker takes several at a
time: pairs of the horizon study under all of them go through one compiled call, whose chunk is the
design's, so that no number depends on which seeds were taken together.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl.ensemble import train_many
from whorl.feedback import leaky, rotational
from whorl.ground import store
from whorl.study import _frames, draws, horizon, run
from whorl.study.design import Design, parse
from whorl.study.schema import SEED

Statistics = dict[str, float]
SCHEMA = pa.schema(
    [
        pa.field(
            "seed", pa.int64(), nullable=False, metadata={"description": "root seed of the study"}
        ),
        pa.field(
            "statistic",
            pa.string(),
            nullable=False,
            metadata={"description": "name, as in the study's statistics"},
        ),
        pa.field(
            "value", pa.float64(), nullable=False, metadata={"description": "value under that seed"}
        ),
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
    engine: Any = None,
    progress: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """Statistics of the study for every root seed, in a table that is written as it grows.

    Seeds that it holds already are kept.

    `engine` is one of `whorl.sweep`; left out, seeds are computed here, one after the other. The
    table is the same.

    Examples:
        >>> from whorl.study import design, replicate
        >>> table = replicate.replicate(design.shipped("threshold"), [1, 2], folder / "seeds.parquet", quick=True)
        >>> table.column_names
        ['seed', 'statistic', 'value']
    """
    rows = _held(path, design, quick)
    fresh = 0
    try:
        for seed, found in _found(design, list(seeds), rows, quick, engine):
            if found is not None:
                rows[seed] = found
                fresh += 1
                if fresh % KEEP == 0:
                    _write(path, design, quick, rows)
            progress(seed)
    except (KeyboardInterrupt, ValueError):
        if fresh:
            _write(path, design, quick, rows)
        raise
    return _write(path, design, quick, rows)


def _found(
    design: Design, seeds: list[int], held: dict[int, Any], quick: bool, engine: Any
) -> Iterator[tuple[int, Statistics | None]]:
    """Every seed with its statistics as they come; None for those that are held."""
    if engine is None:
        for seed in seeds:
            yield seed, None if seed in held else statistics(design, quick, [_checked(seed)])[seed]
        return
    yield from ((seed, None) for seed in seeds if seed in held)
    fresh = tuple(dict.fromkeys(_checked(seed) for seed in seeds if seed not in held))
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
    if design.kind == "horizon" and len(seeds) > 1:
        try:
            return _horizon(design, quick, seeds, begin)
        except ValueError:  # of one seed, it does not say which: alone, each answers for itself
            pass
    return {seed: _named(run.compute(design, quick, begin=begin, seed=seed)) for seed in seeds}


def _named(tables: dict[str, dict[str, np.ndarray]]) -> Statistics:
    found = tables["statistics"]
    return dict(zip(found["name"].tolist(), found["value"].tolist(), strict=True))


def _horizon(design: Design, quick: bool, seeds: list[int], begin: int) -> dict[int, Statistics]:
    """The horizon study under several seeds, one call a stage, and each trial drawn once instead of
    once a stage and condition.
    """
    each = [design.values(quick, seed=seed) for seed in seeds]
    p = each[0]
    x, y, order, turns = (np.concatenate(part) for part in zip(*map(_shown, each), strict=True))
    parts: list[dict[str, dict[str, np.ndarray]]] = [{} for _ in each]
    starts = {depth: _starts(each, depth) for depth in p.depths}
    stages = [
        (depth, name, scale)
        for depth in p.depths
        for name in horizon.POLICIES
        for scale in p.scales
    ]
    for depth, name, scale in run.rotated(stages, begin):
        layers = starts[depth]
        rule = horizon.POLICIES[name](
            scale, omega=p.omega, law=rotational(p.alpha, base=leaky(p.leak))
        )
        made = train_many(
            _frames.network(layers),
            x,
            y,
            policy=rule,
            schedule=order,
            turns=turns,
            record=True,
            chunk=p.chunk,
        )
        for part, cut in zip(parts, _cut(made, layers, len(each)), strict=True):
            part[horizon._stage(depth, name, scale)] = cut
    return {
        one.seed: _named(run.judged(horizon, one, part))
        for one, part in zip(each, parts, strict=True)
    }


def _starts(each: list[SimpleNamespace], depth: int) -> np.ndarray:
    """The networks of all seeds, over trial, imbalance and flip."""
    drawn = [
        draws.softmax_layers(p.seed, trial, depth, beta, p.floor)
        for p in each
        for trial in range(p.trials)
        for beta in p.betas
    ]
    return np.repeat(np.stack(drawn), 2, axis=0)


def _shown(p: SimpleNamespace) -> list[np.ndarray]:
    """Inputs, targets, order and turns of one seed, over trial, imbalance and flip."""
    drawn = zip(*(horizon._trial(p, trial, 0) for trial in range(p.trials)), strict=True)
    x, y, order, turns = (np.repeat(np.stack(part), 2 * len(p.betas), axis=0) for part in drawn)
    return [x, y, order, turns * np.tile([1, -1], len(turns) // 2)[:, None]]


def _cut(made: Any, layers: np.ndarray, seeds: int) -> list[dict[str, np.ndarray]]:
    """What `horizon.compute` answers, for each seed of a call."""
    if not made.completed.all():
        raise ValueError(
            f"every pair must stay in the interior, but {int((~made.completed).sum())} did not"
        )
    found = {
        name: np.asarray(getattr(made.updates.outcome, name))
        for name in (*horizon.LOSSES, "step", "amount")
    }
    ends = {
        f"end_{name}": np.stack([np.asarray(part) for part in net.layers], axis=1)
        for name, net in horizon._ends(made)
    }
    whole = found | ends | {"start": made.start, "layers": layers[::2]}
    split = {name: np.split(values, seeds) for name, values in whole.items()}
    return [{name: pieces[number] for name, pieces in split.items()} for number in range(seeds)]


def _checked(seed: int) -> int:
    words, test = SEED
    if not test(seed):
        raise ValueError(f"seed must be {words}, but it is {seed}")
    return seed


def _held(path: Path, design: Design, quick: bool) -> dict[int, dict[str, float]]:
    if not path.exists():
        return {}
    try:
        table = pq.ParquetFile(path).read()
        table.validate(full=True)  # names that are no text, among others
    except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
        raise ValueError(
            f"{path} must be a table of replicates, but it cannot be read: remove it or name "
            "another file"
        ) from wrong
    about = table.schema.metadata or {}
    if about.get(b"design") != design.sha256.encode() or about.get(b"quick") != str(quick).encode():
        raise ValueError(
            f"{path} must hold replicates of this design, but it was made from another: remove it "
            "or name another file"
        )
    if list(zip(table.schema.names, table.schema.types, strict=True)) != list(
        zip(SCHEMA.names, SCHEMA.types, strict=True)
    ):
        raise ValueError(
            f"{path} must have the columns {', '.join(SCHEMA.names)}, but it has others: remove it "
            "or name another file"
        )
    rows: dict[int, dict[str, float]] = {}
    for seed, name, value in zip(
        *(table[column].to_pylist() for column in SCHEMA.names), strict=True
    ):
        rows.setdefault(seed, {})[name] = value
    if len({frozenset(found) for found in rows.values()}) > 1 or any(
        column.null_count for column in table
    ):
        raise ValueError(
            f"{path} must have the same statistics for every seed, but some are missing: remove it "
            "or name another file"
        )
    return rows


def _write(path: Path, design: Design, quick: bool, rows: dict[int, dict[str, float]]) -> pa.Table:
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
        >>> replicate.summary(pa.table({"seed": [1, 2, 3], "statistic": ["auc"] * 3, "value": [0.9, 0.9, 0.9]}))
        {'auc': (0.9, 0.9, 0.9)}
    """
    names, values = np.asarray(table["statistic"].to_pylist()), table["value"].to_numpy()
    found = {}
    for name in dict.fromkeys(names.tolist()):
        median, low, high = np.quantile(values[names == name], [0.5, 0.025, 0.975])
        found[name] = (float(median), float(low), float(high))
    return found
