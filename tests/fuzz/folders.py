"""Changes to run folders, each made to a copy in memory and written over the last one."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 9),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["PASS", "<=", "0" * 64]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
COLUMNS = st.sampled_from(["float", "text", "null", "whole", "list", "time"])
DELETED = object()


def paths_of(value, path=()):
    """Every place in a JSON value."""
    yield path
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in parts:
        yield from paths_of(part, (*path, key))


def replaced(value, path, new):
    """The value with another one, or none at all, at a place."""
    if not path:
        return {} if new is DELETED else new
    key, *rest = path
    parts = dict(value) if isinstance(value, dict) else list(value)
    if rest or new is not DELETED:
        parts[key] = replaced(parts[key], rest, new)
    else:
        del parts[key]
    return parts


@st.composite
def other_json(draw, content):
    value = json.loads(content)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(paths_of(value))))
        value = replaced(value, path, draw(st.one_of(st.just(DELETED), JSON, JSON)))
    return json.dumps(value).encode()


@st.composite
def other_bytes(draw, content):
    """Some bytes changed, the end lost, or other bytes altogether."""
    what = draw(st.sampled_from(["flip", "flip", "cut", "all", "empty"]))
    if what == "all":
        return draw(st.binary(max_size=60))
    if what == "cut":
        return content[: draw(st.integers(0, len(content)))]
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        if changed:
            changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    return b"" if what == "empty" else bytes(changed)


def _column(kind, rows):
    made = {
        "float": [float("nan")] * rows,
        "text": ["x"] * rows,
        "null": [None] * rows,
        "whole": [2**62] * rows,
        "list": [[1.0]] * rows,
    }
    return pa.array(made[kind]) if kind in made else pa.array([0] * rows, pa.timestamp("s"))


@st.composite
def other_table(draw, content):
    """Rows lost or doubled, columns lost, renamed, or of another type."""
    table = pq.read_table(pa.BufferReader(content))
    for _ in range(draw(st.integers(1, 2))):
        what = draw(st.sampled_from(["rows", "lose", "name", "type"]))
        names = table.column_names
        if what == "rows" or not names:
            table = (
                table.take(
                    pa.array(
                        draw(st.lists(st.integers(0, table.num_rows - 1), max_size=4)), pa.int64()
                    )
                )
                if table.num_rows
                else table
            )
            continue
        at = draw(st.integers(0, len(names) - 1))
        if what == "lose":
            table = table.remove_column(at)
        elif what == "name":
            table = table.rename_columns(
                [
                    draw(st.text(max_size=3)) if number == at else name
                    for number, name in enumerate(names)
                ]
            )
        else:
            table = table.set_column(at, names[at], _column(draw(COLUMNS), table.num_rows))
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    return buffer.getvalue().to_pybytes()


@st.composite
def changes(draw, contents):
    """Other contents of one to three files of a folder, and None for a file that is gone."""
    found = {}
    for name in draw(
        st.lists(st.sampled_from(sorted(contents)), min_size=1, max_size=3, unique=True)
    ):
        content = contents[name]
        choices = [st.none(), other_bytes(content)]
        if name.endswith(".json"):
            choices += [other_json(content)] * 4
        if name.endswith(".parquet"):
            choices += [other_table(content)] * 3
        found[name] = draw(st.one_of(choices))
    return found


class Folder:
    """A folder that takes changes and takes them back."""

    def __init__(self, root):
        self.root = root
        self.contents = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }

    def put(self, changed):
        for name, content in changed.items():
            if content is None:
                (self.root / name).unlink()
            else:
                (self.root / name).write_bytes(content)

    def restore(self, changed):
        for path in [path for path in self.root.rglob("*") if path.is_file()]:
            if path.relative_to(self.root).as_posix() not in self.contents:
                path.unlink()
        for name in changed:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(self.contents[name])
