"""The baselines against closed forms and each other, the loop that runs them, and what it
refuses.
"""

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import whorl as wh
from whorl import simplex
from whorl.learning import baseline
from whorl.learning.baseline import (
    boundary,
    exponentiated_gradient,
    gauss_newton,
    learn,
    natural_gradient,
)
from whorl.learning.schedule import drawn

geodesic = jax.jit(simplex.geodesic)
TASK = wh.Task.random(3, 3, seed=1)
X, Y = np.asarray(TASK.inputs), np.asarray(TASK.targets)
SPARSE = [np.array([[1, 1, 0], [1, 1, 1], [1, 0, 1]], dtype=bool), np.ones((3, 3), dtype=bool)]
RATES = [np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 0.2])]
NET = wh.Network.random((3, 3, 3), seed=2, floor=0.1, rates=RATES, support=SPARSE)
NETS = {
    "one layer": wh.Network.random((3, 3), seed=4, floor=0.1, rates=0.5),
    "sparse, rates of its own": NET,
    "three layers": wh.Network.random([3, 4, 2, 3], seed=3, floor=0.1),
}
P = jnp.array([[0.5, 0.7], [0.3, 0.1], [0.2, 0.2]])
S = jnp.array([[1.0, -0.3], [-0.4, 0.9], [0.2, 0.1]])


def distance(one, other):
    return max(
        float(np.abs(np.asarray(p) - np.asarray(q)).max()) for p, q in zip(one, other, strict=True)
    )


@eqx.filter_jit
def velocities(rule, net, inputs, targets):
    scores = rule.scores(net, inputs, targets - wh.predict(net, inputs))
    return [simplex.velocity(p, s) for p, s in zip(net.layers, scores, strict=True)]


# The geodesic.


def test_a_geodesic_starts_with_the_velocity_of_its_score():
    # A central difference of step 1e-5 is right to 1e-10 times a third derivative of order one.
    slope = (geodesic(P, S, 1e-5) - geodesic(P, S, -1e-5)) / 2e-5
    np.testing.assert_allclose(slope, simplex.velocity(P, S), rtol=0, atol=1e-10)


@pytest.mark.parametrize("size", [0.1, 0.7, 1.3])
def test_a_geodesic_solves_the_geodesic_equation(size):
    # u = sqrt(p) on the sphere: u'' = -w^2 u, so p'' = p'^2 / (2p) - 2 w^2 p with w^2 = sum p'^2 /
    # p / 4.
    def first(t):
        return jax.jvp(lambda at: geodesic(P, S, at), (t,), (1.0,))[1]

    p, (v, a) = geodesic(P, S, size), jax.jvp(first, (size,), (1.0,))
    speed = jnp.sum(v**2 / p, axis=0, keepdims=True) / 4
    np.testing.assert_allclose(a, v**2 / (2 * p) - 2 * speed * p, rtol=0, atol=1e-13)


def test_the_length_of_a_geodesic_is_its_speed_times_its_size():
    # The Shahshahani distance of p and q is twice the angle between their roots.
    q = np.asarray(geodesic(P, S, 0.8))
    speed = np.sqrt(np.sum(np.asarray(P) * np.asarray(simplex.centred(P, S)) ** 2, axis=0))
    np.testing.assert_allclose(
        2 * np.arccos(np.sqrt(np.asarray(P) * q).sum(axis=0)), 0.8 * speed, rtol=1e-13
    )


def test_a_geodesic_stops_being_interior_where_it_meets_the_boundary():
    # On the even two-part column the circle reaches the edge at a quarter of pi, the size pi / 2.
    p, s = jnp.array([0.5, 0.5]), jnp.array([1.0, -1.0])
    np.testing.assert_allclose(
        geodesic(p, s, 1.0), [0.5 + np.sin(1.0) / 2, 0.5 - np.sin(1.0) / 2], rtol=1e-14
    )
    assert float(geodesic(p, s, np.pi / 2 - 1e-6)[1]) > 0
    for size in (np.pi / 2 + 1e-6, 2.0, 4.0, 6.0, 9.0, 4 * np.pi):
        assert not np.all(np.asarray(geodesic(p, s, size)) > 0)


def test_a_geodesic_moves_no_entry_off_the_support():
    p, s = jnp.array([0.4, 0.0, 0.6]), jnp.array([0.3, -50.0, -0.1])
    np.testing.assert_array_equal(geodesic(p, s, 0.5)[1], 0.0)
    np.testing.assert_allclose(geodesic(p, s, 0.5)[::2], geodesic(p[::2], s[::2], 0.5), rtol=1e-15)


