"""What could pass for a turn and is none: an offset, a memory of the row before, a drift."""

import numpy as np
import pytest

from measured.loops import series, spiral_loop
from whorl import measured


def experiment(design, effect, rng, *, loop=None, level=0.1):
    """A reciprocal learner, the identity, with something else beside it."""
    applied, runs = design
    size = np.abs(applied).max()
    seen = applied.copy() if loop is None else applied @ loop.T
    first = np.r_[True, runs[1:] != runs[:-1]]
    place = np.arange(len(runs)) - np.maximum.accumulate(np.where(first, np.arange(len(runs)), 0))
    push = np.zeros(applied.shape[1])
    push[:2] = size, -size
    if effect == "memory":
        seen[1:] += 0.05 * applied[:-1]
    if effect == "drift":
        seen += 0.05 * push * (place / place.max())[:, None]
    if effect == "offset":
        seen += 0.5 * push
    seen = seen + level * size * rng.standard_normal(applied.shape)
    return measured.certify(applied, seen, repeat=runs)


@pytest.mark.parametrize("outputs", [2, 3, 4, 5, 7])
def test_the_template_is_balanced_against_drift_and_memory(outputs):
    applied, runs = measured.balanced(outputs, repeats=2 * outputs if outputs % 2 else 4 * outputs)
    np.testing.assert_allclose(applied.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(applied.sum(axis=0), 0, atol=1e-12)
    memory = applied[1:].T @ applied[:-1]
    np.testing.assert_allclose(memory, memory.T, atol=1e-12)
    pairs = applied.reshape(-1, 2, outputs + 1, outputs)
    np.testing.assert_allclose(pairs[:, 0, 1:], pairs[:, 1, :0:-1])
    place = np.tile(np.arange(outputs + 1), len(applied) // (outputs + 1))
    np.testing.assert_allclose((place - place.mean()) @ applied, 0, atol=0.2 * outputs)
    assert (np.bincount(runs)[1:] == outputs + 1).all()


@pytest.mark.parametrize("effect", ["memory", "drift", "offset"])
def test_nothing_beside_the_loop_makes_a_turn_in_the_templates_order(effect):
    rng = np.random.default_rng(1)
    found = [experiment(measured.balanced(3), effect, rng) for _ in range(12)]
    assert sum(one.verdict != "reciprocal" for one in found) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [3, 5])
@pytest.mark.parametrize("effect", ["memory", "drift", "offset"])
def test_the_templates_order_keeps_the_level(effect, outputs):
    rng = np.random.default_rng([outputs, 2])
    found = [experiment(measured.balanced(outputs), effect, rng).p for _ in range(300)]
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize("effect", ["memory", "drift"])
def test_an_order_that_could_explain_a_small_turn_makes_it_borderline(effect):
    rng = np.random.default_rng(2)
    finding = experiment(series(3, 12), effect, rng, level=0.01)
    assert finding.verdict == "borderline"
    assert finding.leading.order.suspect
    assert "would explain it: apply the residuals in a balanced order" in str(finding)


def test_no_order_explains_a_large_turn():
    rng = np.random.default_rng(3)
    finding = experiment(series(3, 12), "none", rng, loop=spiral_loop())
    assert finding.turns
    assert finding.leading.order.memory > 0.3


def test_offset_memory_and_drift_are_named():
    rng = np.random.default_rng(4)
    offset = experiment(measured.balanced(3), "offset", rng)
    assert "offset" in offset.leading.order.seen(0.05)
    assert "without any residual" in str(offset)
    memory = experiment(measured.balanced(3), "memory", rng, level=0.01)
    assert "remember the row before" in str(memory)
    calm = experiment(measured.balanced(3), "none", rng)
    assert calm.leading.order.seen(0.01) == []


def test_known_noise_in_the_residuals_is_taken_out():
    rng = np.random.default_rng(5)
    applied = rng.standard_normal((1500, 3)) * [1.0, 0.3, 0.6]
    applied -= applied.mean(axis=1, keepdims=True)
    loop = np.array([[1.0, 0.5, 0.2], [0.5, 2.0, 0.4], [0.2, 0.4, 0.7]])
    seen = applied @ loop.T + 0.01 * rng.standard_normal(applied.shape)
    blurred = applied + 0.35 * rng.standard_normal(applied.shape)
    naive, cured = (
        measured.certify(blurred, seen, residual_uncertainty=sigma) for sigma in (0.0, 0.35)
    )
    assert naive.p < 0.05 < cured.p
    assert naive.leading.fit.skewness > 3 * cured.leading.fit.skewness
    with pytest.raises(ValueError, match="residual_uncertainty must be smaller than the scatter"):
        measured.certify(blurred, seen, residual_uncertainty=5.0)
