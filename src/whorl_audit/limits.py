"""Limits on the work of an audit, by arithmetic on the parameters of a design.

Known before anything is drawn or computed.
"""

from whorl_audit.kinds import Kind
from whorl_audit.types import Parameters

ROWS = 100_000_000  # of the tables that decide how long an audit takes
DRAWS = 100_000_000  # numbers of a bootstrap


def ceiling_fault(kind: Kind, p: Parameters) -> str | None:
    """The sentence where a design asks for more than any audit does."""
    units = p.get("families", p.get("trials", 0))
    asked = (
        ("rows in its tables", sum(kind.sizes(p).values()), ROWS),
        ("numbers in its bootstrap", p.get("resamples", 0) * units, DRAWS),
        *kind.work(p),
    )
    for what, count, most in asked:
        if count > most:
            return (
                f"a study must have at most {most} {what} to be audited, but its design asks for "
                f"{count}"
            )
    return None
