"""Registration.

The hash of a design, and of every source file that its result depends on, before the run.

Which files those are is read from the imports, beginning at the file of the study's kind and at
those that store and judge its tables. A source counts by what it says to Python: its syntax tree
without docstrings. A reworded sentence unlocks nothing; a constant does.
"""

import ast
import json
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from whorl.study.design import SHIPPED, Design, shipped

ROOT = Path(__file__).parent.parent
# Fields of syntax trees that change no number, some of which only newer versions of Python have.
SILENT = ("ctx", "kind", "type_comment", "type_ignores", "type_params")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
JUDGES = (
    "ground/reader.py",
    "ground/rules.py",
    "ground/store.py",
    "study/columns.py",
    "study/design.py",
    "study/gates.py",
    "study/schema.py",
)


def sources(kind: str) -> dict[str, str]:
    """Every source file that a result of this kind depends on, with its hash."""
    found: set[str] = set()
    waiting = [f"study/{kind}.py", *JUDGES]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imports((ROOT / path).read_text())
    return {path: meaning((ROOT / path).read_text()) for path in sorted(found)}


@cache
def meaning(source: str) -> str:
    """The hash of what a source says to Python, whatever its comments, docstrings and layout.

    Examples:
        >>> from whorl.study import lock
        >>> lock.meaning("x = 1  # one") == lock.meaning("x=1"), lock.meaning("x = 1") == lock.meaning("x = 2")
        (True, False)
    """
    text = json.dumps(_shape(ast.parse(source)), separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def _shape(part: Any) -> Any:
    """A part of a syntax tree as nested lists.

    A node begins with its name, and fields that are empty are left out.
    """
    if isinstance(part, list):
        return [_shape(one) for one in part]
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = {name: value for name, value in ast.iter_fields(part) if name not in SILENT}
    if isinstance(part, DOCUMENTED) and ast.get_docstring(part, clean=False) is not None:
        fields["body"] = fields["body"][1:]
    return [
        type(part).__name__,
        *([name, _shape(value)] for name, value in fields.items() if value not in (None, [])),
    ]


def _imports(source: str) -> list[str]:
    """The files of whorl that a source imports."""
    inside = (
        name.removeprefix("whorl.").replace(".", "/") + ".py"
        for name in _names(source)
        if name.startswith("whorl.")
    )
    return [path for path in inside if (ROOT / path).is_file()]


@cache
def _names(source: str) -> list[str]:
    """The names of whorl, and perhaps some others, that a source imports."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "whorl":
            names += [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def lock(design: Design) -> dict[str, Any]:
    """What a registration of this design, with these sources, holds.

    Examples:
        >>> from whorl.study import design, lock
        >>> sorted(lock.lock(design.shipped("threshold")))
        ['design', 'sources']
    """
    return {"design": design.sha256, "sources": sources(design.kind)}


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
    """The lock of a shipped design."""
    if name not in SHIPPED:
        raise ValueError(f"study must be one of {', '.join(SHIPPED)}, but it is {name!r}")
    return json.loads(
        (resources.files("whorl.study") / "designs" / f"{name}.lock.json").read_text()
    )


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
    now = sources(design.kind)
    changed = sorted(
        path
        for path in now.keys() | registered["sources"].keys()
        if now.get(path) != registered["sources"].get(path)
    )
    return None if not changed else f"sources differ from the registered ones: {', '.join(changed)}"


def register_shipped() -> None:
    """Lock the shipped designs anew; only for a change of whorl itself."""
    for name in SHIPPED:
        place = beside(ROOT / "study" / "designs" / f"{name}.toml")
        place.write_text(text(lock(shipped(name))))
