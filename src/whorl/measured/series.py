r"""Time series of a learner: is it reciprocal, does it turn, and which way does time go?

*The propagator.* Over a time $\Delta$ a linear loop takes the state from $\mu + x$ to $\mu +
e^{-R\Delta}x$. The propagator is symmetric when R is, and has real eigenvalues when R has them, as
long as no mode turns by more than half a cycle between two samples. R is the most likely one
(`likelihood`), with noise in the state and in its measurement; noise in a measured state would bias
a regression on it. Each unit (some neighbouring steps) adds its own part to the scores, which tells
how the noise moves the estimate.

*The arrow of time.* A stationary run looks the same backwards exactly when its lagged covariances
are symmetric; their skew part, over the time between samples, is the rate at which the run encloses
area. With the covariance $\Sigma$ of the state, $R\Sigma = D + A$, the entropy production is
$\operatorname{tr}(\Sigma^{-1}A^\mathsf{T}D^{-1}A)$.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import linalg, stats

from whorl.measured import likelihood
from whorl.measured.bootstrap import Interval, Intervals
from whorl.measured.dependence import Span, span
from whorl.measured.estimate import Estimated, Matrix, Stack
from whorl.measured.flips import signs, studentised
from whorl.measured.likelihood import UNLIKELY
from whorl.measured.periodic import Line, line
from whorl.measured.power import DRAWS, Power, random_turns, searched
from whorl.measured.turning import Turning
from whorl.spectrum import Dynamics
from whorl.verdict import Verdict

UNITS = 64  # groups of neighbouring steps whose noise is estimated separately
LEAST = 18  # steps
EVEN = 1e-3  # steps this much alike, relative to their median, are called even
ROUND_OFF = 1e-7  # of a loop whose slopes are differences
TINY = np.finfo(float).tiny
REPLICATES = 999
LEVEL = 0.95


@dataclass(frozen=True)
class Stretch:
    """One stretch of a learner's life without gaps."""

    time: Float[np.ndarray, "steps"]
    state: Float[np.ndarray, "steps n"]


