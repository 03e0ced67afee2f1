"""Rules for values in a design: the words after "must be", and the test."""

from collections.abc import Callable
from typing import Any

from whorl.registry import Limit as Limit
from whorl.registry import between as between
from whorl.registry import finite as finite

Check = Callable[[Any], bool]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(least: int, most: int | None = None) -> Limit:
    """A whole number in a range."""
    words = (
        f"a whole number of at least {least}"
        if most is None
        else f"a whole number from {least} to {most}"
    )
    return words, lambda value: _whole(value) and value >= least and (most is None or value <= most)


def only(wanted: float) -> Limit:
    """One number and no other: what the paper fixes and the algebra of a study relies on."""
    test = _whole if isinstance(wanted, int) else finite
    return f"{wanted:g}", lambda value: test(value) and value == wanted


def several(words: str, test: Check, least: int = 1) -> Limit:
    """A list without repetitions whose entries pass a test."""
    return (
        f"a list of {'' if least == 1 else f'at least {least} '}different {words}",
        lambda value: (
            isinstance(value, list)
            and least <= len(value) <= 1000
            and all(map(test, value))
            and len(set(value)) == len(value)
        ),
    )


def many(low: float, high: float, least: int = 1) -> Limit:
    """A list of different numbers in a range."""
    return several(f"numbers from {low:g} to {high:g}", between(low, high)[1], least)


SEED = whole(0, 2**63 - 1)
WIDEST = 65_536
CHUNK: Limit = (
    f"a multiple of 64 from 64 to {WIDEST}",
    lambda value: _whole(value) and 0 < value <= WIDEST and value % 64 == 0,
)
SPREAD = between(1e-3, 1e6)  # of a Dirichlet distribution: from vertices to one point
