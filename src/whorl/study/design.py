"""A design.

Everything that was decided before a run, in one TOML file, and refused by line where it is not a
design.
"""

import re
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from whorl.study.schema import ORIGINS, PARAMETERS, RELATIONS, finite, together

PAPER = ("structural", "threshold", "horizon")
SHIPPED = (*PAPER, "foresight")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
LARGEST = 1_000_000  # bytes of a design file
# A dotted key of more than eight parts: the parser's work grows with the square of their number,
# and no design needs more than three.
PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
DEEP = re.compile(rf"(?<![\w-])(?:{PART}){{8}}")


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

    def values(self, quick: bool = False, **others: Any) -> SimpleNamespace:
        """The parameters as attributes, with the smaller ones of a quick run, or others, in their
        place.
        """
        return SimpleNamespace(
            **{name: entry["value"] for name, entry in self.parameters.items()}
            | (self.quick if quick else {})
            | others
        )


def shipped(name: str) -> Design:
    """One of the designs that come with whorl: the paper's, and what lies beyond it.

    Examples:
        >>> from whorl.study import design
        >>> design.shipped("structural").expected
        'FAIL'
    """
    if name not in SHIPPED:
        raise ValueError(f"study must be one of {', '.join(SHIPPED)}, but it is {name!r}")
    return parse(
        (resources.files("whorl.study") / "designs" / f"{name}.toml").read_bytes(), f"{name}.toml"
    )


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


