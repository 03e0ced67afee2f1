"""Units between layers: they keep the mass, and their derivatives are the automatic ones."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whorl as wh
from whorl.systems.transport import Saturating, Unit

NET = wh.Network.random((3, 4, 3), seed=0, floor=0.1)
UNITS = [wh.competition(0.4), wh.competition(3.0), wh.saturating(0.1), wh.saturating(5.0)]


def rows(seed, samples=3, width=4, dtype=float):
    return jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(width), samples).astype(dtype))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_derivatives_of_a_unit_are_the_automatic_ones(unit):
    flow, moved = 0.7 * rows(0), jnp.asarray(np.random.default_rng(1).standard_normal((3, 4)))
    for way in ("forward", "back"):
        own, automatic = getattr(unit, way)(flow, moved), getattr(Unit, way)(unit, flow, moved)
        np.testing.assert_allclose(own, automatic, rtol=0, atol=1e-13)


def test_a_wrong_derivative_would_be_seen():
    class Wrong(Saturating):
        def _slope(self, flow):
            return 1.01 * super()._slope(flow)

    flow, moved = rows(0), jnp.asarray(np.random.default_rng(1).standard_normal((3, 4)))
    wrong = Wrong(jnp.array(0.1))
    assert np.abs(wrong.forward(flow, moved) - Unit.forward(wrong, flow, moved)).max() > 1e-4


@given(st.floats(0.01, 30), st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=20, deadline=None)
def test_units_keep_mass_sign_and_precision(size, seed, dtype):
    flow = rows(seed, dtype=dtype)
    for unit in (wh.competition(size), wh.saturating(size)):
        out = np.asarray(unit(flow))
        assert out.dtype == dtype
        assert (out >= 0).all()
        np.testing.assert_allclose(
            out.sum(axis=1), np.asarray(flow).sum(axis=1), rtol=16 * np.finfo(dtype).eps
        )


def test_a_competition_of_power_one_and_a_vast_capacity_leave_the_network_as_it_is():
    x = rows(2, width=3)
    for unit in (wh.competition(1.0), wh.saturating(1e15)):
        there = wh.predict(wh.Transport(NET, unit), x)
        np.testing.assert_allclose(there, wh.predict(NET, x), rtol=0, atol=1e-14)


def test_a_strong_competition_has_one_winner_and_a_small_capacity_none():
    flow = jnp.array([[0.4, 0.3, 0.2, 0.1]])
    assert float(wh.competition(200.0)(flow)[0, 0]) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(wh.saturating(1e-12)(flow), np.full((1, 4), 0.25), atol=1e-9)


@pytest.mark.slow
def test_nonlinear_transport_is_certified_trained_and_accounted_for():
    mill = wh.Transport(NET, wh.competition(2.0))
    task = wh.Task.of(mill, seed=1)
    K = wh.response(mill, task.inputs)
    assert wh.certify(wh.closed_loop(K, wh.leaky(0.1))).reciprocal
    pair = wh.train(
        mill, task.inputs, task.targets, policy=wh.adaptive(0.3, gate="always"), epochs=10, seed=0
    )
    assert pair.ledger.closed
    assert float(pair.final[0]) < float(pair.start)
    path = wh.flow(mill, task.inputs, task.targets, wh.leaky(0.1), [0.0, 1.0])
    assert float(path.total_loss[1]) < float(path.total_loss[0])
    found = wh.curvature(mill, task.inputs, task.targets, selected=0)
    assert np.isfinite(float(found.coefficient))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wh.Transport(NET, lambda flow: flow**2),
            r"unit must conserve mass, but behind layer 0 it makes 0.25 of 1",
        ),
        (
            lambda: wh.Transport(NET, lambda flow: flow[:, :2]),
            r"unit must keep the shape of a flow, \(21, 4\), but behind layer 0 it returns \(21, 2\)",
        ),
        (
            lambda: wh.Transport(NET, lambda flow: 2 * flow - jnp.mean(flow, 1, keepdims=True)),
            r"unit must keep flows non-negative, but behind layer 0 it returns -0.25",
        ),
        (
            lambda: wh.Transport(NET, 3.0),
            r"unit must be competition\(...\), saturating\(...\) or a",
        ),
        (
            lambda: wh.Transport(wh.Network.random((3, 3), seed=0), wh.competition(2.0)),
            r"net must have at least 2 layers, with units between, but it has 1",
        ),
        (lambda: wh.competition(0.0), r"gamma must be greater than 0, but it is 0"),
        (lambda: wh.saturating(-1.0), r"capacity must be greater than 0, but it is -1"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_what_is_no_unit_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)
