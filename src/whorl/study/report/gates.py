"""Gates with the margin by which each held or failed."""

import math
from typing import Any

from whorl.study.report.words import SIGNS, chosen, number, typeset


def rows(gates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The gates of a verdict as lines of the page's table, in the design's order."""
    return [
        gate
        | {
            "value": number(gate["value"]),
            "wanted": f"{SIGNS[gate['relation']]} {chosen(gate['bound'])}",
            "margin": margin(gate),
            "length": length(gate),
        }
        for gate in gates
    ]


def margin(gate: dict[str, Any]) -> str:
    """By how much, in words.

    As a number, and as a factor where the value is far below a small bound.
    """
    if gate["value"] is None:
        return "no such statistic"
    value, bound, size = gate["value"], gate["bound"], number(abs(gate["margin"]))
    if not gate["passed"]:
        return f"misses by {size}"
    if gate["relation"] == "==":
        return "met exactly"
    if gate["margin"] == 0:
        return "met, with nothing to spare"
    if gate["relation"][0] == "<" and bound > 0 and value == 0:
        return "zero"
    if gate["relation"][0] == "<" and bound > 0 and 0 < value <= bound / 10:
        return f"{_rounded(bound / value)} times below"
    return f"{size} to spare"


def length(gate: dict[str, Any]) -> float:
    """The margin as a share of the larger of value and bound, in per cent."""
    if gate["value"] is None:
        return 100.0
    scale = max(abs(gate["value"]), abs(gate["bound"]))
    share = abs(gate["margin"]) / scale if scale > 0 and math.isfinite(scale) else 0.0
    return round(100 * min(share, 1.0), 2)


def _rounded(factor: float) -> str:
    """A factor with two digits, such as 32, 680 000 or 4×10⁹."""
    if factor >= 1e6:
        return typeset(f"{factor:.0e}")
    digits = 1 - math.floor(math.log10(factor))
    return f"{int(round(factor, digits)):,}".replace(
        ",", "\u202f"
    )  # a thin space that does not break
