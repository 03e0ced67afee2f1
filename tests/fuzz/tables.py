"""Tables that look like somebody's measurements, more or less, as CSV and as Parquet."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

CELLS = st.one_of(
    st.sampled_from(
        [
            "",
            "nan",
            "inf",
            "-inf",
            "1e308",
            "-1e308",
            "1e-320",
            "1e999",
            "0",
            "-0",
            "1,5",
            "x",
            '"',
            "#",
            "\x00",
            "9" * 400,
            "é",
            " 1 ",
        ]
    ),
    st.floats(-1, 1).map(repr),
    st.text(max_size=4),
)
KINDS = (
    pa.float64(),
    pa.float64(),
    pa.float32(),
    pa.float16(),
    pa.int8(),
    pa.bool_(),
    pa.string(),
    pa.null(),
    pa.timestamp("s"),
    pa.date32(),
)
SPOILT = [0.0, 1e308, -1e308, 1e-320, float("nan"), float("inf"), None]


def sound(rows=14, outputs=3, skew=1.0):
    """A measured learner that turns, in wide form."""
    rng = np.random.default_rng(rows)
    residual = rng.normal(size=(rows, outputs))
    residual -= residual.mean(axis=1, keepdims=True)
    velocity = (
        residual
        + skew * (np.roll(residual, 1, axis=1) - np.roll(residual, -1, axis=1))
        + 0.01 * rng.normal(size=residual.shape)
    )
    columns = {f"residual_{number + 1}": residual[:, number] for number in range(outputs)}
    return columns | {f"velocity_{number + 1}": velocity[:, number] for number in range(outputs)}


def lengthened(columns):
    """The same in long form."""
    outputs = len(columns) // 2
    rows = len(next(iter(columns.values())))
    measurement, output = np.divmod(np.arange(rows * outputs), outputs)
    flat = {
        role: np.stack(
            [columns[f"{role}_{number + 1}"] for number in range(outputs)], axis=1
        ).ravel()
        for role in ("residual", "velocity")
    }
    return {"measurement": measurement, "output": output + 1, **flat}


def csv(columns, delimiter=","):
    lines = [
        delimiter.join(columns),
        *(
            delimiter.join(str(value) for value in row)
            for row in zip(*columns.values(), strict=True)
        ),
    ]
    return "\n".join(lines) + "\n"


def parquet(columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


@st.composite
def dressed(draw, names):
    """Sound measurements, in either form, with optional columns, and columns lost, renamed or
    spoilt in one value.
    """
    columns = sound(
        draw(st.sampled_from([4, 12, 12])),
        draw(st.sampled_from([2, 3, 3])),
        draw(st.sampled_from([0.0, 1.0])),
    )
    if draw(st.booleans()):
        columns = lengthened(columns)
    rows = len(next(iter(columns.values())))
    for name in draw(
        st.lists(
            st.sampled_from(
                ["sample", "repeat", "uncertainty", "potential_1", "column_0_0_0", "input_1"]
            ),
            max_size=2,
        )
    ):
        columns[name] = (
            np.sort(np.arange(rows) % draw(st.integers(1, 4)))
            if draw(st.booleans())
            else np.full(rows, 0.5)
        )
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(sorted(columns)))
        what = draw(st.sampled_from(["value", "value", "name", "lose", "constant", "scale"]))
        if what == "name":
            columns[draw(names)] = columns.pop(name)
        elif what == "lose" and len(columns) > 1:
            del columns[name]
        elif what in ("constant", "scale"):
            with np.errstate(all="ignore"):
                columns[name] = np.asarray(columns[name], float) * (
                    draw(st.sampled_from([1e-200, 1e200, 1e300])) if what == "scale" else 0.0
                )
        elif what == "value":
            values = [*np.asarray(columns[name], float).tolist()]
            values[draw(st.integers(0, rows - 1))] = draw(st.sampled_from(SPOILT))
            columns[name] = values
    return columns


NAMES = st.one_of(
    st.sampled_from(
        [
            "residual_1",
            "residual_2",
            "velocity_1",
            "change_1",
            "velocity_1_1",
            "residual_0",
            "residual_99999999999",
            "sample",
            "output",
        ]
    ),
    st.text(max_size=6),
)


@st.composite
def written(draw, content, pieces=CELLS):
    """A file with a few bytes, cells or lines changed."""
    text = content.decode(errors="replace")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(pieces) + text[at + draw(st.integers(0, 6)) :]
    return text.encode(errors="replace")


@st.composite
def csvs(draw, names=NAMES):
    text = csv(draw(dressed(names)), draw(st.sampled_from([",", ",", ";", "\t"])))
    return (
        draw(written(text.encode(errors="replace")))
        if draw(st.booleans())
        else text.encode(errors="replace")
    )


@st.composite
def parquets(draw, names=NAMES):
    """Parquet with columns of any type; some of it damaged in a few bytes."""
    columns = {}
    for name, values in draw(dressed(names)).items():
        kind = draw(st.sampled_from(KINDS)) if draw(st.integers(0, 9)) == 0 else None
        try:
            columns[name] = pa.array([None if value is None else float(value) for value in values])
            columns[name] = columns[name] if kind is None else columns[name].cast(kind, safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            columns[name] = pa.nulls(len(values))
    content = bytearray(parquet(columns))
    if draw(st.integers(0, 3)) == 0:
        for _ in range(draw(st.integers(1, 3))):
            content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return (
        bytes(content[: draw(st.integers(0, len(content)))])
        if draw(st.integers(0, 9)) == 0
        else bytes(content)
    )
