"""The cases of a sweep, their files, and their estimated cost.

Nothing is listed: every case is found by arithmetic.

Cases of one compiled shape have consecutive numbers, and a shard never holds two shapes. Within a
shape the trial varies slowest, then the point of the design, then the flip, so that a shard draws
each of its trials once. Trials are shared by all points of a grid, which makes their comparison
paired; a random design draws anew for every point.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from whorl.ground.streams import stream
from whorl.registry import gates, laws, policies
from whorl.sweep.design import Range, Sweep
from whorl.sweep.draws import BLOCK, POINTS

ROW_BYTES, FILE_BYTES = 85, 9000  # of a stored case and of a file, measured


@dataclass(frozen=True)
class Shard:
    """Consecutive cases of one shape, which one file holds.

    Examples:
        >>> from whorl import sweep
        >>> sweep.Plan(sweep.read(Path("examples/sweep.toml"))).shard(0).count
        600
    """

    number: int
    shape: Mapping[str, Any]
    first: int  # number of its first case
    within: int  # the same, counted from the first case of the shape
    points_before: int  # points of a random design in the shapes before
    count: int


@dataclass(frozen=True)
class Cases:
    """The parameters of some cases, one array per parameter.

    Examples:
        >>> from whorl import sweep
        >>> plan = sweep.Plan(sweep.read(Path("examples/sweep.toml")))
        >>> sorted(plan.of(plan.shard(0)).free)[:2]
        ['concentration', 'floor']
    """

    shape: Mapping[str, Any]
    number: np.ndarray
    trial: np.ndarray
    draw: np.ndarray  # which draw of task, network and schedule; cases with one draw share them
    flip: np.ndarray
    free: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.number)

    def rows(self, rows: np.ndarray) -> "Cases":
        """Some of these cases."""
        free = {name: values[rows] for name, values in self.free.items()}
        return Cases(
            self.shape, self.number[rows], self.trial[rows], self.draw[rows], self.flip[rows], free
        )


class Plan:
    """A design as numbered cases in numbered shards.

    Examples:
        >>> from whorl import sweep
        >>> plan = sweep.Plan(sweep.read(Path("examples/sweep.toml")))
        >>> plan.cases, plan.shards
        (2400, 4)
    """

    def __init__(self, design: Sweep) -> None:
        self.design = design
        self.shapes: list[dict[str, Any]] = design.shapes
        flips = 1 + design.flips
        if design.kind == "grid":
            self.inner: tuple[int, ...] = tuple(
                len(values)
                for values in (design.values[name] for name in design.free)
                if isinstance(values, tuple)
            )
            self.points: list[int] = [prod(self.inner)] * len(self.shapes)
        else:
            each, more = divmod(design.points or 0, len(self.shapes))
            self.points = [each + (number < more) for number in range(len(self.shapes))]
        self.counts: np.ndarray = np.array(
            [points * design.trials * flips for points in self.points], dtype=np.int64
        )
        self.files: np.ndarray = -(-self.counts // design.shard)

    @cached_property
    def cases(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @cached_property
    def shards(self) -> int:
        """How many files they go into."""
        return int(self.files.sum())

    def shard(self, number: int) -> Shard:
        """One of them, by its number."""
        ends = np.cumsum(self.files)
        at = int(np.searchsorted(ends, number, side="right"))
        if not 0 <= number < self.shards:
            raise ValueError(
                f"shard must be a number from 0 to {self.shards - 1}, but it is {number}"
            )
        within = (number - int(ends[at] - self.files[at])) * self.design.shard
        count = min(self.design.shard, int(self.counts[at]) - within)
        return Shard(
            number,
            self.shapes[at],
            int(self.counts[:at].sum()) + within,
            within,
            sum(self.points[:at]),
            count,
        )

    def of(self, shard: Shard) -> Cases:
        """The cases of a shard."""
        design, flips = self.design, 1 + self.design.flips
        place, flip = np.divmod(shard.within + np.arange(shard.count), flips)
        if design.kind == "grid":
            trial, point = np.divmod(place, prod(self.inner))
            at = np.unravel_index(point, self.inner)
            free = {
                name: np.asarray(self.design.values[name])[where]
                for name, where in zip(design.free, at, strict=True)
            }
            draw = trial
        else:
            point, trial = np.divmod(place, design.trials)
            free = self._drawn(shard.points_before + point)
            draw = (shard.points_before + point) * design.trials + trial
        return Cases(shard.shape, shard.first + np.arange(shard.count), trial, draw, flip, free)

    def _drawn(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters of points of a random design, each from the stream of its block."""
        blocks, inverse = np.unique(point // BLOCK, return_inverse=True)
        free = self.design.free
        even = np.stack(
            [
                stream(self.design.seed, int(block), POINTS).random((BLOCK, len(free)))
                for block in blocks
            ]
        )
        shares = even[inverse, point % BLOCK]
        return {
            name: _placed(self.design.values[name], share)
            for name, share in zip(free, shares.T, strict=True)
        }

    def estimate(self, workers: int = 1) -> dict[str, Any]:
        """About how long a sweep takes on a core like ours and what it leaves on the disk.

        Within a factor of two or three.
        """
        updates = np.array([self.updates(shape) for shape in self.shapes])
        each = np.array([update_seconds(shape) for shape in self.shapes])
        compiling = sum(4.0 + 1.5 * shape["depth"] for shape in self.shapes)
        work = float((self.counts * (updates * (each + 1.5e-8) + 2.5e-5)).sum())
        return {
            "cases": self.cases,
            "shards": self.shards,
            "shapes": len(self.shapes),
            "updates": float((self.counts * updates).sum()),
            "seconds": work / workers + compiling,
            "bytes": self.cases * ROW_BYTES + self.shards * FILE_BYTES,
        }

    def updates(self, shape: Mapping[str, Any]) -> int:
        """Updates of one case."""
        return shape["epochs"] * (shape["width"] + shape["mixtures"])


def _placed(values: Any, share: np.ndarray) -> np.ndarray:
    """Even numbers in [0, 1) as values of a parameter."""
    if not isinstance(values, Range):
        return np.asarray(values)[np.minimum((share * len(values)).astype(int), len(values) - 1)]
    if values.log:
        return np.clip(
            np.exp(np.log(values.low) + share * np.log(values.high / values.low)),
            values.low,
            values.high,
        )
    return values.low + share * (values.high - values.low)


def update_seconds(shape: Mapping[str, Any]) -> float:
    """Of one pair on one core.

    Constants of a fit to benchmarks/README.md for width three, a rough guess elsewhere.
    """
    ours = all(
        known.get(shape[known.kind]).source == "whorl.learning.policy"
        for known in (policies, gates)
    )
    damped = laws.get(shape["law"]).make().damping is not None
    if shape["width"] == 3 and shape["alpha"] == 1 and damped and ours:
        return 5e-9 + 9.5e-8 * shape["depth"]
    return 2e-6 * (1 + shape["depth"]) * (shape["width"] / 3) ** 2


def case_bytes(shape: Mapping[str, Any], updates: int) -> int:
    """Memory that one case takes while it is computed.

    Its data, its states and the copies made on the way, generously.
    """
    samples = shape["width"] + shape["mixtures"]
    return (
        8 * (8 * samples * shape["width"] + 12 * shape["depth"] * shape["width"] ** 2)
        + 40 * updates
        + 1000
    )
