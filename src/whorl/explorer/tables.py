"""Files that visitors open: a table of a run folder, a measured learner, or a state.

Read in memory, drawn, and forgotten.

| columns | drawn as |
|---|---|
| even, handedness, step, drift, with native, or a loss and a gap | the ledger, averaged over rows |
| ratio and coefficient | the sign rule: coefficient over ratio |
| real and imag | eigenvalues in the complex plane |
| residual_1.. and velocity_1.., as `whorl certify` reads them | the residual plane with its velocities, and the verdict |
| update, epoch or time, and numbers | lines over it: median and bands |
| any two columns of numbers | one over the other |
"""

import io
import tempfile
from pathlib import Path, PurePath

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from whorl.explorer.gallery import Portion
from whorl.explorer.state import State, from_json
from whorl.explorer.style import Theme
from whorl.explorer.views import table as view

ROWS, COLUMNS = 500_000, 400
CELLS = 10_000_000  # numbers of a table as it is drawn
# outputs that are judged while a visitor waits, which takes seconds; `whorl certify` takes more
JUDGED = 40
LARGEST = 1e100  # so that sums and squares can be drawn too
Columns = dict[str, np.ndarray]


def look(name: str, content: bytes, theme: Theme) -> Portion | State:
    """What a file shows: figures, or a state to go to."""
    kind = PurePath(name).suffix.lower()
    if kind == ".json":
        return from_json(_text(content))
    if kind not in (".parquet", ".csv"):
        raise ValueError(
            "the file must end in .parquet, .csv or .json, but it is called "
            f"{PurePath(name).name[:60]!r}"
        )
    numbers = columns(kind, content)
    _fits_wide(numbers)
    numbers = view.widened(numbers)
    figures = view.figures(numbers, theme)
    rows = len(next(iter(numbers.values())))
    return {
        "figures": figures,
        "title": f"{PurePath(name).name[:60]}: {rows} rows",
        "verdicts": _verdicts(kind, numbers, content),
    }


def _fits_wide(numbers: Columns) -> None:
    """Refuse measurements in long form that would be far larger as one row each."""
    if "measurement" in numbers and "output" in numbers:
        rows, width = (len(np.unique(numbers[name])) for name in ("measurement", "output"))
        _bounded(rows, 2 * width)


def columns(kind: str, content: bytes) -> Columns:
    """The columns that hold numbers."""
    table = _parquet(content) if kind == ".parquet" else _csv(content)
    found: Columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _drawable(column.type):
            values = np.asarray(column.to_numpy(), dtype=float)
            values = np.where(
                np.isfinite(values), values, np.nan
            )  # what is not a number is a gap in every picture
            if np.nanmax(np.abs(values), initial=0.0) > LARGEST:
                raise ValueError(
                    f"numbers must be at most {LARGEST:g} in size, but column {name[:40]!r} holds "
                    "a larger one"
                )
            if np.isfinite(values).any():
                found[name] = values
    if not found or table.num_rows == 0:
        raise _nothing(table.column_names)
    return found


def _drawable(kind: pa.DataType) -> bool:
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _nothing(names: list[str]) -> ValueError:
    shown = " ".join(", ".join(names).split())
    return ValueError(
        f"the file must hold a column of numbers, but its columns are {shown[:200] or 'none'}"
    )


def _parquet(content: bytes) -> pa.Table:
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        _bounded(file.metadata.num_rows, file.metadata.num_columns)
        # Only what can be drawn is unpacked: a small file can hold a text that fills the memory.
        drawn = [field.name for field in file.schema_arrow if _drawable(field.type)]
        if not drawn:
            raise _nothing(file.schema_arrow.names)
        return file.read(columns=drawn)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as broken:
        raise ValueError(
            f"the file must be a Parquet table, but it cannot be read: {_first_line(broken)}"
        ) from broken


def _csv(content: bytes) -> pa.Table:
    # Lines that begin with # are remarks, as the files that `whorl certify` reads may have.
    lines = [line for line in _text(content).splitlines() if not line.lstrip().startswith("#")]
    _bounded(
        max(0, len(lines) - 1), lines[0].count(",") + 1 if lines else 0
    )  # before anything is made for every column
    text = "\n".join(lines)
    try:
        table = csv.read_csv(io.BytesIO(text.encode()))
    except pa.ArrowException as broken:
        raise ValueError(
            "the file must be a CSV table with a header, but it cannot be read: "
            f"{_first_line(broken)}"
        ) from broken
    _bounded(table.num_rows, table.num_columns)
    return table


def _bounded(rows: int, width: int) -> None:
    if rows > ROWS or width > COLUMNS:
        raise ValueError(
            f"the file must have at most {ROWS} rows and {COLUMNS} columns, but it has {rows} and "
            f"{width}"
        )
    if rows * width > CELLS:
        raise ValueError(
            f"the file must have at most {CELLS} values, but {rows} rows of {width} columns are "
            f"{rows * width}"
        )


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        raise ValueError("the file must be text in UTF-8, but it is not") from broken


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _verdicts(kind: str, numbers: Columns, content: bytes) -> list[str]:
    """What `whorl certify` says of a measured learner."""
    if not view.measured(numbers):
        return []
    outputs = len(view.starting(numbers, "velocity"))
    if outputs > JUDGED:
        return [
            (
                f"a table of at most {JUDGED} outputs is judged here, but this one has {outputs}: use "
                "whorl certify"
            )
        ]
    from whorl import measured

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"measurements{kind}"
        path.write_bytes(content)
        try:
            return [str(measured.judge(measured.read(path)))]
        except ValueError as refusal:
            return [str(refusal).replace(str(path), "the file").replace(path.name, "the file")]
