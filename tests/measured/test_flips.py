"""The test of "reciprocal": its level, its equations by another route, and what it sees."""

from dataclasses import replace

import numpy as np
import pytest

from measured import trials
from measured.loops import fitted, reciprocal_loop, series, skewed_loop, spiral_loop
from whorl import measured
from whorl.measured import flips
from whorl.simplex import tangent_basis


def test_the_statistic_is_that_of_fitting_every_experiment_anew():
    rng = np.random.default_rng(0)
    applied = rng.standard_normal((20, 4))
    applied -= applied.mean(axis=1, keepdims=True)
    seen = applied @ np.diag([1.0, 2, 3, 4]) + 0.5 * rng.standard_normal((20, 4)) + 0.3
    found, signs = flips.scores(fitted(applied, seen)), flips.signs(20, 0)
    drive, answer = applied @ tangent_basis(4), (seen @ tangent_basis(4)).ravel()
    even, odd = flips.shapes(3)
    offsets = np.broadcast_to(np.eye(3), (20, 3, 3))
    design = np.concatenate([np.einsum("aij,rj->ria", even, drive), offsets], axis=2).reshape(60, 9)
    frame = np.linalg.qr(design)[0]
    skew = np.einsum("aij,rj->ria", odd, drive).reshape(60, 3)
    skew -= frame @ (frame.T @ skew)
    values, vectors = np.linalg.eigh(skew.T @ skew)
    skew = (skew @ (vectors / np.sqrt(values))).reshape(20, 3, 3)
    left = answer - frame @ (frame.T @ answer)
    larger = left.reshape(20, 3).copy()
    for row in range(20):
        own = frame.reshape(20, 3, 9)[row]
        sizes, axes = np.linalg.eigh(np.eye(3) - own @ own.T)
        larger[row] = (axes / np.sqrt(sizes)) @ axes.T @ larger[row]

    def scores(error):
        error = (error - frame @ (frame.T @ error)).reshape(20, 3)
        return np.einsum("ri,rip->rp", error, skew)

    # On average over all signs the rows do not mix: each can be seen alone.
    alone = [scores((larger * (np.arange(20) == row)[:, None]).ravel()) for row in range(20)]
    usual = sum(one.T @ one for one in alone)

    def statistic(error):
        units = scores(error)
        scatter, own = (20 * units.T @ units + flips.FEW * usual) / (20 + flips.FEW), 20 / 26
        blend = own * scatter + (1 - own) * np.trace(scatter) / 3 * np.eye(3)
        return units.sum(axis=0) @ np.linalg.solve(blend, units.sum(axis=0))

    assert found.observed() == pytest.approx(statistic(left), rel=1e-9)
    tried = [statistic((sign[:, None] * larger).ravel()) for sign in signs[1:6]]
    np.testing.assert_allclose(found.statistic(signs[1:6]), tried, rtol=1e-9)


def test_a_symmetric_loop_with_an_offset_leaves_no_score():
    rng = np.random.default_rng(3)
    applied = rng.standard_normal((12, 4)) + 1.0
    exact = applied @ reciprocal_loop(4, rng).T + [0.5, -0.5, 0.2, -0.2]
    assert np.abs(flips.scores(fitted(applied, exact)).seen).max() < 1e-12
    turned = exact + applied[:, [1, 0, 3, 2]] * [1, -1, 1, -1]
    assert np.abs(flips.scores(fitted(applied, turned)).seen).max() > 0.1


def test_one_reciprocal_learner_in_twenty_is_called_another():
    rng = np.random.default_rng(1)
    cell = trials.GROUPS["level"][1][0]
    found = [trials.level(rng, **cell)["not reciprocal"] for _ in range(150)]
    assert np.mean(found) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)


def test_many_outputs_in_few_rows_keep_the_level():
    # What a wide fit takes of the noise is more than half of what is left to be seen.
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        applied = trials.zero_sum(60, 18, rng)
        seen = applied + 0.1 * rng.standard_normal(applied.shape)
        found.append(flips.reciprocal(fitted(applied, seen)).p <= 0.05)
    assert sum(found) <= 4


def test_the_verdict_does_not_depend_on_how_outputs_are_numbered():
    rng = np.random.default_rng(9)
    applied, runs = series(4, 10)
    seen = applied @ reciprocal_loop(4, rng).T + 0.3 * rng.standard_normal(applied.shape)
    order = [2, 0, 3, 1]
    first, second = (
        measured.certify(applied, seen, repeat=runs),
        measured.certify(applied[:, order], seen[:, order], repeat=runs),
    )
    assert first.p == second.p
    assert first.leading.fit.index == pytest.approx(second.leading.fit.index, rel=1e-10)


def test_wide_loops_are_tested_without_fitting_again():
    rng = np.random.default_rng(2)
    applied = rng.standard_normal((80, 18))
    applied -= applied.mean(axis=1, keepdims=True)
    loop = reciprocal_loop(18, rng)
    error = 0.2 * rng.standard_normal(applied.shape)
    assert measured.certify(applied, applied @ loop.T + error).p > 0.01
    turn = np.roll(np.eye(18), 1, axis=0) - np.roll(np.eye(18), -1, axis=0)
    assert measured.certify(applied, applied @ (loop + 0.5 * turn).T + error).p < 0.01


def test_a_turning_learner_is_seen():
    rng = np.random.default_rng(10)
    applied, runs = measured.balanced(3)
    applied = applied / np.abs(applied).max()
    seen = applied @ spiral_loop().T + 0.1 * rng.standard_normal(applied.shape)
    finding = measured.certify(applied, seen, repeat=runs)
    assert finding.turns
    assert finding.leading.rotation.low < 0.8 < finding.leading.rotation.high
    straight = applied @ spiral_loop(1.0, 0.0).T + 0.1 * rng.standard_normal(applied.shape)
    assert not measured.certify(applied, straight, repeat=runs).turns


def test_the_score_of_all_units_is_the_skew_part_of_the_whole_fit():
    # What lets the promised power take its noise from the influence of units (Frisch and Waugh).
    rng = np.random.default_rng(14)
    applied = trials.zero_sum(20, 4, rng)
    fit = fitted(applied, applied @ skewed_loop(4, 0.3, rng).T + 0.2 * rng.standard_normal((20, 4)))
    alone = [
        flips.scores(replace(fit, cross=odd @ fit.gram, answer=fit.drive @ odd.T)).seen.sum(axis=0)
        for odd in flips.shapes(3)[1]
    ]
    found = fit.skew[np.triu_indices(3, k=1)] @ np.stack(alone)
    np.testing.assert_allclose(flips.scores(fit).seen.sum(axis=0), found, rtol=1e-9)
