"""The audit stands alone.

It runs where neither jax nor whorl can be imported, and its sources name neither.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import whorl_audit
from audit import forge

SOURCE = Path(whorl_audit.__file__).parent
FORBIDDEN = ("jax", "jaxlib", "whorl", "whorl_cli", "scipy", "equinox")
BESIDE = sorted(SOURCE.with_name("whorl_studies").glob("*/audit.py"))
ALLOWED = {"numpy", "pyarrow", "whorl_audit", *sys.stdlib_module_names}
BLOCKED = f"""
import runpy, sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {FORBIDDEN!r}:
            raise ImportError(name + " is behind the wall")

sys.meta_path.insert(0, Wall())
sys.path.insert(0, {str(SOURCE.parent)!r})
"""


def behind_the_wall(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + script, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_runs_where_neither_jax_nor_whorl_can_be_imported(tmp_path):
    run = forge.write_run(tmp_path / "run")
    done = behind_the_wall(
        "sys.argv[0] = 'whorl_audit'\nrunpy.run_module('whorl_audit', run_name='__main__')",
        str(run),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "structural" in done.stdout


@pytest.mark.parametrize("path", BESIDE, ids=lambda path: path.parent.name)
def test_the_auditor_of_a_study_beyond_the_paper_needs_neither(path):
    done = behind_the_wall(f"import whorl_studies.{path.parent.name}.audit as found; found.KIND")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_wall_holds(name):
    assert "is behind the wall" in behind_the_wall(f"import {name}").stderr


def imports(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize(
    "path",
    [*sorted(SOURCE.rglob("*.py")), *BESIDE],
    ids=lambda path: path.relative_to(SOURCE.parent).as_posix(),
)
def test_a_file_imports_numpy_a_table_reader_and_the_standard_library_only(path):
    assert set(imports(path.read_text())) <= ALLOWED


def test_a_forbidden_import_is_found():
    assert not set(imports("def late():\n    from whorl.study import store")) <= ALLOWED
