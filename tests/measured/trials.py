"""Thousands of simulated learners: how often is the measured verdict right?

Each trial is a function of its cell (what is simulated) and of a generator. It says of one
experiment which events happened. The slow tests ask that their shares lie where the documentation
says; `tools/calibrate.py` writes the counts of all of them into a table.
"""

import itertools
import zlib

import numpy as np
from scipy import linalg

from measured.loops import (
    NOISES,
    fitted,
    gradient_loop,
    noise,
    reciprocal_loop,
    series,
    skewed_loop,
)
from whorl import measured
from whorl.measured import bootstrap, flips, power, turning
from whorl.measured.estimate import skewness
from whorl.simplex import tangent_basis

EXPERIMENTS = 1000
PORTION = 50  # experiments that share a stream
STRAIGHT = np.array([[1.0, 0.3], [0.3, 2.0]])
MEETING = np.array([[1.0, 1.5], [0.0, 1.0]])  # two eigenvalues, one eigenvector
TURNED = np.array([[1.0, -0.8], [0.8, 1.0]])
OTHER = np.array([[1.0, 0.0], [1.5, 3.0]])  # a gradient in another metric
LOOPS = {
    "reciprocal": STRAIGHT,
    "gradient in another metric": OTHER,
    "turns": TURNED,
    "meeting": MEETING,
}


def zero_sum(rows, outputs, rng, *, one_sided=False):
    """Random residuals."""
    applied = rng.standard_normal((rows, outputs))
    applied = np.abs(applied) if one_sided else applied
    return applied - applied.mean(axis=1, keepdims=True)


