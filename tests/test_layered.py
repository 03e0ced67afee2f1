"""Networks.

How they are made and refused, what flows through them, and how motion is carried forward and
potentials back.
"""

import math
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import oracle
import strategies
import whorl as wh
from whorl import _check, system
from whorl.systems import layered

WIDTHS = (2, 4, 3)
LOGITS = [
    np.random.default_rng(0).standard_normal((4, 2)),
    np.random.default_rng(1).standard_normal((3, 4)),
]
MASKS = [
    np.array([[True, True], [True, False], [False, False], [True, True]]),
    np.ones((3, 4), dtype=bool),
]
INPUTS = np.array([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]])
TARGETS = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1]])
EVEN = np.full((2, 2), 0.5)


def test_a_network_knows_its_shape_its_support_and_its_type():
    net = wh.Network.random(WIDTHS, seed=0, support=MASKS)
    assert net.widths == WIDTHS
    assert net.depth == 2
    assert net.dtype == np.float64
    for found, mask in zip(net.support, MASKS, strict=True):
        np.testing.assert_array_equal(found, mask)


def test_a_network_is_a_point_of_a_product_of_open_simplices_and_nothing_else():
    rng = np.random.default_rng(7)
    layers = [rng.dirichlet(np.ones(rows), size=columns).T for rows, columns in ((4, 2), (3, 4))]
    net = wh.Network(layers)
    blocks = [column for layer in net.layers for column in np.asarray(layer).T]
    assert [len(block) for block in blocks] == [4, 4, 3, 3, 3, 3]  # one simplex for every source
    assert all((block > 0).all() and abs(math.fsum(block) - 1) <= 1e-15 for block in blocks)
    for number, row, column in oracle.columns(layers):
        weight = layers[number][row, column]
        others = [n for n in range(len(layers[number])) if n != row]
        for left, rule in (
            (0.0, "be positive on its support"),
            (-0.25 * weight, "be non-negative"),
        ):  # on the face, and beyond it
            moved = [layer.copy() for layer in layers]
            moved[number][row, column] = left
            moved[number][others[0], column] += weight - left
            with pytest.raises(
                ValueError, match=rf"layer {number} must {rule}, but entry \({row}, {column}\) is"
            ):
                wh.Network(moved)
        off = [layer.copy() for layer in layers]
        off[number][row, column] += 1e-9  # off the plane of unit mass
        with pytest.raises(
            ValueError,
            match=rf"columns of layer {number} must sum to 1, but column {column} sums to 1.000000001",
        ):
            wh.Network(off)


def test_layers_are_kept_as_given():
    layers = [np.array([[0.3, 0.8], [0.7, 0.2]]), EVEN]
    for kept, given_layer in zip(wh.Network(layers).layers, layers, strict=True):
        np.testing.assert_array_equal(kept, given_layer)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (2.0, ([2.0, 2.0], [2.0, 2.0, 2.0, 2.0])),
        ([2.0, 0.5], ([2.0, 2.0], [0.5, 0.5, 0.5, 0.5])),
        (np.array([2.0, 0.5]), ([2.0, 2.0], [0.5, 0.5, 0.5, 0.5])),
        ([np.array([1.0, 3.0]), 0.5], ([1.0, 3.0], [0.5, 0.5, 0.5, 0.5])),
        (
            [np.array([1.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])],
            ([1.0, 3.0], [1.0, 2.0, 3.0, 4.0]),
        ),
    ],
    ids=["one", "a layer", "a layer as an array", "mixed", "a column"],
)
def test_rates_are_one_number_in_all_or_one_a_layer_or_one_a_column(rates, expected):
    net = wh.Network.random(WIDTHS, seed=0, rates=rates)
    for rate, values in zip(net.rates, expected, strict=True):
        np.testing.assert_array_equal(rate, values)


