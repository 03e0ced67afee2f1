"""Continuous time.

The spiral in closed form whatever the depth, an outside solver, and columns that stay what they
are.
"""

from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import oracle
import systems
import whorl as wh

TASK = wh.Task.random(3, 3, seed=1, concentration=5)
INPUTS, TARGETS = np.asarray(TASK.inputs), np.asarray(TASK.targets)
TIMES = np.array([0.0, 0.5, 1.0, 3.0])
NETS = {
    depth: wh.Network.random([3] * (depth + 1), imbalance=0.5, floor=0.1, seed=7)
    for depth in (1, 2, 4, 6)
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "depth",
    [
        pytest.param(1, marks=pytest.mark.slow),
        2,
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(6, marks=pytest.mark.slow),
    ],
)
def test_the_selected_residual_spirals_in_as_in_closed_form_at_any_depth(depth):
    net = NETS[depth]
    for selected, alpha, omega in ((0, 1.0, 1.0), (3, 1.0, -1.0), (5, 0.5, 1.0)):
        path = wh.flow(net, INPUTS, TARGETS, wh.rotational(alpha, omega), TIMES, selected=selected)
        start = (
            TARGETS[selected]
            - oracle.predict(oracle.arrays(net)[0], INPUTS[selected : selected + 1])[0]
        )
        loop = alpha * oracle.zero_sum(1, 3) + omega * oracle.three_port()
        wanted = np.array([expm(-loop * time) @ start for time in TIMES])
        np.testing.assert_allclose(
            path.residual[:, 0], wanted, rtol=0, atol=1e-9 * np.abs(start).max()
        )


@pytest.mark.slow
def test_repair_lets_every_identifiable_residual_decay_alike():
    path = wh.flow(NETS[1], INPUTS, TARGETS, wh.repair(), TIMES + 5.0, selected=3)
    np.testing.assert_allclose(
        path.residual,
        np.exp(-TIMES)[:, None, None] * np.asarray(path.residual)[:1],
        rtol=0,
        atol=1e-10,
    )
    np.testing.assert_allclose(path.total_loss, np.exp(-2 * TIMES) * path.total_loss[0], rtol=1e-9)
    np.testing.assert_array_equal(path.times, TIMES + 5.0)


