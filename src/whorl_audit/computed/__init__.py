"""What the seed and the physics alone determine.

Drawn and computed columns, from the parameters of a design.

Nothing here reads a table, so one recomputation serves every audit of the same design; it is kept.
The tolerances:

- drawn: 1e-12 of the value. The numbers are redrawn; a softmax or a sum may differ in its last bits
  between machines.
- computed: 1e-11 of the natural size of the quantity (its own, or that of the vector it is a
  component of): two digits above the largest difference from the registered runs, and five below
  the smallest change that must be found.
- what a solve gives: the same times 1 + g / 1000, where the solve amplifies a residual at most g
  times (1 / leak, or 1 / smallest eigenvalue of K*): its round-off enters so often. In the
  registered designs g stays below 400.
- reciprocal trajectories of the structural kind: the same, or what noise of 1e-13 on every update
  does to ours, where that is more: condition, leak, step and the smallest weights decide it
  together. A millionth is the most. Beyond, no digit is left, and the claim fails.
- condition numbers: round-off of a singular value is relative to the largest, so that digits are
  lost with the root of the condition.

A tolerance may be larger than the bound of a gate on what two such columns leave of an identity.
Such statistics are therefore judged by themselves: `values.roundoff` compares them with what our
own columns leave, and every gate must hold for our own numbers too.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from whorl_audit.computed import foresight, horizon, structural, threshold
from whorl_audit.types import Columns, Parameters

_KINDS: dict[str, Callable[[Parameters], dict[str, Columns]]] = {
    "structural": structural.expected,
    "threshold": threshold.expected,
    "horizon": horizon.expected,
    "foresight": foresight.expected,
}


@lru_cache(maxsize=8)
def _recompute(kind: str, text: str) -> dict[str, Columns]:
    return _KINDS[kind](json.loads(text))


def recompute(kind: str, parameters: dict[str, Any]) -> dict[str, Columns]:
    """Every drawn and computed column, by table; recomputed once for every design."""
    return _recompute(kind, json.dumps(parameters, sort_keys=True))
