"""Check a run folder as a whole.

Summary, environment, crate and figures, each of which must be there and agree with the studies.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from whorl_audit import crate, environment, figures, files, layout, registry, verdict
from whorl_audit.finding import Finding, impossible
from whorl_audit.folder import Study
from whorl_audit.types import UnreadableError

NOT_COVERED = (
    "who made the run, and what the crate says of author, licence and date",
    "the clock: times of files, and whether a lock is older than the run",
    "the machine and the versions that environment.json names",
    "the name of the folder",
    "what an earlier audit.json says, except damage to it: only your own audit counts",
    "studies that were left out together with every mention of them",
)
LEFT = (
    "what figures and report.html show, and the meaning of columns: `whorl verify` makes them"
    " again, once all else holds"
)


def _read(path: Path) -> dict[str, Any]:
    try:
        return files.read_json(path)
    except UnreadableError:
        return {}


def _of(path: Path, judge: Callable[[dict[str, Any]], Finding]) -> Finding:
    """The finding on a file that must be there."""
    try:
        return judge(files.read_json(path))
    except UnreadableError as error:
        return impossible(f"{path.name} can be read", f"{path.name}: {error}")


def made_by(folder: Path) -> object:
    """The version of whorl that a run folder names."""
    return _read(folder / environment.NAME).get("whorl")


def check(folder: Path, studies: list[Study], sealed: bool = True) -> Iterator[Finding]:
    """Judge what a run folder holds beside its studies and its manifest."""
    around = _read(folder / environment.NAME)
    yield _of(folder / "summary.json", lambda said: verdict.summary(said, studies))
    yield _of(folder / environment.NAME, lambda said: environment.check(said, studies))
    if sealed:
        files_of = layout.listed(folder)
        files_of.pop(crate.NAME, None)
        yield _of(folder / crate.NAME, lambda said: crate.check(said, files_of, around, studies))
    yield figures.illustration(folder, studies)
    yield from (verdict.shipped(study, around.get("whorl")) for study in studies)


def notes(studies: list[Study], version: object) -> tuple[str, ...]:
    """What a reader should know of studies that hold."""
    found = ((study.path.resolve().name, registry.judge(study, version)[1]) for study in studies)
    return tuple(f"{name}: {where}" for name, where in found if where)
