"""The verdict on a measured learner, and every number behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whorl import _check
from whorl._show import Shown, plural
from whorl.measured import words
from whorl.measured.bootstrap import Interval, Intervals, intervals
from whorl.measured.conservation import Mass, mass
from whorl.measured.diagnosis import Diagnosis, diagnose
from whorl.measured.estimate import TOL, Fit, fit, sidak
from whorl.measured.flips import Test, reciprocal, without
from whorl.measured.intake import Measurements
from whorl.measured.moments import Record
from whorl.measured.order import Order, order
from whorl.measured.power import Power, power
from whorl.measured.reading import SHARE
from whorl.measured.state import matched
from whorl.measured.turning import Turning, turning
from whorl.spectrum import Dynamics
from whorl.verdict import Verdict

ROUND_OFF = 1e-10  # a skew part below this share of the loop is not measured, it is arithmetic


@dataclass(frozen=True, repr=False)
class Loop(Shown):
    """One loop: of one sample, or of all samples that were driven and read together.

    Examples:
        >>> from whorl import measured
        >>> rng = np.random.default_rng(1)
        >>> residuals = rng.standard_normal((30, 3))
        >>> residuals -= residuals.mean(axis=1, keepdims=True)
        >>> measured.certify(residuals, -2 * residuals).leading.fit.rank
        2
    """

    sample: str
    record: Record
    drive: str
    fit: Fit
    intervals: Intervals
    mass: Mass
    test: Test | None  # None where there is one direction, in which nothing can turn
    turning: Turning | None
    order: Order
    power: Power | None
    diagnosis: Diagnosis | None

    def __str__(self) -> str:
        name = f"loop of sample {self.sample}" if self.sample else "loop"
        return f"{name}: {self.record.rows} rows, {plural(self.fit.rank, 'direction')}, p = {self.p:.3g}"

    @property
    def p(self) -> float:
        """The p-value of "reciprocal".

        1 where nothing can turn, or where the skew part is round-off.
        """
        return 1.0 if self.test is None or self.fit.skewness <= ROUND_OFF else self.test.p

    def verdict(self, alpha: float, tried: int = 1) -> Verdict:
        """The finding on this loop alone; `tried` is the number of loops that were looked at."""
        if self.turning is None or sidak(self.p, tried) > alpha:
            return Verdict.RECIPROCAL
        if self.order.suspect:  # the order of the rows may explain the skew part
            return Verdict.BORDERLINE
        if sidak(self.turning.real, tried) <= alpha:
            return Verdict.TURNS
        return Verdict.GRADIENT if self.turning.complex <= alpha else Verdict.BORDERLINE

    @property
    def spectrum(self) -> Dynamics:
        """The estimate as a matrix: its metric, its growth, its planes."""
        return Dynamics(self.fit.loop, ROUND_OFF)

    @property
    def rotation(self) -> Interval | None:
        """The fastest rotation rate, of the modes that surely turn where there are any."""
        return self.intervals.rotation


@dataclass(frozen=True, repr=False)
class Finding(Shown):
    """Is this measured learner reciprocal? Print it.

    Examples:
        >>> from whorl import measured
        >>> residuals = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
        >>> velocities = residuals + 0.001 * np.random.default_rng(0).standard_normal((36, 3))
        >>> finding = measured.certify(residuals, velocities)
        >>> finding.can_turn, finding.turns
        (True, False)
    """

    source: str
    loops: tuple[Loop, ...]
    samples: int
    outputs: int
    weighted: bool
    alpha: float
    time_unit: str
    dropped: int = 0  # rows that lacked a value
    undriven: tuple[str, ...] = ()  # columns of what was applied that never changed

    @property
    def p(self) -> float:
        """The p-value of "all loops are reciprocal" (Sidak's, as the loops were measured
        independently).
        """
        tested = [loop.p for loop in self.loops if loop.test is not None]
        return sidak(min(tested), len(tested)) if tested else 1.0

    @property
    def verdict(self) -> Verdict:
        """The finding in a word.

        "reciprocal" says that a symmetric loop is not rejected, though a skew part that matters
        would have been seen.
        """
        if self.p > self.alpha:
            reach = _clearest(self.loops).power
            return (
                Verdict.INCONCLUSIVE if reach is not None and reach.little else Verdict.RECIPROCAL
            )
        words = [loop.verdict(self.alpha, self.tried) for loop in self.loops]
        odd = {word for word in words if word != Verdict.RECIPROCAL}
        if Verdict.TURNS in odd:
            return Verdict.TURNS
        return Verdict.GRADIENT if odd == {Verdict.GRADIENT} else Verdict.BORDERLINE

    @property
    def turns(self) -> bool:
        """Whether the learner is found to turn: some mode surely rotates."""
        return self.verdict == Verdict.TURNS

    @property
    def can_turn(self) -> bool:
        """Whether there are two directions to turn in."""
        return any(loop.test is not None for loop in self.loops)

    @property
    def leading(self) -> Loop:
        """The loop with the clearest skew part, of those that have the verdict."""
        same = [one for one in self.loops if one.verdict(self.alpha, self.tried) == self.verdict]
        return _clearest(same or self.loops)

    @property
    def tried(self) -> int:
        """The number of loops that were looked at."""
        return len(self.loops)

    def __str__(self) -> str:
        return words.verdict(self)

    def _repr_html_(self) -> str:
        """Words, table and pictures, where a notebook shows a finding."""
        from whorl.measured.page import fragment

        return fragment(self)

    @property
    def said(self) -> words.Said:
        """What is said of it: the one source of text, page, notebook and JSON."""
        return words.said(self)

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return words.numbers(self)


def _clearest(loops: Sequence[Loop]) -> Loop:
    return min(loops, key=lambda loop: (loop.p, -loop.fit.skewness))


def judge(
    measurements: Measurements,
    *,
    alpha: float = 0.05,
    skew: float = 0.1,
    tol: float = TOL,
    time_unit: str = "unit time",
    seed: int = 0,
) -> Finding:
    """Estimate, test and diagnose.

    Args:
        measurements: what `read` or `collect` made.
        alpha: the chance of a false alarm that is accepted.
        skew: a skew part, as a share of the loop, for which the repeats needed to see it are worked
            out.
        tol: directions excited less than this, relative to the strongest, are left out.
        time_unit: the name of the unit of time, for words only.
        seed: of the random signs; the same seed gives the same digits.

    Examples:
        >>> from whorl import measured
        >>> residuals = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
        >>> velocities = residuals + 0.001 * np.random.default_rng(0).standard_normal((36, 3))
        >>> measured.judge(measured.collect(residuals, velocities), alpha=0.01).turns
        False
    """
    for name, value in (("alpha", alpha), ("skew", skew), ("tol", tol)):
        SHARE.check(value, name)
    _check.count("seed", seed, 0)
    loops = []
    for label, record in measurements.records.items():
        try:
            loops.append(_loop(label, record, measurements, alpha, skew, tol, seed))
        except ValueError as refusal:
            place = [measurements.source] * bool(measurements.source) + [f"sample {label}"] * bool(
                label
            )
            raise ValueError(f"{', '.join(place)}: {refusal}" if place else str(refusal)) from None
    samples, outputs = measurements.samples, measurements.outputs
    return Finding(
        measurements.source,
        tuple(loops),
        samples,
        outputs,
        measurements.weighted,
        float(alpha),
        time_unit,
        measurements.dropped,
        measurements.undriven,
    )


def _loop(
    label: str,
    record: Record,
    measurements: Measurements,
    alpha: float,
    skew: float,
    tol: float,
    seed: int,
) -> Loop:
    drive = measurements.drives[0]
    estimate = fit(record.moments, drive, tol=tol)
    if estimate.rank < 2 and len(estimate.basis) > 1:
        raise ValueError(
            f"{drive} must excite at least 2 directions, but it excites 1 of {len(estimate.basis)}"
        )
    test = reciprocal(estimate, seed=seed) if estimate.rank > 1 else None
    reach = power(estimate, size=skew, level=alpha, seed=seed) if test is not None else None
    state = (
        matched(measurements.states.get(label, {}), measurements.outputs)
        if measurements.samples == 1
        else None
    )
    origin = (
        diagnose(estimate, record.moments, state, tol=tol, seed=seed) if test is not None else None
    )
    conserved = mass(record.moments, drive, measurements.outputs, seed=seed)
    spun = turning(estimate.loop, estimate.influence, estimate.free) if test is not None else None
    tried = len(measurements.records)
    sure = test is not None and estimate.skewness > ROUND_OFF and sidak(test.p, tried) <= alpha
    spans = intervals(
        estimate,
        spun,
        zero=not sure,
        test=lambda part: reciprocal(without(estimate, part), seed=seed).p,
        alpha=alpha,
        tried=tried,
        seed=seed,
    )
    came = order(record.moments, drive, estimate, seed=seed)
    return Loop(
        _check.plain(label),
        record,
        drive,
        estimate,
        spans,
        conserved,
        test,
        spun,
        came,
        reach,
        origin,
    )
