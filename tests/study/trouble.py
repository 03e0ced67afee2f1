"""Trouble that a disk can give, for real.

A kill between two system calls, a full disk, a folder that nobody may write to.
"""

import os
import resource
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

NOBODY = 65534


class KilledError(BaseException):
    """Stands for a kill: no handler of an ordinary error catches it."""


def kill_at(monkeypatch, number, moment):
    """Make the write with this number, and all after it, end before or after its file is moved into
    place; answer with the files moved.
    """
    moved, one_at_a_time = [], Lock()
    real = os.replace

    def replace(source, target):
        with one_at_a_time:  # stages are computed side by side, and a kill ends them all
            if len(moved) >= number + (moment == "after"):
                raise KilledError
            real(source, target)
            moved.append(Path(target))
            if moment == "after" and len(moved) == number + 1:
                raise KilledError

    monkeypatch.setattr(os, "replace", replace)
    return moved


@contextmanager
def full_disk(room):
    """No file can grow beyond `room` bytes: the write fails in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def open_folder():
    """A folder that every user of the machine can enter; pytest's own are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(folder)


@contextmanager
def read_only(folder):
    """Nobody may write into this folder, nor into those below it.

    Not even root, who becomes somebody else meanwhile.
    """
    folders = [path for path in [folder, *folder.rglob("*")] if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if was == 0:
            os.seteuid(was)
        for path in folders:
            path.chmod(0o755)


def contents(folder):
    """Every file below a folder, with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
