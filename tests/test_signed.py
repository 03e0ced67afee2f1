"""Signed outputs: residuals need not sum to zero, and everything asks the system what it reaches."""

import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from whorl.turn import default_turn, paired, zero_sum

NET = wh.Network.random((3, 3, 4), seed=0, floor=0.1)
RAILS = wh.Signed(NET)
# Three readings that always sum to zero in another way than outputs that conserve mass.
CHAIN = wh.Signed(NET, [[1.0, -1.0, 0.0, 0.0], [0.0, 1.0, -1.0, 0.0], [1.0, 0.0, -1.0, 0.0]])
X = jnp.eye(3)


def test_two_rails_are_the_difference_of_the_halves():
    seen = np.asarray(wh.predict(NET, X))
    np.testing.assert_allclose(wh.predict(RAILS, X), seen[:, :2] - seen[:, 2:], rtol=0, atol=1e-16)


def test_two_rails_reach_every_direction_and_a_poorer_readout_fewer():
    np.testing.assert_array_equal(RAILS.basis(), np.eye(2))
    basis = CHAIN.basis()
    assert basis.shape == (3, 2)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-15)
    np.testing.assert_allclose([1.0, 1.0, -1.0] @ basis, 0, atol=1e-15)
    assert zero_sum(NET.basis())
    assert not zero_sum(basis)


def test_a_residual_that_does_not_sum_to_zero_is_answered():
    K = wh.response(RAILS, X[:1])
    assert float(jnp.abs(K @ jnp.ones((1, 2))).max()) > 1e-3
    assert K.spectrum().rank == 2
    assert K.directions == 2


@pytest.mark.parametrize("system", [RAILS, CHAIN], ids=["rails", "chain"])
def test_the_default_turn_stays_within_what_can_be_reached(system):
    turn, basis = default_turn(system), system.basis()
    np.testing.assert_allclose(turn, -turn.T, atol=1e-15)
    np.testing.assert_allclose(turn @ turn, -basis @ basis.T, atol=1e-14)
    K = wh.response(system, X, selected=0)
    loop = wh.closed_loop(K, wh.rotational(alpha=1.0, omega=2.0))
    found = wh.certify(loop)
    assert found.verdict == "turns"
    np.testing.assert_allclose(np.imag(found.eigenvalues), [-2.0, 2.0], atol=1e-9)


def test_samples_turn_into_each_other_within_what_can_be_reached():
    plain = wh.sample_turn(2, NET)
    np.testing.assert_allclose(plain, wh.sample_turn(2, 4), atol=1e-15)
    np.testing.assert_allclose(wh.sample_turn(2, RAILS), np.kron(paired(2), np.eye(2)), atol=1e-15)
    K = wh.response(CHAIN, X[:2])
    law = wh.rotational(base=wh.leaky(0.1), skew=wh.sample_turn(2, CHAIN))
    assert wh.certify(wh.closed_loop(K, law)).verdict == "turns"


def test_a_turn_that_leads_out_of_reach_is_refused():
    K = wh.response(CHAIN, X, selected=0)
    with pytest.raises(ValueError, match="skew must stay within the directions that the outputs"):
        wh.closed_loop(K, wh.rotational(skew=wh.quarter_turn(3)))


def test_one_signed_output_leaves_nothing_to_turn():
    one = wh.Signed(wh.Network.random((2, 2), seed=0))
    with pytest.raises(ValueError, match="at least 2 outputs that move by themselves to turn one"):
        wh.train(one, [[1.0, 0.0]], [[0.3]], policy=wh.adaptive(0.1), epochs=1, seed=0)
    with pytest.raises(ValueError, match="at least 2 outputs that move by themselves to turn one"):
        wh.closed_loop(wh.response(one, [[1.0, 0.0]]), wh.rotational())


def test_a_task_of_a_signed_system_can_be_learned():
    task = wh.Task.of(RAILS, seed=1)
    assert task.inputs.shape == (6, 3)
    assert (np.asarray(task.targets) < 0).any()
    run = wh.learn(
        RAILS,
        *(task.inputs, task.targets),
        rule=wh.boundary(wh.leaky(0.1)),
        scale=0.5,
        epochs=4,
        seed=0,
    )
    assert float(run.final) < 0.5 * float(run.start)


@pytest.mark.slow
@pytest.mark.parametrize("system", [RAILS, CHAIN], ids=["rails", "chain"])
def test_a_signed_system_is_trained_flowed_curved_and_accounted_for(system):
    task = wh.Task.of(system, seed=1)
    pair = wh.train(
        system, task.inputs, task.targets, policy=wh.adaptive(0.3, gate="always"), epochs=10, seed=0
    )
    assert pair.ledger.closed
    assert float(pair.final[0]) < float(pair.start)
    path = wh.flow(system, task.inputs, task.targets, wh.leaky(0.1), [0.0, 1.0])
    assert float(path.total_loss[1]) < float(path.total_loss[0])
    law = wh.rotational(base=wh.leaky(0.1))
    found = wh.curvature(system, task.inputs, task.targets, selected=0, law=law)
    assert np.isfinite(float(found.coefficient))
    assert wh.plot.spectrum(wh.response(system, task.inputs)) is not None


def test_single_precision_is_kept():
    net = wh.Network.random((3, 4), seed=0, dtype=np.float32)
    small = wh.Signed(net)
    x = np.eye(3, dtype=np.float32)
    assert wh.predict(small, x).dtype == np.float32
    assert wh.certify(wh.closed_loop(wh.response(small, x), wh.direct())).reciprocal


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wh.Signed(wh.Network.random((2, 3), seed=0)),
            r"system must have an even number of outputs for two rails, but it has 3",
        ),
        (
            lambda: wh.Signed(NET, [[1.0, -1.0]]),
            r"readout must have shape \(out, 4\), but its shape is \(1, 2\)",
        ),
        (
            lambda: wh.Signed(NET, [[1.0, 1.0, 1.0, 1.0]]),
            r"readout must tell some outputs of the system apart, but all that it reads is conserved",
        ),
        (lambda: wh.Signed(3.0), r"system must be a System, but it is 3.0"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_what_cannot_be_read_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)
