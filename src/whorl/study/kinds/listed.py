"""Which kinds of study are installed, without importing one.

The folders beside this file, and what other packages name under the entry points `whorl.kinds`.
Only the standard library is used: the command line runs this file by its path, because importing
anything under `whorl` imports JAX.
"""

import tomllib
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

GROUP = "whorl.kinds"
HERE = Path(__file__).parent


@cache
def places() -> list[tuple[str, str]]:
    """Names of kinds and the packages that hold them: ours, then those of others."""
    ours = [path.parent.name for path in sorted(HERE.glob("*/__init__.py"))]
    found = [(name, f"whorl.study.kinds.{name}") for name in ours]
    return found + sorted((one.name, one.value) for one in entry_points(group=GROUP))


@cache
def paper() -> tuple[str, ...]:
    """The kinds of the paper's studies, in its order.

    They are those whose published numbers carry an `order`.
    """
    tables = {path.parent.name: path.read_bytes() for path in HERE.glob("*/published.toml")}
    order = {name: tomllib.loads(text.decode()).get("order") for name, text in tables.items()}
    found = {name: number for name, number in order.items() if number is not None}
    return tuple(sorted(found, key=lambda name: found[name]))


def folders() -> dict[str, Path]:
    """Where the files of each kind lie, as far as that is known without importing a package."""
    found = {}
    for name, package in places():
        top, *inside = package.split(".")
        ours = HERE.parents[1] if top == HERE.parents[1].name else None
        spec = None if ours else find_spec(top)
        root = ours or (Path(spec.origin).parent if spec and spec.origin else None)
        if root is not None:
            found[name] = root.joinpath(*inside)
    return found


def names() -> tuple[str, ...]:
    """Every kind: the paper's in its order, then the others by name."""
    first = paper()
    return (*first, *sorted({name for name, _ in places()} - set(first)))
