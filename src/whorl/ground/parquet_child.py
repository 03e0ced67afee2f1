"""Reads a Parquet file for another process, which survives if this one does not.

A damaged Parquet file can abort a process inside Arrow, and a small one can ask for any amount of
memory or time. This file is run by its path and imports nothing of the library. It answers each
request with lines of JSON, each followed by as many bytes as it says: first the columns, then the
wanted ones of them in batches, as streams of Arrow.
"""

import contextlib
import json
import os
import sys
import time
from typing import Any

BLOCK = 1 << 16  # rows of numbers in a batch
LABELLED = 1 << 12  # rows in a batch with labels, which may be long
DAMAGED = "the file must be a whole Parquet file, but"


def limit(name: str, most: int) -> int:
    """Lower a limit of this process, where the system has it; the limit that holds now."""
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        kind = getattr(resource, name)
        known = [one for one in resource.getrlimit(kind) if one != resource.RLIM_INFINITY]
        most = min([most, *known])
        resource.setrlimit(kind, (most, most))
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


def answer(out: Any, source: Any) -> None:
    """Say what the columns are, and hand out those that are asked for, until no one asks."""
    import pyarrow.parquet

    problem = f"{DAMAGED} its end is missing or damaged"
    try:
        file = pyarrow.parquet.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)
        kinds = [str(kind)[:60] for kind in file.schema_arrow.types]
        names = list(file.schema_arrow.names)
        say(out, {"names": names, "types": kinds, "rows": file.metadata.num_rows})
        problem = f"{DAMAGED} a part of it is damaged"
        for line in sys.stdin.buffer:
            numbers, labels = json.loads(line)
            rows = LABELLED if labels else BLOCK
            for batch in file.iter_batches(rows, columns=[*numbers, *labels]):
                say(out, {}, packed(batch))
            say(out, {"end": True})
    except MemoryError:
        say(out, {"memory": True})
    except Exception:
        say(out, {"wrong": problem})


def main() -> None:
    """Read the file that is named, or the bytes that come first."""
    seconds, memory, size = map(int, sys.argv[1:4])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not disturb the answers
    limit("RLIMIT_CORE", 0)
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if limit("RLIMIT_AS", memory) < memory:  # of the session: it would say nothing of the file
        sys.exit(1)
    limit("RLIMIT_CPU", int(time.process_time()) + seconds + 1)
    content = sys.stdin.buffer.read(size)
    answer(out, pa.BufferReader(content) if size else open(sys.argv[4], "rb"))  # noqa: SIM115, PTH123


if __name__ == "__main__":
    main()
