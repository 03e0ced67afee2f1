"""Read compositions from files: one line per unit, one column per part.

Which columns are parts: those that are asked for, or all that hold numbers and are no names of
lines. Names of lines are columns of text, and columns that are called so (`NAMES`). Two files that
both have such a column are joined by it; without one their lines are taken in order.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from whorl import _check
from whorl.fields import choice
from whorl.ground.tables import Table, TableError, some, unit_of
from whorl.ground.text import UNNAMED
from whorl.regress.tables import Named

# what people, pandas and R call a column that names its lines
NAMES = re.compile(rf"id|unit|name|code|key|index|row|row[ _]?names?|{UNNAMED} 1|__index_level_0__")
WHEN = ("before", "after")
EMPTY = ("refuse", "drop", "zero")
SUM = 1e-9  # a column is the sum of the others to this share of it


@dataclass(frozen=True)
class Lines:
    """What was read of one file."""

    table: Table
    parts: list[str]
    values: np.ndarray  # (lines, parts)
    weights: np.ndarray | None
    names: dict[str, np.ndarray]  # of lines, by column
    rows: np.ndarray  # the number of every line among the rows of the file
    heavy: str | None = None  # the column of weights

    @property
    def lacking(self) -> np.ndarray:
        """Lines without one of their values."""
        gaps = np.asarray(np.isnan(self.values).any(axis=1))
        return gaps if self.weights is None else gaps | np.isnan(self.weights)

    def only(self, which: np.ndarray) -> "Lines":
        """Some of the lines, or all in another order."""
        return replace(
            self,
            values=self.values[which],
            weights=None if self.weights is None else self.weights[which],
            names={name: labels[which] for name, labels in self.names.items()},
            rows=self.rows[which],
        )

    def wrong(self, sentence: str, line: int, column: str | None = None) -> ValueError:
        """A sentence with file, line and column."""
        return self.table.named(TableError(sentence, row=int(self.rows[line]), column=column))


def read(
    first: str | Path,
    second: str | Path | None = None,
    *,
    before: str | None = None,
    after: str | None = None,
    weights: str | None = None,
    key: str | None = None,
    empty: str = "refuse",
) -> tuple[Named, Named, np.ndarray | None]:
    r"""Two tables of parts, and weights of lines.

    Files are CSV (commas, semicolons or tabs; decimal points or commas; UTF-8, UTF-16 or Latin-1;
    comments after #), Parquet, JSON lines or NumPy archives. Columns may be named without their
    unit and in any capitals.

    Args:
        first: the file with what was before, or "-" for standard input.
        second: the file with what was after; None where one file has both. Where both files have a
            column of names they are joined by it; else their lines are in the same order.
        before: names of the columns, with commas between them; by default all that hold numbers
            and are no names of lines.
        after: the same for what was after.
        weights: a column of the first file.
        key: the column that names the lines, where it is neither text nor called id, unit, name or
            the like.
        empty: what an empty cell means: "refuse", "drop" (leave the line out) or "zero".

    Returns:
        Both tables, with `columns` (names of parts), `rows` (names of lines, where there are any)
        and `remarks` (what was left out), and the weights.

    Raises:
        ValueError: in one sentence with file, line and column, for values that are no numbers,
            missing or negative, lines without mass, lines that do not match, one part only, a
            column that is the sum of the others, or one file without both lists of columns.

    Examples:
        >>> from whorl.regress import read
        >>> place = folder / "both.csv"
        >>> _ = place.write_text("place;a;b;p;q\nYork;1,5;2;2;1\nBath;3;1;2;2\n")
        >>> before, after, _ = read(place, before="a,b", after="p,q")
        >>> before.columns, before.tolist(), before.rows
        (['a', 'b'], [[1.5, 2.0], [3.0, 1.0]], ['York', 'Bath'])
    """
    choice("empty", empty, EMPTY)
    if second is None and (before is None or after is None):
        raise ValueError(
            "AFTER must be given, or --before and --after to say which columns of one file are "
            "which, but it is missing"
        )
    if str(first) == str(second) == "-":
        raise ValueError("AFTER must be a file where BEFORE is standard input, but it is '-'")
    one = _lines(first, before, "--before", weights, key)
    other = _lines(first if second is None else second, after, "--after", None, key)
    counted = len(one.rows), len(other.rows)
    one, other = _matched(one, other, second is None, empty == "drop")
    if empty == "zero":
        one, other = (replace(lines, values=np.nan_to_num(lines.values)) for lines in (one, other))
    one, other = _complete(one, other, empty == "drop")
    for lines in (one, other):
        _sound(lines)
    remarks = _remarks(counted, len(one.rows))
    labels = next(
        (lines.names[key].tolist() for lines in (one, other) for key in lines.names), None
    )
    return (
        Named(one.values, _bare(one.parts), labels, remarks),
        Named(other.values, _bare(other.parts), labels),
        one.weights,
    )


def _lines(
    path: str | Path, names: str | None, option: str, weights: str | None, key: str | None
) -> Lines:
    """All that one file has to say, with NaN where a value is missing."""
    table = Table(path, units=False, gaps=True)
    texts = table.texts()
    heavy = None if weights is None else _found(table, weights, "--weights")
    keys = [name for name in table.names if name in texts or NAMES.fullmatch(name.lower())]
    if key is not None:
        keys = [_found(table, key, "--id")]
    if names is None:
        parts = [name for name in table.names if name not in {*keys, *texts, heavy}]
    else:
        wanted = next(csv.reader([names], skipinitialspace=True), [])
        parts = [_found(table, name.strip(), option) for name in wanted if name.strip()]
    twice = [name for name, count in Counter(parts).items() if count > 1]
    if twice:
        raise ValueError(f"{option} must name every part once, but {twice[0]!r} is there twice")
    keys = [name for name in keys if name not in parts]
    numbers = [*parts, *([heavy] if heavy is not None and heavy not in parts else [])]
    rows, columns = _whole(table, numbers, keys)
    if names is None:  # what a spreadsheet leaves at the end of its lines
        parts = [
            name
            for name in parts
            if not (name.startswith(UNNAMED) and np.isnan(columns[name]).all())
        ]
    if len(parts) < 2:
        raise ValueError(
            f"{option} must name at least 2 parts, but {table.path} has {len(parts)}: its columns "
            f"are {some(table.names)}"
        )
    values = np.column_stack([columns[name] for name in parts])
    own = {name: columns[name] for name in keys}
    weight = None if heavy is None else columns[heavy]
    lines = Lines(table, parts, values, weight, own, rows, heavy)
    if names is None:
        _no_total(lines, option)
    return lines


def _whole(
    table: Table, numbers: Sequence[str], keys: Sequence[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The columns of a table and the rows they are from, without rows that hold nothing."""
    try:
        columns = table.columns(numbers, keys)
    except TableError as fault:
        hint = "" if fault.column is None else " (a column of names is named with --id)"
        told = TableError(f"{fault}{hint}", row=fault.row, column=fault.column)
        raise table.named(told) from None
    rows = np.arange(len(next(iter(columns.values()))))
    if not len(rows):
        raise ValueError(
            f"{table.path}: the table must have lines below its names, but it has none"
        )
    blank = np.all([np.isnan(columns[name]) for name in numbers], axis=0)
    for key in keys:
        blank &= columns[key] == ""
    return rows[~blank], {name: values[~blank] for name, values in columns.items()}


def _found(table: Table, name: str, option: str) -> str:
    found = _like(table.names, name)
    if found is None:
        raise ValueError(
            f"{option} must name columns of {table.path}, which are {some(table.names)}, but "
            f"it names {name!r}"
        )
    return found


def _like(names: Sequence[str], wanted: str) -> str | None:
    """The column of this name, or the one that differs in capitals or by a unit."""
    if wanted in names:
        return wanted
    alike = [name for name in names if wanted.lower() in (name.lower(), unit_of(name)[0].lower())]
    return alike[0] if len(alike) == 1 else None


def _bare(names: list[str]) -> list[str]:
    """Names without their unit, if all have the same: what differs belongs to the name."""
    units = {unit_of(name)[1] for name in names}
    return [unit_of(name)[0] for name in names] if len(units) == 1 else names


def _no_total(lines: Lines, option: str) -> None:
    """Refuse a column that is the sum of all others, because it is a total and not a part."""
    values = np.nan_to_num(lines.values)
    values = values / np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
    rest = values.sum(axis=1, keepdims=True) - values
    sums = (np.abs(rest - values) <= SUM * np.abs(rest)).all(axis=0)
    if len(lines.parts) > 2 and len(values) > 1 and sums.any():
        name = lines.parts[int(np.argmax(sums))]
        raise ValueError(
            f"{lines.table.path}, column {name}: a part must not be the sum of all others, but it "
            f"is in every line: name the parts with {option}"
        )


def _complete(one: Lines, other: Lines, drop: bool) -> tuple[Lines, Lines]:
    """Both without lines that lack a value in either, or a refusal of the first."""
    lacking = one.lacking | other.lacking
    if drop:
        return one.only(~lacking), other.only(~lacking)
    for lines in (one, other):
        if lines.lacking.any():
            line = int(np.argmax(lines.lacking))
            gaps = np.isnan(lines.values[line])
            raise lines.wrong(
                "every value must be a number, but it is missing (--empty zero takes it for 0, "
                "--empty drop leaves the line out)",
                line,
                lines.parts[int(np.argmax(gaps))] if gaps.any() else lines.heavy,
            )
    return one, other


def _matched(one: Lines, other: Lines, single: bool, drop: bool) -> tuple[Lines, Lines]:
    """Both with the same lines in the same order."""
    key, same = (None, None) if single else _shared(one, other)
    if key is None and not single:
        if len(one.rows) == len(other.rows):
            return one, other
        raise ValueError(
            "BEFORE and AFTER must have one line per unit, but they have "
            f"{len(one.rows)} and {len(other.rows)}; a column with the names of the units in both, "
            "named with --id, would join them"
        )
    mine = one.rows if key is None else one.names[key]
    theirs = other.rows if same is None else other.names[same]
    if not drop:
        _all_there(one, key, mine, other, theirs)
        _all_there(other, same, theirs, one, mine)
    places = {label: place for place, label in enumerate(theirs.tolist())}
    found = np.array([places.get(label, -1) for label in mine.tolist()], dtype=int)
    return one.only(found >= 0), other.only(found[found >= 0])


def _all_there(
    lines: Lines, key: str | None, labels: np.ndarray, other: Lines, theirs: np.ndarray
) -> None:
    known = set(theirs.tolist())
    lost = np.array([label not in known for label in labels.tolist()], dtype=bool)
    if lost.any():
        line = int(np.argmax(lost))
        raise lines.wrong(
            f"every line must have its partner in {other.table.path}, but "
            f"{_check.shown(labels[line])} has none (so have {int(lost.sum())} lines in all; "
            "--empty drop leaves them out)",
            line,
            key,
        )


def _shared(one: Lines, other: Lines) -> tuple[str, str] | tuple[None, None]:
    """The column that both are joined by, as each calls it; None where lines come in order."""
    alike = [
        (key, same)
        for key in one.names
        for same in other.names
        if unit_of(key)[0].lower() == unit_of(same)[0].lower()
    ]
    for key, same in alike:
        if _unique(one.names[key]) and _unique(other.names[same]):
            return key, same
    for key, same in alike:
        if not np.array_equal(one.names[key], other.names[same]):
            lines, name = (other, same) if _unique(one.names[key]) else (one, key)
            labels = lines.names[name].tolist()
            line = next(at for at, label in enumerate(labels) if label in labels[:at])
            raise lines.wrong(
                f"names of lines must be unique to join two files, but {labels[line]!r} is there "
                "twice",
                line,
                name,
            )
    return None, None


def _remarks(counted: tuple[int, int], kept: int) -> list[str]:
    """What was left out, as notes of the fit."""
    lost = [
        f"{all_ - kept} of {all_} lines {when}"
        for all_, when in zip(counted, WHEN, strict=True)
        if all_ > kept
    ]
    return [f"left out for lack of a value or a partner: {' and '.join(lost)}"] if lost else []


def _unique(labels: np.ndarray) -> bool:
    return len(set(labels.tolist())) == len(labels)


def _sound(lines: Lines) -> None:
    """Refuse what no composition has, and say where it stands."""
    if not len(lines.values):
        raise ValueError(f"{lines.table.path}: at least one line must be complete, but none is")
    if (lines.values < 0).any():
        line, part = (int(at) for at in np.argwhere(lines.values < 0)[0])
        raise lines.wrong(
            f"every part must be at least 0, but it is {lines.values[line, part]:g}",
            line,
            lines.parts[part],
        )
    with np.errstate(over="ignore"):
        sums = lines.values.sum(axis=1)
    if not sums.all():
        raise lines.wrong(
            "a line must have some part above 0, but all are 0", int(np.argmin(sums != 0))
        )
    if not np.isfinite(sums).all():
        raise lines.wrong(
            "a line must have a finite sum, but it is inf", int(np.argmax(np.isinf(sums)))
        )
    if lines.weights is not None and not (lines.weights.min() >= 0 and lines.weights.any()):
        line = int(np.argmin(lines.weights))
        rule = (
            "at least 0, but one" if lines.weights[line] < 0 else "above 0 in some line, but each"
        )
        raise lines.wrong(f"weights must be {rule} is {lines.weights[line]:g}", line, lines.heavy)
