"""Files that visitors open: drawn by their columns, refused in one sentence, never executed."""

import io
import tracemalloc

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from whorl.explorer import style, tables, wire
from whorl.explorer.state import State


def as_parquet(**columns):
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def as_csv(**columns):
    file = io.BytesIO()
    csv.write_csv(pa.table(columns), file)
    return file.getvalue()


def look(name, content):
    seen = tables.look(name, content, style.LIGHT)
    assert isinstance(seen, dict)
    for figure in seen["figures"].values():
        go.Figure(figure.to_dict())
    return seen


RNG = np.random.default_rng(0)


def test_a_table_of_trajectories_becomes_a_ledger():
    terms = {name: RNG.normal(size=20) for name in ("even", "handedness", "step", "drift")}
    (bars,) = look(
        "trajectories.parquet", as_parquet(trial=np.arange(20), policy=["adaptive"] * 20, **terms)
    )["figures"]["ledger"].data
    np.testing.assert_allclose(bars.y[:4], [values.mean() for values in terms.values()])
    assert bars.y[4] == pytest.approx(sum(values.mean() for values in terms.values()))


def test_a_table_of_configurations_becomes_the_sign_rule():
    value = RNG.normal(size=50)
    seen = look(
        "configurations.parquet",
        as_parquet(family=np.arange(50), ratio=1 - value, coefficient=value),
    )
    helps, hurts = seen["figures"]["rule"].data
    assert len(helps.x) == (value < 0).sum()
    assert len(hurts.x) == (value > 0).sum()
    assert seen["title"] == "configurations.parquet: 50 rows"


def test_a_table_of_updates_becomes_lines():
    update = np.tile(np.arange(5), 4)
    lines = [
        trace
        for trace in look("updates.parquet", as_parquet(update=update, native=1.0 / (1 + update)))[
            "figures"
        ]["lines"].data
        if trace.name
    ]
    np.testing.assert_allclose(lines[0].y, 1 / (1 + np.arange(5)))


def test_modes_become_eigenvalues():
    points = look("modes.csv", as_csv(real=[-1.0, -1.0], imag=[2.0, 4.0]))["figures"][
        "eigenvalues"
    ].data[0]
    assert list(points.y) == [2.0, 4.0]


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_a_measured_learner_gets_its_verdict(write):
    loop = np.array([[1.0, -2.0], [2.0, 1.0]])
    plane = np.linalg.qr(np.column_stack([np.ones(3), [1, -1, 0], [1, 1, -2]]))[0][:, 1:]
    points = RNG.normal(size=(40, 2))
    residual, velocity = (
        points @ plane.T,
        points @ loop.T @ plane.T + 1e-3 * RNG.normal(size=(40, 3)),
    )
    names = {
        f"{word}_{k + 1}": values[:, k]
        for word, values in (("residual", residual), ("velocity", velocity))
        for k in range(3)
    }
    kind = "csv" if write is as_csv else "parquet"
    seen = look(f"bench.{kind}", write(repeat=np.repeat(np.arange(10), 4), **names))
    assert "plane" in seen["figures"]
    assert "not reciprocal" in seen["verdicts"][0] or "turns" in seen["verdicts"][0]


def test_one_output_a_row_is_one_measurement_a_row():
    long = {
        "measurement": [1, 1, 1, 2, 2, 2],
        "output": [1, 2, 3] * 2,
        "residual": [1.0, -1, 0, 0, 1, -1],
        "velocity": [0.5, -0.5, 0, 0, 0.5, -0.5],
    }
    assert "plane" in look("long.csv", as_csv(**long))["figures"]


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1.0, 2.0], "b": [3.0, 4.0]},
        {"only": [1.0, 2.0, 2.0]},
        {"same": [1, 1], "name": ["x", "y"]},
    ],
)
def test_any_numbers_can_be_seen(columns):
    assert look("some.csv", as_csv(**columns))["figures"]


