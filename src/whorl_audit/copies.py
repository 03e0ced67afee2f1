"""Compare tables with their copies as text.

A CSV file is read back and compared with its table, number by number.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from whorl_audit import files
from whorl_audit.finding import Finding, counted
from whorl_audit.types import Table, Tables


def fault(content: str, table: Table) -> str | None:
    """Where a text and its table differ, if they do."""
    try:
        header, *rows = files.parsed_csv(content)
    except ValueError as error:
        return str(error)
    if header != list(table):
        return "its columns differ"
    if len(rows) != len(next(iter(table.values()))) or any(len(row) != len(header) for row in rows):
        return "its rows differ"
    for name, texts in zip(header, zip(*rows, strict=True), strict=True):
        try:
            read = np.array(texts, table[name].dtype if table[name].dtype.kind != "U" else str)
        except ValueError:
            return f"{name} is not of its type"
        if not np.array_equal(read, table[name]):
            return f"{name} at row {int(np.argmax(read != table[name]))} differs"
    return None


def check(folder: Path, tables: Tables) -> Iterator[Finding]:
    """Compare every CSV file with the table of its name.

    One whose table is broken has failed with it.
    """
    paths = sorted(folder.glob("*.csv"))
    alone = [path.name for path in paths if not path.with_suffix(".parquet").exists()]
    faults = [f"{name} has no table" for name in alone]
    for path in paths:
        if path.stem in tables:
            why = fault(files.read_text(path, files.FILE), tables[path.stem])
            faults += [f"{path.name}: {why}"] if why else []
    if paths:
        yield counted("every CSV file says what its table says", faults, "tables")
