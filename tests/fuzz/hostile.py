"""Small files that ask for much time or memory, or that end a process inside a library."""

import gzip
import io
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import tables

DATA = Path(__file__).parent / "data"


def archive(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def repeated(rows, groups, **columns):
    """Parquet whose columns repeat one value, which takes a few bytes per group."""
    file, places = io.BytesIO(), pa.array(np.zeros(rows, np.int32))
    table = pa.table(
        {name: pa.DictionaryArray.from_arrays(places, [one]) for name, one in columns.items()}
    )
    with pq.ParquetWriter(file, table.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(groups):
            writer.write_table(table)
    return file.getvalue()


def with_column(name, values):
    columns = {key: values.tolist() for key, values in tables.sound().items()}
    return tables.parquet(columns | {name: values})


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def flipped(content, seed, many=1):
    """The same bytes with a few others among them."""
    dice, changed = random.Random(seed), bytearray(content)
    for _ in range(many):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def header(name):
    return f"residual_1,{name}\n1,2\n".encode()


SOUND = tables.sound()
RESIDUAL = np.ones((20, 3))

FILES = {
    "spaces in a header": lambda: header("a" + " " * 100_000 + "b"),
    "slashes in a header": lambda: header("a" + " /" * 50_000),
    "brackets in a header": lambda: header("[" * 100_000),
    "many digits": lambda: b"a;b\n" + b"1" * 100_000 + b"x;1\n",
    "many commas": lambda: b"a;b\n" + b"1," * 50_000 + b"x;1\n",
    "a cell longer than Python's csv takes": lambda: b"a,b\n" + b"x" * 200_000 + b",1\n",
    "a quotation mark without its partner": lambda: b'a,b\n"' + b"x" * 200_000,
    "empty lines": lambda: gzip.compress(b"a;b\n" + b"\n" * (1 << 27), 1),
    "nothing but empty lines": lambda: gzip.compress(b"\n" * (1 << 27), 1),
    "many rows": lambda: gzip.compress(b"a,b,c\n" + b"1,2,3\n" * 4_000_000, 1),
    "comments": lambda: gzip.compress(b"a,b\n" + b"#\n" * (1 << 24), 1),
    "a new name in every line": lambda: lines(*({f"k{n}": 1} for n in range(30_000))),
    "one long list": lambda: lines({"a": [1] * 280_000}, *[{"b": 1}] * 3000),
    "many lines of JSON": lambda: gzip.compress(b'{"a":1}\n' * 6_000_000, 1),
    "almost as many lines of JSON": lambda: gzip.compress(b"{}\n" * 4_900_000, 1),
    "deep JSON": lambda: b'{"a":' + b"[" * 300_000,
    "deep lists": lambda: lines({"a": [[[[1]]]], "b": 1}),
    "an object as a value": lambda: lines({"a": 1, "b": [1, 2]}, {"a": 2, "b": {"x": 1}}),
    "a number that no double holds": lambda: b'{"a":1' + b"0" * 400 + b',"b":1}',
    "half a character": lambda: b'{"sample":"\\ud800","a":1,"b":2}',
    "a huge archive": lambda: archive(residual=np.zeros((12, 1000, 300))),
    "a wide archive": lambda: archive(residual=np.zeros((1, 3_000_000), np.int8)),
    "a long archive": lambda: archive(residual=np.zeros((30_000_000, 2), np.int8)),
    "an archive of objects": lambda: archive(residual=np.array([{}, {}], dtype=object)),
    "an archive of complex numbers": lambda: archive(residual=np.ones((4, 2), complex)),
    "an archive of records": lambda: archive(residual=np.zeros(4, [("a", "f8")])),
    "a cut archive": lambda: archive(residual=RESIDUAL)[:-40],
    "an archive without arrays": lambda: archive(),
    "Parquet that repeats a number": lambda: repeated(1_000_000, 20, residual_1=1.0, a=1.0),
    "Parquet that repeats a text": lambda: repeated(1_000_000, 20, residual_1=1.0, unit="a"),
    "Parquet with a long text": lambda: repeated(100_000, 3, a=1.0, b=2.0, unit="x" * 100_000),
    "Parquet that aborts Arrow": lambda: (DATA / "abort.parquet").read_bytes(),
    "Parquet with a list": lambda: with_column("velocity_1", [[1.0]] * 14),
    "Parquet with a list of samples": lambda: with_column("sample", [[1.0]] * 14),
    "Parquet with structures": lambda: with_column("repeat", [{"x": 1}] * 14),
    "Parquet without columns": lambda: tables.parquet({}),
    "Parquet and no more": lambda: b"PAR1",
    "packed Parquet that is cut": lambda: gzip.compress(tables.parquet(SOUND)[:-9]),
    "gzip in gzip": lambda: gzip.compress(gzip.compress(b"a,b\n")),
    "UTF-16 that is cut": lambda: b"\xff\xfea",
}