@pytest.mark.slow
def test_a_column_under_the_direct_law_moves_as_an_outside_solver_says():
    start, target = np.array([0.6, 0.3, 0.1]), np.array([[0.1, 0.2, 0.7]])
    net = wh.Network([start[:, None]], rates=2.0)
    path = wh.flow(net, np.ones((1, 1)), target, wh.direct(), TIMES)
    outside = solve_ivp(
        lambda _, p: 2.0 * oracle.covariance(p) @ (target[0] - p),
        (0, 3),
        start,
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
        t_eval=TIMES,
    )
    np.testing.assert_allclose(path.system.layers[0][:, :, 0], outside.y.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(path.residual[:, 0], target - outside.y.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        path.total_loss, np.sum((target - outside.y.T) ** 2, axis=1) / 2, rtol=0, atol=1e-10
    )
    assert (np.diff(path.total_loss) < 0).all()
    assert path.steps > 3


@pytest.mark.slow
def test_a_flow_keeps_mass_and_support_and_follows_every_sample():
    masks = [
        np.array([[True, False, True], [True, True, False], [False, True, True]]),
        np.array([[True, True, False], [True] * 3, [True] * 3]),
    ]
    net = wh.Network.random(
        [3, 3, 3],
        seed=3,
        support=masks,
        rates=[np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 0.2])],
    )
    path = wh.flow(net, INPUTS, TARGETS, wh.leaky(0.05), TIMES)
    for layers, mask in zip(path.system.layers, masks, strict=True):
        np.testing.assert_allclose(np.sum(layers, axis=1), 1, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(np.asarray(layers) > 0, np.broadcast_to(mask, (4, 3, 3)))
    last = path.at(3)
    np.testing.assert_array_equal(last.layers[1], path.system.layers[1][3])
    np.testing.assert_array_equal(last.rates[0], net.rates[0])
    np.testing.assert_allclose(
        wh.residual(last, INPUTS, TARGETS), path.residual[3], rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(wh.total_loss(last, INPUTS, TARGETS), path.total_loss[3], rtol=1e-13)
    np.testing.assert_allclose(path.at(0).layers[0], net.layers[0], rtol=0, atol=1e-15)
    assert (np.diff(path.total_loss) < 0).all()
    with pytest.raises(
        ValueError, match=r"number must be a whole number from 0 to 3, but it is 4$"
    ):
        path.at(4)


@pytest.mark.slow
def test_a_short_exponential_step_is_the_flow_to_second_order():
    net, times = NETS[2], np.array([0.0, 1e-3, 2e-3, 4e-3])
    path = wh.flow(net, INPUTS, TARGETS, wh.direct(), times)
    driven = wh.response(net, INPUTS)
    scores = driven.scores(wh.direct()(driven, wh.residual(net, INPUTS, TARGETS)))
    apart = np.array(
        [
            np.abs(net.stepped(scores, time).layers[0] - path.at(n).layers[0]).max()
            for n, time in enumerate(times)
        ]
    )
    assert apart[0] < 1e-15
    np.testing.assert_allclose(apart[2:] / apart[1:-1], 4, rtol=0.02)


@pytest.mark.slow
def test_a_spectral_law_flows_too():
    path = wh.flow(NETS[1], INPUTS, TARGETS, wh.spectral(jnp.sqrt), TIMES, selected=3)
    assert (np.diff(path.total_loss) < 0).all()


@pytest.mark.slow
def test_a_flow_that_cannot_arrive_says_so():
    net = wh.Network([np.array([[0.6], [0.3], [0.1]])])
    with pytest.raises(
        ValueError,
        match=r"max_steps must be enough to reach time 3, but \d+ steps were not: the motion is too stiff",
    ):
        wh.flow(net, np.ones((1, 1)), np.array([[0.1, 0.2, 0.7]]), wh.direct(), TIMES, max_steps=2)


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ([0.0, 1.0, 1.0], "times must increase, but time 2 is 1 after 1$"),
        ([0.0, 2.0, 1.0], "times must increase, but time 2 is 1 after 2$"),
        ([0.0], "times must name at least a start and an end, but it holds 1$"),
        ([0.0, np.nan], "times must be finite, but entry 1 is nan$"),
        (1.0, r"times must have 1 axes, but its shape is \(\)$"),
    ],
)
def test_times_that_make_no_sense_are_refused(times, sentence):
    with pytest.raises(ValueError, match=sentence):
        wh.flow(NETS[1], INPUTS, TARGETS, wh.direct(), times)


@pytest.mark.parametrize("system", [systems.disconnected(), systems.shared_column()], ids=str)
def test_a_turn_through_a_response_that_lacks_a_direction_is_refused(system):
    targets = np.full((len(system.inputs), 3), 1 / 3)
    with pytest.raises(
        ValueError, match="the rotational law must act through a response of full rank"
    ):
        wh.flow(system.net, system.inputs, targets, wh.rotational(), TIMES)


@pytest.mark.usefixtures("as_users_call_it")
def test_something_that_is_no_law_is_refused():
    with pytest.raises(
        ValueError,
        match=r"law must be a boundary law such as direct\(\) or leaky\(0.1\), but it is 'direct'$",
    ):
        wh.flow(NETS[1], INPUTS, TARGETS, cast(Any, "direct"), TIMES)


@pytest.mark.parametrize("selected", [6, -1])
def test_a_sample_out_of_range_is_refused(selected):
    with pytest.raises(
        ValueError, match=f"selected must be a whole number from 0 to 5, but it is {selected}"
    ):
        wh.flow(NETS[1], INPUTS, TARGETS, wh.direct(), TIMES, selected=selected)
