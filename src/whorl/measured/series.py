r"""Time series of a learner: is it reciprocal, does it turn, and which way does time go?

*The propagator.* Over a time $\Delta$ a linear loop takes the state from $\mu + x$ to $\mu +
e^{-R\Delta}x$. The propagator is symmetric when R is, and has real eigenvalues when R has them, as
long as no mode turns by more than half a cycle between two samples.

*Instruments.* Noise in a measured state biases any regression on it. The sample before is noisy as
well, but its noise is another: R and $\mu$ solve

$$ \sum_t \bigl(y_{t+1} - \mu - e^{-R\Delta_t}(y_t - \mu)\bigr)\,(1, y_{t-1}) = 0 , $$

which measurement noise leaves true, and uneven sampling too. Each unit (a run, or a stretch of one)
adds its own part to the sums, which tells how the noise moves the estimate.

*The arrow of time.* A stationary run looks the same backwards exactly when its lagged covariances
are symmetric; their skew part, over the time between samples, is the rate at which the run encloses
area. With the covariance $\Sigma$ of the state, $R\Sigma = D + A$, the entropy production is
$\operatorname{tr}(\Sigma^{-1}A^\mathsf{T}D^{-1}A)$.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import linalg, optimize, stats

from whorl.measured.bootstrap import Interval, Intervals, spans
from whorl.measured.estimate import Estimated, Matrix, Stack
from whorl.measured.flips import signs, studentised
from whorl.measured.turning import Turning, turning
from whorl.spectrum import Spectrum
from whorl.verdict import Verdict

FEWEST = 8  # runs that are units by themselves
UNITS = 16  # stretches into which fewer runs are cut
SHORT = 3  # steps of a stretch
EVEN = 1e-3  # steps this much alike, relative to their median, are called even
REPLICATES = 999
LEVEL = 0.95


@dataclass(frozen=True)
class Stretch:
    """One stretch of a learner's life without gaps."""

    time: Float[np.ndarray, "steps"]
    state: Float[np.ndarray, "steps n"]


@dataclass(frozen=True)
class Steps:
    """All triples of neighbouring samples: before, now and next, with the time between."""

    before: Float[np.ndarray, "steps n"]
    now: Float[np.ndarray, "steps n"]
    after: Float[np.ndarray, "steps n"]
    gap: Float[np.ndarray, "steps"]  # from now to next
    time: Float[np.ndarray, "steps"]
    unit: np.ndarray  # the unit of every step

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    def by_unit(self, values: np.ndarray) -> np.ndarray:
        """Sums over the steps of each unit."""
        total = np.zeros((self.units, *values.shape[1:]))
        np.add.at(total, self.unit, values)
        return total


@dataclass(frozen=True)
class Course(Estimated):
    """A loop estimated from time series."""

    loop: Matrix
    influence: Stack
    rest: Float[np.ndarray, "n"]  # the operating point
    left: Float[np.ndarray, "steps n"]  # what the propagator does not explain
    steps: Steps

    @property
    def free(self) -> int:
        """Degrees of freedom of the scatter."""
        return max(self.steps.units - 1, 1)

    @cached_property
    def symmetric_p(self) -> float:
        """The p-value of "R is symmetric", from random signs of the units."""
        one, other = np.triu_indices(self.rank, k=1)
        moved = (self.influence - self.influence.swapaxes(1, 2))[:, one, other] / 2
        seen = self.skew[one, other]
        root = np.linalg.pinv(
            np.linalg.cholesky(moved.T @ moved + 1e-14 * np.eye(len(one)) * np.sum(moved**2))
        )
        return _p(moved @ root.T, seen @ root.T)


@dataclass(frozen=True)
class Arrow:
    """What a stationary run says about the arrow of time."""

    p: float  # of detailed balance
    area: Float[np.ndarray, "planes"]  # area enclosed per unit time, in every plane of two states
    spread: Float[np.ndarray, "planes"]  # half the width of its interval
    entropy: Interval | None  # produced per unit time; None where samples are uneven


def runs(
    time: Float[np.ndarray, "rows"],
    state: Float[np.ndarray, "rows n"],
    run: np.ndarray | None = None,
    *,
    gap: float = 3.0,
) -> list[Stretch]:
    """Cut rows into runs: at a new label, where time goes back, and at gaps of `gap` usual steps."""
    change = np.zeros(len(time), dtype=bool)
    step = np.diff(time)
    change[1:] = step <= 0
    if run is not None:
        change[1:] |= run[1:] != run[:-1]
    usual = np.median(step[step > 0]) if (step > 0).any() else np.inf
    change[1:] |= step > gap * usual
    pieces = np.split(np.arange(len(time)), np.flatnonzero(change))
    return [Stretch(time[piece], state[piece]) for piece in pieces if len(piece)]


