"""The command itself: help at once, refusals in one sentence, exit codes that mean something."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import whorl_cli
from whorl.study import Conducted
from whorl_cli import _output, _study

HEAVY = ("jax", "numpy", "pyarrow", "scipy", "matplotlib", "rich", "whorl", "whorl_audit")


def test_help_answers_without_the_library():
    script = f"""
import io, sys, contextlib, whorl_cli
for arguments in [["--help"], ["--version"], *([name, "--help"] for name in whorl_cli.COMMANDS)]:
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        whorl_cli.main(arguments)
    assert said.getvalue()
print(*(name for name in {HEAVY} if name in sys.modules))
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()
        == []
    )


def test_the_check_above_would_see_a_heavy_import():
    script = f"import sys, numpy; print(*(name for name in {HEAVY} if name in sys.modules))"
    assert subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split() == ["numpy"]


def test_the_installed_command_and_the_module_are_this_program():
    for command in (
        [sys.executable, "-m", "whorl_cli"],
        [str(Path(sys.executable).with_name("whorl"))],
    ):
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == _output.version()


def test_help_lists_every_command_and_the_exit_codes(whorl):
    code, out, err = whorl("--help")
    assert (code, err) == (0, "")
    for name in (*whorl_cli.COMMANDS, "exit codes:", "  0  ", "  1  ", "  2  ", "  70 "):
        assert name in out


@pytest.mark.parametrize("name", ["reproduce", "run", "register", "verify", "replicate"])
def test_every_command_has_help_and_speaks_to_machines(whorl, name):
    assert name in whorl_cli.COMMANDS
    code, out, err = whorl(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: whorl {name}")
    assert "--json" in out
    assert len(out.splitlines()) > 6


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["run", "a.toml", "--fast"],
        ["replicate", "horizon", "--seeds", "many"],
        ["register"],
    ],
)
def test_a_line_that_is_none_shows_how_it_is_used(whorl, arguments):
    code, out, err = whorl(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("usage: whorl")


def calling(monkeypatch, call, machine=False):
    """Let the command line mean this call."""

    class Parser:
        """Reads nothing."""

        def parse_args(self, _):
            return argparse.Namespace(call=call, json=machine, command="run")

    monkeypatch.setattr(whorl_cli, "parser", Parser)


def failing(wrong):
    def call(_):
        raise wrong

    return call


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (ValueError("depth must be 3,\n  but it is 4"), "depth must be 3, but it is 4"),
        (
            FileNotFoundError(2, "No such file or directory", "mine.toml"),
            "mine.toml: no such file or directory",
        ),
        (
            OSError(28, "No space left on device", "runs/table.parquet"),
            "runs/table.parquet: no space left on device",
        ),
        (OSError(5, "Input/output error"), "input/output error"),
        (OSError("odd"), "odd"),
    ],
)
def test_a_refusal_is_one_sentence_and_exit_code_2(monkeypatch, capsys, wrong, sentence):
    calling(monkeypatch, failing(wrong))
    assert whorl_cli.main([]) == 2
    assert capsys.readouterr() == ("", f"whorl: {sentence}\n")
    calling(monkeypatch, failing(wrong), machine=True)
    assert whorl_cli.main([]) == 2
    said = capsys.readouterr()
    assert (said.out, json.loads(said.err)) == ("", {"error": sentence})


def test_an_interruption_is_one_sentence_and_exit_code_130(monkeypatch, capsys):
    calling(monkeypatch, failing(KeyboardInterrupt()))
    assert whorl_cli.main([]) == 130
    assert capsys.readouterr() == (
        "",
        "whorl: interrupted; what was finished is kept, and the same command goes on from there\n",
    )


def test_a_mistake_of_ours_is_not_dressed_up_as_a_refusal_or_a_verdict(monkeypatch, capsys):
    monkeypatch.delenv("WHORL_TRACEBACK", raising=False)
    calling(monkeypatch, failing(TypeError("a bug\nin two lines")))
    assert whorl_cli.main([]) == 70
    sentence = "a fault of whorl itself, please report it (TypeError: a bug); WHORL_TRACEBACK=1 in the environment shows where"
    assert capsys.readouterr() == ("", f"whorl: {sentence}\n")
    monkeypatch.setenv("WHORL_TRACEBACK", "1")
    calling(monkeypatch, failing(KeyError("name")), machine=True)
    assert whorl_cli.main([]) == 70
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):")
    assert "KeyError: 'name'" in said


