"""The kinds of study: one folder per kind, which holds all that a kind is.

What is drawn and said of a kind is in its files `figure`, `chart` and `words`, each of which is
imported when it is asked for.
"""

from functools import cache
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any

from whorl.study.design import PAPER


@cache
def names() -> tuple[str, ...]:
    """The kinds that are installed: the paper's in its order, then the others by name."""
    there = {path.parent.name for path in Path(__file__).parent.glob("*/__init__.py")}
    return (*PAPER, *sorted(there - {*PAPER}))


def get(name: str) -> Any:
    """A kind by its name."""
    if name not in names():
        raise ValueError(f"kind must be one of {', '.join(names())}, but it is {name!r}")
    return import_module(f"whorl.study.{name}")


def part(name: str, what: str) -> ModuleType | None:
    """What is drawn or said of a kind: "figure", "chart" or "words"; None where it has none."""
    place = f"{__name__}.{name}.{what}"
    return import_module(place) if name in names() and util.find_spec(place) else None