def test_the_envelope_keeps_a_geodesic_inside_up_to_a_scale_of_one_point_eight():
    rng = np.random.default_rng(0)
    p = 10.0 ** rng.uniform(-12, 0, size=(4, 5000))
    p /= p.sum(axis=0)
    # Every column as far as its own range lets it: no common envelope goes further. Scores of +-1
    # are the widest for their range.
    score = np.where(
        rng.random((4, 5000)) < 0.5,
        rng.uniform(-1, 1, size=(4, 5000)),
        rng.choice([-1.0, 1.0], size=(4, 5000)),
    )
    size = 1.8 / np.maximum(np.ptp(score, axis=0, keepdims=True), 1e-3)
    moved = np.asarray(geodesic(jnp.asarray(p), jnp.asarray(score), jnp.asarray(size)))
    assert (moved > 0).all()
    np.testing.assert_allclose(moved.sum(axis=0), 1, rtol=0, atol=1e-15)
    assert not (
        np.asarray(geodesic(jnp.asarray(p), jnp.asarray(score), jnp.asarray(1.2 * size))) > 0
    ).all()


def test_natural_and_exponentiated_gradient_part_at_second_order():
    gaps = [distance([geodesic(P, S, h)], [simplex.step(P, S, h)]) for h in (1e-2, 1e-3)]
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.05)


# Scores.


@pytest.mark.parametrize(
    "rule", [natural_gradient(), exponentiated_gradient()], ids=["natural", "exponentiated"]
)
@pytest.mark.parametrize("rows", [slice(None), slice(4, 5)], ids=["full batch", "selected"])
def test_gradient_rules_follow_minus_the_gradient_times_the_rate(rule, rows):
    layers, rates = oracle.arrays(NET)
    slopes = oracle.gradient(layers, X[rows], Y[rows])
    found = rule.scores(NET, jnp.asarray(X[rows]), wh.residual(NET, X[rows], Y[rows]))
    assert (
        distance(found, [-rate * slope for rate, slope in zip(rates, slopes, strict=True)]) < 1e-15
    )


