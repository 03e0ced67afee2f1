"""Wide networks: fewer passes and Lanczos' method give the answers of the dense algebra."""

from fractions import Fraction
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from whorl import simplex
from whorl.fast import wide
from whorl.krylov import _answer
from whorl.systems.layered import jet

THREE, SIX = (
    wh.Network.random((3, 3, 3), seed=2, floor=0.1),
    wh.Task.random(3, 3, seed=3),
)  # of rank 6 among 12 modes


@pytest.fixture(scope="module")
def broad():
    rng = np.random.default_rng(0)
    net = wh.Network.random((130, 140, 129), seed=1, rates=[rng.uniform(0.5, 2.0, 130), 3.0])
    return net, rng.dirichlet(np.ones(130), 2), rng.dirichlet(np.ones(129), 2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("selected", [None, 1])
def test_the_wide_response_is_the_careful_one(broad, selected):
    net, inputs, targets = broad
    response = wh.response(net, inputs, selected=selected)
    potential = targets if selected is None else targets[1:]
    careful = [
        simplex.velocity(p, s) for p, s in zip(net.layers, response.scores(potential), strict=True)
    ]
    expected = net.forward(response.trace, careful)
    assert wide.is_wide(net.widths)
    np.testing.assert_allclose(
        response @ potential, expected, rtol=0, atol=1e-14 * float(jnp.abs(expected).max())
    )


def rational(array):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=float))


def exactly(layers, inputs, potential):
    """K v in exact arithmetic: scores, less their average, times the columns, carried forward."""
    layers, flows, fields = (
        [rational(layer) for layer in layers],
        [rational(inputs)],
        [rational(potential)],
    )
    for layer, back in zip(layers, reversed(layers[1:]), strict=False):
        flows.append(flows[-1] @ layer.T)
        fields.append(fields[-1] @ back)
    moved, velocities = np.zeros_like(flows[0]), []
    for layer, flow, field in zip(layers, flows, reversed(fields), strict=True):
        scores = field.T @ flow
        velocities.append(layer * (scores - (layer * scores).sum(axis=0) / layer.sum(axis=0)))
        moved = moved @ layer.T + flow @ velocities[-1].T
    return moved.astype(float), [velocity.astype(float) for velocity in velocities]


