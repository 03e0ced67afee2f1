"""The audit's own routes, against slower and plainer ones.

Written-out sums, finite differences, output-space solves, brute force.
"""

import math

import numpy as np
import pytest

from audit import forge
from whorl_audit import draws, expect, formulas, kinds, network, plane, values
from whorl_audit.kinds.structural import _outputs_solved, _updated, _weights_solved
from whorl_audit.kinds.threshold import auc, ordered_pairs

C = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
DEPTHS = (1, 2, 4)


def recompute(kind, p):
    return values.recompute(kinds.find(kind), p)


def networks(depth, number=3):
    inputs, targets = draws.tasks(11, number, 1.0)
    return (
        np.array([draws.softmax_layers(11, n, depth, 2.0, 0.1) for n in range(number)]),
        inputs,
        targets,
    )


def layer_sum(layers, inputs):
    """The joint response of one network by Eq. 13."""
    samples = len(inputs)
    flow, total = inputs.T, np.zeros((samples * 3, samples * 3))
    for n, layer in enumerate(layers):
        down = np.eye(3)
        for later in layers[n + 1 :]:
            down = later @ down
        for i in range(3):
            q = np.diag(layer[:, i]) - np.outer(layer[:, i], layer[:, i])
            total += np.kron(np.outer(flow[i], flow[i]), down @ q @ down.T)
        flow = layer @ flow
    return total


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_factor_has_the_layer_sum_for_its_gram_matrix(depth):
    layers, inputs, _ = networks(depth)
    factor = network.factor(network.jacobian(layers, inputs), layers).reshape(len(layers), 18, -1)
    for n in range(len(layers)):
        np.testing.assert_allclose(
            factor[n] @ factor[n].T, layer_sum(layers[n], inputs[n]), rtol=0, atol=1e-15
        )


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_turn_has_the_written_out_derivatives(depth):
    # Eqs. HV, A and B of the paper, with the second derivative of the product of layers as a sum
    # over pairs of them.
    layers, inputs, _ = networks(depth, 1)
    score = np.random.default_rng(0).standard_normal(layers.shape)
    moved, bent = network.turn(layers, inputs, score)
    p, s = layers[0], score[0] - (layers[0] * score[0]).sum(axis=1, keepdims=True)
    first = p * s
    second = p * (s**2 - (p * s**2).sum(axis=1, keepdims=True))

    def product(swapped):
        out = inputs[0].T
        for n in range(depth):
            out = swapped.get(n, p[n]) @ out
        return out.T

    once = sum(product({n: first[n]}) for n in range(depth))
    twice = sum(product({n: second[n]}) for n in range(depth))
    twice = twice + sum(
        2 * product({n: first[n], m: first[m]}) for n in range(depth) for m in range(n)
    )
    np.testing.assert_allclose(moved[0], once, rtol=0, atol=1e-14)
    np.testing.assert_allclose(bent[0], twice, rtol=0, atol=1e-14)


def test_the_plane_knows_the_quarter_turn():
    vectors = plane.out_of(np.random.default_rng(1).standard_normal((5, 2)))
    mixed = plane.out_of(plane.mix(plane.into(vectors), 0.3, 0.7))
    np.testing.assert_allclose(mixed, 0.3 * vectors + 0.7 * vectors @ C.T, rtol=0, atol=1e-15)


def test_an_eigenvalue_of_the_plane_is_that_of_lapack():
    operators = np.random.default_rng(2).standard_normal((20, 2, 2))
    for operator, real, imag in zip(operators, *plane.eigenvalue(operators), strict=True):
        wanted = max(np.linalg.eigvals(operator), key=lambda value: (value.imag, value.real))
        assert complex(real, imag) == pytest.approx(complex(wanted), abs=1e-13)


@pytest.mark.parametrize("route", [_outputs_solved, _weights_solved])
@pytest.mark.parametrize("depth", DEPTHS)
def test_gauss_newton_in_the_weights_is_the_leaky_solve_at_the_outputs(depth, route):
    layers, inputs, targets = networks(depth)
    moved = _updated(layers, (inputs, targets), {"leak": 0.1, "step": 0.05}, route, None)
    for n in range(len(layers)):
        error = (targets[n] - network.predict(layers[n : n + 1], inputs[n : n + 1])[0]).ravel()
        potential = np.linalg.solve(layer_sum(layers[n], inputs[n]) + 0.1 * np.eye(18), error)
        score = np.einsum(
            "solrc,so->lrc",
            network.jacobian(layers[n : n + 1], inputs[n : n + 1])[0],
            potential.reshape(6, 3),
        )
        np.testing.assert_allclose(
            moved[n], network.step(layers[n], score, 0.05), rtol=0, atol=1e-14
        )


