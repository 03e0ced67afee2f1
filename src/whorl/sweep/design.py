"""A sweep in one TOML file.

Which parameters take which values, how many trials, and how the work is cut.

A value stands for itself, a list for each of its entries. In a random design `{ from = 0, to = 8 }`
is a range to draw from, with `log = true` evenly in the logarithm. The reader is that of the
studies: a refusal names the line. Laws, policies and gates are those of the registry, with whatever
parameters they have there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from whorl.feedback import ALPHA
from whorl.fields import MISSING, SEED, Field, Words, finite
from whorl.ground.reader import Reader, contents, lines, toml
from whorl.learning.ledger import TERMS
from whorl.learning.policy import GATE, OMEGA, SCALE
from whorl.registry import Entry, Registry, laws, policies

KINDS = ("grid", "random")


def _named(name: str, default: str, among: Registry[Entry]) -> Field:
    """A parameter that is the name of an entry."""
    return Field(name, default, type="choice", among=among, where="sweep", per_pair=False)


SPREAD = Field("concentration", 1.0, 1e-3, 1e6)  # from vertices to one point
# The parameters by table; the laws and the policies that a design names bring their own.
PARAMETERS: dict[str, dict[str, Field]] = {
    table: {one.name: one for one in some}
    for table, some in {
        "task": (Field("mixtures", 3, 0, 1000, type="whole", per_pair=False), SPREAD),
        "network": (
            Field("depth", 1, 1, 64, type="whole", per_pair=False),
            Field("width", 3, 3, 128, type="whole", per_pair=False),
            Field("imbalance", 4.0, 0, 10_000),
            Field("floor", 0.1, 0, 1),
        ),
        "law": (_named("law", "leaky", laws), ALPHA),
        "policy": (_named("policy", "adaptive", policies), SCALE, OMEGA, GATE.at("sweep")),
        "schedule": (
            Field("epochs", 30, 1, 1_000_000, type="whole", per_pair=False),
            Field("order", "permuted", type="choice", among=("permuted", "fixed"), per_pair=False),
        ),
    }.items()
}
# What one compiled program is made for, in the order in which cases are numbered; after these come
# the law and what entries say of themselves. Every other parameter may differ from pair to pair
# within a call.
SHAPE = ("depth", "width", "mixtures", "epochs", "order", "policy", "gate", "alpha")
TAKEN = ("case", "trial", "flip", "start", "final", "native", "gap", "closure", "made", "failed")
TAKEN += ("reason", *TERMS, *(name for table in PARAMETERS.values() for name in table))
TOP = {
    one.name: one
    for one in (
        SEED,
        Field("chunk", 256, 64, 65_536, type="whole", multiple=64),
        Field("shard", 4096, 1, 1_000_000, type="whole"),
        Field("trials", 1, 1, 10**9, type="whole"),
        Field("points", None, 1, 10**9, type="whole"),
        Field("flips", False, type="flag"),
    )
}
MOST = 10**13  # cases
PROGRAMS = 100_000  # compiled shapes; each takes seconds, and all are listed


@dataclass(frozen=True)
class Range:
    """Where a random design draws a number from."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Sweep:
    """A checked design, and the very bytes it was read from.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.read(Path("examples/sweep.toml"))
        >>> design.trials, len(design.shapes)
        (50, 4)
    """

    name: str
    title: str
    kind: str
    seed: int
    chunk: int  # pairs in one compiled call: last bits depend on it
    shard: int  # cases in a file
    trials: int  # tasks, networks and schedules that are drawn for every point
    flips: bool  # whether every trial is also made with all turns reversed
    points: int | None  # of a random design
    values: Mapping[str, tuple[Any, ...] | Range]
    shape: tuple[str, ...]  # the parameters that a compiled program is made for
    text: bytes

    @property
    def sha256(self) -> str:
        """What tells this design from others."""
        return sha256(self.text).hexdigest()

    @property
    def free(self) -> tuple[str, ...]:
        """The parameters that may differ from pair to pair within a call."""
        return tuple(name for name in self.values if name not in self.shape)

    @property
    def shapes(self) -> list[dict[str, Any]]:
        """Every combination of the parameters that a compiled program is made for."""
        listed = [self.values[name] for name in self.shape]
        return [
            dict(zip(self.shape, values, strict=True))
            for values in product(*(v for v in listed if isinstance(v, tuple)))
        ]


def read(path: Path) -> Sweep:
    """A design from a file.

    Args:
        path: A TOML file of at most a megabyte.

    Returns:
        The checked design.

    Raises:
        ValueError: In one sentence with the line, the rule and the value.

    Examples:
        >>> from whorl import sweep
        >>> sweep.read(Path("examples/sweep.toml")).name
        'imbalance'
    """
    return parse(contents(path), str(path))