def test_a_seed_gives_the_same_network_again_and_another_seed_another():
    first, again, other = (
        oracle.arrays(wh.Network.random(WIDTHS, seed=seed))[0] for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.allclose(first[1], other[1])


def test_a_generator_continues_where_it_stands():
    rng = np.random.default_rng(5)
    first, second = (oracle.arrays(wh.Network.random(WIDTHS, seed=rng))[0] for _ in range(2))
    np.testing.assert_array_equal(first[0], oracle.arrays(wh.Network.random(WIDTHS, seed=5))[0][0])
    assert not np.allclose(first[0], second[0])


def test_random_columns_are_the_softmax_of_the_given_logits():
    net = wh.Network.random(WIDTHS, logits=LOGITS, imbalance=1.7)
    for layer, z in zip(net.layers, LOGITS, strict=True):
        np.testing.assert_allclose(layer, np.exp(1.7 * z) / np.exp(1.7 * z).sum(axis=0), rtol=1e-15)


def test_logarithms_of_columns_as_logits_give_the_columns_back():
    columns = [np.array([[0.9, 1e-12], [0.1, 1 - 1e-12]])]
    net = wh.Network.random((2, 2), logits=[np.log(columns[0])])
    np.testing.assert_allclose(net.layers[0], columns[0], rtol=1e-14)


def test_huge_logits_do_not_overflow():
    net = wh.Network.random((1, 2), logits=[np.array([[1.0], [2.0]])], imbalance=500.0)
    np.testing.assert_allclose(net.layers[0], [[np.exp(-500.0)], [1.0]], rtol=1e-14)


def test_no_imbalance_spreads_evenly_over_the_support():
    for layer, mask in zip(
        wh.Network.random(WIDTHS, seed=3, imbalance=0.0, support=MASKS).layers, MASKS, strict=True
    ):
        np.testing.assert_allclose(layer, mask / mask.sum(axis=0), rtol=1e-15)


def test_the_floor_is_an_even_share_of_every_column():
    plain, raised = (
        wh.Network.random(WIDTHS, seed=3, imbalance=8.0, floor=floor, support=MASKS)
        for floor in (0.0, 0.3)
    )
    for low, high, mask in zip(plain.layers, raised.layers, MASKS, strict=True):
        share = mask / mask.sum(axis=0)
        np.testing.assert_allclose(high, 0.7 * np.asarray(low) + 0.3 * share, rtol=1e-15)
        assert (np.asarray(high) >= 0.3 * share).all()


def test_a_random_network_respects_its_support_and_its_unit_mass():
    for layer, mask in zip(
        wh.Network.random(WIDTHS, seed=3, support=MASKS).layers, MASKS, strict=True
    ):
        np.testing.assert_array_equal(np.asarray(layer) > 0, mask)
        np.testing.assert_allclose(np.asarray(layer).sum(axis=0), 1.0, rtol=1e-15)


def test_a_random_network_may_be_of_single_precision():
    net = wh.Network.random(WIDTHS, seed=3, dtype=np.float32)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(net)} == {"float32"}
    assert wh.predict(net, INPUTS).dtype == np.float32


@given(strategies.problems())
def test_predictions_are_the_product_of_the_layers(problem):
    net, inputs, _ = problem
    np.testing.assert_allclose(
        wh.predict(net, inputs), oracle.predict(oracle.arrays(net)[0], inputs), rtol=1e-14
    )


def test_flows_are_what_enters_each_layer_and_what_leaves_the_last():
    net = wh.Network.random(WIDTHS, seed=1)
    (first, second), _ = oracle.arrays(net)
    for flow, expected in zip(
        net.trace(jnp.asarray(INPUTS)),
        [INPUTS, INPUTS @ first.T, INPUTS @ first.T @ second.T],
        strict=True,
    ):
        np.testing.assert_allclose(flow, expected, rtol=1e-15)
        np.testing.assert_allclose(
            np.asarray(flow).sum(axis=1), 1, rtol=0, atol=1e-15
        )  # columns that sum to one lose nothing