def steps(found: Sequence[Stretch]) -> Steps:
    """The triples of all runs, and the units that they belong to."""
    usable = [run for run in found if len(run.time) >= 3]
    if not usable:
        raise ValueError(
            "a run must have at least 3 samples without a gap, but none has: sample more often"
        )
    total = sum(len(run.time) - 2 for run in usable)
    parts, unit = [], 0
    for run in usable:
        count = len(run.time) - 2
        whole = len(usable) >= FEWEST
        cuts = 1 if whole else max(1, min(round(UNITS * count / total), count // SHORT))
        own = np.minimum(np.arange(count) * cuts // count, cuts - 1) + unit
        unit += cuts
        parts.append(
            (
                run.state[:-2],
                run.state[1:-1],
                run.state[2:],
                np.diff(run.time)[1:],
                run.time[1:-1],
                own,
            )
        )
    return Steps(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def follow(found: Sequence[Stretch]) -> Course:
    """Estimate the loop behind some runs."""
    given = steps(found)
    count, size = given.now.shape
    if given.units < 6 or count < size * (size + 1) + 6:
        raise ValueError(
            f"the series must have at least {max(18, size * (size + 1) + 6)} steps between "
            f"samples, but it has {count} in {given.units} stretches: record more"
        )
    scale = given.now.std(axis=0)
    if (scale <= 1e-12 * np.abs(given.now).max(axis=0)).any():
        flat = int(np.argmin(scale))
        raise ValueError(f"state_{flat + 1} must vary, but it is {given.now[0, flat]:g} throughout")
    return _solved(given)


def _solved(given: Steps) -> Course:
    size = given.now.shape[1]
    centre, scale = given.now.mean(axis=0), given.now.std()
    moved = [(part - centre) / scale for part in (given.before, given.now, given.after)]
    usual = float(np.median(given.gap))
    lags = given.gap / usual
    kept = np.concatenate([np.ones((len(lags), 1)), moved[0]], axis=1)  # instruments
    gaps, which = np.unique(np.round(lags, 12), return_inverse=True)

    def left(numbers: np.ndarray) -> np.ndarray:
        loop, rest = numbers[: size**2].reshape(size, size), numbers[size**2 :]
        # Far from a solution the exponential must not overflow.
        powers = linalg.expm(-np.clip(loop, -50, 50) * gaps[:, None, None])[which]
        return moved[2] - rest - np.einsum("tij,tj->ti", powers, moved[1] - rest)

    def sums(numbers: np.ndarray) -> np.ndarray:
        return (left(numbers).T @ kept / len(lags)).ravel()

    start = _start(moved, kept, lags)
    answer: Any = optimize.root(sums, start, method="hybr", options={"xtol": 1e-12})
    numbers = answer.x
    if np.abs(sums(numbers)).max() > 1e-6:
        raise ValueError(
            "the samples must follow a propagator with a logarithm, but theirs has none: sample "
            "more often, or with less noise"
        )
    rest_left = left(numbers)
    slope = _slope(sums, numbers)
    by_unit = given.by_unit(rest_left[:, :, None] * kept[:, None, :]).reshape(given.units, -1)
    by_unit = by_unit / len(lags) * np.sqrt(len(lags) / max(len(lags) - size - 1, 1))
    influence = -np.linalg.solve(slope, by_unit.T).T[:, : size**2].reshape(-1, size, size)
    loop = numbers[: size**2].reshape(size, size) / usual
    rest = centre + scale * numbers[size**2 :]
    return Course(loop, influence / usual, rest, scale * rest_left, given)


def _start(moved: list[np.ndarray], kept: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """The propagator over the usual step, by instruments, and its logarithm."""
    size = moved[1].shape[1]
    near = np.abs(lags - 1) < 0.5
    now = np.concatenate([moved[1], np.ones((len(lags), 1))], axis=1)[near]
    fitted = np.linalg.lstsq(kept[near].T @ now, kept[near].T @ moved[2][near], rcond=1e-10)[0].T
    phi = fitted[:, :size]
    values = np.linalg.eigvals(phi)
    if (np.abs(values.imag) < 1e-12).any() and values.real.min() <= 0:
        phi = phi + (0.05 - values.real.min()) * np.eye(size)
    loop = -np.real(np.asarray(linalg.logm(phi)))
    rest = np.linalg.lstsq(np.eye(size) - phi, fitted[:, size], rcond=1e-6)[0]
    return np.concatenate([loop.ravel(), rest])


def _slope(function: Callable[[np.ndarray], np.ndarray], place: np.ndarray) -> np.ndarray:
    wide = 1e-6 * np.maximum(np.abs(place), 1.0)
    columns = [
        (function(place + step) - function(place - step)) / (2 * size)
        for size, step in ((w, w * e) for w, e in zip(wide, np.eye(len(place)), strict=True))
    ]
    return np.stack(columns, axis=1)


def _p(moved: Float[np.ndarray, "units p"], seen: Float[np.ndarray, "p"]) -> float:
    """Random signs of the units: how often the noise alone is as large as what is seen."""
    flips = signs(len(moved), 0)[1:]
    tried = studentised(flips[:, :, None] * moved)
    # The statistic of what is seen has the scatter of the units, spread over them alike.
    own = studentised((moved - moved.mean(axis=0) + seen / len(moved))[None])[0]
    return float((1 + np.sum(tried >= own * (1 - 1e-9))) / (1 + len(tried)))


def arrow(course: Course) -> Arrow:
    """Detailed balance, enclosed area and entropy production of a stationary run."""
    given = course.steps
    now, after = given.now - course.rest, given.after - course.rest
    one, other = np.triu_indices(course.rank, k=1)
    enclosed = (now[:, one] * after[:, other] - now[:, other] * after[:, one]) / 2
    sums = given.by_unit(enclosed)
    time = given.by_unit(given.gap)
    rate = sums.sum(axis=0) / time.sum()
    lone = sums - rate * time[:, None]
    reach = stats.t.ppf((1 + LEVEL) / 2, course.free)
    spread = reach * np.sqrt(np.sum(lone**2, axis=0)) / time.sum()
    white = np.linalg.pinv(
        np.linalg.cholesky(lone.T @ lone + 1e-14 * np.sum(lone**2) * np.eye(len(one)))
    )
    p = _p(lone @ white.T, sums.sum(axis=0) @ white.T)
    return Arrow(p, rate, spread, _entropy(course, zero=p > 0.05))


def _entropy(course: Course, *, zero: bool) -> Interval | None:
    given = course.steps
    if np.ptp(given.gap) > EVEN * np.median(given.gap):
        return None
    lag = float(np.median(given.gap))
    now, after = given.now - course.rest, given.after - course.rest
    lagged = given.by_unit(after[:, :, None] * now[:, None, :])
    count = given.by_unit(np.ones(len(now)))

    def produced(loop: Matrix, cross: np.ndarray, number: float) -> float:
        # The covariance of the state from the lagged one, which measurement noise does not enter.
        cover = np.linalg.solve(linalg.expm(-loop * lag), cross / number)
        cover = (cover + cover.T) / 2
        drift = loop @ cover
        even, odd = (drift + drift.T) / 2, (drift - drift.T) / 2
        if np.linalg.eigvalsh(even).min() <= 0 or np.linalg.eigvalsh(cover).min() <= 0:
            return np.nan
        return float(np.trace(np.linalg.solve(cover, odd.T) @ np.linalg.solve(even, odd)))

    whole = produced(course.loop, lagged.sum(axis=0), count.sum())
    without = np.array(
        [
            produced(course.loop - moved, lagged.sum(axis=0) - own, count.sum() - number)
            for moved, own, number in zip(course.influence, lagged, count, strict=True)
        ]
    )
    if not np.isfinite(whole) or not np.isfinite(without).all():
        return None
    roots, units = np.sqrt(without), given.units
    error = np.sqrt((units - 1) / units * np.sum((roots - roots.mean()) ** 2))
    reach = stats.t.ppf((1 + LEVEL) / 2, course.free) * error
    low = 0.0 if zero else max(np.sqrt(whole) - reach, 0.0) ** 2
    return Interval(whole, low, (np.sqrt(whole) + reach) ** 2)


def area(state: Float[np.ndarray, "samples 2"]) -> Interval:
    """The area that one closed cycle encloses in a plane, counter-clockwise positive.

    The interval is that of noise that is independent from sample to sample, of the size that the
    second differences show; they also hold the bend of the path, so it is rather too wide.
    """
    x, y = np.asarray(state, dtype=float).T
    following, previous = np.roll(state, -1, axis=0), np.roll(state, 1, axis=0)
    whole = float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)
    bends = np.diff(state, n=2, axis=0)
    # The median is blind to the corners of a cycle.
    noise = np.median(np.abs(bends), axis=0) / 0.6745 / np.sqrt(6.0)
    reach = (following - previous) / 2
    error = np.sqrt(
        np.sum(reach[:, 1] ** 2) * noise[0] ** 2 + np.sum(reach[:, 0] ** 2) * noise[1] ** 2
    )
    wide = float(stats.norm.ppf((1 + LEVEL) / 2) * error)
    return Interval(whole, whole - wide, whole + wide)


def effects(course: Course, *, still: bool = False) -> dict[str, float]:
    """The p-values of what a linear loop with white noise would not leave over.

    In a run that stays where it is (`still`), a drift shows in the means of the stretches.
    """
    given, left = course.steps, course.left
    now = (given.before - course.rest) / given.now.std(axis=0)
    late = (given.time - given.time.mean()) / max(np.ptp(given.time), 1e-300)
    lagged = np.zeros_like(left)
    lagged[2:] = np.where((given.unit[2:] == given.unit[:-2])[:, None], left[:-2], 0.0)
    far = np.sum(now**2, axis=1, keepdims=True)
    # Towards rest and beyond what is linear, and bent to one side: one number per step and state.
    tried = {
        "drift of the operating point": (late[:, None], None),
        "saturation": (now * far, now**2),
        "noise that lasts": (lagged, None),
    }
    known = np.concatenate([np.ones((len(left), 1)), now], axis=1)

    def freed(beside: np.ndarray) -> np.ndarray:
        return beside - known @ np.linalg.lstsq(known, beside, rcond=1e-10)[0]

    found = {}
    for name, (beside, bent) in tried.items():
        if bent is None:
            rows = (left[:, :, None] * freed(beside)[:, None, :]).reshape(len(left), -1)
        else:
            inward = np.sum(left * freed(beside), axis=1, keepdims=True)
            rows = np.concatenate([inward, left * freed(bent)], axis=1)
        scores = given.by_unit(rows)
        size = np.sqrt(np.sum(scores**2, axis=0))
        scores = scores[:, size > 0] / size[size > 0]
        found[name] = _p(scores - scores.mean(axis=0), scores.sum(axis=0)) if scores.size else 1.0
    if still:
        count = given.by_unit(np.ones(len(left)))
        means, when = given.by_unit(given.now) / count[:, None], given.by_unit(given.time) / count
        fits: list[Any] = [stats.linregress(when, own) for own in means.T] if np.ptp(when) else []
        trends = [float(fit.pvalue) for fit in fits] or [1.0]
        found["drift of the operating point"] = float(min(1.0, len(trends) * min(trends)))
    return found


def stationary(found: Sequence[Stretch], course: Course) -> bool:
    """Whether the runs stay where they are: about as far from rest at the end as at the start."""
    first, last = [], []
    for run in found:
        third = max(len(run.time) // 3, 1)
        first.append(np.mean((run.state[:third] - course.rest) ** 2))
        last.append(np.mean((run.state[-third:] - course.rest) ** 2))
    return bool(0.2 < np.sum(last) / max(np.sum(first), 1e-300) < 5.0)


def judged(course: Course, alpha: float) -> tuple[Verdict, float, Turning]:
    """The verdict on a loop from series, the p-value of "reciprocal", and those of its spectrum."""
    if course.rank < 2:
        return Verdict.RECIPROCAL, 1.0, Turning(1.0, 1.0)
    p, spun = course.symmetric_p, turning(course.loop, course.influence, course.free)
    if p > alpha:
        return Verdict.RECIPROCAL, p, spun
    if spun.real <= alpha:
        return Verdict.TURNS, p, spun
    return (Verdict.GRADIENT if spun.complex <= alpha else Verdict.BORDERLINE), p, spun


def intervals(course: Course, *, zero: bool) -> Intervals:
    """Intervals of skew part, decay and rotation rates."""
    flips = 2.0 * np.random.default_rng(2).integers(0, 2, (REPLICATES, course.steps.units)) - 1.0
    added = np.einsum("fu,uij->fij", flips, course.influence)
    return spans(course, added, course.free, zero=zero)


def aliased(course: Course, spread: Intervals) -> bool:
    """Whether a mode may have turned by more than half a cycle between two samples."""
    lag = float(np.median(course.steps.gap))
    fastest = max(mode.rotation.high for mode in spread.modes)
    lost = float(np.real(course.eigenvalues).max()) * lag > 3.0  # nothing is left of a mode by then
    return fastest * lag > 0.75 * np.pi or lost


def spectrum(course: Course) -> Spectrum:
    """The estimate as a matrix."""
    return Spectrum(course.loop, 1e-10)
