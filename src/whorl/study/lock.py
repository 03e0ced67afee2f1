"""Registration.

The hash of a design, and of every source file that its result depends on, before the run.

Which files those are is read from the imports, beginning at the files of the kind and at `run.py`,
which stores and judges its tables; docs/studies.md has the rule. A source counts by what it says to
Python: its syntax tree without docstrings. A reworded sentence unlocks nothing; a constant does.
"""

import ast
import json
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from whorl.study import kinds
from whorl.study.design import Design, shipped

ROOT = Path(__file__).parent.parent
# Fields of syntax trees that change no number, some of which only newer versions of Python have.
SILENT = ("ctx", "kind", "type_comment", "type_ignores", "type_params")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
JUDGE = "whorl.study.run"
SHOWN = ("figure.py", "chart.py", "words.py")  # of a kind: they show its numbers and make none


def sources(kind: str) -> dict[str, str]:
    """Every source file that a result of this kind depends on, with its hash.

    Files of whorl are named from its folder, those of another package from the one that holds it.
    """
    place = kinds.place(kind)
    folder, packages = _root(place), {"whorl", place.partition(".")[0]}
    shown = [folder / name for name in SHOWN]
    files = [path.relative_to(folder) for path in folder.rglob("*.py") if path not in shown]
    waiting = [JUDGE, *(".".join([place, *path.with_suffix("").parts]) for path in files)]
    found: dict[str, Path] = {}
    while waiting:
        module = waiting.pop().removesuffix(".__init__")
        path = None if module in found else _file(module)
        if path is not None:
            found[module] = path
            waiting += _needed(module, path, packages)
    texts = {_key(module, path): path.read_text() for module, path in found.items()}
    return {key: meaning(texts[key]) for key in sorted(texts)}


def _key(module: str, path: Path) -> str:
    """The name of a source in a lock."""
    top = module.partition(".")[0]
    return path.relative_to(ROOT if top == "whorl" else _root(top).parent).as_posix()


def _root(package: str) -> Path:
    """The folder of a package."""
    top, *inside = package.split(".")
    found = None if top == "whorl" else find_spec(top)
    base = ROOT if found is None or found.origin is None else Path(found.origin).parent
    return base.joinpath(*inside)


def _file(module: str) -> Path | None:
    """The source of a module or package, if it has one."""
    place = _root(module)
    files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((path for path in files if path.is_file()), None)


def _needed(module: str, path: Path, packages: set[str]) -> Iterator[str]:
    """The modules of these packages that a source names, and the packages around them whose own
    code runs too.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for base, name in _imports(path.read_text(), package):
        if base.partition(".")[0] not in packages:
            continue
        inner = f"{base}.{name}"
        found = inner if name and _file(inner) else base
        yield found
        while found := found.rpartition(".")[0]:
            around = _file(found)
            if around is not None and _acts(around.read_text()):
                yield found


@cache
def meaning(source: str) -> str:
    """The hash of what a source says to Python, whatever its comments, docstrings and layout.

    Examples:
        >>> from whorl.study import lock
        >>> (
        ...     lock.meaning("x = 1  # one") == lock.meaning("x=1"),
        ...     lock.meaning("x = 1") == lock.meaning("x = 2"),
        ... )
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


@cache
def _imports(source: str, package: str) -> list[tuple[str, str]]:
    """What a source of a package imports: modules, and what is taken from them."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            found += [(base, alias.name) for alias in node.names]
    return found


@cache
def _acts(source: str) -> bool:
    """Whether a package does more than say what it is, import, and set names like `__all__`."""
    for node in ast.parse(source).body:
        spoken = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        named = isinstance(node, ast.Assign) and ast.unparse(node).startswith("__")
        if not (spoken or named or isinstance(node, ast.Import | ast.ImportFrom)):
            return True
    return False


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
    now = sources(design.kind)
    changed = sorted(
        path
        for path in now.keys() | registered["sources"].keys()
        if now.get(path) != registered["sources"].get(path)
    )
    return None if not changed else f"sources differ from the registered ones: {', '.join(changed)}"


def register_shipped() -> None:
    """Lock the designs that ship with whorl anew; only for a change of whorl itself."""
    for name in kinds.names():
        if kinds.place(name).startswith("whorl."):
            place = ROOT / "study" / "kinds" / name / "design.lock.json"
            place.write_text(text(lock(shipped(name))))
