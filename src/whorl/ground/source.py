"""What people's files look like, made into what the reader of tables takes.

Standard input, gzip, JSON lines, NumPy archives, text as Windows and Excel write it (Latin-1,
UTF-16, a line "sep=;") and comments become a plain file in a folder that goes away with its table;
CSV in UTF-8 and Parquet are read where they are.
"""

import codecs
import gzip
import json
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

MOST = 1 << 28  # bytes of standard input, of JSON or of an archive, which are held in memory
# every byte that a text in UTF-8 or Latin-1 may hold; a file with others is no text
TEXT = bytes({9, 10, 13, *range(32, 127), *range(128, 256)})


class Source:
    """A file to read, and what it is called in sentences."""

    def __init__(self, path: str | Path) -> None:
        self.shown: Path = Path("standard input" if str(path) == "-" else path)
        self._made: Path | None = None
        self.path: Path = self._copied(_taken()) if str(path) == "-" else Path(path)
        with self.path.open("rb") as file:
            start = file.read(4)
        if start[:2] == b"\x1f\x8b":
            self.path = self._copied(_unpacked(self.path, self.shown))
            with self.path.open("rb") as file:
                start = file.read(4)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            self.path = self._copied(_from_utf16(self.path, self.shown))
        if start == b"PK\x03\x04":
            self.path = self._table(_archive(self.path, self.shown))
        elif start[:1] == b"{":
            self.path = self._table(_lines_of_json(self.path, self.shown))
        elif start and start != b"PAR1":
            self._plain()

    def _folder(self) -> Path:
        if self._made is None:
            self._made = Path(tempfile.mkdtemp(prefix="whorl-"))
            weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        return self._made

    def _copied(self, content: bytes) -> Path:
        (place := self._folder() / "input").write_bytes(content)
        return place

    def _table(self, columns: dict[str, Any]) -> Path:
        place = self._folder() / "table.parquet"
        pyarrow.parquet.write_table(pa.table(columns), place)
        return place

    def _plain(self) -> None:
        """UTF-8 without comments, in as many lines, where the file is something else."""
        latin, comments = not _is_utf8(self.path), _has_comments(self.path)
        if not latin and not comments:
            return
        place = self._folder() / "plain.csv"
        with self.path.open("rb") as file, place.open("wb") as out:
            for line in file:
                kept = b"\n" if _is_comment(line) else line
                out.write(_from_windows(kept).encode() if latin else kept)
        self.path = place


@cache
def _taken() -> bytes:
    """All of standard input, which can be read once."""
    content = sys.stdin.buffer.read(MOST + 1)
    if len(content) > MOST:
        raise ValueError(f"standard input must be at most {MOST} bytes, but it is longer")
    return content


def _is_utf8(path: Path) -> bool:
    """Whether it is; what is no text at all is left to whoever reads it."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while block := file.read(1 << 20):
                if block.translate(None, TEXT):
                    return True
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _unpacked(path: Path, shown: Path) -> bytes:
    """A file packed by gzip, as long as it is not larger than what is held in memory."""
    try:
        with gzip.open(path) as file:
            content = file.read(MOST + 1)
    except (OSError, EOFError, zlib.error) as wrong:
        raise ValueError(f"{shown} must be a whole gzip file, but it is damaged") from wrong
    if len(content) > MOST:
        raise ValueError(f"{shown} must hold at most {MOST} bytes, but it holds more: unpack it")
    return content


def _from_windows(line: bytes) -> str:
    """Text in the set of Windows, which is Latin-1 with more dashes and quotation marks."""
    try:
        return line.decode("cp1252")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _from_utf16(path: Path, shown: Path) -> bytes:
    _small(path, shown)
    try:
        return path.read_bytes().decode("utf-16").encode()
    except UnicodeDecodeError as wrong:
        raise ValueError(
            f"{shown} must be text, but it begins as UTF-16 and does not go on so"
        ) from wrong


def _is_comment(line: bytes) -> bool:
    """A remark, or Excel's own first line, which names the separator."""
    bare = line.removeprefix(codecs.BOM_UTF8).strip(b' \t\r\n"')
    return bare.startswith(b"#") or (len(bare) <= 5 and bare[:4].lower() == b"sep=")


def _has_comments(path: Path) -> bool:
    with path.open("rb") as file:
        if _is_comment(file.readline(1 << 20)):
            return True
        file.seek(0)
        tail = b"\n"
        while block := file.read(1 << 20):
            if b"\n#" in tail + block:
                return True
            tail = block[-1:]
    return False


def _small(path: Path, shown: Path) -> None:
    if path.stat().st_size > MOST:
        raise ValueError(f"{shown} must be at most {MOST} bytes, but it is larger: use Parquet")


def _lines_of_json(path: Path, shown: Path) -> dict[str, Any]:
    _small(path, shown)
    rows = list(_rows(path, shown))
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        return {name: pa.array([row.get(name) for row in rows]) for name in names}
    except (pa.ArrowException, TypeError) as wrong:
        raise ValueError(
            f"{shown}: every value of a column must be of one kind, but {str(wrong)[:80]}"
        ) from wrong


def _rows(path: Path, shown: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise ValueError(
                f"{shown}, line {number}: the line must be one JSON object, but it is not"
            )
        yield {
            f"{name}_{place}" if isinstance(value, list) else name: one
            for name, value in row.items()
            for place, one in enumerate(value if isinstance(value, list) else [value], 1)
        }


def _is_workbook(path: Path) -> bool:
    with zipfile.ZipFile(path) as file:
        return any(name.startswith("xl/") for name in file.namelist())


def _archive(path: Path, shown: Path) -> dict[str, Any]:
    """Arrays of a NumPy archive: tables `(rows, outputs)`, cubes `(rows, samples, outputs)`, rows."""
    _small(path, shown)
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{shown} must be an archive of plain arrays, but it is damaged")
    if _is_workbook(path):
        raise ValueError(
            f"{shown} must be CSV, Parquet, JSON lines or a NumPy archive, but it is an Excel "
            "workbook: save its sheet as CSV"
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as wrong:
        raise ValueError(f"{shown} must be an archive of plain arrays, but {wrong}") from wrong
    if not arrays:
        raise ValueError(f"{shown} must hold arrays, but it holds none")
    rows = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(rows) != 1:
        sizes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{shown} must hold arrays with one entry per row, but it holds {sizes}")
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        for place in np.ndindex(array.shape[1:]):
            suffix = "".join(f"_{number + 1}" for number in place)
            columns[f"{name}{suffix}"] = array[(slice(None), *place)]
    return columns
