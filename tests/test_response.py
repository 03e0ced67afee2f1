"""The response by every route.

Applied, summed over layers, as a Gram matrix, by complex step and through logits.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import oracle
import strategies
import systems
import whorl as wh
from whorl import simplex
from whorl.response import jacobian, mobility

EPS = np.finfo(np.float64).eps
WIDTHS = (3, 4, 3)
INPUTS = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])
POTENTIAL = np.random.default_rng(0).standard_normal((3, 3))
RATES = [np.array([0.5, 1.0, 2.0]), np.array([3.0, 0.1, 1.0, 0.7])]
SIX = np.concatenate([np.eye(3), np.random.default_rng(1).dirichlet(np.ones(3), size=3)])

# Compiled, because a new shape then costs one compilation and not one for every operation.
dense_of, gram_of, apply, by_block = (
    jax.jit(f)
    for f in (wh.Response.dense, wh.Response.gram, wh.Response.__matmul__, wh.Response.by_block)
)
by_column = jax.jit(wh.Network.by_column, static_argnums=2)


def floor_of(net, inputs):
    """Below this a response is nothing against what it is summed from, and only its absolute size
    means anything.
    """
    return 1e-10 * oracle.magnitude(*oracle.arrays(net), inputs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("system", systems.ALL, ids=str)
def test_every_route_gives_the_matrix_solved_by_hand(system):
    layers, rates = oracle.arrays(system.net)
    k = wh.response(system.net, system.inputs)
    units = np.eye(k.samples * k.outputs).reshape(-1, k.samples, k.outputs)
    applied = np.stack([np.asarray(apply(k, unit)).ravel() for unit in units], axis=1)
    third, fourth = (
        oracle.response(layers, rates, system.inputs),
        oracle.logit_response(layers, rates, system.inputs),
    )
    for matrix in (dense_of(k), gram_of(k), applied, third, fourth):
        np.testing.assert_allclose(matrix, system.response, rtol=0, atol=1e-15)


@pytest.mark.parametrize("system", systems.ALL, ids=str)
def test_the_spectrum_is_the_one_solved_by_hand(system):
    spectrum = wh.response(system.net, system.inputs).spectrum()
    np.testing.assert_allclose(spectrum.eigenvalues, system.eigenvalues, rtol=0, atol=1e-15)
    assert spectrum.rank == np.count_nonzero(system.eigenvalues)


@pytest.mark.slow
def test_the_factor_is_a_root_of_the_response_and_keeps_its_weak_modes():
    net = wh.Network.random(
        (3,) * 7, imbalance=1.0, floor=0.4, seed=3, rates=[0.5, 1, 2, 1, 1, 0.25]
    )
    driven = wh.response(net, SIX)
    factor = np.asarray(driven.factor())
    np.testing.assert_allclose(factor @ factor.T, driven.gram(), atol=1e-15)
    values = np.linalg.svd(factor, compute_uv=False)[:6] ** 2
    assert values[-1] / values[0] < 1e-10, "without a weak mode this tests nothing"
    # Another root of K, through the square roots of the mobility's blocks, reaches the weak modes
    # as well.
    root = oracle.root_of_response(*oracle.arrays(net), SIX)
    np.testing.assert_allclose(values, np.linalg.svd(root, compute_uv=False)[:6] ** 2, rtol=1e-8)


@given(strategies.problems())
def test_the_layer_sum_and_the_gram_matrix_agree(problem):
    net, inputs, _ = problem
    k = wh.response(net, inputs)
    dense = np.asarray(dense_of(k))
    assert np.linalg.norm(dense - gram_of(k)) <= 1e-14 * max(
        np.linalg.norm(dense), floor_of(net, inputs)
    )


@given(strategies.problems())
def test_the_response_is_applied_without_being_built(problem):
    net, inputs, targets = problem
    k = wh.response(net, inputs)
    dense = np.asarray(dense_of(k))
    difference = np.asarray(apply(k, targets)).ravel() - dense @ targets.ravel()
    assert np.linalg.norm(difference) <= 1e-14 * max(
        np.linalg.norm(dense), floor_of(net, inputs)
    ) * np.linalg.norm(targets)


def test_a_potential_moves_the_outputs_by_the_response():
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    layers, rates = oracle.arrays(net)
    k = wh.response(net, INPUTS)
    theta = oracle.mobility(layers, rates) @ oracle.jacobian(layers, INPUTS).T @ POTENTIAL.ravel()
    motion = [np.asarray(moving) for moving in k.velocities(POTENTIAL)]
    np.testing.assert_allclose(
        np.concatenate([moving.T.ravel() for moving in motion]), theta, rtol=0, atol=2e-15
    )
    moved = [layer + 1j * oracle.H * moving for layer, moving in zip(layers, motion, strict=True)]
    np.testing.assert_allclose(
        apply(k, POTENTIAL), np.imag(oracle.predict(moved, INPUTS)) / oracle.H, rtol=0, atol=4e-15
    )


@pytest.mark.parametrize("widths", strategies.POOL)
def test_the_layer_sum_agrees_with_the_complex_step_and_with_logits(widths):
    net = wh.Network.random(
        widths, seed=2, floor=0.2, rates=[0.5 + n for n in range(len(widths) - 1)]
    )
    inputs = np.random.default_rng(3).dirichlet(np.ones(widths[0]), size=3)
    dense = np.asarray(dense_of(wh.response(net, inputs)))
    for matrix in (
        oracle.response(*oracle.arrays(net), inputs),
        oracle.logit_response(*oracle.arrays(net), inputs),
    ):
        assert np.linalg.norm(dense - matrix) <= 4e-15 * np.linalg.norm(dense)


@given(strategies.problems())
def test_the_layer_sum_agrees_with_the_complex_step_and_with_logits_on_extreme_columns(problem):
    net, inputs, _ = problem
    layers, rates = oracle.arrays(net)
    # The oracle subtracts p^2 from p, and no term of either is larger than the rate: round-off of
    # that is all it can promise.
    slack = 16 * EPS * sum(rate.max() for rate in rates)
    dense = dense_of(wh.response(net, inputs))
    np.testing.assert_allclose(dense, oracle.response(layers, rates, inputs), rtol=0, atol=slack)
    np.testing.assert_allclose(
        dense, oracle.logit_response(layers, rates, inputs), rtol=0, atol=slack
    )


@given(strategies.problems())
def test_the_response_is_symmetric_and_positive_semidefinite(problem):
    net, inputs, _ = problem
    dense = np.asarray(dense_of(wh.response(net, inputs)))
    size = np.linalg.norm(dense)
    assert np.abs(dense - dense.T).max() <= 4 * EPS * size
    assert np.linalg.eigvalsh((dense + dense.T) / 2).min() >= -16 * EPS * size


@given(strategies.problems())
def test_constant_potentials_do_nothing_and_no_mass_moves(problem):
    net, inputs, targets = problem
    k = wh.response(net, inputs)
    slack = 16 * EPS * sum(np.asarray(rate).max() for rate in net.rates)
    constant = np.repeat([[1.0], [-2.0], [0.5]], k.outputs, axis=1)
    np.testing.assert_allclose(apply(k, constant), 0.0, rtol=0, atol=slack)
    np.testing.assert_allclose(np.asarray(apply(k, targets)).sum(axis=1), 0.0, rtol=0, atol=slack)


def test_scores_are_the_rates_times_the_pulled_back_potential():
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    expected = oracle.scores(*oracle.arrays(net), INPUTS, POTENTIAL)
    for score, known in zip(wh.response(net, INPUTS).scores(POTENTIAL), expected, strict=True):
        np.testing.assert_allclose(score, known, rtol=0, atol=2e-15)


def test_velocities_are_the_mobility_times_the_pulled_back_potential():
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    layers, rates = oracle.arrays(net)
    expected = (
        oracle.mobility(layers, rates) @ oracle.jacobian(layers, INPUTS).T @ POTENTIAL.ravel()
    )
    found = np.concatenate(
        [np.asarray(v).T.ravel() for v in wh.response(net, INPUTS).velocities(POTENTIAL)]
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-15)


def test_the_jacobian_and_the_mobility_are_those_of_the_oracle():
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    np.testing.assert_allclose(
        jacobian(net, jnp.asarray(INPUTS)),
        oracle.jacobian(oracle.arrays(net)[0], INPUTS),
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        mobility(net), oracle.mobility(*oracle.arrays(net)), rtol=0, atol=4 * EPS
    )


@pytest.mark.parametrize("layer", [0, 1])
def test_each_layer_contributes_what_it_answers_alone(layer):
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    layers, rates = oracle.arrays(net)
    alone = oracle.response(layers, [rate * (n == layer) for n, rate in enumerate(rates)], INPUTS)
    np.testing.assert_allclose(
        wh.response(net, INPUTS).by_block()[layer], alone, rtol=0, atol=4 * EPS
    )


def test_each_column_contributes_what_it_answers_alone():
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    layers, rates = oracle.arrays(net)
    for column, block in enumerate(net.by_column(net.trace(jnp.asarray(INPUTS)), 1)):
        alone = oracle.response(layers, [0 * rates[0], rates[1] * (np.arange(4) == column)], INPUTS)
        np.testing.assert_allclose(block, alone, rtol=0, atol=4 * EPS)


@given(strategies.problems())
def test_columns_sum_to_layers_and_layers_to_the_whole(problem):
    net, inputs, _ = problem
    k = wh.response(net, inputs)
    parts = np.asarray(by_block(k))
    assert np.linalg.norm(parts.sum(axis=0) - dense_of(k)) <= 4 * EPS * np.linalg.norm(parts)
    for number, whole in enumerate(parts):
        assert np.linalg.norm(
            np.asarray(by_column(net, k.trace, number)).sum(axis=0) - whole
        ) <= 4 * EPS * np.linalg.norm(whole)


@pytest.mark.parametrize("selected", range(3))
def test_the_selected_response_is_the_diagonal_block_of_the_joint_one(selected):
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    joint, alone = wh.response(net, INPUTS), wh.response(net, INPUTS, selected=selected)
    block = slice(3 * selected, 3 * selected + 3)
    np.testing.assert_allclose(alone.dense(), joint.dense()[block, block], rtol=0, atol=EPS)
    assert (alone.samples, alone.outputs) == (1, 3)


def test_six_samples_of_three_sources_and_three_outputs_have_rank_six():
    spectrum = wh.response(wh.Network.random((3, 3, 3), seed=4, floor=0.2), SIX).spectrum()
    assert spectrum.eigenvalues.shape == (12,)
    assert spectrum.rank == 6
    np.testing.assert_allclose(
        spectrum.condition, spectrum.eigenvalues[0] / spectrum.eigenvalues[5], rtol=1e-15
    )
    assert str(spectrum).startswith("rank 6 of 12 at tolerance 1e-10, condition number")


def test_the_tolerance_decides_which_modes_count():
    k = wh.response(wh.Network.random((3, 3, 3), seed=4, floor=0.2), SIX)
    values = np.asarray(k.spectrum().eigenvalues)
    strict, loose = (k.spectrum(tol=factor * values[3] / values[0]) for factor in (1.001, 0.999))
    assert (strict.rank, loose.rank) == (3, 4)
    np.testing.assert_array_equal(strict.kept, np.arange(12) < 3)
    np.testing.assert_allclose(strict.condition, values[0] / values[2], rtol=1e-15)


def test_modes_are_the_eigenvectors_of_the_reduced_matrix():
    k = wh.response(wh.Network.random((3, 3, 3), seed=4, floor=0.2), SIX)
    spectrum, matrix = k.spectrum(), np.asarray(k.reduced())
    modes, values = np.asarray(spectrum.modes), np.asarray(spectrum.eigenvalues)
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(modes.T @ modes, np.eye(12), rtol=0, atol=1e-14)
    np.testing.assert_allclose(matrix @ modes, modes * values, rtol=0, atol=1e-14)


def test_zero_sum_coordinates_lose_the_constants_and_nothing_else():
    k = wh.response(wh.Network.random(WIDTHS, seed=0, rates=RATES), INPUTS)
    basis = np.kron(np.eye(3), simplex.tangent_basis(3))
    np.testing.assert_allclose(
        k.coordinates(jnp.asarray(POTENTIAL)), basis.T @ POTENTIAL.ravel(), rtol=0, atol=1e-15
    )
    lifted = k.lift(k.coordinates(jnp.asarray(POTENTIAL)))
    np.testing.assert_allclose(
        lifted, POTENTIAL - POTENTIAL.mean(axis=1, keepdims=True), rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(
        k.reduced(), basis.T @ np.asarray(k.dense()) @ basis, rtol=0, atol=1e-15
    )


def test_frozen_columns_answer_exactly_nothing():
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    k = wh.response(wh.Network([swap, swap], support=[swap > 0, swap > 0]), np.array([[0.3, 0.7]]))
    np.testing.assert_array_equal(k.dense(), 0.0)
    np.testing.assert_array_equal(k @ np.array([[5.0, -3.0]]), 0.0)
    spectrum = k.spectrum()
    assert (spectrum.rank, spectrum.condition) == (0, np.inf)


def test_entries_off_the_support_neither_move_nor_answer():
    mask = np.array([[True, True, False], [True, False, True], [False, True, True]])
    net = wh.Network.random((3, 3, 3), seed=5, support=[mask, mask])
    k = wh.response(net, INPUTS)
    for velocity in k.velocities(POTENTIAL):
        np.testing.assert_array_equal(np.asarray(velocity)[~mask], 0.0)
    np.testing.assert_allclose(
        k.gram(), oracle.logit_response(*oracle.arrays(net), INPUTS), rtol=0, atol=4 * EPS
    )


def test_a_mismatched_adjoint_pulls_back_through_other_layers():
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    back = [
        np.random.default_rng(n).standard_normal(layer.shape) for n, layer in enumerate(net.layers)
    ]
    layers, rates = oracle.arrays(net)
    expected = (
        oracle.jacobian(layers, INPUTS)
        @ oracle.mobility(layers, rates)
        @ oracle.jacobian(layers, INPUTS, adjoint=back).T
    )
    k = wh.response(net, INPUTS, adjoint=back)
    np.testing.assert_allclose(
        k @ POTENTIAL, (expected @ POTENTIAL.ravel()).reshape(3, 3), rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(k.dense(), expected, rtol=0, atol=1e-14)
    assert np.abs(expected - expected.T).max() > 0.05


def test_an_adjoint_equal_to_the_layers_gives_the_matched_response():
    net = wh.Network.random(WIDTHS, seed=0, rates=RATES)
    np.testing.assert_allclose(
        wh.response(net, INPUTS, adjoint=net.layers).dense(),
        wh.response(net, INPUTS).dense(),
        rtol=0,
        atol=4 * EPS,
    )


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("gram", lambda k: k.gram()),
        ("spectrum", lambda k: k.spectrum()),
        ("by_block", lambda k: k.by_block()),
        ("factor", lambda k: k.factor()),
    ],
)
def test_a_mismatched_response_refuses_what_it_does_not_have(name, ask):
    net = wh.Network.random(WIDTHS, seed=0)
    with pytest.raises(
        ValueError,
        match=rf"{name} must be asked of a response with matched adjoint, but its backward layers were given",
    ):
        ask(wh.response(net, INPUTS, adjoint=net.layers))


def test_responses_are_compiled_and_mapped_over():
    nets = [wh.Network.random(WIDTHS, seed=seed) for seed in range(2)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    answers = jax.jit(jax.vmap(lambda net: wh.response(net, INPUTS) @ POTENTIAL))(stacked)
    np.testing.assert_allclose(
        answers, [wh.response(net, INPUTS) @ POTENTIAL for net in nets], rtol=0, atol=4 * EPS
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda net: wh.response(net, INPUTS, selected=3),
            r"selected must be a whole number from 0 to 2, but it is 3",
        ),
        (
            lambda net: wh.response(net, INPUTS, selected=-1),
            r"selected must be a whole number from 0 to 2, but it is -1",
        ),
        (
            lambda net: wh.response(net, INPUTS[:, :2]),
            r"inputs must have shape \(samples, 3\) .*, but its shape is \(3, 2\)",
        ),
        (
            lambda net: wh.response(net, INPUTS[0]),
            r"inputs must have 2 axes, but its shape is \(3,\)",
        ),
        (
            lambda net: wh.response(net, 0.5 * INPUTS),
            r"inputs must have rows of unit mass, but row 0 sums to 0.5",
        ),
        (
            lambda net: wh.response(net, np.full((1, 3), np.nan)),
            r"inputs must be finite, but entry \(0, 0\) is nan",
        ),
        (
            lambda net: wh.response(net, INPUTS - np.eye(3)),
            r"inputs must be non-negative, but entry \(1, 1\) is -0.7",
        ),
        (
            lambda net: wh.response(net, INPUTS, adjoint=net.layers[:1]),
            r"adjoint must have the shapes \[\(4, 3\), \(3, 4\)\] of the blocks",
        ),
        (
            lambda net: wh.response(net, INPUTS, adjoint=[layer.T for layer in net.layers]),
            r"adjoint must have the shapes .*, but it has \[\(3, 4\), \(4, 3\)\]",
        ),
        (
            lambda net: wh.response(
                net, INPUTS, adjoint=[np.nan * np.asarray(layer) for layer in net.layers]
            ),
            r"adjoint 0 must be finite, but entry \(0, 0\) is nan",
        ),
        (
            lambda net: wh.response(net, INPUTS) @ POTENTIAL[:2],
            r"potential must have shape \(3, 3\), but its shape is \(2, 3\)",
        ),
        (
            lambda net: wh.response(net, INPUTS) @ POTENTIAL[0],
            r"potential must have 2 axes, but its shape is \(3,\)",
        ),
        (
            lambda net: wh.response(net, INPUTS) @ (np.nan * POTENTIAL),
            r"potential must be finite, but entry \(0, 0\) is nan",
        ),
        (
            lambda net: net.by_column(net.trace(jnp.asarray(INPUTS)), 2),
            r"layer must be a whole number from 0 to 1, but it is 2",
        ),
        (
            lambda net: wh.response(net, INPUTS).spectrum(tol=-1.0),
            r"tol must be at least 0, but it is -1",
        ),
        (
            lambda net: wh.response(wh.Network([np.ones((1, 3))]), INPUTS).spectrum(),
            r"the system must have at least 2 outputs to respond, but it has 1",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call(wh.Network.random(WIDTHS, seed=0))
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("as_users_call_it")
def test_a_selected_sample_must_be_a_whole_number():
    with pytest.raises(
        ValueError, match=r"selected must be a whole number from 0 to 2, but it is 0.5"
    ):
        wh.response(wh.Network.random(WIDTHS, seed=0), INPUTS, selected=0.5)


@pytest.mark.parametrize(
    "net",
    [
        wh.Network([np.array([[1 - 2.3e-308], [2.3e-308]])]),
        wh.Network([np.array([[0.5], [0.5]])], rates=3e-308),
        wh.Network([np.array([[1.0], [1e-35]], dtype=np.float32)]),
    ],
)
def test_a_response_that_would_be_rounded_to_zero_is_refused(net):
    with pytest.raises(
        ValueError,
        match=r"^the response must be large enough for float\d\d, but none of its entries exceeds 1e-\d+: ",
    ):
        wh.response(net, np.ones((1, 1)))


def test_a_small_response_is_what_it_is_and_one_weak_column_is_no_fault():
    small = wh.response(wh.Network([np.array([[1 - 1e-290], [1e-290]])]), np.ones((1, 1)))
    np.testing.assert_allclose(small @ [[1.0, -1.0]], [[2e-290, -2e-290]], rtol=1e-14)
    mixed = wh.response(wh.Network([np.array([[1 - 2.3e-308, 0.5], [2.3e-308, 0.5]])]), np.eye(2))
    np.testing.assert_allclose(
        (mixed @ np.array([[1.0, -1.0], [1.0, -1.0]]))[1], [0.5, -0.5], rtol=1e-15
    )
