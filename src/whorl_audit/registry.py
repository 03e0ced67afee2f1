"""Registration against what ships.

The designs, locks and sources of the whorl that is installed beside this auditor.

They are read as data from its folder, and nothing of it is imported. A copy inside the auditor
would be one more thing that can grow old: a lock changes with every source. Where no whorl lies
beside, and for a run of another version, there is nothing to compare with; such a run is
*registered elsewhere*. A design that does not ship is *registered by its author*, on this machine or
another. Both are said and are no failure.
"""

import ast
import hashlib
import json
from collections.abc import Collection, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from whorl_audit import kinds
from whorl_audit.finding import different
from whorl_audit.folder import Study

HOME = Path(__file__).parent.parent / "whorl"
UNHEARD = {"ctx", "kind", "type_comment", "type_ignores", "type_params"}


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
    there = sorted(HOME.glob("study/kinds/*/design.lock.json"))
    return {path.parent.name: json.loads(path.read_bytes()) for path in there}


def shape_faults(study: Study) -> list[str]:
    """What is wrong with the lock of a run that says it is registered, whoever registered it.

    It covers a file of its kind. Which other files it must cover is known for what ships only.
    """
    sources = study.lock.get("sources")
    if set(study.lock) != {"design", "sources"} or not isinstance(sources, dict):
        return ["it does not hold a design and its sources, and nothing else"]
    of_kind = any(study.kind in path.removesuffix(".py").split("/") for path in sources)
    if study.kind in kinds.own() and not of_kind:
        return [f"no file of the kind {study.kind} is among its sources"]
    return [] if sources else ["it has no sources"]


def _installed(paths: Collection[str]) -> dict[str, str]:
    """The fingerprints of source files as they are installed."""
    outside = {path for path in paths if Path(path).is_absolute() or ".." in Path(path).parts}
    files = {path: HOME / path for path in paths if path not in outside}
    return {path: fingerprint(file.read_bytes()) for path, file in files.items() if file.is_file()}


def fingerprint(source: bytes) -> str:
    """The SHA-256 of the syntax tree of a source, as docs/studies.md writes it down."""
    return hashlib.sha256("".join(_written(ast.parse(source))).encode()).hexdigest()


def _written(value: object) -> Iterator[str]:
    """A value of a syntax tree in JSON, piece by piece."""
    if isinstance(value, ast.AST):
        yield f'["{type(value).__name__}"'
        for field in value._fields:
            inner = getattr(value, field, None)
            if field == "body" and isinstance(inner, list) and _speaks_first(value, inner):
                inner = inner[1:]
            if field not in UNHEARD and inner is not None and inner != []:
                yield f',["{field}",'
                yield from _written(inner)
                yield "]"
        yield "]"
    elif isinstance(value, list):
        yield "["
        for number, inner in enumerate(value):
            yield "," if number else ""
            yield from _written(inner)
        yield "]"
    else:
        yield json.dumps(repr(value))


def _speaks_first(node: ast.AST, body: list[ast.stmt]) -> bool:
    """Whether the body of a module, class or function begins with a docstring."""
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    holder = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    return holder and isinstance(first, ast.Constant) and isinstance(first.value, str)


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
