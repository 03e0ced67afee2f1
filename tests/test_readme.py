"""The README as a new user follows it: short, complete, and every command in its table works."""

import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import whorl_cli
from study.small import text

HOME = Path(__file__).parent.parent
README = (HOME / "README.md").read_text()
TABLE = README.split("## What you can ask")[1].split("\n## ")[0]
COMMANDS = [
    shlex.split(line)[1:] for row in TABLE.splitlines() for line in re.findall("`(whorl .*?)`", row)
]


def test_the_readme_has_at_most_a_hundred_lines():
    assert len(README.splitlines()) <= 100


def test_the_readme_names_every_extra():
    extras = tomllib.loads((HOME / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    table = README.split("## Install")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    assert named == extras.keys() - {"docs"}
    assert set(whorl_cli.EXTRAS.values()) <= named


@pytest.mark.parametrize("line", COMMANDS, ids=" ".join)
def test_every_command_of_the_readme_is_one(line):
    assert callable(whorl_cli.parser().parse_args(line).call)


def test_a_package_that_is_missing_is_named_with_advice_that_works_in_a_checkout(
    monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "flask", None)
    monkeypatch.delitem(sys.modules, "whorl.explorer.server", raising=False)
    assert whorl_cli.main(["explore", "--no-browser", "--port", "0"]) == 2
    assert capsys.readouterr().err == (
        "whorl: whorl explore needs flask here, which is not installed: in the folder of whorl's "
        "sources, pip install '.[explore]' adds it\n"
    )


def install(whorl, sources, extra=""):
    """What the README says, with or without an extra."""
    install = [whorl.with_name("python"), "-m", "pip", "install", "--quiet", f".{extra}"]
    answer = subprocess.run(install, cwd=sources, capture_output=True, text=True, check=False)
    if "No matching distribution found" in answer.stderr:
        pytest.skip("this machine reaches no package index")
    assert answer.returncode == 0, answer.stderr[-2000:]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A copy of the sources and the command of a fresh environment, without extras."""
    home = tmp_path_factory.mktemp("plain")
    sources, whorl = home / "sources", home / "env" / "bin" / "whorl"
    left = shutil.ignore_patterns(".*", "runs", "_build", "dist", "__pycache__")
    shutil.copytree(HOME, sources, ignore=left)
    subprocess.run([sys.executable, "-m", "venv", str(home / "env")], check=True)
    install(whorl, sources)
    (sources / "mine.toml").write_text(text(expected="PASS"))
    rng = np.random.default_rng(0)
    for name in ("before", "after"):
        rows = rng.multinomial(400, [0.5, 0.3, 0.2], size=30)
        head = "forest,crop,built"
        np.savetxt(sources / f"{name}.csv", rows, "%d", ",", header=head, comments="")
    return sources, whorl


def quick(line):
    """The same command, where it would take minutes, as a rehearsal."""
    if line == ["reproduce"]:
        return [*line, "--quick", "--out", "runs/paper"]
    return [*line, "--dry-run"] if line[0] == "run" and line[1] != "mine.toml" else line


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_of_the_readme_works_after_pip_install(plain):
    sources, whorl = plain
    for line in [one for one in COMMANDS if one[0] != "explore"]:
        answer = subprocess.run(
            [whorl, *quick(line)], cwd=sources, capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, (line, answer.stderr[-2000:])
        assert answer.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_page_opens_with_its_extra_and_the_message_without_it_says_how(plain):
    sources, whorl = plain
    line = ["explore", "--no-browser", "--port", "0"]
    without = subprocess.run(
        [whorl, *line], cwd=sources, capture_output=True, text=True, check=False
    )
    assert without.returncode == 2
    (advice,) = re.findall(r"pip install '\.(.*)' adds it", without.stderr)
    install(whorl, sources, advice)
    page = subprocess.Popen([whorl, *line], cwd=sources, stdout=subprocess.PIPE, text=True)
    try:
        address = re.findall(r"http://\S+", page.stdout.readline())[0]
        time.sleep(1)
        assert urllib.request.urlopen(address, timeout=60).status == 200
    finally:
        page.terminate()
        page.communicate(timeout=20)
