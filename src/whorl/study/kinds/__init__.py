"""The kinds of study: one folder each, and those that other packages bring.

A folder holds all that a kind is, and nothing outside of it names one. Another package brings a
kind by an entry point of the group `whorl.kinds`, whose value is a package with the same members.
`KIND` is in the package itself, or in its module `kind`.
Kinds are imported when they are asked for.
"""

from functools import cache
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from whorl.fields import choice
from whorl.study.kind import Kind
from whorl.study.kinds import listed
from whorl.study.kinds.listed import names as names
from whorl.study.kinds.listed import paper as paper


@cache
def place(name: str) -> str:
    """The package that holds a kind.

    Raises:
        ValueError: If no kind has this name, or two packages give it.
    """
    found = list(dict.fromkeys(package for kind, package in listed.places() if kind == name))
    if not found:
        choice("kind", name, names())
    if len(found) > 1:
        raise ValueError(
            f"kind {name} must come from one package, but {' and '.join(found)} give it: "
            "uninstall all but one"
        )
    return found[0]


def home(name: str) -> str:
    """The module that holds the `KIND` of a kind: its package, or the module `kind` in that."""
    package = place(name)
    inside = find_spec(package)
    lies = inside is not None and inside.submodule_search_locations is not None
    return f"{package}.kind" if lies and find_spec(f"{package}.kind") else package


@cache
def get(name: str) -> Kind[Any, Any]:
    """The kind of this name.

    Raises:
        ValueError: If there is none, two packages give it, or what is given is no kind.

    Examples:
        >>> from whorl.study import kinds
        >>> kinds.get("threshold").alone
        True
        >>> kinds.get("spectral")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: kind must be one of structural, threshold, horizon, ..., but it is 'spectral'
    """
    package = place(name)
    rule = f"kind {name} must be a package with a Kind of this name as KIND"
    try:
        found = import_module(home(name))
    except ImportError as wrong:
        raise ValueError(f"{rule}, but {package} cannot be imported: {wrong}") from wrong
    kind, inside = getattr(found, "KIND", None), found.__name__ == f"{package}.kind"
    if not (inside or hasattr(found, "__path__")) or not isinstance(kind, Kind):
        what = "has" if inside or hasattr(found, "__path__") else "is no package and has"
        raise ValueError(f"{rule}, but {package} {what} {type(kind).__name__}")
    if kind.name != name:
        raise ValueError(f"{rule}, but the Kind in {package} is called {kind.name}")
    return kind


def part(name: str, what: str) -> ModuleType | None:
    """The module `figure`, `chart` or `words` of a kind, or None where it has none.

    Examples:
        >>> from whorl.study import kinds
        >>> kinds.part("threshold", "sculpture") is None
        True
    """
    get(name)
    module = f"{place(name)}.{what}"
    return import_module(module) if find_spec(module) else None


def file(name: str, what: str) -> Traversable:
    """A file in the folder of a kind, which may not be there."""
    return resources.files(place(name)) / what
