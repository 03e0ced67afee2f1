"""A finished run folder, made once in a process, and what a file that names a KIND and its SMALL
values has of it.
"""

import pytest

from study.small import quickly, sealed, small, smaller
from whorl.study import lock, run


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


@pytest.fixture(scope="module")
def study(request):
    """The shipped design of the file's KIND, with a quick run that is smaller still."""
    return smaller(request.module.KIND, request.module.SMALL)


@pytest.fixture(scope="module")
def tables(study):
    """Its tables, in memory."""
    return run.compute(study, quick=True)


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    """A quick run of it."""
    place = tmp_path_factory.mktemp("run") / study.kind
    quickly(study, place)
    return place
