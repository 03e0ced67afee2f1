"""The bytes of a user's file, and the limits that every table keeps.

A file of text, standard input and whatever gzip holds are read into memory: no copy of them is
written to a disk, so that none is left behind when the process is killed.
"""

import gzip
import io
import re
import sys
import time
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from functools import cache
from pathlib import Path

BYTES = 1 << 30  # of a file that is read into memory
HELD = 1 << 28  # bytes that are unpacked, or come through standard input
ROWS = 5_000_000
COLUMNS = 10_000
NUMBERS = 50_000_000  # values of the columns that are read: 0.4 GB
FEW = 10_000_000  # values of a small file, and one more for every 2 bytes
LONGEST = 1 << 20  # bytes of one line
LABEL = 200  # bytes of a label
NAME = 1000  # characters of the name of a column
SECONDS = 2.0  # of processor time that reading may take,
RATE = 1 << 20  # and one more for so many bytes of the file
MEMORY = 1 << 30  # bytes of address space of a process that reads a file,
GROWTH = 12  # and so many more for every byte of the file

PIECE = 1 << 20
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
# Every byte that a text in UTF-8 or Latin-1 may hold. A file with others is not text.
TEXT = bytes({9, 10, 13, *range(32, 127), *range(128, 256)})
# Windows writes dashes and quotation marks where Latin-1 has control characters.
WINDOWS = {code: bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(128, 160)}
COMMENT = re.compile(rb'^[ \t"]*+#[^\n]*', re.MULTILINE)
SEPARATOR = re.compile(rb'\A[ \t"]*+sep=.?[ \t\r"]*$', re.MULTILINE | re.IGNORECASE)


class TableError(ValueError):
    """What is wrong with a table, and where: the row counts from 0, and `column` is a name."""

    def __init__(self, sentence: str, *, row: int | None = None, column: str | None = None) -> None:
        super().__init__(sentence)
        self.row: int | None = row
        self.column: str | None = column


class Budget:
    """The processor time, memory and values of one file, which grow with its size."""

    def __init__(self, shown: str, size: int) -> None:
        self.shown: str = shown
        self.seconds: float = SECONDS + size / RATE
        self.memory: int = MEMORY + GROWTH * size
        self.numbers: int = min(NUMBERS, FEW + size // 2)
        self._end = time.thread_time() + self.seconds

    def check(self) -> None:
        """Refuse a file that has taken too long."""
        if time.thread_time() > self._end:
            raise ValueError(
                f"{self.shown} must be read within {self.seconds:.0f} s, as files of its size are, "
                "but it takes longer"
            )


def contents(path: Path, most: int, what: str) -> bytes:
    """The bytes of a regular file of a reasonable size.

    Args:
        path: The file.
        most: The largest size in bytes.
        what: What the file has to be, for messages.

    Raises:
        ValueError: Where it is something else, or larger.
    """
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no regular file"
        raise ValueError(f"{path} must be {what} file, but it is {kind}")
    if path.stat().st_size > most:
        raise ValueError(f"{path} must be {what} of at most {most} bytes, but it is larger")
    with path.open("rb") as file:
        return file.read()


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def unpacked(path: Path, shown: str) -> tuple[bytes, Budget]:
    """What a file or standard input holds, without gzip, and the budget of reading it."""
    content = _taken() if str(path) == "-" else contents(path, BYTES, "a table")
    budget = Budget(shown, len(content))
    return (_gunzip(content, budget) if content.startswith(GZIP) else content), budget


@cache
def _taken() -> bytes:
    """All of standard input, which can be read once."""
    content = sys.stdin.buffer.read(HELD + 1)
    if len(content) > HELD:
        raise ValueError(f"standard input must be at most {HELD} bytes, but it is longer")
    return content


def _gunzip(content: bytes, budget: Budget) -> bytes:
    out = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            while part := file.read(PIECE):
                budget.check()
                if out.write(part) and out.tell() > HELD:
                    raise ValueError(
                        f"{budget.shown} must hold at most {HELD} bytes, but it holds more: unpack "
                        "it"
                    )
    except (OSError, EOFError, zlib.error) as wrong:
        raise ValueError(f"{budget.shown} must be a whole gzip file, but it is damaged") from wrong
    return out.getvalue()


def plain(content: bytes) -> bytes:
    """Text in UTF-8 with as many lines, without comments and byte-order marks."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        try:
            content = content.decode("utf-16").encode()
        except UnicodeDecodeError as wrong:
            raise TableError(
                "the file must be text, but it begins as UTF-16 and does not go on so"
            ) from wrong
    elif not _is_utf8(content):
        content = b"".join(
            part.decode("latin-1").translate(WINDOWS).encode() for part in _lines(content)
        )
    content = content.removeprefix(BOM_UTF8)
    if SEPARATOR.match(content) or COMMENT.match(content) or b"\n#" in content:
        content = SEPARATOR.sub(b"", content, count=1)
        content = b"".join(COMMENT.sub(b"", part) for part in _lines(content))
    return content


def _lines(content: bytes) -> Iterator[bytes]:
    """Whole lines, about a megabyte at a time."""
    file = io.BytesIO(content)
    while part := file.read(PIECE):
        yield part + file.readline()


def _is_utf8(content: bytes) -> bool:
    """Whether it is. What is not text at all is left to the reader of the table."""
    try:
        for part in _lines(content):
            if part.translate(None, TEXT):
                return True
            part.decode()
    except UnicodeDecodeError:
        return False
    return True
