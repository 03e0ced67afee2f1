"""Registration against what ships: the designs, locks and sources of the whorl that is installed beside this auditor.

They are read as data from its folder, and nothing of it is imported. A copy inside the auditor would be one more thing that can grow old:
a lock changes with every source. Where no whorl lies beside, and for a run of another version, there is nothing to compare with; such a
run is *registered elsewhere*, which is said and is no failure.
"""

import json
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from whorl_audit.folder import Study, sha256

HOME = Path(__file__).parent.parent / "whorl"
JUDGES = ("study/gates.py", "study/store.py")


@cache
def version() -> str | None:
    """The version that is installed beside, if one is."""
    try:
        return metadata.version("whorl") if HOME.is_dir() else None
    except metadata.PackageNotFoundError:
        return None


@cache
def locks() -> dict[str, dict[str, Any]]:
    """The locks of the shipped designs, by the name of the design."""
    return {path.name.removesuffix(".lock.json"): json.loads(path.read_bytes()) for path in sorted(HOME.glob("study/designs/*.lock.json"))}


def shape_faults(study: Study) -> list[str]:
    """What is wrong with the lock of a run that says it is registered, whoever registered it."""
    sources = study.lock.get("sources")
    if set(study.lock) != {"design", "sources"} or not isinstance(sources, dict):
        return ["it does not hold a design and its sources, and nothing else"]
    needed = (f"study/{study.kind}.py", *JUDGES)
    return [f"{path} is not among its sources" for path in needed if path not in sources]


def _different(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return sorted(path for path in found.keys() | wanted.keys() if found.get(path) != wanted.get(path))


def _installed(paths: list[str]) -> dict[str, str]:
    """The hashes of source files as they are installed."""
    there = {path: HOME / path for path in paths if ".." not in Path(path).parts and not Path(path).is_absolute()}
    return {path: sha256(file.read_bytes()) for path, file in there.items() if file.is_file()}


def judge(study: Study, made_by: object) -> tuple[list[str], str | None]:
    """Judge the registration of a study against what ships.

    Args:
        study: The study.
        made_by: The version of whorl that the run folder names, or None for a study without its run folder.

    Returns:
        What is wrong, and where it was registered if that is elsewhere.
    """
    if study.verdict.get("registered") is not True or shape_faults(study):
        return [], None
    shipped = {lock["design"]: name for name, lock in locks().items()}.get(study.hashes["design"])
    if shipped and study.lock == locks()[shipped]:
        return [], None
    if version() is None:
        return [], "there is no whorl beside this auditor to compare with"
    if made_by != version():
        made = "a version that is not known" if made_by is None else f"whorl {made_by}"
        return [], f"it was made by {made}, and what ships with whorl {version()} has another design or other sources"
    if shipped:
        return [f"{_different(study.lock['sources'], locks()[shipped]['sources'])[0]} is not as in the lock that ships"], None
    faults = []
    if study.design.get("name") in locks():
        faults.append(f"a design named {study.design['name']} ships with whorl {made_by}, and this is another")
    kinds = locks().get(study.kind, {}).get("sources", {})
    faults += [f"{path} is not as it is installed" for path in _different(study.lock["sources"], _installed(list(kinds)))]
    return faults, None if faults else f"its design does not ship with whorl {version()}"
