"""What a Parquet file says of its values, in its footer and before its pages, against the values.

A reader that looks for some rows skips the parts whose smallest and largest value say that the rows
are elsewhere. Where a file says something false there, it hides rows from such a reader, although
every value in it is right. The bytes are read here without a library, because libraries pass over
what they do not know: the file must consist of pages and a footer, without a field, index, filter
or metadata beyond those that the writer of a run uses, and each of them must be right.

Fields have the numbers of parquet.thrift. Those of page indexes, bloom filters, encryption and
sorted rows are in no table below, so that a file that has them is refused.
"""

import base64
import binascii
import struct
from collections import Counter
from collections.abc import Collection
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FOOTER = 1_000_000  # bytes
PAGES = 20_000  # of a file
HEADER = 1 << 16  # bytes before a page, in which its smallest and its largest word are
DEPTH = 12  # structures in each other
MAGIC = b"PAR1"
ARROW = b"ARROW:schema"
NUMBERS = {2: "<q", 5: "<d"}  # how whole and real numbers are written, by their physical type
DATA, DICTIONARY = 0, 2  # types of pages
LENGTHS = ((2, 6), (6, 7))  # of a part of the rows: sums of those of its columns
Fields = dict[int, Any]
BROKEN = (
    *(KeyError, IndexError, TypeError, AttributeError, OverflowError, UnicodeDecodeError),
    *(EOFError, OSError, struct.error, binascii.Error, pa.ArrowInvalid, NotImplementedError),
)


def check(content: bytes, schema: pa.Schema, table: pa.Table) -> None:
    """Compare what a file says of its values with them.

    Args:
        content: The file.
        schema: Its columns.
        table: Its values.

    Raises:
        ValueError: If something that it says is false, or is not what the writer of a run writes.
    """
    try:
        said, end = footer(content)
        _check_schema(said, schema)
        pages, first = _Pages(content), 0
        for number, group in enumerate(said[4]):
            rows, begin, chunks = table.slice(first, group[3]), pages.at, group[1]
            for name, chunk in zip(table.column_names, chunks, strict=True):
                pages.check(chunk, name, rows.column(name))
            first += rows.num_rows
            sizes = {field: sum(chunk[3][of] for chunk in chunks) for field, of in LENGTHS}
            right = {3: rows.num_rows, 5: begin if pages.at > begin else 0, 7: number}
            _require(group, [1], sizes | right, "a part of its rows")
        if not first == said[3] == table.num_rows or pages.at != end:
            raise ValueError("it has rows or bytes that its footer does not name")
    except BROKEN as error:
        raise ValueError("its footer and its pages do not fit together") from error


def footer(content: bytes) -> tuple[Fields, int]:
    """The fields of the footer, and where it begins.

    Raises:
        ValueError: If the file has no footer.
    """
    if len(content) < 12 or not content[:4] == content[-4:] == MAGIC:
        raise ValueError("no Parquet file (it does not begin and end as one)")
    begin = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    if begin < len(MAGIC) or len(content) - 8 - begin > FOOTER:
        raise ValueError(f"no Parquet file (its footer has more than {FOOTER} bytes)")
    source = BytesIO(content[begin:-8])
    try:
        fields = _value(source, 12)
    except BROKEN as error:
        raise ValueError("no Parquet file (its footer cannot be read)") from error
    if source.read(1):
        raise ValueError("no Parquet file (its footer has an end inside)")
    return fields, begin


def _require(said: Fields, free: Collection[int], right: Fields, what: str) -> None:
    """Refuse every field that is neither free nor right."""
    for number, value in said.items():
        if number not in free and (number not in right or value != right[number]):
            raise ValueError(f"what it says of {what} is not what follows from the values")


def _check_schema(said: Fields, schema: pa.Schema) -> None:
    """Compare columns and metadata with those of an empty file that has the same columns."""
    empty = BytesIO()
    pq.write_table(schema.empty_table(), empty, version="2.6")
    right, _ = footer(empty.getvalue())
    pairs = [[(pair[1], pair[2]) for pair in one.pop(5)] for one in (said, right)]
    stored, wanted = (dict(one) for one in pairs)
    _require(said, [3, 4, 6], right, "its columns")
    # Versions of the library may write the same columns in other bytes.
    text = base64.b64decode(stored.pop(ARROW), validate=True)
    same = pa.ipc.read_schema(pa.py_buffer(text)).equals(schema, check_metadata=True)
    wanted.pop(ARROW)
    if not same or stored != wanted or len(pairs[0]) != len(pairs[1]):
        raise ValueError("its metadata are not those of its columns")


