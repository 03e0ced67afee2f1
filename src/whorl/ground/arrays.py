"""JSON lines and NumPy archives as columns in memory.

Sizes are checked before anything of that size is made: the shapes of an archive stand in its
headers, and a column of JSON lines takes the room of its values, not of its gaps.
"""

import ast
import io
import json
import math
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from whorl._check import plain
from whorl.ground.source import COLUMNS, HELD, LONGEST, ROWS, Clock, TableError

PART = 1 << 16  # values of a column that are packed together
EXACT = 2**53  # up to here a double holds every whole number
HEADER = 10_000  # bytes in which an archive describes one array
DAMAGED = (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


class Held:
    """A table whose columns are in memory, each with its type and a way to make it."""

    def __init__(
        self,
        columns: Mapping[str, tuple[str, Callable[[], pa.Array]]],
        lines: Sequence[int] | None = None,
    ) -> None:
        self.names: list[str] = list(columns)
        self.types: dict[str, str] = {name: kind for name, (kind, _) in columns.items()}
        self._columns, self._lines = columns, lines

    def pieces(
        self, numbers: Sequence[str], labels: Sequence[str]
    ) -> Iterator[Mapping[str, pa.Array]]:
        """All rows at once."""
        yield {name: self._columns[name][1]() for name in (*numbers, *labels)}

    def place(self, row: int) -> str:
        """Where a row stands in the file."""
        return f"row {row + 1}" if self._lines is None else f"line {self._lines[row]}"


class _Column:
    """The values of one name, and the rows that have one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: array[int] = array("I")
        self.kind: type = type(None)
        self.wrong: TableError | None = None  # refused where the column is read
        self._values: list[Any] = []
        self._packed: list[pa.Array] = []

    def add(self, row: int, value: Any) -> None:
        """Take a value."""
        kind = float if type(value) is int else type(value)
        if self.wrong or kind not in (float, str, bool) or (self.rows and kind is not self.kind):
            rule = "a number or a text" if kind in (dict, list) else "of one kind with the others"
            sentence = f"every value must be {rule}, but it is {repr(value)[:40]}"
            self.wrong = self.wrong or TableError(sentence, row=row, column=self.name)
            return
        self.kind = kind
        if kind is float and abs(value) > EXACT:
            value = float(value) if abs(value) < 10**308 else math.inf
        self.rows.append(row)
        self._values.append(value)
        if len(self._values) == PART:
            self._pack()

    def _pack(self) -> None:
        try:
            self._packed += [pa.array(self._values)] if self._values else []
        except UnicodeEncodeError:
            self.wrong = TableError("every text must be Unicode, but one is not", column=self.name)
        self._values = []

    def whole(self, rows: int) -> pa.Array:
        """The column with a null in every row that lacks a value."""
        self._pack()
        if self.wrong:
            raise self.wrong
        if not self._packed:
            return pa.nulls(rows, pa.float64())
        kinds = {part.type for part in self._packed}
        parts = [part.cast(pa.float64()) if len(kinds) > 1 else part for part in self._packed]
        values = pa.concat_arrays(parts)
        places = np.full(rows, -1)
        places[self.rows] = np.arange(len(values))
        return values.take(pa.array(places, mask=places < 0))


def from_json(content: bytes, clock: Clock) -> Held:
    """A table of JSON lines: an object per line, whose lists are numbered columns."""
    if content.count(b"\n") > ROWS:
        raise TableError(f"the table must have at most {ROWS} rows, but it has more")
    columns: dict[str, _Column] = {}
    lines: array[int] = array("I")
    for number, line in enumerate(io.BytesIO(content), 1):
        if number % 256 == 0:
            clock.check()
        if line.strip():
            for name, value in _object(line, number, clock.shown):
                if name not in columns:
                    columns[name] = _Column(name)
                    if len(columns) > COLUMNS:
                        raise ValueError(
                            f"{clock.shown}, line {number}: the table must have at most {COLUMNS} "
                            "columns, but it has more"
                        )
                if value is not None:
                    columns[name].add(len(lines), value)
            lines.append(number)
    types = {bool: "bool", float: "double", str: "string"}
    made = {
        name: (types.get(column.kind, "double"), partial(column.whole, len(lines)))
        for name, column in columns.items()
    }
    return Held(made, lines)


def _object(line: bytes, number: int, shown: str) -> Iterator[tuple[str, Any]]:
    """The values of a line by their names. The values of a list are numbered."""
    try:
        row = json.loads(line) if len(line) <= LONGEST else None
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ValueError(
            f"{shown}, line {number}: the line must be one JSON object of at most {LONGEST} "
            "bytes, but it is not"
        )
    for name, value in row.items():
        if isinstance(value, list):
            yield from ((f"{name}_{place}", one) for place, one in enumerate(value, 1))
        else:
            yield name, value


def from_archive(content: bytes, shown: str) -> Held:
    """A NumPy archive: arrays `(rows,)`, `(rows, outputs)` or `(rows, samples, outputs)`."""
    try:
        # An entry takes many times its size when Python reads it.
        if content.count(b"PK\x01\x02") > COLUMNS:
            raise TableError(f"it holds more than {COLUMNS}")
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            arrays = dict(_arrays(file))
    except DAMAGED as wrong:
        why = wrong if isinstance(wrong, TableError) else "it is damaged"
        raise ValueError(f"{shown} must be an archive of plain arrays, but {why}") from wrong
    if len({one.shape[:1] for one in arrays.values()} | {()}) != 2:
        sizes = ", ".join(f"{name[:40]} {one.shape}" for name, one in [*arrays.items()][:9])
        raise ValueError(
            f"{shown} must hold arrays with one entry per row, but it holds {sizes or 'none'}"
        )
    columns: dict[str, tuple[str, Callable[[], pa.Array]]] = {}
    for name, values in arrays.items():
        kind = "string" if values.dtype.kind == "U" else str(pa.from_numpy_dtype(values.dtype))
        for place in np.ndindex(values.shape[1:]):
            suffix = "".join(f"_{number + 1}" for number in place)
            column = values[(slice(None), *place)]
            columns[f"{name}{suffix}"] = (kind, partial(_column, column))
    return Held(columns)


def _column(values: np.ndarray) -> pa.Array:
    return pa.array(np.ascontiguousarray(values))


def _arrays(file: zipfile.ZipFile) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of an archive, of which all together keep the limits of a table."""
    held, columns = 0, 0
    for entry in file.infolist():
        if entry.filename.startswith("xl/"):
            raise TableError("it is an Excel workbook: save its sheet as CSV")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise TableError("it is packed in another way than NumPy does it")
        name = plain(entry.filename.removesuffix(".npy"))
        with file.open(entry) as part:
            kind, columnwise, shape = _header(part)
            if kind.kind not in "fiubUSM" or kind.itemsize == 0:
                raise TableError(f"{name[:80]} is of type {str(kind)[:80]}")
            size = kind.itemsize * math.prod(shape)
            held, columns = held + size, columns + math.prod(shape[1:])
            if columns > COLUMNS or shape[:1] > (ROWS,) or held > HELD:
                raise TableError(
                    f"{name[:80]} of shape {str(shape)[:80]} makes more than {ROWS} rows, "
                    f"{COLUMNS} columns or {HELD} bytes"
                )
            data = part.read(size)
            if len(data) != size:
                raise EOFError
        values = np.frombuffer(data, kind).reshape(shape, order="F" if columnwise else "C")
        wanted = np.float64 if kind.itemsize > 8 and kind.kind == "f" else kind.newbyteorder("=")
        yield name, values.astype(wanted, copy=False)


def _header(part: zipfile.ZipExtFile) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """What an array is, as the NPY format says before its data: type, order and shape."""
    size = 2 if part.read(8)[6:7] == b"\x01" else 4
    length = int.from_bytes(part.read(size), "little")
    if length > HEADER:
        raise ValueError("the header is too long")
    try:
        said = ast.literal_eval(part.read(length).decode("latin-1").strip())
        kind, shape = np.dtype(said["descr"]), said["shape"]
        if not all(type(one) is int and one >= 0 for one in shape):
            raise ValueError("the shape is none")
        return kind, said["fortran_order"] is True, tuple(shape)
    except (SyntaxError, TypeError, KeyError, RecursionError, MemoryError) as wrong:
        raise ValueError("the header cannot be read") from wrong
