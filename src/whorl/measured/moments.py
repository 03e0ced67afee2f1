r"""Weighted sums of products of the measurements, per unit.

A row is one measurement: what was applied, $x$, and how the outputs moved, $y$, in zero-sum
coordinates. Everything that follows, from the estimate to the test, needs only $\sum
w\,zz^\mathsf{T}$ with $z = (x, y, \dots)$ over *units*. A unit is what may be called independent of
all others: a row, or, where repeats were recorded, all rows of one repeat. A short table keeps its
rows. A long one is dealt into a fixed number of bins as it streams by, so that memory does not grow
with it.

Beside what was applied and seen, a row carries what could be mistaken for a loop: a constant, its
place in the file and in its repeat, and what was applied just before.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

BINS = 128  # units of a long table
ROOM = 4_000_000  # numbers that the units of a short table may take
SHOWN = 1500  # rows kept for the picture
# below this many repeats, rows are the units: seven signs are the fewest that make a level close to
# 5 %
FEWEST = 7


@dataclass(frozen=True)
class Moments:
    """Sums of products over units, with named parts."""

    parts: Mapping[str, slice]
    second: Float[np.ndarray, "units d d"]
    rows: Int[np.ndarray, "units"]

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self.rows)

    def between(self, left: str, right: str) -> Float[np.ndarray, "units a b"]:
        """The sums of products of two parts, unit by unit."""
        return self.second[:, self.parts[left], self.parts[right]]


def all_parts(parts: Mapping[str, slice]) -> dict[str, slice]:
    """The parts of a row together with those that tell about the order of the rows."""
    end = max(part.stop for part in parts.values())
    first = next(iter(parts.values()))
    drive = first.stop - first.start
    return {
        **parts,
        "one": slice(end, end + 1),
        "time": slice(end + 1, end + 2),
        "place": slice(end + 2, end + 3),
        "before": slice(end + 3, end + 3 + drive),
    }


@dataclass(frozen=True)
class Record:
    """All that is kept of one loop's measurements."""

    moments: Moments
    shown: Float[np.ndarray, "shown d"]  # evenly thinned rows, for the picture
    repeats: int  # how many repeats were recorded; 0 where none were
    by_repeat: bool  # whether the units are repeats

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return int(self.moments.rows.sum())


