"""The work of one worker: from the number of a shard to its file."""

import importlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from whorl.sweep import child, compute, guard, shards
from whorl.sweep.compute import Rows, Train
from whorl.sweep.design import parse
from whorl.sweep.plan import Plan, case_bytes

TRAIN = "whorl.learning.ensemble:train_many"


@dataclass(frozen=True)
class Report:
    r"""What became of a shard.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1"
        ... )
        >>> reports = []
        >>> result = sweep.sweep(design, folder / "few", progress=reports.append)
        >>> [(report.cases, report.failed) for report in reports]
        [(1, 0)]
    """

    number: int
    cases: int
    failed: int
    seconds: float


@dataclass(frozen=True)
class Work:
    """All that a worker has to know; small, and the same for every shard.

    `train` names a function with the signature of `train_many`, as `module:function`. `limit` is
    the number of seconds that one compiled call may take, `memory` the bytes that the cases of one
    worker may take at once.
    """

    text: bytes
    folder: str
    train: str = TRAIN
    limit: float | None = None
    memory: int | None = None

    def __call__(self, number: int) -> Report:
        """Compute a shard and put it into the store."""
        began = time.perf_counter()
        plan = planned(self.text)
        rows = self.rows(plan, number)
        shards.Store(Path(self.folder)).put(number, rows)
        return Report(
            number, rows.num_rows, sum(rows["failed"].to_pylist()), time.perf_counter() - began
        )

    def rows(self, plan: Plan, number: int) -> pa.Table:
        """The table of a shard."""
        shard = plan.shard(number)
        cases, chunk = plan.of(shard), plan.design.chunk

        def call(places: np.ndarray, chunk: int) -> Rows:
            if self.limit is not None:
                return child.rows(self, number, places, chunk)
            return compute.rows(plan.design.seed, cases.rows(places), chunk, function(self.train))

        return shards.table(
            plan.design, cases, guard.careful(call, shard.count, chunk, self.part(plan, number))
        )

    def part(self, plan: Plan, number: int) -> int:
        """Cases in a call.

        As many whole chunks as the memory holds, and never more than a shard.
        """
        shape, chunk = plan.shard(number).shape, plan.design.chunk
        most = -(-plan.design.shard // chunk) * chunk
        if self.memory is None:
            return most
        return min(
            most, max(chunk, self.memory // case_bytes(shape, plan.updates(shape)) // chunk * chunk)
        )

    def kept(self, left: set[int]) -> Iterator[Report]:
        """Reports of shards that are in the store but were not reported."""
        plan = planned(self.text)
        for number, path in shards.Store(Path(self.folder)).sound(plan, left).items():
            yield Report(number, *shards.reported(path, plan.design), 0.0)

    def give_up(self, number: int, reason: str) -> Report:
        """Put a shard into the store whose cases all failed for one reason."""
        plan = planned(self.text)
        rows = shards.lost(plan, plan.shard(number), reason)
        shards.Store(Path(self.folder)).put(number, rows)
        return Report(number, rows.num_rows, rows.num_rows, 0.0)


@cache
def planned(text: bytes) -> Plan:
    """The plan of a design; a worker makes it once."""
    return Plan(parse(text))


@cache
def function(name: str) -> Train:
    """The function of a `module:function`."""
    module, _, member = name.partition(":")
    return getattr(importlib.import_module(module), member)
