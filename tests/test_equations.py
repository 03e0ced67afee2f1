"""The page of equations names functions and tests that exist, and leaves no equation out."""

import importlib
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "equations.md"


def rows(text):
    return [
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if re.match(r"\| (\d|[ABC]\d|Prop)", line)
    ]


def missing(row):
    """What of a row does not exist: the function, the test, or nothing."""
    _, _, function, test = row
    module, *names = function.strip("`").split(".")
    found = importlib.import_module(f"whorl.{module}")
    for name in names:
        found = getattr(found, name, None)
    file, name = test.strip("`").split("::")
    defined = f"def {name}(" in (HERE / file).read_text()
    return None if found is not None and defined else (function, test)


def test_every_numbered_equation_and_proposition_has_its_row():
    labels = [row[0] for row in rows(PAGE.read_text())]
    numbers = [str(n) for n in range(1, 28)] + [f"A{n}" for n in (1, 2, 3)] + [f"B{n}" for n in (1, 2, 3)] + [f"C{n}" for n in range(1, 8)]
    assert sorted(labels) == sorted([*numbers, "Proposition 1", "Proposition 2", "Proposition 3"])


@pytest.mark.parametrize("row", rows(PAGE.read_text()), ids=lambda row: row[0])
def test_a_row_names_a_function_and_a_test_that_exist(row):
    assert missing(row) is None


@pytest.mark.parametrize(
    "row",
    [
        ("2", "", "`simplex.covariances`", "`test_simplex.py::test_covariance_is_the_matrix_that_velocity_applies`"),
        ("2", "", "`simplex.covariance`", "`test_simplex.py::test_covariance`"),
    ],
)
def test_a_row_that_names_nothing_is_found(row):
    assert missing(row) is not None