def near_a_vertex(width, distance):
    """Three inputs, a wide layer and three outputs.

    Every column has all but `distance` at one entry.
    """
    rng = np.random.default_rng(0)
    layers = []
    for columns, rows in ((3, width), (width, 3)):
        layer = distance * rng.dirichlet(np.ones(rows), size=columns).T
        heavy = (np.arange(columns) % rows, np.arange(columns))
        layer[heavy] = 0
        layer[heavy] = 1 - layer.sum(axis=0)
        layers.append(layer)
    potential = rng.standard_normal((2, 3))
    return layers, rng.dirichlet(np.ones(3), 2), potential - potential.mean(axis=1, keepdims=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("distance", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("width", [127, 128])
def test_no_digit_is_lost_near_a_vertex_whatever_the_width(width, distance):
    layers, inputs, potential = near_a_vertex(width, distance)
    for selected in (None, 0):
        rows = slice(None) if selected is None else slice(1)
        moved, velocities = exactly(layers, inputs[rows], potential[rows])
        driven = wh.response(wh.Network(layers), inputs, selected=selected)
        for found in (
            driven @ potential[rows],
            eqx.filter_jit(lambda k, v: k @ v)(driven, jnp.asarray(potential[rows])),
        ):
            assert np.abs(found - moved).max() < 1e-14 * np.abs(moved).max()
        for ours, wanted in zip(driven.velocities(potential[rows]), velocities, strict=True):
            assert (np.abs(ours - wanted).max(axis=0) < 1e-13 * np.abs(wanted).max()).all()


@pytest.mark.slow
def test_the_jet_of_one_sample_keeps_its_digits_near_a_vertex():
    law = wh.rotational(base=wh.leaky(0.1))
    narrow, broad = (near_a_vertex(width, 1e-6) for width in (127, 128))
    for layers, inputs, _ in (narrow, broad):
        net, targets = wh.Network(layers), np.full((2, 3), 1 / 3)
        _, turning = wh.turn_scores(net, inputs, targets, selected=0, law=law)
        careful = net.jet(jnp.asarray(inputs), turning)
        found = wh.curvature(net, inputs, targets, selected=0, law=law)
        np.testing.assert_allclose(
            found.bending, careful[2], rtol=0, atol=1e-12 * float(jnp.abs(careful[2]).max())
        )


@pytest.mark.slow
def test_the_wide_jet_is_the_careful_one(broad):
    net, inputs, targets = broad
    found = wh.curvature(
        net,
        inputs,
        targets,
        selected=1,
        law=wh.rotational(base=wh.krylov(wh.leaky(0.1), tol=1e-13)),
    )
    _, turning = wh.turn_scores(
        net, inputs, targets, selected=1, law=wh.rotational(base=wh.leaky(0.1))
    )
    first = [simplex.velocity(p, s) for p, s in zip(net.layers, turning, strict=True)]
    second = [simplex.acceleration(p, s) for p, s in zip(net.layers, turning, strict=True)]
    _, displacement, bending = jet(net, jnp.asarray(inputs), first, second)
    np.testing.assert_allclose(
        found.displacement, displacement, rtol=0, atol=1e-12 * float(jnp.abs(displacement).max())
    )
    np.testing.assert_allclose(
        found.bending, bending, rtol=0, atol=1e-12 * float(jnp.abs(bending).max())
    )


@pytest.mark.slow
def test_a_krylov_base_turns_without_building_the_response(broad, monkeypatch):
    net, inputs, targets = broad
    monkeypatch.setattr(type(wh.response(net, inputs)), "dense", None)
    pair = wh.rotational(base=wh.krylov(wh.leaky(0.1))).parts(
        wh.response(net, inputs, selected=0), wh.residual(net, inputs, targets)[:1]
    )
    assert all(bool(jnp.all(jnp.isfinite(part))) for part in pair)


@pytest.mark.parametrize(
    "law",
    [
        *(
            pytest.param(law, marks=pytest.mark.slow)
            for law in (wh.leaky(0.1), wh.leaky(1e-3), wh.repair())
        ),
        wh.spectral(lambda x: x / (1 + x)),
    ],
)
def test_lanczos_reaches_the_dense_answer(law):
    net, task = wh.Network.random((4, 30, 30), seed=4, floor=0.1), wh.Task.random(4, 30, seed=5)
    response = wh.response(net, task.inputs, selected=0)
    error = wh.residual(net, task.inputs, task.targets)[:1]
    dense = law(response, error)
    answer = wh.krylov(law, tol=1e-11)(response, error)
    assert float(jnp.linalg.norm(answer - dense) / jnp.linalg.norm(dense)) < 1e-10


def test_lanczos_works_on_a_rank_deficient_joint_response():
    net, task = wh.Network.random((3, 3, 3), seed=2, floor=0.1), wh.Task.random(3, 3, seed=3)
    response, error = wh.response(net, task.inputs), wh.residual(net, task.inputs, task.targets)
    np.testing.assert_allclose(
        wh.krylov(wh.leaky(0.1))(response, error), wh.leaky(0.1)(response, error), atol=1e-12
    )


def test_lanczos_shows_a_law_the_largest_eigenvalue_first():
    law, response = wh.spectral(lambda x: x / x[0]), wh.response(THREE, SIX.inputs)
    error = wh.residual(THREE, SIX.inputs, SIX.targets)
    np.testing.assert_allclose(wh.krylov(law)(response, error), law(response, error), atol=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("base", [wh.leaky(0.1), wh.repair()])
def test_lanczos_runs_under_jit(base):
    net, task = wh.Network.random((3, 3, 3), seed=2, floor=0.1), wh.Task.random(3, 3, seed=3)
    response, error = wh.response(net, task.inputs), wh.residual(net, task.inputs, task.targets)
    law = wh.krylov(base)
    np.testing.assert_allclose(
        eqx.filter_jit(law)(response, error), law(response, error), atol=1e-13
    )


def test_no_residual_asks_for_no_potential():
    net, task = wh.Network.random((3, 3, 3), seed=2, floor=0.1), wh.Task.random(3, 3, seed=3)
    response = wh.response(net, task.inputs)
    assert not np.asarray(wh.krylov(wh.leaky(0.1))(response, np.zeros((6, 3)))).any()


def test_no_residual_asks_for_no_potential_under_jit():
    net, task = wh.Network.random((3, 3, 3), seed=2, floor=0.1), wh.Task.random(3, 3, seed=3)
    assert not np.asarray(
        eqx.filter_jit(wh.krylov(wh.leaky(0.1)))(wh.response(net, task.inputs), jnp.zeros((6, 3)))
    ).any()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-6, 1e3])
def test_the_change_is_what_the_last_quarter_of_the_products_did(broad, size):
    net, inputs, targets = broad
    response, law = wh.response(net, inputs, selected=0), wh.krylov(wh.leaky(1e-5))
    start = size * response.coordinates(wh.residual(net, inputs, targets)[:1])
    (answer, change), (before, _) = (_answer(law, response, start, order) for order in (8, 6))
    assert float(change) > 1e-9
    assert float(change) == pytest.approx(
        float(jnp.linalg.norm(answer - before) / jnp.linalg.norm(answer)), rel=1e-6, abs=0
    )


@pytest.mark.slow
def test_too_few_products_are_said_to_be_too_few(broad):
    net, inputs, targets = broad
    error = wh.residual(net, inputs, targets)[:1]
    with pytest.raises(
        ValueError,
        match=r"most must allow enough products .* but after 3 the answer still changes by",
    ):
        wh.krylov(wh.leaky(1e-6), tol=1e-14, most=3)(wh.response(net, inputs, selected=0), error)


BEYOND = np.random.default_rng(1).dirichlet(
    np.ones(3), 6
)  # targets of no teacher: their residual has parts that nothing answers
MOTION = [part - part.mean(axis=0) for part in np.random.default_rng(0).standard_normal((2, 3, 3))]
LAWS = {
    "leaky": wh.leaky(0.1),
    "repair": wh.repair(),
    "direct": wh.direct(),
    "fading": wh.spectral(lambda x: jnp.exp(-5 * x)),
}


def along(law):
    """A number that depends on the potential of a law, along a path of networks.

    For derivatives of it at 0.
    """

    def value(time):
        net = THREE.with_blocks(
            [layer + time * part for layer, part in zip(THREE.layers, MOTION, strict=True)]
        )
        potential = law(wh.response(net, SIX.inputs), BEYOND - wh.predict(net, SIX.inputs))
        return jnp.sum(jnp.sin(potential) * jnp.arange(18.0).reshape(6, 3))

    return value


def differences(value, step=1e-4):
    """The slope at 0 by central differences, to fourth order."""
    ends = [float(value(sign * step)) for sign in (-2, -1, 1, 2)]
    return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name",
    [
        "leaky",
        "fading",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("repair", "direct")),
    ],
)
def test_the_derivative_is_that_of_the_dense_law_past_the_rank_too(name):
    dense, ours = (float(jax.grad(along(law))(0.0)) for law in (LAWS[name], wh.krylov(LAWS[name])))
    assert ours == pytest.approx(dense, rel=1e-9)
    assert ours == pytest.approx(differences(along(LAWS[name])), rel=1e-5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "make", [wh.leaky, lambda mu: wh.spectral(lambda x: 1 / (x + mu))], ids=["leaky", "spectral"]
)
def test_the_derivative_by_a_number_in_the_law_is_that_of_the_dense_law(make):
    response, error = wh.response(THREE, SIX.inputs), wh.residual(THREE, SIX.inputs, BEYOND)

    def answered(wrap):
        return lambda mu: jnp.sum(
            jnp.sin(wrap(make(mu))(response, error)) * jnp.arange(18.0).reshape(6, 3)
        )

    dense, ours = (float(jax.grad(answered(wrap))(0.1)) for wrap in (lambda law: law, wh.krylov))
    assert ours == pytest.approx(dense, rel=1e-10)


