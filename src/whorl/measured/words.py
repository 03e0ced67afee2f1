"""The verdict as text and as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whorl._show import plural
from whorl.measured.estimate import sidak
from whorl.verdict import Verdict

if TYPE_CHECKING:
    from whorl.measured.bootstrap import Interval
    from whorl.measured.diagnosis import Diagnosis
    from whorl.measured.finding import Finding, Loop
    from whorl.measured.power import Power

BETTER: dict[str | None, str] = {
    "boundary": "a boundary term explains the loop better",
    "adjoint": "a mismatched adjoint explains the loop better",
    None: "a boundary term and a mismatched adjoint explain the loop about equally well",
}
WILD = 25.0  # a value this many times farther from the middle than half of all gets a note
MOST = 4  # notes on one screen
ILL = 30.0  # a weakest direction this many times weaker than the strongest gets a note
WIDE = 2.0  # scatter this many times the stated uncertainty, or its inverse, too


@dataclass(frozen=True)
class Said:
    """The words of a finding, the same in text, on a page, in a notebook and in JSON.

    Examples:
        >>> from whorl import measured
        >>> residuals = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
        >>> velocities = residuals + 0.001 * np.random.default_rng(0).standard_normal((36, 3))
        >>> sorted(measured.certify(residuals, velocities).said.to_dict())
        ['details', 'headline', 'notes', 'reason']
    """

    headline: str
    reason: str
    tables: tuple[tuple[str, list[tuple[str, str]]], ...]  # a name and lines of name and phrase
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        tables = [{"name": name, "lines": list(map(list, own))} for name, own in self.tables]
        return {
            "headline": self.headline,
            "reason": self.reason,
            "details": tables,
            "notes": self.notes,
        }


def said(finding: Finding) -> Said:
    """The words on a table of measurements."""
    loop = finding.leading
    one = "" if len(finding.loops) == 1 else f"The clearest of them, sample {loop.sample}"
    tables = ((one, details(finding, loop)),)
    return Said(headline(finding), reason(finding), tables, notes(finding))


def verdict(finding: Finding) -> str:
    """One screen."""
    whole = finding.said
    lines = [whole.headline, whole.reason, ""]
    for name, table in whole.tables:
        lines += [*_samples(finding), f"  {name}:"] if name else []
        lines += [f"  {left:<11}{text}" for left, text in table]
    lines += [f"  {'note':<11}{text}" for text in whole.notes[:MOST]]
    more = len(whole.notes) - MOST
    lines += [f"  {'note':<11}and {more} more like these; --json has all"] * (more > 0)
    return "\n".join(lines)


def headline(finding: Finding) -> str:
    """The verdict in one sentence."""
    who, unit = subject(finding), turn_unit(finding.time_unit)
    if not finding.can_turn:
        return f"This {who} cannot turn: two outputs leave one direction, and it takes two to turn."
    if finding.verdict == Verdict.INCONCLUSIVE:
        return f"Inconclusive: these measurements cannot tell whether this {who} turns."
    if finding.verdict == Verdict.RECIPROCAL:
        return f"This {who} shows no sign of turning."
    if finding.verdict == Verdict.TURNS:
        rate = finding.leading.rotation
        return f"This {who} turns, at {rate.estimate:.2g} {unit}." if rate else f"This {who} turns."
    if finding.verdict == Verdict.GRADIENT:
        return (
            f"This {who} follows a gradient in another metric: not reciprocal, and no mode turns."
        )
    return f"This {who} is not reciprocal, and whether it turns is borderline."


def turn_unit(time_unit: str) -> str:
    """The unit of rotation rates."""
    return f"rad/{time_unit}" if " " not in time_unit else f"rad per {time_unit}"


def subject(finding: Finding) -> str:
    """What was measured: a learner, or the bare physical response."""
    return "learner" if finding.loops[0].drive == "residual" else "physical response"


def reason(finding: Finding) -> str:
    """What the verdict rests on."""
    if not finding.can_turn:
        return (
            "There is nothing to test. Drive several samples together to see whether they turn into"
            " each other."
        )
    if finding.p <= finding.alpha:
        rejected = (
            f"Reciprocity is rejected (p = {finding.p:.2g}, below the limit {finding.alpha:g})."
        )
        return f"{rejected} {_spectrum(finding)}"
    reach = finding.leading.power
    if finding.verdict == Verdict.INCONCLUSIVE and reach is not None:
        settle = powerful(reach, finding.leading.record.repeats)
        return f"Reciprocity is not rejected (p = {finding.p:.2g}), but {settle}."
    seen = (
        f" A skew part of {reach.visible:.2g} of the loop would have been seen in four cases of "
        "five."
        if reach
        else ""
    )
    return (
        f"Reciprocity is not rejected (p = {finding.p:.2g}, above the limit {finding.alpha:g})."
        f"{seen}"
    )


def _spectrum(finding: Finding) -> str:
    """What the second boundary says: real or complex eigenvalues."""
    loop = finding.leading
    if loop.order.suspect:
        amount, what = min(
            (loop.order.memory, "memory of the row before"), (loop.order.drift, "drift per repeat")
        )
        return (
            f"But a {what} of {amount:.1%} would explain it: apply the residuals in a balanced"
            " order."
        )
    assert loop.turning is not None
    if finding.verdict == Verdict.TURNS:
        return f"Real eigenvalues are rejected (p = {loop.turning.real:.2g})."
    if finding.verdict == Verdict.GRADIENT:
        return f"Complex eigenvalues are rejected (p = {loop.turning.complex:.2g})."
    return (
        "Its modes meet within the noise: "
        f"p = {loop.turning.real:.2g} for real, {loop.turning.complex:.2g} for complex eigenvalues."
    )


def details(finding: Finding, loop: Loop) -> list[tuple[str, str]]:
    """The numbers behind the verdict, a name and a phrase each."""
    unit, spans = finding.time_unit, loop.intervals
    decays = [mode.decay for mode in spans.modes]
    slow, fast = (
        min(decays, key=lambda rate: rate.estimate),
        max(decays, key=lambda rate: rate.estimate),
    )
    lines = [
        ("skew part", f"{ranged(spans.skewness)} of the loop"),
        ("index", f"{ranged(spans.index)}; 1 is reciprocal, 0 only turns"),
        (
            "rotation",
            (
                f"{ranged(loop.rotation)} {turn_unit(unit)}"
                if loop.rotation
                else "none in the estimate"
            ),
        ),
        (
            "decay",
            f"{ranged(slow)}"
            + (f" to {ranged(fast)}" if fast is not slow else "")
            + f" per {unit}; {_grows(loop)}",
        ),
        *_metric(finding, loop),
        ("measured", _measured(finding, loop)),
        ("mass", _mass(loop, finding.alpha, len(finding.loops))),
    ]
    if loop.test is not None and loop.power is not None:
        lines += [("test", _test(loop)), ("power", powerful(loop.power, loop.record.repeats))]
    return lines + [("origin", text) for text in origin(loop.diagnosis, finding.alpha)]


def _metric(finding: Finding, loop: Loop) -> list[tuple[str, str]]:
    """The metric in which a loop that is not symmetric descends."""
    if (metric := _closest(finding, loop)) is None:
        return []
    condition = np.linalg.cond(metric)
    return [("metric", f"the closest to the identity has condition number {condition:.2g}")]


def _closest(finding: Finding, loop: Loop) -> np.ndarray | None:
    """The metric of a loop that is found to follow a gradient in it, in the loop's coordinates."""
    gradient = loop.verdict(finding.alpha, finding.tried) == Verdict.GRADIENT
    return loop.spectrum.metric if gradient else None


