"""The optax transformations against the library's own learners, inside other people's loops, and
what they refuse.
"""

import re
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import oracle
import whorl as wh
from whorl import optimiser
from whorl.geometry import uniform

TASK = wh.Task.random(3, 3, seed=1)
X, Y = TASK.inputs, TASK.targets
SPARSE = [np.array([[1, 1, 0], [1, 1, 1], [1, 0, 1]], dtype=bool), np.ones((3, 3), dtype=bool)]
RATES = [np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 0.2])]
NET = wh.Network.random((3, 3, 3), seed=2, floor=0.1, rates=RATES, support=SPARSE)
LAYERS = list(NET.layers)


def predict(params, inputs):
    for layer in params:
        inputs = inputs @ layer.T
    return inputs


def loss(params, inputs, targets):
    return jnp.sum((targets - predict(params, inputs)) ** 2) / 2


def trained(transformation, params, order, single=False, **given):
    """The user's own loop: compiled, scanned, with `apply_updates`."""

    @jax.jit
    def run(params, order):
        def body(carry, sample):
            params, state = carry
            x, y = (X[sample], Y[sample]) if single else (X[sample][None, :], Y[sample][None, :])
            grads = jax.grad(loss)(params, x, y)
            updates, state = transformation.update(
                grads, state, params, **({"inputs": x, "targets": y} | given if given else {})
            )
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(body, (params, transformation.init(params)), order)[0][0]

    return run(params, jnp.asarray(order))


GRADS = [
    jnp.asarray(slope)
    for slope in oracle.gradient(oracle.arrays(NET)[0], np.asarray(X), np.asarray(Y))
]


