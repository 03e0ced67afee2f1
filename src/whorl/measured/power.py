r"""How small a turn would this experiment have seen, and how many repeats would a smaller one take?

Let $u$ be the sum of the scores that a skew part of a given size would produce and $z$ what the
noise adds to it. If the whole series of measurements is run $k$ times, the test sees $\sqrt{k}\,u +
z$. Its power is the chance that this is larger than the noise alone is in one case of twenty. The
noise is drawn from the leftovers of the fit; the turn is drawn in all directions, because nobody
knows in which plane it will be.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from whorl.measured.estimate import Fit
from whorl.measured.flips import Test, gathered, metric, scores

DRAWS = 2000
TURNS = 50
MOST = 1e6  # times; nobody repeats a series more often


@dataclass(frozen=True)
class Power:
    """What the experiment can see."""

    chance: float  # the chance to be had
    size: float  # a skew part, as a share of the loop
    # how often the series must be run in all to see it; infinite where no number would do
    times: float
    power: float  # the chance that this experiment had of seeing it
    visible: (
        float  # the smallest share of the loop that this experiment would have seen; 1 where none
    )

    def more(self, repeats: int) -> int | None:
        """How many repeats beyond those there are; None where no number would do."""
        return (
            max(0, int(np.ceil((self.times - 1) * max(repeats, 1) - 1e-9)))
            if np.isfinite(self.times)
            else None
        )


def power(
    fit: Fit,
    test: Test,
    *,
    size: float = 0.1,
    chance: float = 0.8,
    level: float = 0.05,
    seed: int = 0,
) -> Power:
    """The power of the test against a skew part of `size` times the loop, and the repeats that
    would give it `chance`.
    """
    signal, noise = _drawn(fit, test, seed)
    whole = np.linalg.norm(fit.symmetric)

    def of(share: float, times: float) -> float:
        reach = whole * share / np.sqrt(1 - share**2)
        limit = np.quantile(np.sum(noise**2, axis=-1), 1 - level) * _blunt(
            test.groups, times, level
        )
        return float(
            np.mean(np.sum((np.sqrt(times) * reach * signal + noise) ** 2, axis=-1) >= limit)
        )

    if not np.any(noise) or not np.any(signal):  # no noise, nothing to wait for
        return Power(chance, size, 1.0, 1.0, 0.0)
    times = (
        1.0
        if of(size, 1.0) >= chance
        else _first(lambda tried: of(size, tried) >= chance, 1.0, MOST)
    )
    visible = _first(lambda tried: of(tried, 1.0) >= chance, 1e-9, 1 - 1e-9)
    return Power(chance, size, times, of(size, 1.0), min(visible, 1.0))


def _drawn(
    fit: Fit, test: Test, seed: int
) -> tuple[Float[np.ndarray, "draws planes"], Float[np.ndarray, "draws planes"]]:
    rng = np.random.default_rng([seed, 3])
    gram, leftover = gathered(fit.gram, test.labels), gathered(fit.leftover, test.labels)
    axes, weights = metric(fit.gram.sum(axis=0))
    one, other = np.triu_indices(fit.rank, k=1)
    # The fit has used up some of the noise.
    noisy = scores(gram, leftover) / np.sqrt(max(1.0 - fit.rank / fit.rows, 0.1))
    planes = (axes.T @ noisy @ axes)[:, one, other] * weights
    noise = rng.standard_normal((DRAWS, test.groups)) @ planes
    turns = np.zeros((TURNS, fit.rank, fit.rank))
    turns[:, one, other] = rng.standard_normal((len(turns), len(one)))
    turns = turns - turns.swapaxes(-1, -2)
    turns /= np.linalg.norm(turns, axis=(-2, -1), keepdims=True)
    seen = scores(gram, turns[:, None] @ gram).sum(axis=1)
    signal = (axes.T @ seen @ axes)[:, one, other] * weights
    return signal[np.arange(DRAWS) % len(turns)], noise


def _blunt(groups: int, times: float, level: float) -> float:
    # Few signs make a blunt test: the price is that of Student's t against the normal.
    return float(
        (stats.t.ppf(1 - level / 2, max(groups * times - 1, 1.0)) / stats.norm.ppf(1 - level / 2))
        ** 2
    )


def _first(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest value, to one part in a thousand, for which `enough` holds.

    Infinite where it does not hold at `high`.
    """
    if not enough(high):
        return float("inf")
    while high / low > 1.001:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)