def origin(diagnosis: Diagnosis | None, alpha: float) -> list[str]:
    """Where the skew part comes from."""
    if diagnosis is None:
        return []
    said = []
    if seen := diagnosis.response:
        own = "not reciprocal either" if seen.p <= alpha else "reciprocal as far as can be seen"
        said.append(
            f"the physical response K is {own}: skew part {seen.skewness:.2g} of it, p = "
            f"{seen.p:.2g}"
        )
        share = seen.adjoint
        said.append(
            f"of the loop's skew part, {share.estimate:.0%} ({share.low:.0%} to {share.high:.0%}) "
            "comes from a way back that does not "
            "match, the rest from the boundary"
        )
    if diagnosis.boundary is not None and diagnosis.adjoint is None:
        said.append(
            "the recorded network has one layer, so there is no way back that could mismatch"
        )
    elif diagnosis.boundary is not None and diagnosis.adjoint is not None:
        better = BETTER[diagnosis.favoured]
        misfits = (
            f"they leave {diagnosis.boundary.misfit:.1%} and {diagnosis.adjoint.misfit:.1%} of it"
        )
        said.append(f"{better}; boundary and adjoint: {misfits}")
    return said


def notes(finding: Finding) -> list[str]:
    """What the reader should worry about."""
    said = []
    if finding.dropped:
        said.append(lacking(finding.dropped))
    if finding.undriven:
        said.append(
            f"never driven, and left out as a direction: {', '.join(finding.undriven)}, which is "
            "the same in every row"
        )
    for loop in finding.loops:
        whose = f"sample {loop.sample}: " if loop.sample else ""
        said += [whose + text for text in _worries(finding, loop)]
    return said


