"""Small, equal, exact and oddly scaled data end in a verdict or in one plain sentence."""

import numpy as np
import pytest

from measured.loops import series
from measured.trials import STRAIGHT, TURNED, relaxations
from whorl import measured

TIME, STATE, RUN = relaxations(STRAIGHT, np.random.default_rng(0), runs=2, steps=20, noise=0.02)
SHARES = np.concatenate([STATE, 1 - STATE.sum(axis=1, keepdims=True)], axis=1)


def said(call, *arguments, **options):
    """What a person reads: the text of a finding, or a refusal in one sentence."""
    try:
        found = call(*arguments, **options)
    except ValueError as refusal:
        text = str(refusal)
        assert "\n" not in text
        assert not any(word in text for word in ("ingular", "LAPACK", "numpy", "array", "nan"))
        return text
    found.to_dict()
    return str(found)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (slice(None), slice(None)),  # two runs
        (slice(20), slice(None)),  # one run
        (slice(2), slice(None)),  # two samples
        (slice(1), slice(None)),  # one sample
        (slice(None), slice(0, 1)),  # one state
        (np.repeat(np.arange(20), 2)[:20], slice(None)),  # every sample twice
        (np.zeros(20, dtype=int), slice(None)),  # the same sample again and again
    ],
    ids=["two runs", "one run", "two samples", "one sample", "one state", "twice", "the same"],
)
@pytest.mark.parametrize(
    "state", [STATE, SHARES, np.round(SHARES, 2)], ids=["free", "sum", "round"]
)
def test_few_or_equal_samples_of_a_series(state, rows, columns):
    picked = state[rows][:, columns]
    assert said(measured.follow, 0.2 * np.arange(len(picked)), picked)


@pytest.mark.parametrize(
    "state",
    [
        np.zeros((40, 3)),
        np.where(np.arange(3) == 1, 0.25, SHARES),  # one output is constant
        np.c_[SHARES, np.zeros(40)],  # one output is always zero
        np.c_[SHARES[:, 0], SHARES[:, 0], SHARES[:, 0]],
        np.c_[STATE, STATE[:, :1] * 1e-9],
        np.c_[STATE, 1e9 + np.zeros(40)],
        np.exp(-np.arange(40.0))[:, None] * [1.0, 2.0, -3.0],
        np.tile([[0.0, 1.0], [1.0, 0.0]], (20, 1)),
        np.arange(80.0).reshape(40, 2),
    ],
    ids=["zero", "constant", "dead", "same", "tiny copy", "offset", "one mode", "flip", "line"],
)
def test_odd_states_of_a_series(state):
    assert said(measured.follow, TIME, state, run=RUN)


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e9])
def test_units_change_no_verdict_on_a_table(unit):
    applied, repeat = series(3, 8)
    moved = applied @ np.array([[1.0, -0.3, 0.3], [0.3, 1.0, -0.3], [-0.3, 0.3, 1.0]])
    moved = moved + 0.05 * np.random.default_rng(0).standard_normal(moved.shape)
    plain = measured.certify(applied, moved, repeat=repeat)
    for scaled in (
        (unit * applied, moved),
        (applied, unit * moved),
        (unit * applied, unit * moved),
    ):
        other = measured.certify(*scaled, repeat=repeat)
        assert (other.verdict, other.p) == (plain.verdict, plain.p)
        rate, usual = other.leading.rotation, plain.leading.rotation
        assert rate.low / rate.estimate == pytest.approx(usual.low / usual.estimate, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e9])
@pytest.mark.parametrize("loop", ["zero", "one", "turn", "offset"])
def test_exact_tables_have_text_and_json(loop, unit):
    applied, repeat = series(3, 8)
    turn = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    moved = {
        "zero": 0 * applied,
        "one": applied,
        "turn": applied @ (np.eye(3) + 0.5 * turn).T,
        "offset": applied + np.array([0.1, -0.2, 0.1]),
    }[loop]
    text = said(measured.certify, applied, unit * moved, repeat=repeat)
    assert ("This learner turns" in text) == (loop == "turn")


@pytest.mark.parametrize("runs", [1, 2])
def test_few_runs_of_a_turning_learner_without_noise(runs):
    rng = np.random.default_rng(1)
    time, state, run = relaxations(TURNED, rng, runs=runs, steps=30, noise=0.0)
    assert "This learner turns" in said(measured.follow, time, state, run=run)
