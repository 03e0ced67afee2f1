"""The store: whole shards or none, found damaged by their hashes, and never another design's."""

import hashlib
import os
import re
import resource
import signal
import subprocess
import sys
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweep.small import RANDOM, design, files
from whorl import sweep
from whorl.ground import store


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
    if damage == "gone":
        done, seen = again(folder)
    else:
        with pytest.warns(
            RuntimeWarning,
            match=rf"shards/{victim.name[:9]}.* do not have the hash in its name: it is computed again",
        ):
            done, seen = again(folder)
        assert len(list((folder / "shards").glob(f"{victim.name[:9]}*.damaged"))) == 1
    assert seen == ([] if damage == "twice" else [2])
    assert done.cases == 120
    assert files(folder) == undisturbed[1]


def planted(folder, number, content):
    """A file whose name has the hash of its bytes, in the place of a shard."""
    for path in (folder / "shards").glob(f"{number:08d}-*"):
        path.unlink()
    path = folder / "shards" / f"{number:08d}-{hashlib.sha256(content).hexdigest()}.parquet"
    path.write_bytes(content)
    return path


def other_columns():
    buffer = BytesIO()
    pq.write_table(pa.table({"case": [1, 2]}, metadata={"design": design().sha256}), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["garbage", "columns", "number", "folder", "pipe"])
def test_what_is_no_shard_under_the_right_name_is_set_aside_and_named(undisturbed, tmp_path, kind):
    folder = copied(undisturbed, tmp_path)
    words = {
        "garbage": "it is no table",
        "columns": "columns of a shard",
        "number": "cases are those of another shard",
    }
    third = sorted((folder / "shards").iterdir())[3].read_bytes()
    path = planted(folder, 2, {"columns": other_columns(), "number": third}.get(kind, b"garbage"))
    if kind in ("folder", "pipe"):
        path.unlink()
        path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.warns(
        RuntimeWarning,
        match=f"{path.name} must be a whole shard, but .*{words.get(kind, 'hash in its name')}",
    ):
        done, seen = again(folder)
    assert (done.failed, seen, files(folder)) == (0, [2], undisturbed[1])
    assert (path.with_name(f"{path.name}.damaged")).exists()
    assert again(folder)[1] == []