def parse(text: bytes, where: str = "design") -> Sweep:
    """A design from its bytes; `where` names it in refusals.

    Args:
        text: The bytes of a TOML file.
        where: The name of the file in refusals.

    Returns:
        The checked design.

    Raises:
        ValueError: In one sentence with the line, the rule and the value.

    Examples:
        >>> from whorl import sweep
        >>> sweep.parse(b"design = 'spiral'", "mine.toml")
        Traceback (most recent call last):
            ...
        ValueError: mine.toml: name must be a text of 1 to 500 characters, but it is missing
    """
    decoded, given = toml(text, where)
    return _SweepReader(where, lines(decoded)).sweep(given, text)


class _SweepReader(Reader):
    """Checks a parsed file piece by piece, in the words of the studies' reader."""

    def sweep(self, given: dict[str, Any], text: bytes) -> Sweep:
        known = {"name", "title", "design", *TOP, *PARAMETERS}
        self.only(given, sorted(known), "a sweep")
        name, title = self.named(given)
        kind = self.one_of(given, "design", KINDS)
        top = {key: self.top(given, key, kind) for key in TOP}
        values, shape = {}, []
        for table, usual in PARAMETERS.items():
            here = self.table(given, table) if table in given else {}
            wanted = usual | self.brought(table, here)
            self.only(here, wanted, table, f"{table}.")
            values |= {
                key: self.axis(kind, f"{table}.{key}", one, here.get(key, one.default))
                for key, one in wanted.items()
            }
            shape += [key for key, one in wanted.items() if not one.per_pair and key not in SHAPE]
        made = Sweep(
            name,
            title,
            kind,
            **top,
            values=values,
            shape=(*SHAPE, *shape),
            text=text,
        )
        self.check_size(made)
        return made

    def top(self, given: dict[str, Any], key: str, kind: str) -> Any:
        if key == "points" and kind == "grid":
            if key in given:
                raise self.refuse(
                    key,
                    "points must be left out of a grid, which has one for every combination",
                    given[key],
                )
            return None
        usual = TOP[key].default
        value = given.get(key, MISSING if usual is None else usual)
        self.value(key, value, TOP[key], key)
        return value

    def brought(self, table: str, here: dict[str, Any]) -> dict[str, Field]:
        """The parameters of the laws or policies that a design names."""
        found: dict[str, Field] = {}
        word = PARAMETERS[table].get(table)
        if word is None:
            return found
        names = self.axis("grid", f"{table}.{table}", word, here.get(table, word.default))
        assert isinstance(names, tuple)
        for name in names:
            for one in (each.at("sweep") for each in word.among.get(name).parameters):
                if found.get(one.name, one) != one or (
                    one.name in TAKEN and PARAMETERS[table].get(one.name) != one
                ):
                    raise self.refuse(
                        f"{table}.{table}",
                        f"parameters of {table} {name!r} must have names of their own in a sweep",
                        Words(f"{one.name!r} is taken"),
                    )
                found[one.name] = one
        return found

    def axis(self, kind: str, path: str, one: Field, given: Any) -> tuple[Any, ...] | Range:
        """The values of one parameter: one, several, or a range."""
        name = path.partition(".")[2]
        if isinstance(given, dict):
            return self.range(kind, path, one, given)
        entries = given if isinstance(given, list) else [given]
        if not entries or len({repr(entry) for entry in entries}) < len(entries):
            raise self.refuse(path, f"{name} must be a value or a list of different values", given)
        for entry in entries:
            self.value(name, entry, one, path)
        return tuple(map(one.check, entries))

    def range(self, kind: str, path: str, one: Field, given: dict[str, Any]) -> Range:
        name = path.partition(".")[2]
        if kind == "grid" or not one.per_pair:
            why = "in a grid" if kind == "grid" else "because each value is compiled by itself"
            raise self.refuse(path, f"{name} must be a value or a list {why}", given)
        low, high, log = given.get("from"), given.get("to"), given.get("log", False)
        if (
            not given.keys() <= {"from", "to", "log"}
            or not isinstance(log, bool)
            or not finite(low)
            or not finite(high)
        ):
            raise self.refuse(
                path,
                f"{name} must be written as {{ from = ..., to = ... }}, with log = true or without",
                given,
            )
        for end in (low, high):
            self.value(name, end, one, path)
        if not low < high or (log and low <= 0):  # pyright: ignore[reportOptionalOperand]
            raise self.refuse(
                path,
                f"{name} must go from less to more{', and from above 0 in the logarithm' * log}",
                given,
            )
        return Range(float(low), float(high), log)  # pyright: ignore[reportArgumentType]

    def check_size(self, made: Sweep) -> None:
        total = made.trials * (1 + made.flips) * (made.points or 1)
        for name in made.values if made.kind == "grid" else ():
            total *= len(made.values[name])  # pyright: ignore[reportArgumentType]
        if total > MOST:
            raise self.refuse(
                "trials", f"a sweep must have at most {MOST} cases", Words(f"it has {total}")
            )
        shapes = prod(len(made.values[name]) for name in made.shape)  # pyright: ignore[reportArgumentType]
        if shapes > PROGRAMS:
            raise self.refuse(
                "network",
                f"a sweep must have at most {PROGRAMS} compiled shapes",
                Words(f"it has {shapes}"),
            )
