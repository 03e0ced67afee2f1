"""Changes to a run folder, one at a time, each undone afterwards.

And the question whether the audit finds them.
"""

import json
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import whorl_audit
from audit import forge
from whorl_audit import folder, kinds


def finds(root, study=None):
    """Whether the audit of a folder (or of one of its studies) has a claim that fails.

    It stops at the first.
    """
    try:
        paths = folder.studies(root) if study is None else [root / study]
        studies = [folder.read(path) for path in paths]
        if any(not finding.passed for one in studies for finding in whorl_audit.check_study(one)):
            return True
        return study is None and any(
            not finding.passed for finding in whorl_audit.check_folder(root, studies)
        )
    except whorl_audit.UnreadableError:
        return True


@contextmanager
def kept(*paths):
    """Put files back as they were."""
    before = {path: path.read_bytes() for path in paths}
    try:
        yield
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def columns(root):
    """Every (study, table, column) of a run folder."""
    for path in folder.studies(root):
        kind = json.loads((path / "verdict.json").read_text())["kind"]
        for table, listed in kinds.find(kind).columns.items():
            yield from ((path.name, table, one) for one in listed)


def changed(value, kind, rng):
    """Another value.

    A word misspelt, a whole number off by a few, a real number off by a millionth or more.
    """
    if kind == "string":
        return value + "x" if rng.random() < 0.5 else value[:-1]
    if kind == "int64":
        return value + int(rng.integers(1, 4)) * int(rng.choice([-1, 1]))
    size = 10 ** rng.uniform(-6, 1) * rng.choice([-1, 1])
    return value * (1 + size) if value else size


def with_value(table, column, row, value):
    """A table with one value changed, its schema as it was."""
    at = table.column_names.index(column)
    values = table[column].to_pylist()
    values[row] = value
    field = table.schema.field(column)
    return table.set_column(at, field, pa.array(values, field.type))


def rearranged(table, how, rng):
    """A table with a row dropped, a row twice, two rows swapped, or a number that is none."""
    rows = np.arange(table.num_rows)
    first, second = rng.choice(table.num_rows, 2, replace=False)
    if how == "dropped":
        return table.take(np.delete(rows, first))
    if how == "duplicated":
        return table.take(np.sort(np.append(rows, first)))
    if how == "swapped":
        rows[[first, second]] = rows[[second, first]]
        return table.take(rows)
    real = [field.name for field in table.schema if str(field.type) == "double"]
    return (
        with_value(table, str(rng.choice(real)), int(first), float("nan"))
        if real
        else rearranged(table, "dropped", rng)
    )


def table_change_is_found(root, study, name, change):
    """Change a table, make all its hashes anew as a forger would, and audit the study."""
    file = root / study / "tables" / f"{name}.parquet"
    verdict = root / study / "verdict.json"
    with kept(file, verdict):
        stored = pq.ParquetFile(pa.BufferReader(file.read_bytes())).read()
        pq.write_table(change(stored), file)
        said = json.loads(verdict.read_text())
        content = file.read_bytes()
        said["tables"][name] = {
            "sha256": folder.sha256(content),
            "rows": pq.read_metadata(file).num_rows,
        }
        verdict.write_text(json.dumps(said))
        return finds(root, study)


def value_is_found(root, study, table, column, rng):
    def change(stored):
        row = int(rng.integers(stored.num_rows))
        value = stored[column.name][row].as_py()
        return with_value(stored, column.name, row, changed(value, column.type, rng))

    return table_change_is_found(root, study, table, change)


def arrangement_is_found(root, study, table, how, rng):
    return table_change_is_found(root, study, table, lambda stored: rearranged(stored, how, rng))


def file_change_is_found(root, path, rng):
    """Change one byte of a file, and make nothing anew."""
    with kept(path):
        content = bytearray(path.read_bytes())
        at = int(rng.integers(len(content)))
        content[at] ^= 1 << int(rng.integers(7))
        path.write_bytes(bytes(content))
        return finds(root)


def consistent_change_is_found(root, kind, table, column, rng):
    """Change a value and make all that is derived from it anew, statistics, gates, verdict and
    hashes: only the physics can tell.
    """
    path = root / kind
    files = [*(path / "tables").glob("*.parquet"), path / "verdict.json", *root.glob("*.*")]
    with kept(*files):
        parameters = folder.read(path).parameters
        tables = forge.make_tables(kind, parameters)
        values = tables[table][column.name]
        row = int(rng.integers(len(values)))
        values[row] = changed(values[row].item(), column.type, rng)
        for name, content in forge.rederive(kind, parameters, tables).items():
            pq.write_table(forge.to_arrow(kind, name, content), path / "tables" / f"{name}.parquet")
        forge.judge(path, kind)
        forge.seal(root)
        return finds(root)
