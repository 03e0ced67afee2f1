"""One column.

How it may move and how it steps, against plain NumPy, complex steps, exact fractions and nashpy.
"""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from nashpy.learning import replicator_dynamics

import oracle
import strategies
from whorl import simplex

EPS = np.finfo(np.float64).eps
SHAPE = (4, 3)
SCORES = hnp.arrays(np.float64, SHAPE, elements=st.floats(-5, 5))
COLUMNS = np.random.default_rng(0).dirichlet(np.ones(4), size=3).T
PUSH = np.random.default_rng(1).standard_normal(SHAPE)
# A full column, one with an entry off its support, and a frozen one.
SPARSE = np.array([[0.25, 0.5, 0.0], [0.25, 0.0, 1.0], [0.25, 0.2, 0.0], [0.25, 0.3, 0.0]])


def test_velocity_is_the_covariance_times_the_score():
    expected = np.stack(
        [oracle.covariance(p) @ s for p, s in zip(COLUMNS.T, PUSH.T, strict=True)], axis=1
    )
    found = np.asarray(simplex.velocity(jnp.asarray(COLUMNS), jnp.asarray(PUSH)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-15)


@given(strategies.columns(SHAPE, sparse=True), SCORES)
def test_velocity_is_the_covariance_times_the_score_on_extreme_columns(layer, score):
    expected = np.stack(
        [oracle.covariance(p) @ s for p, s in zip(layer.T, score.T, strict=True)], axis=1
    )
    # Entry by entry: the oracle subtracts terms of size p_i |s|, and nothing larger.
    difference = np.abs(
        np.asarray(simplex.velocity(jnp.asarray(layer), jnp.asarray(score))) - expected
    )
    assert (difference <= 8 * EPS * layer * np.abs(score).max()).all()


@pytest.mark.parametrize("function", [simplex.velocity, simplex.acceleration, simplex.score])
def test_a_layer_moves_column_by_column(function):
    whole = function(jnp.asarray(COLUMNS), jnp.asarray(PUSH))
    for column in range(SHAPE[1]):
        alone = function(jnp.asarray(COLUMNS[:, column]), jnp.asarray(PUSH[:, column]))
        np.testing.assert_allclose(alone, whole[:, column], rtol=1e-14, atol=1e-16)


def test_velocity_keeps_its_relative_precision_in_a_nearly_full_column():
    light = np.array([2.0**-40, 2.0**-39])
    p, s = np.array([1 - light.sum(), *light]), np.array([0.7, -1.3, 2.9])
    exact_p, exact_s = [Fraction(x) for x in p], [Fraction(x) for x in s]
    average = sum((a * b for a, b in zip(exact_p, exact_s, strict=True)), Fraction(0))
    expected = np.array([float(a * (b - average)) for a, b in zip(exact_p, exact_s, strict=True)])
    np.testing.assert_allclose(
        simplex.velocity(jnp.asarray(p), jnp.asarray(s)), expected, rtol=4 * EPS
    )


@given(strategies.columns(SHAPE, sparse=True), st.floats(-1e6, 1e6))
def test_a_constant_score_moves_nothing(layer, constant):
    np.testing.assert_array_equal(
        simplex.velocity(jnp.asarray(layer), jnp.full(SHAPE, constant)), 0.0
    )


@given(strategies.columns(SHAPE, sparse=True), SCORES)
def test_velocity_and_acceleration_conserve_the_mass_of_every_column(layer, score):
    for function in (simplex.velocity, simplex.acceleration):
        moved = np.asarray(function(jnp.asarray(layer), jnp.asarray(score)))
        assert (np.abs(moved.sum(axis=0)) <= 16 * EPS * np.abs(moved).sum(axis=0)).all()


def test_velocity_is_the_first_derivative_of_the_exponential_path():
    expected, _ = oracle.step_derivatives(COLUMNS, PUSH)
    np.testing.assert_allclose(
        simplex.velocity(jnp.asarray(COLUMNS), jnp.asarray(PUSH)), expected, rtol=0, atol=1e-15
    )


def test_acceleration_is_the_second_derivative_of_the_exponential_path():
    _, expected = oracle.step_derivatives(COLUMNS, PUSH)
    np.testing.assert_allclose(
        simplex.acceleration(jnp.asarray(COLUMNS), jnp.asarray(PUSH)), expected, rtol=0, atol=4e-15
    )


@given(strategies.columns(SHAPE, sparse=True), SCORES)
def test_the_derivatives_hold_on_extreme_columns(layer, score):
    # Entry by entry: the oracle subtracts terms of size p_i |s| and p_i |s|^2, and nothing larger.
    first, second = oracle.step_derivatives(layer, score)
    size = np.abs(score).max()
    assert (
        np.abs(simplex.velocity(jnp.asarray(layer), jnp.asarray(score)) - first)
        <= 16 * EPS * layer * size
    ).all()
    assert (
        np.abs(simplex.acceleration(jnp.asarray(layer), jnp.asarray(score)) - second)
        <= 64 * EPS * layer * size**2
    ).all()


def test_velocity_and_acceleration_are_the_derivatives_of_the_step():
    layer, score = jnp.asarray(SPARSE), jnp.asarray(PUSH)

    def speed(size):
        return jax.jvp(lambda eta: simplex.step(layer, score, eta), (size,), (1.0,))[1]

    first, second = jax.jvp(speed, (0.0,), (1.0,))
    np.testing.assert_allclose(first, simplex.velocity(layer, score), rtol=0, atol=1e-15)
    np.testing.assert_allclose(second, simplex.acceleration(layer, score), rtol=0, atol=4e-15)


def test_covariance_is_the_matrix_that_velocity_applies():
    p, s = COLUMNS[:, 0], PUSH[:, 0]
    matrix = np.asarray(simplex.covariance(jnp.asarray(p)))
    np.testing.assert_allclose(matrix, oracle.covariance(p), rtol=0, atol=2 * EPS)
    np.testing.assert_allclose(
        matrix @ s, simplex.velocity(jnp.asarray(p), jnp.asarray(s)), rtol=0, atol=1e-15
    )


def test_covariance_keeps_its_relative_precision_in_a_nearly_full_column():
    p = np.array([1 - 3 * 2.0**-40, 2.0**-40, 2.0**-39])
    exact = [Fraction(x) for x in p]
    expected = [
        [float(a * (1 - a) if i == j else -a * b) for j, b in enumerate(exact)]
        for i, a in enumerate(exact)
    ]
    np.testing.assert_allclose(simplex.covariance(jnp.asarray(p)), expected, rtol=4 * EPS)


@given(strategies.columns(SHAPE, sparse=True), SCORES, st.floats(-2, 2))
def test_a_step_is_the_normalised_exponential(layer, score, size):
    stepped = np.asarray(simplex.step(jnp.asarray(layer), jnp.asarray(score), size))
    np.testing.assert_allclose(stepped, oracle.exponential_step(layer, score, size), rtol=1e-14)


@given(strategies.columns(SHAPE, sparse=True), SCORES, st.floats(-2, 2))
def test_a_step_keeps_every_column_on_its_simplex_and_its_support(layer, score, size):
    stepped = np.asarray(simplex.step(jnp.asarray(layer), jnp.asarray(score), size))
    assert (np.abs(stepped.sum(axis=0) - 1) <= 1e-15).all()
    np.testing.assert_array_equal(stepped > 0, layer > 0)


@pytest.mark.parametrize("huge", [1e3, 1e100, 1e300])
def test_huge_scores_do_not_overflow(huge):
    score = huge * np.array(
        [[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0], [0.5, -2.0, 0.0], [-0.5, -3.0, 1.0]]
    )
    winners = [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(
        simplex.step(jnp.asarray(SPARSE), jnp.asarray(score), 1.0), winners, rtol=0, atol=1e-200
    )


@pytest.mark.parametrize("wild", [-1e100, 1e100])
def test_scores_off_the_support_have_no_say(wild):
    layer, quiet, loud = (
        jnp.asarray(SPARSE),
        jnp.asarray(PUSH),
        jnp.asarray(np.where(SPARSE > 0, PUSH, wild)),
    )
    np.testing.assert_array_equal(simplex.velocity(layer, loud), simplex.velocity(layer, quiet))
    np.testing.assert_array_equal(
        simplex.acceleration(layer, loud), simplex.acceleration(layer, quiet)
    )
    np.testing.assert_array_equal(simplex.step(layer, loud, 0.5), simplex.step(layer, quiet, 0.5))


def test_a_frozen_column_is_exactly_still():
    frozen, push = jnp.asarray(SPARSE[:, 2]), jnp.asarray(PUSH[:, 2])
    np.testing.assert_array_equal(simplex.velocity(frozen, push), 0.0)
    np.testing.assert_array_equal(simplex.acceleration(frozen, push), 0.0)
    np.testing.assert_array_equal(simplex.step(frozen, push, 3.0), frozen)


@pytest.mark.parametrize("size", range(2, 6))
def test_ten_thousand_steps_conserve_mass_and_keep_zeros_zero(size):
    rng = np.random.default_rng(size)
    start = rng.dirichlet(np.ones(size), size=4).T
    start[0, 0] = 0.0
    start[:, 0] /= start[:, 0].sum()
    scores = jnp.asarray(rng.standard_normal((10_000, size, 4)))

    def one(layer, score):
        stepped = simplex.step(layer, score, 0.1)
        return stepped, stepped

    _, path = jax.jit(lambda p, s: jax.lax.scan(one, p, s))(jnp.asarray(start), scores)
    path = np.asarray(path)
    assert np.abs(path.sum(axis=1) - 1).max() <= 1e-15
    assert max(abs(math.fsum(column) - 1) for column in path[-1].T) <= 1e-15
    np.testing.assert_array_equal(path > 0, np.broadcast_to(start > 0, path.shape))


@given(strategies.columns(SHAPE, sparse=False), SCORES)
def test_the_replicator_score_undoes_velocity_up_to_a_constant(layer, score):
    moved = simplex.velocity(jnp.asarray(layer), jnp.asarray(score))
    again = np.asarray(simplex.score(jnp.asarray(layer), moved))
    constant = (layer * score).sum(axis=0)
    np.testing.assert_allclose(again, score - constant, rtol=0, atol=32 * EPS * np.abs(score).max())


def test_every_tangent_velocity_is_the_replicator_field_of_its_score():
    inside = SPARSE > 0
    tangent = np.where(
        inside, PUSH - np.where(inside, PUSH, 0.0).sum(axis=0) / inside.sum(axis=0), 0.0
    )
    score = simplex.score(jnp.asarray(SPARSE), jnp.asarray(tangent))
    np.testing.assert_array_equal(np.asarray(score)[~inside], 0.0)
    np.testing.assert_allclose(
        simplex.velocity(jnp.asarray(SPARSE), score), tangent, rtol=0, atol=1e-15
    )
    for p, s, wanted in zip(SPARSE.T, np.asarray(score).T, tangent.T, strict=True):
        for constant in (0.0, 2.5):  # the score is defined up to a constant
            np.testing.assert_allclose(
                oracle.covariance(p) @ (s + constant), wanted, rtol=0, atol=1e-15
            )


def test_the_covariance_takes_the_mass_out_of_any_velocity_divided_by_its_column():
    score = np.asarray(simplex.score(jnp.asarray(COLUMNS), jnp.asarray(PUSH)))
    for p, s, moved in zip(COLUMNS.T, score.T, PUSH.T, strict=True):
        np.testing.assert_allclose(
            oracle.covariance(p) @ s, moved - p * moved.sum(), rtol=0, atol=1e-14
        )


def test_expand_restores_what_reduce_dropped():
    reduced = simplex.reduce(jnp.asarray(COLUMNS))
    assert reduced.shape == (SHAPE[0] - 1, SHAPE[1])
    np.testing.assert_allclose(simplex.expand(reduced), COLUMNS, rtol=0, atol=4 * EPS)
    np.testing.assert_array_equal(simplex.reduce(simplex.expand(reduced)), reduced)


@pytest.mark.parametrize("size", range(2, 9))
def test_the_tangent_basis_is_orthonormal_and_sums_to_zero(size):
    basis = simplex.tangent_basis(size)
    np.testing.assert_allclose(basis.T @ basis, np.eye(size - 1), rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(basis.sum(axis=0), 0.0, rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(basis @ basis.T, oracle.zero_sum(1, size), rtol=0, atol=4 * EPS)


@pytest.mark.parametrize("seed", range(5))
def test_velocity_is_the_replicator_derivative_of_nashpy(seed):
    rng = np.random.default_rng(seed)
    payoff, p = rng.standard_normal((4, 4)), rng.dirichlet(np.ones(4))
    expected = replicator_dynamics.get_derivative_of_fitness(p, 0.0, payoff)
    np.testing.assert_allclose(
        simplex.velocity(jnp.asarray(p), jnp.asarray(payoff @ p)), expected, rtol=0, atol=1e-15
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_shahshahani_gradient_of_a_quadratic_potential_is_the_replicator_field_of_nashpy(seed):
    rng = np.random.default_rng(seed)
    half, p = rng.standard_normal((4, 4)), rng.dirichlet(np.ones(4))
    payoff = half + half.T
    slope = jax.grad(lambda q: q @ jnp.asarray(payoff) @ q / 2)(jnp.asarray(p))
    field = np.asarray(simplex.velocity(jnp.asarray(p), slope))
    np.testing.assert_allclose(
        field, replicator_dynamics.get_derivative_of_fitness(p, 0.0, payoff), rtol=0, atol=4e-15
    )
    # In the Shahshahani metric its product with any tangent is the slope of the potential along
    # that tangent.
    tangent = simplex.tangent_basis(4)
    np.testing.assert_allclose(
        (field / p) @ tangent, np.asarray(slope) @ tangent, rtol=0, atol=1e-14
    )
