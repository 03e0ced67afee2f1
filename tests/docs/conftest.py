"""The site, built once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The built pages; a warning fails the build."""
    pytest.importorskip("sphinx")
    out = tmp_path_factory.mktemp("site")
    # Sphinx as a script of its own: the processes that a page starts read the main module once
    # more.
    command = [
        str(Path(sys.executable).with_name("sphinx-build")),
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-n",
        "-E",
        "-q",
        str(DOCS),
        str(out),
    ]
    made = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert made.returncode == 0, made.stdout + made.stderr
    return out