class _Pages:
    """The pages of a file, one after the other.

    Attributes:
        at: Where the next one begins.
    """

    def __init__(self, content: bytes) -> None:
        self.content, self.at, self.left = content, len(MAGIC), PAGES

    def _header(self) -> tuple[Fields, int]:
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"it has more than {PAGES} pages")
        source = BytesIO(self.content[self.at : self.at + HEADER])
        header = _value(source, 12)
        if header[1] not in (DATA, DICTIONARY) or min(header[2], header[3]) < 0:
            raise ValueError("it has a page that the writer of a run does not write")
        return header, source.tell()

    def check(self, chunk: Fields, name: str, column: pa.ChunkedArray) -> None:
        """Compare what is said of a column, in a part of the rows, with its values and pages."""
        said, begin, full, rows = chunk[3], self.at, 0, 0
        found, starts = Counter[tuple[int, int]](), {}
        while self.at < begin + said[7]:
            header, length = self._header()
            starts.setdefault(header[1], self.at)
            if header[1] == DATA:
                page = header[5]
                found[DATA, page[2]] += 1
                _require(header, [1, 2, 3], {5: page}, name)
                _require(page, [1, 2, 3, 4, 5], {}, name)
                _check_statistics(page.get(5, {}), said[1], column.slice(rows, page[1]), name)
                rows += page[1]
            else:
                found[DICTIONARY, header[7][2]] += 1
                _require(header, [1, 2, 3], {7: header[7]}, name)
                _require(header[7], [1, 2], {3: False}, name)
            self.at, full = self.at + length + header[3], full + length + header[2]
        right = {3: [name.encode()], 5: len(column), 6: full, 7: self.at - begin}
        _require(
            said,
            [1, 2, 4, 12, 13, 16],
            right | {9: starts.get(DATA, 0), 11: starts.get(DICTIONARY)},
            name,
        )
        _require(chunk, [2, 3], {}, name)
        _check_statistics(said.get(12, {}), said[1], column, name)
        _check_encodings(said, found, name)
        _check_sizes(said.get(16, {}), column, name)
        if rows != len(column):
            raise ValueError(f"{name} has {rows} values in its pages")


def _check_encodings(said: Fields, found: Counter[tuple[int, int]], name: str) -> None:
    """What is said of how pages are written: a reader may look into the dictionary alone."""
    told = Counter({(one[1], one[2]): one[3] for one in said.get(13, [])})
    if {encoding for _, encoding in found} > set(said[2]) or (13 in said and told != found):
        raise ValueError(f"what it says of the encodings of {name} is false")


def _check_statistics(said: Fields, kind: int, column: pa.ChunkedArray, name: str) -> None:
    right: Fields = {3: column.null_count, 7: True, 8: True}
    smallest, largest = _ends(column)
    for number, end in ((1, largest), (2, smallest), (5, largest), (6, smallest)):
        if (text := said.get(number)) is not None:
            stored = struct.unpack(NUMBERS[kind], text)[0] if kind in NUMBERS else text
            right[number] = text if stored == end else None
    _require(said, [], right, f"the values of {name}")


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """The smallest and the largest value; words are in the order of their bytes."""
    if pa.types.is_string(column.type):
        words = [word.encode() for word in column.unique().to_pylist() if word is not None]
        return min(words, default=None), max(words, default=None)
    values = column.drop_null().to_numpy()
    values = values[values == values]  # without NaN
    return (values.min(), values.max()) if len(values) else (None, None)


def _check_sizes(said: Fields, column: pa.ChunkedArray, name: str) -> None:
    letters, nulls = 0, column.null_count
    if 1 in said and pa.types.is_string(column.type):
        counts = column.drop_null().value_counts().to_pylist()
        letters = sum(len(one["values"].encode()) * one["counts"] for one in counts)
    right = {1: letters, 2: [], 3: said.get(3) and [nulls, len(column) - nulls]}
    _require(said, [], right, f"the sizes of {name}")


def _value(source: BytesIO, kind: int, depth: int = DEPTH) -> Any:
    """A value of a type of the compact protocol of Thrift; a structure as fields by number."""
    if depth == 0:
        raise EOFError
    if kind in (1, 2):
        return kind == 1
    if kind in (4, 5, 6):
        number = _number(source)
        return (number >> 1) ^ -(number & 1)
    if kind in (3, 7, 8):
        return _taken(source, {3: 1, 7: 8}.get(kind) or _number(source))
    if kind in (9, 10):
        head = _taken(source, 1)[0]
        count, kind = head >> 4, head & 15
        count = _number(source) if count == 15 else count
        if kind in (1, 2):
            return [one == 1 for one in _taken(source, count)]
        return [_value(source, kind, depth - 1) for _ in range(count)]
    if kind != 12:
        raise EOFError
    fields: Fields = {}
    number = 0
    while head := _taken(source, 1)[0]:
        number = number + (head >> 4) if head >> 4 else _value(source, 5)
        if number in fields:
            raise EOFError
        fields[number] = _value(source, head & 15, depth - 1)
    return fields


def _number(source: BytesIO) -> int:
    number = 0
    for shift in range(0, 70, 7):
        byte = _taken(source, 1)[0]
        number |= (byte & 127) << shift
        if byte < 128:
            return number
    raise EOFError


def _taken(source: BytesIO, count: int) -> bytes:
    if len(found := source.read(count)) != count:
        raise EOFError
    return found
