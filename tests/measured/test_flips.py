"""The test of "reciprocal": its level, its exactness, and what it sees."""

import numpy as np
import pytest

from measured.loops import NOISES, noise, reciprocal_loop, series, spiral_loop
from whorl import measured
from whorl.measured import flips
from whorl.simplex import tangent_basis

EXPERIMENTS = 4000


def design(kind, outputs, rows, rng):
    size = outputs - 1
    if kind == "series":
        return series(outputs, -(-rows // outputs))[0][:rows] @ tangent_basis(outputs)
    if kind == "grouped":  # each residual applied again and again before the next
        return np.repeat(series(outputs, 1)[0], -(-rows // outputs), axis=0)[:rows] @ tangent_basis(
            outputs
        )
    spread = np.geomspace(1, 0.1, size) if kind == "ill-conditioned" else np.ones(size)
    return rng.standard_normal((rows, size)) * spread


def alarms(drive, loop, kind, rng, *, shared=0.0, runs=None):
    """The p-values of many experiments at once, by the functions that `certify` calls."""
    units = drive[:, :, None] * drive[:, None, :]
    size = drive.shape[1]
    found = []
    for _ in range(4):
        error = 0.5 * noise(kind, (EXPERIMENTS // 4, *drive.shape), drive, rng)
        if runs is not None:
            error = (
                error
                + shared * rng.standard_normal((EXPERIMENTS // 4, runs.max() + 1, size))[:, runs]
            )
        answer = drive @ loop.T + error
        cross = answer[..., :, None] * drive[:, None, :]
        gram = units if runs is None else flips.gathered(units, runs)
        cross = cross if runs is None else flips.gathered(cross, runs)
        labels, _ = flips.grouping(gram)
        groups = flips.gathered(gram, labels)
        moved = flips.scores(groups, flips.gathered(cross, labels))
        found.append(flips.p_values(groups, moved, flips.signs(len(groups), 0)))
    return np.concatenate(found)


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize(
    ("outputs", "rows", "how"),
    [
        (3, 14, "random"),
        (3, 15, "series"),
        (3, 36, "grouped"),
        (3, 30, "ill-conditioned"),
        (4, 16, "random"),
        (6, 40, "random"),
    ],
)
def test_one_reciprocal_learner_in_twenty_is_called_a_turning_one(kind, outputs, rows, how):
    rng = np.random.default_rng([outputs, rows, NOISES.index(kind)])
    basis = tangent_basis(outputs)
    drive = design(how, outputs, rows, rng)
    p = alarms(drive, basis.T @ reciprocal_loop(outputs, rng) @ basis, kind, rng)
    assert p.size == EXPERIMENTS
    assert 0.035 <= np.mean(p <= 0.05) <= 0.065


@pytest.mark.parametrize("kind", NOISES)
def test_the_level_holds_when_rows_of_a_repeat_share_a_drift(kind):
    rng = np.random.default_rng(5)
    applied, runs = series(3, 9)
    drive, basis = applied @ tangent_basis(3), tangent_basis(3)
    loop = basis.T @ reciprocal_loop(3, rng) @ basis
    p = alarms(drive, loop, kind, rng, shared=2.0, runs=runs)
    assert 0.035 <= np.mean(p <= 0.05) <= 0.065


def test_rows_that_share_a_drift_and_are_called_independent_would_break_the_level():
    # The check above can fail: one repeat of three excitations whose drift the test is not told of.
    rng = np.random.default_rng(6)
    drive = np.repeat(series(3, 7)[0] @ tangent_basis(3), 6, axis=0)
    runs = np.arange(len(drive)) // 6
    error = rng.standard_normal((1000, runs.max() + 1, 2))[:, runs]
    cross = (drive + error)[..., :, None] * drive[:, None, :]
    gram = drive[:, :, None] * drive[:, None, :]
    labels = np.arange(len(drive)) % 12
    groups = flips.gathered(gram, labels)
    p = flips.p_values(
        groups, flips.scores(groups, flips.gathered(cross, labels)), flips.signs(12, 0)
    )
    assert np.mean(p <= 0.05) > 0.1


def test_twelve_rows_make_a_test_that_errs_on_the_safe_side():
    rng = np.random.default_rng(7)
    p = alarms(rng.standard_normal((12, 2)), np.diag([1.0, 2.0]), "gaussian", rng)
    assert 0.02 <= np.mean(p <= 0.05) <= 0.045  # six groups: the level is exactly 1/32


def test_a_skewed_noise_is_no_great_harm():
    rng = np.random.default_rng(8)
    drive = rng.standard_normal((36, 2))
    error = rng.exponential(size=(EXPERIMENTS, 36, 2)) - 1
    cross = (drive @ np.diag([1.0, 2.0]) + error)[..., :, None] * drive[:, None, :]
    gram = drive[:, :, None] * drive[:, None, :]
    labels, _ = flips.grouping(gram)
    groups = flips.gathered(gram, labels)
    p = flips.p_values(
        groups, flips.scores(groups, flips.gathered(cross, labels)), flips.signs(len(groups), 0)
    )
    assert 0.035 <= np.mean(p <= 0.05) <= 0.065


def test_the_score_of_two_measurements_is_bettis_difference():
    rng = np.random.default_rng(1)
    drive, answer = rng.standard_normal((2, 2, 2))
    gram, cross = drive.T @ drive, answer.T @ drive
    moved = flips.scores(gram[None], cross[None])[0]
    # A skew 2x2 matrix is one number: (x1 . y2 - x2 . y1) times the area of the two residuals over
    # the trace of their Gram matrix.
    betti = drive[0] @ answer[1] - drive[1] @ answer[0]
    assert moved[0, 1] == pytest.approx(betti * np.linalg.det(drive) / np.trace(gram), rel=1e-12)


def test_the_score_is_what_a_symmetric_fit_by_another_route_leaves():
    rng = np.random.default_rng(2)
    drive, answer = rng.standard_normal((2, 7, 4))
    gram, cross = drive.T @ drive, answer.T @ drive
    one, other = np.triu_indices(4)
    shapes = np.zeros((len(one), 4, 4))
    shapes[np.arange(len(one)), one, other] = shapes[np.arange(len(one)), other, one] = 1
    columns = np.stack([(drive @ shape.T).ravel() for shape in shapes], axis=1)
    fitted = np.tensordot(np.linalg.lstsq(columns, answer.ravel(), rcond=None)[0], shapes, axes=1)
    np.testing.assert_allclose(
        flips.scores(gram[None], cross[None])[0], cross - fitted @ gram, atol=1e-12
    )


def test_a_symmetric_loop_without_noise_has_no_score_in_any_group():
    rng = np.random.default_rng(3)
    drive = rng.standard_normal((5, 3, 4))  # fewer rows than directions in each group
    symmetric = rng.standard_normal((4, 4))
    symmetric = symmetric + symmetric.T
    gram = drive.swapaxes(1, 2) @ drive
    assert np.abs(flips.scores(gram, symmetric @ gram)).max() < 1e-12
    skew = np.triu(symmetric, 1) - np.triu(symmetric, 1).T
    assert np.abs(flips.scores(gram, skew @ gram)).max() > 0.1


def test_with_one_whole_group_the_statistic_is_that_of_the_unrestricted_fit():
    rng = np.random.default_rng(4)
    drive, answer = rng.standard_normal((2, 20, 3))
    gram, cross = drive.T @ drive, answer.T @ drive
    axes, weights = flips.metric(gram)
    loop = axes.T @ np.linalg.lstsq(drive, answer, rcond=None)[0].T @ axes
    values = np.linalg.eigvalsh(gram)
    one, other = np.triu_indices(3, k=1)
    classical = np.sum(
        (loop[one, other] - loop[other, one]) ** 2 / (1 / values[one] + 1 / values[other])
    )
    assert flips.statistic(
        flips.scores(gram[None], cross[None])[0], axes, weights
    ) == pytest.approx(classical, rel=1e-10)


def test_the_p_value_is_the_share_of_all_signs_counted_one_by_one():
    rng = np.random.default_rng(5)
    groups = np.stack([part.T @ part for part in rng.standard_normal((7, 4, 3))])
    moved = rng.standard_normal((7, 3, 3))
    moved = moved - moved.swapaxes(1, 2)
    axes, weights = flips.metric(groups.sum(axis=0))
    sizes = [
        flips.statistic(
            sum(sign * score for sign, score in zip(pattern, moved, strict=True)), axes, weights
        )
        for pattern in np.ndindex(*(2,) * 7)
        for pattern in [1 - 2 * np.array(pattern)]
    ]
    counted = np.mean(np.array(sizes) >= sizes[0] * (1 - 1e-9))
    assert flips.p_values(groups, moved, flips.signs(7, 0)) == counted


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


def test_a_file_sorted_by_excitation_or_in_turns_is_grouped_well_either_way():
    applied, _ = series(3, 12)
    for drive in (applied, np.repeat(series(3, 1)[0], 12, axis=0)):
        reduced = drive @ tangent_basis(3)
        _, retained = flips.grouping(reduced[:, :, None] * reduced[:, None, :])
        assert retained > 0.9


def test_measurements_that_cannot_be_compared_are_refused():
    applied = np.tile([[0.1, -0.06, -0.04]], (20, 1))
    applied[0] = [-0.05, 0.1, -0.05]  # one measurement of the second direction makes one comparison
    with pytest.raises(ValueError, match="must allow 6 separate comparisons of two directions"):
        measured.certify(applied, applied + np.random.default_rng(0).standard_normal(applied.shape))


def test_a_turning_learner_is_seen():
    rng = np.random.default_rng(10)
    applied, runs = series(3, 12)
    seen = applied @ spiral_loop().T + 0.1 * rng.standard_normal(applied.shape)
    finding = measured.certify(applied, seen, repeat=runs)
    assert finding.turns
    assert finding.leading.rotation.low < 0.8 < finding.leading.rotation.high
    straight = applied @ spiral_loop(1.0, 0.0).T + 0.1 * rng.standard_normal(applied.shape)
    assert not measured.certify(applied, straight, repeat=runs).turns
