"""The tutorial does what it says: every command and every line of Python on the page is run."""

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest

import whorl_cli

HOME = Path(__file__).parent.parent.parent
PAGE = (HOME / "docs" / "certify.md").read_text()
COMMANDS = [block.split("\n", 1) for block in re.findall(r"```\n\$ (.*?)```", PAGE, flags=re.S)]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """An empty folder with the example in it."""
    (tmp_path / "examples").mkdir()
    shutil.copy(HOME / "examples" / "measurements.csv", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(whorl_cli, "COMMANDS", ("certify",))
    return tmp_path


def test_every_command_prints_what_the_page_shows(bench, capsys):
    assert len(COMMANDS) == 3
    for command, shown in COMMANDS:
        program, *arguments = shlex.split(command)
        assert program == "whorl"
        code = whorl_cli.main(arguments)
        out, err = capsys.readouterr()
        assert out + err == shown
        assert code == {"--template": 0, "examples/measurements.csv": 1, "missing.csv": 2}[arguments[1]]
    assert (bench / "verdict.html").exists()
    rows = (bench / "measurements.csv").read_text().splitlines()
    assert "| " + " | ".join(rows[0].split(",")) + " |" in PAGE
    assert rows[1].rstrip(",").replace(",", " | ") in PAGE


def test_the_python_on_the_page_runs(bench):
    example = doctest.DocTestParser().get_doctest(PAGE, {}, "certify.md", None, 0)
    assert len(example.examples) >= 8
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_promised_columns_are_those_that_are_understood():
    from whorl.measured import layout

    table = PAGE.split("## What the columns may be")[1].split("##")[0]
    for name in (*layout.DRIVES, *layout.ANSWERS, "uncertainty", "sample", "repeat", "measurement", "output", "input_", "column_"):
        assert f"`{name}" in table or f"{name}_" in table