def contents(path: Path) -> bytes:
    """The bytes of a design file of a reasonable size."""
    if path.exists() and not path.is_file():
        raise ValueError(
            f"{path} must be a design file, but it is "
            f"{'a folder' if path.is_dir() else 'no regular file'}"
        )
    with path.open("rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError(f"{path} must be a design of at most {LARGEST} bytes, but it is larger")
    return text


def toml(text: bytes, where: str) -> tuple[str, dict[str, Any]]:
    """A TOML file as text and as what it says; `where` names it in refusals."""
    try:
        decoded = text.decode()
        if deep := DEEP.search(decoded):
            line = decoded.count("\n", 0, deep.start()) + 1
            raise ValueError(f"a key of more than 8 parts in line {line}")
        return decoded, tomllib.loads(decoded)
    except UnicodeDecodeError as wrong:
        raise ValueError(f"{where} must be UTF-8 text, but byte {wrong.start} is not") from wrong
    except (
        ValueError,
        RecursionError,
    ) as wrong:  # tomllib's own refusals, and Python's of very long numbers
        raise ValueError(
            f"{where} must be a TOML file, but it cannot be read: "
            f"{str(wrong)[:200] or 'nested too deeply'}"
        ) from wrong


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
    return _Reader(where, _lines(decoded)).design(given, text)


def _lines(text: str) -> dict[str, int]:
    """The line of every table and key, as `table.key`.

    Entries of `[[gates]]` are counted from 0.
    """
    lines: dict[str, int] = {}
    table, counts = "", {}
    for number, line in enumerate(text.splitlines(), 1):
        if many := re.match(r"\s*\[\[\s*([\w.-]+)\s*\]\]", line):
            counts[many[1]] = counts.get(many[1], -1) + 1
            table = f"{many[1]}.{counts[many[1]]}"
            lines.setdefault(table, number)
        elif one := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            table = one[1]
            lines.setdefault(table, number)
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            lines.setdefault(f"{table}.{key[1]}".lstrip("."), number)
    return lines


class _Words(str):
    """The end of a refusal in words, where it is not a value that was given."""


MISSING = _Words("it is missing")


def _shown(value: Any) -> str:
    """A value as it was given, cut to what fits into a sentence."""
    try:
        shown = repr(value)
    except ValueError:  # Python writes no whole number of more than some thousand digits
        return "a very long number"
    return shown if len(shown) <= 80 else shown[:77] + "..."


class _Reader:
    """Checks a parsed file piece by piece; every refusal names the line."""

    def __init__(self, where: str, lines: dict[str, int]) -> None:
        self.where, self.lines = where, lines

    def refuse(self, path: str, rule: str, value: Any) -> ValueError:
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        line = f", line {self.lines[path]}" if path else ""
        return ValueError(
            f"{self.where}{line}: {rule}, but "
            f"{value if isinstance(value, _Words) else f'it is {_shown(value)}'}"
        )

    def design(self, given: dict[str, Any], text: bytes) -> Design:
        known = {"name", "kind", "title", "expected", "parameters", "quick", "gates"}
        for key in sorted(given.keys() - known):
            raise self.refuse(
                key,
                f"a design may hold {', '.join(sorted(known))}",
                _Words(f"it holds {_shown(key)}"),
            )
        name, title = self.words(given, "name"), self.words(given, "title")
        if not NAME.fullmatch(name):
            raise self.refuse(
                "name",
                "name must be lower-case letters, digits, - and _, beginning with a letter or "
                "digit",
                name,
            )
        kind = self.one_of(given, "kind", tuple(PARAMETERS))
        expected = self.one_of(given, "expected", ("PASS", "FAIL")) if "expected" in given else None
        parameters = self.parameters(kind, self.table(given, "parameters"))
        quick = self.quick(kind, self.table(given, "quick") if "quick" in given else {})
        values = {name: entry["value"] for name, entry in parameters.items()}
        for table, force in (("parameters", values), ("quick", values | quick)):
            if wrong := together(kind, force):
                raise self.refuse(f"{table}.{wrong[0]}", *wrong[1:])
        gates = given.get("gates", [])
        if not isinstance(gates, list) or not gates:
            raise self.refuse("gates", "gates must be one or more [[gates]] tables", gates)
        checked = tuple(self.gate(f"gates.{number}", gate) for number, gate in enumerate(gates))
        return Design(name, kind, title, expected, parameters, quick, checked, text)

    def table(self, given: dict[str, Any], key: str) -> dict[str, Any]:
        if not isinstance(given.get(key), dict):
            raise self.refuse(key, f"{key} must be a table", given.get(key, MISSING))
        return given[key]

    def words(self, given: dict[str, Any], key: str, path: str = "") -> str:
        value = given.get(key, MISSING)
        if value is MISSING or not isinstance(value, str) or not 0 < len(value) <= 500:
            raise self.refuse(f"{path}{key}", f"{key} must be a text of 1 to 500 characters", value)
        return value

    def one_of(
        self, given: dict[str, Any], key: str, names: tuple[str, ...], path: str = ""
    ) -> str:
        if given.get(key) not in names:
            raise self.refuse(
                f"{path}{key}", f"{key} must be one of {', '.join(names)}", given.get(key, MISSING)
            )
        return given[key]

    def parameters(self, kind: str, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
        rules = PARAMETERS[kind]
        for name in sorted(given.keys() - rules.keys()):
            others = _Words(f"one is called {_shown(name)}")
            raise self.refuse(
                f"parameters.{name}",
                f"the parameters of a {kind} study must be {', '.join(rules)}",
                others,
            )
        for name in sorted(rules.keys() - given.keys()):
            raise self.refuse(
                "parameters", f"a {kind} study must have the parameter {name}", MISSING
            )
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
            self.value(kind, name, entry["value"], path)
        return given

    def quick(self, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        for name, value in given.items():
            if name not in PARAMETERS[kind]:
                raise self.refuse(
                    f"quick.{name}",
                    f"quick may change the parameters of a {kind} study",
                    _Words(f"{_shown(name)} is none"),
                )
            self.value(kind, name, value, f"quick.{name}")
        return given

    def value(self, kind: str, name: str, value: Any, path: str) -> None:
        words, test = PARAMETERS[kind][name]
        try:
            good = test(value)
        except TypeError:  # a list of things that cannot be compared
            good = False
        if not good:
            raise self.refuse(path, f"{name} must be {words}", value)

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
