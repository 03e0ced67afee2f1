"""Tables from users' files: named columns of numbers and labels, within the limits of `source`.

CSV, JSON lines and NumPy archives are read in this process, Parquet in another one. Every refusal
is a sentence that names the file, the line and the column.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute

from whorl._check import plain
from whorl.ground import source
from whorl.ground.foreign import Foreign
from whorl.ground.source import COLUMNS, LABEL, NAME, PARQUET, ROWS, TableError
from whorl.ground.text import UNNAMED, Text

NUMERIC = ("double", "float", "halffloat", "int", "uint")
Form = Text | Foreign  # each has names, types, pieces and the place of a row
NESTED = ("list", "large_list", "fixed_size_list", "struct", "map", "extension")


class Table:
    """A file with named columns.

    Args:
        path: The file, or "-" for standard input.
        rename: Names of columns in the file, each with the name that it stands for.
        strict: Whether a missing number is refused. Otherwise its row is left out and counted.
        called: The name that the caller uses for a column of this name.
        units: Whether a unit behind a name is taken off it, and kept.
        gaps: Whether a missing number is returned as NaN.

    Raises:
        ValueError: In one sentence, where the file is no table or exceeds a limit.
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
        self.path: Path = Path("standard input" if str(path) == "-" else path)
        self.strict: bool = strict and not gaps
        self.gaps: bool = gaps
        self.dropped: int = 0  # rows without one of their numbers
        self.units: dict[str, str] = {}  # of columns whose names carry one
        self.rows: np.ndarray | None = None  # of the file, that `columns` returned
        self._gap: TableError | None = None  # the first number that is missing
        self._form: Form | None = None
        try:
            self._form = _opened(Path(path), str(self.path))
            self.names: list[str] = self._renamed(units, rename or {}, called)
        except TableError as fault:
            raise self.named(fault) from fault.__cause__
        self._inside: dict[str, str] = dict(zip(self.names, self._form.names, strict=True))

    def _renamed(
        self, units: bool, rename: Mapping[str, str], called: Callable[[str], str]
    ) -> list[str]:
        """Names as the caller writes them, and as the user asks for them."""
        assert self._form is not None
        found = self._form.names
        if not 1 <= len(found) <= COLUMNS:
            rule = f"at most {COLUMNS} columns" if found else "at least one column"
            raise TableError(f"the table must have {rule}, but it has {len(found)}", row=-1)
        if (longest := max(map(len, found))) > NAME:
            raise TableError(
                f"names of columns must have at most {NAME} characters, but one has {longest}",
                row=-1,
            )
        if units:
            found = [self._bare(name, place) for place, name in enumerate(found, 1)]
        if lost := [old for old in rename if old not in found]:
            raise TableError(
                f"rename must name columns of the table, but there is no {lost[0][:80]}: its "
                f"columns are {some(found)}"
            )
        names = [called(rename.get(name, name)) for name in found]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise TableError(
                "names must be unique, but it stands there twice", row=-1, column=twice[0]
            )
        return names

    def _bare(self, name: str, place: int) -> str:
        """The name of a column without its unit, which is kept."""
        word, unit = unit_of(name)
        if unit is not None:
            self.units[word.lower()] = unit
        return word or f"{UNNAMED} {place}"

    def named(self, fault: TableError) -> ValueError:
        """A fault as a sentence that names file, line and column.

        Where rows were left out for lack of a number, what is left may be at fault for that
        reason: then the sentence is about the first number that is missing.
        """
        rows = self.rows
        if self._gap is not None and self.dropped:
            fault, rows = self._gap, None
        places = [plain(str(self.path))]
        if fault.row is not None:
            row = fault.row if rows is None or fault.row < 0 else int(rows[fault.row])
            places.append("line 1" if row < 0 or self._form is None else self._form.place(row))
        if fault.column is not None:
            places.append(f"column {plain(fault.column[:80])}")
        return ValueError(f"{', '.join(places)}: {fault}")

    def texts(self) -> set[str]:
        """The columns that hold texts, as far as the first rows tell."""
        assert self._form is not None
        if isinstance(self._form, Text):
            texts = self._form.texts()
            return {name for name in self.names if self._inside[name] in texts}
        types = self._form.types
        return {name for name in self.names if not types[self._inside[name]].startswith(NUMERIC)}

    def columns(self, numbers: Sequence[str], labels: Sequence[str]) -> dict[str, np.ndarray]:
        """Columns of numbers, and of labels as texts.

        Args:
            numbers: Names of the columns that must hold numbers.
            labels: Names of the columns whose values are taken as text.

        Returns:
            Arrays of the same length `(rows,)`, by name. `rows` then tells the rows of the file.

        Raises:
            TableError: Where a value is not what it must be, or the table exceeds a limit.
        """
        assert self._form is not None
        self.dropped, self._gap, self.rows = 0, None, None
        self._check_types(numbers, labels)
        kept: list[np.ndarray] = []
        parts: dict[str, list[np.ndarray]] = {name: [] for name in (*numbers, *labels)}
        first = 0
        inside = [[self._inside[name] for name in names] for names in (numbers, labels)]
        try:
            for piece in self._form.pieces(*inside):
                rows = first + np.arange(len(next(iter(piece.values()))))
                first += len(rows)
                self._within(first, len(parts))
                whole = {n: self._numbers(piece[self._inside[n]], n, rows) for n in numbers}
                there = self._there(whole, rows)
                for name in labels:
                    whole[name] = _labels(piece[self._inside[name]].filter(pa.array(there)), name)
                for name, values in whole.items():
                    parts[name].append(values if name in labels else values[there])
                kept.append(rows[there])
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, UnicodeError) as problem:
            raise TableError("every column must be readable, but one is not") from problem
        self.rows = np.concatenate([np.zeros(0, dtype=int), *kept])
        return {name: np.concatenate([np.zeros(0), *parts.pop(name)]) for name in [*parts]}

    def _within(self, rows: int, width: int) -> None:
        assert self._form is not None
        most = self._form.budget.numbers
        if rows > ROWS or rows * width > most:
            raise TableError(
                f"the table must have at most {ROWS} rows and {most} values in the columns that "
                "are read, as its size allows, but it has more"
            )

    def _check_types(self, numbers: Sequence[str], labels: Sequence[str]) -> None:
        if not isinstance(self._form, Foreign):
            return
        for name in (*numbers, *labels):
            kind = self._form.types[self._inside[name]]
            what = "names" if kind.startswith(NESTED) and name in labels else "numbers"
            if what == "names" or (name in numbers and not kind.startswith(NUMERIC)):
                raise TableError(
                    f"the column must hold {what}, but its type is {kind}", column=name
                )

    def _numbers(self, column: pa.Array, name: str, rows: np.ndarray) -> np.ndarray:
        """A column as numbers, with NaN where one is missing."""
        values = np.asarray(column, dtype=np.float64)
        fine = np.isfinite(values)
        if fine.all():
            return values
        missing = "every value must be a number, but it is missing"
        bad = ~fine if self.strict else np.isinf(values)
        if bad.any():
            at = int(np.argmax(bad))
            finite = f"every value must be a finite number, but it is {values[at]}"
            said = missing if column[at].as_py() is None else finite
            raise TableError(said, row=int(rows[at]), column=name)
        gap = TableError(missing, row=int(rows[np.argmin(fine)]), column=name)
        self._gap = self._gap or gap
        return values

    def _there(self, numbers: Mapping[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        """The rows to return: all, or those in which every number is there."""
        there = np.ones(len(rows), dtype=bool)
        for values in () if self.gaps else numbers.values():
            there &= ~np.isnan(values)
        self.dropped += int((~there).sum())
        return there


def _opened(path: Path, shown: str) -> Form:
    """A file in the reader of its kind, which its first bytes tell."""
    if source.is_parquet(path):
        return Foreign("parquet", path, source.Budget(shown, path.stat().st_size))
    content, budget = source.unpacked(path, shown)
    start = content[: source.PIECE].lstrip(source.BOM_UTF8 + b" \t\r\n")[:4]
    for sign, kind in ((PARQUET, "parquet"), (b"PK\x03\x04", "npz"), (b"{", "json")):
        if start.startswith(sign):
            if kind == "json" and content.count(b"\n") > ROWS:
                raise TableError(f"the table must have at most {ROWS} rows, but it has more")
            return Foreign(kind, content, budget)
    return Text(content, budget)


def _labels(column: pa.Array, name: str) -> np.ndarray:
    """Labels as texts, which equal ones share."""
    if column.null_count:
        raise TableError("every label must be there, but one is missing", column=name)
    coded = column.cast(pa.string()).dictionary_encode()
    lengths = pyarrow.compute.call_function("binary_length", [coded.dictionary])
    longest = pyarrow.compute.call_function("max", [lengths]).as_py() or 0
    if longest > LABEL:
        raise TableError(
            f"labels must have at most {LABEL} bytes, but one has {longest}", column=name
        )
    return np.array([*coded.dictionary.to_pylist(), None], dtype=object)[np.asarray(coded.indices)]


def unit_of(name: str) -> tuple[str, str | None]:
    """A name without its unit, and the unit: name [s], name (s) and name / s.

    Examples:
        >>> unit_of("time [s]"), unit_of("rate / s"), unit_of("id")
        (('time', 's'), ('rate', 's'), ('id', None))
    """
    last = name.rsplit(None, 1)[-1] if name and not name[-1].isspace() else ""
    slash = len(name[: len(name) - len(last)].rstrip()) - 1  # no text between it and the last word
    for place, sign in enumerate(name):
        if sign + name[-1] in ("[]", "()") and place < len(name) - 1:
            return name[:place].rstrip(), name[place + 1 : -1]
        if sign == "/" and slash <= place < len(name) - 1:
            return name[:place].rstrip(), name[place + 1 :].strip()
    return name, None


def some(names: Sequence[str]) -> str:
    """The first names of a table, cut to what fits into a sentence."""
    listed = [plain(name if len(name) <= 40 else name[:37] + "...") for name in islice(names, 40)]
    text = ", ".join(listed)
    return text if len(text) <= 500 else text[:497] + "..."
