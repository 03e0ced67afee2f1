"""Read every file of an untrusted folder.

Regular files of bounded size, read whole, and parsed strictly.

A name in a run folder may be a link to anything, a pipe that never answers, or a device that never
ends. Here a file is opened without following a link and without waiting, must be a regular one once
it is open, and is read up to its limit. Whatever cannot be read ends in an `UnreadableError` of one
sentence that names the file.
"""

import csv
import hashlib
import io
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whorl_audit import parquet
from whorl_audit.types import UnreadableError

ENTRIES = 10_000  # names in a run folder
FOLDER = 4 << 30  # bytes of all its files
FILE = 512 << 20  # bytes of one file
TEXT = 8 << 20  # bytes of JSON, and of the manifest
DESIGN = 1_000_000  # bytes of a design
DEPTH = 32  # levels of nesting in JSON and TOML
COLUMNS = 100  # of a table
CELLS = 100_000_000  # rows times columns of a table
WORD = 200  # letters of a word in a table

_PART = 1 << 20
_QUIET = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_TOML = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?|#[^\n]*|['
    r" \t]+|\w+|.",
    re.DOTALL,
)


def _refusal(path: Path, rule: str, why: object) -> UnreadableError:
    return UnreadableError(
        f"{path.name} must be {rule}, but {path}: {' '.join(str(why).split())[:200]}"
    )


@contextmanager
def _opened(path: Path, limit: int) -> Iterator[io.FileIO]:
    """An open regular file of at most `limit` bytes."""
    try:
        number = os.open(path, _QUIET)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        linked = path.is_symlink()
        raise _refusal(
            path, "a readable file", "it is a link" if linked else getattr(error, "strerror", error)
        ) from error
    with io.FileIO(number) as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise _refusal(path, "a readable file", "it is a folder, a pipe or a device")
        if found.st_size > limit:
            raise _refusal(path, f"a file of at most {limit} bytes", f"it has {found.st_size}")
        yield file


def _parts(path: Path, limit: int) -> Iterator[bytes]:
    """The bytes of a file, part by part; one that grows while it is read ends at the limit too."""
    seen = 0
    with _opened(path, limit) as file:
        try:
            while part := file.read(_PART):
                seen += len(part)
                if seen > limit:
                    raise _refusal(path, f"a file of at most {limit} bytes", "it has more")
                yield part
        except OSError as error:
            raise _refusal(path, "a readable file", error.strerror) from error


def read_bytes(path: Path, limit: int = FILE) -> bytes:
    """The bytes of a regular file that must be there.

    Args:
        path: The file. A link is refused, and so is whatever is no regular file.
        limit: The most bytes that it may have.

    Raises:
        UnreadableError: If it cannot be read.
    """
    return b"".join(_parts(path, limit))


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes, as manifests write it."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, which is never in memory as a whole."""
    digest = hashlib.sha256()
    for part in _parts(path, FILE):
        digest.update(part)
    return digest.hexdigest()


def read_text(path: Path, limit: int = TEXT) -> str:
    """A text in UTF-8."""
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refusal(path, "a text in UTF-8", error) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name[:80]!r} stands there twice")
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _flat_enough(value: Any) -> bool:
    """Whether a value is nested no deeper than it may be."""
    level = [value]
    for _ in range(DEPTH):
        parts = [
            one.values() if isinstance(one, dict) else one
            for one in level
            if isinstance(one, dict | list)
        ]
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
        if not level:
            return True
    return False


def parsed_json(text: str) -> Any:
    """JSON as the standard has it: no key twice, no NaN, nothing nested without end.

    Raises:
        ValueError: If it is none.
    """
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        value = None
    else:
        if _flat_enough(value):
            return value
    raise ValueError(f"it is nested deeper than {DEPTH} levels")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object in a file."""
    text = read_text(path)
    try:
        value = parsed_json(text)
    except ValueError as error:
        raise _refusal(path, "JSON", error) from error
    if not isinstance(value, dict):
        raise UnreadableError(
            f"{path.name} must hold a JSON object, but {path} holds {type(value).__name__}"
        )
    return value


def _toml_depth(text: str) -> int:
    """The deepest nesting of a TOML text, by brackets or by the dots of a key, before anything is
    built from it.
    """
    deepest = brackets = dots = 0
    for token in _TOML.finditer(text):
        first = token[0][0]
        if first in "[{":
            brackets += 1
        elif first in "]}":
            brackets -= 1
        dots = (
            dots + 1
            if first == "."
            else dots
            if first in " \t\"'-" or first.isalnum() or first == "_"
            else 0
        )
        deepest = max(deepest, brackets, dots)
    return deepest


def read_toml(path: Path) -> tuple[dict[str, Any], bytes]:
    """A TOML file, and the bytes that it was read from."""
    content = read_bytes(path, DESIGN)
    try:
        text = content.decode("utf-8")
        if _toml_depth(text) > DEPTH:
            raise ValueError(f"it is nested deeper than {DEPTH} levels")
        return tomllib.loads(text), content
    except (ValueError, RecursionError) as error:
        raise _refusal(path, "TOML", error) from error


def parsed_table(content: bytes) -> pa.Table:
    """A Parquet table, if it is not larger than a table may be.

    Raises:
        ValueError: If it is none, or larger.
    """
    try:
        parquet.footer(content)
        file = pq.ParquetFile(pa.BufferReader(content))
        columns, cells = (
            file.metadata.num_columns,
            file.metadata.num_rows * file.metadata.num_columns,
        )
        if columns > COLUMNS or cells > CELLS:
            raise ValueError(
                f"it has {columns} columns and {cells} cells, and {COLUMNS} and {CELLS} are allowed"
            )
        kinds = [field.type for field in file.schema_arrow]
        if any(pa.types.is_nested(kind) or pa.types.is_dictionary(kind) for kind in kinds):
            raise ValueError("it has columns of lists or of codes")
        words = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        table = pq.ParquetFile(pa.BufferReader(content), read_dictionary=words).read(
            use_threads=False
        )
        table = _plain(table)
        parquet.check(content, file.schema_arrow, table)
        return table
    except (
        pa.ArrowException,
        OSError,
        UnicodeDecodeError,
        RecursionError,
        NotImplementedError,
    ) as error:
        if isinstance(error, MemoryError):
            raise
        raise ValueError(f"no Parquet file ({' '.join(str(error).split())[:200]})") from error


def _plain(table: pa.Table) -> pa.Table:
    """A table whose words are written out.

    Read as numbers into a list of words, a long one that repeats takes no room before.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            for chunk in table.column(at).chunks:
                if any(
                    len(word) > WORD for word in chunk.dictionary.to_pylist() if word is not None
                ):
                    raise ValueError(f"{field.name} has a word of more than {WORD} letters")
            plain = pa.field(field.name, pa.string(), field.nullable, field.metadata)
            table = table.set_column(at, plain, table.column(at).cast(pa.string()))
    return table


def parsed_csv(text: str) -> list[list[str]]:
    """The rows of a CSV table, each a list of texts, the first of which names the columns.

    Raises:
        ValueError: If it is none, or a field is longer than a word may be.
    """
    try:
        rows = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as error:
        raise ValueError(f"no CSV table ({error})") from error
    if any(len(field) > WORD for row in rows for field in row):
        raise ValueError(f"it has a field of more than {WORD} letters")
    if not rows:
        raise ValueError("it is empty")
    return rows
