"""The store: whole shards or none, found damaged by their hashes, and never another design's."""

import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from sweep.small import RANDOM, design, files
from whorl import sweep
from whorl.study import store


def copied(undisturbed, tmp_path):
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(undisturbed[0]), str(folder)], check=True)
    return folder


def again(folder, **more):
    seen = []
    done = sweep.sweep(design(), folder, progress=lambda report: seen.append(report.number), **more)
    return done, sorted(seen)


def test_a_name_holds_the_hash_of_the_bytes_and_columns_say_what_they_are(undisturbed):
    for path in (undisturbed[0] / "shards").iterdir():
        assert store.hash_of(path) in path.name
        schema = pq.read_schema(path)
        assert all(schema.field(name).metadata[b"description"] for name in schema.names)
        assert schema.metadata[b"design"] == design().sha256.encode()


def test_finished_shards_are_kept(undisturbed, tmp_path):
    folder = copied(undisturbed, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done, seen = again(folder)
    assert (done.computed, seen) == (0, [])
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone", "twice"])
def test_a_damaged_shard_is_found_by_its_hash_and_computed_again(undisturbed, tmp_path, damage):
    folder = copied(undisturbed, tmp_path)
    victim = sorted((folder / "shards").iterdir())[2]
    content = bytearray(victim.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    changed = {"flip": bytes(content), "cut": bytes(content[:-7]), "empty": b""}.get(damage)
    if damage == "gone":
        victim.unlink()
    elif damage == "twice":
        victim.with_name(f"{victim.name[:9]}{'0' * 64}.parquet").write_bytes(content)
    else:
        victim.write_bytes(changed)
    done, seen = again(folder)
    assert seen == ([] if damage == "twice" else [2])
    assert done.cases == 120
    assert files(folder) == undisturbed[1]


def test_what_a_killed_writer_left_is_swept_away_but_not_what_is_being_written(undisturbed, tmp_path):
    folder = copied(undisturbed, tmp_path)
    old, new = (folder / "shards" / f".{undisturbed[1][0]}.{number}.part" for number in (123, 124))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    again(folder)
    assert (old.exists(), new.exists()) == (False, True)
    assert files(folder) == undisturbed[1]


def test_a_folder_of_another_design_or_of_nobody_is_refused_and_left_alone(undisturbed, tmp_path):
    folder = copied(undisturbed, tmp_path)
    with pytest.raises(ValueError, match=r"must be a folder of this design, but its design\.toml differs"):
        sweep.sweep(design(seed=9), folder)
    assert files(folder) == undisturbed[1]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="must be empty, new, or the folder of a sweep, but it is none of these"):
        sweep.sweep(design(), tmp_path / "notes")
    with pytest.raises(ValueError, match="must be the folder of a sweep, but it holds no design"):
        sweep.conditions(tmp_path)
    with pytest.raises(ValueError, match="must hold shards of a sweep, but it holds none"):
        sweep.scan(tmp_path)


def test_a_full_disk_stops_the_sweep_and_loses_nothing(undisturbed, tmp_path):
    folder, small = tmp_path / "full", 4000
    sizes = [path.stat().st_size for path in (undisturbed[0] / "shards").iterdir()]
    assert max(sizes) > small
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (small, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            again(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert str(caught.value.filename).endswith(".parquet")
    assert not [path for path in folder.rglob("*") if path.name.endswith(".part")]
    again(folder)
    assert files(folder) == undisturbed[1]


FULL = """
import sys, jax
from sweep.small import design
from whorl import sweep
jax.config.update("jax_enable_x64", True)
sweep.sweep(design(), sys.argv[1])
"""


@pytest.mark.slow
def test_a_disk_without_space_ends_the_process_with_a_word(tmp_path, pytestconfig):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = f'mount -t tmpfs -o size=32k none "{place}" && exec "{sys.executable}" -c \'{FULL}\' "{place}/sweep"'
    paths = os.pathsep.join([str(pytestconfig.rootpath / "tests"), str(pytestconfig.rootpath / "src")])
    shell = ["unshare", "-rm", "sh", "-c", mounted]
    ran = subprocess.run(shell, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}, check=False)
    if "mount:" in ran.stderr or "unshare:" in ran.stderr:
        pytest.skip("no tmpfs in a private mount namespace here")
    assert ran.returncode == 1
    assert "No space left on device" in ran.stderr.splitlines()[-1]


def test_failed_cases_are_rows_and_are_tried_again_when_asked(tmp_path, monkeypatch):
    made = design(RANDOM)
    plan = sweep.Plan(made)
    bad = plan.of(plan.shard(0)).free["omega"][17]
    monkeypatch.setenv("WHORL_FAULT_RAISES", repr(float(bad)))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    sweep.sweep(made, whole)
    assert sweep.sweep(made, broken, train="sweep.faults:train").failed == 1
    rows, others = (sweep.scan(folder).collect() for folder in (broken, whole))
    assert rows.filter(rows["failed"])["case"].to_list() == [17]
    assert rows["reason"][17] == "RuntimeError: this case cannot be"
    assert rows["gap"][17] is None
    kept = np.arange(len(rows)) != 17
    assert rows.filter(kept).equals(others.filter(kept))
    monkeypatch.delenv("WHORL_FAULT_RAISES")
    assert sweep.sweep(made, broken).computed == 0
    assert sweep.sweep(made, broken, retry_failed=True).failed == 0
    assert files(broken) == files(whole)


@pytest.mark.parametrize("most", [64, 128])
def test_out_of_memory_changes_nothing_but_the_size_of_calls(tmp_path, monkeypatch, most):
    made = design(RANDOM, points=500, shard=500)
    sweep.sweep(made, tmp_path / "whole")
    monkeypatch.setenv("WHORL_FAULT_MEMORY", str(most))
    assert sweep.sweep(made, tmp_path / "tight", train="sweep.faults:train").failed == 0
    assert files(tmp_path / "tight") == files(tmp_path / "whole")


def test_a_memory_budget_cuts_calls_and_changes_nothing(undisturbed, tmp_path):
    assert sweep.sweep(design(), tmp_path / "flat", memory=10**9).failed == 0
    assert files(tmp_path / "flat") == undisturbed[1]
    with pytest.raises(ValueError, match=r"memory must be at least 0.45 GB for 1 worker on this design, but it is 0.1 GB"):
        sweep.sweep(design(), tmp_path / "none", memory=10**8)


@pytest.mark.slow
def test_a_case_over_the_time_limit_is_a_row(tmp_path, monkeypatch):
    made = design(RANDOM, points=1)
    bad = sweep.Plan(made).of(sweep.Plan(made).shard(0)).free["omega"][0]
    monkeypatch.setenv("WHORL_FAULT_HANGS", repr(float(bad)))
    assert sweep.sweep(made, tmp_path / "slow", limit=2.0, train="sweep.faults:train").failed == 1
    assert sweep.scan(tmp_path / "slow").collect()["reason"].to_list() == ["TimeoutError: no result after 2 s"]


@pytest.mark.slow
def test_one_case_that_never_ends_does_not_cost_the_others(tmp_path, monkeypatch):
    made = design(RANDOM)
    bad = sweep.Plan(made).of(sweep.Plan(made).shard(0)).free["omega"][23]
    sweep.sweep(made, tmp_path / "whole")
    monkeypatch.setenv("WHORL_FAULT_HANGS", repr(float(bad)))
    assert sweep.sweep(made, tmp_path / "slow", limit=5.0, train="sweep.faults:train").failed == 1
    rows, others = (sweep.scan(tmp_path / name).collect() for name in ("slow", "whole"))
    kept = np.arange(len(rows)) != 23
    assert rows["reason"][23] == "TimeoutError: no result after 5 s"
    assert rows.filter(kept).equals(others.filter(kept))
    assert sweep.sweep(made, tmp_path / "slow", retry_failed=True).failed == 0
    assert files(tmp_path / "slow") == files(tmp_path / "whole")