def test_downstream_maps_lead_from_behind_each_layer_to_the_outputs():
    net = wh.Network.random((2, 4, 3, 3), seed=1)
    (_, second, third), _ = oracle.arrays(net)
    for onward, expected in zip(
        layered.downstream(net), [third @ second, third, np.eye(3)], strict=True
    ):
        np.testing.assert_allclose(onward, expected, rtol=1e-15)


def test_pull_back_is_the_transpose_of_the_downstream_maps():
    net, potential = wh.Network.random((2, 4, 3, 3), seed=1), TARGETS - 0.1
    for field, onward in zip(
        layered.pull_back(net.layers, jnp.asarray(potential)), layered.downstream(net), strict=True
    ):
        np.testing.assert_allclose(field, potential @ np.asarray(onward), rtol=1e-14)


@given(strategies.problems())
def test_push_forward_is_the_jacobian(problem):
    net, inputs, _ = problem
    layers, _ = oracle.arrays(net)
    moving = [np.random.default_rng(2).standard_normal(layer.shape) for layer in layers]
    theta = np.concatenate([moved.T.ravel() for moved in moving])
    pushed = net.forward(net.trace(jnp.asarray(inputs)), [jnp.asarray(moved) for moved in moving])
    expected = (oracle.jacobian(layers, inputs) @ theta).reshape(pushed.shape)
    np.testing.assert_allclose(pushed, expected, rtol=0, atol=1e-14 * np.abs(theta).sum())


@given(strategies.problems())
def test_the_jet_along_the_exponential_path_has_the_derivatives_of_the_oracle(problem):
    net, inputs, _ = problem
    layers, _ = oracle.arrays(net)
    score = [np.random.default_rng(3).standard_normal(layer.shape) for layer in layers]
    paths = [oracle.step_derivatives(layer, s) for layer, s in zip(layers, score, strict=True)]
    first, second = ([jnp.asarray(path[order]) for path in paths] for order in (0, 1))
    value, speed, bend = layered.jet(net, jnp.asarray(inputs), first, second)
    # Both sums run over terms no larger than the squared total score, and cancel down to round-off
    # of that.
    size = sum(np.abs(s).max() for s in score)
    expected = oracle.path_derivatives(layers, inputs, score)
    np.testing.assert_allclose(value, oracle.predict(layers, inputs), rtol=1e-14)
    np.testing.assert_allclose(speed, expected[0], rtol=0, atol=1e-15 * size)
    np.testing.assert_allclose(bend, expected[1], rtol=0, atol=2e-15 * size**2)


