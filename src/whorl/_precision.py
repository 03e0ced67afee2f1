"""What a precision can tell: how large round-off may be, and when a number drowns in it.

A tolerance asks for something; the precision and the condition of a problem say what can be had. Where the second is coarser than the
first there is no answer, and none is given.
"""

from typing import Any

import jax.numpy as jnp

FINE = 1e-12  # a share of this size is round-off of well-conditioned double precision, and never worth a verdict
COARSE = 1e-3  # a round-off above this share hides more than a verdict may overlook
CANNOT_TELL = "cannot tell"


def noise(dtype: Any, *lengths: int) -> float:
    """The relative round-off of sums of these lengths, one behind the other, in one floating type."""
    return float(jnp.finfo(dtype).eps) * sum(lengths)


def tolerance(roundoff: float, fine: float = FINE) -> float:
    """What counts as nothing where nobody says: the round-off, but at least `fine` and at most `COARSE`."""
    return max(fine, min(roundoff, COARSE))


def judged(share: float, tol: float, roundoff: float, within: str, above: str) -> str:
    """The word for a share that is known up to `roundoff`: `within` or `above` the tolerance, or that it cannot be told.

    Examples:
        >>> from whorl import _precision
        >>> [_precision.judged(share, 1e-6, 1e-6, "still", "turns") for share in (1e-8, 5e-7, 2e-6)]
        ['still', 'cannot tell', 'turns']
        >>> _precision.judged(0.7, 1e-3, 25.0, "still", "turns")
        'cannot tell'
    """
    if not share <= max(tol, roundoff):
        return above
    # A share comparable with its own round-off speaks for neither side.
    return within if roundoff <= tol and share + roundoff <= 1.25 * tol else CANNOT_TELL
