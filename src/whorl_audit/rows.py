"""The shape of tables.

Which there are, their columns, types and roles, no gaps, and exactly the rows that the design asks
for.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from whorl_audit.finding import Finding, counted, impossible
from whorl_audit.kinds import Column, Kind
from whorl_audit.spec import REAL, WORD
from whorl_audit.types import Parameters, Table, Tables

ROOM = 100_000  # rows that may be missing and still be gone through


def label(keys: Table, at: int) -> str:
    """The keys of a row, as a reader looks it up."""
    return ", ".join(f"{name}={values[at]}" for name, values in keys.items())


def _schema_faults(stored: pa.Table, columns: tuple[Column, ...]) -> Iterator[str]:
    names = [column.name for column in columns]
    if stored.column_names != names:
        different = sorted(
            set(names) ^ set(stored.column_names), key=[*names, *stored.column_names].index
        )
        yield f"column {different[0]}" if different else "order of the columns"
        return
    for column in columns:
        field = stored.schema.field(column.name)
        if str(field.type) != column.type:
            yield f"type of {column.name} is {field.type}"
        elif (role := (field.metadata or {}).get(b"role", b"")) != column.role.encode():
            yield f"role of {column.name} is {role.decode(errors='replace')!r}"


def _gaps(stored: pa.Table) -> Iterator[str]:
    for name in stored.column_names:
        values = stored[name]
        if values.null_count:
            yield f"{name} has {values.null_count} nulls"
        elif str(values.type) == REAL and not np.isfinite(values.to_numpy()).all():
            yield f"{name} at row {int(np.argmin(np.isfinite(values.to_numpy())))} is not finite"


def _key_faults(table: Table, keys: Table) -> Iterator[str]:
    rows, wanted = len(next(iter(table.values()))), len(next(iter(keys.values())))
    if rows != wanted:
        yield f"{rows} rows instead of {wanted}"
    common = min(rows, wanted)
    wrong = np.zeros(common, bool)
    for name, values in keys.items():
        wrong |= table[name][:common] != values[:common]
    if wrong.any():
        at = int(wrong.argmax())
        found = label({name: table[name] for name in keys}, at)
        yield f"row {at} is {found} instead of {label(keys, at)}"


def _arrays(stored: pa.Table, columns: tuple[Column, ...]) -> Table:
    return {
        column.name: np.array(stored[column.name].to_pylist(), str)
        if column.type == WORD
        else stored[column.name].to_numpy()
        for column in columns
    }


def check(
    kind: Kind, p: Parameters, stored: dict[str, pa.Table | str], tables: Tables
) -> Iterator[Finding]:
    """Judge the shape of every table, and put those that have it into `tables`."""
    unknown = [f"{name} is unknown" for name in sorted(set(stored) - set(kind.columns))]
    yield counted("there are no tables but those of the kind", unknown, "tables")
    row_keys = kind.keys(p)
    for name, columns in kind.columns.items():
        content = stored.get(name, "no such table")
        if isinstance(content, str):
            yield impossible(f"{name} has its columns", f"{name}: {content}")
            continue
        yield (shape := counted(f"{name} has its columns", _schema_faults(content, columns), name))
        yield (whole := counted(f"{name} has no gaps", _gaps(content), name))
        if not (shape.passed and whole.passed):
            continue
        table = _arrays(content, columns)
        faults = _key_faults(table, row_keys[name]) if name in row_keys else _repeated(table)
        yield (rows := counted(f"{name} has its rows in their order", faults, name))
        if rows.passed:
            tables[name] = table


def beyond(kind: Kind, p: Parameters, stored: dict[str, pa.Table | str]) -> str | None:
    """The table that would have to be far longer than it is, if there is one.

    Nothing is recomputed for a design that asks for that.
    """
    for name, wanted in kind.sizes(p).items():
        content = stored.get(name, "no such table")
        there = 0 if isinstance(content, str) else content.num_rows
        if wanted > max(there, ROOM):
            return f"{name} has {there} rows instead of {wanted}"
    return None


def _repeated(table: Table) -> Iterator[str]:
    for name, count in zip(*np.unique(table["name"], return_counts=True), strict=True):
        if count > 1:
            yield f"{name} appears {count} times"
