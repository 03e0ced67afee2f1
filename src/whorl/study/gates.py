"""The evaluator: a study passes when every gate holds, and a failed one stays failed."""

import operator
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from whorl.study.design import Design, Gate

TESTS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


def evaluate(gate: Gate, statistics: dict[str, float]) -> dict[str, Any]:
    """One gate against the statistics of a run.

    The margin is how far inside its bound the value lies.

    A statistic that the run does not have meets no bound.

    Examples:
        >>> from whorl.study import gates
        >>> from whorl.study.design import Gate
        >>> gates.evaluate(Gate("few errors", "errors", "<", 10.0, "own"), {"errors": 3.0})[
        ...     "passed"
        ... ]
        True
    """
    value = statistics.get(gate.statistic)
    if value is None:
        return asdict(gate) | {"value": None, "margin": None, "passed": False}
    inside = {"<": gate.bound - value, ">": value - gate.bound, "=": -abs(value - gate.bound)}
    passed = bool(TESTS[gate.relation](value, gate.bound))
    return asdict(gate) | {"value": value, "margin": inside[gate.relation[0]], "passed": passed}


def verdict(design: Design, statistics: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
    """PASS when all gates hold, else FAIL; and what each gate saw.

    Examples:
        >>> from whorl.study import design, gates
        >>> gates.verdict(design.shipped("threshold"), {})[0]
        'FAIL'
    """
    seen = [evaluate(gate, statistics) for gate in design.gates]
    return ("PASS" if all(gate["passed"] for gate in seen) else "FAIL"), seen
