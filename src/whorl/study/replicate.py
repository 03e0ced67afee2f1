"""A study under many root seeds: where would its numbers have fallen?"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl.study import run, store
from whorl.study.design import Design
from whorl.study.schema import SEED

SCHEMA = pa.schema(
    [
        pa.field("seed", pa.int64(), nullable=False, metadata={"description": "root seed of the study"}),
        pa.field("statistic", pa.string(), nullable=False, metadata={"description": "name, as in the study's statistics"}),
        pa.field("value", pa.float64(), nullable=False, metadata={"description": "value under that seed"}),
    ]
)
KEEP = 20  # seeds between two writes


def replicate(
    design: Design, seeds: Iterable[int], path: Path, *, quick: bool = False, progress: Callable[[int], None] = lambda _: None
) -> pa.Table:
    """Statistics of the study for every root seed, in a table that is written as it grows; seeds that it holds already are kept."""
    rows = _held(path, design, quick)
    fresh = 0
    try:
        for seed in seeds:
            if seed not in rows:
                found = run.compute(design, quick, seed=_checked(seed))["statistics"]
                rows[seed] = dict(zip(found["name"].tolist(), found["value"].tolist(), strict=True))
                fresh += 1
                if fresh % KEEP == 0:
                    _write(path, design, quick, rows)
            progress(seed)
    except (KeyboardInterrupt, ValueError):
        if fresh:
            _write(path, design, quick, rows)
        raise
    return _write(path, design, quick, rows)


def _checked(seed: int) -> int:
    words, test = SEED
    if not test(seed):
        raise ValueError(f"seed must be {words}, but it is {seed}")
    return seed


def _held(path: Path, design: Design, quick: bool) -> dict[int, dict[str, float]]:
    if not path.exists():
        return {}
    table = pq.read_table(path)
    about = table.schema.metadata or {}
    if about.get(b"design") != design.sha256.encode() or about.get(b"quick") != str(quick).encode():
        raise ValueError(f"{path} must hold replicates of this design, but it was made from another: remove it or name another file")
    rows: dict[int, dict[str, float]] = {}
    for seed, name, value in zip(*(table[column].to_pylist() for column in SCHEMA.names), strict=True):
        rows.setdefault(seed, {})[name] = value
    return rows


def _write(path: Path, design: Design, quick: bool, rows: dict[int, dict[str, float]]) -> pa.Table:
    flat = [(seed, name, value) for seed in sorted(rows) for name, value in rows[seed].items()]
    about = {"study": design.name, "design": design.sha256, "quick": str(quick)}
    arrays = [pa.array(list(column), field.type) for column, field in zip(zip(*flat, strict=True), SCHEMA, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA.with_metadata(about))
    store.write(path, store.parquet(table))
    return table


def summary(table: pa.Table) -> dict[str, tuple[float, float, float]]:
    """Median and central 95 % of every statistic."""
    names, values = np.asarray(table["statistic"].to_pylist()), table["value"].to_numpy()
    found = {}
    for name in dict.fromkeys(names.tolist()):
        median, low, high = np.quantile(values[names == name], [0.5, 0.025, 0.975])
        found[name] = (float(median), float(low), float(high))
    return found
