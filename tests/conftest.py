"""Strict ground for every test.

Double precision, no silent promotion of ranks or types, reproducible examples.
"""

import gc
import os
import re
from pathlib import Path

# Compiled programs are kept between runs and shared by all processes of one run: most of what these
# tests do is compile.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(
    Path(__file__).parent.parent / ".pytest_cache" / "compiled"
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"

import hypothesis
import jax
import jaxtyping
import pytest

jax.config.update(
    "jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"]
)  # a plugin may have imported it already
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

hypothesis.settings.register_profile(
    "quick",
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.register_profile(
    "thorough", parent=hypothesis.settings.get_profile("quick"), max_examples=100, derandomize=False
)
hypothesis.settings.load_profile(os.environ.get("WHORL_EXAMPLES", "quick"))


@pytest.fixture(autouse=True, scope="module")
def programs_are_let_go():
    """Every compiled program maps some memory. Linux grants a process 65 530 mappings, and a
    compiler that gets no more of them ends it with a segmentation fault.
    """
    yield
    mapped = Path("/proc/self/maps")
    if mapped.exists() and mapped.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def complaints():
    """What a piped command said on its error stream besides how far it had come."""
    progress = re.compile(r"whorl: [^\n]* \(\d+/\d+, [-\d:]+ left\)\n")
    return lambda words: progress.sub("", words)


@pytest.fixture
def as_users_call_it(monkeypatch):
    """Switch the run-time type checker off, so that an argument of the wrong type meets the
    library's own sentence.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def pytest_collection_modifyitems(items):
    """Of a sampled family the quick suite runs the first cases, and the second command all."""
    met = {}
    for item in items:
        kept = item.get_closest_marker("sampled")
        if kept:
            family = item.nodeid.split("[")[0]
            met[family] = met.get(family, 0) + 1
            if met[family] > kept.args[0]:
                item.add_marker(pytest.mark.slow)
