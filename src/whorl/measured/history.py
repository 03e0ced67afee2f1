"""Verdicts on time series from files or arrays.

A table of series has a column `time` and columns `state_1 ...` (or `output_1 ...`), one line per
sample. `run` labels runs; without it a run ends where time goes back. `phase` names the task
that is on: each phase has a loop and an operating point of its own. A gap of more than three usual
steps ends a stretch, and nothing is assumed across it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from whorl import _check
from whorl._show import Shown
from whorl.ground.tables import Table, TableError
from whorl.measured import series, words
from whorl.measured.bootstrap import Interval, Intervals, intervals
from whorl.measured.layout import called
from whorl.measured.periodic import Line
from whorl.measured.power import Power
from whorl.measured.reading import SHARE, array
from whorl.measured.series import Arrow, Course, Stretch
from whorl.measured.turning import Turning, turning
from whorl.verdict import Verdict

STATE = re.compile(r"(?:state|output)_(\d+)")
MOST = 12  # states; the unknowns are their square
ROWS = 1_000_000
FAR = 15.0  # times farther off than half of all samples; a wild one bends the fit towards itself


@dataclass(frozen=True)
class Phase:
    """What was found while one task was on, or in the whole series where there is but one."""

    name: str
    course: Course
    verdict: Verdict
    p: float  # of "reciprocal"
    power: Power | None  # None where there is one state, which cannot turn
    turning: Turning
    intervals: Intervals
    drive: Line | None  # of a periodic signal; None where all is round-off
    arrow: Arrow | None  # of runs that stay where they are
    effects: dict[str, float]
    aliased: bool

    @property
    def called(self) -> str:
        """The phase by its name; empty where there is but one."""
        return f"Phase {self.name}" if self.name else ""


@dataclass(frozen=True, repr=False)
class History(Shown):
    """What time series of a learner say. Print it.

    Examples:
        >>> from whorl import measured
        >>> rng, times = np.random.default_rng(0), np.arange(30) * 0.1
        >>> starts = rng.standard_normal((10, 2))
        >>> decay = np.exp(-times)[:, None] * starts[:, None, :]
        >>> noisy = decay + 0.01 * rng.standard_normal(decay.shape)
        >>> found = measured.follow(np.tile(times, 10), noisy.reshape(300, 2))
        >>> found.verdict, len(found.phases)
        ('reciprocal', 1)
    """

    source: str
    phases: tuple[Phase, ...]
    areas: tuple[Interval, ...]  # of the closed cycles of a learner whose tasks alternate
    alpha: float
    time_unit: str
    names: tuple[str, ...]  # of the columns of the state
    dropped: int = 0  # samples that lacked a value

    @property
    def can_turn(self) -> bool:
        """Whether there are two directions to turn in."""
        return any(phase.power is not None for phase in self.phases)

    @property
    def verdict(self) -> Verdict:
        """The finding in a word: that of the phase that is farthest from reciprocal."""
        order = (
            Verdict.TURNS,
            Verdict.BORDERLINE,
            Verdict.GRADIENT,
            Verdict.CANNOT_TELL,
            Verdict.INCONCLUSIVE,
            Verdict.RECIPROCAL,
        )
        found = {phase.verdict for phase in self.phases}
        return next(word for word in order if word in found)

    @property
    def turns(self) -> bool:
        """Whether a mode surely rotates."""
        return self.verdict == Verdict.TURNS

    @property
    def said(self) -> words.Said:
        """What is said of it: the one source of text, page, notebook and JSON."""
        tables = tuple(
            (f"{phase.called}: {phase.verdict}" if phase.name else "", details(self, phase))
            for phase in self.phases
        )
        worries = [note for phase in self.phases for note in notes(self, phase)]
        return words.Said(headline(self), reason(self), tables, worries)

    def __str__(self) -> str:
        whole = self.said
        lines = [whole.headline, whole.reason]
        for name, table in whole.tables:
            lines += ["", *[f"  {name}."] * bool(name)]
            lines += [f"  {left:<11}{text}" for left, text in table]
        return "\n".join(lines + [f"  {'note':<11}{text}" for text in whole.notes])

    def _repr_html_(self) -> str:
        """Words, tables and pictures, where a notebook shows a finding."""
        from whorl.measured.page import fragment

        return fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "source": self.source,
            "verdict": str(self.verdict),
            "code": self.verdict.code,
            "colour": self.verdict.colour,
            "can_turn": self.can_turn,
            **self.said.to_dict(),
            "columns": list(self.names),
            "dropped": self.dropped,
            "alpha": self.alpha,
            "time_unit": self.time_unit,
            "areas": [words.three(one) for one in self.areas],
            "phases": [_numbers(self, phase) for phase in self.phases],
        }


def follow(
    time: Any,
    state: Any,
    *,
    run: Any = None,
    phase: Any = None,
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
    skew: float = 0.1,
    time_unit: str = "unit time",
    source: str = "",
) -> History:
    """Judge time series given as arrays.

    Args:
        time: when each sample was taken `(rows,)`.
        state: outputs or learning degrees of freedom `(rows, n)`.
        run: a label per row; without it a run ends where time goes back.
        phase: a label per row, of the task that was on.
        names: of the columns of the state, for words only; `state_1` ... unless they are given.
        alpha: the chance of a false alarm that is accepted.
        skew: a skew part, as a share of the loop; where it would hardly be seen, no rejection is
            inconclusive.
        time_unit: the name of the unit of time, for words only.
        source: where the series came from, for words only.

    Examples:
        >>> from whorl import measured
        >>> times = np.arange(60) * 0.1
        >>> spiral = np.exp(-0.3 * times) * np.array([np.cos(times), np.sin(times)])
        >>> noisy = spiral.T + 0.001 * np.random.default_rng(0).standard_normal((60, 2))
        >>> measured.follow(times, noisy).verdict
        'turns'
    """
    for name, value in (("alpha", alpha), ("skew", skew)):
        SHARE.check(value, name)
    when, where = array("time", time), array("state", state)
    if (when.ndim, where.ndim) != (1, 2):
        shapes = f"{when.shape} and {where.shape}"
        raise ValueError(f"time and state must have 1 and 2 axes, but their shapes are {shapes}")
    if len(when) != len(where):
        raise ValueError(f"state must have one row per time, {len(when)}, but it has {len(where)}")
    if not 1 <= where.shape[1] <= MOST:
        raise ValueError(f"state must have 1 to {MOST} columns, but it has {where.shape[1]}")
    called = tuple(names or (f"state_{number + 1}" for number in range(where.shape[1])))
    if len(called) != where.shape[1]:
        raise ValueError(
            f"names must have one name per state, {where.shape[1]}, but there are {len(called)}"
        )
    labels = {
        name: None if given is None else _check.numpy(name, given).astype(str)
        for name, given in (("run", run), ("phase", phase))
    }
    for name, given in labels.items():
        if given is not None and given.shape != when.shape:
            raise ValueError(
                f"{name} must have one label per row, {len(when)}, but its shape is {given.shape}"
            )
    _check_times(when, labels["run"])
    found = _phases(when, where, labels["run"], labels["phase"], called, alpha, skew)
    areas = _cycles(where, labels["run"], labels["phase"])
    return History(source, found, areas, float(alpha), time_unit, called)


def _check_times(time: np.ndarray, run: np.ndarray | None) -> None:
    """Within a run time increases; without labels a run ends where it goes back."""
    step = np.diff(time)
    bad = step == 0 if run is None else (step <= 0) & (run[1:] == run[:-1])
    if bad.any():
        row = int(np.argmax(bad)) + 1
        raise TableError(
            f"time must increase within a run, but row {row + 1} has {time[row]:g} after "
            f"{time[row - 1]:g}",
            row=row,
            column="time",
        )


def is_series(names: Sequence[str]) -> bool:
    """Whether the names of a table's columns are those of a series."""
    return "time" in names and not any(name.startswith(("residual", "potential")) for name in names)


