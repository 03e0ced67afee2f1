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
import tomllib
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
    here, beside = "study/kinds/*/design.lock.json", "whorl_studies/*/design.lock.json"
    there = [*sorted(HOME.glob(here)), *sorted(HOME.parent.glob(beside))]
    return {path.parent.name: json.loads(path.read_bytes()) for path in there}


def shape_faults(study: Study) -> list[str]:
    """What is wrong with the lock of a run that says it is registered, whoever registered it.

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


def definitions(source: bytes) -> dict[str, str]:
    """The fingerprint of every definition of a source, as docs/studies.md writes it down.

    The empty name has what runs when the file is imported.
    """
    body = ast.parse(source).body
    imports: dict[str, list[str]] = {}
    made: dict[str, list[ast.stmt]] = {}
    for node in body:
        checking = isinstance(node, ast.If) and _says_nothing(node)
        for inner in ast.walk(node) if not _defines(node) and not checking else ():
            imports |= _binds(inner)
        for name in _defines(node):
            made.setdefault(name, []).append(node)
    registries = {name for name, nodes in made.items() if any(map(_makes_registry, nodes))}
    for node in body:
        owners = [name for name in _changes(node) if name in made and name not in registries]
        for name in owners:
            made[name] += [] if node in made[name] else [node]
        if not owners and not _defines(node) and not _says_nothing(node):
            made.setdefault("", []).append(node)
    for nodes in made.values():
        nodes.sort(key=lambda node: node.lineno)
    handed = {name: [] for name in imports}  # what is imported here, and from here by others
    return {name: _fingerprint(name, nodes, imports) for name, nodes in (handed | made).items()}


def _binds(node: ast.AST) -> dict[str, list[str]]:
    """The names that an import binds, with module and member."""
    if isinstance(node, ast.ImportFrom):
        return {one.asname or one.name: [node.module or "", one.name] for one in node.names}
    found = {}
    for one in node.names if isinstance(node, ast.Import) else ():
        whole = one.name if one.asname else one.name.split(".")[0]
        found[one.asname or whole] = [whole, ""]
    return found


def _defines(node: ast.stmt) -> list[str]:
    """The names that a function, a class or an assignment to names alone defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            sides = [getattr(target, "elts", None) or [target] for target in node.targets]
            names = [getattr(one, "id", "") for side in sides for one in side]
            return names if all(names) else []
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _changes(node: ast.stmt) -> list[str]:
    """The names whose methods a statement calls, or whose attributes or entries it sets."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            methods = [getattr(one, "func", one) for one in node.decorator_list]
        case ast.Expr(value=ast.Call(func=method)):
            methods = [method]
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() if not _defines(node):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one.id for t in targets for one in ast.walk(t) if isinstance(one, ast.Name)]
            return names[:1]
        case _:
            return []
    roots = []
    for method in methods:
        root = method
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root is not method:
            roots.append(root.id)
    return roots


def _makes_registry(node: ast.stmt) -> bool:
    made = getattr(node, "value", None)
    return isinstance(made, ast.Call) and ast.unparse(made.func).endswith("Registry")


def _says_nothing(node: ast.stmt) -> bool:
    """Whether a statement is an import, a text, or for a type checker alone."""
    checking = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return checking or text or isinstance(node, ast.Import | ast.ImportFrom)


def _fingerprint(name: str, nodes: list[ast.stmt], imports: dict[str, list[str]]) -> str:
    used = {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
    words = used if nodes else {name}
    taken = json.dumps([[word, *imports[word]] for word in sorted(words & imports.keys())])
    text = f"[{taken.replace(', ', ',')},{''.join(_written(nodes))}]"
    return hashlib.sha256(text.encode()).hexdigest()


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


def _speaks_first(node: object, body: list[ast.stmt]) -> bool:
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
