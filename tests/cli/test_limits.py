"""What cannot end well is refused before it begins.

Too little memory, designs that ask for too much, folders that were changed.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import whorl_cli
from study.small import made, small, text
from whorl.ground import reader, source, store
from whorl.measured import intake
from whorl.study import cost, kinds, run
from whorl_cli import _memory

GB = 10**9
LIMITED = """import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
from whorl_cli import main
sys.exit(main(sys.argv[2:]))"""
EVERY = {
    "reproduce": ["--quick"],
    "run": ["threshold"],
    "register": ["mine.toml"],
    "verify": ["."],
    "report": ["."],
    "replicate": ["threshold", "--seeds", "1"],
    "certify": ["mine.csv"],
    "regress": ["mine.csv", "yours.csv"],
    "sweep": ["mine.toml", "--dry-run"],
    "explore": ["--no-browser", "--port", "0"],
    "compare": [".", "."],
    "cache": [],
}


def limited(command, size, **options):
    """A command that may map so many bytes."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(int(size)), *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_every_command_says_what_it_needs():
    assert set(_memory.NEEDS) == set(whorl_cli.COMMANDS) == set(EVERY)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("size", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", EVERY)
def test_with_too_little_memory_a_command_ends_in_one_sentence(name, size, tmp_path):
    (base, each), _ = _memory.NEEDS[name]
    if size >= base + each * (os.cpu_count() or 1):
        pytest.skip("this is enough on this machine")
    answer = limited([name, *EVERY[name]], size * GB, cwd=tmp_path, timeout=60)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"whorl: whorl {name} needs ")
    assert f"but the limit is {size:.2g} GB: raise it with `ulimit -v unlimited`\n" in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["register", "verify", "report", "certify", "run", "sweep"])
def test_with_what_it_needs_a_command_works(name, copied, tmp_path):
    (base, each), _ = _memory.NEEDS[name]
    measured = tmp_path / "m.csv"
    rows = np.random.default_rng(0).standard_normal((40, 4)).tolist()
    measured.write_text(
        "residual_1,residual_2,velocity_1,velocity_2\n"
        + "\n".join(",".join(map(str, row)) for row in rows)
    )
    sweeping = (
        'name = "s"\ntitle = "t"\ndesign = "grid"\nseed = 1\nchunk = 64\n[schedule]\nepochs = 1\n'
    )
    (tmp_path / "s.toml").write_text(sweeping)
    given = {
        "register": ["mine.toml"],
        "verify": ["runs/mine"],
        "report": ["runs/mine"],
        "certify": [measured],
        "run": ["mine.toml", "--out", tmp_path / "new"],
        "sweep": [tmp_path / "s.toml", "--out", tmp_path / "swept"],
    }
    answer = limited(
        [name, *given[name]], (base + each * (os.cpu_count() or 1)) * GB, cwd=copied, timeout=600
    )
    assert all(line.endswith(" left)") for line in answer.stderr.splitlines())
    assert answer.returncode == 0


def test_a_machine_with_little_left_is_said_so(monkeypatch, refused):
    monkeypatch.setattr(_memory, "available", lambda: 10**8)
    assert refused("verify", ".").startswith(
        "whorl verify needs 0.6 GB of memory, but 0.1 GB are available"
    )


@pytest.mark.parametrize(
    ("group", "found"),
    [
        ({"memory.max": "max", "memory.current": "5"}, None),
        (
            {
                "memory.max": "1000",
                "memory.current": "400",
                "memory.stat": "anon 5\ninactive_file 100\n",
            },
            700,
        ),
        ({"memory/memory.limit_in_bytes": "1000", "memory/memory.usage_in_bytes": "2000"}, 0),
        ({}, None),
    ],
)
def test_the_limit_of_a_group_of_processes_is_read(monkeypatch, tmp_path, group, found):
    for name, content in group.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(_memory, "GROUP", tmp_path)
    assert _memory._group() == found