def distance(one, other):
    return max(
        float(np.abs(np.asarray(p) - np.asarray(q)).max())
        for p, q in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@pytest.mark.slow
def test_reciprocal_is_the_native_learner_under_the_direct_law():
    pair = wh.train(
        NET, X, Y, policy=wh.native(0.3, law=wh.rotational(base=wh.direct())), epochs=30, seed=5
    )
    assert (
        distance(
            trained(optimiser.descending(0.3, RATES), LAYERS, pair.schedule), pair.native.layers
        )
        < 1e-14
    )


@pytest.mark.slow
@pytest.mark.parametrize("single", [True, False], ids=["one sample", "a batch of one"])
def test_rotational_is_the_learner_that_always_turns(single):
    # Senses alternate from +1 unless told otherwise.
    law, turns = wh.rotational(alpha=0.7, base=wh.leaky(0.05)), np.tile([1, -1], 90)
    pair = wh.train(
        NET,
        X,
        Y,
        policy=wh.step_matched(0.3, omega=2.0, gate="always", law=law),
        epochs=30,
        seed=5,
        turns=turns,
    )
    turning = optimiser.turning(predict, 0.3, alpha=0.7, omega=2.0, mu=0.05, rates=RATES)
    assert (
        distance(
            trained(optax.chain(optax.clip(1.0), turning), LAYERS, pair.schedule, single, more=1),
            pair.nonreciprocal.layers,
        )
        < 1e-13
    )


def stepped(columns, plus, minus, scale):
    """The turning step in plain NumPy: along `plus`, with room for `minus`."""
    ranges = [
        (np.where(p > 0, s, -np.inf).max(axis=0) - np.where(p > 0, s, np.inf).min(axis=0)).max()
        for scores in (plus, minus)
        for p, s in zip(columns, scores, strict=True)
    ]
    return [
        oracle.exponential_step(p, s, scale / max(1.0, *ranges))
        for p, s in zip(columns, plus, strict=True)
    ]


def turned(inputs, targets, omega):
    """What one update of the sparse network gives, by the dense response of plain NumPy."""
    layers, rates = oracle.arrays(NET)
    inputs, targets = np.atleast_2d(inputs), np.atleast_2d(targets)
    error = targets - oracle.predict(layers, inputs)
    gain = np.linalg.inv(oracle.response(layers, rates, inputs) + 0.1 * np.eye(error.size))
    plus, minus = (error + way * omega * error @ oracle.three_port().T for way in (1, -1))
    plus, minus = (
        oracle.scores(layers, rates, inputs, gain @ potential.ravel())
        for potential in (plus, minus)
    )
    return stepped(layers, plus, minus, 0.3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sense", [1, -1])
def test_a_sense_may_be_fixed_or_given_with_an_update(sense):
    wanted = turned(X[4], Y[4], 0.5 * sense)
    for fixed, given in ((sense, None), (-sense, sense), (None, sense)):
        turning = optimiser.turning(predict, 0.3, omega=0.5, rates=RATES, turn=fixed)
        updates, state = jax.jit(turning.update)(
            LAYERS, turning.init(LAYERS), LAYERS, inputs=X[4], targets=Y[4], turn=given
        )
        assert distance(optax.apply_updates(LAYERS, updates), wanted) < 1e-14
        assert int(cast(Any, state).made) == 1


def test_a_batch_is_answered_through_its_joint_response():
    turning = optimiser.turning(predict, 0.3, omega=0.5, rates=RATES)
    updates, _ = jax.jit(turning.update)(LAYERS, turning.init(LAYERS), LAYERS, inputs=X, targets=Y)
    assert distance(optax.apply_updates(LAYERS, updates), turned(X, Y, 0.5)) < 1e-14


@pytest.mark.parametrize("kind", ["reciprocal", "rotational"])
def test_a_thousand_updates_conserve_mass_support_and_positivity(kind):
    order = np.random.default_rng(0).integers(0, 6, size=1000)
    if kind == "reciprocal":
        final = trained(optimiser.descending(2.0, RATES), LAYERS, order)
    else:
        final = trained(
            optimiser.turning(predict, 2.0, omega=4.0, rates=RATES), LAYERS, order, more=1
        )
    assert distance(final, LAYERS) > 0.1
    for before, after in zip(LAYERS, final, strict=True):
        np.testing.assert_array_equal(before > 0, after > 0)
        # Adding a difference rounds once, and the next step normalises anew: nothing accumulates.
        np.testing.assert_allclose(after.sum(axis=0), 1, rtol=0, atol=1e-15)


def mixed(params, inputs):
    """A user's own model.

    A nonlinear one that conserves nothing, with a vector and a stack of matrices among its
    parameters.
    """
    hidden = jnp.tanh(2 * inputs @ params["front"].T) + params["bias"][None, :]
    return sum(
        weight * hidden**2 @ layer.T
        for weight, layer in zip((0.3, 0.7), jnp.moveaxis(params["pair"], 2, 0), strict=True)
    )


@pytest.mark.slow
def test_a_nonlinear_model_with_a_tree_of_parameters_learns():
    rng = np.random.default_rng(3)
    params = {
        "front": jnp.asarray(rng.dirichlet(np.ones(4), size=3).T),
        "bias": jnp.asarray(rng.dirichlet(np.ones(4))),
        "pair": jnp.asarray(rng.dirichlet(np.ones(3), size=(4, 2)).transpose(2, 0, 1)),
    }
    teacher = jax.tree.map(lambda p: jnp.roll(p, 1, axis=0), params)
    targets = mixed(teacher, X)
    turning = optimiser.turning(mixed, 0.3, omega=0.3, mu=0.01)

    @jax.jit
    def run(params):
        def body(carry, _):
            params, state = carry
            error = jnp.sum((targets - mixed(params, X)) ** 2)
            updates, state = turning.update(params, state, params, inputs=X, targets=targets)
            return (optax.apply_updates(params, updates), state), error

        return jax.lax.scan(body, (params, turning.init(params)), None, length=200)

    (final, _), errors = run(params)
    assert float(errors[-1]) < 1e-3 * float(errors[0])
    for column in jax.tree.leaves(final):
        np.testing.assert_allclose(column.sum(axis=0), 1, rtol=0, atol=1e-15)


def test_a_nonlinear_model_is_answered_through_its_own_jacobian():
    # Another route: the whole Jacobian by forward mode, the mobility as a matrix, the solve in
    # NumPy.
    p = jnp.asarray(np.random.default_rng(5).dirichlet(np.ones(3), size=3).T)
    # Outputs that do not conserve mass: their sum is answered too.

    def model(q, x):
        return jnp.exp(x @ q.T) @ q

    x, y = X[3:5], Y[3:5]
    jac = np.asarray(jax.jacfwd(model)(p, x)).reshape(6, 9)
    mobility = np.zeros((9, 9))
    for column in range(3):
        at = np.arange(3) * 3 + column
        mobility[np.ix_(at, at)] = oracle.covariance(np.asarray(p[:, column]))
    error = np.asarray(y - model(p, x))
    gain = np.linalg.inv(jac @ mobility @ jac.T + 0.2 * np.eye(6))
    minus, plus = (
        (jac.T @ gain @ (error + way * error @ oracle.three_port().T).ravel()).reshape(3, 3)
        for way in (1, -1)
    )
    turning = optimiser.turning(model, 0.3, mu=0.2, turn=-1)
    updates, _ = jax.jit(turning.update)(p, turning.init(p), p, inputs=x, targets=y)
    assert (
        distance(optax.apply_updates(p, updates), stepped([np.asarray(p)], [plus], [minus], 0.3))
        < 1e-14
    )


def test_the_envelope_shortens_the_step_of_a_wide_score_on_the_support():
    # Off the support, at (0, 2) and (2, 1) of the first layer, a score has no say; at (0, 0) its
    # range counts.
    slopes = [np.zeros((3, 3)), np.zeros((3, 3))]
    slopes[0][0, 2], slopes[0][2, 1], slopes[0][0, 0] = -1e3, 1e3, -8.0
    straight = optimiser.descending(0.4)
    updates, _ = jax.jit(straight.update)(
        [jnp.asarray(slope) for slope in slopes], straight.init(LAYERS), LAYERS
    )
    p = np.asarray(LAYERS[0])
    wanted = [
        oracle.exponential_step(p, np.where(p > 0, -slopes[0], 0.0), 0.4 / 8.0),
        np.asarray(LAYERS[1]),
    ]
    assert distance(optax.apply_updates(LAYERS, updates), wanted) < 1e-15


@pytest.mark.parametrize(
    "wrap",
    [list, tuple, lambda layers: {"a": layers[0], "b": {"c": layers[1]}}],
    ids=["list", "tuple", "dict"],
)
def test_any_tree_of_parameters_will_do(wrap):
    params, grads = wrap(LAYERS), wrap(GRADS)
    plain = optimiser.descending(0.3, RATES)
    wanted, _ = jax.jit(plain.update)(GRADS, plain.init(LAYERS), LAYERS)
    transformation = optimiser.descending(0.3, wrap(RATES))
    updates, _ = jax.jit(transformation.update)(grads, transformation.init(params), params)
    assert jax.tree.structure(updates) == jax.tree.structure(params)
    assert distance(updates, wanted) == 0


def test_one_rate_scales_the_score_and_single_precision_stays():
    params = [layer.astype(jnp.float32) for layer in LAYERS]
    grads = [slope.astype(jnp.float32) for slope in GRADS]
    results = []
    for rate, scale in ((0.5, 0.2), (1.0, 0.1)):
        transformation = optimiser.descending(scale, rate)
        results.append(
            jax.jit(transformation.update)(grads, transformation.init(params), params)[0]
        )
    # Below a range of one the step is the scale, and only its product with the rate counts.
    assert distance(*results) < 1e-7
    assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype(jnp.float32)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optimiser.descending(0.0), "scale must be greater than 0, but it is 0"),
        (
            lambda: optimiser.turning(predict, 0.1, mu=0.0),
            "mu must be greater than 0, but it is 0",
        ),
        (
            lambda: optimiser.turning(predict, 0.1, turn=2),
            r"turn must be \+1 or -1, or left out to alternate, but it is 2",
        ),
        (
            lambda: optimiser.descending(0.1).update(LAYERS, optax.EmptyState()),
            "params must be given to update, .* but it is None",
        ),
        (
            lambda: optimiser.descending(0.1).init({"a": X * 0.5}),
            r"columns of params\['a'\] must sum to 1, but column 0 sums to ",
        ),
        (
            lambda: optimiser.descending(0.1).init(jnp.array([0.5, 0.6])),
            "columns of params must sum to 1, but its column sums to 1.1",
        ),
        (
            lambda: optimiser.descending(0.1).init([jnp.array([[1.5], [-0.5]])]),
            r"params\[0\] must be non-negative, but entry \(1, 0\) is -0.5",
        ),
        (
            lambda: optimiser.descending(0.1).init([jnp.array(1.0)]),
            r"params\[0\] must have 1 axes, but its shape is \(\)",
        ),
        (
            lambda: optimiser.descending(0.1).init([]),
            "params must hold arrays of one floating type, but the types are none",
        ),
        (
            lambda: optimiser.descending(0.1, [1.0]).init(LAYERS),
            "rates must be one number or a tree like the parameters, .*, but they are ",
        ),
        (
            lambda: optimiser.descending(0.1, [1.0, np.ones(2)]).init(LAYERS),
            r"rates of params\[1\] must be one number or one per column, \(3,\)",
        ),
        (
            lambda: optimiser.descending(0.1, -1.0).init(LAYERS),
            r"rates of params\[0\] must be positive, but the smallest is -1",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputs": X}, "targets must be given to update, but there are none"),
        ({"targets": Y}, "inputs must be given to update, but there are none"),
        (
            {"inputs": X, "targets": Y[:2]},
            r"targets must have the shape \(6, 3\) of the predictions, but their shape is \(2, 3\)",
        ),
        (
            {"inputs": X, "targets": Y, "turn": 0},
            r"turn must be \+1 or -1, or left out to alternate, but it is 0",
        ),
    ],
)
def test_a_turning_update_refuses_what_it_cannot_use(given, message):
    turning = optimiser.turning(predict, 0.1)
    with pytest.raises(ValueError, match=message):
        # Refused while tracing: nothing has to be compiled for that.
        jax.eval_shape(lambda: turning.update(LAYERS, turning.init(LAYERS), LAYERS, **given))


