"""Reads a design file, and refuses by line what is not one.

A design is TOML. Nothing in it is executed, its size and the depth of its keys are bounded, and
every refusal names the file, the line, the rule and the value.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whorl.fields import MISSING, Field, Words, but, shown
from whorl.ground import source

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TEXT = Field("text", low=1, high=500, type="text")
LARGEST = 1_000_000  # bytes of a design file
MOST = 8  # parts of a dotted key: the parser's work grows with the square of their number
# Every token that TOML knows, so that neither a comment nor a text is taken for a key. A text
# without its end reaches to the end of its line or of the file, so that each letter is seen once.
TOKEN = re.compile(
    r"""(?P<part>[\w-]++|"{3}(?:[^"\\]|\\.|"{1,2}+(?!"))*+(?:"{3,5}+)?|'{3}.*?(?:'{3,5}+|\Z)"""
    r"""|"(?:[^"\\\n]|\\[^\n])*+"?|'[^'\n]*+'?)|(?P<dot>\.)|(?P<space>[ \t]++|\#[^\n]*+)|.""",
    re.DOTALL,
)


def contents(path: Path) -> bytes:
    """The bytes of a design file of a reasonable size."""
    return source.contents(path, LARGEST, "a design")


def _deep(text: str) -> int | None:
    """The line of the first dotted key of too many parts."""
    parts, last = 0, ""
    for token in TOKEN.finditer(text):
        kind = token.lastgroup or ""
        if kind == "space":
            continue
        chained = (kind, last) in (("dot", "part"), ("part", "dot"))
        parts = parts + (kind == "dot") if chained else 0
        if parts == MOST:
            return text.count("\n", 0, token.start()) + 1
        last = kind
    return None


def toml(text: bytes, where: str) -> tuple[str, dict[str, Any]]:
    """A TOML file as text and as what it says; `where` names it in refusals."""
    try:
        decoded = text.decode()
        if line := _deep(decoded):
            raise ValueError(f"a key of more than {MOST} parts in line {line}")
        return decoded, tomllib.loads(decoded)
    except UnicodeDecodeError as wrong:
        raise ValueError(f"{where} must be UTF-8 text, but byte {wrong.start} is not") from wrong
    except (ValueError, RecursionError) as wrong:  # tomllib's, and Python's of very long numbers
        why = "it is nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)[:200]
        raise ValueError(f"{where} must be a TOML file, but it cannot be read: {why}") from wrong


def lines(text: str) -> dict[str, int]:
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


class Reader:
    """Checks a parsed file piece by piece; every refusal names the line."""

    def __init__(self, where: str, lines: dict[str, int]) -> None:
        self.where, self.lines = where, lines

    def refuse(self, path: str, rule: str, value: Any) -> ValueError:
        return self.faulty(path, but(rule, value))

    def faulty(self, path: str, sentence: str) -> ValueError:
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        line = f", line {self.lines[path]}" if path else ""
        return ValueError(f"{self.where}{line}: {sentence}")

    def table(self, given: dict[str, Any], key: str) -> dict[str, Any]:
        if not isinstance(given.get(key), dict):
            raise self.refuse(key, f"{key} must be a table", given.get(key, MISSING))
        return given[key]

    def words(self, given: dict[str, Any], key: str, path: str = "") -> str:
        value = given.get(key, MISSING)
        self.value(key, value, TEXT, f"{path}{key}")
        return value

    def one_of(
        self, given: dict[str, Any], key: str, names: tuple[str, ...], path: str = ""
    ) -> str:
        value = given.get(key, MISSING)
        self.value(key, value, Field(key, type="choice", among=names), f"{path}{key}")
        return value

    def named(self, given: dict[str, Any]) -> tuple[str, str]:
        """The name and the title of a design."""
        name, title = self.words(given, "name"), self.words(given, "title")
        if not NAME.fullmatch(name):
            raise self.refuse(
                "name",
                "name must be lower-case letters, digits, - and _, beginning with a letter or "
                "digit",
                name,
            )
        return name, title

    def only(self, given: dict[str, Any], known: Iterable[str], what: str, path: str = "") -> None:
        """Refuse keys that nobody knows."""
        for key in sorted(given.keys() - set(known)):
            rule = f"{what} may hold {', '.join(known)}"
            raise self.refuse(f"{path}{key}", rule, Words(f"it holds {shown(key)}"))

    def value(self, name: str, value: Any, field: Field, path: str) -> None:
        """Refuse a value that does not keep its rule."""
        if fault := field.fault(value):
            raise self.faulty(path, f"{name} {fault}")
