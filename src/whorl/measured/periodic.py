r"""Does a periodic signal drive the states?

A loop with white noise leaves over white noise. An unrecorded periodic drive leaves a line
in the spectrum, and a linear loop without a drive can only turn to follow it: a reciprocal learner
then seems to turn. The test is Fisher's, of the largest line: the power of what is left over, summed
over runs and states, at the frequencies of the longest run, each against its neighbours on that side
where they are stronger. They make the test blind to noise that is not white but has no line. The
smallest p-value of all frequencies pays Sidak's price. A signal of fewer than three periods per run is not told from a drift.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy import stats

from whorl.measured.estimate import sidak

LEVEL = 0.01  # chance that a series without a drive is said to have one
LEAST = 3  # periods in the longest run
SIDE = (2, 12)  # neighbours on each side that a line is compared with: an eighth of all
NEAR = 1  # neighbours on each side into which a line leaks
SHORT = 0.5  # runs that are shorter than this share of the longest one are left out
FINE = 4  # points per usual step


@dataclass(frozen=True)
class Line:
    """The largest line in the spectrum of what a fit leaves over."""

    p: float  # of the hypothesis "no line"
    period: float

    @property
    def seen(self) -> bool:
        """Whether a periodic signal drives the states."""
        return self.p <= LEVEL


def line(left: Sequence[Float[np.ndarray, "_ n"]], times: Sequence[Float[np.ndarray, "_"]]) -> Line:
    """Test for a line in what is left over of some runs, at the times of its steps."""
    usual = float(np.median(np.concatenate([np.diff(own) for own in times])))
    longest = float(max(own[-1] - own[0] for own in times)) + usual
    many = int(longest / usual / 2) - 1  # frequencies below half a cycle per step
    fair = np.arange(LEAST, many - NEAR)
    if not len(fair):
        return Line(1.0, np.nan)
    power, sums = np.zeros(many + 1), 0
    for own, when in zip(left, times, strict=True):
        if when[-1] - when[0] + usual > longest * SHORT:
            away = own - own.mean(axis=0)
            power += _power(away, (when - when[0]) / usual, longest / usual)[: many + 1]
            sums += own.shape[1]
    # Of neighbours on both sides the stronger ones: a slope in the spectrum is not a line.
    side = int(np.clip(many // 8, *SIDE))
    total = np.concatenate([[0.0, 0.0], np.cumsum(power[1:])])  # before every frequency
    first, last = np.maximum(fair - NEAR - side, 1), np.minimum(fair + NEAR + side, many)
    counts = np.stack([fair - NEAR - first, last - fair - NEAR], axis=1)
    sides = np.stack(
        [total[fair - NEAR] - total[first], total[last + 1] - total[fair + NEAR + 1]], 1
    )
    ratio = power[fair] / np.maximum((sides / counts).max(axis=1), 1e-300)
    chance = np.ones(len(fair))
    for count in np.unique(counts, axis=0):
        own = (counts == count).all(axis=1)
        free = 2 * sums * count
        chance[own] = _chance(ratio[own], 2 * sums, (int(free[0]), int(free[1])))
    top = int(np.argmin(chance))
    return Line(sidak(float(chance[top]), len(fair)), longest / float(fair[top]))


def _chance(
    ratio: Float[np.ndarray, "some"], own: int, sides: tuple[int, int]
) -> Float[np.ndarray, "some"]:
    """How often white noise exceeds so many times the stronger of two means beside it.

    Of ratios with the same neighbours only the largest counts.
    """
    most = ratio.max()
    top = np.mean(stats.chi2.sf(own * most * _stronger(*sides), own))
    return np.where(ratio == most, top, 1.0)


@lru_cache(maxsize=64)
def _stronger(one: int, other: int) -> Float[np.ndarray, "quantiles"]:
    """Quantiles of the larger of two means of squares, with so many degrees of freedom."""
    grid, sides = np.geomspace(1e-3, 30.0, 4000), np.array([one, other])
    below = stats.chi2.cdf(grid[:, None] * sides, sides).prod(axis=1)
    return np.interp((np.arange(1000) + 0.5) / 1000, below, grid)


def _power(
    away: Float[np.ndarray, "steps n"], when: Float[np.ndarray, "steps"], long: float
) -> Float[np.ndarray, "some"]:
    """The power at 0, 1, 2 ... periods in the longest run, summed over states.

    Times, in usual steps, may be uneven: each sample goes to the nearest point of a fine grid.
    """
    grid = np.zeros((round(FINE * long), away.shape[1]))
    np.add.at(grid, np.round(FINE * when).astype(int) % len(grid), away)
    return np.sum(np.abs(np.fft.rfft(grid, axis=0)) ** 2, axis=1) / len(when)
