"""Reads Parquet, JSON lines and NumPy archives for another process, which survives this one.

A damaged file can abort a process inside a library, and a small one can ask for any amount of
memory or time: the system limits both here. This file is run by its path and imports nothing of
whorl. It answers each request with lines of JSON, each followed by as many bytes as it says: first
the columns, then the wanted ones of them in batches, as streams of Arrow.
"""

import contextlib
import io
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

BLOCK = 1 << 16  # rows of numbers in a batch
LABELLED = 1 << 12  # rows in a batch with labels, which may be long
EXACT = 2**53  # up to here a double holds every whole number
LARGEST = 10**308
KINDS = {bool: "bool", str: "string", dict: "struct", list: "list", int: "double", float: "double"}


class WrongError(Exception):
    """What is wrong with a file: a sentence, the row and the column."""


class Parquet:
    """A Parquet file."""

    def __init__(self, source: Any) -> None:
        import pyarrow.parquet

        try:
            self.file = pyarrow.parquet.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)
            schema = self.file.schema_arrow
            self.rows = self.file.metadata.num_rows
            self.types = [(field.name, str(field.type)[:60]) for field in schema]
        except Exception as wrong:
            raise self.damaged("its end is missing or damaged") from wrong

    @staticmethod
    def damaged(how: str) -> WrongError:
        """How a file is damaged."""
        return WrongError(f"the file must be a whole Parquet file, but {how}")

    def batches(self, wanted: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns, so many rows at a time."""
        try:
            yield from self.file.iter_batches(rows, columns=wanted)
        except Exception as wrong:
            raise self.damaged("a part of it is damaged") from wrong


class Archive:
    """A NumPy archive: arrays `(rows,)`, `(rows, outputs)` or `(rows, samples, outputs)`."""

    def __init__(self, source: Any, most: int) -> None:
        import numpy as np

        try:
            with np.load(source, allow_pickle=False) as file:
                if any(name.startswith("xl/") for name in file.files):
                    raise self.other("it is an Excel workbook: save its sheet as CSV")
                arrays = {name: file[name] for name in file.files}
        except (MemoryError, WrongError):
            raise
        except Exception as wrong:
            raise self.other("it is damaged or holds objects") from wrong
        if len({one.shape[:1] for one in arrays.values()} | {()}) != 2:
            shapes = ", ".join(f"{name[:40]} {one.shape}" for name, one in [*arrays.items()][:9])
            raise WrongError(
                f"it must hold arrays with one entry per row, but it holds {shapes or 'none'}"
            )
        self.columns = {}
        for name, array in arrays.items():
            if array.dtype.kind not in "fiubUSM":
                raise self.other(f"{name[:40]} is of type {str(array.dtype)[:40]}")
            self.rows = len(array)
            flat = array.reshape(self.rows, math.prod(array.shape[1:]))
            if flat.shape[1] + len(self.columns) > most:
                raise self.other(
                    f"{name[:40]} of shape {array.shape} makes more than {most} columns"
                )
            for place, column in zip(np.ndindex(array.shape[1:]), flat.T, strict=True):
                suffix = "".join(f"_{number + 1}" for number in place)
                self.columns[f"{name}{suffix}"] = column
        types = dict.fromkeys("fiu", "double") | dict.fromkeys("US", "string")
        self.types = [
            (name, types.get(values.dtype.kind, "other")) for name, values in self.columns.items()
        ]

    @staticmethod
    def other(what: str) -> WrongError:
        """What a file is instead."""
        return WrongError(f"it must be an archive of plain arrays, but {what}")

    def batches(self, wanted: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns, so many rows at a time."""
        import numpy as np
        import pyarrow as pa

        for first in range(0, self.rows, rows):
            parts = [self.columns[name][first : first + rows] for name in wanted]
            native = [
                part.astype(np.float64 if part.dtype.kind == "f" else part.dtype.newbyteorder("="))
                for part in parts
            ]
            yield pa.record_batch([*map(pa.array, native)], names=wanted)


class Lines:
    """JSON lines: an object per line, whose lists are numbered columns."""

    def __init__(self, source: Any) -> None:
        self.columns: dict[str, dict[int, Any]] = {}
        self.rows = 0
        for line in source:
            if line.strip():
                for name, value in self._object(line):
                    values = self.columns.setdefault(name, {})
                    if value is not None:
                        values[self.rows] = value
                self.rows += 1
        self.types = [
            (name, KINDS[type(next(iter(values.values()), 0.0))])
            for name, values in self.columns.items()
        ]

    def _object(self, line: bytes) -> Iterator[tuple[str, Any]]:
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise WrongError("the line must be one JSON object, but it is not", self.rows)
        for name, value in given.items():
            if isinstance(value, list):
                yield from ((f"{name}_{place}", one) for place, one in enumerate(value, 1))
            else:
                yield name, value

    def batches(self, wanted: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns, so many rows at a time."""
        import pyarrow as pa

        types = dict(self.types)
        for first in range(0, self.rows, rows):
            here = range(first, min(first + rows, self.rows))
            arrays = [self._array(name, types[name], here) for name in wanted]
            yield pa.record_batch(arrays, names=wanted)

    def _array(self, name: str, kind: str, rows: range) -> Any:
        import pyarrow as pa

        values = [self.columns[name].get(row) for row in rows]
        there = [value for value in values if value is not None]
        whole = all(type(value) is int and abs(value) <= EXACT for value in there)
        for row, value in zip(rows, values, strict=True):
            if value is not None and KINDS[type(value)] != kind:
                rule = "of one kind with the first"
            elif type(value) is int and abs(value) > LARGEST:
                rule = "a finite number"
            else:
                continue
            raise WrongError(f"every value must be {rule}, but it is {value!r:.40}", row, name)
        if kind == "double" and not whole:
            values = [None if value is None else float(value) for value in values]
        form = {"bool": pa.bool_(), "string": pa.string()}.get(kind)
        return pa.array(values, form or (pa.int64() if whole else pa.float64()))


def limit(name: str, most: int) -> int:
    """Lower a limit of this process, where the system has it; the limit that holds now."""
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        kind = getattr(resource, name)
        known = [one for one in resource.getrlimit(kind) if one != resource.RLIM_INFINITY]
        most = min([most, *known])
        # The system sends SIGKILL where both are reached, and SIGXCPU, which says more, before.
        resource.setrlimit(kind, (most, most + 1 if name == "RLIMIT_CPU" else most))
    return most


def say(out: Any, said: dict[str, Any], data: Any = b"") -> None:
    """Answer."""
    out.write(json.dumps(said | {"bytes": len(data)}).encode() + b"\n")
    out.write(data)
    out.flush()


def packed(batch: Any) -> Any:
    """A batch as a stream of Arrow."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def answer(out: Any, kind: str, source: Any, most: int) -> None:
    """Say what the columns are, and hand out those that are asked for, until no one asks."""
    try:
        file: Any = (
            Archive(source, most)
            if kind == "npz"
            else {"json": Lines, "parquet": Parquet}[kind](source)
        )
        say(out, {"types": file.types, "rows": file.rows})
        for line in sys.stdin.buffer:
            numbers, labels = json.loads(line)
            for batch in file.batches([*numbers, *labels], LABELLED if labels else BLOCK):
                say(out, {}, packed(batch))
            say(out, {"end": True})
    except MemoryError:
        say(out, {"memory": True})
    except WrongError as wrong:
        memory = isinstance(wrong.__cause__, MemoryError)
        say(out, {"memory": True} if memory else {"wrong": wrong.args})
    except Exception:  # such as half a character in a text of JSON
        say(out, {"wrong": ["every value must be readable, but one is not"]})


def main() -> None:
    """Read the file that is named, or the bytes that come first."""
    kind, path = sys.argv[1:3]
    seconds, memory, columns, size = map(int, sys.argv[3:])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not disturb the answers
    limit("RLIMIT_CORE", 0)
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    content = sys.stdin.buffer.read(size)
    if limit("RLIMIT_AS", memory + size) < memory + size:
        sys.exit(1)  # a limit of the session, which would say nothing of the file
    limit("RLIMIT_CPU", int(time.process_time() + seconds + 0.5))
    source = io.BytesIO(content) if size else open(path, "rb")  # noqa: SIM115, PTH123
    answer(out, kind, source, columns)


if __name__ == "__main__":
    main()