def test_a_shard_of_another_design_is_refused_with_both_hashes(undisturbed, tmp_path):
    folder, other = copied(undisturbed, tmp_path), design(seed=9)
    sweep.sweep(other, tmp_path / "other")
    stranger = planted(folder, 0, sorted((tmp_path / "other" / "shards").iterdir())[0].read_bytes())
    before = files(folder)
    words = f"{stranger} must be a shard of the design {design().sha256}, but its design is {other.sha256}: "
    for asked in (
        lambda: again(folder),
        lambda: again(folder, retry_failed=True),
        lambda: sweep.scan(folder),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            asked()
    assert files(folder) == before


def test_a_shard_that_is_damaged_meanwhile_ends_in_one_sentence(undisturbed, tmp_path):
    folder = copied(undisturbed, tmp_path)
    victims = sorted((folder / "shards").iterdir())
    victims[0].unlink()

    def spoil(report):
        victims[3].write_bytes(b"garbage")

    with pytest.raises(
        ValueError,
        match=f"{victims[3].name} must be a whole shard, but it cannot be read: start the sweep again",
    ):
        sweep.sweep(design(), folder, progress=spoil)
    with pytest.raises(ValueError, match="must be a whole shard, but it cannot be read"):
        sweep.scan(folder)


def test_what_a_killed_writer_left_is_swept_away_but_not_what_is_being_written(
    undisturbed, tmp_path
):
    folder = copied(undisturbed, tmp_path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    host = store.owner().rpartition(".")[0]
    owners = {
        "dead": f"{host}.{ended.pid}-3",
        "living": f"{host}.{os.getpid()}-3",
        "away": "elsewhere.7-3",
        "old": "elsewhere.8-3",
    }
    parts = {
        name: folder / "shards" / f".{undisturbed[1][0]}.{owner}.part"
        for name, owner in owners.items()
    }
    for path in parts.values():
        path.write_bytes(b"half")
    os.utime(parts["old"], (0, 0))
    again(folder)
    assert [name for name, path in parts.items() if path.exists()] == ["living", "away"]
    assert files(folder) == undisturbed[1]


def test_a_folder_of_another_design_or_of_nobody_is_refused_and_left_alone(undisturbed, tmp_path):
    folder = copied(undisturbed, tmp_path)
    with pytest.raises(
        ValueError, match=r"must be a folder of this design, but its design\.toml differs"
    ):
        sweep.sweep(design(seed=9), folder)
    assert files(folder) == undisturbed[1]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(
        ValueError, match="must be empty, new, or the folder of a sweep, but it is none of these"
    ):
        sweep.sweep(design(), tmp_path / "notes")
    with pytest.raises(ValueError, match="must be the folder of a sweep, but it holds no design"):
        sweep.conditions(tmp_path)
    with pytest.raises(ValueError, match="must hold shards of a sweep, but it holds none"):
        sweep.scan(tmp_path)


def test_a_folder_that_another_start_has_just_made_is_shared(tmp_path, monkeypatch):
    real = store.is_free

    def meanwhile(folder, first):
        store.write(folder / "design.toml", design().text)
        return real(folder, first)

    monkeypatch.setattr(store, "is_free", meanwhile)
    sweep.Store.enter(tmp_path / "shared", design())
    with pytest.raises(
        ValueError, match=r"must be a folder of this design, but its design\.toml differs"
    ):
        sweep.Store.enter(tmp_path / "other", design(seed=9))


STARTED = """
import sys, jax
from sweep.small import design
from whorl import sweep
jax.config.update("jax_enable_x64", True)
assert sweep.sweep(design(), sys.argv[1]).failed == 0
"""


@pytest.mark.slow
def test_two_starts_on_one_folder_at_once_end_with_the_files_of_one(
    undisturbed, tmp_path, pytestconfig
):
    paths = os.pathsep.join(
        [str(pytestconfig.rootpath / "tests"), str(pytestconfig.rootpath / "src")]
    )
    for number in range(3):
        folder = tmp_path / f"both{number}"
        command, environment = (
            [sys.executable, "-c", STARTED, str(folder)],
            os.environ | {"PYTHONPATH": paths},
        )
        both = [
            subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        assert [(one.communicate()[1], one.returncode) for one in both] == [("", 0), ("", 0)]
        assert files(folder) == undisturbed[1]
        assert not list(folder.rglob("*.part"))


def test_a_full_disk_stops_the_sweep_and_loses_nothing(undisturbed, tmp_path):
    folder, small = tmp_path / "full", 4000
    sizes = [path.stat().st_size for path in (undisturbed[0] / "shards").iterdir()]
    assert max(sizes) > small
    before, handler = (
        resource.getrlimit(resource.RLIMIT_FSIZE),
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
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
    paths = os.pathsep.join(
        [str(pytestconfig.rootpath / "tests"), str(pytestconfig.rootpath / "src")]
    )
    shell = ["unshare", "-rm", "sh", "-c", mounted]
    ran = subprocess.run(
        shell, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}, check=False
    )
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
    with pytest.raises(
        ValueError,
        match=r"memory must be at least 0.45 GB for 1 worker on this design, but it is 0.1 GB",
    ):
        sweep.sweep(design(), tmp_path / "none", memory=10**8)


@pytest.mark.slow
def test_a_case_over_the_time_limit_is_a_row(tmp_path, monkeypatch):
    made = design(RANDOM, points=1)
    bad = sweep.Plan(made).of(sweep.Plan(made).shard(0)).free["omega"][0]
    monkeypatch.setenv("WHORL_FAULT_HANGS", repr(float(bad)))
    assert sweep.sweep(made, tmp_path / "slow", limit=2.0, train="sweep.faults:train").failed == 1
    assert sweep.scan(tmp_path / "slow").collect()["reason"].to_list() == [
        "TimeoutError: no result after 2 s"
    ]


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
