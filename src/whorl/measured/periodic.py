r"""Does a periodic signal drive the states?

A loop with white noise leaves over white noise. A periodic drive that nobody recorded leaves a line
in the spectrum, and a linear loop without a drive can only turn to follow it: a reciprocal learner
then seems to turn. The test is Fisher's, of the largest line: the power of what is left over, summed
over runs and states, at the frequencies of the longest run, each against its neighbours on that side
where they are stronger. They make the test blind to noise that is not white but has no line. The
smallest p-value of all frequencies pays Sidak's price. A signal of fewer than three periods per run is not told from a drift.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
    side = int(np.clip(len(tested) // 8, *SIDE))
    fair = tested[max(LEAST - 1, side + NEAR) : len(tested) - side - NEAR] - 1
    if not len(fair):
        return Line(1.0, np.nan)
    power, sums = np.zeros(len(tested)), 0
    for own, when in zip(left, times, strict=True):
        if when[-1] - when[0] + usual > longest * SHORT:
            power += _power(own - own.mean(axis=0), (when - when[0]) / usual, longest / usual)[
                tested
            ]
            sums += own.shape[1]
    # Of neighbours on both sides the stronger ones: a slope in the spectrum is not a line.
    total = np.concatenate([[0.0], np.cumsum(power)])
    before = total[fair - NEAR] - total[fair - NEAR - side]
    behind = total[fair + NEAR + 1 + side] - total[fair + NEAR + 1]
    ratio = power[fair] * side / np.maximum(np.maximum(before, behind), 1e-300)
    top = int(np.argmax(ratio))
    # The larger of two sums of squares, at many of its quantiles.
    usual_side = stats.chi2.ppf(np.sqrt((np.arange(4000) + 0.5) / 4000), 2 * sums * side)
    chance = float(np.mean(stats.chi2.sf(ratio[top] * usual_side / side, 2 * sums)))
    return Line(sidak(chance, len(fair)), longest / float(tested[fair[top]]))


def _power(
    away: Float[np.ndarray, "steps n"], when: Float[np.ndarray, "steps"], long: float
) -> Float[np.ndarray, "some"]:
    """The power at 0, 1, 2 ... periods in the longest run, summed over states.

    Times, in usual steps, may be uneven: each sample goes to the nearest point of a fine grid.
    """
    grid = np.zeros((round(FINE * long), away.shape[1]))
    np.add.at(grid, np.round(FINE * when).astype(int) % len(grid), away)
    return np.sum(np.abs(np.fft.rfft(grid, axis=0)) ** 2, axis=1) / len(when)
