"""The content of tables: every column against what the seed, the physics or its formula gives, and the statistics."""

from collections.abc import Iterator

import numpy as np

from whorl_audit.computed import recompute
from whorl_audit.derived import DERIVED
from whorl_audit.finding import Finding, counted, impossible, measured
from whorl_audit.rows import label
from whorl_audit.schema import TABLES
from whorl_audit.statistics import STATISTICS
from whorl_audit.types import BrokenError, Columns, Expected, Parameters, Table, Tables

_CLAIMS = {
    "drawn": "follows from the seed",
    "computed": "follows from the physics by another route",
    "derived": "follows from other columns by its formula",
}


def compare(kind: str, name: str, table: Table, columns: Columns) -> Iterator[Finding]:
    """One finding for every column of a table that is expected."""
    roles = {column.name: column.role for column in TABLES[kind][name]}
    keys = {column: values for column, values in table.items() if roles[column] == "key"}
    for column, expected in columns.items():
        errors = expected.errors(table[column])
        at = int(np.argmax(errors))
        claim = f"{name}.{column} {_CLAIMS[roles[column]]}"
        yield measured(claim, errors[at], expected.tolerance, f"{name}.{column} at {label(keys, at)}")


def _needs(table: str, error: BrokenError) -> Finding:
    return impossible(f"{table} follows from its tables", f"{table} needs {error.args[0]}, which does not have its columns and rows")


def _given(kind: str, p: Parameters, tables: Tables) -> Iterator[Finding]:
    for name, columns in recompute(kind, p).items():
        try:
            yield from compare(kind, name, tables[name], columns)
        except BrokenError as error:
            yield _needs(name, error)


def _derived(kind: str, p: Parameters, tables: Tables) -> Iterator[Finding]:
    for name, formula in DERIVED[kind].items():
        try:
            yield from compare(kind, name, tables[name], formula(tables, p))
        except BrokenError as error:
            yield _needs(name, error)


def statistics(kind: str, p: Parameters, tables: Tables) -> dict[str, Expected] | None:
    """The statistics of tables that have their columns and rows, or None where one does not."""
    try:
        return STATISTICS[kind](tables, p)
    except BrokenError:
        return None


def _statistics(expected: dict[str, Expected] | None, tables: Tables) -> Iterator[Finding]:
    if expected is None or "statistics" not in tables:
        yield impossible("the statistics follow from the tables", "a table that they need does not have its columns and rows")
        return
    table = tables["statistics"]
    stored = dict(zip(table["name"].tolist(), table["value"].tolist(), strict=True))
    yield counted("every statistic is there, and no other", sorted(set(stored) ^ set(expected)), "statistics")
    moved = [name for name, wanted in zip(stored, expected, strict=False) if name != wanted]
    yield counted("the statistics are in their order", moved, "statistics")
    for name in expected:
        if name in stored:
            error = float(expected[name].errors(np.asarray(stored[name])))
            yield measured(f"statistic {name} follows from the tables", error, expected[name].tolerance, f"statistics.value at name={name}")


def check(kind: str, p: Parameters, tables: Tables) -> Iterator[Finding]:
    """Judge every value of every table."""
    with np.errstate(all="ignore"):  # a tampered value may be anything; what is not finite fails as such
        yield from _derived(kind, p, tables)
        yield from _given(kind, p, tables)
        yield from _statistics(statistics(kind, p, tables), tables)
