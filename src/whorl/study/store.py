"""The only place that writes results: whole files under their final names, or nothing.

A file is written under a temporary name, forced to the disk, and moved into place, so that a kill at any moment leaves either the old
file or the new one.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as pacsv

from whorl.study.columns import UNIT, columns

TEMPORARY = ".part"
MANIFEST = "manifest-sha256.txt"
DIGEST = "sha256_of_these_arrays"
UNLISTED = ("audit.json",)  # what a verifier writes afterwards


def write(path: Path, content: bytes | str) -> None:
    """Put a whole file in place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as wrong:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(wrong.errno, wrong.strerror, str(path)) from wrong


def write_json(path: Path, content: Any) -> None:
    """JSON with sorted keys, so that equal contents are equal bytes."""
    write(path, json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """JSON that this package wrote.

    Examples:
        >>> from whorl.study import store
        >>> store.write_json(folder / "verdict.json", {"verdict": "PASS"})
        >>> store.read_json(folder / "verdict.json")
        {'verdict': 'PASS'}
    """
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{path} must be JSON, but it cannot be read") from wrong


def arrow(kind: str, name: str, table: dict[str, np.ndarray]) -> pa.Table:
    """A table with its documented columns, and what they mean in the schema."""
    wanted = columns(kind, name)
    if [column.name for column in wanted] != list(table):
        raise ValueError(f"table {name} must have the columns {[c.name for c in wanted]}, but it has {list(table)}")
    fields, arrays = [], []
    for column in wanted:
        about = {"role": column.role, "unit": UNIT, "equation": column.equation, "description": column.meaning}
        fields.append(pa.field(column.name, pa.type_for_alias(column.type), nullable=False, metadata=about))
        arrays.append(pa.array(table[column.name].tolist() if column.type == "string" else table[column.name], fields[-1].type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={"study": kind, "table": name}))


def parquet(table: pa.Table) -> bytes:
    """The bytes of a Parquet file; equal tables give equal bytes."""
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=True, write_statistics=True, version="2.6")
    return buffer.getvalue()


def csv(table: pa.Table) -> bytes:
    """The same as text, each number with the digits it takes to read it back."""
    buffer = BytesIO()
    pacsv.write_csv(table, buffer)
    return buffer.getvalue()


def read_table(path: Path) -> dict[str, np.ndarray]:
    """A stored table as columns.

    Examples:
        >>> from whorl.study import design, run, store
        >>> verdict = run.run(design.shipped("threshold"), folder / "run", registered={}, quick=True)
        >>> sorted(store.read_table(folder / "run" / "tables" / "statistics.parquet"))
        ['name', 'value']
    """
    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
        if isinstance(wrong, OSError) and wrong.errno is not None:  # no such file, and the like
            raise
        raise ValueError(f"{path} must be a whole Parquet table, but it cannot be read") from wrong
    text = {name for name in table.column_names if table[name].type == pa.string()}
    return {name: np.asarray(table[name].to_pylist()) if name in text else table[name].to_numpy() for name in table.column_names}


def write_arrays(path: Path, arrays: dict[str, np.ndarray], key: str = "") -> None:
    """What a stage computed, for a run that may be interrupted; `key` says what it was computed from."""
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **{DIGEST: np.array(_digest(arrays, key))}, **arrays)
    write(path, buffer.getvalue())


def read_arrays(path: Path, key: str = "") -> dict[str, np.ndarray] | None:
    """What a stage computed before the interruption; None where the file is missing, damaged, or not what was written under this key."""
    damage = (ValueError, OSError, EOFError, KeyError, TypeError, MemoryError, NotImplementedError, BadZipFile)
    with contextlib.suppress(*damage), path.open("rb") as file, np.load(file, allow_pickle=False) as found:
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


def files(folder: Path) -> Iterator[Path]:
    """Every file that belongs to a finished run folder, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.is_file() and path.name not in (MANIFEST, *UNLISTED) and not any(part.startswith(".") for part in inside):
            yield path


def seal(folder: Path) -> None:
    """Write the manifest: one hash a file, as `sha256sum` reads it."""
    lines = [f"{hash_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files(folder)]
    write(folder / MANIFEST, "".join(lines))


def is_part(path: Path, of: Path) -> bool:
    """Whether a file is what a killed writer of another left behind."""
    return path.name.startswith(f".{of.name}.") and path.name.endswith(TEMPORARY)


def sweep(folder: Path) -> None:
    """Remove what a killed writer left behind."""
    for path in folder.rglob(f".*{TEMPORARY}"):
        path.unlink(missing_ok=True)