def lacking(rows: int) -> str:
    """What is said of rows that were left out."""
    return f"{rows} row{'s' * (rows > 1)} with an empty cell left out; --strict refuses them"


def _residuals(loop: Loop) -> list[str]:
    """What is odd about the residuals that were applied."""
    said = []
    if all(mode.decay.high < 0 for mode in loop.intervals.modes):
        said.append(
            "every residual grows, as if residuals were output minus target: they are target minus "
            "output here; with all signs changed the verdict is the same"
        )
    if loop.mass.offset > 0.01:
        said.append(
            f"residuals do not sum to zero: {loop.mass.offset:.1%} of them is the same for all "
            "outputs and was left out"
        )
    return said


def _worries(finding: Finding, loop: Loop) -> list[str]:
    said, fit = [], loop.fit
    if fit.rank < len(fit.basis):
        said.append(
            f"{len(fit.basis) - fit.rank} of {len(fit.basis)} directions were never excited; "
            "nothing is known about them"
        )
    if fit.condition > ILL:
        said.append(
            f"the weakest direction was excited {fit.condition:.0f} times less than the strongest"
        )
    if loop.record.repeats and not loop.record.by_repeat:
        said.append(
            f"{loop.record.repeats} repeats are too few to be resampled as a whole (7 are needed); "
            "rows were taken as independent"
        )
    if loop.drive == "residual":
        said += _residuals(loop)
    if finding.weighted and not 1 / WIDE < fit.scatter < WIDE:
        said.append(
            f"the velocities scatter {fit.scatter:.2g} times as much as the stated uncertainty"
        )
    said += _odd(loop)
    seen = loop.order.seen(finding.alpha)
    if "offset" in seen:
        size = np.linalg.norm(fit.offset)
        said.append(
            f"the outputs move at {size:.2g} without any residual (p ="
            f" {loop.order.p['offset']:.2g}); the offset was fitted and taken out"
        )
    for name, what in (
        ("memory", "remember the row before"),
        ("drift", "drift over the measurements"),
        ("drift within repeats", "drift within each repeat"),
    ):
        if name in seen:
            said.append(
                f"the velocities {what} (p = {loop.order.p[name]:.2g}): apply the residuals in a "
                "balanced order, as --template does"
            )
    return said


def _odd(loop: Loop) -> list[str]:
    """What is odd about single measurements: copies, and a value far off."""
    said = []
    alike = len(loop.record.shown) - len(np.unique(loop.record.shown, axis=0))
    if alike and loop.fit.scatter:
        said.append(
            f"{alike} of the measurements repeat another one to the last digit: were they copied, "
            "they count too much"
        )
    if (wild := _wild(loop)) is not None:
        said.append(far_off(f"measurement {wild[0]}", wild[1]))
    return said


def far_off(what: str, times: float) -> str:
    """What is said of one value that lies so many times farther off than half of all."""
    return (
        f"{what} lies {times:.0f} times farther off than half of all do: one value may decide; "
        "look at it"
    )


