"""Ranges of the parameters of a design.

Outside of these ranges round-off or overflow would be measured, and not the study.
"""

from collections.abc import Callable
from dataclasses import dataclass
from sys import float_info
from typing import Any, TypeGuard

LONGEST = 1000  # entries of a list


@dataclass(frozen=True)
class Rule:
    """What a value may be.

    Attributes:
        words: The rule, as it follows "must".
        ends: The ends of the range of its numbers.
        allows: Whether it allows a value, which may be anything.
    """

    words: str
    ends: tuple[float, float]
    allows: Callable[[Any], bool]


def whole(low: int, high: int, multiple: int = 1) -> Rule:
    """A whole number."""
    words = f"be a whole number from {low} to {high}" if low < high else f"be {low}"
    words += f", a multiple of {multiple}" if multiple > 1 else ""
    return Rule(
        words,
        (low, high),
        lambda value: _whole(value) and low <= value <= high and value % multiple == 0,
    )


def real(low: float, high: float) -> Rule:
    """A number."""
    words = f"be a number from {low:g} to {high:g}"
    return Rule(words, (low, high), lambda value: _real(value) and low <= value <= high)


def wholes(low: int, high: int) -> Rule:
    """A list of different whole numbers."""
    return Rule(
        f"be a list of different whole numbers from {low} to {high}",
        (low, high),
        lambda value: (
            _different(value) and all(_whole(one) and low <= one <= high for one in value)
        ),
    )


def reals(low: float, high: float, least: int = 1) -> Rule:
    """A list of different numbers, at least so many."""
    many = f"at least {least} " if least > 1 else ""
    return Rule(
        f"be a list of {many}different numbers from {low:g} to {high:g}",
        (low, high),
        lambda value: (
            _different(value) and len(value) >= least and all(low <= one <= high for one in value)
        ),
    )


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _real(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= float_info.max
    )


def _different(value: object) -> TypeGuard[list[float]]:
    return (
        isinstance(value, list)
        and 0 < len(value) <= LONGEST
        and all(map(_real, value))
        and len(set(value)) == len(value)
    )


COMPOSITION = Rule(
    "be three numbers of at least 0.001 that sum to 1",
    (1e-3, 1.0),
    lambda value: (
        isinstance(value, list)
        and len(value) == 3
        and all(_real(one) and one >= 1e-3 for one in value)
        and abs(sum(value) - 1) < 1e-12
    ),
)
FRACTIONS = Rule(
    "be three different numbers from 0 to 1 of which the first is 1",
    (0.0, 1.0),
    lambda value: (
        _different(value)
        and len(value) == 3
        and value[0] == 1
        and all(0 <= one <= 1 for one in value)
    ),
)