@pytest.mark.parametrize("columns", [("{}", "b"), ("{}",), ("time", "{}")])
def test_a_name_of_a_column_is_words_and_not_a_link(columns):
    evil = '<a href="https://evil.example">x</a>'
    drawn = look("some.csv", as_csv(**{name.format(evil): [1.0, 2.0, 3.0] for name in columns}))[
        "figures"
    ]
    sent = wire.encoded(drawn)
    assert "<a" not in sent
    assert "&lt;a href=" in sent
    long = look("some.csv", as_csv(**{"\x1b" + "long" * 10_000: [1.0, 2.0]}))["figures"]
    assert len(wire.encoded(long)) < 10_000
    assert "\\\\x1blong" in wire.encoded(long)


def test_a_state_is_gone_to():
    assert tables.look("state.json", State(depth=5).to_json().encode(), style.LIGHT) == State(
        depth=5
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.pickle", b"\x80\x04", "must end in .parquet, .csv or .json"),
        ("x.parquet", b"PAR1 and then nothing", "must be a Parquet table"),
        ("x.csv", b"\xff\xfe\x00", "must be text in UTF-8"),
        ("x.csv", b"", "must be a CSV table with a header"),
        ("x.csv", b"name\nfred\n", "must hold a column of numbers, but its columns are name"),
        ("x.json", b"{}", "must hold a state of the explorer"),
    ],
)
def test_a_file_is_refused_in_one_sentence(name, content, sentence):
    with pytest.raises(ValueError) as refusal:
        tables.look(name, content, style.LIGHT)
    assert sentence in str(refusal.value)


def test_a_table_that_is_too_long_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 10)
    with pytest.raises(ValueError, match="at most 10 rows"):
        tables.look("long.parquet", as_parquet(a=np.arange(11)), style.LIGHT)


def tall(outputs, measurements):
    keys = [(str(one), str(output)) for one in range(measurements) for output in range(outputs)]
    return "measurement,output,residual,velocity\n" + "\n".join(
        f"{one},{output},0.{output},0.1" for one, output in keys
    )


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        (
            "a.csv",
            tall(4000, 2).encode(),
            "at most 500000 rows and 400 columns, but it has 2 and 8000",
        ),
        (
            "a.csv",
            b"a," * 10**6 + b"a\n1",
            "at most 500000 rows and 400 columns, but it has 1 and 1000001",
        ),
        ("a.csv", b"a\n" * 600_000, "at most 500000 rows and 400 columns, but it has 599999 and 1"),
        (
            "a.parquet",
            as_parquet(**{f"c{n}": np.zeros(60_000) for n in range(200)}),
            "at most 10000000 values, but 60000 rows of 200 columns",
        ),
    ],
    ids=["long form", "columns", "rows", "cells"],
)
def test_a_small_file_that_would_fill_the_memory_is_refused_at_the_door(name, content, rule):
    assert len(content) < 2_100_000
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"the file must have {rule}"):
        tables.look(name, content, style.LIGHT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_a_long_text_that_a_small_file_repeats_is_never_unpacked():
    repeated = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(100_000, "int32")), pa.array(["x" * 20_000])
    )
    numbers = {
        name: RNG.normal(size=100_000).round(1)
        for name in ("residual_1", "residual_2", "velocity_1", "velocity_2")
    }
    content = as_parquet(**numbers, sample=repeated)
    before = pa.total_allocated_bytes()
    (verdict,) = look("a.parquet", content)["verdicts"]
    assert "labels must have at most 200 bytes, but one has 20000" in verdict
    assert pa.default_memory_pool().max_memory() - before < 500e6  # as text it is 2 GB


def test_more_outputs_than_can_be_judged_while_somebody_waits_are_drawn_only():
    names = [f"{kind}_{number}" for kind in ("residual", "velocity") for number in range(1, 42)]
    seen = look("a.parquet", as_parquet(**{name: RNG.normal(size=100) for name in names}))
    assert seen["verdicts"] == [
        "a table of at most 40 outputs is judged here, but this one has 41: use whorl certify"
    ]