def _wild(loop: Loop) -> tuple[int, float] | None:
    """The one measurement that lies far from all others, and how far."""
    parts, rows, basis = loop.record.moments.parts, loop.record.shown, loop.fit.basis
    if len(rows) < loop.record.rows:  # thinned rows: the number would not be that of the file
        return None
    drive, seen = rows[:, parts[loop.drive]] @ basis, rows[:, parts["velocity"]] @ basis
    # A least-squares loop bends towards a wild value; medians of repeated settings do not.
    off = np.linalg.norm(seen - drive @ loop.fit.loop.T - loop.fit.offset, axis=1)
    usual = float(np.median(off))
    far = int(np.argmax(off))
    others = float(np.partition(off, -2)[-2]) if len(off) > 1 else 0.0
    times = off[far] / usual if usual > 0 else 0.0
    return (far + 1, float(times)) if times > WILD and off[far] > 3 * others else None


def _samples(finding: Finding) -> list[str]:
    rows = [
        (
            loop.sample,
            f"{loop.fit.skewness:.2g}",
            f"{loop.rotation.estimate:.2g}" if loop.rotation else "none",
            loop.p,
        )
        for loop in finding.loops
    ]
    width = max(6, *(len(name) for name, *_ in rows))
    shown = sorted(rows, key=lambda row: row[-1])[:8]
    lines = [f"  {'sample':<{width}}  skew part  rotation  p"]
    lines += [f"  {name:<{width}}  {skew:<9}  {rate:<8}  {p:.2g}" for name, skew, rate, p in shown]
    return [
        *lines,
        *(
            [f"  and {len(rows) - len(shown)} more samples with larger p"]
            if len(rows) > len(shown)
            else []
        ),
        "",
    ]


def _measured(finding: Finding, loop: Loop) -> str:
    joint = f" of {finding.samples} samples together" if finding.samples > 1 else ""
    repeats = f" in {plural(loop.record.repeats, 'repeat')}" if loop.record.repeats else ""
    span = (
        f"{loop.fit.rank} of {len(loop.fit.basis)} directions excited, condition"
        f" {loop.fit.condition:.2g}"
    )
    outputs = plural(finding.outputs, "output")
    return f"{loop.record.rows} measurements of {outputs}{joint}{repeats}; {span}"


def _mass(loop: Loop, alpha: float, tried: int) -> str:
    mass = loop.mass
    if mass.exact:
        return "conserved to round-off"
    size = f"the velocities' sums are {mass.share:.1%} of them, p = {mass.p:.2g}"
    level = sidak(alpha, 1 / tried)
    if mass.leaks(level):
        return f"NOT conserved: outputs gain or lose with what is applied; {size}"
    if mass.conserved(level):
        return f"conserved within the noise; {size}"
    return f"cannot be told: the noise hides it; {size}"


def _test(loop: Loop) -> str:
    test = loop.test
    assert test is not None
    units = "repeats" if loop.record.by_repeat else "measurements"
    return (
        f"random signs of {test.units} {units}, {test.draws} experiments; offset and symmetric part"
        " fitted"
    )


def powerful(reach: Power, repeats: int) -> str:
    """What the experiment could see, and what it would take to see it surely."""
    start = f"a skew part of {reach.size:g} had a chance of {reach.power:.0%} to be seen"
    if reach.times <= 1:
        return start
    more = reach.more(repeats)
    if more is None:
        return f"{start}; no number of repeats would make it {reach.chance:.0%}"
    what = (
        f"{more} more repeats" if repeats else f"the whole series {np.ceil(reach.times):.0f} times"
    )
    return f"{start}; {what} would make it {reach.chance:.0%}"


def _grows(loop: Loop) -> str:
    growth = loop.spectrum.growth
    if growth.rate <= 0:
        return "every residual decays at once"
    if not np.isfinite(growth.factor):
        return "some residuals grow without bound"
    return f"some residuals grow at first, to {growth.factor:.2g} times their size"


