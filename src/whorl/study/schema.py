"""What a design may say: the parameters of each kind of study, and the rule for each."""

from collections.abc import Callable
from sys import float_info
from typing import Any

Check = Callable[[Any], bool]
Rule = tuple[str, Check]  # the words after "must be", and the test


def finite(value: Any) -> bool:
    """Whether a value is a finite number that a double can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number in a range."""
    words = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return words, lambda value: _whole(value) and value >= least and (most is None or value <= most)


def only(wanted: float) -> Rule:
    """One number and no other: what the paper fixes and the algebra of a study relies on."""
    return f"{wanted:g}", lambda value: finite(value) and value == wanted


def positive() -> Rule:
    """A number above zero."""
    return "a number greater than 0", lambda value: finite(value) and value > 0


def share() -> Rule:
    """A number above zero and at most one."""
    return "a number above 0 and at most 1", lambda value: finite(value) and 0 < value <= 1


def several(words: str, test: Check, least: int = 1) -> Rule:
    """A list without repetitions whose entries pass a test."""
    return (
        f"a list of {'' if least == 1 else f'at least {least} '}different {words}",
        lambda value: isinstance(value, list) and least <= len(value) <= 1000 and all(map(test, value)) and len(set(value)) == len(value),
    )


def composition() -> Rule:
    """Three positive numbers that sum to one."""
    return (
        "three positive numbers that sum to 1",
        lambda value: (
            isinstance(value, list) and len(value) == 3 and all(finite(v) and v > 0 for v in value) and abs(sum(value) - 1) < 1e-12
        ),
    )


def fractions() -> Rule:
    """Three fractions of a step, the whole one first."""
    return (
        "three different numbers from 0 to 1 of which the first is 1",
        lambda value: (
            isinstance(value, list)
            and len(value) == len(set(value)) == 3
            and value[0] == 1
            and all(finite(one) and 0 <= one <= 1 for one in value)
        ),
    )


SEED = whole(0, 2**63 - 1)
CHUNK: Rule = ("a multiple of 64", lambda value: _whole(value) and value > 0 and value % 64 == 0)
HORIZONS = several("whole numbers of at least -1", lambda value: _whole(value) and -1 <= value <= 1_000_000)
DEPTHS = several("whole numbers from 1 to 64", lambda value: _whole(value) and 1 <= value <= 64)
BETAS = several("numbers of at least 0", lambda value: finite(value) and value >= 0)
COMMON: dict[str, Rule] = {
    "seed": SEED,
    "depths": DEPTHS,
    "width": only(3),
    "mixtures": only(3),
    "concentration": positive(),
    "floor": share(),
}
PARAMETERS: dict[str, dict[str, Rule]] = {
    "structural": COMMON
    | {
        "families": whole(1, 100_000),
        "column_concentration": positive(),
        "alpha": positive(),
        "omegas": several("numbers of at least 0", lambda value: finite(value) and value >= 0),
        "updates": whole(1, 10_000),
        "step": positive(),
        "leak": positive(),
        "rank_tol": share(),
        "steps": several("numbers greater than 0", lambda value: finite(value) and value > 0, least=2),
        "negative_start": composition(),
        "negative_target": composition(),
        "positive_start": composition(),
        "positive_target": composition(),
    },
    "threshold": COMMON
    | {
        "bootstrap_seed": SEED,
        "families": whole(2, 100_000),
        "betas": BETAS,
        "finite_step": positive(),
        "resamples": whole(1, 1_000_000),
        "rank_tol": share(),
    },
    "horizon": COMMON
    | {
        "bootstrap_seed": SEED,
        "trials": whole(2, 100_000),
        "betas": BETAS,
        "scales": several("numbers above 0 and at most 1", lambda value: finite(value) and 0 < value <= 1),
        "epochs": whole(1, 1_000_000),
        "leak": positive(),
        "alpha": only(1),
        "omega": positive(),
        "resamples": whole(1, 1_000_000),
        "chunk": CHUNK,
    },
    "foresight": COMMON
    | {
        "bootstrap_seed": SEED,
        "trials": whole(2, 100_000),
        "betas": BETAS,
        "scales": several("numbers above 0 and at most 1", lambda value: finite(value) and 0 < value <= 1),
        "epochs": whole(1, 1_000_000),
        "leak": positive(),
        "alpha": only(1),
        "omega": positive(),
        "horizons": HORIZONS,
        "halves": fractions(),
        "quarters": fractions(),
        "robust_horizons": HORIZONS,
        "noises": several("numbers greater than 0", lambda value: finite(value) and value > 0),
        "omegas": several("numbers greater than 0", lambda value: finite(value) and value > 0),
        "deep": whole(1, 64),
        "wide": whole(3, 9),
        "wide_trials": whole(2, 100_000),
        "resamples": whole(1, 1_000_000),
        "chunk": CHUNK,
    },
}
ORIGINS = ("stated", "reading", "own")
RELATIONS = ("<", "<=", ">", ">=", "==")
