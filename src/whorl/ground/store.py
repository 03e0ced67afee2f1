"""The only place that writes results: whole files under their final names, or nothing.

A file is written under a temporary name, forced to the disk, and moved into place, so that a kill
at any moment leaves either the old file or the new one. The temporary name says whose it is, so
that others can tell what a dead process left from what a living one writes.
"""

import contextlib
import errno
import itertools
import json
import os
import platform
import re
import stat
import time
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as pacsv

TEMPORARY = ".part"
OWNED = re.compile(
    rf"(?P<host>[A-Za-z0-9_-]+)\.(?P<number>\d{{1,9}})-\w+({re.escape(TEMPORARY)})?$"
)
STALE = 3600.0  # seconds after which an unfinished file of another machine is nobody's any more
DIGEST = "sha256_of_these_arrays"
FILE = 512 << 20  # bytes of one file
COLUMNS = 100  # of a table
CELLS = 100_000_000  # rows times columns of a table
WORD = 200  # letters of a word in a table
_NUMBERS = itertools.count()


def write(path: Path, content: bytes | str, *, tidy: bool = True) -> None:
    """Put a whole file in place.

    With `tidy`, remove what killed writers of the same file left behind. It reads the whole folder:
    switch it off for folders of very many files, on which `sweep` is called.
    """
    whole = content.encode() if isinstance(content, str) else content
    for left in (2, 1, 0):
        try:
            with placed(path, tidy=tidy) as part:
                part.write_bytes(whole)
            return
        except FileNotFoundError:  # another run of the same folder was done, and removed its work
            if not left:
                raise


@contextlib.contextmanager
def placed(path: Path, *, tidy: bool = True) -> Iterator[Path]:
    """A name to write a file under.

    It is forced to the disk and moved to `path` afterwards, and so is its new name.
    """
    fresh = [folder for folder in path.parents if not folder.exists()]
    temporary = path.with_name(f".{path.name}.{owner()}-{next(_NUMBERS)}{TEMPORARY}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        for folder in (path.parent, *(folder.parent for folder in fresh)):
            _sync(folder)
        if tidy:
            _remove_left(one for one in path.parent.iterdir() if is_part(one, of=path))
    except OSError as wrong:
        code = errno.EIO if wrong.errno is None else wrong.errno
        raise OSError(code, wrong.strerror or str(wrong), str(path)) from wrong
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Force the names in a folder to the disk, on systems that can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as wrong:
        if wrong.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):
            raise


@cache
def _host() -> str:
    """This machine, and the space in which its process numbers count.

    A container may share a name and not the numbers.
    """
    with contextlib.suppress(OSError):
        return f"{_word(platform.node())}-{Path('/proc/self/ns/pid').stat().st_ino}"
    return _word(platform.node())


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", text)[:40]


def owner() -> str:
    """This process, as a part of a file's name."""
    return f"{_host()}.{os.getpid()}"