def ranged(interval: Interval | None) -> str:
    """An interval as a phrase."""
    if interval is None:
        return "none"
    largest = max(abs(interval.low), abs(interval.high))
    if largest and not 1e-4 <= largest < 1e6:  # whatever the units are
        return f"{interval.estimate:.3g} ({interval.low:.3g} to {interval.high:.3g})"
    # Two digits of the interval's width are enough; what lies below is noise.
    width = interval.high - interval.low
    digits = int(np.clip(1 - np.floor(np.log10(width)), 0, 9)) if 0 < width < 100 else 3
    if interval.low > 0:  # a limit that is not zero must not look like it
        digits = max(digits, int(-np.floor(np.log10(interval.low))))
    return (
        f"{interval.estimate:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"
    )


def numbers(finding: Finding) -> dict[str, Any]:
    """Everything in the verdict, as plain values; what is infinite or undefined is null."""
    return {
        "source": finding.source,
        "verdict": str(finding.verdict),
        "code": finding.verdict.code,
        "colour": finding.verdict.colour,
        "can_turn": finding.can_turn,
        **finding.said.to_dict(),
        "dropped": finding.dropped,
        "undriven": list(finding.undriven),
        "p": finding.p if finding.can_turn else None,
        "alpha": finding.alpha,
        "outputs": finding.outputs,
        "samples_together": finding.samples,
        "time_unit": finding.time_unit,
        "loops": [_loop(finding, loop) for loop in finding.loops],
    }


def _loop(finding: Finding, loop: Loop) -> dict[str, Any]:
    fit, spans, test = loop.fit, loop.intervals, loop.test
    lift, metric = fit.basis, _closest(finding, loop)
    return {
        "sample": loop.sample or None,
        "drive": loop.drive,
        "rows": loop.record.rows,
        "repeats": loop.record.repeats or None,
        "p": loop.p if test else None,
        "p_real": loop.turning.real if loop.turning else None,
        "p_complex": loop.turning.complex if loop.turning else None,
        "offset": (lift @ fit.offset).tolist(),
        "metric": None if metric is None else (lift @ metric @ lift.T).tolist(),
        "growth": _growth(loop),
        "order": {
            "p": dict(loop.order.p),
            "memory": _finite(loop.order.memory),
            "drift": _finite(loop.order.drift),
        },
        "skewness": three(spans.skewness),
        "index": three(spans.index),
        "modes": [
            {"decay": three(mode.decay), "rotation": three(mode.rotation)} for mode in spans.modes
        ],
        "loop": (lift @ fit.loop @ lift.T).tolist(),
        "symmetric": (lift @ fit.symmetric @ lift.T).tolist(),
        "skew": (lift @ fit.skew @ lift.T).tolist(),
        "rank": fit.rank,
        "directions": len(fit.basis),
        "condition": fit.condition,
        "scatter": fit.scatter,
        "mass": {"share": loop.mass.share, "p": loop.mass.p, "offset": loop.mass.offset},
        "test": {"units": test.units, "draws": test.draws} if test else None,
        "power": reach(loop.power, loop.record.repeats) if loop.power else None,
        "origin": _origin(loop.diagnosis),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _growth(loop: Loop) -> dict[str, Any]:
    growth = loop.spectrum.growth
    return {
        "rate": growth.rate,
        "factor": _finite(growth.factor),
        "time": _finite(growth.time),
        "direction": (loop.fit.basis @ growth.largest).tolist(),
    }


def reach(found: Power, repeats: int) -> dict[str, Any]:
    """A power as plain numbers."""
    times = found.times if np.isfinite(found.times) else None
    more = found.more(repeats)
    return {
        "size": found.size,
        "chance": found.chance,
        "power": found.power,
        "visible": found.visible,
        "times": times,
        "more_repeats": more,
    }


def _origin(diagnosis: Diagnosis | None) -> dict[str, Any] | None:
    if diagnosis is None:
        return None
    seen = diagnosis.response
    response = (
        {"p": seen.p, "skewness": seen.skewness, "adjoint_share": three(seen.adjoint)}
        if seen
        else None
    )
    models = {
        name: vars(model) if model else None
        for name, model in (("boundary", diagnosis.boundary), ("adjoint", diagnosis.adjoint))
    }
    return {"response": response, **models, "favoured": diagnosis.favoured}


def three(interval: Interval) -> dict[str, float]:
    """An interval as plain numbers."""
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
