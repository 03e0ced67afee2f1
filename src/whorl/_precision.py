"""Round-off of sums, default tolerances, and verdicts within them.

Users ask for a tolerance. The precision and the condition of a problem limit what can be decided.
If that limit is coarser than the tolerance, the verdict is "cannot tell".
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

# a share of this size is round-off of well-conditioned double precision, and never worth a verdict
FINE = 1e-12
COARSE = 1e-3  # a round-off above this share hides more than a verdict may overlook
LARGE = 2**14  # entries of a layer that is worth leaving on its device
CANNOT_TELL = "cannot tell"


def noise(dtype: Any, *lengths: int) -> float:
    """The relative round-off of sums of these lengths, one behind the other, in one floating
    type.
    """
    return float(jnp.finfo(dtype).eps) * sum(lengths)


def tolerance(roundoff: float, fine: float = FINE) -> float:
    """The default tolerance, below which a share counts as zero.

    The round-off, but at least `fine` and at most `COARSE`.
    """
    return max(fine, min(roundoff, COARSE))


def judged(share: float, tol: float, roundoff: float, within: str, above: str) -> str:
    """The word for a share that is known up to `roundoff`.

    `within` or `above` the tolerance, or that it cannot be told.

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


def refuse_underflow(
    layers: Sequence[Array], rates: Sequence[Array], flows: Sequence[Array]
) -> None:
    """Refuse a state whose response is not zero but would be rounded to zero, or to a few digits.

    Of what a column contributes to K no entry exceeds rate x flow squared x the product of its two
    heaviest entries.
    """
    info = jnp.finfo(layers[0].dtype)
    enough = float(np.log(info.tiny) - np.log(info.eps))
    strongest = -np.inf
    for layer, rate, flow in zip(reversed(layers), reversed(rates), reversed(flows), strict=True):
        with np.errstate(divide="ignore"):
            through = np.log(np.asarray(rate, dtype=float)) + 2 * np.log(
                np.asarray(flow, dtype=float).max(axis=0)
            )
            best = int(np.argmax(through))
            # One strong column is enough, and the likeliest is that with most flow; only where it
            # fails are all looked at.
            strongest = max(
                strongest, float(through[best] + _log_heaviest(_column(layer, best))[0])
            )
            if strongest >= enough:
                return
            strongest = max(strongest, float(np.max(through + _log_heaviest(np.asarray(layer)))))
    if -np.inf < strongest < enough:
        raise ValueError(
            f"the response must be large enough for {layers[0].dtype}, but none of its entries "
            f"exceeds 1e{strongest / np.log(10):.0f}: "
            "the flows, rates or second heaviest entries of all columns are that close to zero"
        )


def _column(layer: Array, number: int) -> np.ndarray:
    """One column on the host; of a large layer nothing else is copied there."""
    seen = np.asarray(layer if layer.size < LARGE else jnp.take(layer, jnp.array([number]), axis=1))
    return seen[:, number : number + 1] if layer.size < LARGE else seen


def _log_heaviest(layer: np.ndarray) -> np.ndarray:
    """The logarithm of the product of the two heaviest entries of each column."""
    if layer.shape[0] < 2:
        return np.full(layer.shape[1], -np.inf)
    return np.log(np.partition(layer.astype(float), -2, axis=0)[-2:]).sum(axis=0)