def read_series(
    path: str | Path,
    *,
    alpha: float = 0.05,
    skew: float = 0.1,
    time_unit: str | None = None,
    rename: Mapping[str, str] | None = None,
    strict: bool = False,
) -> History:
    """Judge time series from a CSV or Parquet file.

    The unit of time is that in the header, such as `time [s]`, unless it is given.

    Args:
        path: A table with a column of time and one column per part of the state.
        alpha: The chance of a false alarm that is accepted.
        skew: A skew part, as a share of the loop, that would have to be seen.
        time_unit: The name of the unit of time, for words only.
        rename: Names of columns in the file, each with the name that it stands for.
        strict: Whether a sample with an empty cell is refused; else it is left out and counted.

    Returns:
        What was found in each phase.

    Raises:
        ValueError: In one sentence with the line, the column and the value.

    Examples:
        >>> from whorl import measured
        >>> print(measured.read_series("examples/relaxations.csv").verdict)
        turns
    """
    table = Table(path, rename, strict=strict, called=called)
    try:
        columns = sorted(
            (int(match[1]), name) for name in table.names if (match := STATE.fullmatch(name))
        )
        if "time" not in table.names:
            raise TableError("the table must have a column time, but it has none", row=None)
        if [number for number, _ in columns] != list(range(1, len(columns) + 1)) or not columns:
            there = ", ".join(name for name in table.names[:6])
            raise TableError(
                "the table must have columns state_1, state_2 ... without gaps, but it has "
                f"{_check.plain(there)}"
            )
        wanted = ["time", *(name for _, name in columns)]
        labels = [name for name in ("run", "phase") if name in table.names]
        given = table.columns(wanted, labels)
        if not len(given["time"]):
            raise TableError("the table must have samples, but it has none")
        if len(given["time"]) > ROWS:
            raise TableError(f"the table must have at most {ROWS} samples, but it has more")
        state = np.stack([given[name] for name in wanted[1:]], axis=1)
        old = {called(new): name for name, new in (rename or {}).items()}
    except TableError as fault:
        raise table.named(fault) from None
    try:
        found = follow(
            given["time"],
            state,
            run=given.get("run"),
            phase=given.get("phase"),
            names=[_check.plain(old.get(name, name)) for name in wanted[1:]],
            alpha=alpha,
            skew=skew,
            time_unit=time_unit or table.units.get("time", "unit time"),
            source=str(path),
        )
        return replace(found, dropped=table.dropped)
    except ValueError as refusal:
        if table.dropped:  # what is missing is the better thing to say
            return read_series(path, rename=rename, strict=True)
        if isinstance(refusal, TableError):
            raise table.named(refusal) from None
        raise ValueError(f"{table.path}: {refusal}") from None


