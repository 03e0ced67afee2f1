"""A module as its definitions: what makes each name at its top, and which names that uses.

A class counts as a whole, because methods are dispatched at run time. Names in annotations do not
count: no number is computed from them.
"""

import ast
import json
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import resolve_name
from typing import Any

from whorl.registry import spelled

Chain = tuple[str, ...]  # a dotted name
Bound = dict[str, tuple[str, str]]  # names of imports: module, and member taken from it or ""
# Fields of syntax trees that change no number, some of which only newer versions of Python have.
SILENT = ("ctx", "kind", "type_comment", "type_ignores", "type_params")
UNUSED = ("annotation", "returns", "type_params")
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, eq=False)
class Module:
    """A module as its definitions.

    Attributes:
        parts: The statements that make each name. The empty name has those that run on import.
        imports: What imports outside of its functions and classes bind.
        needs: Every module that these name, each with the member that is taken from it.
        hooks: Decorators that are methods, such as `@laws.register("leaky")`: their dotted name,
            their first argument or the name of the definition, and the definition.
    """

    parts: dict[str, list[ast.stmt]]
    imports: Bound
    needs: list[tuple[str, str]]
    hooks: list[tuple[Chain, str, str]]
    lines: list[str]
    package: str

    def registry(self, name: str) -> bool:
        """Whether a name is a registry: what a call of a class `...Registry` gives."""
        calls = [getattr(one, "value", None) for one in self.parts[name]]
        return any(
            dotted(one.func)[-1:] and dotted(one.func)[-1].endswith("Registry")
            for one in calls
            if isinstance(one, ast.Call)
        )


@dataclass(frozen=True)
class Uses:
    """What statements use.

    Attributes:
        names: Dotted names of their module.
        members: Dotted names behind imports inside them: module, and what follows it.
        needs: Modules that these imports name.
        texts: Texts, each of which may name an entry of a registry.
        loads: Modules that are imported by a text.
    """

    names: set[Chain]
    members: set[tuple[str, Chain]]
    needs: set[tuple[str, str]]
    texts: set[str]
    loads: set[str]


