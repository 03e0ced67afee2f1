"""Devices: every fault has its own random numbers, and the certificate says what it does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh

NET = wh.Network.random((3, 3, 3), seed=0, floor=0.1)
X = jnp.eye(3)
Y = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(3), 3))


def certified(device, law=None):
    return wh.certify(wh.closed_loop(wh.response(device, X), law or wh.direct()))


def test_a_device_without_faults_is_its_system():
    device = wh.Imperfect(NET)
    assert device.matched
    np.testing.assert_array_equal(wh.predict(device, X), wh.predict(NET, X))
    np.testing.assert_array_equal(wh.response(device, X) @ Y, wh.response(NET, X) @ Y)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["mismatch", "score_noise", "solve_noise"])
def test_a_fault_between_outputs_and_parameters_costs_reciprocity_in_proportion(fault):
    found = [certified(wh.Imperfect(NET, key=1, **{fault: size})) for size in (0.02, 0.04)]
    assert not any(one.reciprocal for one in found)
    assert found[1].skewness == pytest.approx(2 * found[0].skewness, rel=0.1)
    assert 1e-4 < found[0].skewness < 0.02


def test_another_system_on_the_way_back_is_the_adjoint_of_a_response():
    other = wh.Network.random((3, 3, 3), seed=5)
    device = wh.Imperfect(NET, back=other)
    by_hand = wh.response(NET, X, adjoint=other.layers)
    np.testing.assert_allclose(wh.response(device, X) @ Y, by_hand @ Y, rtol=0, atol=1e-15)
    assert certified(device).verdict == "turns"


def test_noise_in_the_solve_is_a_gradient_in_another_metric():
    # K times positive gains has the real eigenvalues of the symmetric D^(1/2) K D^(1/2).
    assert certified(wh.Imperfect(NET, solve_noise=0.1, key=0)).verdict == (
        "gradient in another metric"
    )


def test_noise_in_the_outputs_moves_the_residual_and_no_loop():
    device = wh.Imperfect(NET, output_noise=0.1, key=0)
    assert certified(device).reciprocal
    apart = np.asarray(wh.residual(device, X, Y) - wh.residual(NET, X, Y))
    np.testing.assert_allclose(apart.sum(axis=1), 0, atol=1e-15)
    assert 0.03 < apart.std() < 0.3


def test_noise_in_the_outputs_has_the_stated_size():
    draws = np.stack(
        [wh.predict(wh.Imperfect(NET, output_noise=0.2, key=key), X) for key in range(60)]
    )
    # Per direction; a mean over 360 draws of a variance is known to 7 %.
    energy = ((draws - np.asarray(wh.predict(NET, X))) ** 2).sum(axis=2).mean() / 2
    assert np.sqrt(energy) == pytest.approx(0.2, rel=0.2)


def test_frozen_columns_stay_and_take_directions_away():
    device = wh.Imperfect(NET, frozen=0.5, key=0)
    found = certified(device)
    assert found.reciprocal
    assert found.rank < certified(NET).rank
    run = wh.learn(device, X, Y, rule=wh.boundary(wh.leaky(0.1)), scale=0.5, epochs=2, seed=0)
    for mask, before, after in zip(
        device.frozen, NET.layers, run.system.system.layers, strict=True
    ):
        still = np.broadcast_to(np.asarray(mask), before.shape)
        # A step divides by the sum of a column also where nothing moves.
        np.testing.assert_allclose(np.asarray(after)[still], np.asarray(before)[still], rtol=1e-14)
        assert (np.asarray(before)[~still] != np.asarray(after)[~still]).any()


def test_a_grid_holds_what_moves_less_than_half_of_it():
    device = wh.Imperfect(NET, quantum=0.25)
    again = device.with_blocks(device.blocks)
    for one, other in zip(device.blocks, again.blocks, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
        steps = np.log(np.asarray(one) / np.asarray(one).max(axis=0)) / 0.25
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-12)
        np.testing.assert_allclose(np.asarray(one).sum(axis=0), 1, atol=1e-15)
    scores = [jnp.zeros((3, 3)).at[0, 0].set(1.0)] * 2
    held, moved = (device.stepped(scores, size).blocks[0] for size in (0.1, 0.2))
    np.testing.assert_allclose(held, device.blocks[0], rtol=1e-14)
    assert float(jnp.abs(moved - device.blocks[0]).max()) > 0.01


def test_a_stale_way_back_matches_while_nothing_moves_and_no_longer():
    device = wh.Imperfect(NET, stale=2)
    assert certified(device).reciprocal
    scores = [jnp.asarray(np.random.default_rng(k).standard_normal((3, 3))) for k in range(2)]
    later = device.stepped(scores, 1.0)
    assert not certified(later).reciprocal
    by_hand = wh.response(later.system, X, adjoint=NET.layers)
    np.testing.assert_allclose(wh.response(later, X) @ Y, by_hand @ Y, rtol=0, atol=1e-15)
    still = later.with_blocks(later.blocks).with_blocks(later.blocks)
    assert certified(still).reciprocal


def test_every_fault_draws_from_a_stream_of_its_own():
    alone = wh.Imperfect(NET, output_noise=0.1, key=7)
    crowded = wh.Imperfect(NET, output_noise=0.1, score_noise=0.1, mismatch=0.1, frozen=0.4, key=7)
    np.testing.assert_array_equal(wh.predict(alone, X), wh.predict(crowded, X))
    pair = [wh.Imperfect(NET, mismatch=0.1, solve_noise=size, key=7).gains for size in (0.0, 0.2)]
    np.testing.assert_array_equal(*(jax.tree.leaves(gains)[0] for gains in pair))
    other = wh.Imperfect(NET, output_noise=0.1, key=jax.random.key(8))
    assert float(jnp.abs(wh.predict(alone, X) - wh.predict(other, X)).max()) > 1e-3


def test_noise_is_new_at_every_state_and_the_same_while_it_is_looked_at():
    device = wh.Imperfect(NET, output_noise=0.1, score_noise=0.1, key=7)
    np.testing.assert_array_equal(wh.predict(device, X), wh.predict(device, X))
    later = device.with_blocks(device.blocks)
    assert float(jnp.abs(wh.predict(device, X) - wh.predict(later, X)).max()) > 1e-3
    one, other = (wh.response(at, X) @ Y for at in (device, later))
    assert float(jnp.abs(one - other).max()) > 1e-4


@pytest.mark.slow
def test_a_graph_and_a_signed_system_may_be_imperfect_too():
    graph = wh.Graph.random(8, 20, inputs=3, outputs=4, seed=1)
    for system in (graph, wh.Signed(graph)):
        K = wh.response(wh.Imperfect(system, mismatch=0.3, key=2), X)
        assert not wh.certify(wh.closed_loop(K, wh.direct())).reciprocal


@pytest.mark.slow
def test_an_imperfect_device_is_trained_flowed_and_accounted_for():
    device = wh.Imperfect(
        NET,
        mismatch=0.1,
        output_noise=0.01,
        score_noise=0.1,
        solve_noise=0.1,
        frozen=0.2,
        quantum=0.02,
        stale=2,
        key=3,
    )
    pair = wh.train(device, X, Y, policy=wh.adaptive(0.3, gate="always"), epochs=10, seed=0)
    assert pair.completed
    assert pair.ledger.closed
    assert float(pair.final[1]) < float(pair.start)
    steady = wh.Imperfect(NET, mismatch=0.1, key=3)
    path = wh.flow(steady, X, Y, wh.leaky(0.1), [0.0, 1.0])
    assert float(path.total_loss[1]) < float(path.total_loss[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wh.Imperfect(NET, mismatch=0.1),
            r"key must be given where mismatch is, as a whole number or a key of jax.random, but",
        ),
        (
            lambda: wh.Imperfect(NET, mismatch=-0.1, key=0),
            r"mismatch must be at least 0, but it is",
        ),
        (lambda: wh.Imperfect(NET, frozen=1.0, key=0), r"frozen must be less than 1, but it is 1"),
        (lambda: wh.Imperfect(NET, stale=-1), r"stale must be a whole number of at least 0, but"),
        (
            lambda: wh.Imperfect(NET, frozen=0.1, key=-1),
            r"key must be a whole number of at least 0",
        ),
        (
            lambda: wh.Imperfect(NET, back=wh.Network.random((3, 3), seed=0)),
            r"back must have blocks of the shapes \[\(3, 3\), \(3, 3\)\], but it has \[\(3, 3\)\]",
        ),
        (
            lambda: wh.response(wh.Imperfect(NET, mismatch=0.1, key=0), X).spectrum(),
            r"spectrum must be asked of a response with matched adjoint, but",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_what_no_device_can_be_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)
