"""Figures of real runs: quick ones of the paper's designs, from design to file."""

import subprocess
import sys

import pytest

from whorl.study import figures, kinds
from whorl.study.conduct import opened, ran

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_quick_run_gets_all_four_figures_and_another_process_draws_the_same(tmp_path):
    ran([opened(name) for name in kinds.paper()], tmp_path / "run", quick=True)
    written = figures.draw_all(tmp_path / "run")
    assert sorted(path.name for path in written) == sorted(
        f"{name}.{ending}"
        for name in ("concept", "horizon", "structural", "threshold")
        for ending in ("pdf", "png")
    )
    first = [path.read_bytes() for path in written]
    script = "import sys; from pathlib import Path; from whorl.study.figures import draw_all; draw_all(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], check=True)
    assert first == [path.read_bytes() for path in written]
