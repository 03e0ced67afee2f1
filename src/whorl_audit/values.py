"""Check the content of tables.

Every column against what the seed, the physics or its formula gives, and the statistics.
"""

import json
import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from whorl_audit.finding import Finding, counted, impossible, measured
from whorl_audit.kinds import Kind
from whorl_audit.rows import label
from whorl_audit.types import BrokenError, Columns, Expected, Parameters, Table, Tables

EPSILON = 2.0**-52
APART = 100.0  # two sound programs do not differ by more in what round-off leaves of an identity
_CLAIMS = {
    "drawn": "follows from the seed",
    "computed": "follows from the physics by another route",
    "derived": "follows from other columns by its formula",
}
_WHERE = "statistics.value at name={}"
# a tampered value may be anything; what is not finite fails as such
_tolerant = np.errstate(all="ignore")


@lru_cache(maxsize=8)
def _recompute(kind: Kind, text: str) -> dict[str, Columns]:
    return kind.expected(json.loads(text))


def recompute(kind: Kind, p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column, by table.

    Nothing in it comes from a table, so that it is made once for all audits of a design.
    """
    return _recompute(kind, json.dumps(p, sort_keys=True))


def _compare(kind: Kind, name: str, table: Table, columns: Columns) -> Iterator[Finding]:
    """One finding for every column of a table that is expected."""
    roles = {column.name: column.role for column in kind.columns[name]}
    keys = {column: values for column, values in table.items() if roles[column] == "key"}
    for column, expected in columns.items():
        errors = expected.errors(table[column])
        at = int(np.argmax(errors))
        claim, where = f"{name}.{column} {_CLAIMS[roles[column]]}", f"at {label(keys, at)}"
        yield measured(claim, errors[at], expected.tolerance, f"{name}.{column} {where}")


@_tolerant
def _judge(kind: Kind, name: str, tables: Tables, columns: Callable[[], Columns]) -> list[Finding]:
    """The findings on a table, or the one that a table it rests on is broken."""
    try:
        return list(_compare(kind, name, tables[name], columns()))
    except BrokenError as error:
        why = f"{name} needs {error.args[0]}, which does not have its columns and rows"
        return [impossible(f"{name} follows from the design and the tables", why)]


@_tolerant
def statistics(kind: Kind, p: Parameters, tables: Tables) -> dict[str, Expected] | None:
    """The statistics of tables that have their columns and rows, or None where one does not."""
    try:
        return kind.statistics(tables, p)
    except BrokenError:
        return None


@_tolerant
def _statistics(expected: dict[str, Expected] | None, tables: Tables) -> list[Finding]:
    if expected is None or "statistics" not in tables:
        why = "a table that they need does not have its columns and rows"
        return [impossible("the statistics follow from the tables", why)]
    stored = _stored(tables)
    moved = [name for name, wanted in zip(stored, expected, strict=False) if name != wanted]
    apart = sorted(set(stored) ^ set(expected))
    findings = [
        counted("every statistic is there, and no other", apart, "statistics"),
        counted("the statistics are in their order", moved, "statistics"),
    ]
    for name in [name for name in expected if name in stored]:
        error = float(expected[name].errors(np.asarray(stored[name])))
        claim, where = f"statistic {name} follows from the tables", _WHERE.format(name)
        findings.append(measured(claim, error, expected[name].tolerance, where))
    return findings


def _stored(tables: Tables) -> dict[str, float]:
    table = tables["statistics"]
    return dict(zip(table["name"].tolist(), table["value"].tolist(), strict=True))


@_tolerant
def own(kind: Kind, p: Parameters, tables: Tables) -> tuple[Tables, dict[str, float]] | None:
    """Our own tables and statistics.

    Drawn, computed and derived columns are ours; what cannot be recomputed is as stored.
    """
    mine = Tables({name: dict(table) for name, table in tables.items()})
    try:
        for name, columns in recompute(kind, p).items():
            mine[name] |= {column: one.values for column, one in columns.items()}
        for name, formula in kind.derived.items():
            mine[name] |= {column: one.values for column, one in formula(mine, p).items()}
        return mine, {name: float(one.values) for name, one in kind.statistics(mine, p).items()}
    except BrokenError:
        return None


def _units(kind: Kind, p: Parameters, mine: Tables) -> dict[str, float]:
    """What is left of identities where every column is one unit in the last place of its size off.

    A column that is the difference of large numbers, or comes from a solve, has the unit of those.
    """
    rng, off = np.random.default_rng(0), Tables({name: dict(table) for name, table in mine.items()})
    for name, columns in recompute(kind, p).items():
        for column, one in columns.items():
            if one.tolerance > 0:
                size = np.abs(one.values) if one.scale is None else one.scale
                off[name][column] = one.values + EPSILON * size * rng.choice(
                    (-1.0, 1.0), size.shape
                )
    places = {name: place for name, place in kind.roundoff.items() if place is not None}
    tables = {table for table, _, _ in places.values()}
    left = {table: kind.derived[table](off, p) for table in tables}
    return {
        name: max(EPSILON, float(left[table][column].values.max()))
        for name, (table, column, _) in places.items()
    }


@_tolerant
def roundoff(
    kind: Kind, p: Parameters, tables: Tables, mine: tuple[Tables, dict[str, float]]
) -> Iterator[Finding]:
    """Judge what is left of identities.

    No more than a hundred times what is left of ours, and no less than a hundredth. Ours may leave
    less than one unit in the last place by chance; then a hundred times what such units leave.

    The columns behind an identity may differ from ours by more than the bound of its gate, so that
    a changed residual could hide there.
    """
    stored, (own_tables, ours) = _stored(tables), mine
    grown, units = kind.grown(recompute(kind, p)), _units(kind, p, own_tables)
    for name, place in kind.roundoff.items():
        if name in stored and name in ours:
            most = max(APART * max(ours[name], units.get(name, EPSILON)), grown.get(name, 0.0))
            sure = place is not None and (own_tables[place[0]][place[1]] > 0).sum() >= place[2]
            least = ours[name] / APART if sure else 0.0
            bare = least > stored[name] == 0
            error = max(stored[name] / most, least / (stored[name] or 1.0))
            claim = f"statistic {name} is as large as round-off is"
            yield measured(claim, math.inf if bare else error, 1.0, _WHERE.format(name))


def check(
    kind: Kind, p: Parameters, tables: Tables, expected: dict[str, Expected] | None
) -> Iterator[Finding]:
    """Judge every value of every table; `expected` are the statistics."""
    for name, columns in recompute(kind, p).items():
        yield from _judge(kind, name, tables, lambda columns=columns: columns)
    for name, formula in kind.derived.items():
        yield from _judge(kind, name, tables, lambda formula=formula: formula(tables, p))
    yield from _statistics(expected, tables)
