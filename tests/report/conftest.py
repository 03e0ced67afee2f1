"""Folders and pages that several tests look at; made once."""

import pytest

from report import folders
from whorl.study import report

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="session")
def paper(tmp_path_factory):
    """The paper's three studies, audited, with a figure each, next to distributions with a known
    middle.
    """
    root = folders.write_run(
        tmp_path_factory.mktemp("run") / "paper", folders.paper(), figures=("one",)
    )
    folders.store.write(root / "figures" / "concept.png", folders.png())
    with folders.known_middle():
        report.write(root)
    return root


@pytest.fixture(scope="session")
def mine(tmp_path_factory):
    """A user's own study, never registered, with a title that would be a script if it were not
    text.
    """
    root = folders.write_run(
        tmp_path_factory.mktemp("run") / "own", [folders.own("horizon", SCRIPT)], registered={}
    )
    report.write(root)
    return root
