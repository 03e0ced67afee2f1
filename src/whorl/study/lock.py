"""Registration.

The hash of a design, and of every definition that its result depends on, before the run.

Which definitions those are follows from the names in them, beginning at what reads the design, makes
and judges its tables, and at the kind; docs/studies.md has the rule. A definition counts by its
syntax tree without docstrings. A reworded sentence unlocks nothing; a constant does.
"""

import json
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from whorl.ground.reader import toml
from whorl.study import kinds
from whorl.study.design import Design, shipped
from whorl.study.modules import meaning
from whorl.study.reach import Reach

ROOT = Path(__file__).parent.parent
# What turns a design into a verdict; everything else that a kind uses begins at its `KIND`.
ENTRIES = (("whorl.study.design", "parse"), ("whorl.study.run", "result"))
SHIPPED = ("whorl", "whorl_studies")  # the packages whose designs are locked with a release
SHOWN = 5  # changed definitions that a message names


def sources(kind: str, texts: frozenset[str] = frozenset()) -> dict[str, str]:
    """Every definition that a result of this kind depends on, with its hash.

    A name is `file::definition`, or the file alone for what runs when it is imported. Files of whorl
    are named from its folder, those of another package from the one that holds it.

    Args:
        kind: the kind of study.
        texts: texts in a design, each of which may name an entry of a registry.

    Returns:
        The hash of every definition by its name.
    """
    packages = {"whorl", kinds.place(kind).partition(".")[0]}
    reach = Reach(lambda module: _file(module, packages), texts)
    for module, name in (*ENTRIES, (kinds.home(kind), "KIND")):
        reach.begin(module, name)
    found = {}
    for module, name in reach.parts:
        source = reach.module(module)
        if source is not None and source.parts.get(name, name):
            path = _key(module, packages)
            found[f"{path}::{name}" if name else path] = meaning(source, name)
    file = _root(kinds.place(kind)) / "spec.toml"
    if file.is_file():
        top = (
            ROOT
            if kinds.place(kind).startswith("whorl.")
            else _root(kinds.place(kind).partition(".")[0]).parent
        )
        said = json.dumps(toml(file.read_bytes(), str(file))[1], separators=(",", ":"))
        found[file.relative_to(top).as_posix()] = sha256(said.encode()).hexdigest()
    return dict(sorted(found.items()))


def _key(module: str, packages: set[str]) -> str:
    """The name of a file in a lock."""
    path, top = _file(module, packages), module.partition(".")[0]
    assert path is not None
    return path.relative_to(ROOT if top == "whorl" else _root(top).parent).as_posix()


def _root(package: str) -> Path:
    """The folder of a package."""
    top, *inside = package.split(".")
    found = None if top in SHIPPED else find_spec(top)
    ours = ROOT if top == "whorl" else ROOT.with_name(top)
    base = ours if found is None or found.origin is None else Path(found.origin).parent
    return base.joinpath(*inside)


def _file(module: str, packages: set[str]) -> Path | None:
    """The source of a module of some packages, if it has one."""
    if module.partition(".")[0] not in packages:
        return None
    place = _root(module)
    files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((path for path in files if path.is_file()), None)


def lock(design: Design) -> dict[str, Any]:
    """What a registration of this design, with the sources that are installed, holds.

    Examples:
        >>> from whorl.study import design, lock
        >>> sorted(lock.lock(design.shipped("threshold")))
        ['design', 'sources']
    """
    return {"design": design.sha256, "sources": sources(design.kind, _texts(design))}


def _texts(design: Design) -> frozenset[str]:
    """The texts among the parameters of a design."""
    given = [*(one["value"] for one in design.parameters.values()), *design.quick.values()]
    flat = [one for value in given for one in (value if isinstance(value, list) else [value])]
    return frozenset(one for one in flat if isinstance(one, str))


def text(content: dict[str, Any]) -> str:
    """A lock as it is written."""
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def beside(path: Path) -> Path:
    """Where the lock of a design file lies."""
    return path.with_suffix(".lock.json")


def read(path: Path) -> dict[str, Any]:
    """The lock of a design file, or an empty one.

    Examples:
        >>> from whorl.study import lock
        >>> lock.read(folder / "never_registered.toml")
        {}
    """
    place = beside(path)
    if not place.exists():
        return {}
    try:
        content = json.loads(place.read_text())
    except (ValueError, RecursionError) as wrong:
        raise ValueError(
            f"{place} must be a lock written by `whorl register`, but it is not JSON"
        ) from wrong
    if (
        not isinstance(content, dict)
        or content.keys() != {"design", "sources"}
        or not isinstance(content["sources"], dict)
    ):
        raise ValueError(
            f"{place} must be a lock written by `whorl register`, but it does not hold a design "
            "and its sources"
        )
    return content


@cache
def shipped_lock(name: str) -> dict[str, Any]:
    """The lock of a shipped design, or an empty one."""
    place = kinds.file(name, "design.lock.json")
    return json.loads(place.read_text()) if place.is_file() else {}


def why_unregistered(design: Design, registered: dict[str, Any], quick: bool) -> str | None:
    """Why a run of this design is not a registered one; None if it is.

    Examples:
        >>> from whorl.study import design, lock
        >>> lock.why_unregistered(design.shipped("threshold"), {}, quick=False)
        'the design was never registered'
    """
    if quick:
        return "a quick run is a smoke test, not the registered study"
    if not registered:
        return "the design was never registered"
    if registered["design"] != design.sha256:
        return "the design differs from the registered one"
    now = sources(design.kind, _texts(design))
    changed = sorted(
        name
        for name in now.keys() | registered["sources"].keys()
        if now.get(name) != registered["sources"].get(name)
    )
    if not changed:
        return None
    more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
    return f"sources differ from the registered ones: {', '.join(changed[:SHOWN])}{more}"


def register_shipped() -> None:
    """Lock the designs that ship with whorl anew; only for a change of whorl itself."""
    for name in kinds.names():
        if kinds.place(name).partition(".")[0] in SHIPPED:
            place = _root(kinds.place(name)) / "design.lock.json"
            place.write_text(text(lock(shipped(name))))
