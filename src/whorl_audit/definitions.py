"""The definitions of a source file and their fingerprints, as docs/studies.md writes them down.

Written from that page, to check what a lock says by a second route.
"""

import ast
import hashlib
import json
from collections.abc import Iterator

UNHEARD = {"ctx", "kind", "type_comment", "type_ignores", "type_params"}


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