@pytest.mark.slow
def test_the_leaky_law_is_differentiated_forward_and_twice():
    dense, ours = along(wh.leaky(0.1)), along(wh.krylov(wh.leaky(0.1)))
    assert float(jax.jvp(ours, (0.0,), (1.0,))[1]) == pytest.approx(
        float(jax.grad(dense)(0.0)), rel=1e-10
    )
    assert float(jax.grad(jax.grad(ours))(0.0)) == pytest.approx(
        float(jax.grad(jax.grad(dense))(0.0)), rel=1e-8
    )


@pytest.mark.slow
def test_a_derivative_that_krylov_does_not_have_is_refused_in_one_sentence():
    ours = along(wh.krylov(LAWS["fading"]))
    with pytest.raises(
        ValueError,
        match=r"^krylov must be differentiated in reverse mode .* but forward mode was asked for",
    ):
        jax.jvp(ours, (0.0,), (1.0,))
    with pytest.raises(
        ValueError,
        match=r"^krylov must be differentiated once at most .* but a higher derivative was asked for",
    ):
        jax.grad(jax.grad(ours))(0.0)


def test_lanczos_refuses_a_response_that_is_not_symmetric():
    response = wh.response(THREE, SIX.inputs, adjoint=[2 * layer for layer in THREE.layers])
    with pytest.raises(
        ValueError, match=r"^krylov must be asked of a response with matched adjoint"
    ):
        wh.krylov(wh.leaky(0.1))(response, np.zeros((6, 3)))


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: wh.krylov(cast(Any, wh.rotational())),
            r"law must be a spectral law such as leaky\(0.1\)",
        ),
        (
            lambda: wh.krylov(wh.direct(), most=0),
            "most must be a whole number of at least 1, but it is 0",
        ),
        (lambda: wh.krylov(wh.direct(), tol=0.0), "tol must be greater than 0, but it is 0"),
    ],
)
def test_a_bad_krylov_law_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