def _phases(
    time: np.ndarray,
    state: np.ndarray,
    run: np.ndarray | None,
    phase: np.ndarray | None,
    names: Sequence[str],
    alpha: float,
    skew: float,
) -> tuple[Phase, ...]:
    if phase is None:
        return (_phase("", series.runs(time, state, run), names, alpha, skew),)
    both = phase if run is None else np.char.add(np.char.add(run, "\0"), phase)
    stretches = np.split(np.arange(len(time)), np.flatnonzero(both[1:] != both[:-1]) + 1)
    found = []
    for name in dict.fromkeys(phase.tolist()):
        own = [rows for rows in stretches if phase[rows[0]] == name]
        try:
            pieces = [part for rows in own for part in series.runs(time[rows], state[rows])]
            found.append(_phase(_check.plain(str(name)), pieces, names, alpha, skew))
        except ValueError as refusal:
            raise ValueError(f"phase {_check.plain(str(name))}: {refusal}") from None
    return tuple(found)


def _phase(
    name: str, found: list[Stretch], names: Sequence[str], alpha: float, skew: float
) -> Phase:
    course = series.follow(found, names)
    p, reach, spun = 1.0, None, Turning(1.0, 1.0)
    if course.rank > 1:
        p, reach = course.symmetric_p, course.power(size=skew, level=alpha)
        spun = turning(course.loop, course.influence, course.free)
    spread = intervals(course, spun, zero=p > alpha, test=course.without, alpha=alpha)
    still = series.stationary(course) and course.rank > 1 and len(course.left) >= 50
    drive = series.driven(course)
    return Phase(
        name,
        course,
        series.judged(course, reach, spun, drive, alpha),
        p,
        reach,
        spun,
        spread,
        drive,
        series.arrow(course, alpha) if still else None,
        series.effects(course, still=still),
        series.aliased(course, spread),
    )


def _cycles(
    state: np.ndarray, run: np.ndarray | None, phase: np.ndarray | None
) -> tuple[Interval, ...]:
    """The area of every whole cycle of the tasks, in the plane of the first two states."""
    if phase is None or state.shape[1] < 2:
        return ()
    first = phase[0]
    begins = np.r_[True, (phase[1:] == first) & (phase[:-1] != first)]
    if run is not None:
        begins[1:] |= run[1:] != run[:-1]
    pieces = np.split(state[:, :2], np.flatnonzero(begins)[1:])
    return tuple(series.area(piece) for piece in pieces if len(piece) >= 6)


