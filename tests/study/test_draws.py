"""Random numbers follow from the page alone.

Plain NumPy draws them again, and no family minds its neighbours.
"""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from study import from_the_page
from whorl.study import draws
from whorl.study.kinds.structural import compute as structural
from whorl.turn import quarter_turn
from whorl_studies.budgets import draws as budgets
from whorl_studies.foresight import draws as ahead

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
    layers = structural.dirichlet_layers(SEED, 7, 3, 4.0, 0.2)
    for layer in layers:
        for column in range(3):
            np.testing.assert_array_equal(
                layer[:, column], mixed(rng.dirichlet([4.0, 4.0, 4.0]), 0.2)
            )


def test_softmax_columns_scale_the_same_logits():
    for beta in (0.0, 1.0, 8.0):
        rng = stream(7, 1, 2)
        layers = draws.softmax_layers(SEED, 7, 2, beta, 0.02)
        for layer in layers:
            logits = beta * rng.standard_normal((3, 3))
            grown = np.exp(logits - logits.max(axis=0))
            np.testing.assert_array_equal(
                layer, (1 - 0.02) * grown / ((grown[0] + grown[1]) + grown[2]) + 0.02 / 3
            )
    np.testing.assert_array_equal(draws.softmax_layers(SEED, 7, 2, 0.0, 0.02), 1 / 3)


def test_the_control_has_two_components():
    rng = stream(0, 4, 2)
    for layer in structural.control_layers(SEED, 2, 4.0, 0.2):
        for column in range(2):
            np.testing.assert_array_equal(layer[:2, column], 0.8 * rng.dirichlet([4.0, 4.0]) + 0.1)
        np.testing.assert_array_equal(layer[2], [0, 0, 1])
        np.testing.assert_array_equal(layer[:2, 2], 0)


def test_orders_are_permutations_and_turns_are_signs():
    rng = stream(7, 2)
    np.testing.assert_array_equal(
        draws.order(SEED, 7, 5), np.concatenate([rng.permutation(6) for _ in range(5)])
    )
    np.testing.assert_array_equal(
        draws.turns(SEED, 7, 30), np.where(stream(7, 3).integers(0, 2, 30) == 1, 1, -1)
    )


def test_a_longer_run_begins_as_a_shorter_one():
    np.testing.assert_array_equal(draws.order(SEED, 1, 9)[:18], draws.order(SEED, 1, 3))


def test_the_selected_sample_has_the_largest_residual():
    inputs, targets = draws.task(SEED, 3, 1.0)
    layers = draws.softmax_layers(SEED, 3, 2, 4.0, 0.1)
    residuals = targets - inputs @ (layers[1] @ layers[0]).T
    assert draws.largest_residual(layers, inputs, targets) == np.argmax(
        np.linalg.norm(residuals, axis=1)
    )


@pytest.mark.parametrize(
    "make",
    [
        draws.task,
        lambda s, f, c: structural.dirichlet_layers(s, f, 2, c, 0.2),
        draws.order,
        draws.turns,
    ],
)
def test_seeds_and_families_have_streams_of_their_own(make):
    def flat(seed, family):
        return np.concatenate([np.ravel(part) for part in make(seed, family, 12)]).tolist()

    assert flat(1, 0) == flat(1, 0)
    assert flat(1, 0) != flat(2, 0)
    assert flat(1, 0) != flat(1, 1)


P = {
    "seed": SEED,
    "concentration": 0.7,
    "column_concentration": 2.5,
    "floor": 0.13,
    "epochs": 4,
    "wide": 6,
}


def test_the_page_fixes_every_draw_of_width_three():
    for number in (0, 11):
        for mine, theirs in zip(
            draws.task(SEED, number, 0.7), from_the_page.task(P, number), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(
            structural.dirichlet_layers(SEED, number, 3, 2.5, 0.13),
            from_the_page.dirichlet_columns(P, number, 3),
        )
        for beta in (0.0, 0.3, 8.0):
            layers = draws.softmax_layers(SEED, number, 6, beta, 0.13)
            np.testing.assert_array_equal(layers, from_the_page.softmax_columns(P, number, 6, beta))
        np.testing.assert_array_equal(
            draws.order(SEED, number, 4), from_the_page.order(P, number, 2)
        )
        np.testing.assert_array_equal(
            ahead.foreseen(SEED, number, 4), from_the_page.order(P, number, 6)
        )
        np.testing.assert_array_equal(draws.turns(SEED, number, 24), from_the_page.turns(P, number))
        np.testing.assert_array_equal(
            ahead.angles(SEED, number, 24), from_the_page.angles(P, number)
        )
        np.testing.assert_array_equal(
            ahead.readings(SEED, number, 24), from_the_page.noise(P, number)
        )
    np.testing.assert_array_equal(
        structural.control_layers(SEED, 4, 2.5, 0.13), from_the_page.control_columns(P, 4)
    )


@pytest.mark.parametrize("number", [ahead.WIDE, budgets.WIDE])
@pytest.mark.parametrize("width", [4, 6])
def test_the_page_fixes_every_draw_of_a_wide_arm(width, number):
    assert (ahead.WIDE, budgets.WIDE) == (8, 15)
    x, y, layers, order = from_the_page.wide_arm(P | {"wide": width}, 3, 2, 4.0, number)
    for mine, theirs in zip(draws.wide(SEED, 3, number, width, 0.7, 4), (x, y, order), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(draws.wide_layers(SEED, 3, number, 2, 4.0, width, 0.13), layers)


def test_the_page_fixes_the_sign_of_the_turn():
    np.testing.assert_allclose(quarter_turn(3), from_the_page.C, rtol=0, atol=1e-15)
    for width in (3, 4, 6, 7):
        np.testing.assert_allclose(
            quarter_turn(width), from_the_page.circulant(width), rtol=0, atol=1e-14
        )
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    assert "(1 / sqrt 3) times the rows (0, -1, 1), (1, 0, -1), (-1, 1, 0)" in page


def test_the_program_written_from_the_page_shares_no_code_with_the_library():
    tree = ast.parse(Path(from_the_page.__file__).read_text())
    plain = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    named = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name for name in (*plain, *named) if name not in sys.stdlib_module_names} == {"numpy"}