@pytest.mark.parametrize(
    "name", ["sparse, rates of its own", pytest.param("three layers", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("rows", [slice(None), slice(4, 5)], ids=["full batch", "selected"])
@pytest.mark.parametrize(
    "mu", [1e-2, *(pytest.param(mu, marks=pytest.mark.slow) for mu in (0.1, 10.0))]
)
def test_gauss_newton_moves_as_the_leaky_law(name, rows, mu):
    found = velocities(gauss_newton(mu), NETS[name], X[rows], Y[rows])
    wanted = leaky_velocities(NETS[name], X[rows], Y[rows], mu)
    # Two solves whose condition numbers are about ||K|| / mu, at most 500 here.
    assert distance(found, wanted) < 1e-13 * max(np.abs(v).max() for v in wanted)


def leaky_velocities(net, inputs, targets, mu):
    """Through the dense response, which no rule of a learner builds."""
    driven = wh.response(net, inputs)
    return driven.velocities(wh.leaky(mu)(driven, wh.residual(net, inputs, targets)))


@pytest.mark.parametrize("rows", [5, 2], ids=["fewer parameters", "fewer fields"])
def test_the_joint_leaky_law_moves_as_through_the_dense_response(rows):
    net = NETS["one layer"]
    assert (3 * rows > net.layers[0].size) == (rows == 5)
    found = velocities(boundary(wh.leaky(0.05)), net, X[:rows], Y[:rows])
    wanted = leaky_velocities(net, X[:rows], Y[:rows], 0.05)
    assert distance(found, wanted) < 1e-13 * max(np.abs(v).max() for v in wanted)


def test_gauss_newton_moves_as_plain_algebra_says():
    layers, rates = oracle.arrays(NET)
    gain = np.linalg.inv(oracle.response(layers, rates, X) + 0.1 * np.eye(18))
    potential = gain @ (Y - oracle.predict(layers, X)).ravel()
    wanted = [
        p * (s - (p * s).sum(axis=0))
        for p, s in zip(layers, oracle.scores(layers, rates, X, potential), strict=True)
    ]
    found = velocities(gauss_newton(0.1), NET, X, Y)
    assert distance(found, wanted) < 1e-14


def test_gauss_newton_is_where_its_objective_is_flat():
    # The derivative of ||e - Jd||^2 + mu d^T M^-1 d vanishes along every d in the range of M: M J^T
    # (e - Jd) = mu d.
    layers, rates = oracle.arrays(NET)
    error = Y - oracle.predict(layers, X)
    d = np.concatenate([np.asarray(v).T.ravel() for v in velocities(gauss_newton(0.03), NET, X, Y)])
    jac = oracle.jacobian(layers, X)
    left = oracle.mobility(layers, rates) @ jac.T @ (error.ravel() - jac @ d)
    np.testing.assert_allclose(left, 0.03 * d, rtol=0, atol=1e-15)


# Whole runs.


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [gauss_newton(0.1), boundary(wh.leaky(0.1))], ids=["gauss_newton", "boundary"]
)
def test_a_run_is_the_native_learner_under_the_leaky_law(rule):
    run = learn(NET, X, Y, rule=rule, scale=0.3, epochs=30, seed=5)
    pair = wh.train(
        NET, X, Y, policy=wh.native(0.3, law=wh.rotational(base=wh.leaky(0.1))), epochs=30, seed=5
    )
    np.testing.assert_array_equal(run.schedule, pair.schedule)
    assert pair.updates is not None
    # 180 updates that each round at 1e-16, along paths that converge.
    assert distance(run.system.layers, pair.native.layers) < 1e-13
    np.testing.assert_allclose(np.asarray(run.losses), pair.updates.losses[1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        np.asarray(run.steps), np.asarray(pair.updates.native_step), rtol=1e-12
    )


def test_full_batch_gauss_newton_is_the_full_batch_leaky_law():
    runs = [
        learn(NET, X, Y, rule=rule, scale=0.3, epochs=5, full_batch=True)
        for rule in (gauss_newton(0.1), boundary(wh.leaky(0.1)))
    ]
    assert distance(runs[0].system.layers, runs[1].system.layers) < 1e-13
    assert float(runs[0].final) < 1e-3 * float(runs[0].start)


@pytest.mark.parametrize("full_batch", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("rule", "stepper"),
    [
        (exponentiated_gradient(), oracle.exponential_step),
        (natural_gradient(), lambda p, s, h: _circle(p, s, h)),
    ],
    ids=["exponentiated", "natural"],
)
def test_a_run_of_gradients_is_the_one_written_out_in_numpy(rule, stepper, full_batch):
    order = np.array(
        [4, 5, 3]
    )  # mixtures: a vertex leaves columns at rest, and rest has no direction
    layers, rates = oracle.arrays(NETS["one layer"])
    losses, steps = [], []
    for sample in order:
        rows = slice(None) if full_batch else slice(sample, sample + 1)
        scores = [
            -rate * slope
            for rate, slope in zip(rates, oracle.gradient(layers, X[rows], Y[rows]), strict=True)
        ]
        steps.append(2.0 / max(1.0, max(np.ptp(score, axis=0).max() for score in scores)))
        layers = [stepper(p, s, steps[-1]) for p, s in zip(layers, scores, strict=True)]
        losses.append(((Y - oracle.predict(layers, X)) ** 2).sum() / 12)
    run = learn(
        NETS["one layer"], X, Y, rule=rule, scale=2.0, schedule=order, full_batch=full_batch
    )
    assert distance(run.system.layers, layers) < 1e-14
    np.testing.assert_allclose(np.asarray(run.losses), losses, rtol=1e-13)
    np.testing.assert_allclose(np.asarray(run.steps), steps, rtol=1e-13)
    assert run.driving == (6 if full_batch else 1)
    assert run.status == "completed 3 updates"
    assert float(run.final) == pytest.approx(losses[-1], rel=1e-13)


def _circle(p, s, h):
    u, v = np.sqrt(p), np.sqrt(p) * (s - (p * s).sum(axis=0)) / 2
    w = np.sqrt((v**2).sum(axis=0))
    return (u * np.cos(w * h) + v / w * np.sin(w * h)) ** 2


def test_a_run_without_a_record_ends_at_the_same_place():
    kept = learn(NET, X, Y, rule=natural_gradient(), scale=0.5, epochs=7, seed=3)
    bare = learn(NET, X, Y, rule=natural_gradient(), scale=0.5, epochs=7, seed=3, record=False)
    assert bare.losses is None
    assert bare.steps is None
    assert distance(kept.system.layers, bare.system.layers) < 1e-14
    assert kept.losses is not None
    assert float(kept.losses[-1]) == pytest.approx(float(bare.final), rel=1e-13)


def test_a_generator_moves_on_as_far_as_it_does_for_a_pair():
    one, other = np.random.default_rng(8), np.random.default_rng(8)
    learn(NET, X, Y, rule=exponentiated_gradient(), scale=0.3, epochs=2, seed=one)
    drawn(6, 2, other, "permuted", None)
    assert one.integers(1 << 40) == other.integers(1 << 40)


def test_a_run_keeps_mass_support_and_positivity():
    run = learn(NET, X, Y, rule=natural_gradient(), scale=1.8, epochs=100, seed=3, record=False)
    for before, after in zip(NET.layers, run.system.layers, strict=True):
        np.testing.assert_array_equal(before > 0, after > 0)
        np.testing.assert_allclose(after.sum(axis=0), 1, rtol=0, atol=1e-15)


class Outward(baseline.Rule):
    """A user's rule: always towards the first entry of every column."""

    def scores(self, system, inputs, residual):
        return tuple(jnp.zeros_like(p).at[0].set(1.0) for p in system.blocks)


@pytest.mark.parametrize("record", [True, False])
def test_a_run_that_would_leave_the_interior_stops_and_keeps_what_it_has(record):
    net = wh.Network([np.full((3, 3), 1 / 3)])
    run = learn(net, X, Y, rule=Outward(), scale=100.0, schedule="fixed", epochs=3, record=record)
    # A weight of e^-700 is a number and e^-800 / 3 is not: seven updates fit.
    assert run.made == 7
    assert not run.completed
    assert run.status == "stopped before update 7: a learner would have left the interior there"
    assert str(run).startswith(run.status + ", 1 residual per update; loss ")
    short = learn(net, X, Y, rule=Outward(), scale=100.0, schedule=np.arange(7) % 6, record=record)
    assert short.completed
    assert distance(run.system.layers, short.system.layers) == 0
    if record:
        assert np.asarray(run.losses).shape == (7,)


def test_natural_gradient_beyond_the_safe_scale_stops_at_the_boundary():
    run = learn(NETS["one layer"], X, Y, rule=natural_gradient(), scale=500.0, epochs=3, seed=1)
    assert not run.completed
    assert all(bool(jnp.all(p > 0)) for p in run.system.layers)


def test_a_network_in_single_precision_stays_there():
    net = wh.Network.random((3, 3), seed=4, floor=0.1, dtype=np.float32)
    run = learn(net, X, Y, rule=gauss_newton(0.1), scale=0.3, epochs=2, seed=1)
    assert run.system.dtype == np.float32
    assert float(run.final) < float(run.start)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"rule": "sgd"},
            (
                r"rule must be natural_gradient\(\), gauss_newton\(...\) or your own Rule, but it is "
                r"'sgd'"
            ),
        ),
        ({"scale": 0.0}, "scale must be greater than 0, but it is 0"),
        (
            {"seed": None},
            "seed must be a non-negative whole number to draw a permuted schedule, but it is None",
        ),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, but it is 0"),
        (
            {"schedule": "random"},
            "schedule must be 'permuted', 'fixed' or a row of samples, but it is 'random'",
        ),
        (
            {"schedule": [0, 9], "epochs": None},
            "schedule must name samples from 0 to 5, but entry 1 is 9",
        ),
        (
            {"targets": Y[:2]},
            "targets must have one row per input, but there are 2 targets and 6 inputs",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_a_run_refuses_what_it_cannot_use(change, message):
    given = {
        "inputs": X,
        "targets": Y,
        "rule": exponentiated_gradient(),
        "scale": 0.3,
        "epochs": 2,
        "seed": 1,
    } | change
    with pytest.raises(ValueError, match=message):
        learn(NET, given.pop("inputs"), given.pop("targets"), **given)


@pytest.mark.usefixtures("as_users_call_it")
def test_rules_refuse_what_they_cannot_be_made_of():
    with pytest.raises(ValueError, match="mu must be greater than 0, but it is 0"):
        gauss_newton(0.0)
    with pytest.raises(
        ValueError, match=r"law must be a boundary law such as direct\(\) or leaky\(0.1\), but"
    ):
        boundary(cast(Any, 0.1))