def headline(history: History) -> str:
    """The verdict in one sentence."""
    if len(history.phases) > 1:
        said = ", ".join(f"{phase.name}: {phase.verdict}" for phase in history.phases)
        return f"This learner in each phase: {said}."
    phase = next(iter(history.phases))
    rate = phase.intervals.rotation
    if not history.can_turn:
        return "This learner cannot turn: its states leave one direction, and it takes two to turn."
    return {
        Verdict.CANNOT_TELL: "A periodic signal drives these states, so there is no verdict.",
        Verdict.RECIPROCAL: "This learner shows no sign of turning.",
        Verdict.INCONCLUSIVE: "Inconclusive: these series cannot tell whether this learner turns.",
        Verdict.GRADIENT: (
            "This learner follows a gradient in another metric: not reciprocal, and no mode turns."
        ),
        Verdict.TURNS: (
            f"This learner turns, at {rate.estimate if rate else 0:.2g}"
            f" {words.turn_unit(history.time_unit)}."
        ),
    }.get(phase.verdict, "This learner is not reciprocal, and whether it turns is borderline.")


def reason(history: History) -> str:
    """What the verdict rests on, and the area of the cycles where there are any."""
    said = []
    for phase in history.phases:
        if phase.power is None:
            said.append(f"{f'{phase.called}: one' if phase.name else 'One'} direction cannot turn.")
            continue
        if phase.verdict == Verdict.CANNOT_TELL:
            said.append(_driven(history, phase))
            continue
        who = f"In phase {phase.name}, reciprocity" if phase.name else "Reciprocity"
        rejected = "is rejected" if phase.p <= history.alpha else "is not rejected"
        second = {
            Verdict.TURNS: f" Real eigenvalues are rejected (p = {phase.turning.real:.2g}).",
            Verdict.GRADIENT: (
                f" Complex eigenvalues are rejected (p = {phase.turning.complex:.2g})."
            ),
            Verdict.BORDERLINE: " Its modes meet within the noise.",
            Verdict.INCONCLUSIVE: f" But {words.powerful(phase.power, 0)}." if phase.power else "",
        }.get(phase.verdict, "")
        said.append(f"{who} {rejected} (p = {phase.p:.2g}).{second}")
    if history.areas:
        said.append(f"The area is {_areas(history)}.")
    return " ".join(said)


def details(history: History, phase: Phase) -> list[tuple[str, str]]:
    """The numbers behind the verdict on a phase, a name and a phrase each."""
    course, unit = phase.course, history.time_unit
    decays = [mode.decay for mode in phase.intervals.modes]
    fastest, given = phase.intervals.rotation, course.steps
    even = "even" if given.even else "uneven"
    lines = [
        (
            "reciprocal",
            (
                f"p = {phase.p:.2g}; real eigenvalues p = {phase.turning.real:.2g}, complex p ="
                f" {phase.turning.complex:.2g}"
            ),
        ),
        ("skew part", f"{words.ranged(phase.intervals.skewness)} of the loop"),
        ("decay", " and ".join(words.ranged(one) for one in decays[:4]) + f" per {unit}"),
        (
            "rotation",
            (
                f"{words.ranged(fastest)} {words.turn_unit(unit)}; half a cycle per step would be "
                f"{np.pi / np.median(given.gap):.3g}"
                if fastest
                else "none in the estimate"
            ),
        ),
        (
            "measured",
            (
                f"{len(given.now)} steps of {np.median(given.gap):.3g} {unit}, {even}, in"
                f" {given.units} independent stretches"
            ),
        ),
    ]
    lines += _directions(history, phase)
    if phase.power is not None:
        lines.append(("power", words.powerful(phase.power, 0)))
    if phase.arrow is not None:
        lines += _arrow(phase.arrow, unit, history.alpha)
    if history.areas and phase is history.phases[-1]:
        lines.append(("area", _areas(history)))
    return lines


def _directions(history: History, phase: Phase) -> list[tuple[str, str]]:
    """The equations between the states, and in how many directions the loop was certified."""
    tied, left = phase.course.span, phase.course.rank
    if not tied.equations:
        return []
    said = "; ".join(one.said(history.names) for one in tied.equations)
    kind = "zero-sum " * tied.conserved + "remaining " * (not tied.conserved)
    where = f"certified in {left} {kind}direction{'s' * (left != 1)}"
    return [("mass" if tied.conserved else "equation", f"{said}; {where}")]


