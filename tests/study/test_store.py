"""Files are whole or not there; a kill, a full disk or a locked folder loses nothing."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from study.trouble import KilledError, contents, full_disk, kill_at, open_folder, read_only
from whorl.ground import store
from whorl.study import layout


def test_a_file_is_put_in_place_whole_and_alone(tmp_path):
    store.write(tmp_path / "deep" / "file.txt", "one")
    store.write(tmp_path / "deep" / "file.txt", b"two")
    assert contents(tmp_path) == {"deep/file.txt": b"two"}


@pytest.mark.parametrize(("moment", "left"), [("before", b"old"), ("after", b"new")])
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch, moment, left):
    path = tmp_path / "file.txt"
    path.write_bytes(b"old")
    kill_at(monkeypatch, 0, moment)
    with pytest.raises(KilledError):
        store.write(path, b"new")
    assert path.read_bytes() == left
    store.sweep(tmp_path)
    assert contents(tmp_path) == {"file.txt": left}


def test_a_file_is_on_the_disk_before_it_is_moved(tmp_path, monkeypatch):
    calls = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (calls.append("sync"), real_sync(number)))
    monkeypatch.setattr(
        os, "replace", lambda one, other: (calls.append("replace"), real_replace(one, other))
    )
    store.write(tmp_path / "file.txt", b"new")
    assert calls == ["sync", "replace", "sync"]
    calls.clear()
    store.write(tmp_path / "one" / "two" / "file.txt", b"new")
    assert calls == [
        "sync",
        "replace",
        "sync",
        "sync",
        "sync",
    ]  # the file's folder, and those that hold a new folder


def test_the_name_that_is_forced_to_the_disk_is_the_new_one(tmp_path, monkeypatch):
    seen, real = [], os.fsync

    def sync(number):
        place = Path(f"/proc/self/fd/{number}").resolve()
        seen.append((place.is_dir(), (tmp_path / "file.txt").exists()))
        real(number)

    monkeypatch.setattr(os, "fsync", sync)
    store.write(tmp_path / "file.txt", b"new")
    assert seen == [(False, False), (True, True)]


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path):
    path = tmp_path / "file.txt"
    store.write(path, b"old")
    with full_disk(1000), pytest.raises(OSError, match="File too large") as refused:
        store.write(path, b"new" * 1000)
    assert refused.value.filename == str(path)
    assert contents(tmp_path) == {"file.txt": b"old"}


def test_a_folder_that_is_read_only_is_one_sentence_and_loses_nothing():
    with open_folder() as folder:
        path = folder / "file.txt"
        store.write(path, b"old")
        with read_only(folder), pytest.raises(PermissionError) as refused:
            store.write(path, b"new")
        assert refused.value.filename == str(path)
        assert contents(folder) == {"file.txt": b"old"}


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(OSError, match="taken"):
        store.write(tmp_path / "taken" / "file.txt", b"new")
    assert contents(tmp_path) == {"taken": b"mine"}


def a_dead_process():
    """The number of a process that is no more."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


def a_part(of, number, host=None):
    mine = store.owner().rpartition(".")[0]
    path = of.with_name(f".{of.name}.{host or mine}.{number}-0.part")
    path.write_bytes(b"half")
    return path


def test_the_sweep_takes_parts_of_the_dead_and_nothing_else(tmp_path):
    kept = {"a.txt": b"a", ".hidden": b"b", "deep/c.part": b"c", "deep/.d.txt": b"d"}
    for name, content in kept.items():
        store.write(tmp_path / name, content)
    a_part(tmp_path / "deep" / "table.parquet", a_dead_process())
    a_part(tmp_path / "environment.json", a_dead_process())
    store.sweep(tmp_path)
    assert contents(tmp_path) == kept


def test_the_sweep_leaves_parts_of_the_living_and_fresh_ones_of_other_machines(tmp_path):
    living = subprocess.Popen(["sleep", "60"])
    try:
        kept = [
            a_part(tmp_path / "mine", os.getpid()),
            a_part(tmp_path / "beside", living.pid),
            a_part(tmp_path / "away", a_dead_process(), host="elsewhere"),
        ]
        old = a_part(tmp_path / "old", a_dead_process(), host="elsewhere")
        os.utime(kept[0], (0, 0))
        os.utime(old, (0, 0))
        store.sweep(tmp_path)
        assert (sorted(tmp_path.iterdir()), old.exists()) == (sorted(kept), False)
    finally:
        living.kill()
    os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)  # dead, and not buried
    store.sweep(tmp_path)
    assert not kept[1].exists()
    living.wait()


