"""`whorl sweep` as it is typed."""

import argparse
import json
import shutil
import warnings

import pytest

import whorl_cli
from sweep.small import GRID, files
from whorl_cli import _output
from whorl_cli import sweep as command


@pytest.fixture
def typed(tmp_path, capsys):
    """The exit code and the output of a command line."""
    (tmp_path / "mine.toml").write_text(GRID)

    def run(*options):
        parser = argparse.ArgumentParser()
        command.add(parser.add_subparsers())
        given = parser.parse_args(["sweep", str(tmp_path / "mine.toml"), *map(str, options)])
        code = given.call(given)
        return code, capsys.readouterr().out

    return run


def test_a_dry_run_says_what_it_would_cost_and_writes_nothing(typed, tmp_path):
    code, out = typed("--dry-run", "--out", tmp_path / "out")
    assert code == 0
    assert "120 cases of 2 compiled shapes in 4 shards; 1.44e+03 updates" in out
    assert "on 1 core, " in out
    code, out = typed("--dry-run", "--json", "--engine", "processes", "--workers", "3")
    assert json.loads(out).keys() == {
        "cases",
        "shards",
        "shapes",
        "updates",
        "seconds",
        "bytes",
        "workers",
    }
    assert not (tmp_path / "out").exists()


def test_a_sweep_and_the_same_again(typed, tmp_path, undisturbed):
    code, out = typed("--out", tmp_path / "out", "--json", "--memory", "2GB")
    assert (code, json.loads(out)["computed"]) == (0, 4)
    assert files(tmp_path / "out") == undisturbed[1]
    code, out = typed("--out", tmp_path / "out")
    assert (code, out.splitlines()[0]) == (
        0,
        "120 cases in 4 shards, 4 of them there already; 0 cases failed",
    )


def test_a_damaged_shard_is_named_in_one_sentence(tmp_path, undisturbed, capsys):
    (tmp_path / "mine.toml").write_text(GRID)
    shutil.copytree(undisturbed[0], tmp_path / "out")
    victim = sorted((tmp_path / "out" / "shards").iterdir())[1]
    victim.write_bytes(b"garbage")
    said = []

    def told(
        message, *others
    ):  # pytest keeps warnings to itself: ask for the words that a terminal would show
        said.append(warnings.formatwarning(message, *others[:3]))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = told
        assert (
            whorl_cli.main(["sweep", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")])
            == 0
        )
    assert [
        (words.startswith(f"whorl: {victim} must be a whole shard, but "), words.count("\n"))
        for words in said
    ] == [(True, 1)]
    assert capsys.readouterr().out.startswith(
        "120 cases in 4 shards, 3 of them there already; 0 cases failed"
    )


def test_cases_that_failed_are_told_by_the_exit_code(typed, tmp_path):
    (tmp_path / "mine.toml").write_text(
        GRID.replace("imbalance = [0.0, 4.0, 8.0]", "imbalance = [1e4, 4.0]\nfloor = 0.0")
    )
    code, out = typed("--out", tmp_path / "out")
    assert code == 1
    assert "40 cases failed" in out


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (
            ["--scheduler", "tcp://x:1", "--engine", "gpu"],
            "engine must be cluster where a scheduler is named, and only there, but it is gpu",
        ),
        (
            ["--engine", "cluster"],
            "engine must be cluster where a scheduler is named, and only there, but it is cluster",
        ),
        (
            ["--workers", "2"],
            "workers must be left out unless the engine is processes, but the engine is local",
        ),
        (["--limit", "0"], "limit must be a number greater than 0, but it is 0.0"),
        (
            ["--memory", "100MB"],
            r"memory must be at least 0\.45 GB for 1 worker on this design, but it is 0\.1 GB",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(typed, tmp_path, options, refusal):
    with pytest.raises(ValueError, match=refusal):
        typed("--out", tmp_path / "out", *options)


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("512mb", 512 * 10**6), ("1000", 1000)],
)
def test_sizes(text, bytes_):
    assert _output.size(text) == bytes_


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2XB", "nan", "0"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="it must be a size such as 2GB"):
        _output.size(text)
