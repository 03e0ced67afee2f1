"""Random numbers follow from the page alone: plain NumPy draws them again, and no family minds its neighbours."""

import numpy as np
import pytest

from whorl.study import draws

SEED = 20261021


def stream(*key):
    return np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=key))


def mixed(column, floor):
    return (1 - floor) * column + floor / 3


def test_a_task_is_three_vertices_three_mixtures_and_a_teacher():
    rng = stream(7, 0)
    mixtures = np.stack([rng.dirichlet([1.0, 1.0, 1.0]) for _ in range(3)])
    teacher = np.stack([rng.dirichlet([3.0, 3.0, 3.0]) for _ in range(3)])
    inputs, targets = draws.task(SEED, 7, 3.0)
    np.testing.assert_array_equal(inputs, np.vstack([np.eye(3), mixtures]))
    np.testing.assert_array_equal(targets, inputs @ teacher)
    np.testing.assert_allclose(targets.sum(axis=1), 1, atol=1e-15)


def test_dirichlet_columns_are_drawn_layer_after_layer_column_after_column():
    rng = stream(7, 1, 3)
    layers = draws.dirichlet_layers(SEED, 7, 3, 4.0, 0.2)
    for layer in layers:
        for column in range(3):
            np.testing.assert_array_equal(layer[:, column], mixed(rng.dirichlet([4.0, 4.0, 4.0]), 0.2))


def test_softmax_columns_scale_the_same_logits():
    for beta in (0.0, 1.0, 8.0):
        rng = stream(7, 1, 2)
        layers = draws.softmax_layers(SEED, 7, 2, beta, 0.02)
        for layer in layers:
            grown = np.exp(beta * rng.standard_normal((3, 3)))
            np.testing.assert_allclose(layer, mixed(grown / grown.sum(axis=0), 0.02), rtol=1e-14)
    np.testing.assert_array_equal(draws.softmax_layers(SEED, 7, 2, 0.0, 0.02), 1 / 3)


def test_the_control_has_two_components():
    rng = stream(0, 4, 2)
    for layer in draws.control_layers(SEED, 2, 4.0, 0.2):
        for column in range(2):
            np.testing.assert_array_equal(layer[:2, column], 0.8 * rng.dirichlet([4.0, 4.0]) + 0.1)
        np.testing.assert_array_equal(layer[2], [0, 0, 1])
        np.testing.assert_array_equal(layer[:2, 2], 0)


def test_orders_are_permutations_and_turns_are_signs():
    rng = stream(7, 2)
    np.testing.assert_array_equal(draws.order(SEED, 7, 5), np.concatenate([rng.permutation(6) for _ in range(5)]))
    np.testing.assert_array_equal(draws.turns(SEED, 7, 30), np.where(stream(7, 3).integers(0, 2, 30) == 1, 1, -1))


def test_a_longer_run_begins_as_a_shorter_one():
    np.testing.assert_array_equal(draws.order(SEED, 1, 9)[:18], draws.order(SEED, 1, 3))


def test_the_selected_sample_has_the_largest_residual():
    inputs, targets = draws.task(SEED, 3, 1.0)
    layers = draws.softmax_layers(SEED, 3, 2, 4.0, 0.1)
    residuals = targets - inputs @ (layers[1] @ layers[0]).T
    assert draws.largest_residual(layers, inputs, targets) == np.argmax(np.linalg.norm(residuals, axis=1))


@pytest.mark.parametrize("make", [draws.task, lambda s, f, c: draws.dirichlet_layers(s, f, 2, c, 0.2), draws.order, draws.turns])
def test_seeds_and_families_have_streams_of_their_own(make):
    def flat(seed, family):
        return np.concatenate([np.ravel(part) for part in make(seed, family, 12)]).tolist()

    assert flat(1, 0) == flat(1, 0)
    assert flat(1, 0) != flat(2, 0)
    assert flat(1, 0) != flat(1, 1)
