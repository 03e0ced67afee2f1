"""The page of equations names functions and tests that exist, tests that call the functions, and
leaves no equation out.
"""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "equations.md"
# What a test may lean on that is not the library: the paper's formulas in NumPy, other packages,
# exact arithmetic, plain algebra.
OUTSIDE = {"oracle", "replicator_dynamics", "Fraction", "expm", "solve_ivp", "linalg", "fsum"}
BY_HAND = {"9", "S1"}  # rows whose tests hold numbers that were found by hand, or printed


def rows(text):
    """Label, functions and tests of every row."""
    lines = [
        line.strip("|").split("|")
        for line in text.splitlines()
        if re.match(r"\| (\d|[ABCS]\d|Prop)", line)
    ]
    return [
        (label.strip(), *(re.findall(r"`([^`]+)`", cell) for cell in cells))
        for label, _, *cells in lines
    ]


@cache
def defined(file):
    """What a test file defines at its top level, by name."""
    found = {}
    for node in ast.parse((HERE / file).read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        for target in targets:
            names = (
                [leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
                if isinstance(node, ast.Assign)
                else []
            )
            found |= dict.fromkeys(
                [*names, *([target.name] if hasattr(target, "name") else [])], node
            )
    return found


def mentioned(file, test):
    """Every name that a test uses, itself or through what its file defines.

    Fixtures, helpers, tables.
    """
    known, seen, waiting = defined(file), set(), [test]
    while waiting:
        for node in ast.walk(known[waiting.pop()]):
            name = (
                getattr(node, "id", None)
                or getattr(node, "attr", None)
                or getattr(node, "arg", None)
            )
            name = "__matmul__" if isinstance(node, ast.MatMult) else name
            if isinstance(name, str) and name not in seen:
                seen.add(name)
                waiting += [name] if name in known else []
    return seen


def faults(row):
    """What is wrong with a row.

    Names that do not exist, functions that no test of the row calls, tests without a second route.
    """
    label, functions, tests = row
    used = set()
    for test in tests:
        file, name = test.split("::")
        if not (HERE / file).exists() or name not in defined(file):
            yield f"{test} does not exist"
        else:
            used |= mentioned(file, name)
    for function in functions:
        module, *path = function.split(".")
        found = importlib.import_module(f"whorl.{module}")
        for name in path:
            found = getattr(found, name, None)
        if found is None:
            yield f"{function} does not exist"
        if path[-1] not in used:
            yield f"no test calls {function}"
    if not (used & OUTSIDE or label in BY_HAND):
        yield "no test has a second route"
    if not (functions and tests):
        yield "nothing is named"


def test_every_numbered_equation_and_proposition_has_its_row():
    labels = [row[0] for row in rows(PAGE.read_text())]
    numbers = [
        *map(str, range(1, 28)),
        *(
            f"{part}{n}"
            for part, count in (("A", 3), ("B", 3), ("C", 7), ("S", 1))
            for n in range(1, count + 1)
        ),
    ]
    assert sorted(labels) == sorted([*numbers, "Proposition 1", "Proposition 2", "Proposition 3"])


@pytest.mark.parametrize("row", rows(PAGE.read_text()), ids=lambda row: row[0])
def test_a_row_names_functions_and_tests_that_check_them(row):
    assert list(faults(row)) == []


@pytest.mark.parametrize(
    ("functions", "test", "fault"),
    [
        (
            "simplex.covariances",
            "test_covariance_is_the_matrix_that_velocity_applies",
            "simplex.covariances does not exist",
        ),
        (
            "simplex.covariance",
            "test_covariance",
            "test_simplex.py::test_covariance does not exist",
        ),
        (
            "simplex.reduce",
            "test_covariance_is_the_matrix_that_velocity_applies",
            "no test calls simplex.reduce",
        ),
        ("simplex.step", "test_a_frozen_column_is_exactly_still", "no test has a second route"),
    ],
)
def test_a_row_that_names_nothing_or_tests_nothing_is_found(functions, test, fault):
    assert fault in list(faults(("2", [functions], [f"test_simplex.py::{test}"])))
