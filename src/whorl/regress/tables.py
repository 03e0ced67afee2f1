"""Names and types of pandas and polars tables."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


class Named(np.ndarray):
    """An array with names of its columns, as a table of pandas or polars has them.

    And names of its rows where they have any, with remarks on how it was read.
    """

    columns: list[str]
    rows: list[str] | None
    remarks: list[str]

    def __new__(
        cls,
        values: np.ndarray,
        columns: Sequence[str],
        rows: list[str] | None = None,
        remarks: Sequence[str] = (),
    ) -> "Named":
        made = np.asarray(values).view(cls)
        made.columns, made.rows, made.remarks = list(columns), rows, list(remarks)
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.columns = getattr(other, "columns", [])
        self.rows, self.remarks = getattr(other, "rows", None), getattr(other, "remarks", [])


def kind(*tables: Any) -> str:
    """Which package the first named table belongs to: "pandas", "polars", or "numpy" for none."""
    for table in tables:
        home = type(table).__module__.partition(".")[0]
        if home in ("pandas", "polars"):
            return home
    return "numpy"


def names(table: Any) -> list[str] | None:
    """The names of the columns, where it has any that are words."""
    found = getattr(table, "columns", None)
    if found is None or len(found) == 0 or not all(isinstance(name, str) for name in found):
        return None
    if twice := [name for name, count in Counter(found).items() if count > 1]:
        raise ValueError(f"names of parts must be unique, but {twice[0]!r} is there twice")
    return list(found)


def frame(
    home: str,
    matrix: np.ndarray,
    rows: Any,
    columns: Sequence[str],
    corner: str | None = "to",
) -> Any:
    """A matrix as a table with labels; polars has no index, so that rows are named in a column."""
    if home == "pandas":
        import pandas

        return pandas.DataFrame(matrix, index=rows, columns=list(columns))
    if home == "polars":
        import polars

        named = {} if corner is None or rows is None else {corner: list(rows)}
        return polars.DataFrame(named | {name: matrix[:, j] for j, name in enumerate(columns)})
    return matrix
