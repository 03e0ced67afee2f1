"""Tables of others: the names they bring, and tables of the same kind to give back."""

from collections.abc import Sequence
from typing import Any

import numpy as np


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
    if found is None or not all(isinstance(name, str) for name in found):
        return None
    return list(found)


def frame(
    home: str,
    matrix: np.ndarray,
    rows: Sequence[Any] | None,
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
