"""What a turn must be, how much of the zero-sum space it can reach, and which matrices are
refused.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import whorl as wh
from whorl.simplex import tangent_basis
from whorl.turn import joint_skew

TASK = wh.Task.random(3, 3, seed=1)
NET = wh.Network.random([3, 3], seed=2)


def test_three_outputs_turn_as_in_the_paper():
    np.testing.assert_allclose(wh.quarter_turn(3), oracle.three_port(), rtol=0, atol=1e-15)


@pytest.mark.parametrize("outputs", [3, 5, 7, 9])
def test_an_odd_number_of_outputs_turns_as_a_whole(outputs):
    turn = wh.quarter_turn(outputs)
    np.testing.assert_allclose(turn @ turn, -oracle.zero_sum(1, outputs), rtol=0, atol=1e-15)


@pytest.mark.parametrize("outputs", [4, 6, 8])
def test_an_even_number_of_outputs_leaves_the_alternating_mode(outputs):
    turn, alternating = wh.quarter_turn(outputs), (-1.0) ** np.arange(outputs)
    unturned = np.outer(alternating, alternating) / outputs
    np.testing.assert_allclose(
        turn @ turn, unturned - oracle.zero_sum(1, outputs), rtol=0, atol=1e-15
    )


@pytest.mark.parametrize("outputs", range(3, 10))
def test_a_quarter_turn_is_skew_and_conserves_mass(outputs):
    turn = wh.quarter_turn(outputs)
    np.testing.assert_array_equal(turn, -turn.T)
    np.testing.assert_allclose(turn @ np.ones(outputs), 0, atol=1e-15)


@pytest.mark.parametrize("outputs", [2, 4, 6, 8])
def test_no_turn_reaches_every_direction_when_their_number_is_odd(outputs):
    draws = np.random.default_rng(0).standard_normal((50, outputs, outputs))
    projector = oracle.zero_sum(1, outputs)
    turns = projector @ (draws - draws.transpose(0, 2, 1)) @ projector
    assert np.linalg.matrix_rank(turns, rtol=1e-12).max() == outputs - 2


@pytest.mark.parametrize("outputs", range(3, 10))
def test_the_quarter_turn_reaches_as_many_directions_as_any(outputs):
    assert np.linalg.matrix_rank(wh.quarter_turn(outputs)) == 2 * ((outputs - 1) // 2)


@pytest.mark.parametrize("samples", [2, 3, 4, 5])
@pytest.mark.parametrize("outputs", [2, 3])
def test_a_sample_turn_is_skew_and_conserves_the_mass_of_each_sample(samples, outputs):
    turn = wh.sample_turn(samples, outputs)
    np.testing.assert_array_equal(turn, -turn.T)
    np.testing.assert_allclose(turn.reshape(-1, samples, outputs).sum(axis=2), 0, atol=1e-15)


@pytest.mark.parametrize("samples", [2, 4])
@pytest.mark.parametrize("outputs", [2, 3])
def test_a_sample_turn_of_an_even_batch_squares_to_minus_the_projector(samples, outputs):
    turn = wh.sample_turn(samples, outputs)
    np.testing.assert_allclose(turn @ turn, -oracle.zero_sum(samples, outputs), rtol=0, atol=1e-15)


@pytest.mark.parametrize("samples", [3, 5])
def test_a_sample_turn_of_an_odd_batch_leaves_the_last_sample(samples):
    turn = wh.sample_turn(samples, 2)
    np.testing.assert_array_equal(turn[-2:], 0)
    np.testing.assert_allclose(
        (turn @ turn)[:-2, :-2], -oracle.zero_sum(samples - 1, 2), rtol=0, atol=1e-15
    )


def test_a_sample_turn_moves_the_first_sample_into_the_second():
    np.testing.assert_allclose(
        wh.sample_turn(2, 2) @ [0.3, -0.3, 0, 0], [0, 0, 0.3, -0.3], rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(
        wh.sample_turn(2, 2) @ [0, 0, 0.3, -0.3], [-0.3, 0.3, 0, 0], rtol=0, atol=1e-15
    )


@pytest.mark.parametrize("skew", [None, jnp.asarray(oracle.three_port())])
def test_a_turn_over_outputs_turns_every_sample_alike(skew):
    basis = np.kron(np.eye(6), tangent_basis(3))
    turn = basis @ joint_skew(wh.response(NET, TASK.inputs), skew) @ basis.T
    np.testing.assert_allclose(turn, np.kron(np.eye(6), oracle.three_port()), rtol=0, atol=1e-15)


def test_a_turn_over_all_fields_is_taken_as_it_is():
    basis, given = np.kron(np.eye(6), tangent_basis(3)), wh.sample_turn(6, 3)
    turn = basis @ joint_skew(wh.response(NET, TASK.inputs), jnp.asarray(given)) @ basis.T
    np.testing.assert_allclose(turn, given, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("skew", "sentence"),
    [
        (np.eye(3), "skew must be antisymmetric, but it differs from minus its transpose by 2$"),
        (
            [[0, 1, 0], [-1, 0, 0], [0, 0, 0]],
            "skew must conserve the mass of each sample, but a row sums to 1 over",
        ),
        (np.zeros((3, 3)), "skew must turn something, but all its entries are 0$"),
        (wh.quarter_turn(4), r"skew must be square of size 3 or 18, but its shape is \(4, 4\)$"),
        (np.zeros((3, 2)), r"skew must be square of size 3 or 18, but its shape is \(3, 2\)$"),
        (wh.sample_turn(2, 3), r"skew must be square of size 3 or 18, but its shape is \(6, 6\)$"),
    ],
)
def test_a_matrix_that_is_no_turn_is_refused(skew, sentence):
    with pytest.raises(ValueError, match=sentence):
        joint_skew(wh.response(NET, TASK.inputs), jnp.asarray(skew, dtype=float))


def test_a_turn_that_leaks_between_samples_is_refused():
    leaking = np.kron([[0, -1], [1, 0]], np.eye(3))
    with pytest.raises(
        ValueError, match="skew must conserve the mass of each sample, but a row sums to 1 over"
    ):
        joint_skew(wh.response(NET, TASK.inputs[:2]), jnp.asarray(leaking, dtype=float))


def test_two_outputs_and_one_sample_cannot_turn():
    pair = wh.response(wh.Network.random([2, 2], seed=0), np.array([[0.5, 0.5]]))
    with pytest.raises(ValueError, match="at least 3 outputs to turn one sample, but there are 2"):
        joint_skew(pair, None)


@pytest.mark.parametrize("outputs", [2, 1, 0, -3, True])
def test_a_quarter_turn_needs_three_outputs(outputs):
    with pytest.raises(
        ValueError, match=f"outputs must be a whole number of at least 3 .* but it is {outputs}$"
    ):
        wh.quarter_turn(outputs)


@pytest.mark.parametrize(
    ("samples", "outputs", "name"),
    [(1, 2, "samples"), (True, 2, "samples"), (2, 1, "outputs"), (2, 0, "outputs")],
)
def test_a_sample_turn_needs_two_samples_and_two_outputs(samples, outputs, name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 2, but it is"):
        wh.sample_turn(samples, outputs)