@cache
def meaning(module: Module, name: str) -> str:
    """The hash of the statements that make a name, and of the imports that they use.

    A name that an import makes has no statements, and is that import.
    """
    statements = module.parts.get(name, [])
    words = {node.id for one in statements for node in ast.walk(one) if isinstance(node, ast.Name)}
    words |= {name} if not statements else set()
    taken = [[word, *module.imports[word]] for word in sorted(words & module.imports.keys())]
    text = json.dumps([taken, shape(statements)], separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


@cache
def uses(module: Module, name: str, without: frozenset[ast.expr]) -> Uses:
    """What the statements that make a name use, without some decorators."""
    found = [_used(one, module, without) for one in module.parts.get(name, [])]
    return Uses(*(set().union(*(one[side] for one in found)) for side in range(5)))


@cache
def parsed(source: str, package: str) -> Module:
    """A module from its source and the package that it lies in."""
    module = Module({"": []}, {}, [], [], source.splitlines(), package)
    body = ast.parse(source).body
    for statement in body:
        for name in made(statement):
            module.parts.setdefault(name, []).append(statement)
        if not made(statement) and not _silent(statement):
            for node in _seen(statement):
                module.imports.update(_bound(node, package))
                module.needs.extend(_imported(node, package))
    for statement in body:
        _attach(statement, module)
    for statements in module.parts.values():
        statements.sort(key=lambda one: one.lineno)
    return module


def _attach(statement: ast.stmt, module: Module) -> None:
    """Add a statement to the names that it changes, or to what runs on import."""
    if isinstance(statement, ast.Import | ast.ImportFrom) or _silent(statement):
        return
    hooks = list(_hooks(statement))
    module.hooks.extend((chain, said, made(statement)[0]) for chain, said in hooks)
    roots = [chain[0] for chain, _ in hooks] or _changed(statement)
    owners = [one for one in roots if one in module.parts and not module.registry(one)]
    for owner in owners if made(statement) or owners else [""]:
        if statement not in module.parts[owner]:
            module.parts[owner].append(statement)


def shape(part: Any) -> Any:
    """A part of a syntax tree as nested lists.

    A node begins with its name. Fields that are empty are left out, and docstrings.
    """
    if isinstance(part, list):
        return [shape(one) for one in part]
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = {name: value for name, value in ast.iter_fields(part) if name not in SILENT}
    if isinstance(part, DEFINED) and ast.get_docstring(part, clean=False) is not None:
        fields["body"] = fields["body"][1:]
    return [
        type(part).__name__,
        *([name, shape(value)] for name, value in fields.items() if value not in (None, [])),
    ]


def dotted(node: ast.AST) -> Chain:
    """A dotted name in its parts, or nothing."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return (*before, node.attr) if before else ()
    return (node.id,) if isinstance(node, ast.Name) else ()


def _imported(node: ast.AST, package: str) -> list[tuple[str, str]]:
    """The modules that an import names, each with the member that is taken from it."""
    if isinstance(node, ast.Import):
        return [(alias.name, "") for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = resolve_name("." * node.level + (node.module or ""), package)
        return [(base, alias.name) for alias in node.names]
    return []


def _bound(node: ast.AST, package: str) -> dict[str, tuple[str, str]]:
    """The names that an import binds."""
    found = {}
    for (base, name), alias in zip(
        _imported(node, package), getattr(node, "names", []), strict=False
    ):
        whole = base if alias.asname else base.partition(".")[0]
        bound = alias.asname or name or whole
        found[bound] = (base, name) if name else (whole, "")
    return found


def made(statement: ast.stmt) -> list[str]:
    """The names that a definition, or an assignment to names alone, makes."""
    if isinstance(statement, DEFINED):
        return [statement.name]
    targets = _targets(statement)
    plain = all(isinstance(one, ast.Name) for one in targets)
    return [one.id for one in targets if isinstance(one, ast.Name)] if plain else []


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return [inner for one in statement.targets for inner in getattr(one, "elts", [one])]
    return [statement.target] if isinstance(statement, ast.AnnAssign | ast.AugAssign) else []


def _silent(statement: ast.stmt) -> bool:
    """Whether a statement does nothing: a docstring, or imports for a type checker."""
    if isinstance(statement, ast.If):
        return dotted(statement.test)[-1:] == ("TYPE_CHECKING",)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _hooks(statement: ast.stmt) -> Iterator[tuple[Chain, str]]:
    """The decorators of a definition that may be methods, with what they are called with first."""
    for one in statement.decorator_list if isinstance(statement, DEFINED) else ():
        first = one.args[0] if isinstance(one, ast.Call) and one.args else None
        said = first.value if isinstance(first, ast.Constant) else spelled(made(statement)[0])
        if (chain := decorator(one))[1:]:
            yield chain, str(said)


def decorator(one: ast.expr) -> Chain:
    """The dotted name of a decorator, called or not."""
    return dotted(one.func if isinstance(one, ast.Call) else one)


def _changed(statement: ast.stmt) -> list[str]:
    """The names that a statement changes: by a call of a method, or by setting an entry."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        chain = dotted(statement.value.func)
        return [chain[0]] if chain[1:] else []
    places = [] if made(statement) else _targets(statement)
    return [node.id for one in places for node in ast.walk(one) if isinstance(node, ast.Name)][:1]


def _seen(node: ast.AST, without: frozenset[ast.expr] = frozenset()) -> Iterator[ast.AST]:
    """The nodes of a statement that compute: a dotted name is one, annotations and texts that
    stand alone are none.
    """
    yield node
    if dotted(node):
        return
    for name, value in ast.iter_fields(node):
        if name in UNUSED:
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST) and one not in without and not _alone(one):
                yield from _seen(one)


def _alone(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _used(
    statement: ast.stmt, module: Module, without: frozenset[ast.expr]
) -> tuple[set[Any], ...]:
    """What one statement uses, in the order of `Uses`."""
    nodes = list(_seen(statement, without))
    inside = {name: at for node in nodes for name, at in _bound(node, module.package).items()}
    free, chains = (
        _free(statement, module.lines),
        {chain for node in nodes if (chain := dotted(node))},
    )
    behind = {(chain, *inside[chain[0]]) for chain in chains if chain[0] in inside}
    loads = (
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call) and dotted(node.func)[-1:] == ("import_module",)
        if node.args and isinstance(node.args[0], ast.Constant)
    )
    return (
        {chain for chain in chains if chain[0] in free},
        {(base, (*filter(None, [name]), *chain[1:])) for chain, base, name in behind},
        {one for node in nodes for one in _imported(node, module.package)},
        {node.value for node in nodes if isinstance(node, ast.Constant) and _text(node.value)},
        set(loads),
    )


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _free(statement: ast.stmt, lines: list[str]) -> set[str]:
    """The names that a statement takes from its module or from Python."""
    starts = [one.lineno for one in getattr(statement, "decorator_list", [])]
    text = "\n".join(lines[min([statement.lineno, *starts]) - 1 : statement.end_lineno])
    waiting, found = [symtable.symtable(text, "<study>", "exec")], set()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        own = table.get_type() == "function"  # what a class or module has may be another's too
        found |= {one.get_name() for one in table.get_symbols() if not own or one.is_global()}
    return found
