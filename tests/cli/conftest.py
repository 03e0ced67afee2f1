"""A small study as a user has it.

A design file, registered, and run from the command line once in a process.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import whorl_cli
from study.small import text
from whorl import _child
from whorl.study import figures, report


@pytest.fixture
def whorl(capsys):
    """The command, in this process: exit code, what it printed, and what it complained about."""

    def call(*arguments):
        capsys.readouterr()
        try:
            code = whorl_cli.main([str(argument) for argument in arguments])
        except SystemExit as ended:  # argparse ends by itself
            code = ended.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def refused(whorl):
    """The one sentence with which a command is refused, in words and for machines."""

    def call(*arguments):
        code, out, err = whorl(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("whorl: ")
        assert err.count("\n") == 1
        code, out, machine = whorl(*arguments, "--json")
        assert (code, out) == (2, "")
        assert json.loads(machine) == {"error": err.removeprefix("whorl: ").rstrip("\n")}
        return err.removeprefix("whorl: ").rstrip("\n")

    return call


@pytest.fixture
def process(tmp_path):
    """The command in a process of its own, with compiled programs kept where these tests keep
    theirs.
    """
    kept = {
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }

    def start(*arguments, script="import sys, whorl_cli; sys.exit(whorl_cli.main())", **options):
        command = [sys.executable, "-c", script, *map(str, arguments)]
        return subprocess.Popen(
            command,
            env=os.environ | kept,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    return start


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A folder with a registered design and its finished run; do not change it."""
    home = tmp_path_factory.mktemp("study")
    (home / "mine.toml").write_text(text(expected="PASS"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert whorl_cli.main(["register", "mine.toml"]) == 0
        assert whorl_cli.main(["run", "mine.toml", "--json"]) == 0
    return home


@pytest.fixture
def copied(study, tmp_path):
    """The same, to be changed; the working folder is there."""
    home = tmp_path / "home"
    shutil.copytree(study, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        yield home


@pytest.fixture
def bare(monkeypatch):
    """The audit, the figures and the report have tests of their own.

    Let the first be content, or not, and leave out the others.
    """

    def say(sound):
        finding = {
            "study": "mine",
            "claim": "all is well",
            "error": 0.0,
            "tolerance": 0.0,
            "where": "everywhere",
            "passed": sound,
        }
        monkeypatch.setattr(_child, "audit", lambda folder, **_: {"findings": [finding]})

    monkeypatch.setattr(figures, "draw_all", lambda folder, **_: [])
    monkeypatch.setattr(report, "write", lambda folder, **_: folder)
    say(True)
    return say


def tables(folder):
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*.parquet")}


@pytest.fixture
def tables_of():
    return tables
