"""CSV with any separator, in batches, and where in it a bad value stands."""

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.csv

from whorl.ground.source import LONGEST, Budget, TableError, plain

UNNAMED = "unnamed"  # what a column without a name is called, with its number
BLOCK = 4 << 20  # bytes in one batch
QUOTED = re.compile(r'"[^"]*"')
COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
MISSING = ("", "NA", "N/A", "nan", "NaN", "NAN", "null", "None", "-")  # a value that is not there


class Text:
    """A table as text: a line of names, and a line for every row."""

    def __init__(self, content: bytes, budget: Budget) -> None:
        self.budget: Budget = budget
        self._content = plain(content)
        start = re.search(rb"\S", self._content)
        if start is None:
            raise TableError(
                "the file must have a header line that names its columns, but it is empty", row=-1
            )
        before = self._content.rfind(b"\n", 0, start.start()) + 1
        self._header = self._content.count(b"\n", 0, before) + 1
        file = io.BytesIO(self._content)
        file.seek(before)
        line = file.readline(LONGEST)
        self._first = file.tell()
        self.delimiter, self.point = ",", "."
        self.names: list[str] = self._named(line)

    def _named(self, line: bytes) -> list[str]:
        try:
            text = line.decode().strip("\r\n")
        except UnicodeDecodeError as problem:
            raise TableError(
                "the file must be CSV text in UTF-8 or Parquet, but it is neither", row=-1
            ) from problem
        if "\0" in text or len(line) >= LONGEST:
            raise TableError(
                "the file must be CSV text or Parquet, but its first line is not text of a "
                "reasonable length",
                row=-1,
            )
        self.delimiter = max(",;\t", key=QUOTED.sub("", text).count)
        self.point = self._decimal()
        names = self._cells(text)
        if names is None:
            raise TableError(
                "the file must begin with one line of names, but it cannot be read as CSV", row=-1
            )
        return [name.strip() or f"{UNNAMED} {place}" for place, name in enumerate(names, 1)]

    def _cells(self, line: str | bytes) -> list[str] | None:
        """The cells of a line; None where it is no line of CSV."""
        try:
            text = line if isinstance(line, str) else line.decode().strip("\r\n")
            return next(csv.reader([text], delimiter=self.delimiter), [])
        except (UnicodeDecodeError, csv.Error):
            return None

    def _decimal(self) -> str:
        """Whether the first rows write numbers with a comma, which only other separators allow."""
        if self.delimiter == ",":
            return "."
        rows = [line.decode("utf-8", "replace") for _, line in itertools.islice(self._lines(), 20)]
        cells = [cell.strip(' "\r\n') for row in rows for cell in row.split(self.delimiter)]
        commas = any(COMMA.fullmatch(cell) for cell in cells)
        points = any("." in cell and NUMBER.fullmatch(cell) for cell in cells)
        return "," if commas and not points else "."

    def _is_number(self, cell: str) -> bool:
        return NUMBER.fullmatch(cell.strip().replace(self.point, ".")) is not None

    def texts(self, within: int = 1000) -> set[str]:
        """The columns that hold no number in the first rows, but something else."""
        words: set[str] = set()
        numbers: set[str] = set()
        for _, line in itertools.islice(self._lines(), within):
            for name, cell in zip(self.names, self._cells(line) or (), strict=False):
                if cell.strip() not in MISSING:
                    (numbers if self._is_number(cell) else words).add(name)
        return words - numbers

    def pieces(
        self, numbers: Sequence[str], labels: Sequence[str]
    ) -> Iterator[Mapping[str, pa.Array]]:
        """The rows, a batch at a time."""
        rows = 0
        types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(labels, pa.string())
        try:
            for batch in pyarrow.csv.open_csv(
                pa.BufferReader(pa.py_buffer(self._content)),
                read_options=pyarrow.csv.ReadOptions(
                    block_size=BLOCK, column_names=self.names, skip_rows=self._header
                ),
                parse_options=pyarrow.csv.ParseOptions(delimiter=self.delimiter),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=types,
                    include_columns=[*types],
                    null_values=list(MISSING),
                    decimal_point=self.point,
                    strings_can_be_null=False,
                ),
            ):
                yield dict(zip(batch.schema.names, batch.columns, strict=True))
                rows += batch.num_rows
        except pa.ArrowInvalid as problem:
            if "Empty CSV" not in str(problem):
                raise self._culprit(rows, numbers) from problem

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that hold rows, with their numbers."""
        file = io.BytesIO(self._content)
        file.seek(self._first)
        for number in itertools.count(self._header + 1):
            if number % 4096 == 0:
                self.budget.check()
            line = file.readline(LONGEST)
            if not line:
                return
            if line.strip(b"\r\n") or len(getattr(self, "names", ())) == 1:
                yield number, line

    def place(self, row: int) -> str:
        """Where a row stands in the file; -1 is the line of names."""
        if row < 0:
            return "line 1"
        lines = (number for number, _ in self._lines())
        return f"line {next(itertools.islice(lines, row, None), row + 2)}"

    def _culprit(self, first: int, numbers: Sequence[str]) -> TableError:
        """The first row, from `first` on, that cannot be read. Arrow does not say which."""
        places = [(self.names.index(name), name) for name in numbers]
        for row, (_, line) in enumerate(self._lines()):
            if row < first:
                continue
            if len(line) >= LONGEST or b"\0" in line:
                return TableError(
                    "the line must be text of a reasonable length, but it is not", row=row
                )
            cells = self._cells(line)
            if cells is None:
                return TableError(
                    f"the line must be CSV text in UTF-8 with cells of at most "
                    f"{csv.field_size_limit()} characters, but it is not",
                    row=row,
                )
            if len(cells) != len(self.names):
                return TableError(
                    f"the line must have {len(self.names)} values, one for each column, but it has "
                    f"{len(cells)}",
                    row=row,
                )
            for place, name in places:
                cell = cells[place]
                if cell not in MISSING and not self._is_number(cell):
                    return TableError(
                        f"every value must be a number, but it is {cell[:40]!r}",
                        row=row,
                        column=name,
                    )
        return TableError("the file must be readable as CSV, but it is not", row=first)
