"""Pictures that commands write are the same in every folder and for every user."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from whorl import sweep
from whorl_cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
HOSTILE = {"text.usetex": True, "text.latex.preamble": r"\input{/etc/hostname}"}
OTHER = {"font.size": 40, "axes.facecolor": "red", "figure.figsize": (2, 2), "savefig.dpi": 9}
HEAD = ["a", "b", "c", "d"]
SWEPT = """name = "few"
title = "few"
design = "grid"
seed = 1
trials = 2
chunk = 64

[network]
imbalance = [0.0, 4.0]

[schedule]
epochs = 1
"""


def regressed(page):
    counts = page.with_name("counts.csv")
    rows = [(60, 40, 70, 30), (20, 80, 35, 65), (50, 50, 55, 45), (30, 70, 50, 50)]
    counts.write_text("\n".join([",".join(HEAD), *(",".join(map(str, row)) for row in rows)]))
    asked = [
        "--before",
        ",".join(HEAD[:2]),
        "--after",
        ",".join(HEAD[2:]),
        "--repeats",
        "5",
        "--json",
    ]
    return main(["regress", str(counts), *asked, "--page", str(page)])


def certified(page):
    return main(["certify", str(EXAMPLES / "measurements.csv"), "--json", "--page", str(page)])


def swept(page):
    page.with_name("few.toml").write_text(SWEPT)
    arguments = [str(page.with_name("few.toml")), "--out", str(page.with_suffix("")), "--json"]
    return main(["sweep", *arguments, "--plot"])


@pytest.mark.parametrize(
    ("command", "name"),
    [(certified, "page.html"), (certified, "page.pdf"), (regressed, "page.html"), (swept, "a.png")],
)
def test_a_picture_that_a_command_writes_does_not_depend_on_the_users_settings(
    command, name, tmp_path
):
    page = tmp_path / name
    found = []
    for settings in ({}, HOSTILE | OTHER):
        with mpl.rc_context(settings):
            assert command(page) not in (2, 70)
            assert mpl.rcParams["text.usetex"] == bool(settings)
        found.append(page.read_bytes())
        page.unlink()
    assert found[0] == found[1]


@pytest.mark.filterwarnings("error")
def test_a_page_with_names_in_any_script_is_written_without_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "HEAD", ["森林", "農地", "c", "d"])
    assert regressed(tmp_path / "page.html") == 0
    assert "森林" in (tmp_path / "page.html").read_text()


def test_a_picture_that_a_user_draws_follows_the_users_settings(tmp_path):
    design = sweep.parse(SWEPT.encode())
    sweep.sweep(design, tmp_path / "few")
    with mpl.rc_context({"axes.facecolor": "red"}):
        (axes,) = sweep.picture(tmp_path / "few").axes
    assert mpl.colors.to_hex(axes.get_facecolor()) == "#ff0000"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["folder", "environment"])
@pytest.mark.parametrize(
    "settings",
    [
        b"text.usetex: True\ntext.latex.preamble: \\input{/etc/hostname}\nno.such.key: 1\n",
        b"\xff\xfe is no text",
    ],
)
def test_a_matplotlibrc_of_somebody_else_is_not_read(where, settings, tmp_path):
    (tmp_path / "other").mkdir()
    folder = tmp_path if where == "folder" else tmp_path / "other"
    (folder / "matplotlibrc").write_bytes(settings)
    more = {"MATPLOTLIBRC": str(folder)} if where == "environment" else {}
    asked = ["certify", str(EXAMPLES / "measurements.csv"), "--page", "page.html"]
    command = [sys.executable, "-P", "-m", "whorl_cli", *asked]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | more, capture_output=True, text=True, check=False
    )
    assert done.returncode not in (2, 70)
    assert done.stderr == ""
    assert len(re.findall("<svg", (tmp_path / "page.html").read_text())) == 5
