"""One declaration for a value that a user gives: what it may be, and what it means.

A `Field` describes a parameter of a law, an entry of a design file, a setting of a page or an
option of a command. It checks Python values and reads text, and all its refusals have one form:
*argument* must be *rule*, but it is *value*. This module imports neither JAX nor NumPy.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from sys import float_info
from typing import Any

LONGEST = 1000  # entries of a list
BEYOND = 2**63  # what no index can hold
DECIMAL = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
WHOLE = re.compile(r"[-+]?[0-9]{1,19}")


class Words(str):
    """The end of a refusal in words, where it is not a value that was given."""


MISSING = Words("it is missing")


def shown(value: Any) -> str:
    """A value as it was given, in one line and cut to what fits into a sentence.

    Examples:
        >>> from whorl import fields
        >>> fields.shown("a" * 100)[-5:]
        'aa...'
    """
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole number of more than some thousand digits
        return "a very long number"
    return text if len(text) <= 80 else text[:77] + "..."


def but(rule: str, value: Any) -> str:
    """A rule and what was given instead, as one end of a sentence.

    Examples:
        >>> from whorl import fields
        >>> fields.but("seed must be at least 0", -1)
        'seed must be at least 0, but it is -1'
    """
    return f"{rule}, but {value if isinstance(value, Words) else f'it is {shown(value)}'}"


def finite(value: Any) -> bool:
    """Whether a value is a finite number that a double can hold.

    Examples:
        >>> from whorl import fields
        >>> fields.finite(1.0), fields.finite(float("nan")), fields.finite(True)
        (True, False, False)
    """
    if whole(value):
        return abs(int(value)) <= float_info.max
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def whole(value: Any) -> bool:
    """Whether a value is a whole number, written as one.

    Examples:
        >>> from whorl import fields
        >>> fields.whole(1), fields.whole(1.0), fields.whole(True)
        (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def _three(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 3 and all(map(finite, value))


# Lists with a rule of their own. No part of a composition is so small that round-off decides what
# it becomes.
SPECIAL: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "composition": (
        "three numbers of at least 0.001 that sum to 1",
        lambda value: _three(value) and min(value) >= 1e-3 and abs(sum(value) - 1) < 1e-12,
    ),
    "fractions": (
        "three different numbers from 0 to 1 of which the first is 1",
        lambda value: (
            _three(value)
            and len(set(value)) == 3
            and value[0] == 1
            and 0 <= min(value) <= max(value) <= 1
        ),
    ),
    "proportions": (
        "three positive numbers, none below 1e-4 of their sum",
        lambda value: (
            _three(value)
            and min(value) > 0
            and max(value) <= 1e6
            and min(value) >= 1e-4 * sum(value)
        ),
    ),
}
LISTS = ("numbers", "wholes", *SPECIAL)


@dataclass(frozen=True)
class Field:
    """What a value may be, and what it means.

    Args:
        name: What it is called in designs, addresses and refusals.
        default: Its value where nothing is given; None where a value must be given.
        low: The least that a number may be, or the least number of characters of a text.
        high: The most that it may be.
        type: "number", "whole", "choice", "flag", "text", or a list: "numbers" or "wholes" (all
            different), "composition", "fractions" or "proportions" (three numbers each).
        above: What a number must exceed.
        below: What a number must stay below.
        multiple: What a whole number must be a multiple of.
        least: The least number of entries of a list.
        among: What a choice is made from: words, words with labels, or a registry.
        where: Of a registry only the entries that may be used there.
        argument: What the factory of an entry calls it, if not by its name.
        label: What it is called on a page, with its symbol.
        help: What it means, in a few words.
        unit: What it is measured in; most numbers here are pure ones.
        slider: From, to and step of its control on a page, if not its whole range in a hundred.
        per_pair: Whether it may differ from pair to pair of one compiled call.

    Examples:
        >>> from whorl.fields import Field
        >>> Field("leak", 0.1, 1e-6, 1e6, help="of the repair").rule
        'a number from 1e-06 to 1e+06'
        >>> Field("order", among=("permuted", "fixed"), type="choice").check("random")
        Traceback (most recent call last):
            ...
        ValueError: order must be one of permuted, fixed, but it is 'random'
    """

    name: str
    default: Any = None
    low: float | None = None
    high: float | None = None
    _: KW_ONLY
    type: str = "number"
    above: float | None = None
    below: float | None = None
    multiple: int = 1
    least: int = 1
    among: Any = ()
    where: str = ""
    argument: str = ""
    label: str = ""
    help: str = ""
    unit: str = ""
    slider: tuple[float, float, float] | None = None
    per_pair: bool = True

    def __post_init__(self) -> None:
        known = self.default is not None and isinstance(self.among, tuple)
        if known and (fault := self.fault(self.default)):
            raise ValueError(f"the default of {self.name} {fault}")

    @property
    def rule(self) -> str:
        """The rule in words, as it stands after "must be"."""
        if self.type in SPECIAL:
            return SPECIAL[self.type][0]
        if self.type == "choice":
            return f"one of {', '.join(word for word, _ in self.options)}"
        if self.type == "flag":
            return "true or false"
        if self.type == "text":
            return f"a text of {self.low} to {self.high} characters"
        what = "whole number" if self.type in ("whole", "wholes") else "number"
        if self.type in LISTS:
            many = f"at least {self.least} " if self.least > 1 else ""
            return f"a list of {many}different {what}s{self._span}"
        if self.low == self.high is not None:
            return f"{self.low:g}"
        if self.multiple > 1:
            return f"a multiple of {self.multiple}{self._span}"
        return f"a {what}{self._span}"

    @property
    def _span(self) -> str:
        """The range of a number, in words."""
        wide = "" if self.type in ("whole", "wholes") else "g"
        if self.low is not None and self.high is not None:
            return f" from {self.low:{wide}} to {self.high:{wide}}"
        ends = (
            ("of at least", self.low),
            ("greater than", self.above),
            ("of at most", self.high),
            ("less than", self.below),
        )
        told = [f"{words} {end:{wide}}" for words, end in ends if end is not None]
        return " " * bool(told) + " and ".join(told)

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The words of a choice, each with its label."""
        if isinstance(self.among, tuple):
            return tuple((one, one) if isinstance(one, str) else one for one in self.among)
        return tuple((one.name, one.label) for one in self.among.entries(where=self.where))

    @property
    def step(self) -> float:
        """How far the control of a number moves at once."""
        if self.type == "whole" or self.low is None or self.high is None:
            return 1
        return self.slider[2] if self.slider else (self.high - self.low) / 100

    def at(self, where: str) -> "Field":
        """The same field with only those entries of its registry that may be used there."""
        return self if isinstance(self.among, tuple) else replace(self, where=where)

    def allows(self, value: Any) -> bool:
        """Whether a value keeps the rule."""
        if isinstance(value, Words):
            return False
        if self.type in SPECIAL:
            return SPECIAL[self.type][1](value)
        if self.type == "choice":
            if isinstance(self.among, tuple):
                words = [one if isinstance(one, str) else one[0] for one in self.among]
                return isinstance(value, str) and value in words
            return self.among.has(value, where=self.where)
        if self.type == "flag":
            return isinstance(value, bool)
        if self.type == "text":
            return isinstance(value, str) and self._inside(len(value))
        if self.type in LISTS:
            return (
                isinstance(value, list | tuple)
                and self.least <= len(value) <= LONGEST
                and all(map(self._number, value))
                and len(set(value)) == len(value)
            )
        return self._number(value)

    def _number(self, value: Any) -> bool:
        if self.type in ("whole", "wholes"):
            return whole(value) and self._inside(value) and not value % self.multiple
        return finite(value) and self._inside(float(value))

    def _inside(self, value: Any) -> bool:
        return bool(
            (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (value <= self.high if self.high is not None else value < BEYOND or self._real)
        )

    @property
    def _real(self) -> bool:
        return self.type in ("number", "numbers")

    def fault(self, value: Any) -> str:
        """What is wrong with a value, as it follows its name; nothing where it is good."""
        huge = whole(value) and value >= BEYOND
        if self.allows(value):
            return ""
        rule: str = self.rule
        seen: Any = value
        if not isinstance(self.among, tuple) and not isinstance(value, Words):
            seen = Words(f"it is {self.among.unknown(value)}")
        if huge and self.type == "whole" and self.high is None:
            rule = "a whole number of at most 63 bits"
        return f"must be {but(rule, seen)}"

    def check(self, value: Any, name: str = "") -> Any:
        """A value that keeps the rule.

        Args:
            value: What was given.
            name: What a refusal calls it, if not by the name of the field.

        Returns:
            The value as plain Python: a float for a number, a tuple for a list.

        Raises:
            ValueError: In one sentence with the name, the rule and the value.
        """
        if fault := self.fault(value):
            raise ValueError(f"{name or self.name} {fault}")
        if self.type in LISTS:
            return tuple(int(one) if self.type == "wholes" else float(one) for one in value)
        return {"number": float, "whole": int}.get(self.type, lambda same: same)(value)

    def read(self, text: str, name: str = "") -> Any:
        """A value from text, such as a part of an address or an argument of a command."""
        value: Any = text
        if self.type in LISTS:
            parts = [_read(part.strip(), self.type == "wholes") for part in text.split(",")]
            value = text if any(isinstance(one, str) for one in parts) else parts
        elif self.type in ("number", "whole"):
            value = _read(text, self.type == "whole")
        elif self.type == "flag":
            value = {"true": True, "false": False}.get(text, text)
        return self.check(value, name)

    def write(self, value: Any) -> str:
        """A value as text that `read` takes."""
        if self.type in LISTS:
            return ",".join(map(decimal, value))
        if self.type == "flag":
            return str(value).lower()
        return value if isinstance(value, str) else decimal(value)

    def __str__(self) -> str:
        if self.type not in ("number", "whole"):
            return f"{self.name} = {self.default}"
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name} = {self.default:g}{unit} ({self.low:g} to {self.high:g})"


def choice(name: str, value: Any, words: Iterable[str]) -> Any:
    """A word of a list.

    Examples:
        >>> from whorl import fields
        >>> fields.choice("theme", "light", ["light", "dark"])
        'light'
    """
    return Field(name, type="choice", among=tuple(words)).check(value)


SEED = Field("seed", low=0, high=2**63 - 1, type="whole")


def decimal(value: float) -> str:
    """A number in its fewest digits.

    Examples:
        >>> from whorl import fields
        >>> fields.decimal(0.1), fields.decimal(3.0)
        ('0.1', '3')
    """
    return f"{value:.15g}" if float(f"{value:.15g}") == value else repr(value)


def _read(text: str, only_whole: bool) -> float | str:
    """A plain decimal number, or the text itself, which is then refused."""
    # The length comes first: it bounds the time that the pattern takes.
    if len(text) > 40:
        return text
    if only_whole:
        return int(text) if WHOLE.fullmatch(text) else text
    value = float(text) if DECIMAL.fullmatch(text) else math.nan
    return value if math.isfinite(value) else text