def test_the_published_examples_come_out():
    p = forge.PARAMETERS["structural"] | {
        "positive_start": [1 / 3] * 3,
        "steps": [1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4],
    }
    coefficient = recompute("structural", p)["curvature"]["coefficient"].values
    np.testing.assert_allclose(coefficient[:7], -0.9271875, rtol=1e-14)
    np.testing.assert_allclose(coefficient[7:], 0.08 / 3, rtol=1e-14)


def test_a_trajectory_walked_slowly_is_the_one_that_was_simulated():
    # One network at a time, solves with the whole 3 x 3 response, second derivatives by central
    # differences of the path.
    p = forge.PARAMETERS["horizon"]
    rows, columns = (
        kinds.find("horizon").keys(p)["trajectories"],
        recompute("horizon", p)["updates"],
    )
    updates = 6 * p["epochs"]
    for at in (0, 13, 22, len(rows["trial"]) - 1):
        trial, depth, beta, scale, policy, flip = (
            rows[name][at] for name in ("trial", "depth", "beta", "scale", "policy", "flip")
        )
        inputs, targets = draws.task(p["seed"], int(trial), p["concentration"])
        samples, turns = draws.schedule(p["seed"], int(trial), p["epochs"])
        state = native = draws.softmax_layers(p["seed"], int(trial), int(depth), beta, p["floor"])
        for update in range(updates):
            x, y, turn = (
                inputs[samples[update]],
                targets[samples[update]],
                turns[update] * (1 - 2 * flip),
            )
            taken, size, amount = slow_update(state, x, y, turn, scale, policy)
            found = {
                name: columns[name].values[at * updates + update]
                for name in ("taken", "native", "size", "amount")
            }
            b = slow_scores(native, x, y)[0]
            state, native = taken, network.step(native, b, scale / max(1, np.ptp(b, axis=1).max()))
            losses = [
                0.5 * np.square(targets - slow_predict(net, inputs)).sum() / 6
                for net in (state, native)
            ]
            assert [*losses, size, amount] == pytest.approx(
                [found[name] for name in ("taken", "native", "size", "amount")], rel=1e-10
            )


def slow_predict(layers, inputs):
    for layer in layers:
        inputs = inputs @ layer.T
    return inputs


def slow_scores(layers, x, y):
    jac = network.jacobian(layers[None], x[None, None])[0, 0]
    operator = layer_sum(layers, x[None]) + 0.1 * np.eye(3)
    error = y - slow_predict(layers, x[None])[0]
    return [
        np.einsum("olrc,o->lrc", jac, np.linalg.solve(operator, part))
        for part in (error, C @ error)
    ]


def slow_update(layers, x, y, turn, scale, policy):
    b, r = slow_scores(layers, x, y)
    h = 1e-4
    ahead, here, behind = (
        slow_predict(network.step(layers, r, size), x[None])[0] for size in (h, 0.0, -h)
    )
    opened = (y - here) @ (ahead - 2 * here + behind) / h**2 > np.square(
        (ahead - behind) / (2 * h)
    ).sum()
    wide = (
        max(np.ptp(b + r, axis=1).max(), np.ptp(b - r, axis=1).max())
        if opened or policy == "step_matched"
        else np.ptp(b, axis=1).max()
    )
    size = scale / max(1, wide)
    return network.step(layers, b + turn * opened * r, size), size, float(opened)


def test_the_selected_sample_has_the_largest_residual():
    layers, inputs, targets = networks(2)
    residuals = [
        np.linalg.norm(targets[n] - slow_predict(layers[n], inputs[n]), axis=1)
        for n in range(len(layers))
    ]
    assert network.largest_residual(layers, inputs, targets).tolist() == [
        int(np.argmax(one)) for one in residuals
    ]


def test_the_area_under_the_curve_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(3)
    table = {"ratio": np.round(rng.normal(size=40), 1), "favourable": rng.integers(0, 2, 40)}
    chosen = rng.integers(0, 5, (7, 5))
    counts = (chosen[:, :, None] == np.arange(5)).sum(axis=1).astype(float)
    found = auc(counts, *ordered_pairs(table, 5))
    for resample, area in zip(chosen, found, strict=True):
        rows = np.concatenate([np.arange(8) + 8 * family for family in resample])
        ratio, yes = table["ratio"][rows], table["favourable"][rows] == 1
        pairs = [(a > b) + 0.5 * (a == b) for a in ratio[yes] for b in ratio[~yes]]
        assert area == pytest.approx(np.mean(pairs), rel=1e-13)
    assert auc(
        np.ones((1, 5)), *ordered_pairs(table | {"favourable": np.ones(40, dtype=int)}, 5)
    ).tolist() == [0.5]


