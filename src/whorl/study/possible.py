"""Whether a design can pass at all: asked when it is registered, before anything is computed.

A gate on a statistic that its kind does not have, or on a count that its parameters cannot give,
fails whatever the networks do.
"""

import difflib
import re

from whorl.study import kinds, published
from whorl.study.design import Design
from whorl.study.gates import TESTS


def check(design: Design) -> None:
    """Refuse a design with a gate that no run of it can meet.

    Raises:
        ValueError: In one sentence with the gate, and what was probably meant.

    Examples:
        >>> from whorl.study import design, possible
        >>> possible.check(design.shipped("threshold"))
    """
    known = statistics(design)
    shapes = {_shape(name) for name in known}
    rows = kinds.get(design.kind).work(design.values()).rows
    for number, gate in enumerate(design.gates, 1):
        where = f"gate {number} ({gate.name})"
        if known and _shape(gate.statistic) not in shapes:
            close = difflib.get_close_matches(gate.statistic, known, 1, 0.4)
            meant = f": did you mean {close[0]}?" if close else f": it has {', '.join(known)}"
            raise ValueError(
                f"{where} must be on a statistic of a {design.kind} study, but it is on "
                f"{gate.statistic}{meant}"
            )
        made = rows.get(gate.statistic.removeprefix("rows."))
        if not gate.statistic.startswith("rows.") or made is None:
            continue
        if not TESTS[gate.relation](made, gate.bound):
            raise ValueError(
                f"{where} must fit the {made} {gate.statistic[5:]} that the parameters make, but "
                f"it asks for {gate.relation} {gate.bound:g}: write bound = {made}"
            )


def statistics(design: Design) -> list[str]:
    """The names of the statistics of a kind, where it ships what they were over many seeds."""
    if not kinds.file(design.kind, "distribution.parquet").is_file():
        return []
    return list(published.distribution(design.kind))


def _shape(name: str) -> str:
    """A name whatever the numbers in it: those of depths and horizons follow the parameters."""
    return re.sub(r"\d+(\.\d+)?", "#", name)