def orphaned(name: str) -> bool | None:
    """Whether the owner in a name is dead.

    None where nobody here can tell, since it is not a process of this machine.
    """
    found = OWNED.search(name)
    if found is None or found["host"] != _host() or os.name != "posix":
        return None
    try:
        os.kill(int(found["number"]), 0)
        state = Path(f"/proc/{found['number']}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except OSError:  # somebody else's process, or no such file on this system
        return False
    return state in "ZX"  # dead, and not buried yet


def write_json(path: Path, content: Any) -> None:
    """JSON with sorted keys, so that equal contents are equal bytes."""
    write(path, json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """JSON that this package wrote.

    Examples:
        >>> from whorl.ground import store
        >>> store.write_json(folder / "verdict.json", {"verdict": "PASS"})
        >>> store.read_json(folder / "verdict.json")
        {'verdict': 'PASS'}
    """
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{path} must be JSON, but it cannot be read") from wrong


def parquet(table: pa.Table) -> bytes:
    """The bytes of a Parquet file; equal tables give equal bytes."""
    buffer = BytesIO()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        use_dictionary=True,
        write_statistics=True,
        version="2.6",
        # The audit refuses other pages and indexes, which a later library may write by default.
        data_page_version="1.0",
        write_page_index=False,
        write_page_checksum=False,
    )
    return buffer.getvalue()


def csv(table: pa.Table) -> bytes:
    """The same as text, each number with the digits it takes to read it back."""
    buffer = BytesIO()
    pacsv.write_csv(table, buffer)
    return buffer.getvalue()


def read_table(path: Path, content: bytes | None = None) -> dict[str, np.ndarray]:
    """A stored table as columns; from its bytes where they were read already.

    Examples:
        >>> import pyarrow as pa
        >>> from whorl.ground import store
        >>> store.write(folder / "few.parquet", store.parquet(pa.table({"value": [1.0, 2.0]})))
        >>> store.read_table(folder / "few.parquet")["value"].tolist()
        [1.0, 2.0]
    """
    source = path if content is None else pa.BufferReader(content)
    try:
        with pq.ParquetFile(source) as file:
            text = [field.name for field in file.schema_arrow if field.type == pa.string()]
            across, cells = (
                file.metadata.num_columns,
                file.metadata.num_rows * file.metadata.num_columns,
            )
        if across > COLUMNS or cells > CELLS:
            most = f"{COLUMNS} columns and {CELLS} cells"
            raise ValueError(f"{path} must have at most {most}, but it has {across} and {cells}")
        source = path if content is None else pa.BufferReader(content)
        # Words are read as numbers into a list of different words, so that a long one takes its
        # room once.
        table = pq.ParquetFile(source, read_dictionary=text).read()
        return {
            name: _words(path, table[name]) if name in text else table[name].to_numpy()
            for name in table.column_names
        }
    except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
        if isinstance(wrong, OSError) and wrong.errno is not None:  # no such file, and the like
            raise
        raise ValueError(f"{path} must be a whole Parquet table, but it cannot be read") from wrong


def _words(path: Path, column: pa.ChunkedArray) -> np.ndarray:
    parts = [np.empty(0, str)]
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        if any(word is None or len(word) > WORD for word in words) or chunk.null_count:
            raise ValueError(
                f"{path} must hold words of at most {WORD} letters, but one is longer or missing"
            )
        parts.append(np.asarray(words, str)[chunk.indices.to_numpy()])
    return np.concatenate(parts)


def contents(path: Path) -> bytes:
    """The bytes of a regular file; a link is not followed, a pipe not waited for.

    Raises:
        OSError: If there is no such file, or it cannot be read.
        ValueError: If it is no regular file, or larger than a file of a run may be.
    """
    if path.is_symlink():
        raise ValueError(f"{path} must be a regular file, but it is a link")
    # The two flags are missing on systems that have neither links of this kind nor pipes with
    # names.
    number = os.open(
        path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    )
    with os.fdopen(number, "rb") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path} must be a regular file, but it is a pipe or a device")
        content = file.read(FILE + 1) if found.st_size <= FILE else b""
    if found.st_size > FILE or len(content) > FILE:
        raise ValueError(
            f"{path} must have at most {FILE} bytes, but it has {max(found.st_size, len(content))}"
        )
    return content


def write_arrays(path: Path, arrays: dict[str, np.ndarray], key: str = "") -> None:
    """What a stage computed, for a run that may be interrupted.

    `key` says what it was computed from.
    """
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **{DIGEST: np.array(_digest(arrays, key))}, **arrays)
    write(path, buffer.getvalue())


def read_arrays(path: Path, key: str = "") -> dict[str, np.ndarray] | None:
    """What a stage computed before the interruption.

    None where the file is missing, damaged, or not what was written under this key.
    """
    damage = (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        TypeError,
        MemoryError,
        NotImplementedError,
        BadZipFile,
    )
    with (
        contextlib.suppress(*damage),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as found,
    ):
        if isinstance(found, np.ndarray) or any(one.compress_type for one in found.zip.infolist()):
            return None  # no archive of ours, which never unpacks to more than it is
        arrays = {name: found[name] for name in found.files if name != DIGEST}
        return arrays if str(found[DIGEST]) == _digest(arrays, key) else None
    return None


def _digest(arrays: dict[str, np.ndarray], key: str) -> str:
    """Of names, types, shapes and values."""
    digest = sha256(key.encode())
    for name, values in sorted(arrays.items()):
        digest.update(f"|{name}|{values.dtype.str}|{values.shape}|".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def hash_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        digest = sha256()
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def is_part(path: Path, of: Path) -> bool:
    """Whether a file is what a killed writer of another left behind."""
    return path.name.startswith(f".{of.name}.") and path.name.endswith(TEMPORARY)


def is_free(folder: Path, first: Path) -> bool:
    """Whether a folder is new or empty, but for what killed writers of its first file left behind.

    Look for the first file after this, not before: another start on the same folder may be writing
    it.
    """
    return not folder.exists() or (
        folder.is_dir() and all(is_part(path, of=first) for path in folder.iterdir())
    )


def sweep(folder: Path) -> None:
    """Remove what killed writers left behind, but not what another process may be writing now."""
    _remove_left(
        path
        for path in _inside(folder)
        if path.name.startswith(".") and path.name.endswith(TEMPORARY)
    )


def _remove_left(parts: Iterable[Path]) -> None:
    for path in parts:
        if _left_behind(path):
            path.unlink(missing_ok=True)


def _left_behind(path: Path) -> bool:
    dead = orphaned(path.name)
    with contextlib.suppress(OSError):  # it has just been finished
        return time.time() - path.stat().st_mtime > STALE if dead is None else dead
    return False


def _inside(folder: Path) -> Iterator[Path]:
    """Every file below a folder, though others may remove some meanwhile."""
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)