def test_the_jet_is_what_two_nested_forward_derivatives_give():
    net = wh.Network.random(WIDTHS, seed=1)
    rng = np.random.default_rng(4)
    first, second = (
        [jnp.asarray(rng.standard_normal(layer.shape)) for layer in net.layers] for _ in range(2)
    )

    def outputs(t):
        moved = [
            p + t * a + t**2 / 2 * b for p, a, b in zip(net.layers, first, second, strict=True)
        ]
        return net.with_blocks(moved).outputs(jnp.asarray(INPUTS))

    def speed(t):
        return jax.jvp(outputs, (t,), (1.0,))[1]

    for found, expected in zip(
        layered.jet(net, jnp.asarray(INPUTS), first, second),
        [outputs(0.0), *jax.jvp(speed, (0.0,), (1.0,))],
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_a_step_moves_every_layer_along_its_score():
    net = wh.Network.random(WIDTHS, seed=1)
    score = [np.random.default_rng(4).standard_normal(layer.shape) for layer in net.layers]
    stepped = net.stepped([jnp.asarray(s) for s in score], 0.3)
    for after, before, s in zip(stepped.layers, net.layers, score, strict=True):
        np.testing.assert_allclose(
            after, oracle.exponential_step(np.asarray(before), s, 0.3), rtol=1e-14
        )


@given(strategies.problems())
def test_residuals_sum_to_zero_for_each_sample(problem):
    net, inputs, targets = problem
    error = wh.residual(net, inputs, targets)
    np.testing.assert_allclose(
        error, targets - oracle.predict(oracle.arrays(net)[0], inputs), rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(np.asarray(error).sum(axis=1), 0.0, rtol=0, atol=2e-15)


def test_the_loss_is_half_the_squared_residual_in_sum_or_mean():
    net = wh.Network.random(WIDTHS, seed=1)
    error = TARGETS - oracle.predict(oracle.arrays(net)[0], INPUTS)
    np.testing.assert_allclose(
        wh.total_loss(net, INPUTS, TARGETS), (error**2).sum() / 2, rtol=1e-14
    )
    np.testing.assert_allclose(wh.loss(net, INPUTS, TARGETS), (error**2).sum() / 6, rtol=1e-14)


def test_parameters_are_listed_column_after_column_and_back():
    net = wh.Network.random(WIDTHS, seed=1)
    layers, _ = oracle.arrays(net)
    theta = system.ravel(net.geometries, net.layers)
    np.testing.assert_array_equal(
        theta, [layers[n][row, column] for n, row, column in oracle.columns(layers)]
    )
    for again, layer in zip(system.unravel(net.geometries, net.layers, theta), layers, strict=True):
        np.testing.assert_array_equal(again, layer)


def test_a_network_passes_through_jit_as_an_argument():
    net = wh.Network.random(WIDTHS, seed=1)
    np.testing.assert_allclose(
        jax.jit(wh.loss)(net, INPUTS, TARGETS), wh.loss(net, INPUTS, TARGETS), rtol=1e-15
    )


def test_networks_are_mapped_over_in_a_stack():
    nets = [wh.Network.random(WIDTHS, seed=seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    losses = jax.vmap(lambda net: wh.loss(net, INPUTS, TARGETS))(stacked)
    np.testing.assert_allclose(losses, [wh.loss(net, INPUTS, TARGETS) for net in nets], rtol=1e-14)


def test_the_gradient_of_the_loss_is_that_of_the_complex_step():
    net = wh.Network.random(WIDTHS, seed=1)
    slopes = jax.grad(wh.total_loss)(net, INPUTS, TARGETS).layers
    for slope, expected in zip(
        slopes, oracle.gradient(oracle.arrays(net)[0], INPUTS, TARGETS), strict=True
    ):
        np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wh.Network([]), r"layers must hold at least one layer, but it is empty"),
        (lambda: wh.Network([np.ones(2)]), r"layer 0 must have 2 axes, but its shape is \(2,\)"),
        (
            lambda: wh.Network([np.ones((2, 0))]),
            r"layer 0 must have at least one row and one column, but its shape is \(2, 0\)",
        ),
        (
            lambda: wh.Network([EVEN.astype(complex)]),
            r"layer 0 must hold real numbers, but its type is complex128",
        ),
        (
            lambda: wh.Network([jnp.asarray(EVEN, dtype=complex)]),
            r"layer 0 must hold real numbers, but its type is complex128",
        ),
        (
            lambda: wh.Network([np.array([["a"]])]),
            r"layer 0 must hold real numbers, but its type is <U1",
        ),
        (
            lambda: wh.Network([np.array([[np.nan], [1.0]])]),
            r"layer 0 must be finite, but entry \(0, 0\) is nan",
        ),
        (
            lambda: wh.Network([EVEN, np.array([[0.5, 0.5], [0.5, np.inf]])]),
            r"layer 1 must be finite, but entry \(1, 1\) is inf",
        ),
        (
            lambda: wh.Network([np.array([[1.5], [-0.5]])]),
            r"layer 0 must be non-negative, but entry \(1, 0\) is -0.5",
        ),
        (
            lambda: wh.Network([np.array([[1.0], [0.0]])]),
            r"layer 0 must be positive on its support, but entry \(1, 0\) is 0",
        ),
        (
            lambda: wh.Network([np.array([[1.0], [5e-324]])]),
            r"layer 0 must be positive on its support, but entry \(1, 0\) is 4.94066e-324",
        ),
        (
            lambda: wh.Network([EVEN, 0.9 * EVEN]),
            r"columns of layer 1 must sum to 1, but column 0 sums to 0.9",
        ),
        (
            lambda: wh.Network([EVEN + 1e-12]),
            r"columns of layer 0 must sum to 1, but column 0 sums to 1.000000000002",
        ),
        (
            lambda: wh.Network([EVEN, np.full((2, 3), 0.5)]),
            r"layer 1 must have 2 columns, .* but its shape is \(2, 3\)",
        ),
        (
            lambda: wh.Network([EVEN, EVEN.astype(np.float32)]),
            r"layers must share one floating type, but they are float64, float32",
        ),
        (
            lambda: wh.Network([EVEN], support=[]),
            r"support must hold one array per layer, but there are 0 arrays and 1 layers",
        ),
        (
            lambda: wh.Network([EVEN], support=[EVEN]),
            r"support 0 must be boolean of shape \(2, 2\), but it is float64",
        ),
        (
            lambda: wh.Network([EVEN], support=[np.ones((2, 3), bool)]),
            r"support 0 must be boolean of shape \(2, 2\), .* shape \(2, 3\)",
        ),
        (
            lambda: wh.Network([EVEN], support=[np.array([[True, False], [True, False]])]),
            r"support 0 must leave each column an entry, but column 1 has none",
        ),
        (
            lambda: wh.Network([EVEN], support=[np.eye(2) > 0]),
            r"layer 0 must be zero outside its support, but entry \(0, 1\) is 0.5",
        ),
        (
            lambda: wh.Network([EVEN], rates=[1.0, 2.0]),
            r"rates must be one number or one entry per layer, .* 2 entries and 1 layers",
        ),
        (
            lambda: wh.Network([EVEN], rates=0.0),
            r"rates of layer 0 must be positive, but the smallest is 0",
        ),
        (
            lambda: wh.Network([EVEN], rates=[np.array([1.0, -2.0])]),
            r"rates of layer 0 must be positive, but the smallest is -2",
        ),
        (
            lambda: wh.Network([EVEN], rates=[np.ones(3)]),
            r"rates of layer 0 must be one number or one per column, 2, but the shape is \(3,\)",
        ),
        (
            lambda: wh.Network([EVEN], rates=np.nan),
            r"rates of layer 0 must be finite, but its value is nan",
        ),
        (
            lambda: wh.Network.random((3,), seed=0),
            r"widths must name at least an input and an output width, but it is \(3,\)",
        ),
        (
            lambda: wh.Network.random((3, 0), seed=0),
            r"widths must be positive whole numbers, but one is 0",
        ),
        (
            lambda: wh.Network.random((3, True), seed=0),
            r"widths must be positive whole numbers, but one is True",
        ),
        (
            lambda: wh.Network.random((2, 2)),
            r"seed must be a non-negative whole number or a NumPy Generator, but it is None",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=-1),
            r"seed must be a non-negative whole number or a NumPy Generator, but it is -1",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0, imbalance=np.inf),
            r"imbalance must be finite, but its value is inf",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0, floor=-0.1),
            r"floor must be at least 0, but it is -0.1",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0, floor=1.1),
            r"floor must be at most 1, but it is 1.1",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0, floor=np.nan),
            r"floor must be finite, but its value is nan",
        ),
        (
            lambda: wh.Network.random((2, 2), logits=[np.ones((2, 3))]),
            r"logits must have the shapes \[\(2, 2\)\], but they have \[\(2, 3\)\]",
        ),
        (
            lambda: wh.Network.random((2, 2), logits=[np.full((2, 2), np.nan)]),
            r"logits 0 must be finite, but entry \(0, 0\) is nan",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0, rates=-1.0),
            r"rates of layer 0 must be positive, but the smallest is -1",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0, support=[np.zeros((2, 2), bool)]),
            r"support 0 must leave each column an entry",
        ),
        (
            lambda: wh.Network.random((1, 2), seed=0, imbalance=1e5),
            r"layer 0 must be positive on its support, but entry \(\d, 0\) is 0",
        ),
        (
            lambda: wh.predict(wh.Network([EVEN]), np.array([0.5, 0.5])),
            r"inputs must have 2 axes, but its shape is \(2,\)",
        ),
        (
            lambda: wh.predict(wh.Network([EVEN]), np.ones((1, 3)) / 3),
            r"inputs must have shape \(samples, 2\) .*, but its shape is \(1, 3\)",
        ),
        (
            lambda: wh.predict(wh.Network([EVEN]), np.ones((0, 2))),
            r"inputs must .* with at least one sample, but its shape is \(0, 2\)",
        ),
        (
            lambda: wh.predict(wh.Network([EVEN]), np.array([[np.nan, 1.0]])),
            r"inputs must be finite, but entry \(0, 0\) is nan",
        ),
        (
            lambda: wh.predict(wh.Network([EVEN]), np.array([[1.5, -0.5]])),
            r"inputs must be non-negative, but entry \(0, 1\) is -0.5",
        ),
        (
            lambda: wh.predict(wh.Network([EVEN]), EVEN + np.eye(2)),
            r"inputs must have rows of unit mass, but row 0 sums to 2",
        ),
        (
            lambda: wh.loss(wh.Network([EVEN]), EVEN, 0.9 * EVEN),
            r"targets must have rows of unit mass, but row 0 sums to 0.9",
        ),
        (
            lambda: wh.loss(wh.Network([EVEN]), EVEN, np.array([[-0.5, 1.5]])),
            r"targets must be non-negative, but entry \(0, 0\) is -0.5",
        ),
        (
            lambda: wh.loss(wh.Network([EVEN]), EVEN, np.ones((2, 1))),
            r"targets must have shape \(samples, 2\) .*, but its shape is \(2, 1\)",
        ),
        (
            lambda: wh.loss(wh.Network([EVEN]), EVEN, EVEN[:1]),
            r"targets must have one row per input, .* 1 targets and 2 inputs",
        ),
        (
            lambda: wh.residual(wh.Network([EVEN]), EVEN, np.full((2, 2), np.inf)),
            r"targets must be finite, but entry \(0, 0\) is inf",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: _check.array("inputs", [[1.0], [0.5, 0.5]], 2),
            r"inputs must be a rectangular array of numbers, .* different lengths",
        ),
        (lambda: _check.scalar("mu", np.ones(2)), r"mu must be a real number, but it is array"),
        (lambda: _check.scalar("mu", 0.0, above=0.0), r"mu must be greater than 0, but it is 0"),
        (
            lambda: _check.index("selected", 3, 3),
            r"selected must be a whole number from 0 to 2, but it is 3",
        ),
        (
            lambda: _check.index("selected", True, 3),
            r"selected must be a whole number from 0 to 2, but it is True",
        ),
        (
            lambda: _check.finite("the loss", jnp.asarray(np.nan)),
            r"the loss must be finite, but it overflowed or is undefined",
        ),
    ],
)
def test_every_door_refuses_in_the_same_grammar(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wh.Network([[[0.5, 1.0], [0.5]]]),
            r"layer 0 must be a rectangular array of numbers, .* different lengths",
        ),
        (
            lambda: wh.Network.random((2, 2.5), seed=0),
            r"widths must be positive whole numbers, but one is 2.5",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0.5),
            r"seed must be a non-negative whole number or a NumPy Generator, but it is 0.5",
        ),
        (
            lambda: wh.Network.random((2, 2), seed=0, imbalance="much"),
            r"imbalance must be a real number, but it is 'much'",
        ),
        (
            lambda: wh.predict(wh.Network([EVEN]), "flow"),
            r"inputs must hold real numbers, but its type is <U4",
        ),
    ],
)
def test_the_wrong_type_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_traced_values_are_not_looked_at():
    net = wh.Network([EVEN])
    bad = jax.jit(lambda inputs: wh.predict(net, inputs))(np.array([[2.0, 0.0]]))
    np.testing.assert_array_equal(bad, [[1.0, 1.0]])


