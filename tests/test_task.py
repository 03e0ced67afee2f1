"""A task is vertices and mixtures, a teacher that conserves mass, and the same numbers for the same
seed.
"""

import numpy as np
import pytest

import whorl as wh


def test_the_inputs_are_the_vertices_and_then_the_mixtures():
    inputs = np.asarray(wh.Task.random(4, 3, seed=0, mixtures=5).inputs)
    assert inputs.shape == (9, 4)
    np.testing.assert_array_equal(inputs[:4], np.eye(4))
    assert (inputs[4:] > 0).all()
    np.testing.assert_allclose(inputs.sum(axis=1), 1, rtol=0, atol=1e-15)


def test_a_task_has_three_mixtures_unless_told_otherwise():
    assert wh.Task.random(3, 3, seed=0).inputs.shape == (6, 3)
    assert wh.Task.random(3, 3, seed=0, mixtures=0).inputs.shape == (3, 3)


def test_the_targets_are_what_one_column_stochastic_teacher_makes_of_the_inputs():
    task = wh.Task.random(4, 3, seed=0, mixtures=5)
    teacher = np.asarray(task.targets)[:4].T
    assert (teacher > 0).all()
    np.testing.assert_allclose(teacher.sum(axis=0), 1, rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        task.targets, np.asarray(task.inputs) @ teacher.T, rtol=0, atol=1e-15
    )


def test_a_network_can_solve_the_task_it_was_given():
    task = wh.Task.random(3, 3, seed=5)
    assert wh.loss(wh.Network([np.asarray(task.targets)[:3].T]), task.inputs, task.targets) < 1e-30


def test_a_seed_means_what_numpy_says():
    task, rng = wh.Task.random(3, 2, seed=11, concentration=2.0), np.random.default_rng(11)
    mixtures, columns = rng.dirichlet(np.ones(3), size=3), rng.dirichlet(np.full(2, 2.0), size=3)
    np.testing.assert_array_equal(np.asarray(task.inputs)[3:], mixtures)
    np.testing.assert_array_equal(np.asarray(task.targets)[:3], columns)


def test_a_generator_serves_as_a_seed_and_moves_on():
    rng = np.random.default_rng(11)
    first, second = wh.Task.random(3, 3, seed=rng), wh.Task.random(3, 3, seed=rng)
    np.testing.assert_array_equal(first.targets, wh.Task.random(3, 3, seed=11).targets)
    assert not np.array_equal(first.targets, second.targets)


def test_other_seeds_give_other_tasks():
    one, other = (np.asarray(wh.Task.random(3, 3, seed=seed).targets) for seed in (0, 1))
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize(
    ("concentration", "least", "most"), [(1e-2, 0.9, 1.0), (1e6, 0.333, 0.336)]
)
def test_the_concentration_says_how_even_the_teachers_columns_are(concentration, least, most):
    heaviest = np.asarray(
        wh.Task.random(50, 3, seed=0, mixtures=0, concentration=concentration).targets
    ).max(axis=1)
    assert least < np.median(heaviest) <= most


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"inputs": 0}, "widths must be positive whole numbers, but one is 0$"),
        ({"outputs": -2}, "widths must be positive whole numbers, but one is -2$"),
        ({"mixtures": -1}, "mixtures must be a whole number of at least 0, but it is -1$"),
        ({"mixtures": True}, "mixtures must be a whole number of at least 0, but it is True$"),
        ({"concentration": 0.0}, "concentration must be greater than 0, but it is 0$"),
        ({"concentration": np.nan}, "concentration must be finite, but its value is nan$"),
        (
            {"seed": -1},
            "seed must be a non-negative whole number or a NumPy Generator, but it is -1$",
        ),
        (
            {"seed": True},
            "seed must be a non-negative whole number or a NumPy Generator, but it is True$",
        ),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        wh.Task.random(**({"inputs": 3, "outputs": 3, "seed": 0} | options))
