"""Tables of every form are read alike, and every bad one is refused in one sentence."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from measured.loops import series, spiral_loop
from whorl import measured
from whorl.ground import text as csvs

APPLIED, RUNS = series(3, 12)
SEEN = APPLIED @ spiral_loop().T + 0.05 * np.random.default_rng(0).standard_normal(APPLIED.shape)


def wide(**more):
    columns = {f"residual_{k + 1}": APPLIED[:, k] for k in range(3)} | {
        f"velocity_{k + 1}": SEEN[:, k] for k in range(3)
    }
    return pa.table(columns | {"repeat": RUNS} | more)


def text(path, content):
    path.write_text(content)
    return path


@pytest.fixture
def lines(tmp_path):
    """The lines of a good table, to be spoilt, and how to write them."""
    pyarrow.csv.write_csv(wide(), tmp_path / "good.csv")
    content = (tmp_path / "good.csv").read_text().replace('"', "").splitlines()
    return content, lambda rows: text(tmp_path / "bad.csv", "\n".join(rows) + "\n")


def refusal(path):
    with pytest.raises(ValueError) as refused:
        measured.judge(measured.read(path, strict=True))
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert path.name in sentence
    return sentence


def test_wide_long_csv_parquet_and_arrays_say_the_same(tmp_path):
    pyarrow.csv.write_csv(wide(), tmp_path / "wide.csv")
    pyarrow.parquet.write_table(wide(), tmp_path / "wide.parquet")
    count = len(APPLIED)
    long = pa.table(
        {
            "measurement": np.repeat(np.arange(count), 3),
            "output": np.tile([1, 2, 3], count),
            "repeat": np.repeat(RUNS, 3),
            "residual": APPLIED.ravel(),
            "velocity": SEEN.ravel(),
            "remark": ["none"] * 3 * count,
        }
    )
    pyarrow.csv.write_csv(long, tmp_path / "long.csv")
    pyarrow.parquet.write_table(long, tmp_path / "long.parquet")
    wanted = measured.certify(APPLIED, SEEN, repeat=RUNS)
    for name in ("wide.csv", "wide.parquet", "long.csv", "long.parquet"):
        finding = measured.judge(measured.read(tmp_path / name))
        assert finding.p == wanted.p
        np.testing.assert_allclose(finding.leading.fit.loop, wanted.leading.fit.loop, rtol=1e-12)


def test_semicolons_tabs_a_byte_order_mark_and_windows_lines_are_read(lines, tmp_path):
    content, _ = lines
    for separator in ";\t":
        path = tmp_path / "other.csv"
        path.write_bytes(
            b"\xef\xbb\xbf"
            + "\r\n".join(row.replace(",", separator) for row in content).encode()
            + b"\r\n\r\n"
        )
        assert measured.read(path).rows == len(APPLIED)


def test_small_batches_change_nothing(tmp_path, monkeypatch):
    count = len(APPLIED)
    columns = {"measurement": np.repeat(np.arange(count), 3), "output": np.tile([1, 2, 3], count)}
    pyarrow.csv.write_csv(
        pa.table(columns | {"residual": APPLIED.ravel(), "velocity": SEEN.ravel()}),
        tmp_path / "long.csv",
    )
    whole = measured.read(tmp_path / "long.csv").records[""].moments.second
    monkeypatch.setattr(csvs, "BLOCK", 100)
    np.testing.assert_array_equal(
        measured.read(tmp_path / "long.csv").records[""].moments.second, whole
    )


def test_joint_samples_are_read_in_wide_and_in_long_form(tmp_path):
    rng = np.random.default_rng(1)
    applied, seen = rng.standard_normal((2, 40, 2, 3))
    names = [f"{s}_{k}" for s in (1, 2) for k in (1, 2, 3)]
    columns = {f"residual_{name}": applied.reshape(40, 6)[:, at] for at, name in enumerate(names)}
    columns |= {f"velocity_{name}": seen.reshape(40, 6)[:, at] for at, name in enumerate(names)}
    pyarrow.csv.write_csv(pa.table(columns), tmp_path / "wide.csv")
    keys = {
        "measurement": np.repeat(np.arange(40), 6),
        "sample": np.tile(np.repeat(["a", "b"], 3), 40),
        "output": np.tile([1, 2, 3], 80),
    }
    pyarrow.csv.write_csv(
        pa.table(keys | {"residual": applied.ravel(), "velocity": seen.ravel()}),
        tmp_path / "long.csv",
    )
    wanted = measured.collect(applied, seen).records[""].moments.second
    for name in ("wide.csv", "long.csv"):
        np.testing.assert_allclose(
            measured.read(tmp_path / name).records[""].moments.second,
            wanted,
            rtol=1e-12,
            atol=1e-12,
        )


def test_one_sample_a_line_makes_one_loop_a_sample(tmp_path):
    pyarrow.csv.write_csv(
        wide(sample=np.tile(["x", "y"], len(APPLIED) // 2)), tmp_path / "samples.csv"
    )
    assert set(measured.read(tmp_path / "samples.csv").records) == {"x", "y"}


def test_changes_over_a_time_are_velocities(tmp_path):
    renamed = wide().rename_columns(
        [name.replace("velocity", "change") for name in wide().column_names]
    )
    pyarrow.csv.write_csv(renamed, tmp_path / "changes.csv")
    finding = measured.judge(measured.read(tmp_path / "changes.csv", time_scale=0.5))
    assert finding.leading.rotation.estimate == pytest.approx(
        2 * measured.certify(APPLIED, SEEN).leading.rotation.estimate
    )


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda rows: [row.rsplit(",", 2)[0] + "," + row.rsplit(",", 1)[1] for row in rows],
            "must have a column velocity_3, but it has none",
        ),
        (lambda rows: ["a,b,c,d,e,f,g", *rows[1:]], "must have a column residual_1 or potential_1"),
        (
            lambda rows: [rows[0].replace("velocity", "speed"), *rows[1:]],
            "must have a column velocity_1 or change_1",
        ),
        (
            lambda rows: [rows[0].replace("residual_2", "residual_1"), *rows[1:]],
            "line 1, column residual_1: names must be unique",
        ),
        (
            lambda rows: [*rows[:9], rows[9].replace("0.", "O.", 1), *rows[10:]],
            "line 10, column residual_1: every value must be a number, but it is '-O.",
        ),
        (
            lambda rows: [*rows[:4], "nan" + rows[4][rows[4].index(",") :], *rows[5:]],
            "line 5, column residual_1: every value must be",
        ),
        (
            lambda rows: [*rows[:4], "inf" + rows[4][rows[4].index(",") :], *rows[5:]],
            "line 5, column residual_1: every value must be",
        ),
        (
            lambda rows: [*rows[:4], rows[4][rows[4].index(",") :], *rows[5:]],
            "line 5, column residual_1: every value must be a number, but it is missing",
        ),
        (
            lambda rows: [*rows[:20], rows[20] + ",7", *rows[21:]],
            "line 21: the line must have 7 values, one for each column, but it has 8",
        ),
        (
            lambda rows: [*rows[:20], rows[20].rsplit(",", 1)[0], *rows[21:]],
            "line 21: the line must have 7 values, one for each column, but it has 6",
        ),
        (
            lambda rows: [*rows[:8], "", "", *rows[8:20], "x" + rows[20], *rows[21:]],
            "line 23, column residual_1: every value must be a number",
        ),
        (lambda rows: rows[:8], "the table must have at least 12 measurements, but it has 7"),
        (lambda rows: rows[:1], "the table must have at least 12 measurements, but it has none"),
        (
            lambda rows: [rows[0], *("1,1,1," + row.split(",", 3)[3] for row in rows[1:])],
            "column residual_1: the values must vary from row to row",
        ),
        (
            lambda rows: [
                "residual_1,velocity_1",
                *(",".join(row.split(",")[1:3]) for row in rows[1:]),
            ],
            "must have at least 2 outputs, but it has 1",
        ),
        (
            lambda rows: [row if n == 0 else row + "," for n, row in enumerate(rows)],
            "line 2: the line must have 7 values",
        ),
        (
            lambda rows: [
                rows[0] + ",uncertainty",
                *(row + ",1" for row in rows[1:-1]),
                rows[-1] + ",0",
            ],
            "line 37, column uncertainty: uncertainties must be greater than 0",
        ),
    ],
)
def test_a_bad_table_is_refused_with_file_line_and_column(lines, spoil, sentence):
    content, write = lines
    assert sentence in refusal(write(spoil(content)))


def test_an_empty_file_is_refused(tmp_path):
    assert (
        "line 1: the file must have a header line that names its columns, but it is empty"
        in refusal(text(tmp_path / "empty.csv", ""))
    )


def test_two_gigabytes_of_nothing_are_refused_at_once(tmp_path):
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(2 << 30)
    assert "must be a table of at most 1073741824 bytes, but it is larger" in refusal(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "zeros.csv"
    path.write_bytes(bytes(4 << 20))
    assert "must be CSV text or Parquet" in refusal(path)
    names = b"residual_1,residual_2,residual_3,velocity_1,velocity_2,velocity_3\n"
    path.write_bytes(names + bytes(4 << 20))
    assert "line 2: the line must be text of a reasonable length" in refusal(path)


def test_something_else_under_the_name_of_a_table_is_refused(tmp_path):
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    assert "must be CSV text in UTF-8 or Parquet" in refusal(tmp_path / "picture.csv")
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and no more")
    assert "must be a whole Parquet file" in refusal(tmp_path / "half.parquet")


def test_bad_values_in_parquet_are_named_by_row(tmp_path):
    spoilt = SEEN[:, 0].copy()
    spoilt[6] = np.nan
    path = tmp_path / "bad.parquet"
    pyarrow.parquet.write_table(wide().set_column(3, "velocity_1", pa.array(spoilt)), path)
    assert (
        "row 7, column velocity_1: every value must be a finite number, but it is nan"
        in refusal(path)
    )
    pyarrow.parquet.write_table(
        wide().set_column(3, "velocity_1", pa.array(["a"] * len(APPLIED))), path
    )
    assert "column velocity_1: the column must hold numbers, but its type is string" in refusal(
        path
    )
    pyarrow.parquet.write_table(
        wide().set_column(3, "velocity_1", pa.array([None, *SEEN[1:, 0]])), path
    )
    assert "row 1, column velocity_1: every value must be a number, but it is missing" in refusal(
        path
    )


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda rows: rows[:16] + rows[17:],
            (
                "line 19, column measurement: every measurement must have 3 lines, as the first one "
                "has"
            ),
        ),
        (
            lambda rows: rows[:-1],
            "line 36, column measurement: every measurement must have 3 lines",
        ),
        (
            lambda rows: [*rows[:10], rows[11], rows[10], *rows[12:]],
            "line 11, column output: the order of the outputs must be that of the first",
        ),
        (
            lambda rows: [*rows[:7], rows[7].rsplit(",", 1)[0] + ",x", *rows[8:]],
            "line 8, column velocity: every value must be a number, but it is 'x'",
        ),
        (
            lambda rows: [rows[0], *(row for row in rows[1:] if row.split(",")[1] == "1")],
            "line 2, column output: a measurement must have at least 2 outputs",
        ),
    ],
)
def test_a_bad_long_table_is_refused_with_file_line_and_column(tmp_path, spoil, sentence):
    rows = ["measurement,output,residual,velocity"]
    rows += [
        f"{at // 3},{at % 3 + 1},{x:.6f},{y:.6f}"
        for at, (x, y) in enumerate(zip(APPLIED.ravel()[:36], SEEN.ravel()[:36], strict=True))
    ]
    assert sentence in refusal(text(tmp_path / "bad.csv", "\n".join(spoil(rows)) + "\n"))


def test_long_lines_count_as_lines_in_refusals_of_the_intake(tmp_path):
    rows = ["measurement,output,repeat,residual,velocity"]
    for at, (x, y) in enumerate(zip(APPLIED.ravel(), SEEN.ravel(), strict=True)):
        rows.append(f"{at // 3},{at % 3 + 1},{0 if at // 3 == 20 else 5},{x:.6f},{y:.6f}")
    assert "line 62, column repeat: repeats must be sorted" in refusal(
        text(tmp_path / "bad.csv", "\n".join(rows) + "\n")
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"velocities": SEEN[:-1]}, "residuals must have shape"),
        ({"velocities": [[1.0, 2.0], [1.0]]}, "velocities must be a rectangular array of numbers"),
        (
            {"velocities": SEEN[:, :1], "residuals": APPLIED[:, :1]},
            "velocities must have at least 2 outputs",
        ),
        ({"velocities": SEEN.ravel()}, "velocities must have shape"),
        ({"velocities": SEEN.astype(str)}, "velocities must hold real numbers"),
        (
            {"velocities": np.where(np.arange(len(SEEN))[:, None] == 3, np.nan, SEEN)},
            r"velocities must be finite, but entry \(3, 0\) is nan",
        ),
        ({"repeat": RUNS[::-1]}, "repeats must be sorted"),
        ({"repeat": RUNS[:-1]}, "repeat must have shape"),
        ({"sample": ["a"]}, "sample must have one label per row"),
        ({"uncertainty": [1.0, 2.0]}, "uncertainty must be one number"),
        ({"uncertainty": -1.0}, "uncertainties must be greater than 0"),
        ({"residuals": None}, "residuals must be given"),
        ({"time_scale": 0.0}, "time_scale must be a number greater than 0"),
        ({"alpha": 1.5}, "alpha must be a number greater than 0 and less than 1"),
        ({"skew": 0.0}, "skew must be a number greater than 0 and less than 1"),
    ],
)
def test_bad_arrays_are_refused(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        measured.certify(**{"residuals": APPLIED, "velocities": SEEN, **given})


def test_a_scatter_that_belies_the_stated_uncertainty_is_noted():
    assert "times as much as the stated uncertainty" in str(
        measured.certify(APPLIED, SEEN, uncertainty=0.001)
    )
    assert "stated uncertainty" not in str(measured.certify(APPLIED, SEEN, uncertainty=0.05))


def refusal_of(path):
    tracemalloc.start()
    with pytest.raises(ValueError) as refused:
        measured.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    return str(refused.value).removeprefix(str(path))


def test_one_long_label_costs_nothing(tmp_path):
    path = tmp_path / "label.csv"
    lines = [
        f"{0.1 * (n % 7)},{0.1 * (n % 5)},0.1,0.2,{'x' * 100_000 if n == 9 else 's'}"
        for n in range(20_000)
    ]
    path.write_text("residual_1,residual_2,velocity_1,velocity_2,sample\n" + "\n".join(lines))
    assert (
        refusal_of(path)
        == ", column sample: labels must have at most 200 bytes, but one has 100000"
    )
    with pytest.raises(
        ValueError,
        match=r"row 3, sample: a sample must have a name of at most 200 characters, but one has 1000",
    ):
        measured.collect(
            np.ones((12, 2)), np.ones((12, 2)), sample=["a", "b", "c", "x" * 1000, *"abcdefgh"]
        )


def test_more_directions_than_can_be_judged_are_refused(tmp_path):
    path = tmp_path / "long.csv"
    lines = [f"{one},{output},0.{output},0.1" for one in range(2) for output in range(4000)]
    path.write_text("measurement,output,residual,velocity\n" + "\n".join(lines))
    assert refusal_of(path).startswith(
        ": a measurement must have at most 100 directions, samples x (outputs - 1), but it has 3999"
    )
    path.write_text(",".join(f"c{n}" for n in range(20_000)) + "\n1")
    assert (
        refusal_of(path) == ", line 1: the table must have at most 10000 columns, but it has 20000"
    )


def test_very_many_samples_are_refused_before_they_fill_the_memory():
    rows = np.random.default_rng(0).standard_normal((2400, 40))
    with pytest.raises(
        ValueError,
        match=r"all samples together must need at most 50000000 numbers, but \d+ samples with rows of 1\d\d",
    ):
        measured.collect(
            np.tile(rows, (5, 1)), np.tile(rows, (5, 1)), sample=np.arange(12_000) // 40
        )
    few = rows[:, :2].repeat(5, axis=0)
    with pytest.raises(
        ValueError, match=r"a table must have at most 10000 samples, but it has more"
    ):
        measured.collect(few, few, sample=np.arange(12_000))