SINGLE = """
import numpy as np
import whorl as wh

try:
    wh.Network([np.full((2, 2), 0.5)])
except ValueError as refusal:
    print(refusal)
net = wh.Network.random((3, 3, 3), seed=0, dtype=np.float32)
inputs = np.eye(3, dtype=np.float32)
targets = np.full((3, 3), 1 / 3, dtype=np.float32)
bent = wh.curvature(net, inputs, targets, selected=0, law=wh.rotational(base=wh.leaky(0.1)))
answer = wh.response(net, inputs) @ wh.residual(net, inputs, targets)
for value in (wh.predict(net, inputs), wh.loss(net, inputs, targets), answer, bent.bending, bent.coefficient, bent.ratio):
    print(value.dtype, np.isfinite(np.asarray(value)).all())
"""


@pytest.mark.slow
def test_double_precision_is_refused_in_32_bit_mode_and_single_precision_works_there():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", SINGLE],
        env=os.environ | {"JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    refusal, *values = run.stdout.splitlines()
    assert refusal == (
        "layer 0 must keep its 64 bits, but JAX runs in 32-bit mode and would round it: "
        "call jax.config.update('jax_enable_x64', True) first, or pass float32 arrays"
    )
    assert values == ["float32 True"] * 6


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wh.Network(3), "layers must be a list, but it is 3"),
        (lambda: wh.Network("abc"), "layers must be a list, but it is 'abc'"),
        (lambda: wh.Network.random(3, seed=1), "widths must be a list, but it is 3"),
        (lambda: wh.predict("net", np.eye(3)), "system must be a System, but it is 'net'"),
        (lambda: wh.loss(None, np.eye(3), np.eye(3)), "system must be a System, but it is None"),
        (lambda: wh.response(3, np.eye(3)), "system must be a System, but it is 3"),
        (lambda: wh.closed_loop(3, wh.direct()), "response must be a Response, but it is 3"),
        (lambda: wh.preconditioner(3, wh.direct()), "response must be a Response, but it is 3"),
        (lambda: wh.certify(np.eye(2)), "loop must be a ClosedLoop, but it is array"),
        (lambda: wh.dissipation(None, np.eye(2)), "loop must be a ClosedLoop, but it is None"),
        (lambda: wh.plot.waterfall(3), "ledger must be a Ledger, but it is 3"),
    ],
)
def test_an_object_of_the_wrong_kind_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


