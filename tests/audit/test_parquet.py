"""What a Parquet file says of its values must be what follows from them."""

import io
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whorl_audit
from audit import forge
from whorl.ground import store
from whorl_audit import files, parquet

ROWS = 144
SCHEMA = pa.schema(
    [
        pa.field("depth", pa.int64(), nullable=False, metadata={"role": "key"}),
        pa.field("value", pa.float64(), nullable=False, metadata={"role": "computed"}),
        pa.field("name", pa.string(), nullable=False, metadata={"role": "key"}),
    ],
    metadata={"study": "mine", "table": "many"},
)
WORDS = ["alpha", "bêta", "gamma"]


def table(number=ROWS, schema=SCHEMA):
    """Numbers of both signs with zeros among them, and words that are not all ASCII."""
    values = np.random.default_rng(0).standard_normal(number).round(1)
    columns = [np.arange(number) % 7, values, [WORDS[at % 3] for at in range(number)]]
    return pa.table([pa.array(list(one)) for one in columns], schema=schema)


def written(made=None, **options):
    buffer = io.BytesIO()
    pq.write_table(table() if made is None else made, buffer, **options)
    return buffer.getvalue()


def refused(content, words):
    with pytest.raises(ValueError, match=words) as found:
        files.parsed_table(content)
    assert type(found.value) is ValueError
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("number", [0, 1, ROWS, 300_000])
@pytest.mark.parametrize("nullable", [False, True])
def test_what_the_writer_writes_is_accepted(number, nullable):
    schema = SCHEMA if not nullable else pa.schema([one.with_nullable(True) for one in SCHEMA])
    made = table(number, schema)
    for content in (
        store.parquet(made),
        written(made),
        written(made, row_group_size=50_000, data_page_size=1 << 14),
        written(made, use_dictionary=False, write_statistics=False),
    ):
        assert files.parsed_table(content).equals(made, check_metadata=True)


def test_false_statistics_hide_rows_from_a_reader_and_are_refused():
    sound = store.parquet(table())
    _, begin = parquet.footer(sound)
    largest, false = struct.pack("<q", 6), struct.pack("<q", 3)
    content = sound[:begin] + sound[begin:].replace(largest, false)
    assert pq.read_table(pa.BufferReader(content)).equals(table())
    assert pq.read_table(pa.BufferReader(sound), filters=[("depth", "==", 6)]).num_rows == 20
    assert pq.read_table(pa.BufferReader(content), filters=[("depth", "==", 6)]).num_rows == 0
    refused(content, "what it says of the values of depth is not what follows from the values")


ENDS = {
    "depth": (struct.pack("<q", 6), struct.pack("<q", 7)),
    "value": [struct.pack("<d", one) for one in (table()["value"].to_numpy().max(), 9.5)],
    "name": (b"gamma", b"gamme"),
}


@pytest.mark.parametrize("column", ENDS)
def test_every_false_end_is_refused_in_the_footer_and_before_a_page(column):
    content, (right, wrong) = store.parquet(table()), ENDS[column]
    places = [at for at in range(len(content)) if content.startswith(right, at)]
    assert len(places) >= 2
    for at in places:
        changed = content[:at] + wrong + content[at + len(right) :]
        refused(changed, "what follows from the values|no Parquet file")


@pytest.mark.parametrize(
    "options",
    [
        {"write_page_index": True},
        {"data_page_version": "2.0"},
        {"write_page_checksum": True},
        {"sorting_columns": [pq.SortingColumn(0)]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_index_an_order_or_pages_of_another_kind_are_refused(options):
    refused(written(**options), "is not what follows from the values|does not write|do not fit|nam")


@pytest.mark.parametrize("place", ["behind", "between", "before"])
def test_bytes_that_no_page_holds_are_refused(place):
    content = store.parquet(table())
    _, begin = parquet.footer(content)
    at = {"behind": begin, "between": begin - 1, "before": 4}[place]
    refused(content[:at] + b"hidden" + content[at:], ".")


def test_metadata_that_say_something_else_than_the_columns_are_refused():
    right = store.parquet(table())
    other = table().replace_schema_metadata({"study": "mine", "table": "manx"})
    _, begin = parquet.footer(right)
    changed = right[:begin] + right[begin:].replace(b"many", b"manx", 1)
    refused(changed, "its metadata are not those of its columns")
    assert files.parsed_table(store.parquet(other)).schema.metadata[b"table"] == b"manx"


@pytest.mark.parametrize("change", ["dictionary", "list"])
def test_columns_that_are_read_in_another_way_are_refused(change):
    made = {
        "dictionary": pa.table({"name": pa.array(["a", "b"]).dictionary_encode()}),
        "list": pa.table({"name": pa.array([[1.0]])}),
    }[change]
    refused(written(made), "columns of lists or of codes")


def told(content):
    """The table, or None where it is refused in one sentence."""
    try:
        return files.parsed_table(content)
    except ValueError as error:
        one_sentence = type(error) is ValueError and "\n" not in str(error)
        return None if one_sentence else pytest.fail(repr(error))


@pytest.mark.sampled(1)
def test_a_flipped_bit_ends_in_one_sentence_or_in_values_that_the_file_tells_truly():
    content, rng = store.parquet(table(15)), np.random.default_rng(7)
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        found = told(bytes(changed))
        if found is None:
            continue
        for name in ("depth", "value"):
            wanted = found[name].to_numpy().max()
            kept = pq.read_table(pa.BufferReader(bytes(changed)), filters=[(name, "==", wanted)])
            assert kept.num_rows == (found[name].to_numpy() == wanted).sum()


def test_a_role_or_a_word_that_is_no_text_ends_in_one_sentence(tmp_path):
    root = forge.write_run(tmp_path / "run", ("threshold",))
    path = root / "threshold" / "tables" / "tasks.parquet"
    stored = pq.ParquetFile(path).read()
    field = stored.schema.field(0).with_metadata({b"role": b"\xff\xfe"})
    schema = stored.schema.set(0, field)
    pq.write_table(stored.cast(schema), path)
    forge.write_figure(
        root / "threshold" / "figures" / "threshold", {"tasks": forge.sha256(path.read_bytes())}
    )
    forge.seal(root)
    failed = {one.claim: one.where for one in whorl_audit.audit(root).failures}
    assert not [where for where in failed.values() if "UnicodeDecodeError" in where]
    assert "tasks has its columns" in failed


def test_a_resealed_folder_with_false_statistics_does_not_pass(tmp_path):
    root = forge.write_run(tmp_path / "run", ("structural",))
    path = root / "structural" / "tables" / "modes.parquet"
    content = path.read_bytes()
    _, begin = parquet.footer(content)
    deepest, false = struct.pack("<q", 6), struct.pack("<q", 3)
    path.write_bytes(content[:begin] + content[begin:].replace(deepest, false))
    assert len(pq.read_table(path)) > 0
    assert len(pq.read_table(path, filters=[("depth", "==", 6)])) == 0
    forge.seal(root)
    failed = {one.claim: one.where for one in whorl_audit.audit(root).failures}
    assert "what it says of the values of depth" in failed["modes has its columns"]