def test_residuals_are_the_sums_that_they_are_said_to_be():
    table = {
        f"{name}_{k}": np.array([value])
        for name, row in (("velocity", (1, 2, 3)), ("commanded", (0.5, 4, 3.25)))
        for k, value in enumerate(row)
    }
    assert formulas.score_residual(table).tolist() == [0.5 + 2 + 0.25]
    weights = (
        np.full((3, 3, 3), 1 / 3)
        + np.array([0.0, 0.125, -0.25])[:, None, None] * np.eye(3)[0][:, None]
    )
    assert formulas.column_residual(weights.ravel(), np.array([2, 1])) == pytest.approx(
        [0.125, 0.25], rel=1e-15
    )
    response = np.diag([1.0, 2.0, 4.0]) + np.arange(9.0).reshape(3, 3)
    found = kinds.find("structural").derived["controls"](
        {"control_responses": {"response": response.ravel()}}, {}
    )["null_response"]
    assert found.values == pytest.approx(
        np.abs(response @ [1, 1, -2]).sum() / math.sqrt(6), rel=1e-15
    )


@pytest.mark.parametrize("tolerance", [1e-10, 1e-2])
def test_a_spectrum_counts_what_is_above_its_tolerance(tolerance):
    factor = np.diag([1.0, 0.5, 1e-3, 0.0])[None]
    rank, condition = plane.spectrum(factor, tolerance)
    assert (rank[0], condition[0]) == (
        (3, pytest.approx(1e6)) if tolerance == 1e-10 else (2, pytest.approx(4.0))
    )


def test_tolerances_are_measured_by_what_they_say():
    values = np.array([[0.04, 4e-8], [1.0, 0.25]])
    assert expect.loss(values).scale == pytest.approx([0.042, 2.04e-6, 1.01, 0.255], rel=1e-14)
    assert expect.loss(values, np.array([[2.0], [1.0]])).scale == pytest.approx(
        [0.084, 4.08e-6, 1.01, 0.255], rel=1e-14
    )
    assert expect.stretched(np.array([0.0, 1e3, 1e6])) == pytest.approx([1, 2, 1001], rel=1e-14)
    assert expect.condition(np.array([4.0, 1e4])).scale == pytest.approx([8, 1e6], rel=1e-14)
    parts = expect.components("v", np.array([[3.0, 4.0, 0.0]]), 2.0)
    assert [parts[f"v_{k}"].scale.item() for k in range(3)] == [10.0] * 3


def test_losses_behind_a_solve_with_a_small_leak_are_measured_by_it():
    found = recompute("horizon", forge.PARAMETERS["horizon"] | {"leak": 1e-3})["updates"]["taken"]
    assert found.scale == pytest.approx(
        (found.values + 1e-2 * np.sqrt(found.values)) * 2, rel=1e-13
    )


@pytest.mark.parametrize(("leak", "low", "high"), [(0.1, 1, 1), (1e-5, 2, 1e5), (1e-12, 1e5, 1e5)])
def test_losses_of_the_whole_task_are_measured_by_what_noise_leaves_of_them(leak, low, high):
    found = recompute("structural", forge.PARAMETERS["structural"] | {"leak": leak})[
        "trajectories"
    ]["loss"]
    share = (np.asarray(found.scale) / (found.values + 1e-2 * np.sqrt(found.values))).reshape(-1, 4)
    assert share[:, 0] == pytest.approx(1, rel=1e-13)  # nothing has moved yet
    assert low * (1 - 1e-9) <= share[:, 1:].max() <= high * (1 + 1e-9)


def test_the_gain_is_the_largest_eigenvalue_of_the_inverse_response():
    factor = np.random.default_rng(3).normal(size=(4, 3, 6))
    factor -= factor.mean(axis=1, keepdims=True)
    one = network.Selected(np.zeros((4, 2)), np.zeros((4, 3, 9)), factor, np.zeros((4, 2, 2)))
    smallest = np.sort(np.linalg.eigvalsh(factor @ factor.swapaxes(1, 2)), axis=1)[
        :, 1
    ]  # the first is the mean's, and zero
    np.testing.assert_allclose(one.gain, 1 / smallest, rtol=1e-12)
