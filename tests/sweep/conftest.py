"""Sweeps that are small enough for a test, made once in a process.

Worker processes share the compiled programs of this one.
"""

import os

import jax
import pytest

from sweep.small import design, files
from whorl import sweep


@pytest.fixture(scope="session", autouse=True)
def shared_programs():
    """Let worker processes find what was compiled before."""
    given = {
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    yield
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """A finished sweep in this process, and the names of its files, which hold their hashes."""
    folder = tmp_path_factory.mktemp("undisturbed") / "sweep"
    done = sweep.sweep(design(), folder)
    assert (done.cases, done.failed, done.computed) == (120, 0, done.shards)
    return folder, files(folder)
