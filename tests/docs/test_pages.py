"""Every page does what it shows.

Its Python and its commands are run, and print what stands below them.
"""

import json
import os
import sys
from pathlib import Path

import pytest

import session

QUICK = ("index", "first_network", "will_a_turn_help", "certify")  # the others compile for long
PAGES = [
    pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.slow)
    for path in session.pages()
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_shows(page, tmp_path):
    outcome = session.run(page.read_text(), tmp_path, page.name)
    assert outcome.complaints == []
    assert outcome.examples > 0


def test_every_picture_of_a_page_is_drawn_by_its_own_code():
    pytest.importorskip("sphinx")
    from pages import PICTURE

    for page in session.pages():
        code = "".join(body for kind, body in session.blocks(page.read_text()) if kind == "python")
        assert [
            name for name in PICTURE.findall(page.read_text()) if f'savefig("{name}")' not in code
        ] == []


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("```python\n>>> 1 + 1\n3\n```", "Expected:\n    3\nGot:\n    2"),
        ("```python\n>>> nothing\n```", "NameError"),
        ("```\n$ whorl certify missing.csv\nall is well\n```", "no such file"),
    ],
)
def test_a_page_that_lies_is_found(block, complaint, tmp_path):
    outcome = session.run(f"# Title\n\n{block}\n", tmp_path)
    assert complaint in "".join(outcome.complaints)


def test_a_page_is_one_session_and_may_hold_files(tmp_path):
    blocks = (
        "toml\n# a.toml\nx = 1",
        "python\n>>> from pathlib import Path",
        "python\n>>> Path('a.toml').read_text()\n'# a.toml\\nx = 1\\n'",
    )
    outcome = session.run("\n\n".join(f"```{block}\n```" for block in blocks), tmp_path)
    assert outcome.complaints == []
    assert outcome.examples == 2


def test_a_notebook_holds_the_prose_and_the_code_without_prompts():
    cells = json.loads(session.notebook((session.DOCS / "tutorials" / "own_study.md").read_text()))[
        "cells"
    ]
    assert cells[0]["cell_type"] == "markdown"
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    assert code[0].startswith("%%writefile thin.toml\n")
    assert code[1] == 'import sys\n!"{sys.executable}" -m whorl register thin.toml'
    assert not any(">>>" in source for source in code)
    for source in code[2:]:
        if "\n!" not in source:
            compile(source, "cell", "exec")


NOTEBOOKS = [path for path in session.pages() if path.parent.name == "tutorials"]
NOTEBOOKS.append(session.DOCS / "certify.md")


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_a_notebook_says_how_it_runs_and_links_only_to_what_is_there(page):
    made = json.loads(session.notebook(page.read_text()))
    assert made["metadata"]["kernelspec"]["name"] == "python3"
    prose = "".join(cell["source"] for cell in made["cells"] if cell["cell_type"] == "markdown")
    assert ".md)" not in prose
    raising = [cell for cell in made["cells"] if "raises-exception" in str(cell["metadata"])]
    assert len(raising) == page.read_text().count("Traceback (most recent call last)")


def test_every_value_that_a_page_shows_is_the_last_line_of_a_cell():
    page = "text\n\n```python\n>>> a = 1\n>>> a + 1\n2\n>>> b = 2\n>>> a + b\n3\n>>> c = 3\n```\n"
    made = json.loads(session.notebook(page))
    code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
    assert code == ["a = 1\na + 1", "b = 2\na + b", "c = 3"]


def test_a_command_of_a_notebook_runs_with_the_python_of_its_kernel():
    made = json.loads(session.notebook("```\n$ whorl run --dry-run x.toml\nwords\n```\n"))
    code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
    assert code == ['import sys\n!"{sys.executable}" -m whorl run --dry-run x.toml']


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_a_notebook_runs_to_its_end_with_a_real_kernel(page, tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    beside = str(Path(sys.executable).parent)  # Jupyter may run where the shell finds no whorl
    others = [path for path in os.environ["PATH"].split(os.pathsep) if path != beside]
    monkeypatch.setenv("PATH", os.pathsep.join(others))
    made = nbformat.reads(session.notebook(page.read_text()), as_version=4)
    nbformat.validate(made)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(made, timeout=1500, kernel_name="python3", resources=where).execute()
    shown = [out for cell in made.cells if cell.cell_type == "code" for out in cell.outputs]
    raised = [out for out in shown if out.output_type == "error"]
    tagged = [cell for cell in made.cells if "raises-exception" in cell.metadata.get("tags", [])]
    assert len(raised) == len(tagged)