def _driven(history: History, phase: Phase) -> str:
    """What is said of a periodic signal."""
    assert phase.drive is not None
    where = f"In phase {phase.name}, a" if phase.name else "A"
    return (
        f"{where} line with a period of {phase.drive.period:.3g} {history.time_unit} is left over by"
        f" the best loop (p = {phase.drive.p:.2g}). A loop without a drive can only turn to follow"
        " it: record the signal, or switch it off."
    )


def notes(history: History, phase: Phase) -> list[str]:
    """What the reader should worry about."""
    lost = "a mode may turn by more than half a cycle between samples, or be lost by then: sample "
    away = np.linalg.norm(phase.course.left, axis=1)
    far = float(away.max() / max(np.median(away), 1e-300))
    wild = words.far_off(f"the sample at time {phase.course.steps.time[np.argmax(away)]:g}", far)
    said = [f"{lost}more often"] * phase.aliased + [wild] * (far > FAR)
    if history.dropped and phase is history.phases[0]:
        said.append(words.lacking(history.dropped))
    return said + [
        f"{name} is seen (p = {p:.2g}): one linear loop does not fit these data"
        for name, p in phase.effects.items()
        if p <= history.alpha / len(phase.effects)
    ]


def _arrow(arrow: Arrow, unit: str, alpha: float) -> list[tuple[str, str]]:
    lines = [
        (
            "balance",
            (
                f"detailed balance {'is rejected' if arrow.p <= alpha else 'is not rejected'}: p ="
                f" {arrow.p:.2g}"
            ),
        )
    ]
    top = int(np.argmax(np.abs(arrow.area)))
    seen = Interval(*(float(arrow.area[top] + k * arrow.spread[top]) for k in (0, -1, 1)))
    lines.append(("area", f"{words.ranged(seen)} enclosed per {unit}"))
    if arrow.entropy is not None:
        known = f"{words.ranged(arrow.entropy)} produced per {unit}"
        lines.append(("entropy", known if arrow.determined else "not determined"))
    return lines


def _areas(history: History) -> str:
    if len(history.areas) == 1:
        return f"{words.ranged(history.areas[0])} enclosed by the cycle"
    from scipy import stats

    sizes = np.array([one.estimate for one in history.areas])
    wide = stats.t.ppf(0.975, len(sizes) - 1) * sizes.std(ddof=1) / np.sqrt(len(sizes))
    mean = float(sizes.mean())
    return (
        f"{words.ranged(Interval(mean, mean - wide, mean + wide))} per cycle, over {len(sizes)}"
        " cycles"
    )


def _numbers(history: History, phase: Phase) -> dict[str, Any]:
    course, arrow = phase.course, phase.arrow
    lift = course.span.basis
    return {
        "phase": phase.name or None,
        "verdict": str(phase.verdict),
        "p": phase.p,
        "power": words.reach(phase.power, 0) if phase.power else None,
        "p_real": phase.turning.real,
        "p_complex": phase.turning.complex,
        "loop": (lift @ course.loop @ lift.T).tolist(),
        "rest": course.span.lifted(course.rest).tolist(),
        "directions": course.rank,
        "basis": lift.tolist(),
        "conserved": course.span.conserved,
        "equations": [
            {
                "text": one.said(history.names),
                "weights": one.weights.tolist(),
                "constant": one.constant,
            }
            for one in course.span.equations
        ],
        "drive": (
            None
            if phase.drive is None
            else {
                "p": phase.drive.p,
                "seen": phase.drive.seen,
                "period": phase.drive.period if np.isfinite(phase.drive.period) else None,
            }
        ),
        "skewness": words.three(phase.intervals.skewness),
        "modes": [
            {"decay": words.three(mode.decay), "rotation": words.three(mode.rotation)}
            for mode in phase.intervals.modes
        ],
        "steps": len(course.left),
        "units": course.steps.units,
        "aliased": phase.aliased,
        "effects": phase.effects,
        "arrow": (
            None
            if arrow is None
            else {
                "p": arrow.p,
                "area": arrow.area.tolist(),
                "spread": arrow.spread.tolist(),
                "entropy": (
                    words.three(arrow.entropy) if arrow.entropy and arrow.determined else None
                ),
            }
        ),
    }
