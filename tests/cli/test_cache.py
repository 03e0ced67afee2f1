"""Compiled programs are kept for the next command, and nothing that happens to them is fatal."""

import json
import os
import zlib

import pytest

import whorl_cli
from whorl_cli import _kept


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder for this machine, of a user who has settled nothing."""
    for name in [name for name in os.environ if name.startswith("JAX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WHORL_CACHE", str(tmp_path / "programs"))
    return _kept.here()


def test_a_command_that_compiles_keeps_its_programs_in_the_folder(folder):
    with _kept.programs(True):
        assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(folder)
        assert folder.is_dir()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_programs_are_kept_in_the_folder_for_caches_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("WHORL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_kept.sys, "platform", "linux")
    assert _kept.parent() == tmp_path / "whorl" / "programs"


@pytest.mark.parametrize("how", ["option", "variable", "settled"])
def test_keeping_programs_can_be_switched_off(folder, monkeypatch, how):
    if how == "variable":
        monkeypatch.setenv("WHORL_CACHE", "off")
    if how == "settled":
        monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "0")
    with _kept.programs(how != "option"):
        assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
    assert not folder.exists()


def test_a_damaged_program_is_dropped_and_a_sound_one_stays(folder):
    folder.mkdir(parents=True, mode=0o700)
    packed = zlib.compress(b"machine code" * 100)
    for name, data in {"sound": packed, "cut": packed[:-5], "noise": b"\0" * 9, "": b""}.items():
        (folder / f"{name}-cache").write_bytes(data)
    with _kept.programs(True):
        assert [path.name for path in _kept.entries(folder)] == ["sound-cache"]
    (folder / "sound-cache").write_bytes(packed[:-5])
    with _kept.programs(True):
        assert _kept.entries(folder) == []


def test_the_oldest_programs_make_room(folder, monkeypatch):
    folder.mkdir(parents=True, mode=0o700)
    packed = zlib.compress(b"machine code")
    for age, name in enumerate(("new", "old", "oldest")):
        (folder / f"{name}-cache").write_bytes(packed)
        os.utime(folder / f"{name}-cache", (1e9 - age, 1e9 - age))
    monkeypatch.setattr(_kept, "ROOM", 2 * len(packed))
    with _kept.programs(True):
        assert [path.name for path in _kept.entries(folder)] == ["old-cache", "new-cache"]


def test_a_folder_that_others_could_write_is_not_used(folder):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with _kept.programs(True):
        assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_a_folder_that_cannot_be_made_is_no_trouble(folder):
    folder.parent.write_text("a file where the folder would be")
    with _kept.programs(True):
        assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_the_command_shows_where_programs_are_and_clears_them(folder, capsys):
    folder.mkdir(parents=True, mode=0o700)
    (folder / "one-cache").write_bytes(b"12345")
    assert whorl_cli.main(["cache", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"folder": str(folder.parent), "programs": 1, "bytes": 5, "cleared": False}
    assert whorl_cli.main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"removed 1 programs, 0.0 MB, from {folder.parent}\n"
    assert _kept.entries(folder) == []
