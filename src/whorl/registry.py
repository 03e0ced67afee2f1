"""What can be chosen by name: laws, policies, gates, geometries, systems, rules.

An entry stands beside the thing it describes, and says what it is called, how it is made, which
numbers it takes and where it may be used. Design files, the explorer, the estimator, the pages of
the reference and error messages read the entries and know no names of their own.

To add one, decorate what makes it:

    @laws.register("soft", parameters=(Field("knee", 0.05, 1e-6, 10.0),))
    def soft(knee): ...

Another package names the same function as an entry point, in the group `whorl.laws`,
`whorl.policies`, `whorl.gates`, `whorl.geometries`, `whorl.systems` or `whorl.rules`. Entry points
are read when a registry is asked for all of its names, or for one that it does not know, and never
at import. One that is broken is reported in a warning, and leaves all others as they are.
"""

import inspect
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from whorl import _check
from whorl.fields import Field as Field

Made = TypeVar("Made", bound=Callable[..., Any])
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
EVERYWHERE = ("sweep", "explorer", "estimator")  # where a name may be used; in Python any may


@dataclass(frozen=True)
class Entry:
    """What a registry knows of one name.

    Examples:
        >>> from whorl import registry
        >>> registry.laws.get("leaky").make(leak=0.5)
        Leaky(mu=0.5)
    """

    name: str
    factory: Callable[..., Any]
    _: KW_ONLY
    label: str = ""
    help: str = ""
    parameters: tuple[Field, ...] = ()
    where: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        about = (self.help or inspect.getdoc(self.factory) or "").split("\n\n")[0]
        object.__setattr__(self, "label", self.label or self.name.replace("_", "-"))
        object.__setattr__(self, "help", " ".join(about.split()))
        for one in self.parameters:
            _named("a parameter", one.name)
            if not self._accepts(one.argument or one.name):
                raise ValueError(
                    f"parameters of {self.name} must be arguments of its factory, but "
                    f"{one.argument or one.name!r} is not"
                )

    def _accepts(self, argument: str) -> bool:
        takes = inspect.signature(self.factory).parameters
        return argument in takes or any(one.kind is one.VAR_KEYWORD for one in takes.values())

    @property
    def source(self) -> str:
        """The module that it comes from."""
        return getattr(self.factory, "__module__", "") or ""

    @property
    def defaults(self) -> dict[str, Any]:
        """Every parameter with what it is where nothing is said."""
        return {one.name: one.default for one in self.parameters}

    def takes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Those of some values that are parameters of this entry."""
        return {one.name: values[one.name] for one in self.parameters if one.name in values}

    def make(self, **given: Any) -> Any:
        """Call the factory.

        Args:
            **given: parameters by name, those that are left out as they are by default; and other
                arguments of the factory, such as the law of a policy.

        Returns:
            What the factory makes.

        Raises:
            ValueError: if the factory does not take one of them, and where it says so itself.
        """
        named = {one.name: one.argument or one.name for one in self.parameters}
        if unknown := [name for name in given if name not in named and not self._accepts(name)]:
            raise ValueError(
                f"parameters of {self.name} must be {', '.join(named) or 'none'}, but "
                f"{unknown[0]!r} was given"
            )
        whole = self.defaults | given
        return self.factory(**{named.get(name, name): value for name, value in whole.items()})


Kind = TypeVar("Kind", bound=Entry)


class Registry(Generic[Kind]):
    """Entries by name, in the order in which they were registered.

    Args:
        kind: what its entries are, as error messages call it.
        group: the group of entry points through which other packages add to it.
        entry: the class of its entries.
        where: where a name may be used, if its entry does not say.
        home: a package of whorl each of whose files may register something.

    Examples:
        >>> from whorl import registry
        >>> registry.gates.names()[:3]
        ('curvature', 'always', 'never')
    """

    def __init__(
        self,
        kind: str,
        group: str,
        entry: type[Kind] = Entry,
        where: tuple[str, ...] = EVERYWHERE,
        home: str = "",
    ) -> None:
        self.kind, self.group, self.where, self.home = kind, group, where, home
        self._entry: type[Kind] = entry
        self._known: dict[str, Kind] = {}
        self._broken: dict[str, str] = {}
        self._read = False
        self._lock = threading.RLock()

    def register(self, name: str = "", **fields: Any) -> Callable[[Made], Made]:
        """Decorate a factory with its entry.

        Args:
            name: what it is called; the factory's own name in lower case if left out.
            **fields: what else an entry says; its help is the factory's first sentence if left out.

        Returns:
            A decorator that hands the factory back as it is.

        Raises:
            ValueError: if the name is taken or is none, if the factory cannot be called, or does
                not take the parameters.
        """

        def add(factory: Made) -> Made:
            called = name or spelled(getattr(factory, "__name__", ""))
            _named(f"a {self.kind}", called)
            if not callable(factory):
                raise ValueError(
                    f"the factory of {self.kind} {called!r} must be callable, but it is "
                    f"{_check.shown(factory)}"
                )
            fields.setdefault("where", self.where)
            entry = self._entry(called, factory, **fields)
            with self._lock:
                old = self._known.get(called)
                # A cell of a notebook that is run again, or a module that is loaded again.
                if old and _place(old.factory) != _place(factory):
                    raise ValueError(
                        f"{self.kind} {called!r} must have a name of its own, but {old.source} "
                        "has taken it"
                    )
                self._known[called] = entry
            return factory

        return add

    def get(self, name: Any, *, where: str = "", also: str = "") -> Kind:
        """The entry of a name.

        Args:
            name: what is asked for.
            where: only what may be used there.
            also: what a refusal offers besides names, such as " or a function".

        Returns:
            The entry.

        Raises:
            ValueError: if there is no such name, with those that there are.
        """
        if self.has(name, where=where):
            return self._known[name]
        if isinstance(name, str) and name in self._broken:
            raise ValueError(self._broken[name])
        raise ValueError(
            f"{self.kind} must be {self.words(where)}{also}, but it is {self.unknown(name)}"
        )

    def has(self, name: Any, *, where: str = "") -> bool:
        """Whether there is such a name. Entry points are read only where it is not known."""
        if not isinstance(name, str):
            return False
        if name not in self._known:
            self._load()
        return name in self._known and (not where or where in self._known[name].where)

    def words(self, where: str = "") -> str:
        """The rule for a name, as it stands after "must be"."""
        return f"one of {', '.join(self.names(where=where))}"

    def unknown(self, name: Any) -> str:
        """A name that is not here, as it stands after "but it is"."""
        elsewhere = isinstance(name, str) and name not in self._known and NAME.fullmatch(name)
        asked = ": is the package that brings it installed?" if elsewhere else ""
        return f"{_check.shown(name)}{asked}"

    def names(self, *, where: str = "") -> tuple[str, ...]:
        """All names, or those that may be used somewhere."""
        return tuple(entry.name for entry in self.entries(where=where))

    def entries(self, *, where: str = "") -> list[Kind]:
        """All entries, or those that may be used somewhere."""
        self._load()
        return [entry for entry in self._known.values() if not where or where in entry.where]

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.entries())

    def __str__(self) -> str:
        return self.table()

    def table(self, *, where: str = "") -> str:
        """All entries, or those that may be used somewhere, in a table to be read."""
        rows = [("name", "parameters", "by name in", "what it is")]
        for entry in self.entries(where=where):
            takes = ", ".join(map(str, entry.parameters))
            rows.append((entry.name, takes, ", ".join(entry.where) or "-", entry.help))
        wide = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(size) for cell, size in zip(row, wide, strict=False)), row[3]])
            for row in rows
        )

    def _load(self) -> None:
        with self._lock:
            if self._read:
                return
            self._read = True  # before anything is loaded: it may ask this registry itself
            for module in iter_modules(import_module(self.home).__path__) if self.home else ():
                import_module(f"{self.home}.{module.name}")
            for point in installed(self.group):
                if why := self._added(point):
                    self._broken[point.name] = why
                    warnings.warn(why, RuntimeWarning, stacklevel=4)

    def _added(self, point: EntryPoint) -> str:
        """Load an entry point; why it cannot be used, or nothing."""
        whose = f"{self.kind} {point.name!r} of the package {package(point)}"
        try:
            factory = point.load()  # a decorated factory registers itself here
            if not callable(factory):
                return f"{whose} must be callable, but it is {_check.shown(factory)}"
            known = self._known.get(point.name)
            if known is None or known.factory is not factory:
                self.register(point.name)(factory)
        except (Exception, SystemExit) as wrong:  # whatever a stranger's import may raise
            said = " ".join(str(wrong).split())[:200]
            return f"{whose} must load, but it does not: {said or type(wrong).__name__}"
        return ""


def installed(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group, ordered by name and package.

    Examples:
        >>> from whorl import registry
        >>> list(registry.installed("whorl.nothing"))
        []
    """
    return sorted(entry_points(group=group), key=lambda point: (point.name, package(point)))


def package(point: EntryPoint) -> str:
    """The package that an entry point belongs to."""
    return _check.plain(point.dist.name if point.dist else point.value)


def _named(what: str, name: Any) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(
            f"the name of {what} must be lower-case letters, digits and _, at most 40, beginning "
            f"with a letter, but it is {_check.shown(name)}"
        )


def spelled(name: str) -> str:
    """The name of a function, or that of a class in the form of one: `FlowGraph`, `flow_graph`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _place(factory: Any) -> tuple[str, str]:
    return getattr(factory, "__module__", ""), getattr(factory, "__qualname__", repr(factory))


laws: Registry[Entry] = Registry("law", "whorl.laws")
policies: Registry[Entry] = Registry("policy", "whorl.policies")
gates: Registry[Entry] = Registry("gate", "whorl.gates")
geometries: Registry[Entry] = Registry("geometry", "whorl.geometries", where=())
systems: Registry[Entry] = Registry("system", "whorl.systems", where=(), home="whorl.systems")
rules: Registry[Entry] = Registry("rule", "whorl.rules", where=())
