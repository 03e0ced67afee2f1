"""The kinds of study that can be audited, each a value of one class in a file of its own.

A kind is found, not listed: every module of this folder holds one under the name `KIND`, and other
packages bring theirs by entry points of the group `whorl_audit.kinds`. The name of the module, or
of the entry point, is the name of the kind.
"""

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from whorl_audit import types
from whorl_audit.rules import Rule
from whorl_audit.spec import Column as Column
from whorl_audit.spec import Spec
from whorl_audit.types import Columns, Expected, Formulas, Parameters, Table, Tables

GROUP = "whorl_audit.kinds"


@dataclass(frozen=True, eq=False, kw_only=True)
class Kind:
    """All that the audit knows of a kind of study.

    Attributes:
        spec: What each parameter of a design may be, and the columns of every table, from
            `spec.toml`, which the library reads too.
        keys: The keys of every row of these tables, from the parameters.
        sizes: The rows of the tables that decide how long an audit takes, from the parameters by
            arithmetic: a design may ask for more than any memory holds.
        expected: The columns that seed and physics alone determine, drawn and computed, from the
            parameters.
        derived: The other columns of a table, from the tables and the parameters: formulas of
            stored columns, and what follows from them by the physics.
        statistics: The numbers on which gates act, from the tables and the parameters, in the order
            of their rows. One that does not exist for a run has no entry.
        roundoff: The statistics that are zero but for round-off. For one that has rows of its own
            their table and column, and in how many of them we must have round-off before a program
            that has none in any row did not compute them; otherwise None.
        joint: The sentence where values that are good one by one do not fit together.
        work: What else there is a most of: in words, what a design asks for, and the most.
        grown: How large a statistic of `roundoff` may become where the dynamics makes round-off
            grow, from what `expected` gave.
        paper: Whether it is one of the paper's, with all of which a run draws an illustration.
    """

    spec: Spec
    keys: Callable[[Parameters], dict[str, Table]]
    sizes: Callable[[Parameters], dict[str, int]]
    expected: Callable[[Parameters], dict[str, Columns]]
    derived: Formulas
    statistics: Callable[[Tables, Parameters], dict[str, Expected]]
    roundoff: dict[str, tuple[str, str, int] | None] = field(default_factory=dict)
    joint: Callable[[Parameters], str | None] = lambda _: None
    work: Callable[[Parameters], Iterable[tuple[str, int, int]]] = lambda _: ()
    grown: Callable[[dict[str, Columns]], dict[str, float]] = lambda _: {}
    paper: bool = False

    @property
    def parameters(self) -> dict[str, Rule]:
        """What each parameter of a design may be, by its name."""
        return self.spec.parameters

    @property
    def columns(self) -> dict[str, tuple[Column, ...]]:
        """The columns of every table."""
        return self.spec.columns


@cache
def own() -> dict[str, EntryPoint]:
    """Where the kinds of this folder are, by their names."""
    names = [name for _, name, _ in pkgutil.iter_modules(__path__)]
    return {name: EntryPoint(name, f"{__name__}.{name}:KIND", GROUP) for name in names}


@cache
def installed() -> dict[str, EntryPoint]:
    """Where all kinds are, in the order of their names.

    Raises:
        UnreadableError: If two have the same name.
    """
    found = dict(own())
    for entry in entry_points(group=GROUP):
        if entry.name in found:
            raise types.UnreadableError(
                f"a kind must have a name of its own, but {types.shown(entry.name)} is brought by "
                f"{found[entry.name].value} and by {entry.value}; rename or uninstall one of them"
            )
        found[entry.name] = entry
    return dict(sorted(found.items()))


def find(name: str) -> Kind:
    """The kind of a name.

    Args:
        name: One of those in `installed()`.

    Raises:
        UnreadableError: If the package that brings it is broken.
    """
    entry = installed()[name]
    try:
        kind = entry.load()
    except Exception as error:
        raise types.UnreadableError(
            f"the kind {name} must be found at {entry.value}, but there is "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(kind, Kind):
        raise types.UnreadableError(f"{entry.value} must be a Kind, but it is {types.shown(kind)}")
    return kind
