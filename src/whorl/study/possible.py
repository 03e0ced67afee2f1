"""Whether a design can pass at all: asked when it is registered, before anything is computed.

A gate on a statistic that its kind does not have, or on a count that its parameters cannot give,
fails whatever the networks do.
"""

import difflib
from itertools import product

from whorl.study import kinds
from whorl.study.design import Design
from whorl.study.gates import TESTS
from whorl.study.spec import PLACE


def check(design: Design) -> None:
    """Refuse a design with a gate that no run of it can meet.

    Raises:
        ValueError: In one sentence with the gate, and what was probably meant.

    Examples:
        >>> from whorl.study import design, possible
        >>> possible.check(design.shipped("threshold"))
    """
    known = statistics(design)
    rows = kinds.get(design.kind).work(design.values()).rows
    for number, gate in enumerate(design.gates, 1):
        where = f"gate {number} ({gate.name})"
        if known and gate.statistic not in known:
            close = difflib.get_close_matches(gate.statistic, known, 1, 0.4)
            meant = f": did you mean {close[0]}?" if close else f": it has {', '.join(known)}"
            raise ValueError(
                f"{where} must be on a statistic of this {design.kind} study, but it is on "
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


def statistics(design: Design, quick: bool = False) -> list[str]:
    """The names of all statistics that a run of a design has, from `spec.toml` of its kind.

    `{depths}` in a name stands for every value of that parameter, and a negative one, which means
    "to the end", has a name of its own.

    Examples:
        >>> from whorl.study import design, possible
        >>> "condition.median.depth6" in possible.statistics(design.shipped("structural"))
        True
    """
    values, found = vars(design.values(quick)), []
    for line in kinds.get(design.kind).known:
        names = PLACE.findall(line)
        for chosen in product(*([one for one in values[name] if one >= 0] for name in names)):
            found.append(line.format(**dict(zip(names, chosen, strict=True))))
    return found