def test_a_write_whose_folder_is_taken_away_is_made_again(tmp_path, monkeypatch):
    real, taken = os.replace, []

    def replace(source, target):
        if not taken:
            taken.append(shutil.rmtree(tmp_path / "work"))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    store.write(tmp_path / "work" / "stage.npz", b"made")
    assert contents(tmp_path) == {"work/stage.npz": b"made"}


def test_a_part_belongs_to_one_file(tmp_path):
    part = tmp_path / ".environment.json.18.part"
    assert store.is_part(part, of=tmp_path / "environment.json")
    assert not store.is_part(part, of=tmp_path / "summary.json")
    assert not store.is_part(tmp_path / "environment.json", of=tmp_path / "environment.json")


def test_json_is_sorted_and_holds_no_nan(tmp_path):
    store.write_json(tmp_path / "one.json", {"b": 1, "a": [2.5]})
    store.write_json(tmp_path / "other.json", {"a": [2.5], "b": 1})
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()
    assert store.read_json(tmp_path / "one.json") == {"a": [2.5], "b": 1}
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_json(tmp_path / "one.json", {"a": float("nan")})
    assert store.read_json(tmp_path / "one.json") == {"a": [2.5], "b": 1}


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000])
def test_broken_json_is_refused_in_one_sentence(tmp_path, content):
    (tmp_path / "one.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"one\.json must be JSON, but it cannot be read$"):
        store.read_json(tmp_path / "one.json")


def test_arrays_are_kept_to_the_bit(tmp_path):
    arrays = {"a": np.random.default_rng(0).normal(size=(3, 4)), "b": np.arange(5)}
    store.write_arrays(tmp_path / "kept.npz", arrays)
    found = store.read_arrays(tmp_path / "kept.npz")
    assert found is not None
    assert found.keys() == arrays.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b[:100],
        lambda b: b[:-30],
        lambda b: b[:200] + b"\xff" + b[201:],
        lambda b: b"x" * 500,
    ],
)
def test_damaged_arrays_are_computed_again(tmp_path, damage):
    path = tmp_path / "kept.npz"
    store.write_arrays(path, {"a": np.zeros(100)})
    path.write_bytes(damage(path.read_bytes()))
    assert store.read_arrays(path) is None
    assert store.read_arrays(tmp_path / "missing.npz") is None


def test_the_manifest_is_accepted_by_sha256sum_until_a_byte_changes(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)

    def checked():
        return subprocess.run(
            ["sha256sum", "--strict", "-c", layout.MANIFEST],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    assert checked().returncode == 0
    assert all(line.endswith(": OK") for line in checked().stdout.splitlines())
    path = folder / "mine" / "tables" / "draws.parquet"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    assert checked().returncode == 1
    assert "mine/tables/draws.parquet: FAILED" in checked().stdout


def test_the_manifest_lists_every_file_but_itself_and_the_audit(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    before = (folder / layout.MANIFEST).read_bytes()
    (folder / "mine" / "audit.json").write_text("{}")
    (folder / "mine" / ".work").mkdir()
    (folder / "mine" / ".work" / "stage.npz").write_text("")
    layout.seal(folder)
    assert (folder / layout.MANIFEST).read_bytes() == before
    listed = {line.partition("  ")[2]: line[:64] for line in before.decode().splitlines()}
    there = contents(finished)
    assert listed == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in there.items()
        if name != layout.MANIFEST
    }
    assert list(listed) == sorted(listed, key=lambda name: name.split("/"))


def test_a_stored_table_reads_back(finished):
    verdict = json.loads((finished / "mine" / "verdict.json").read_text())
    for name, about in verdict["tables"].items():
        path = finished / "mine" / "tables" / f"{name}.parquet"
        assert (
            store.hash_of(path) == about["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        )
        assert {len(column) for column in store.read_table(path).values()} == {about["rows"]}
