"""CSV and Parquet in batches, so that a table may be larger than memory.

And where in it a bad value stands.
"""

import csv
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from whorl.ground.source import Source

LONGEST = 1 << 20  # bytes in one line
BLOCK = 4 << 20  # bytes in one batch
UNNAMED = "unnamed"  # what a column without a name is called, with its number
LABEL = 200  # bytes of a label
COLUMNS = 10_000
UNPACKED = 1 << 29  # bytes of one column in one row group of a Parquet file
UNIT = re.compile(r"(.*?)\s*(?:\[(.*)\]|\((.*)\)|/\s*(\S+))")  # name [s], name (s), name / s
QUOTED = re.compile(r'"[^"]*"')
COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
MISSING = ("", "NA", "N/A", "nan", "NaN", "NAN", "null", "None", "-")  # a value that is not there
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class TableError(ValueError):
    """What is wrong with a table, and where: the row counts from 0, and `column` is a name.

    `counted` says that the row is a line of the file already, where a measurement takes several
    lines.
    """

    def __init__(
        self,
        sentence: str,
        *,
        row: int | None = None,
        column: str | None = None,
        counted: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.row: int | None = row
        self.column: str | None = column
        self.counted: bool = counted


@dataclass(frozen=True)
class Batch:
    """Some rows of a table: numbers, and labels as text."""

    first: int
    columns: Mapping[str, np.ndarray]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))


