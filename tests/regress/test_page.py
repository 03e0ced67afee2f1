"""The page, the pictures and the command, as a user meets them."""

import json

import numpy as np
import pytest

from whorl import regress
from whorl.regress.tables import Named
from whorl_cli import main

RNG = np.random.default_rng(0)
BEFORE = RNG.multinomial(200, [0.5, 0.3, 0.2], size=40) + 1
MOVES = np.array([[0.8, 0.1, 0.3], [0.2, 0.6, 0.1], [0.0, 0.3, 0.6]])
AFTER = np.array([RNG.multinomial(300, row / row.sum()) for row in BEFORE @ MOVES.T])


@pytest.fixture
def files(tmp_path):
    before, after, both = (tmp_path / name for name in ("before.csv", "after.csv", "both.csv"))
    names = ["forest", "crop", "<b>built</b>"], ["f", "c", "b"]
    for path, head, rows in (
        (before, names[0], BEFORE),
        (after, names[1], AFTER),
        (both, ["place", *names[0], *names[1]], np.column_stack([np.arange(40), BEFORE, AFTER])),
    ):
        lines = [",".join(map(str, line)) for line in [head, *rows.tolist()]]
        path.write_text("\n".join(lines) + "\n")
    return before, after, both


def test_two_files_and_one_file_give_the_same_answer_and_a_page(files, capsys, tmp_path):
    before, after, both = files
    page = tmp_path / "fit.html"
    asked = ["--repeats", "50", "--json"]
    assert main(["regress", str(before), str(after), "--page", str(page), *asked]) == 0
    one = json.loads(capsys.readouterr().out)
    columns = ["--before", "forest,crop,<b>built</b>", "--after", "f,c,b"]
    assert main(["regress", str(both), *columns, *asked]) == 0
    other = json.loads(capsys.readouterr().out)
    assert one["transitions"] == other["transitions"]
    assert one["p"] == other["p"] < 0.1
    model = regress.FlowRegressor(loss="kl").fit(BEFORE, AFTER)
    np.testing.assert_allclose(one["transitions"], model.matrix, rtol=0, atol=1e-12)
    shown = page.read_text()
    assert "<b>built" not in shown
    assert "&lt;b&gt;built" in shown
    assert "http" not in shown.replace("http-equiv", "")
    assert shown.count("data:image/png") == 6  # three pictures, each for light and for dark ground


def test_the_command_prints_a_summary(files, capsys):
    assert main(["regress", str(files[0]), str(files[1]), "--repeats", "20"]) == 0
    printed = capsys.readouterr().out
    assert "to \\ from" in printed
    assert "permutation test of no effect" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["both.csv"], "AFTER must be given, or --before and --after"),
        (["before.csv", "gone.csv"], "no such file"),
        (["before.csv", "after.csv", "--before", "forest"], "--before must name at least 2 parts"),
        (
            ["before.csv", "after.csv", "--before", "forest,sea"],
            "--before must name columns of before.csv",
        ),
        (["before.csv", "after.csv", "--page", "fit.pdf"], "--page must end in .html"),
        (["-", "-"], "AFTER must be a file where BEFORE is standard input"),
        (["before.csv", "after.csv", "--repeats", "0"], "repeats must be a whole number"),
        (["before.csv", "after.csv", "--level", "2"], "level must be less than 1"),
        (["before.csv", "short.csv"], "one line per unit, but they have 40 and 2"),
        (["before.csv", "negative.csv"], "negative.csv, line 2, column b: every part must"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(files, arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(files[0].parent)
    (files[0].parent / "short.csv").write_text("a,b\n1,2\n3,4\n")
    (files[0].parent / "negative.csv").write_text("a,b\n" + "1,-2\n" * 40)
    assert main(["regress", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def drawn(model):
    return regress.intervals(model), regress.ternary(model)


def test_pictures_go_where_they_are_told_and_hold_every_part():
    from matplotlib.figure import Figure

    model = regress.FlowRegressor(loss="kl")
    regress.bootstrap(model, BEFORE, AFTER, repeats=20)
    axes = Figure().add_subplot()
    assert regress.flows(model, BEFORE, ax=axes) is axes
    assert len(axes.texts) == 6
    assert len(axes.collections) == int((model.matrix > 0).sum())
    assert len(regress.intervals(model).lines) == 3
    assert len(regress.ternary(model).lines) == 6
    came, to = ["$a$", "_b", "c" * 30], [r"$\frac", "_q", "r\u202e"]
    model.fit(Named(BEFORE, came), Named(AFTER, to))
    shown = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in drawn(model)]
    short = [*came[:2], "c" * 23 + "…"]
    assert shown == [[*to[:2], r"r\u202e"], short]  # no name is mathematics or left out
    sankey = regress.flows(model)
    sankey.figure.draw_without_rendering()
    room = sankey.figure.bbox
    for text in sankey.texts:
        box = text.get_window_extent()
        assert room.x0 <= box.x0 < box.x1 <= room.x1
    with pytest.raises(ValueError, match="model must predict 3 parts"):
        regress.ternary(regress.FlowRegressor().fit(BEFORE, AFTER[:, :2] + 1))