@dataclass
class Collector:
    """Takes rows as they come and keeps what `Record` needs."""

    parts: Mapping[str, slice]  # of the rows that it is handed, which begin with the first drive
    repeated: bool
    _kept: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    _bins: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    _shown: list[np.ndarray] = field(default_factory=list)
    _stride: int = 1
    count: int = 0
    _last: float = np.nan
    _runs: int = 0
    _place: int = 0
    _before: np.ndarray | None = None
    _seen_run: int = -1

    @property
    def width(self) -> int:
        """Length of one row."""
        return max(part.stop for part in all_parts(self.parts).values())

    def add(
        self,
        rows: Float[np.ndarray, "k d"],
        weights: Float[np.ndarray, "k"],
        repeat: Float[np.ndarray, "k"] | None,
        blur: Float[np.ndarray, "k"] | None = None,
    ) -> int | None:
        """Take more rows; `blur` is the variance of the noise in what was applied.

        Answers with the place of the first row whose repeat goes down, if there is one.
        """
        if len(rows) == 0:
            return None
        runs = np.arange(self.count, self.count + len(rows))
        if repeat is not None:
            steps = np.diff(repeat, prepend=self._last if self.count else repeat[0] - 1)
            if (steps < 0).any():
                return int(np.argmax(steps < 0))
            runs = self._runs - 1 + np.cumsum(steps > 0)
            self._last, self._runs = float(repeat[-1]), int(runs[-1]) + 1
        self._show(rows)
        rows = np.concatenate([rows, self._order(rows, repeat is not None, runs)], axis=1)
        self._kept.append((rows, weights, runs, np.zeros(len(rows)) if blur is None else blur))
        self.count += len(rows)
        if self._bins or self.count * self.width**2 > ROOM:
            self._deal()
        return None

    def finish(self) -> Record:
        """What is kept in the end."""
        by_repeat = self.repeated and self._runs >= FEWEST
        repeats = self._runs if self.repeated else 0
        shown = np.concatenate(self._shown)[:: max(1, sum(map(len, self._shown)) // SHOWN)]
        if self._bins:
            second, count = self._bins[int(self.repeated and not by_repeat)]
            held = count > 0
            kept = Moments(all_parts(self.parts), second[held], count[held])
            return Record(kept, shown, repeats, by_repeat)
        rows, weights, runs, blur = (np.concatenate(kind) for kind in zip(*self._kept, strict=True))
        first = np.unique(runs, return_index=True)[1] if by_repeat else np.arange(len(rows))
        # The caller checks the size of the record.
        with np.errstate(over="ignore", invalid="ignore"):
            products = weights[:, None, None] * rows[:, :, None] * rows[:, None, :]
            own = np.arange(self.width)[next(iter(self.parts.values()))]
            products[:, own, own] -= (weights * blur)[:, None]
            second = np.add.reduceat(products, first, axis=0)
        kept = Moments(all_parts(self.parts), second, np.diff(first, append=len(rows)))
        return Record(kept, shown, repeats, by_repeat)

    def _order(self, rows: np.ndarray, repeated: bool, runs: np.ndarray) -> np.ndarray:
        """What tells about the order: one, the place in the file and in the repeat, and the row
        before.
        """
        count = np.arange(self.count, self.count + len(rows), dtype=float)
        place = np.zeros(len(rows))
        if repeated:
            first = np.r_[True, runs[1:] != runs[:-1]]
            start = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
            place = np.arange(len(rows)) - start + 0.0
            going = self.count > 0 and self._seen_run == runs[0]
            place += np.where(runs == runs[0], self._place if going else 0, 0)
            self._place, self._seen_run = int(place[-1]) + 1, int(runs[-1])
        drive = rows[:, next(iter(self.parts.values()))]
        first_before = np.zeros((1, drive.shape[1])) if self._before is None else self._before
        self._before = drive[-1:].copy()
        before = np.concatenate([first_before, drive[:-1]])
        return np.concatenate([np.ones((len(rows), 1)), count[:, None], place[:, None], before], 1)

    def _show(self, rows: np.ndarray) -> None:
        self._shown.append(rows[-self.count % self._stride :: self._stride].copy())
        if sum(map(len, self._shown)) > 2 * SHOWN:
            self._stride *= 2
            self._shown = [np.concatenate(self._shown)[::2]]

    def _deal(self) -> None:
        # Whether there will be enough repeats is known at the end only, so bins by repeat and bins
        # by row are both filled.
        while len(self._bins) < 1 + self.repeated:
            self._bins.append((np.zeros((BINS, self.width, self.width)), np.zeros(BINS, dtype=int)))
        seen = self.count - sum(len(rows) for rows, *_ in self._kept)
        own = np.arange(self.width)[next(iter(self.parts.values()))]
        for rows, weights, runs, blur in self._kept:
            keys = [runs, np.arange(seen, seen + len(rows))]
            for (second, count), key in zip(self._bins, keys, strict=False):
                bins = _bin(key)
                _accumulate(second, count, rows, weights, bins)
                lost = np.bincount(bins, weights * blur, minlength=BINS)
                second[:, own, own] -= lost[:, None]
            seen += len(rows)
        self._kept = []


def _bin(key: Int[np.ndarray, "k"]) -> Int[np.ndarray, "k"]:
    # The mixing function of splitmix64: a fixed deal that no regularity of the experiment's order
    # can follow.
    mixed = key.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(BINS)).astype(int)


def _accumulate(
    second: np.ndarray, count: np.ndarray, rows: np.ndarray, weights: np.ndarray, bins: np.ndarray
) -> None:
    order = np.argsort(bins, kind="stable")
    ends = np.searchsorted(bins[order], np.arange(BINS + 1))
    sorted_rows = rows[order]
    weighted = sorted_rows * weights[order, None]
    for number, (start, stop) in enumerate(itertools.pairwise(ends)):
        if stop > start:
            second[number] += weighted[start:stop].T @ sorted_rows[start:stop]
            count[number] += stop - start