@pytest.mark.parametrize(
    "wrong",
    [
        MemoryError(),
        MemoryError("Unable to allocate 9 GiB"),
        RuntimeError("RESOURCE_EXHAUSTED: ..."),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_too_little_memory_is_no_fault_of_ours(monkeypatch, capsys, wrong):
    calling(monkeypatch, failing(wrong))
    assert whorl_cli.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("whorl: there is too little memory: ")
    assert said.err.count("\n") == 1


def test_a_command_and_all_that_it_starts_import_nothing_from_the_current_folder(
    process, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", "here")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    script = """import argparse, os, sys, whorl_cli
def call(_):
    print([os.environ["PYTHONPATH"], os.environ["PYTHONSAFEPATH"]])
    return 0
class Parser:
    def parse_args(self, _):
        return argparse.Namespace(call=call, json=False, command="run")
whorl_cli.parser = Parser
sys.exit(whorl_cli.main())"""
    assert process(script=script).communicate() == ("['', '1']\n", "")


def test_a_reader_who_has_had_enough_is_not_answered_with_a_traceback(monkeypatch, capsys):
    ours, theirs = os.pipe()
    os.close(ours)
    calling(monkeypatch, lambda _: print("words") or 0)
    with os.fdopen(theirs, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert whorl_cli.main([]) == 2
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_a_machine_without_room_for_a_worker_says_so(process):
    script = """import os, sys, whorl_cli
def fork():
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = fork
sys.exit(whorl_cli.main())"""
    command = process("cache", script=script)
    assert command.communicate() == ("", "whorl: resource temporarily unavailable\n")
    assert command.returncode == 2


def test_a_command_without_a_place_for_temporary_files_works(process):
    script = """import sys, tempfile, whorl_cli
def mkdtemp(**_):
    raise FileNotFoundError(2, "No usable temporary directory found")
tempfile.mkdtemp = mkdtemp
sys.exit(whorl_cli.main())"""
    command = process("cache", script=script)
    assert command.communicate()[1] == ""
    assert command.returncode == 0


def test_a_command_whose_output_the_shell_closed_still_works():
    whorl = Path(sys.executable).with_name("whorl")
    line = f"'{whorl}' cache >&-; echo $?"
    answer = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("0\n", "")


def test_exit_codes_are_those_of_the_call(monkeypatch):
    for code in (0, 1):
        calling(monkeypatch, lambda _, code=code: code)
        assert whorl_cli.main([]) == code


def verdict(**others):
    return {
        "study": "s",
        "verdict": "PASS",
        "expected": "PASS",
        "quick": False,
        "registered": True,
        "why_unregistered": None,
        "gates": [],
    } | others


@pytest.mark.parametrize(
    ("one", "sound", "good"),
    [
        (verdict(), True, True),
        (verdict(), False, False),
        (verdict(expected="FAIL"), True, False),
        (verdict(verdict="FAIL", expected="FAIL"), True, True),
        (verdict(verdict="FAIL", expected=None), True, True),
        (verdict(verdict="FAIL", quick=True), True, True),
        (verdict(verdict="FAIL", quick=True), False, False),
    ],
)
def test_a_run_is_as_expected_when_the_audit_and_every_verdict_say_so(one, sound, good):
    done = Conducted(Path(), [verdict(), one], [{"passed": True}, {"passed": sound}], [])
    assert (done.sound, done.as_expected) == (sound, good)


def test_a_verdict_in_words_names_the_gates_that_failed():
    gate = {
        "name": "rank",
        "statistic": "rank.min",
        "relation": ">=",
        "bound": 6.0,
        "value": 5.0,
        "passed": False,
    }
    lines = _study.verdict_lines(
        verdict(verdict="FAIL", gates=[gate, gate | {"passed": True}, gate | {"value": None}])
    )
    assert lines[0].split() == ["s", "FAIL,", "expected", "PASS"]
    assert [line.strip() for line in lines[1:]] == [
        "gate not met: rank (rank.min is 5, wanted >= 6)",
        "gate not met: rank (rank.min is missing, wanted >= 6)",
    ]
    stamped = _study.verdict_lines(verdict(registered=False, why_unregistered="it is mine"))
    assert "[UNREGISTERED: it is mine]" in stamped[0]


def test_names_from_a_folder_do_not_speak_to_the_terminal(capsys):
    evil = "\x1b[2J\nall is well\x9b\u202e\udc80"
    gate = {
        "name": evil,
        "statistic": evil,
        "relation": ">=",
        "bound": 6.0,
        "value": 5.0,
        "passed": False,
    }
    finding = {"claim": evil, "error": 0.5, "tolerance": 0.1, "where": evil, "passed": False}
    lines = _study.verdict_lines(
        verdict(study=evil, verdict=evil, registered=False, why_unregistered=evil, gates=[gate])
    )
    assert len(lines) == 2
    assert len(_study.audit_line([finding]).splitlines()) == 2
    _output.line(*lines, _study.audit_line([finding]))
    _output.refuse(ValueError(evil), argparse.Namespace(json=False))
    said = capsys.readouterr()
    assert [
        letter for letter in said.out + said.err if not letter.isprintable() and letter != "\n"
    ] == []
    assert said.out.count(r"\x1b[2J\nall is well\x9b\u202e\udc80") == 7


def test_an_audit_in_words_names_the_claims_that_failed():
    finding = {"claim": "sums", "error": 0.5, "tolerance": 0.1, "where": "row 3", "passed": False}
    assert _study.audit_line([finding | {"passed": True}] * 2).split()[:2] == ["audit", "2"]
    words = _study.audit_line([finding, finding | {"passed": True}])
    assert "1 of 2 claims FAIL" in words
    assert "sums: error 0.5, tolerance 0.1, row 3" in words


def test_a_progress_bar_counts_on_the_error_stream_of_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with _study.bar("work", 2, quiet=False) as progress:
        progress("one")
        progress("two")
    said = capsys.readouterr()
    assert said.out == ""
    assert "2/2" in said.err
    for quiet, total, terminal in ((True, 2, True), (False, 0, True), (False, 2, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with _study.bar("work", total, quiet=quiet) as progress:
            progress("one")
        assert capsys.readouterr() == ("", "")
