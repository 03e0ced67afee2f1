"""The specification of a kind of study: `spec.toml` in its folder.

It says which parameters a design has, what each table holds, and which statistics there are. The
auditor reads the same file, and the tables in docs/studies.md are made from it. A mistake in it is
refused with its file and line.
"""

import re
from dataclasses import dataclass, make_dataclass
from dataclasses import field as slot
from pathlib import Path
from typing import Any, TypeVar

from whorl.fields import LISTS, SPECIAL, Field, Words, finite, shown
from whorl.ground.reader import Reader, lines, toml
from whorl.study.parameters import Parameters

UNIT = "1"  # flows are shares of a unit mass
ROLES = ("key", "drawn", "computed", "derived")
CELLS = ("int64", "float64", "string")
PLACE = re.compile(r"\{(\w+)\}")
# Types of parameters, each with the Python type of its values.
TYPES: dict[str, Any] = {
    "whole": int,
    "number": float,
    "wholes": list[int],
    "numbers": list[float],
    "composition": list[float],
    "fractions": list[float],
}
P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    role: str
    type: str
    equation: str
    meaning: str
    unit: str = UNIT


Columns = dict[str, tuple[Column, ...]]  # of every table of a kind, in their order


@dataclass(frozen=True)
class Spec:
    """What a kind of study is made for.

    Attributes:
        fields: Every parameter by its name.
        columns: The columns of every table, and of the statistics that every study has.
        statistics: The names of all statistics; `{depths}` in one stands for every value of that
            parameter.
    """

    fields: dict[str, Field]
    columns: Columns
    statistics: tuple[str, ...]

    def parameters(self, base: type[P]) -> type[P]:
        """The class of the parameters, with the properties and joint rules of another."""
        slots = [
            (name, TYPES[one.type], slot(metadata={"field": one}))
            for name, one in self.fields.items()
        ]
        return make_dataclass(f"Of{base.__name__}", slots, bases=(base,), frozen=True, kw_only=True)


def beside(file: str) -> Spec:
    """The specification in the folder of a source file.

    Examples:
        >>> from whorl.study import kinds, spec
        >>> found = spec.beside(str(kinds.file("threshold", "kind.py")))
        >>> list(found.columns), found.fields["resamples"].rule
        (['tasks', 'weights', 'configurations', 'draws', 'statistics'], 'a whole number from 1 to 1000000')
    """
    path = Path(file).with_name("spec.toml")
    if not path.is_file():
        raise ValueError(f"{path} must be the specification of a kind, but it is missing")
    return read(path.read_bytes(), f"{path.parent.name}/{path.name}")


def read(text: bytes, where: str = "spec.toml") -> Spec:
    r"""A specification from its bytes; `where` names it in refusals.

    Raises:
        ValueError: In one sentence with the file, the line and the rule that is broken.

    Examples:
        >>> from whorl.study import spec
        >>> spec.read(b"statistics = []\n[parameters]\nseed = 7\n[tables.tasks]\n")
        Traceback (most recent call last):
            ...
        ValueError: spec.toml, line 3: seed must be a table with a type and a help, but it is 7
    """
    decoded, given = toml(text, where)
    known = lines(decoded)
    for number, line in enumerate(decoded.splitlines(), 1):
        if quoted := re.match(r'\s*(?:statistics\s*=\s*\[\s*)?"([^"]+)"', line):
            known.setdefault(f"statistics.{quoted[1]}", number)
    return _SpecReader(where, known).spec(given)


class _SpecReader(Reader):
    """Checks a parsed specification piece by piece."""

    def spec(self, given: dict[str, Any]) -> Spec:
        self.only(given, ("statistics", "parameters", "tables"), "a specification")
        parameters, tables = self.table(given, "parameters"), self.table(given, "tables")
        fields = {name: self.parameter(name, one) for name, one in parameters.items()}
        if "seed" not in fields:
            raise self.refuse("parameters", "parameters must hold a seed", Words("they do not"))
        columns = {name: self.columns(name, self.table(tables, name)) for name in tables}
        own = (Column("name", "key", "string", "", "name of the statistic"),)
        columns["statistics"] = (*own, Column("value", "derived", "float64", "", "its value"))
        return Spec(fields, columns, self.statistics(given.get("statistics", []), fields))

    def parameter(self, name: str, given: Any) -> Field:
        path = f"parameters.{name}"
        if not isinstance(given, dict) or not {"type", "help"} <= given.keys():
            raise self.refuse(path, f"{name} must be a table with a type and a help", given)
        kind = self.one_of(given, "type", tuple(TYPES), f"{path}.")
        ends = () if kind in SPECIAL else ("from", "to")
        more = {"whole": ("multiple",), "numbers": ("least",)}.get(kind, ())
        self.only(given, ("type", "help", *ends, *more), f"the parameter {name}", f"{path}.")
        for key in (*ends, *(key for key in more if key in given)):
            if not finite(given.get(key)):
                raise self.refuse(path, f"{key} of {name} must be a number", given.get(key))
        if ends and given["from"] > given["to"]:
            raise self.refuse(path, f"to of {name} must be at least from", given["to"])
        words = self.words(given, "help", f"{path}.")
        own = {key: given[key] for key in more if key in given}
        low, high = given.get("from"), given.get("to")
        return Field(name, low=low, high=high, type=kind, help=words, **own)

    def columns(self, table: str, given: dict[str, Any]) -> tuple[Column, ...]:
        found = []
        for name, cells in given.items():
            if (
                not isinstance(cells, list)
                or len(cells) not in (4, 5)
                or not all(isinstance(cell, str) for cell in cells)
                or cells[0] not in ROLES
                or cells[1] not in CELLS
            ):
                raise self.refuse(
                    f"tables.{table}.{name}",
                    f"the column {name} must be [role, type, equation, meaning] with a role of "
                    f"{', '.join(ROLES)} and a type of {', '.join(CELLS)}",
                    cells,
                )
            found.append(Column(name, *cells))
        if not found:
            raise self.refuse(f"tables.{table}", f"the table {table} must have columns", given)
        return tuple(found)

    def statistics(self, given: Any, fields: dict[str, Field]) -> tuple[str, ...]:
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise self.refuse("statistics", "statistics must be a list of names", given)
        many = {name for name, one in fields.items() if one.type in LISTS}
        for one in given:
            for name in PLACE.findall(one):
                if name not in many:
                    rule = f"a name in braces must be a parameter that is a list, in {one}"
                    raise self.refuse(f"statistics.{one}", rule, Words(f"{shown(name)} is not"))
        return tuple(given)