class Table:
    """A file with named columns.

    Args:
        path: the file, or "-" for standard input.
        rename: names of columns in the file, each with the name that it stands for.
        strict: whether a value that is missing is refused; else its row is left out and counted.
        called: what a column of this name is called by whoever reads the table.
        units: whether a unit behind a name is taken off it, and kept.
        gaps: whether a value that is missing is handed out as NaN, in its row.
    """

    def __init__(
        self,
        path: str | Path,
        rename: Mapping[str, str] | None = None,
        *,
        strict: bool = True,
        called: Callable[[str], str] = str,
        units: bool = True,
        gaps: bool = False,
    ) -> None:
        self._source: Source = Source(path)
        self.path: Path = self._source.shown
        self.file: Path = self._source.path
        self.strict: bool = strict and not gaps
        self.gaps: bool = gaps
        self._called: Callable[[str], str] = called
        self._bare: bool = units
        self.dropped: int = 0  # rows without one of their values
        with self.file.open("rb") as file:
            start = file.read(4)
        if not start:
            raise ValueError(
                f"{self.path}, line 1: the file must have a header line that names its columns, "
                "but it is empty"
            )
        self.parquet: bool = start == b"PAR1"
        self.delimiter: str = ","
        self.point: str = "."
        self.units: dict[str, str] = {}  # of columns whose names carry one
        self.header: int = 1  # the line that names the columns
        found = self._parquet_names() if self.parquet else self._header()
        self._inside: dict[str, str] = {}  # the names of columns as the file has them
        self.names: list[str] = self._renamed(found, rename or {})
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if len(self.names) > COLUMNS:
            raise ValueError(
                f"{self.path}, line 1: the table must have at most {COLUMNS} columns, but it has "
                f"{len(self.names)}"
            )
        if twice:
            raise ValueError(
                f"{self.path}, line 1, column {twice[0]}: names must be unique, but it stands "
                "there twice"
            )

    def named(self, fault: TableError) -> ValueError:
        """A fault as a sentence that names file, line and column."""
        places = [str(self.path)]
        if fault.row is not None:
            places.append(
                f"row {fault.row + 1}" if self.parquet else f"line {self._line(fault.row)}"
            )
        if fault.column is not None:
            places.append(f"column {fault.column}")
        return ValueError(f"{', '.join(places)}: {fault}")

    def _renamed(self, found: list[str], rename: Mapping[str, str]) -> list[str]:
        """Names as the layout writes them, and as the user asks for them."""
        for old in rename:
            if old not in found:
                raise ValueError(
                    f"{self.path}: rename must name columns of the table, but there is no {old}: "
                    f"its columns are {', '.join(found[:40])}"
                )
        names = []
        for name in found:
            new = self._called(rename.get(name, name))
            self._inside.setdefault(new, name)
            names.append(new)
        return names

    def batches(self, numbers: list[str], labels: list[str]) -> Iterator[Batch]:
        """The rows, a batch at a time.

        What is not a number where one is due is a `TableError`; a row that lacks one is left out
        and counted, or refused where the table is read strictly.
        """
        first = 0
        tables = (
            self._parquet_batches(numbers, labels)
            if self.parquet
            else self._csv_batches(numbers, labels)
        )
        try:
            for whole in tables:
                whole_rows = self.strict or self.gaps
                table = whole if whole_rows else self._complete(whole, numbers)
                parts = {name: table.column(self._key(name)) for name in [*numbers, *labels]}
                columns = {name: _numbers(parts[name], name, first, self.gaps) for name in numbers}
                columns |= {name: _labels(parts[name], name) for name in labels}
                if table.num_rows:
                    yield Batch(first, columns)
                first += whole.num_rows
        except (pa.ArrowException, OSError) as problem:
            damaged = TableError(
                "the file must be a whole Parquet file, but a part of it is damaged"
            )
            raise (damaged if self.parquet else self._culprit(first, numbers)) from problem

    def _key(self, name: str) -> str:
        """What a batch calls a column: Parquet has names of its own."""
        return self._inside[name] if self.parquet else name

    def _complete(self, table: Any, numbers: list[str]) -> Any:
        """The rows in which every number is there."""
        lacking = np.zeros(table.num_rows, dtype=bool)
        for name in numbers:
            column = table.column(self._key(name))
            lacking |= np.asarray(column.is_null(nan_is_null=True))
        self.dropped += int(lacking.sum())
        return table.filter(pa.array(~lacking)) if lacking.any() else table

    def _parquet_names(self) -> list[str]:
        try:
            return list(pyarrow.parquet.ParquetFile(self.file).schema_arrow.names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            raise ValueError(
                f"{self.path}: the file must be a whole Parquet file, but its end is missing or "
                "damaged"
            ) from problem

    def _parquet_batches(self, numbers: list[str], labels: list[str]) -> Iterator[Any]:
        size = max(1, BLOCK // (8 * (len(numbers) + len(labels))))
        wanted, texts = ([self._inside[name] for name in names] for names in (numbers, labels))
        # Labels stay as numbers into a list of texts until the texts were seen: a small file can
        # repeat a long one a million times.
        file = pyarrow.parquet.ParquetFile(
            self.file, buffer_size=1 << 20, pre_buffer=False, read_dictionary=texts
        )
        for group in range(file.metadata.num_row_groups):
            chunks = (
                file.metadata.row_group(group).column(number)
                for number in range(file.metadata.num_columns)
            )
            for chunk in chunks:
                if (
                    chunk.path_in_schema in {*wanted, *texts}
                    and chunk.total_uncompressed_size > UNPACKED
                ):
                    raise TableError(
                        f"the column must have at most {UNPACKED} bytes in one row group, but it "
                        f"has {chunk.total_uncompressed_size}: "
                        "write the file with smaller row groups",
                        column=chunk.path_in_schema,
                    )
        yield from file.iter_batches(size, columns=[*wanted, *texts])

    def _header(self) -> list[str]:
        with self.file.open("rb") as file:
            line = file.readline(LONGEST)
            while line and not line.strip():
                self.header += 1
                line = file.readline(LONGEST)
        try:
            text = line.decode("utf-8-sig").strip("\r\n")
        except UnicodeDecodeError as problem:
            raise ValueError(
                f"{self.path}, line 1: the file must be CSV text in UTF-8 or Parquet, but it is "
                "neither"
            ) from problem
        if "\0" in text or len(line) >= LONGEST:
            raise ValueError(
                f"{self.path}, line 1: the file must be CSV text or Parquet, but its first line is "
                "not text of a reasonable length"
            )
        self.delimiter = max(",;\t", key=QUOTED.sub("", text).count)
        self.point = self._decimal()
        try:
            found = next(csv.reader([text], delimiter=self.delimiter), [])
            return [
                self._named(name.strip()) or f"{UNNAMED} {place}"
                for place, name in enumerate(found, 1)
            ]
        except csv.Error as problem:
            raise ValueError(
                f"{self.path}, line 1: the file must begin with one line of names, but it cannot "
                "be read as CSV"
            ) from problem

    def _named(self, name: str) -> str:
        """The name of a column without its unit, which is kept."""
        if not self._bare or not (parts := UNIT.fullmatch(name)):
            return name
        self.units[parts[1].lower()] = next(unit for unit in parts.groups()[1:] if unit is not None)
        return parts[1]

    def _decimal(self) -> str:
        """Whether the first rows write numbers with a comma, which only other separators allow."""
        if self.delimiter == ",":
            return "."
        rows = [line.decode("utf-8", "replace") for _, line in itertools.islice(self._lines(), 20)]
        cells = [cell.strip(' "\r\n') for row in rows for cell in row.split(self.delimiter)]
        commas = any(COMMA.fullmatch(cell) for cell in cells)
        points = any("." in cell and NUMBER.fullmatch(cell) for cell in cells)
        return "," if commas and not points else "."

    def texts(self, within: int = 1000) -> set[str]:
        """The columns that hold no number in the first rows, but something else."""
        if self.parquet:
            schema = pyarrow.parquet.ParquetFile(self.file).schema_arrow
            kinds = {name: schema.field(self._inside[name]).type for name in self.names}
            return {name for name, kind in kinds.items() if not _is_number(kind)}
        words: set[str] = set()
        numbers: set[str] = set()
        for _, line in itertools.islice(self._lines(), within):
            text = line.decode("utf-8", "replace").strip("\r\n")
            cells = next(csv.reader([text], delimiter=self.delimiter), [])
            for name, cell in zip(self.names, cells, strict=False):
                if cell.strip() not in MISSING:
                    shown = cell.strip().replace(self.point, ".")
                    (numbers if NUMBER.fullmatch(shown) else words).add(name)
        return words - numbers

    def _csv_batches(self, numbers: list[str], labels: list[str]) -> Iterator[Any]:
        types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(labels, pa.string())
        try:
            yield from pyarrow.csv.open_csv(
                self.file,
                read_options=pyarrow.csv.ReadOptions(
                    block_size=BLOCK, column_names=self.names, skip_rows=self.header
                ),
                parse_options=pyarrow.csv.ParseOptions(delimiter=self.delimiter),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=types,
                    include_columns=[*numbers, *labels],
                    null_values=[] if self.strict else list(MISSING),
                    decimal_point=self.point,
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as problem:
            if "Empty CSV" not in str(problem):
                raise

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that hold rows, with their numbers."""
        with self.file.open("rb") as file:
            for _ in range(self.header):
                file.readline(LONGEST)
            for number in itertools.count(self.header + 1):
                line = file.readline(LONGEST)
                if not line:
                    return
                if line.strip(b"\r\n") or len(getattr(self, "names", ())) == 1:
                    yield number, line

    def _line(self, row: int) -> int:
        return next(itertools.islice((number for number, _ in self._lines()), row, None), row + 2)

    def _culprit(self, first: int, numbers: list[str]) -> TableError:
        """The first row, from `first` on, that cannot be read.

        The fast reader does not say which.
        """
        places = [(self.names.index(name), name) for name in numbers]
        for row, (_, line) in enumerate(self._lines()):
            if row < first:
                continue
            if len(line) >= LONGEST or b"\0" in line:
                return TableError(
                    "the line must be text of a reasonable length, but it is not", row=row
                )
            try:
                cells = next(csv.reader([line.decode("utf-8")], delimiter=self.delimiter))
            except (UnicodeDecodeError, csv.Error):
                return TableError("the line must be CSV text in UTF-8, but it is not", row=row)
            if len(cells) != len(self.names):
                return TableError(
                    f"the line must have {len(self.names)} values, one for each column, but it has "
                    f"{len(cells)}",
                    row=row,
                )
            for place, name in places:
                cell = cells[place].strip()
                if cell in MISSING and not self.strict:
                    continue
                if not NUMBER.fullmatch(cell.replace(self.point, ".")):
                    return TableError(_unreadable(cells[place]), row=row, column=name)
        return TableError("the file must be readable as CSV, but it is not", row=first)


def _labels(column: Any, name: str) -> np.ndarray:
    """Labels as texts, none of them so long that a batch of it would fill the memory."""
    for part in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        texts = part.dictionary if pa.types.is_dictionary(part.type) else part
        lengths = pyarrow.compute.call_function("binary_length", [texts.cast(pa.string())])
        longest = pyarrow.compute.call_function("max", [lengths]).as_py() or 0
        if longest > LABEL:
            raise TableError(
                f"labels must have at most {LABEL} bytes, but one has {longest}", column=name
            )
    if column.null_count:
        raise TableError("every label must be there, but one is missing", column=name)
    return np.asarray(column.cast(pa.string()), dtype=object)


def _is_number(kind: Any) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _numbers(column: Any, name: str, first: int, gaps: bool) -> np.ndarray:
    if not _is_number(column.type):
        raise TableError(
            f"the column must hold numbers, but its type is {column.type}", column=name
        )
    if column.null_count and not gaps:
        raise TableError(
            "every value must be a number, but one is missing",
            row=first + int(np.argmax(np.asarray(column.is_null()))),
            column=name,
        )
    values = np.asarray(column, dtype=np.float64)
    fine = np.isfinite(values) | (np.isnan(values) & gaps)
    if not fine.all():
        row = int(np.argmin(fine))
        raise TableError(
            f"every value must be a finite number, but it is {values[row]}",
            row=first + row,
            column=name,
        )
    return values


def _unreadable(cell: str) -> str:
    shown = cell.strip()
    if not shown:
        return "every value must be a number, but it is missing"
    return f"every value must be a number, but it is {shown[:40]!r}"
