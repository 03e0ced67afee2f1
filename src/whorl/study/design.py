"""A design.

Everything that was decided before a run, in one TOML file, and refused by line where it is not a
design.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from whorl.fields import MISSING, Words, finite, shown
from whorl.ground.reader import Reader, contents, lines, toml
from whorl.study import kinds
from whorl.study.kind import Kind
from whorl.study.parameters import Parameters

ORIGINS = ("stated", "reading", "own")
RELATIONS = ("<", "<=", ">", ">=", "==")


@dataclass(frozen=True)
class Gate:
    """One condition on a statistic. A study passes when all of its gates do.

    Examples:
        >>> from whorl.study import design
        >>> design.shipped("structural").gates[0].relation
        '=='
    """

    name: str
    statistic: str
    relation: str
    bound: float
    origin: str


@dataclass(frozen=True)
class Design:
    """A checked design, and the very bytes it was read from.

    Examples:
        >>> from whorl.study import design
        >>> found = design.shipped("horizon")
        >>> found.values().trials, found.values(quick=True).trials < found.values().trials
        (20, True)
    """

    name: str
    kind: str
    title: str
    expected: str | None
    parameters: dict[str, dict[str, Any]]
    quick: dict[str, Any]
    gates: tuple[Gate, ...]
    text: bytes

    @property
    def sha256(self) -> str:
        """The hash under which this design is registered."""
        return sha256(self.text).hexdigest()

    def values(self, quick: bool = False, **others: Any) -> Parameters:
        """The parameters of its kind, with the smaller ones of a quick run, or others, in their
        place.
        """
        given = {name: entry["value"] for name, entry in self.parameters.items()}
        return kinds.get(self.kind).parameters(**given | (self.quick if quick else {}) | others)


def shipped(name: str) -> Design:
    """The design that comes with a kind: the paper's, and what lies beyond it.

    Examples:
        >>> from whorl.study import design
        >>> design.shipped("structural").expected
        'FAIL'
    """
    place = kinds.file(name, "design.toml")
    if not place.is_file():
        raise ValueError(f"kind {name} must ship a design, but {kinds.place(name)} has none")
    return parse(place.read_bytes(), f"{name}/design.toml")


def template(kind: str) -> str:
    """A design of the user's own to start from.

    The shipped one, under another name and without its expected verdict.

    Examples:
        >>> from whorl.study import design
        >>> design.template("threshold").splitlines()[0]
        'name = "mine"'
    """
    text = shipped(kind).text.decode()
    lines = [line for line in text.splitlines() if not line.startswith("expected")]
    return (
        "\n".join(lines)
        .replace(f'name = "{kind}"', 'name = "mine"', 1)
        .replace('origin = "stated"', 'origin = "own"')
        .replace('origin = "reading"', 'origin = "own"')
    )


def read(path: Path) -> Design:
    """A design from a file.

    Examples:
        >>> from whorl.study import design
        >>> size = (folder / "mine.toml").write_text(design.template("threshold"))
        >>> design.read(folder / "mine.toml").name
        'mine'
    """
    return parse(contents(path), str(path))


def parse(text: bytes, where: str = "design") -> Design:
    """A design from its bytes; `where` names it in refusals.

    Examples:
        >>> from whorl.study import design
        >>> design.parse(b"name = 7", "mine.toml")
        Traceback (most recent call last):
            ...
        ValueError: mine.toml, line 1: name must be a text of 1 to 500 characters, but it is 7
    """
    decoded, given = toml(text, where)
    return _DesignReader(where, lines(decoded)).design(given, text)


class _DesignReader(Reader):
    """Checks a parsed design piece by piece."""

    def design(self, given: dict[str, Any], text: bytes) -> Design:
        known = {"name", "kind", "title", "expected", "parameters", "quick", "gates"}
        self.only(given, sorted(known), "a design")
        name, title = self.named(given)
        kind = kinds.get(self.one_of(given, "kind", kinds.names()))
        expected = self.one_of(given, "expected", ("PASS", "FAIL")) if "expected" in given else None
        parameters = self.parameters(kind, self.table(given, "parameters"))
        quick = self.quick(kind, self.table(given, "quick") if "quick" in given else {})
        values = {name: entry["value"] for name, entry in parameters.items()}
        for table, force in (("parameters", values), ("quick", values | quick)):
            if wrong := kind.parameters(**force).together():
                raise self.refuse(f"{table}.{wrong[0]}", *wrong[1:])
        gates = given.get("gates", [])
        if not isinstance(gates, list) or not gates:
            raise self.refuse("gates", "gates must be one or more [[gates]] tables", gates)
        checked = tuple(self.gate(f"gates.{number}", gate) for number, gate in enumerate(gates))
        return Design(name, kind.name, title, expected, parameters, quick, checked, text)

    def parameters(self, kind: Kind[Any, Any], given: dict[str, Any]) -> dict[str, dict[str, Any]]:
        rules = kind.parameters.declared()
        for name in sorted(given.keys() - rules.keys()):
            others = Words(f"one is called {shown(name)}")
            raise self.refuse(
                f"parameters.{name}",
                f"the parameters of a {kind.name} study must be {', '.join(rules)}",
                others,
            )
        for name in sorted(rules.keys() - given.keys()):
            what = f"the parameter {name} ({rules[name].help})"
            raise self.refuse("parameters", f"a {kind.name} study must have {what}", MISSING)
        for name, entry in given.items():
            path = f"parameters.{name}"
            if (
                not isinstance(entry, dict)
                or not entry.keys() <= {"value", "origin", "note"}
                or "value" not in entry
            ):
                raise self.refuse(
                    path, f"{name} must be written as {{ value = ..., origin = ... }}", entry
                )
            self.one_of(entry, "origin", ORIGINS, f"{path}.")
            if "note" in entry:
                self.words(entry, "note", f"{path}.")
            self.value(name, entry["value"], rules[name], path)
        return given

    def quick(self, kind: Kind[Any, Any], given: dict[str, Any]) -> dict[str, Any]:
        rules = kind.parameters.declared()
        for name, value in given.items():
            if name not in rules:
                raise self.refuse(
                    f"quick.{name}",
                    f"quick may change the parameters of a {kind.name} study",
                    Words(f"{shown(name)} is none"),
                )
            self.value(name, value, rules[name], f"quick.{name}")
        return given

    def gate(self, path: str, given: Any) -> Gate:
        keys = {"name", "statistic", "relation", "bound", "origin"}
        if not isinstance(given, dict) or given.keys() != keys:
            raise self.refuse(path, f"a gate must have {', '.join(sorted(keys))}", given)
        bound = given["bound"]
        if not finite(bound):
            raise self.refuse(f"{path}.bound", "bound must be a finite number", bound)
        relation, origin = (
            self.one_of(given, key, names, f"{path}.")
            for key, names in (("relation", RELATIONS), ("origin", ORIGINS))
        )
        return Gate(
            self.words(given, "name", f"{path}."),
            self.words(given, "statistic", f"{path}."),
            relation,
            float(bound),
            origin,
        )