def test_a_design_that_does_not_fit_is_refused_before_anything_is_made(
    refused, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(
        text("structural", families=100_000, depths=[1, 2, 3, 4, 5, 6], updates=1)
    )
    assert "must have at most 100000000 rows in its tables, but its design asks for 2" in refused(
        "run", "mine.toml"
    )
    (tmp_path / "mine.toml").write_text(text("structural", families=20_000))
    monkeypatch.setattr(_memory, "available", lambda: 2 * GB)
    words = refused("run", "mine.toml")
    assert words.startswith("study mine must fit into 2 GB of memory, but it takes about ")
    assert words.endswith("ask for less, or say with --memory how much it may take")
    assert "must fit into 1 GB" in refused("run", "mine.toml", "--memory", "1GB")
    assert "must fit into 2 GB" in refused("replicate", "mine.toml", "--seeds", "1")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_full_disk_is_seen_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(
        cost.shutil, "disk_usage", lambda _: cost.shutil._ntuple_diskusage(10**9, 10**9, 1000)
    )
    with pytest.raises(
        ValueError, match=r"new must have room for .* MB, but 1 kB are free on its disk"
    ):
        cost.check([("mine", cost.estimate(small()))], tmp_path / "new")


def test_a_dry_run_says_what_a_run_takes_and_makes_nothing(whorl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = whorl("run", "horizon", "--dry-run")
    assert (code, err, list(tmp_path.iterdir())) == (0, "", [])
    assert out.startswith("206832 rows in its tables; about ")
    assert "of memory and" in out


def test_a_dry_run_of_a_deep_design_counts_the_minutes_of_its_compilation(
    whorl, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(text("horizon", depths=[64], scales=[0.1]))
    code, out, _ = whorl("run", "mine.toml", "--dry-run")
    assert code == 0
    whole, compiling = (
        60 * int(minutes) + int(rest) for minutes, rest in re.findall(r"(\d+) min (\d\d) s", out)
    )
    assert 120 < compiling < whole  # two programs of more than a minute each; it was 36 s in all
    assert f"{compiling // 60} min {compiling % 60:02d} s of it to compile programs" in out
    machine = json.loads(whorl("run", "mine.toml", "--dry-run", "--json")[1])
    assert round(machine["compiling"]) == compiling


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["structural", "threshold", "horizon"])
def test_the_rows_of_an_estimate_are_those_of_the_tables(kind):
    p, tables = made(kind)
    counted = {
        name: len(next(iter(columns.values())))
        for name, columns in tables.items()
        if name != "statistics"
    }
    assert kinds.get(kind).work(p).rows == counted


@pytest.mark.slow
def test_a_folder_whose_name_begins_with_a_dash_is_a_folder(copied, whorl):
    (copied / "runs" / "mine").rename(copied / "-x")
    assert whorl("verify", "--", "-x")[0] == 0
    assert whorl("run", "mine.toml", "--out=-x")[0] == 0


CHANGES = {
    "other names": lambda arrays: {f"not_{name}": values for name, values in arrays.items()},
    "other shapes": lambda arrays: {name: values[..., :1] for name, values in arrays.items()},
    "other types": lambda arrays: {
        name: values.astype(np.float32) for name, values in arrays.items()
    },
    "other values": lambda arrays: {name: values + 1 for name, values in arrays.items()},
    "nothing": lambda arrays: {},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sealed", [False, True], ids=["raw", "under another key"])
def test_work_files_that_were_changed_are_computed_anew(change, sealed, tmp_path):
    study = small("threshold")
    whole = run.run(study, tmp_path / "whole", registered={})["tables"]
    work = tmp_path / "changed" / run.WORK
    for stage in kinds.get("threshold").stages(study.values()):
        arrays = CHANGES[change](kinds.get("threshold").compute(study.values(), stage))
        work.mkdir(parents=True, exist_ok=True)
        if sealed:
            store.write_arrays(work / f"{stage.name}.npz", arrays, "another design")
        else:
            np.savez(work / f"{stage.name}.npz", **arrays)
    assert run.run(study, tmp_path / "changed", registered={})["tables"] == whole


def test_work_files_that_are_whole_are_kept(tmp_path, monkeypatch):
    study = small("threshold")
    work = tmp_path / "run" / run.WORK
    for stage in kinds.get("threshold").stages(study.values()):
        arrays = kinds.get("threshold").compute(study.values(), stage)
        store.write_arrays(work / f"{stage.name}.npz", arrays, f"{study.sha256} False {stage.name}")
    fails = replace(kinds.get("threshold"), compute=lambda *_: pytest.fail("computed again"))
    monkeypatch.setattr(kinds, "get", lambda _: fails)
    run.run(study, tmp_path / "run", registered={})


def test_a_packed_archive_is_not_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "kept.npz", large=np.zeros(10**6))
    assert store.read_arrays(tmp_path / "kept.npz") is None


DOCS = Path(__file__).parents[2]


def test_the_page_of_the_command_has_every_exit_code_and_every_need():
    page = (DOCS / "docs" / "reference" / "command.md").read_text()
    said = set(re.findall(r"^  (\d+) +\w", whorl_cli.EXIT, re.MULTILINE))
    assert (
        said
        == set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))
        == {"0", "1", "2", str(whorl_cli.FAULT), "130"}
    )
    for name, ((base, each), resident) in _memory.NEEDS.items():
        (row,) = re.findall(rf"^\|.*`{name}`.*GB \|$", page, re.MULTILINE)
        assert f"| {base:g} + {each:g} n GB | {resident:g} GB |" in row
    for ceiling in (cost.ROWS, cost.DRAWS, cost.FORESEEN):
        assert str(ceiling) in page


def test_the_security_page_states_every_limit():
    page = " ".join((DOCS / "SECURITY.md").read_text().split())
    limits = [
        reader.LARGEST,
        cost.ROWS,
        cost.DRAWS,
        cost.FORESEEN,
        source.BYTES,
        source.HELD,
        source.ROWS,
        source.COLUMNS,
        source.NUMBERS,
        source.FEW,
        source.LONGEST,
        source.RATE,
        source.MEMORY,
    ]
    limits += [intake.LOOPS, intake.HELD]
    assert [limit for limit in limits if f"{limit:,}".replace(",", " ") not in page] == []
    for words in (
        f"{source.LABEL} bytes",
        f"{source.NAME} characters",
        f"{source.SECONDS:g} s of processor time",
        f"{intake.DIRECTIONS} directions",
    ):
        assert words in page
