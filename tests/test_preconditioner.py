"""Proposition 1.

Under a spectral law the parameters follow a preconditioned gradient, with the preconditioner of the
paper.
"""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import whorl as wh

TASK = wh.Task.random(3, 3, seed=1)
INPUTS, TARGETS = np.asarray(TASK.inputs), np.asarray(TASK.targets)
RATES = {1: 0.5, 2: [np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 0.2])], 4: 1.0}
NETS = {
    depth: wh.Network.random([3] * (depth + 1), seed=2, floor=0.1, rates=rates)
    for depth, rates in RATES.items()
}
LAWS = {
    "direct": (wh.direct(), lambda x: np.ones_like(x)),
    "repair": (wh.repair(), lambda x: 1 / x),
    "leaky": (wh.leaky(0.1), lambda x: 1 / (x + 0.1)),
    "root": (wh.spectral(jnp.sqrt), np.sqrt),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("depth", "rows"), [(1, slice(None)), (2, slice(None)), (2, slice(3, 4)), (4, slice(None))]
)
@pytest.mark.parametrize("name", LAWS)
def test_the_parameters_follow_minus_the_preconditioned_gradient(name, depth, rows):
    net, x, y, law = NETS[depth], INPUTS[rows], TARGETS[rows], LAWS[name][0]
    driven = wh.response(net, x)
    motion = driven.velocities(law(driven, wh.residual(net, x, y)))
    downhill = wh.preconditioner(driven, law) @ [
        jnp.asarray(slope) for slope in oracle.gradient(oracle.arrays(net)[0], x, y)
    ]
    # The weakest mode enters with the inverse square of its eigenvalue and leaves with the root of
    # it: eps times the condition number to the power 3/2. That number is 5e6 for the deep response
    # and below 500 for the others.
    slack = 1e-15 * (5e6 if depth == 4 else 500) ** 1.5
    for moved, wanted in zip(motion, downhill, strict=True):
        np.testing.assert_allclose(moved, -wanted, rtol=0, atol=slack * np.abs(moved).max())


@pytest.mark.parametrize("name", LAWS)
def test_the_preconditioner_is_that_of_the_paper(name):
    layers, rates = oracle.arrays(NETS[2])
    law, r = LAWS[name]
    half = oracle.jacobian(layers, INPUTS) @ oracle.mobility(layers, rates)
    values, modes = np.linalg.eigh(oracle.response(layers, rates, INPUTS))
    kept = values > 1e-10 * values[-1]
    psi = (modes[:, kept] * r(values[kept]) / values[kept]) @ modes[:, kept].T
    wanted = half.T @ psi @ half
    matrix = wh.preconditioner(wh.response(NETS[2], INPUTS), law).dense()
    np.testing.assert_allclose(matrix, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("name", LAWS)
def test_the_preconditioner_is_symmetric_and_positive_semidefinite(name):
    matrix = np.asarray(wh.preconditioner(wh.response(NETS[2], INPUTS), LAWS[name][0]).dense())
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-12 * np.abs(matrix).max())
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    assert values[0] >= -1e-12 * values[-1]
    assert np.sum(values > 1e-9 * values[-1]) == 6


@pytest.mark.parametrize("name", LAWS)
def test_the_preconditioner_acts_as_its_matrix_on_any_covector(name):
    rng, operator = (
        np.random.default_rng(3),
        wh.preconditioner(wh.response(NETS[2], INPUTS), LAWS[name][0]),
    )
    slopes = [jnp.asarray(rng.standard_normal((3, 3))) for _ in range(2)]
    applied = np.concatenate([np.ravel(layer.T) for layer in operator @ slopes])
    wanted = operator.dense() @ np.concatenate([np.ravel(slope.T) for slope in slopes])
    np.testing.assert_allclose(applied, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_a_repair_that_leaves_weak_modes_is_preconditioned_alike_at_any_scale_of_the_rates():
    net = wh.Network.random([3, 3, 3], seed=2, floor=0.1, rates=1e-3)
    driven, law = wh.response(net, INPUTS), wh.repair(tol=1e-3)
    downhill = wh.preconditioner(driven, law) @ [
        jnp.asarray(slope) for slope in oracle.gradient(oracle.arrays(net)[0], INPUTS, TARGETS)
    ]
    for moved, wanted in zip(
        driven.velocities(law(driven, wh.residual(net, INPUTS, TARGETS))), downhill, strict=True
    ):
        np.testing.assert_allclose(moved, -wanted, rtol=0, atol=1e-12 * np.abs(moved).max())


def test_a_strength_is_only_asked_for_on_the_spectrum():
    net = wh.Network.random([3, 3], seed=2, floor=0.1)
    driven, law = wh.response(net, INPUTS), wh.spectral(lambda x: jnp.where(x == 1.0, jnp.nan, 1.0))
    plain = wh.preconditioner(driven, wh.direct()).dense()
    np.testing.assert_allclose(wh.preconditioner(driven, law).dense(), plain, rtol=0, atol=1e-14)


def test_a_network_that_cannot_move_has_no_preconditioner_but_zero():
    frozen = wh.Network([np.eye(3)], support=[np.eye(3) > 0])
    np.testing.assert_array_equal(
        wh.preconditioner(wh.response(frozen, INPUTS), wh.direct()).dense(), np.zeros((9, 9))
    )


def test_the_preconditioner_is_the_same_when_compiled():
    driven = wh.response(NETS[2], INPUTS)
    compiled = jax.jit(lambda response: wh.preconditioner(response, wh.direct()).dense())(driven)
    np.testing.assert_allclose(
        compiled, wh.preconditioner(driven, wh.direct()).dense(), rtol=0, atol=1e-13
    )


@pytest.mark.usefixtures("as_users_call_it")
def test_a_law_that_turns_has_no_preconditioner():
    with pytest.raises(
        ValueError,
        match="law must be a spectral law, since only these are preconditioned gradients, but it is Rotational",
    ):
        wh.preconditioner(wh.response(NETS[2], INPUTS, selected=3), cast(Any, wh.rotational()))


def test_a_response_with_a_mismatched_adjoint_has_no_preconditioner():
    driven = wh.response(NETS[2], INPUTS, adjoint=wh.Network.random([3, 3, 3], seed=9).layers)
    with pytest.raises(ValueError, match="must be asked of a response with matched adjoint"):
        wh.preconditioner(driven, wh.direct())


def test_a_gradient_of_other_shapes_is_refused():
    operator = wh.preconditioner(wh.response(NETS[2], INPUTS), wh.direct())
    with pytest.raises(
        ValueError,
        match=r"gradient must have the shapes \[\(3, 3\), \(3, 3\)\] of the blocks, but it has \[\(3, 3\)\]$",
    ):
        _ = operator @ [jnp.ones((3, 3))]


def test_a_negative_tolerance_is_refused():
    with pytest.raises(ValueError, match=r"tol must be at least 0, but it is -0.001$"):
        wh.preconditioner(wh.response(NETS[2], INPUTS), wh.direct(), tol=-1e-3)
