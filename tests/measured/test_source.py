"""Tables as people have them: every form gives the finding of the plain one."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import whorl_cli
from whorl import measured
from whorl.ground import source
from whorl.palette import LIGHT

RNG = np.random.default_rng(5)
SETTINGS = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
LOOP = np.array([[1.0, 0.4, -0.4], [-0.4, 1.0, 0.4], [0.4, -0.4, 1.0]])
SEEN = SETTINGS @ LOOP.T + 0.002 * RNG.standard_normal((36, 3))
SEEN -= SEEN.mean(axis=1, keepdims=True)
REPEAT = np.repeat(np.arange(12), 3)
NAMES = ["residual_1", "residual_2", "residual_3", "velocity_1", "velocity_2", "velocity_3"]
ROWS = np.column_stack([SETTINGS, SEEN])


def csv(rows=ROWS, names=NAMES, repeat=REPEAT, separator=",", write=repr):
    lines = [separator.join([*names, "repeat"])]
    lines += [
        separator.join([*(write(float(one)) for one in row), str(number)])
        for row, number in zip(rows, repeat, strict=True)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "plain.csv").write_text(csv())
    return measured.read(tmp_path / "plain.csv")


def same(found, plain):
    one, other = (next(iter(each.records.values())).moments for each in (found, plain))
    np.testing.assert_allclose(one.second, other.second, rtol=1e-9, atol=1e-15)


def shuffled(text):
    head, *lines = text.splitlines()
    order = np.concatenate([np.arange(18, 36), np.arange(18)])
    return "\n".join([head, *(lines[number] for number in order)]) + "\n"


FORMS = {
    "commas": csv(separator=";", write=lambda one: repr(one).replace(".", ",")).encode(),
    "capitals and units": csv(names=[f"{name.title()} [V]" for name in NAMES]).encode(),
    "comments": ("# from the bench\n\n" + csv().replace("\n", "\n# pause\n", 3)).encode(),
    "latin": csv(names=NAMES).replace("repeat", "repeat,Grö\xdfe", 1).encode("latin-1"),
    "text repeats": csv(repeat=[f"day {number}" for number in REPEAT]).encode(),
    "unsorted repeats": shuffled(csv()).encode(),
    "json lines": "\n".join(
        json.dumps({"residual": list(a), "velocity": list(b), "repeat": int(c)})
        for a, b, c in zip(SETTINGS, SEEN, REPEAT, strict=True)
    ).encode(),
}
FORMS["latin"] = b"\n".join(
    line + (b",\xe4" if number else b"") for number, line in enumerate(FORMS["latin"].splitlines())
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_is_the_same_table(form, plain, tmp_path):
    (tmp_path / "given").write_bytes(FORMS[form])
    same(measured.read(tmp_path / "given"), plain)


def test_a_numpy_archive_is_a_table(plain, tmp_path):
    np.savez(tmp_path / "a.npz", residuals=SETTINGS, velocities=SEEN, repeat=REPEAT)
    same(measured.read(tmp_path / "a.npz"), plain)
    np.savez(tmp_path / "b.npz", residual=SETTINGS, velocity=SEEN[:5])
    with pytest.raises(ValueError, match="must hold arrays with one entry per row, but it holds"):
        measured.read(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", residual=np.array([{}, {}], dtype=object))
    with pytest.raises(ValueError, match="must be an archive of plain arrays, but"):
        measured.read(tmp_path / "c.npz")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04" + b"cut off")
    with pytest.raises(ValueError, match="must be an archive of plain arrays, but"):
        measured.read(tmp_path / "cut.npz")


def test_standard_input_is_a_file(plain, monkeypatch):
    source._taken.cache_clear()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(csv().encode())))
    found = measured.read("-")
    same(found, plain)
    assert found.source == "standard input"
    source._taken.cache_clear()


def test_columns_are_renamed_and_a_refusal_lists_those_that_are_there(plain, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(csv(names=["err1", "err2", "err3", *NAMES[3:]]))
    renamed = {f"err{number}": f"residual_{number}" for number in (1, 2, 3)}
    same(measured.read(path, rename=renamed), plain)
    with pytest.raises(ValueError, match=r"its columns are err1, err2, err3, velocity_1"):
        measured.read(path)
    with pytest.raises(ValueError, match="there is no error: its columns are err1"):
        measured.read(path, rename={"error": "residual_1"})


@pytest.mark.parametrize("empty", ["", "NA", "nan"])
def test_rows_with_empty_cells_are_counted_or_refused(empty, tmp_path):
    lines = csv().splitlines()
    for number in (4, 9):
        cells = lines[number].split(",")
        lines[number] = ",".join([*cells[:4], empty, *cells[5:]])
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(lines) + "\n")
    found = measured.read(path)
    assert (found.rows, found.dropped) == (34, 2)
    assert "2 rows with an empty cell left out" in str(measured.judge(found))
    with pytest.raises(ValueError, match=r"line 5, column velocity_2: every value must be"):
        measured.read(path, strict=True)


def test_an_output_that_was_never_driven_is_left_out_and_named(tmp_path):
    applied = np.column_stack([0.1 * RNG.standard_normal((36, 3)), np.zeros(36)])
    seen = applied @ (np.eye(4) - 0.25).T + 0.001 * RNG.standard_normal((36, 4))
    names = [f"{role}_{number}" for role in ("residual", "velocity") for number in (1, 2, 3, 4)]
    (tmp_path / "t.csv").write_text(csv(np.column_stack([applied, seen]), names))
    found = measured.judge(measured.read(tmp_path / "t.csv"))
    assert found.undriven == ("residual_4",)
    assert "never driven, and left out as a direction: residual_4" in str(found)


def test_rows_that_were_copied_are_named(tmp_path):
    (tmp_path / "twice.csv").write_text(
        csv(np.repeat(ROWS, 2, axis=0), repeat=np.repeat(REPEAT, 2))
    )
    found = measured.judge(measured.read(tmp_path / "twice.csv"))
    assert f"{len(ROWS)} of the measurements repeat another one to the last digit" in str(found)
    (tmp_path / "once.csv").write_text(csv())
    assert "repeat another" not in str(measured.judge(measured.read(tmp_path / "once.csv")))


def test_one_wild_value_is_named(tmp_path):
    rows = ROWS.copy()
    rows[16, 4] = 3.0
    (tmp_path / "wild.csv").write_text(csv(rows))
    assert "measurement 17 lies" in str(measured.judge(measured.read(tmp_path / "wild.csv")))
    (tmp_path / "tame.csv").write_text(csv())
    assert "lies" not in str(measured.judge(measured.read(tmp_path / "tame.csv")))


def test_too_few_rows_say_how_many_are_needed_and_what_they_show_alone(tmp_path):
    (tmp_path / "few.csv").write_text(csv(ROWS[:9], repeat=REPEAT[:9]))
    with pytest.raises(
        ValueError,
        match=r"at least 12 measurements, but it has 9: the skew part would be 0\.5",
    ):
        measured.read(tmp_path / "few.csv")


def test_no_rejection_with_little_power_is_inconclusive_and_says_what_would_settle_it():
    half = np.random.default_rng(1).standard_normal((18, 3))
    noise = np.concatenate([half, -half])  # cancels in the estimate, and not in its error
    loud = measured.certify(SETTINGS, SETTINGS + 0.3 * noise, repeat=REPEAT)
    assert loud.verdict == "inconclusive"
    assert str(loud).startswith("Inconclusive: these measurements cannot tell whether")
    assert "had a chance of" in str(loud).splitlines()[1]
    quiet = measured.certify(SETTINGS, SETTINGS + 0.0001 * noise, repeat=REPEAT)
    assert str(quiet).startswith("This learner shows no sign of turning.")


def test_the_page_names_its_file_and_draws_the_data(tmp_path):
    (tmp_path / "t.csv").write_text(csv())
    page = measured.write(measured.judge(measured.read(tmp_path / "t.csv")), tmp_path / "p.html")
    text = page.read_text()
    assert "from a file with the SHA-256" in text
    assert "The data." in text
    assert LIGHT.css in text


def test_the_command_reads_what_is_piped_and_renamed(tmp_path, monkeypatch, capsys):
    source._taken.cache_clear()
    text = csv(names=["err1", *NAMES[1:]])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert whorl_cli.main(["certify", "-", "--rename", "err1=residual_1"]) == 0
    assert "turns" in capsys.readouterr().out
    source._taken.cache_clear()
