"""Compositions from files: CSV or Parquet, one line per unit, one column per part."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from whorl.regress.tables import Named


def read(
    first: str | Path,
    second: str | Path | None = None,
    *,
    before: str | None = None,
    after: str | None = None,
    weights: str | None = None,
) -> tuple[Named, Named, np.ndarray | None]:
    r"""Two tables of parts, and weights of lines.

    Args:
        first: the file with what was before.
        second: the file with what was after, in the same order of lines; None where one file has
            both.
        before: names of the columns, with commas between them; all that hold numbers by default.
        after: the same for what was after.
        weights: a column of the first file.

    Returns:
        Both tables, with the names of their columns, and the weights.

    Raises:
        ValueError: for files or columns that are not there, lines that differ in number, one part
            only, or one file without both lists of columns.

    Examples:
        >>> from whorl.regress import read
        >>> place = folder / "both.csv"
        >>> _ = place.write_text("a,b,p,q\n1,2,2,1\n3,1,2,2\n")
        >>> before, after, _ = read(place, before="a,b", after="p,q")
        >>> before.columns, after.tolist()
        (['a', 'b'], [[2.0, 1.0], [2.0, 2.0]])
    """
    one = _table(first)
    if second is None and (before is None or after is None):
        raise ValueError(
            "AFTER must be given, or --before and --after to say which columns of one file are "
            "which, but it is missing"
        )
    other = one if second is None else _table(second)
    found = _chosen("--before", one, before, weights), _chosen("--after", other, after, None)
    if one.num_rows != other.num_rows:
        raise ValueError(
            "BEFORE and AFTER must have one line per unit, but they have "
            f"{one.num_rows} and {other.num_rows}"
        )
    heavy = None if weights is None else _column(one, weights)
    return *found, heavy


def _table(path: str | Path) -> pa.Table:
    place = Path(path)
    kind = place.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise ValueError(f"a table must end in .csv or .parquet, but it is {str(path)!r}")
    with place.open("rb"):  # a file that is not there says so in the words of the system
        pass
    try:
        return pyarrow.csv.read_csv(place) if kind == ".csv" else pyarrow.parquet.read_table(place)
    except pa.ArrowException as wrong:
        why = " ".join(str(wrong).split())[:200]
        raise ValueError(f"{place.name} must be a table, but it cannot be read: {why}") from wrong


def _chosen(option: str, table: pa.Table, names: str | None, besides: str | None) -> Named:
    if names is None:
        chosen = [
            field.name
            for field in table.schema
            if (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
            and field.name != besides
        ]
    else:
        chosen = [name.strip() for name in names.split(",") if name.strip()]
    if len(chosen) < 2:
        raise ValueError(f"{option} must name at least 2 parts, but there are {len(chosen)}")
    return Named(np.column_stack([_column(table, name) for name in chosen]), chosen)


def _column(table: pa.Table, name: str) -> np.ndarray:
    if name not in table.column_names:
        known = ", ".join(table.column_names)
        raise ValueError(f"a column must be one of {known[:300]}, but it is {name!r}")
    values: Any = table.column(name)
    try:
        numbers = values.cast(pa.float64()).to_numpy()
    except pa.ArrowException as wrong:
        raise ValueError(f"column {name!r} must hold numbers, but it does not") from wrong
    if not np.isfinite(numbers).all():
        where = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"column {name!r} must hold finite numbers, but line {where + 1} does not")
    return numbers