def test_a_turn_needs_three_outputs():
    params = [jnp.full((2, 3), 0.5)]
    turning = optimiser.turning(predict, 0.1)
    with pytest.raises(
        ValueError,
        match=r"predict must return \(out,\) or \(samples, out\) with at least 3 outputs, but its shape is \(6, 2\)",
    ):
        turning.update(params, turning.init(params), params, inputs=X, targets=X[:, :2])


def test_only_its_own_file_knows_optax_and_scikit_learn():
    source = Path(wh.__file__).parent
    for package, door in (
        ("optax", ["optimiser.py"]),
        ("sklearn", ["draw.py", "estimator.py", "resample.py"]),
    ):
        assert (
            sorted(
                path.name
                for path in source.glob("**/*.py")
                if re.search(rf"^\s*(import|from) {package}\b", path.read_text(), re.M)
            )
            == door
        )


@pytest.mark.parametrize("geometry", [wh.Positive(), wh.Positive(uniform), wh.Flat(size=2.0)])
def test_a_descent_is_the_same_in_every_unit(geometry):
    def descended(unit, weight):
        kind = wh.Flat(size=2.0 * unit) if isinstance(geometry, wh.Flat) else geometry
        transformation = optimiser.descending(scale=0.1, geometry=kind)
        params = jnp.array([0.3, 2.0]) * unit
        state = transformation.init(params)
        seen = []
        for _ in range(20):
            slope = jax.grad(lambda at: weight * jnp.sum((at / unit - jnp.array([1.0, 1.0])) ** 2))
            updates, state = transformation.update(slope(params), state, params)
            params = optax.apply_updates(params, updates)
            seen.append(params / unit)
        return np.array(seen)

    plain = descended(1.0, 1.0)
    assert np.abs(plain[0] - [0.3, 2.0]).max() > 0
    for unit, weight in [(1e-6, 1.0), (1e3, 1e-4)]:
        np.testing.assert_allclose(descended(unit, weight), plain, rtol=1e-9)


def test_numbers_without_a_size_cannot_descend():
    with pytest.raises(ValueError, match=r"geometry must be Flat\(size=...\) to descend"):
        optimiser.descending(scale=0.1, geometry=wh.Flat()).init(jnp.zeros(2))
