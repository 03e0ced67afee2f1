r"""Does a periodic signal drive the states?

A loop with white noise leaves over white noise. A periodic drive that nobody recorded leaves a line
in the spectrum, and a linear loop without a drive can only turn to follow it: a reciprocal learner
then seems to turn. The test is Fisher's, of the largest line: the power of what is left over, summed
over runs and states, at the frequencies of the longest run, each against the mean of its
neighbours. For white noise the ratio is that of two sums of squares (Fisher's F), and the neighbours
make it blind to noise that is not white but has no line. The smallest p-value of all frequencies
pays Sidak's price. A signal of fewer than three periods per run is not told from a drift.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from whorl.measured.estimate import sidak

LEVEL = 0.01  # chance that a series without a drive is said to have one
LEAST = 3  # periods in the longest run
SIDE = 8  # neighbours on each side that a line is compared with
NEAR = 1  # neighbours on each side into which a line leaks
SHORT = 0.5  # runs that are shorter than this share of the longest one are left out
FINE = 4  # points per usual step


@dataclass(frozen=True)
class Line:
    """The largest line in the spectrum of what a fit leaves over."""

    p: float  # that there is none
    period: float

    @property
    def seen(self) -> bool:
        """Whether a periodic signal drives the states."""
        return self.p <= LEVEL


def line(
    left: Sequence[Float[np.ndarray, "steps n"]], times: Sequence[Float[np.ndarray, "steps"]]
) -> Line:
    """Test for a line in what is left over of some runs, at the times of its steps."""
    usual = float(np.median(np.concatenate([np.diff(own) for own in times])))
    longest = float(max(own[-1] - own[0] for own in times)) + usual
    tested = np.arange(1, int(longest / usual / 2))
    if not len(tested):
        return Line(1.0, np.nan)
    power, sums = np.zeros(len(tested)), 0
    for own, when in zip(left, times, strict=True):
        if when[-1] - when[0] + usual > longest * SHORT:
            power += _power(own - own.mean(axis=0), (when - when[0]) / usual, longest / usual)[
                tested
            ]
            sums += own.shape[1]
    beside = np.ones(2 * SIDE + 1)
    beside[SIDE - NEAR : SIDE + NEAR + 1] = 0.0
    around, count = (
        np.convolve(own, beside)[SIDE : SIDE + len(tested)] for own in (power, np.ones(len(tested)))
    )
    fair = (tested >= LEAST) & (count >= SIDE / 2)
    if not fair.any():
        return Line(1.0, np.nan)
    ratio = power[fair] * count[fair] / np.maximum(around[fair], 1e-300)
    chance = stats.f.sf(ratio, 2 * sums, 2 * sums * count[fair])
    top = int(np.argmin(chance))
    return Line(sidak(float(chance[top]), int(fair.sum())), float(longest / tested[fair][top]))


def _power(
    away: Float[np.ndarray, "steps n"], when: Float[np.ndarray, "steps"], long: float
) -> Float[np.ndarray, "some"]:
    """The power at 0, 1, 2 ... periods in the longest run, summed over states.

    Times, in usual steps, may be uneven: each sample goes to the nearest point of a fine grid.
    """
    grid = np.zeros((round(FINE * long), away.shape[1]))
    np.add.at(grid, np.round(FINE * when).astype(int) % len(grid), away)
    return np.sum(np.abs(np.fft.rfft(grid, axis=0)) ** 2, axis=1) / len(when)