def level(rng, *, outputs, rows, design, kind):
    """A reciprocal learner with an offset, under noise that is as bad as any."""
    runs = None
    if design == "series":
        applied, runs = series(outputs, rows // outputs)
    else:
        applied = zero_sum(rows, outputs, rng, one_sided=design == "one-sided")
    error = 0.5 * noise(kind, applied.shape, applied, rng)
    loop = reciprocal_loop(outputs, rng)
    seen = applied @ loop.T + 0.7 * np.sin(np.arange(outputs)) + error
    return {"not reciprocal": flips.reciprocal(fitted(applied, seen, runs)).p <= 0.05}


def skewed(rng, *, outputs, rows, kind, share):
    """A loop with a skew part; its symmetric part decays alike, so that every skew part turns."""
    applied = zero_sum(rows, outputs, rng)
    error = 0.3 * mild(kind, applied, rng)
    fit = fitted(applied, applied @ skewed_loop(outputs, share, rng).T + error)
    bent = flips.reciprocal(fit).p <= 0.05
    signs = bootstrap.signs(rows, 499, int(rng.integers(2**31)))
    span = bootstrap.share(fit, signs, zero=not bent)
    return {
        "interval holds": span.low <= share <= span.high,
        "not reciprocal": bent,
        "turns": bent and called(fit),
    }


def promised(rng, *, outputs, rows, share):
    """The power that is promised (a chance, not a count) beside what is seen."""
    applied = zero_sum(rows, outputs, rng)
    error = 0.3 * rng.standard_normal(applied.shape)
    fit = fitted(applied, applied @ skewed_loop(outputs, share, rng).T + error)
    return {
        "promised": power.power(fit, size=share).power,
        "not reciprocal": flips.reciprocal(fit).p <= 0.05,
    }


def gradient(rng, *, outputs, rows, gap):
    """A gradient in another metric; with a gap, two of its eigenvalues are that close."""
    applied = zero_sum(rows, outputs, rng)
    loop = gradient_loop(outputs, rng, gap)
    fit = fitted(applied, applied @ loop.T + 0.2 * rng.standard_normal(applied.shape))
    return {"turns": called(fit) and flips.reciprocal(fit).p <= 0.05}


def edge(rng, *, outputs, rows):
    """A loop whose first two eigenvalues just meet, with one eigenvector."""
    meeting = np.diag(np.linspace(1.0, 3.0, outputs - 1))
    meeting[1, 1], meeting[0, 1] = 1.0, 1.0
    return {"turns": called(noisy(meeting, rows, rng))}


def triple(rng, *, outputs, rows, gap):
    """A loop whose first three eigenvalues meet, or nearly."""
    meeting = np.diag(np.r_[1.0 + gap * np.arange(3), np.linspace(2.0, 3.0, outputs - 4)])
    meeting[0, 1] = meeting[1, 2] = 1.0
    return {"turns": called(noisy(meeting, rows, rng))}


def noisy(loop, rows, rng):
    """The fit of a loop in zero-sum coordinates from random rows, at noise 0.1."""
    outputs = len(loop) + 1
    basis, applied = tangent_basis(outputs), zero_sum(rows, outputs, rng)
    seen = applied @ (basis @ loop @ basis.T).T + 0.1 * rng.standard_normal(applied.shape)
    return fitted(applied, seen)


def called(fit):
    """Whether the test of real eigenvalues rejects them."""
    return turning.turning(fit.loop, fit.influence, fit.free).real <= 0.05


def followed(rng, *, kind, sampling, steps, loop):
    """Series of a learner that are measured with a tenth of noise.

    A series that is refused, since no loop follows from it, says nothing; it is counted.
    """
    truth, uneven = LOOPS[loop], sampling == "uneven"
    run = None
    if kind == "stationary":
        time, state, _ = stationary(truth, rng, steps=steps, uneven=uneven)
    else:
        time, state, run = relaxations(truth, rng, runs=steps // 20, uneven=uneven, noise=0.1)
    try:
        phase = measured.follow(time, state, run=run).phases[0]
    except ValueError:
        return {"refused": True, "interval holds": True, "not reciprocal": False, "turns": False}
    return {"refused": False} | judged(phase, truth)


def judged(phase, truth):
    """Whether the interval of the skew part holds it, and what the tests reject."""
    span, bent = phase.intervals.skewness, phase.p <= 0.05
    return {
        "interval holds": span.low <= skewness(truth) <= span.high,
        "not reciprocal": bent,
        "turns": phase.turning.real <= 0.05,
    }


def alternating(rng, *, cycles, steps):
    """Two tasks by turns, one reciprocal and one that turns, each with a rest of its own."""
    rests, loops = np.eye(2), (STRAIGHT, TURNED)
    state, seen = rng.standard_normal(2), []
    for _, task in itertools.product(range(cycles), range(2)):
        taken = linalg.expm(-0.2 * loops[task])
        for _ in range(steps):
            state = rests[task] + taken @ (state - rests[task])
            seen.append(state)
    samples = np.array(seen) + 0.1 * np.std(seen) * rng.standard_normal((len(seen), 2))
    phase = np.tile(np.repeat(["first", "second"], steps), cycles)
    found = measured.follow(0.2 * np.arange(len(seen)), samples, phase=phase).phases
    each = zip(("reciprocal task", "turning task"), found, loops, strict=True)
    return {
        f"{name}: {event}": happened
        for name, one, loop in each
        for event, happened in judged(one, loop).items()
    }


def gaps(rng, steps, gap, uneven):
    """Times between samples; uneven ones differ by a factor of up to ten, and one in ten is long."""
    if not uneven:
        return np.full(steps, gap)
    drawn = gap * np.exp(rng.uniform(-1.2, 0.4, steps))
    return np.where(rng.random(steps) < 0.1, 2 * gap, drawn)


def stationary(loop, rng, *, steps=400, gap=0.2, noise=0.1, uneven=False):
    """A run that noise keeps moving, its times and its covariance."""
    cover = linalg.solve_continuous_lyapunov(loop, np.eye(len(loop)))
    waits = gaps(rng, steps - 1, gap, uneven)
    seen = [np.linalg.cholesky(cover) @ rng.standard_normal(len(loop))]
    powers = linalg.expm(-loop * waits[:, None, None])
    roots = np.linalg.cholesky(cover - powers @ cover @ powers.swapaxes(1, 2))
    for taken, root in zip(powers, roots, strict=True):
        seen.append(taken @ seen[-1] + root @ rng.standard_normal(len(loop)))
    size = np.sqrt(np.trace(cover) / len(loop))
    noisy = np.array(seen) + noise * size * rng.standard_normal((steps, len(loop)))
    return np.r_[0.0, np.cumsum(waits)], noisy, cover


def relaxations(loop, rng, *, runs=12, steps=20, noise=0.05, uneven=False):
    """Runs that decay from different starts, measured with noise."""
    times, states = [], []
    for _ in range(runs):
        start = 3 * rng.standard_normal(len(loop))
        times.append(np.cumsum(gaps(rng, steps, 0.2, uneven)))
        states.append(linalg.expm(-loop * times[-1][:, None, None]) @ start)
    state = np.concatenate(states)
    noisy = state + noise * rng.standard_normal(state.shape)
    return np.concatenate(times), noisy, np.repeat(np.arange(runs), steps)


def mild(kind, applied, rng):
    """Noise of variance one with a variance, unlike that of the trials of the level."""
    if kind == "gaussian":
        return rng.standard_normal(applied.shape)
    if kind == "heavy-tailed":
        return rng.standard_t(3, applied.shape) / np.sqrt(3)
    size = np.linalg.norm(applied, axis=1, keepdims=True)
    return rng.standard_normal(applied.shape) * size / np.sqrt(np.mean(size**2))


def crossed(**axes):
    """All cells of a table with these axes; `a_and_b` is an axis of pairs."""
    names = [name for key in axes for name in key.split("_and_")]
    for values in itertools.product(*axes.values()):
        flat = [one for value in values for one in (value if isinstance(value, tuple) else [value])]
        yield dict(zip(names, flat, strict=True))


DESIGNS = (
    (3, 14, "random"),
    (3, 36, "one-sided"),
    (3, 36, "series"),
    (4, 24, "random"),
    (6, 40, "random"),
    (6, 72, "series"),
    (6, 200, "random"),
)
EDGES = ((3, 14), (3, 36), (3, 200), (4, 40), (5, 60), (6, 72), (6, 200))
GROUPS = {
    "level": (level, list(crossed(outputs_and_rows_and_design=DESIGNS, kind=NOISES))),
    "skewed": (
        skewed,
        list(
            crossed(
                rows=(14, 36, 72, 200),
                outputs=(3, 4, 5, 6),
                kind=NOISES,
                share=(0.0, 0.03, 0.05, 0.1, 0.2, 0.3, 0.6),
            )
        ),
    ),
    "promised": (
        promised,
        list(
            crossed(
                outputs_and_rows=((3, 14), (3, 36), (6, 36), (6, 72), (3, 200)),
                share=(0.05, 0.1, 0.2),
            )
        ),
    ),
    "gradient": (gradient, list(crossed(outputs_and_rows=EDGES, gap=(None, 0.3, 0.0)))),
    "edge": (edge, list(crossed(outputs_and_rows=EDGES))),
    "triple": (
        triple,
        list(crossed(outputs_and_rows=((4, 40), (4, 200), (6, 72)), gap=(0.0, 0.02, 0.1, 0.3))),
    ),
    "series": (
        followed,
        list(
            crossed(
                steps=(100, 400),
                kind=("relaxations", "stationary"),
                sampling=("even", "uneven"),
                loop=tuple(LOOPS),
            )
        ),
    ),
    "long series": (
        followed,
        list(
            crossed(steps=(5000,), kind=("stationary",), sampling=("even",), loop=("reciprocal",))
        ),
    ),
    "phases": (alternating, list(crossed(cycles=(10,), steps=(15,)))),
}

SERIES = ("series", "long series", "phases")


def label(cell):
    """The cell in words, for names of tests and rows of tables."""
    return ", ".join(f"{name} {value}" for name, value in cell.items())


def simulate(group, cell, part, experiments=PORTION):
    """Counts of the events of one portion of a cell, which has a stream of its own."""
    rng = np.random.default_rng([zlib.crc32(f"{group}: {label(cell)}".encode()), part])
    counts: dict[str, float] = {}
    for _ in range(experiments):
        for event, happened in GROUPS[group][0](rng, **cell).items():
            counts[event] = counts.get(event, 0.0) + float(happened)
    return counts
