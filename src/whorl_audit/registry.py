"""Registration against what ships.

The designs, locks and sources of the whorl that is installed beside this auditor.

They are read as data from its folder, and nothing of it is imported. A copy inside the auditor
would be one more thing that can grow old: a lock changes with every source. Where no whorl lies
beside, and for a run of another version, there is nothing to compare with; such a run is
*registered elsewhere*. A design that does not ship is *registered by its author*, on this machine or
another. Both are said and are no failure.
"""

import hashlib
import json
import tomllib
from collections.abc import Collection
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from whorl_audit import kinds
from whorl_audit.definitions import definitions
from whorl_audit.finding import different
from whorl_audit.folder import Study

HOME = Path(__file__).parent.parent / "whorl"


@cache
def version() -> str | None:
    """The version that is installed beside, if one is."""
    for name in ("whorl-lab", "whorl") if HOME.is_dir() else ():
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


@cache
def locks() -> dict[str, dict[str, Any]]:
    """The locks that ship, by the name of their kind, which is that of its design too."""
    here, beside = "study/kinds/*/design.lock.json", "whorl_studies/*/design.lock.json"
    there = [*sorted(HOME.glob(here)), *sorted(HOME.parent.glob(beside))]
    return {path.parent.name: json.loads(path.read_bytes()) for path in there}


def shape_faults(study: Study) -> list[str]:
    """What is wrong with the lock of a run that says it is registered.

    It covers a file of its kind. Which other files it must cover is known for what ships only.
    """
    sources = study.lock.get("sources")
    if set(study.lock) != {"design", "sources"} or not isinstance(sources, dict):
        return ["it does not hold a design and its sources, and nothing else"]
    files = {name.partition("::")[0].removesuffix(".py") for name in sources}
    of_kind = any(study.kind in path.split("/") for path in files)
    if study.kind in {*kinds.own(), *locks()} and not of_kind:
        return [f"no file of the kind {study.kind} is among its sources"]
    return [] if sources else ["it has no sources"]


def _installed(names: Collection[str]) -> dict[str, str]:
    """The fingerprints of definitions as they are installed, by `file::definition`."""
    paths = {name.partition("::")[0] for name in names}
    outside = {path for path in paths if Path(path).is_absolute() or ".." in Path(path).parts}
    others = ("whorl_studies",)  # beside the folder of whorl
    homes = {path: HOME.parent if path.split("/")[0] in others else HOME for path in paths}
    files = {path: homes[path] / path for path in paths - outside}
    here = {
        f"{path}::{name}" if name else path: written
        for path, file in files.items()
        if file.is_file()
        for name, written in _fingerprints(file).items()
    }
    return {name: here[name] for name in names if name in here}


def _fingerprints(file: Path) -> dict[str, str]:
    """The fingerprints in a source, or that of a specification under the empty name."""
    content = file.read_bytes()
    if file.suffix != ".toml":
        return definitions(content)
    said = json.dumps(tomllib.loads(content.decode()), separators=(",", ":"))
    return {"": hashlib.sha256(said.encode()).hexdigest()}


def judge(study: Study, made_by: object) -> tuple[list[str], str | None]:
    """Judge the registration of a study against what ships.

    Args:
        study: The study.
        made_by: The version of whorl that the run folder names, or None for a study without its run
            folder.

    Returns:
        What is wrong, and who registered it if what ships does not.
    """
    if study.verdict.get("registered") is not True or shape_faults(study):
        return [], None
    mine, now = study.lock["sources"], version()
    shipped = {lock["design"]: name for name, lock in locks().items()}.get(study.hashes["design"])
    if shipped and study.lock == locks()[shipped]:
        return [], None
    if now is None:
        return [], "registered elsewhere: there is no whorl beside this auditor to compare with"
    if made_by != now:
        made = "a version that is not known" if made_by is None else f"whorl {made_by}"
        ships = f"what ships with whorl {now} has another design or other sources"
        return [], f"registered elsewhere: it was made by {made}, and {ships}"
    if shipped:
        path = different(mine, locks()[shipped]["sources"])[0]
        return [f"{path} is not as in the lock that ships"], None
    faults, name = [], study.design.get("name")
    if name in locks():
        faults.append(f"a design named {name} ships with whorl {now}, and this is another")
    if study.kind in locks():
        here = _installed(locks()[study.kind]["sources"])
        faults += [f"{path} is not as it is installed" for path in different(mine, here)]
    return (
        faults,
        None if faults else f"registered by its author: its design does not ship with whorl {now}",
    )
