"""A finished run folder, made once in a process."""

import pytest

from study.small import sealed, small
from whorl.study import lock


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The small threshold study, registered and run into a folder.

    Copy it before changing anything.
    """
    folder = tmp_path_factory.mktemp("finished") / "run"
    study = small()
    verdicts = sealed([(study, lock.lock(study))], folder, csv=True)
    assert [verdict["verdict"] for verdict in verdicts] == ["PASS"]
    return folder
