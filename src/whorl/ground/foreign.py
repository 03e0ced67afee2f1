"""Parquet, JSON lines and NumPy archives, read in a process of their own with limits."""

import contextlib
import io
import itertools
import json
import signal
import subprocess  # nosec B404 # starts this interpreter only
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from whorl._child import environment, python_command
from whorl.ground.source import COLUMNS, ROWS, Budget, TableError

CHILD = Path(__file__).with_name("foreign_child.py")
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # threads take address space


class Foreign:
    """A file of a kind, "parquet", "json" or "npz", given by its path or by its bytes."""

    def __init__(self, kind: str, given: Path | bytes, budget: Budget) -> None:
        self.budget: Budget = budget
        self._content, path = (given, "") if isinstance(given, bytes) else (b"", str(given))
        limits = int(budget.seconds), budget.memory, COLUMNS, len(self._content)
        self._lines = kind == "json"
        # In a session of its own it does not hear Ctrl-C. It ends when its input does, which is
        # when this process ends, in whatever way.
        self._child = subprocess.Popen(  # nosec B603 # this interpreter and nothing from outside
            python_command(str(CHILD), kind, path, *map(str, limits)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(ARROW_DEFAULT_MEMORY_POOL="system", **SINGLE),
            start_new_session=True,
        )
        weakref.finalize(self, _end, self._child)
        self._send(self._content)
        said, _ = self._heard()
        if said["rows"] > ROWS:
            raise TableError(f"the table must have at most {ROWS} rows, but it has {said['rows']}")
        self.names: list[str] = [name for name, _ in said["types"]]
        self.types: dict[str, str] = dict(said["types"])

    def pieces(
        self, numbers: Sequence[str], labels: Sequence[str]
    ) -> Iterator[Mapping[str, pa.Array]]:
        """The rows, a batch at a time."""
        self._send(json.dumps([numbers, labels]).encode() + b"\n")
        while not (heard := self._heard())[0].get("end"):
            (batch,) = pa.ipc.open_stream(heard[1])
            yield dict(zip(batch.schema.names, batch.columns, strict=True))

    def place(self, row: int) -> str:
        """Where a row stands in the file."""
        if not self._lines:
            return f"row {row + 1}"
        lines = (number for number, line in enumerate(io.BytesIO(self._content), 1) if line.strip())
        return f"line {next(itertools.islice(lines, row, None))}"

    def _send(self, content: bytes) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its answer, or the lack of one, tells more
            self._child.stdin.write(content)
            self._child.stdin.flush()

    def _heard(self) -> tuple[dict[str, Any], bytes]:
        """What the child says next."""
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        said: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {"bytes": 1}
        data = self._child.stdout.read(said["bytes"])
        if len(data) < said["bytes"]:
            raise self._ended()
        if "memory" in said:
            raise TableError(
                f"the file must be read with at most {self.budget.memory} bytes of memory, but it takes "
                "more"
            )
        if "wrong" in said:
            sentence, row, column = [*said["wrong"], None, None][:3]
            raise TableError(sentence, row=row, column=column)
        return said, data

    def _ended(self) -> TableError | MemoryError:
        """What it means that the child is gone."""
        code = self._child.wait()
        if code < 0 and signal.Signals(-code).name == "SIGXCPU":
            return TableError(
                f"the file must be read within {self.budget.seconds:.0f} s, as files of its size "
                "are, but it takes longer"
            )
        if code > 0 or code == -9:  # it could not start, or the system ended it
            return MemoryError("the process that reads the file has too little")
        return TableError("the file must be whole, but a part of it is damaged")


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
