"""The command helps whoever does not know it: what was meant, what there is, what comes first."""

import os
import subprocess
import sys

import pytest

import whorl_cli
from study.small import text as small
from whorl.study import design, possible
from whorl_cli import _parser, _study


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["reprodcue"], "reproduce"),
        (["run", "mine.toml", "--quik"], "--quick"),
        (["register", "--template", "horizn"], "horizon"),
        (["run", "strctural"], "structural"),
    ],
)
def test_a_slip_of_the_hand_is_answered_with_what_was_meant(whorl, arguments, meant):
    code, out, err = whorl(*arguments)
    assert (code, out) == (2, "")
    assert err.rstrip().endswith(f"did you mean {meant}?")


def test_a_bare_command_says_what_to_do_first(whorl):
    code, _, err = whorl()
    assert code == 2
    assert "whorl explore" in err
    assert "whorl reproduce  " in err
    assert "--quick" not in err  # a trial whose numbers mean nothing is no first answer


def test_run_without_a_design_lists_those_that_come_with_whorl(whorl):
    code, out, err = whorl("run")
    assert (code, err) == (0, "")
    assert "  threshold   Does one sample's curvature ratio predict" in out


def test_the_list_follows_the_width_of_the_terminal(whorl, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, whorl("run")[1].splitlines())) <= 40


@pytest.mark.parametrize("width", [50, 120])
def test_help_follows_the_width_of_the_terminal(whorl, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for name in whorl_cli.COMMANDS:
        story = whorl(name, "--help")[1].split("\n\n")[1]
        assert max(map(len, story.splitlines())) <= width
        assert width < 100 or max(map(len, story.splitlines())) > 80 or "\n" not in story


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_completed(whorl, shell):
    code, script, _ = whorl("--completion", shell)
    assert code == 0
    for name, words in _parser.options(whorl_cli.parser()).items():
        assert name in script
        assert all(word.lstrip("-") in script for word in words)
    if shell == "bash":
        line = 'COMP_WORDS=(whorl run --qu); COMP_CWORD=2; _whorl; echo "${COMPREPLY[@]}"'
        answer = subprocess.run(
            ["bash", "-c", f"{script}\n{line}"], capture_output=True, text=True, check=True
        )
        assert answer.stdout.split() == ["--quick"]


def test_a_gate_that_no_run_can_meet_is_refused_when_it_is_registered(refused, tmp_path):
    text = design.template("threshold")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('"auc.lower"', '"auc.low"'))
    assert refused("register", path).endswith(
        "must be on a statistic of this threshold study, but it is on auc.low: did you mean auc.lower?"
    )
    path.write_text(text.replace("families = { value = 50", "families = { value = 7"))
    assert refused("register", path).endswith(
        "must fit the 140 configurations that the parameters make, but it asks for == 1000: "
        "write bound = 140"
    )
    assert not path.with_suffix(".lock.json").exists()


def test_every_shipped_design_can_pass_as_far_as_its_counts_say():
    for name in ("structural", "threshold", "horizon", "foresight"):
        possible.check(design.shipped(name))


def test_another_registration_needs_a_word_and_keeps_the_lock_before(whorl, refused, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(small("threshold"))
    assert whorl("register", path)[0] == 0
    assert whorl("register", path)[0] == 0  # the same again changes nothing
    first = path.with_suffix(".lock.json").read_text()
    path.write_text(small("threshold") + "\n# changed after the run\n")
    assert refused("register", path).endswith("give --again to register the changed design")
    assert path.with_suffix(".lock.json").read_text() == first
    code, out, _ = whorl("register", path, "--again")
    assert code == 0
    assert "mine.lock.1.json" in out
    assert (tmp_path / "mine.lock.1.json").read_text() == first
    assert path.with_suffix(".lock.json").read_text() != first


def test_progress_in_a_file_is_a_line_per_stage_with_a_time_that_settles(tmp_path):
    script = """
import time
from whorl_cli import _study
clock = [0.0]
time.monotonic = lambda: clock[0]
sizes = {"a": 1.0, "b": 3.0}
with _study.bar("study", 16, False, lambda what: sizes[what[0]], 32.0) as told:
    for piece in ["a"] * 8 + ["b"] * 8:
        clock[0] += 2 * sizes[piece]
        told(piece)
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    lines = answer.stderr.splitlines()
    assert len(lines) == 17
    left = [line.rpartition(", ")[2].removesuffix(" left)") for line in lines]
    seconds = [60 * int(one.split(":")[0]) + int(one.split(":")[1]) for one in left]
    assert seconds[0] == 32  # what was expected, before anything is known
    whole = [2 * piece for piece in (24, 21, 18, 15, 12, 9, 6, 3, 0)]
    assert all(abs(one - true) <= 0.25 * 64 for one, true in zip(seconds[8:], whole, strict=True))
    assert seconds[-1] == 0


def test_nothing_is_said_of_progress_where_nobody_reads(capsys):
    with _study.bar("study", 2, False) as told:
        told("one")
    assert capsys.readouterr().err == ""


def test_an_engine_that_is_not_here_is_named(refused, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        'name = "s"\ntitle = "t"\ndesign = "grid"\nseed = 1\nchunk = 64\n[schedule]\nepochs = 1\n'
    )
    if os.environ.get("JAX_PLATFORMS", "cpu") == "cpu":
        assert "JAX sees none here" in refused("sweep", path, "--engine", "gpu")


def test_two_runs_are_compared_statistic_by_statistic(whorl, refused, copied):
    code, out, _ = whorl("compare", copied / "runs" / "mine", copied / "runs" / "mine" / "mine")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("rows.configurations"))
    assert row.split()[1:] == ["16", "16", "+0"]
    assert "must be a run folder or a study in one" in refused("compare", copied, copied)


def test_progress_in_a_notebook_is_a_few_lines_also_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_study, "IN_NOTEBOOK", True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with _study.bar("study", 1000, False) as told:
        for number in range(1000):
            told(f"piece {number}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= 12
    assert "\x1b" not in "".join(lines)
