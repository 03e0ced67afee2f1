"""The content of tables.

Every column against what the seed, the physics or its formula gives, and the statistics.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from whorl_audit.computed import recompute
from whorl_audit.computed.structural import COLUMN
from whorl_audit.derived import DERIVED
from whorl_audit.finding import Finding, counted, impossible, measured
from whorl_audit.rows import label
from whorl_audit.schema import TABLES
from whorl_audit.statistics import STATISTICS
from whorl_audit.statistics.common import APART, EPSILON, ROUNDOFF
from whorl_audit.types import BrokenError, Columns, Expected, Parameters, Table, Tables

_CLAIMS = {
    "drawn": "follows from the seed",
    "computed": "follows from the physics by another route",
    "derived": "follows from other columns by its formula",
}
_tolerant = np.errstate(
    all="ignore"
)  # a tampered value may be anything; what is not finite fails as such


def _compare(kind: str, name: str, table: Table, columns: Columns) -> Iterator[Finding]:
    """One finding for every column of a table that is expected."""
    roles = {column.name: column.role for column in TABLES[kind][name]}
    keys = {column: values for column, values in table.items() if roles[column] == "key"}
    for column, expected in columns.items():
        errors = expected.errors(table[column])
        at = int(np.argmax(errors))
        claim = f"{name}.{column} {_CLAIMS[roles[column]]}"
        yield measured(
            claim, errors[at], expected.tolerance, f"{name}.{column} at {label(keys, at)}"
        )


@_tolerant
def _judge(kind: str, name: str, tables: Tables, columns: Callable[[], Columns]) -> list[Finding]:
    """The findings on a table, or the one that a table it rests on is broken."""
    try:
        return list(_compare(kind, name, tables[name], columns()))
    except BrokenError as error:
        why = f"{name} needs {error.args[0]}, which does not have its columns and rows"
        return [impossible(f"{name} follows from the design and the tables", why)]


@_tolerant
def statistics(kind: str, p: Parameters, tables: Tables) -> dict[str, Expected] | None:
    """The statistics of tables that have their columns and rows, or None where one does not."""
    try:
        return STATISTICS[kind](tables, p)
    except BrokenError:
        return None


@_tolerant
def _statistics(expected: dict[str, Expected] | None, tables: Tables) -> list[Finding]:
    if expected is None or "statistics" not in tables:
        return [
            impossible(
                "the statistics follow from the tables",
                "a table that they need does not have its columns and rows",
            )
        ]
    table = tables["statistics"]
    stored = dict(zip(table["name"].tolist(), table["value"].tolist(), strict=True))
    moved = [name for name, wanted in zip(stored, expected, strict=False) if name != wanted]
    findings = [
        counted(
            "every statistic is there, and no other",
            sorted(set(stored) ^ set(expected)),
            "statistics",
        ),
        counted("the statistics are in their order", moved, "statistics"),
    ]
    for name in [name for name in expected if name in stored]:
        error = float(expected[name].errors(np.asarray(stored[name])))
        claim = f"statistic {name} follows from the tables"
        findings.append(
            measured(claim, error, expected[name].tolerance, f"statistics.value at name={name}")
        )
    return findings


@_tolerant
def own(kind: str, p: Parameters, tables: Tables) -> tuple[Tables, dict[str, float]] | None:
    """Our own tables and statistics.

    Every drawn, computed and derived column ours, and only what nobody recomputes as it is stored.
    """
    mine = Tables({name: dict(table) for name, table in tables.items()})
    try:
        for name, columns in recompute(kind, p).items():
            mine[name] |= {column: one.values for column, one in columns.items()}
        for name, formula in DERIVED[kind].items():
            mine[name] |= {column: one.values for column, one in formula(mine, p).items()}
        return mine, {name: float(one.values) for name, one in STATISTICS[kind](mine, p).items()}
    except BrokenError:
        return None


def _grown(kind: str, p: Parameters) -> dict[str, float]:
    """How large a residual may become where the dynamics makes round-off grow, as our own noisy
    trajectories show.
    """
    if kind != "structural":
        return {}
    room = 0.0
    for one in recompute(kind, p)["trajectory_weights"].values():
        scale = np.asarray(one.scale)
        room += float(
            np.max(one.tolerance * scale[scale > np.maximum(one.values, COLUMN)], initial=0.0)
        )
    return {"discrepancy.max": room}


@_tolerant
def roundoff(
    kind: str, p: Parameters, tables: Tables, mine: tuple[Tables, dict[str, float]]
) -> Iterator[Finding]:
    """Judge what is left of identities.

    No more than a hundred times what is left of ours, and no less than a hundredth.

    The columns behind an identity may differ from ours by more than the bound of its gate, so that
    a changed residual could hide there.
    """
    table, (own_tables, ours), grown = tables["statistics"], mine, _grown(kind, p)
    stored = dict(zip(table["name"].tolist(), table["value"].tolist(), strict=True))
    for name, place in ROUNDOFF.items():
        if name in stored and name in ours:
            most = max(APART * max(ours[name], EPSILON), grown.get(name, 0.0))
            sure = place is not None and (own_tables[place[0]][place[1]] > 0).sum() >= place[2]
            least = ours[name] / APART if sure else 0.0
            error = (
                math.inf
                if least > stored[name] == 0
                else max(stored[name] / most, least / (stored[name] or 1.0))
            )
            yield measured(
                f"statistic {name} is as large as round-off is",
                error,
                1.0,
                f"statistics.value at name={name}",
            )


def check(
    kind: str, p: Parameters, tables: Tables, expected: dict[str, Expected] | None
) -> Iterator[Finding]:
    """Judge every value of every table; `expected` are the statistics."""
    for name, columns in recompute(kind, p).items():
        yield from _judge(kind, name, tables, lambda columns=columns: columns)
    for name, formula in DERIVED[kind].items():
        yield from _judge(kind, name, tables, lambda formula=formula: formula(tables, p))
    yield from _statistics(expected, tables)
