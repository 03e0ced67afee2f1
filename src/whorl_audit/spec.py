"""The specification of a kind: the `spec.toml` that it shares with the library.

It is read as data. What it says of parameters and columns is all that both sides share; how values
follow from the design is worked out on each side by itself.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whorl_audit import rules
from whorl_audit.types import UnreadableError

HOME = Path(__file__).parent.parent / "whorl" / "study" / "kinds"
WHOLE, REAL, WORD = "int64", "double", "string"
ROLES = ("key", "drawn", "computed", "derived")
TYPES = {"int64": WHOLE, "float64": REAL, "string": WORD}


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its role and its type."""

    name: str
    role: str
    type: str


@dataclass(frozen=True)
class Spec:
    """What a kind is made for: the rule of each parameter, and the columns of each table."""

    parameters: dict[str, rules.Rule]
    columns: dict[str, tuple[Column, ...]]


def of(name: str) -> Spec:
    """The specification of one of the paper's studies, in the folder of whorl beside this one."""
    return read(HOME / name / "spec.toml")


def beside(file: str) -> Spec:
    """The specification in the folder of a source file."""
    return read(Path(file).with_name("spec.toml"))


def read(path: Path) -> Spec:
    """A specification from its file.

    Raises:
        UnreadableError: In one sentence with the file, where it is none.
    """
    try:
        given = tomllib.loads(path.read_text())
        parameters = {name: _rule(one) for name, one in given["parameters"].items()}
        tables = given["tables"] | {
            "statistics": {"name": ["key", "string"], "value": ["derived", "float64"]}
        }
        columns = {
            table: tuple(_column(name, *cells[:2]) for name, cells in lines.items())
            for table, lines in tables.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableError(
            f"{path} must be the specification of a kind, but there is "
            f"{type(error).__name__}: {error}"
        ) from error
    return Spec(parameters, columns)


def _column(name: str, role: str, kind: str) -> Column:
    if role not in ROLES:
        raise ValueError(f"a role must be one of {', '.join(ROLES)}, but that of {name} is {role}")
    return Column(name, role, TYPES[kind])


def _rule(given: dict[str, Any]) -> rules.Rule:
    match given:
        case {"type": "whole", "from": low, "to": high}:
            return rules.whole(low, high, given.get("multiple", 1))
        case {"type": "number", "from": low, "to": high}:
            return rules.real(low, high)
        case {"type": "wholes", "from": low, "to": high}:
            return rules.wholes(low, high)
        case {"type": "numbers", "from": low, "to": high}:
            return rules.reals(low, high, given.get("least", 1))
        case {"type": "composition"}:
            return rules.COMPOSITION
        case {"type": "fractions"}:
            return rules.FRACTIONS
    raise ValueError(f"a parameter must have a type and its range, but it is {given}")
