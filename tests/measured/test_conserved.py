"""Series whose states are tied by equations: conserved outputs, redundant sensors, constants."""

import numpy as np
import pytest
from scipy import linalg

from measured.trials import STRAIGHT, TURNED, relaxations
from whorl import measured
from whorl.measured import dependence
from whorl.simplex import tangent_basis

OUTPUTS = ("output_1", "output_2", "output_3", "output_4")
KINDS = {
    "exact": (None, 0.0),
    "6 decimals": (6, 0.0),
    "4 decimals": (4, 0.0),
    "3 decimals": (3, 0.0),
    "noise per output": (None, 0.005),
    "unequal noise": (None, np.array([0.001, 0.008, 0.003, 0.002])),
    "noise and decimals": (4, 0.002),
}


def shares(rng, outputs, kind, *, turns=False):
    """Relaxations of outputs that sum to one, exactly symmetric in the zero-sum plane or turning."""
    decimals, noise = KINDS[kind]
    size, basis = outputs - 1, tangent_basis(outputs)
    mixed = rng.standard_normal((size, size))
    loop = mixed @ mixed.T / size + 0.5 * np.eye(size)
    if turns:
        loop = np.eye(size)
        loop[0, 1], loop[1, 0] = -0.6, 0.6
    time = 0.1 * np.arange(24)
    taken = linalg.expm(-loop * time[:, None, None])
    starts = 0.35 / np.sqrt(outputs) * rng.standard_normal((10, size, 1))
    state = 1 / outputs + (taken @ starts[:, None])[..., 0].reshape(-1, size) @ basis.T
    state = state + (noise if np.isscalar(noise) else noise[:outputs]) * rng.standard_normal(
        state.shape
    )
    state = state if decimals is None else np.round(state, decimals)
    return np.tile(time, 10), state, np.repeat(np.arange(10), 24)


def followed(rng, outputs, kind, *, turns=False):
    time, state, run = shares(rng, outputs, kind, turns=turns)
    return measured.follow(time, state, run=run, names=OUTPUTS[:outputs])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [3, 4])
def test_a_series_of_shares_is_certified_in_zero_sum_directions(outputs, kind):
    found = followed(np.random.default_rng(3), outputs, kind, turns=True)
    (phase,) = found.phases
    assert found.verdict == "turns"
    assert phase.course.rank == outputs - 1
    basis = phase.course.span.basis
    np.testing.assert_allclose(basis, tangent_basis(outputs), atol=1e-15)
    assert "the outputs sum to 1" in str(found)
    assert f"certified in {outputs - 1} zero-sum directions" in str(found)
    assert "leave" not in str(found)
    said = found.to_dict()["phases"][0]
    assert (said["directions"], said["conserved"]) == (outputs - 1, True)
    assert np.shape(said["loop"]) == (outputs, outputs)
    np.testing.assert_allclose(np.sum(said["loop"], axis=0), 0, atol=1e-9)
    assert np.sum(said["rest"]) == pytest.approx(1, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [3, 4])
def test_symmetric_shares_are_reciprocal_at_the_level_and_turning_ones_turn(outputs, kind):
    bent = turning = 0
    for seed in range(40):
        bent += followed(np.random.default_rng([seed, 1]), outputs, kind).phases[0].p <= 0.05
        turning += followed(np.random.default_rng([seed, 2]), outputs, kind, turns=True).turns
    assert bent <= 6  # of 40 at 5 %: seven or more come once in a hundred
    assert turning >= 37  # a line is said to be seen in one of a hundred


def test_a_redundant_sensor_is_reported_with_its_equation_and_column_names():
    time, state, run = relaxations(TURNED, np.random.default_rng(0), noise=0.01)
    third = 2 * state[:, :1] - state[:, 1:] + 0.5
    for extra in (0.0, 0.01):
        noise = extra * np.random.default_rng(1).standard_normal(third.shape)
        tied = np.concatenate([state, third + noise], axis=1)
        found = measured.follow(time, tied, run=run, names=("left", "right", "sensor"))
        assert found.turns
        assert "sensor = 2 left - right + 0.5;" in str(found)
        assert "certified in 2 remaining directions" in str(found)


def test_the_columns_of_the_file_are_named_as_the_file_names_them(tmp_path):
    time, state, run = relaxations(TURNED, np.random.default_rng(0), noise=0.01)
    path = tmp_path / "renamed.csv"
    lines = ["run,time [s],volts,output_2,output_3"]
    rows = zip(run, time, state, strict=True)
    lines += [f"{r},{t:.6f},{x:.6f},{y:.6f},{2 * x:.6f}" for r, t, (x, y) in rows]
    path.write_text("\n".join(lines))
    said = str(measured.read_series(path, rename={"volts": "output_1"}))
    assert "output_3 = 2 volts; certified in 2 remaining directions" in said


@pytest.mark.parametrize(
    ("tied", "said", "left"),
    [
        (lambda x, y: (x, y, 1 - x - y), ["the states sum to 1"], 2),
        (lambda x, y: (x, y, 2 * x - y), ["c = 2 a - b"], 2),
        (lambda x, y: (x, 1 - x, y, 2 - y), ["the states sum to 3", "a and b sum to 1"], 2),
        (lambda x, y: (x, y, 0.25 + 0 * x), ["c stays at 0.25"], 2),
        (lambda x, y: (x, y, 3 - x - y, 0 * x), ["the states sum to 3", "c"], 2),
        (lambda x, y: (x, y), [], 2),
        (lambda x, _: (x, 1 - x), ["the states sum to 1"], 1),
    ],
)
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e9])
def test_equations_between_states_are_found_in_any_unit(tied, said, left, unit):
    _, state, _ = relaxations(STRAIGHT, np.random.default_rng(0), noise=0.0)
    whole = unit * np.stack(tied(*state.T), axis=1)
    for digits in (None, 4):
        seen = whole if digits is None else unit * np.round(whole / unit, digits)
        found = dependence.span(seen[:-1], seen[1:])
        assert found.basis.shape[1] == left
        np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(left), atol=1e-12)
        assert len(found.equations) == whole.shape[1] - left
        if unit == 1.0 and digits is None:
            words = [one.said("abcd"[: whole.shape[1]]) for one in found.equations]
            assert all(any(part in word for word in words) for part in said)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("which", ["time", "state"])
def test_units_change_no_verdict_on_conserved_outputs(unit, which):
    time, state, run = shares(np.random.default_rng(5), 3, "4 decimals", turns=True)
    plain = measured.follow(time, state, run=run).phases[0]
    scaled = (time * unit, state) if which == "time" else (time, state * unit)
    other = measured.follow(*scaled, run=run).phases[0]
    assert (other.verdict, other.p) == (plain.verdict, plain.p)
    assert other.course.skewness == pytest.approx(plain.course.skewness, rel=1e-3)


def test_two_conserved_outputs_leave_one_direction_which_cannot_turn():
    time, state, run = relaxations(STRAIGHT, np.random.default_rng(0), noise=0.01)
    both = np.stack([state[:, 0], 1 - state[:, 0]], axis=1)
    found = measured.follow(time, both, run=run, names=OUTPUTS[:2])
    assert str(found).startswith("This learner cannot turn")
    assert "the outputs sum to 1; certified in 1 zero-sum direction" in str(found)
    assert found.to_dict()["can_turn"] is False