HALVES = [np.float16, jnp.bfloat16]


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("wrap", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_an_array_of_half_precision_is_refused_at_every_door(kind, wrap):
    column = wrap(np.array([[0.5], [0.5]]).astype(kind))
    doors = {
        "layer 0": lambda: wh.Network([column]),
        "block 0": lambda: wh.one_form(lambda point: point, [column]),
        "skew": lambda: wh.rotational(skew=column * column.T),
        "loop 0": lambda: wh.circulation(lambda point: point, [column]),
        "mu": lambda: wh.leaky(jnp.asarray(0.1, dtype=kind)),
    }
    for name, door in doors.items():
        with pytest.raises(
            ValueError,
            match=f"^{name} must be float32 or float64, but its type is {np.dtype(kind)}$",
        ):
            door()


@pytest.mark.parametrize("kind", [*HALVES, np.longdouble])
def test_a_random_network_is_single_or_double_and_nothing_else(kind):
    with pytest.raises(
        ValueError, match=f"^dtype must be float32 or float64, but it is {np.dtype(kind)}$"
    ):
        wh.Network.random((3, 3), seed=0, dtype=kind)


def test_a_network_cast_to_half_precision_is_refused_where_it_is_used():
    net = jax.tree.map(lambda leaf: leaf.astype(jnp.float16), wh.Network.random((3, 3), seed=0))
    with pytest.raises(
        ValueError, match=r"^inputs must be float32 or float64, but its type is float16$"
    ):
        wh.response(net, np.eye(3))
