"""Registration against what ships.

The designs, locks and sources of the whorl that is installed beside this auditor.

They are read as data from its folder, and nothing of it is imported. A copy inside the auditor
would be one more thing that can grow old: a lock changes with every source. Where no whorl lies
beside, and for a run of another version, there is nothing to compare with; such a run is
*registered elsewhere*, which is said and is no failure.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from whorl_audit.folder import Study

HOME = Path(__file__).parent.parent / "whorl"
JUDGES = ("study/gates.py", "ground/store.py")
UNHEARD = {"ctx", "kind", "type_comment", "type_ignores", "type_params"}


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
    return {
        path.parent.name: json.loads(path.read_bytes())
        for path in sorted(HOME.glob("study/kinds/*/design.lock.json"))
    }


def shape_faults(study: Study) -> list[str]:
    """What is wrong with the lock of a run that says it is registered, whoever registered it."""
    sources = study.lock.get("sources")
    if set(study.lock) != {"design", "sources"} or not isinstance(sources, dict):
        return ["it does not hold a design and its sources, and nothing else"]
    needed = (f"study/kinds/{study.kind}/__init__.py", *JUDGES)
    return [f"{path} is not among its sources" for path in needed if path not in sources]


def _different(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return sorted(
        path for path in found.keys() | wanted.keys() if found.get(path) != wanted.get(path)
    )


def _installed(paths: list[str]) -> dict[str, str]:
    """The hashes of source files as they are installed."""
    there = {
        path: HOME / path
        for path in paths
        if ".." not in Path(path).parts and not Path(path).is_absolute()
    }
    return {path: fingerprint(file.read_bytes()) for path, file in there.items() if file.is_file()}


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
        return (
            [],
            (
                f"it was made by {made}, and what ships with whorl {version()} has another design or "
                "other sources"
            ),
        )
    if shipped:
        return [
            (
                f"{_different(study.lock['sources'], locks()[shipped]['sources'])[0]} is not as in the "
                "lock that ships"
            )
        ], None
    faults = []
    if study.design.get("name") in locks():
        faults.append(
            f"a design named {study.design['name']} ships with whorl {made_by}, and this is another"
        )
    kinds = locks().get(study.kind, {}).get("sources", {})
    faults += [
        f"{path} is not as it is installed"
        for path in _different(study.lock["sources"], _installed(list(kinds)))
    ]
    return faults, None if faults else f"its design does not ship with whorl {version()}"
