"""Every benchmark still runs: at tiny sizes, in a process of its own, as its user starts it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if "__main__" in path.read_text())


def test_every_script_has_its_row_and_every_row_its_script():
    rows = [
        line.split("`")[1]
        for line in (FOLDER / "README.md").read_text().splitlines()
        if line.startswith("| `") and ".py`" in line
    ]
    assert sorted(rows) == [path.name for path in SCRIPTS]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.browser if path.stem == "slider" else ())
        for path in SCRIPTS
    ],
)
def test_a_benchmark_runs_at_tiny_sizes(script, tmp_path):
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    if script.stem != "slider":  # whose browser needs a short path for its socket
        environment["TMPDIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, str(script), "--smoke"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
