"""The most work that a design may ask of the audit, by arithmetic on its parameters.

Known before anything is drawn or computed.
"""

from whorl_audit import foresight
from whorl_audit.keys import sizes
from whorl_audit.types import Parameters

ROWS = 100_000_000  # of the tables that decide how long an audit takes
DRAWS = 100_000_000  # numbers of a bootstrap
FORESEEN = 10**11  # updates that are looked ahead


def ceiling_fault(kind: str, p: Parameters) -> str | None:
    """The sentence where a design asks for more than any audit does."""
    asked = (
        ("rows in its tables", sum(sizes(kind, p).values()), ROWS),
        (
            "numbers in its bootstrap",
            p.get("resamples", 0) * p.get("families", p.get("trials", 0)),
            DRAWS,
        ),
        ("foreseen updates", _foreseen(p) if kind == "foresight" else 0, FORESEEN),
    )
    for what, count, most in asked:
        if count > most:
            return f"a study must have at most {most} {what} to be audited, but its design asks for {count}"
    return None


def _foreseen(p: Parameters) -> int:
    found = 0
    for arm in foresight.arms(p):
        length = foresight.updates(p, arm.width)
        ahead = sum(
            length if horizon == foresight.END else min(horizon + 1, length)
            for horizon in arm.horizons
        )
        found += (
            3 * len(p["betas"]) * len(p["scales"]) * len(arm.depths) * arm.trials * length * ahead
        )
    return found