@dataclass(frozen=True)
class Steps:
    """All steps from a sample to the next, with the time between."""

    now: Float[np.ndarray, "steps n"]
    after: Float[np.ndarray, "steps n"]
    gap: Float[np.ndarray, "steps"]
    time: Float[np.ndarray, "steps"]
    unit: np.ndarray  # the unit of every step

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    @property
    def even(self) -> bool:
        """Whether all steps take the same time."""
        return bool(np.ptp(self.gap) <= EVEN * np.median(self.gap))

    def apart(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of the steps, run by run; the pieces of a long run are joined again."""
        new = np.abs(self.time[1:] - self.gap[1:] - self.time[:-1]) > EVEN * self.gap[1:]
        return np.split(values, np.flatnonzero(new) + 1)

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
    drive: Matrix  # Q, what noise adds to the covariance of the state per unit time
    driven: Stack  # what every unit's noise has added to Q
    noise: Float[np.ndarray, "m"]  # standard deviation of the noise of every measured column
    left: Float[np.ndarray, "steps n"]  # residuals of the fit, in units of their scatter
    steps: Steps
    free: float  # degrees of freedom of the scatter
    brought: Float[np.ndarray, "units nn nn"]  # the share of the information on the loop
    span: Span  # the directions in which the loop is, and the equations between the states
    raw: Steps  # the steps of the states themselves

    def told(self, way: Matrix) -> Float[np.ndarray, "units"]:
        """How much of a step along this way, of size one, every unit sees: in all, one."""
        return self.brought @ way.ravel() @ way.ravel()

    @cached_property
    def _turned(self) -> Float[np.ndarray, "units planes"]:
        """What every unit has added to the skew part."""
        one, other = np.triu_indices(self.rank, k=1)
        return (self.influence - self.influence.swapaxes(1, 2))[:, one, other] / 2

    @cached_property
    def symmetric_p(self) -> float:
        """The p-value of "R is symmetric", from random signs of the units."""
        return self.without(0.0)

    def without(self, part: float) -> float:
        """The same p-value once a part of the skew part, from 0 to 1, is taken away."""
        if self.exact:
            return 1.0 if (1 - part) * self.skewness <= ROUND_OFF else 0.0
        seen = (1 - part) * self.skew[np.triu_indices(self.rank, k=1)]
        own = _against(self._turned, seen[None])[0]
        return float((1 + np.sum(self._by_noise >= own * (1 - 1e-9))) / (1 + len(self._by_noise)))

    @cached_property
    def _by_noise(self) -> Float[np.ndarray, "draws"]:
        """The statistic of "R is symmetric" where random signs make all of it."""
        unsure = self._unsure(signs(self.steps.units, 0)[1:], 4)
        return _against(self._turned, unsure @ self._turned)

    def _unsure(
        self, flips: Float[np.ndarray, "draws units"], seed: int
    ) -> Float[np.ndarray, "draws units"]:
        """Signs of the units, larger or smaller as far as their scatter is not known: Student's t."""
        drawn = np.random.default_rng(seed).chisquare(self.free, len(flips))
        return flips * np.sqrt(self.free / drawn)[:, None]

    @cached_property
    def exact(self) -> bool:
        """Whether there is no noise but that of arithmetic."""
        return bool(np.sum(self.influence**2) <= (ROUND_OFF * np.linalg.norm(self.loop)) ** 2)

    def power(self, *, size: float = 0.1, chance: float = 0.8, level: float = 0.05) -> Power:
        """The power of that test against a skew part of `size` times the loop."""
        if self.exact or not self.clean:
            return Power(chance, size, 1.0, 1.0, 0.0)
        moved, flips = self._turned, signs(self.steps.units, 1)[1 : DRAWS + 1]
        noise = self._unsure(flips, 5) @ moved
        turns = random_turns(moved.shape[1], len(flips), np.random.default_rng(3))

        def tried(reach: float) -> np.ndarray:
            return _against(moved, noise + reach * turns)

        return searched(tried, self.clean, len(moved), size=size, chance=chance, level=level)


@dataclass(frozen=True)
class Arrow:
    """What a stationary run says about the arrow of time."""

    p: float  # of detailed balance
    area: Float[np.ndarray, "planes"]  # area enclosed per unit time, in every plane of two states
    spread: Float[np.ndarray, "planes"]  # half the width of its interval
    entropy: Interval | None  # produced per unit time; None where the estimate is not stationary
    decay: float  # the mean decay rate

    @property
    def determined(self) -> bool:
        """Whether the interval of the entropy spans less than two orders of magnitude.

        What is below a tenth of the decay rate counts as little, not as orders of magnitude.
        """
        one = self.entropy
        return one is not None and bool(one.high <= 100 * max(one.low, self.decay / 10))


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
    """The steps of all stretches, and the units that they belong to."""
    counts = np.array([len(run.time) - 1 for run in found])
    each = max(1, -(-int(counts.sum()) // UNITS))
    unit, first = [], 0
    for count in counts:
        cuts = max(1, round(count / each))
        unit.append(np.arange(count) * cuts // count + first)
        first += cuts
    return Steps(
        np.concatenate([run.state[:-1] for run in found]),
        np.concatenate([run.state[1:] for run in found]),
        np.concatenate([np.diff(run.time) for run in found]),
        np.concatenate([run.time[1:] for run in found]),
        np.concatenate(unit),
    )


def _pieces(found: Sequence[Stretch]) -> list[Stretch]:
    """Stretches of at least two samples, the long ones in pieces that share a sample."""
    cut = []
    for run in found:
        count = len(run.time) - 1
        ends = np.linspace(0, count, max(1, round(count / likelihood.STEPS)) + 1).astype(int)
        cut += [
            Stretch(run.time[first : last + 1], run.state[first : last + 1])
            for first, last in itertools.pairwise(ends)
            if last > first
        ]
    return cut


def follow(found: Sequence[Stretch], names: Sequence[str] = ()) -> Course:
    """Estimate the loop behind some runs, in the directions in which the states move."""
    if all(len(run.time) < 3 for run in found):
        raise ValueError(
            "a run must have at least 3 samples without a gap at increasing times, but none has: "
            "sample more often, or sort the samples by time"
        )
    pieces = _pieces(found)
    raw = steps(pieces)
    tied = span(raw.now, raw.after)
    if tied.flat.any() and tied.basis.shape[1] < 2:
        column = int(np.argmax(tied.flat))
        name = names[column] if names else f"state_{column + 1}"
        raise ValueError(f"{name} must vary, but it is {raw.now[0, column]:g} throughout")
    own = [Stretch(piece.time, tied.reduced(piece.state)) for piece in pieces]
    count, size = len(raw.now), tied.basis.shape[1]
    least = max(LEAST, 2 * size * (size + 1))
    if count < least:
        raise ValueError(
            f"the series must have at least {least} steps between samples, but it has {count}: "
            "record more"
        )
    try:
        with np.errstate(all="ignore"):
            return _likely(steps(own), own, tied, raw)
    except np.linalg.LinAlgError:
        raise ValueError(UNLIKELY) from None


def _likely(given: Steps, pieces: Sequence[Stretch], tied: Span, raw: Steps) -> Course:
    """The most likely loop, from states and times of size one."""
    size = given.now.shape[1]
    centre, scale = given.now.mean(axis=0), given.now.std(axis=0)
    usual, unit = float(np.median(given.gap)), np.exp(np.mean(np.log(scale)))
    mixed, both = np.outer(scale, 1 / scale) / usual, np.outer(scale, scale) / usual
    paths = likelihood.paths(
        [(one.state - centre) / scale for one in pieces],
        [one.time / usual for one in pieces],
        unit * (tied.basis / scale).T if tied.equations else None,
    )
    found = likelihood.fitted(paths, _starts(paths))
    model = likelihood.unpacked(found.numbers[None], size)
    own = given.by_unit(found.scores[:, paths.there].T)
    # A fit leaves over less than the noise behind it.
    kept = max(1 - (size + 1 + found.numbers.size / size) / len(given.now), 1 / len(given.now))
    moved = own @ likelihood.inverse(found.information, size) / np.sqrt(kept)
    changed = likelihood.unpacked(found.numbers - moved, size)
    loops, alike, brought = _enlarged(found, paths, given, own)
    return Course(
        model.loop[0] * mixed,
        loops.reshape(-1, size, size) * mixed,
        centre + scale * np.linalg.lstsq(model.loop[0], model.push[0], rcond=1e-12)[0],
        model.drive[0] * both,
        (model.drive[0] - changed.drive) * both,
        (unit if tied.equations else scale) * np.sqrt(model.noise[0]),
        found.left[paths.there],
        given,
        max(alike * kept, 1.0),
        brought * np.outer(mixed, 1 / mixed),
        tied,
        raw,
    )


def _enlarged(
    found: likelihood.Fitted, paths: likelihood.Paths, given: Steps, own: np.ndarray
) -> tuple[Float[np.ndarray, "units nn"], float, Float[np.ndarray, "units nn nn"]]:
    r"""What every unit's noise has added to the loop, the number of units that are alike, and the
    share of the information that each brings.

    A unit that brings the share $M$ of the information on the loop leaves over $(1 - M)^{1/2}$ of
    its noise. Units that bring unequal shares count as fewer, on average over all directions.
    """
    size = paths.state.shape[2]
    inverse = likelihood.inverse(found.information, size)
    values, vectors = np.linalg.eigh(inverse[: size**2, : size**2])
    root = vectors * np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    onto = np.linalg.solve(root, inverse[: size**2])
    shares = likelihood.shares(found.numbers, paths, onto, given.unit)
    held, axes = np.linalg.eigh(shares)
    seen = (own @ onto.T)[:, None, :] @ axes / np.sqrt(1 - np.clip(held, 0.0, 0.95))[:, None, :]
    many = size**2
    uneven = np.sum(held.sum(axis=1) ** 2) + 2 * np.sum(held**2)
    # The numbers beside the loop have taken their part too.
    beside = 1 - (found.numbers.size - many) / (size * len(given.now))
    loops = (seen @ axes.swapaxes(1, 2))[:, 0] @ root.T / np.sqrt(beside)
    return loops, float(many * (many + 2) / uneven), root @ shares @ np.linalg.inv(root)


def _starts(paths: likelihood.Paths) -> list[np.ndarray]:
    """Loops to begin with: by regression on the sample before, and by it as an instrument."""
    size = paths.state.shape[2]
    there = paths.there[:, 1:] & (np.abs(paths.gap[:, 1:] - 1) < 0.5)
    if not there.any():
        there = paths.there[:, 1:]
    before, now, after = (
        part[there] for part in (paths.state[:, :-2], paths.state[:, 1:-1], paths.state[:, 2:])
    )
    one = np.ones((len(now), 1))
    known = np.concatenate([now, one], axis=1)
    begun = []
    for past in (now, before):
        kept = np.concatenate([past, one], axis=1)
        fitted = np.linalg.lstsq(kept.T @ known, kept.T @ after, rcond=1e-10)[0].T
        phi = fitted[:, :size]
        # A propagator that noise has turned over has no logarithm: take what is left of it.
        low = np.real(np.linalg.eigvals(phi)).min()
        phi = phi + max(0.05 - low, 0.0) * np.eye(size)
        values, vectors = np.linalg.eig(phi)
        # Of a propagator with one eigenvector for two values this is a rough start, which will do.
        loop = -np.real(vectors * np.log(values.astype(complex)) @ np.linalg.pinv(vectors))
        push = np.linalg.lstsq(np.eye(size) - phi, loop @ fitted[:, size], rcond=1e-6)[0]
        misfit = after - known @ fitted.T
        logs = np.log(np.mean(misfit**2, axis=0) / 4 + likelihood.FLOOR)
        drive = np.diag(logs)[np.tril_indices(size)]
        noise = (
            np.full(paths.mix.shape[1], logs.mean() / 2) if paths.mix.shape[1] > size else logs / 2
        )
        begun.append(np.concatenate([loop.ravel(), push, drive, noise]))
    return begun


def _against(
    moved: Float[np.ndarray, "units p"], totals: Float[np.ndarray, "draws p"]
) -> Float[np.ndarray, "draws"]:
    """The squared size of sums of what units have added, against their scatter.

    Where units are few, what the scatter says of pairs of directions counts less.
    """
    scatter, own = moved.T @ moved, len(moved) / (len(moved) + 2.0 * moved.shape[1])
    blend = own * scatter + (1 - own) * np.diag(np.diag(scatter)) + TINY * np.eye(len(scatter))
    return np.einsum("fp,fp->f", totals, np.linalg.solve(blend, totals.T).T)


def _whitening(moved: Float[np.ndarray, "units p"]) -> Float[np.ndarray, "p p"]:
    """A matrix after which what the units have added has the scatter one in every direction."""
    scatter = moved.T @ moved
    values, vectors = np.linalg.eigh(scatter)
    return vectors / np.sqrt(np.maximum(values, max(1e-14 * values[-1], TINY)))


def _p(moved: Float[np.ndarray, "units p"], seen: Float[np.ndarray, "p"]) -> float:
    """Random signs of the units: how often the noise alone is as large as what is seen."""
    flips = signs(len(moved), 0)[1:]
    tried = studentised(flips[:, :, None] * moved)
    # The statistic of what is seen has the scatter of the units, spread over them alike.
    own = studentised((moved - moved.mean(axis=0) + seen / len(moved))[None])[0]
    return float((1 + np.sum(tried >= own * (1 - 1e-9))) / (1 + len(tried)))


def arrow(course: Course, alpha: float = 0.05) -> Arrow:
    """Detailed balance, enclosed area and entropy production of a stationary run."""
    given = course.steps
    now, after = given.now - course.rest, given.after - course.rest
    one, other = np.triu_indices(course.rank, k=1)
    enclosed = (now[:, one] * after[:, other] - now[:, other] * after[:, one]) / 2
    sums = given.by_unit(enclosed)
    time = given.by_unit(given.gap)
    rate = sums.sum(axis=0) / time.sum()
    lone = sums - rate * time[:, None]
    reach = stats.t.ppf(1 - alpha / 2, course.free)
    spread = reach * np.sqrt(np.sum(lone**2, axis=0)) / time.sum()
    white = _whitening(lone)
    p = _p(lone @ white, sums.sum(axis=0) @ white)
    decay = float(np.trace(course.loop)) / course.rank
    return Arrow(p, rate, spread, _entropy(course, alpha, zero=p > alpha), decay)


def _entropy(course: Course, alpha: float, *, zero: bool) -> Interval | None:
    def produced(loop: Matrix, drive: Matrix) -> float:
        """The entropy production of a loop that noise drives; NaN where nothing is stationary."""
        if np.real(np.linalg.eigvals(loop)).min() <= 0 or np.linalg.eigvalsh(drive).min() <= 0:
            return np.nan
        cover = linalg.solve_continuous_lyapunov(loop, drive)
        odd = loop @ cover - drive / 2
        return float(np.trace(np.linalg.solve(cover, odd.T) @ np.linalg.solve(drive / 2, odd)))

    whole = produced(course.loop, course.drive)
    without = np.array(
        [
            produced(course.loop - moved, course.drive - driven)
            for moved, driven in zip(course.influence, course.driven, strict=True)
        ]
    )
    if not np.isfinite(whole) or not np.isfinite(without).all():
        return None
    roots, units = np.sqrt(np.maximum(without, 0.0)), course.steps.units
    error = np.sqrt((units - 1) / units * np.sum((roots - roots.mean()) ** 2))
    reach = stats.t.ppf(1 - alpha / 2, course.free) * error
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
    if course.exact:
        return {}
    now = (given.now - given.now.mean(axis=0)) / given.now.std(axis=0)
    late = (given.time - given.time.mean()) / max(np.ptp(given.time), 1e-300)
    lagged = np.zeros_like(left)
    lagged[1:] = np.where((np.diff(given.time) > 0)[:, None], left[:-1], 0.0)
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


def stationary(course: Course) -> bool:
    """Whether the runs stay where they are: about as far from rest at the end as at the start."""
    # A run that moves on and on may be said to decay to somewhere far away.
    if (
        np.abs(course.rest - course.steps.now.mean(axis=0)) > 3 * course.steps.now.std(axis=0)
    ).any():
        return False
    first, last = [], []
    for state in course.steps.apart(course.steps.after):
        third = max(len(state) // 3, 1)
        first.append(np.mean((state[:third] - course.rest) ** 2))
        last.append(np.mean((state[-third:] - course.rest) ** 2))
    return bool(0.2 < np.sum(last) / max(np.sum(first), 1e-300) < 5.0)


def driven(course: Course) -> Line | None:
    """The line that a periodic signal leaves in what the loop does not explain.

    None where that is not noise, but round-off.
    """
    apart = course.steps.apart
    return None if course.exact else line(apart(course.left), apart(course.steps.time))


def judged(
    course: Course, reach: Power | None, spun: Turning, drive: Line | None, alpha: float
) -> Verdict:
    """The verdict on a loop from series, with its power and the tests of spectrum and drive."""
    if reach is None:
        return Verdict.RECIPROCAL
    if drive is not None and drive.seen:
        return Verdict.CANNOT_TELL
    if course.symmetric_p > alpha:
        return Verdict.INCONCLUSIVE if reach.little else Verdict.RECIPROCAL
    if spun.real <= alpha:
        return Verdict.TURNS
    return Verdict.GRADIENT if spun.complex <= alpha else Verdict.BORDERLINE


def aliased(course: Course, spread: Intervals) -> bool:
    """Whether a mode may have turned by more than half a cycle between two samples."""
    lag = float(np.median(course.steps.gap))
    fastest = max(mode.rotation.high for mode in spread.modes)
    lost = float(np.real(course.eigenvalues).max()) * lag > 3.0  # nothing is left of a mode by then
    return fastest * lag > 0.5 * np.pi or lost


def spectrum(course: Course) -> Dynamics:
    """The estimate as a matrix."""
    return Dynamics(course.loop, 1e-10)
