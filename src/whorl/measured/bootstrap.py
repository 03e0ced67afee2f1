r"""Intervals by a wild bootstrap over units.

The fit is linear in the noise: what every unit's noise has added to the estimate, its influence,
is known from its leftover. A replicate gives every unit a random sign and adds the sum to the
estimate. Rows of one repeat share their sign, so whatever they have in common stays in common; the
design stays what it was, so no replicate is ever singular.

The skew part is a size, which noise makes larger and which cannot be below zero. Its interval holds
every share $\delta$ that is not rejected: the loop with that share, noise added, has a share as
small as the observed one in at least $a(\delta)$ of the replicates and as large in at least
$5\,\% - a(\delta)$. Near zero all of the five per cent lies above, because nothing lies below; far
from it they are shared alike. Were $\delta$ true, then what the estimate has beyond it would be
noise, and every unit's part of it is counted as such: random signs then know by themselves how badly
few units know their own scatter.

Limits follow the tests, so that a verdict never stands beside an interval that denies it. The
interval of the skew part reaches zero exactly where the test of "symmetric" does not reject, that
of a rotation exactly where the test of "real eigenvalues" does not (`turning`), and all of them
belong to the level of the verdict.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float
from scipy import optimize, stats

from whorl.measured.estimate import Estimated, Matrix, crossing, sidak
from whorl.measured.turning import Turning

REPLICATES = 999


@dataclass(frozen=True)
class Interval:
    """An estimate and the range that holds the truth in 95 of 100 experiments, or at another level.

    Examples:
        >>> from whorl import measured
        >>> measured.Interval(estimate=1.0, low=0.8, high=1.3).high
        1.3
    """

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Mode:
    """One eigenvalue of the loop, or a conjugate pair."""

    decay: Interval
    rotation: Interval  # rad per unit time; 0 for a mode that does not turn
    cloud: Complex[np.ndarray, "replicates"]  # the eigenvalue in every replicate


@dataclass(frozen=True)
class Intervals:
    """What the replicates say about everything that is read off the loop."""

    index: Interval
    skewness: Interval
    modes: tuple[Mode, ...]
    replicates: Float[np.ndarray, "replicates n n"]

    @property
    def rotation(self) -> Interval | None:
        """The fastest rotation, of the modes that surely turn where there are any."""
        found = [mode.rotation for mode in self.modes if mode.rotation.estimate > 0]
        return max(found, key=lambda one: (one.low > 0, one.estimate), default=None)


def intervals(
    fit: Estimated,
    spun: Turning | None = None,
    *,
    zero: bool = False,
    test: Callable[[float], float] | None = None,
    alpha: float = 0.05,
    tried: int = 1,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Intervals:
    """Intervals for index, skew part, decay and rotation rates.

    Args:
        fit: the estimated loop.
        spun: the test of its eigenvalues; rotation rates have the limits that it does not reject.
        zero: whether "symmetric" is not rejected, so that skew part and rotation may be zero.
        test: the p-value of "symmetric" once a part of the skew part, from 0 to 1, is taken away.
        alpha: the level of the verdict, which is the chance that an interval misses the truth.
        tried: how many loops the verdict looks at.
        replicates: of the bootstrap.
        seed: of the random signs.
    """
    flips = signs(len(fit.influence), replicates, seed)
    loops = fit.loop + np.tensordot(flips, fit.wary, axes=1)
    reach = float(stats.t.ppf(1 - alpha / 2, fit.free))
    skew = share(fit, flips, zero=zero, test=test, alpha=alpha, tried=tried)
    index = Interval(fit.index, 1 - skew.high**2, 1 - skew.low**2)
    clouds = matched(fit.eigenvalues, np.linalg.eigvals(loops))
    modes = []
    for value, cloud in zip(fit.eigenvalues, clouds.T, strict=True):
        if value.imag < 0:
            continue
        # A conjugate pair is one mode; which of the two a replicate was paired with is the same.
        decay, rotation = np.real(cloud), np.abs(np.imag(cloud))
        spread = _interval(value.imag, rotation, reach)
        if spun is not None and value.imag > 0:
            low, high = spun.rates(value, alpha, tried)
            spread = Interval(float(value.imag), low, high)
        elif spun is not None and spun.complex <= alpha:
            spread = Interval(0.0, 0.0, 0.0)
        spread = Interval(spread.estimate, 0.0 if zero else spread.low, spread.high)
        cloud = decay + 1j * rotation
        modes.append(Mode(_interval(value.real, decay, reach), spread, cloud))
    return Intervals(index, skew, tuple(modes), loops)


def share(
    fit: Estimated,
    flips: Float[np.ndarray, "replicates units"],
    *,
    zero: bool = False,
    test: Callable[[float], float] | None = None,
    alpha: float = 0.05,
    tried: int = 1,
) -> Interval:
    """The interval of the skew part, as a share of the loop, by inverting its test."""
    if not np.any(fit.influence):
        return Interval(fit.skewness, 0.0 if zero else fit.skewness, fit.skewness)
    straight, turned = (
        part / max(np.linalg.norm(part), 1e-300) for part in (fit.symmetric, fit.skew)
    )
    noise = np.tensordot(flips, fit.wary, axes=1)
    even, odd = (noise + noise.swapaxes(1, 2)) / 2, (noise - noise.swapaxes(1, 2)) / 2
    along, beside = np.sum(even * straight, axis=(1, 2)), np.sum(even**2, axis=(1, 2))
    within, across = np.sum(odd * turned, axis=(1, 2)), np.sum(odd**2, axis=(1, 2))
    # Noise in other planes makes the skew part longer.
    across = np.maximum(across - within**2, 0.0)
    own = np.sqrt(max(np.sum(fit.skew**2) - np.mean(across), 0.0))
    seen, size, more = fit.skewness, fit.clean, flips @ fit.told(turned)

    def drawn(part: float) -> np.ndarray:
        whole = size * part / np.sqrt(1 - part**2)
        skew = (whole + within + (own - whole) * more) ** 2 + across
        return np.sqrt(skew / (size**2 + 2 * size * along + beside + skew))

    large = np.quantile(drawn(0.0), 1 - alpha)

    def tails(part: float) -> tuple[float, float]:
        shares = drawn(part)
        low = alpha / 2 * np.clip((np.mean(shares >= large) - alpha) / (1 - alpha), 0.0, 1.0)
        return float(np.mean(shares <= seen) - low), float(np.mean(shares >= seen) - alpha + low)

    low = 0.0
    if not zero and tails(0.0)[1] < 0:
        low = crossing(lambda part: tails(part)[1] >= 0, 0, seen)
    elif test is not None and not zero:  # the test rejects what this statistic does not
        kept = crossing(lambda part: sidak(test(part), tried) > alpha, 0.0, 1.0) * seen
        low = float(kept / np.sqrt(1 - seen**2 + kept**2))
    high = crossing(lambda part: tails(part)[0] < 0, seen, 1 - 1e-9)
    return Interval(seen, min(low, seen), max(high, seen))


def signs(units: int, replicates: int, seed: int) -> Float[np.ndarray, "replicates units"]:
    """Random signs of the units."""
    return 2.0 * np.random.default_rng([seed, 2]).integers(0, 2, (replicates, units)) - 1.0


def matched(
    values: Complex[np.ndarray, "n"], drawn: np.ndarray
) -> Complex[np.ndarray, "replicates n"]:
    """Give every replicate's eigenvalues the order of the estimate's.

    The pairing with the least sum of squared distances.
    """
    drawn = drawn.astype(complex)
    away = np.abs(values[:, None] - drawn[:, None, :]) ** 2
    if len(values) <= 4:  # few enough to try every order
        orders = np.array(list(itertools.permutations(range(len(values)))))
        costs = np.sum(away[:, np.arange(len(values)), orders], axis=-1)
        return np.take_along_axis(drawn, orders[np.argmin(costs, axis=1)], axis=1)
    return np.stack(
        [
            row[optimize.linear_sum_assignment(cost)[1]]
            for row, cost in zip(drawn, away, strict=True)
        ]
    )


def _interval(estimate: float, drawn: np.ndarray, reach: float) -> Interval:
    # Efron's bias correction: noise makes rotation rates larger, in the replicates once more than
    # in the estimate.
    below = np.clip(np.mean(drawn < estimate) + np.mean(drawn == estimate) / 2, 0.02, 0.98)
    # Student's quantile, because few units know their own scatter badly.
    shift = 2 * stats.norm.ppf(below)
    low, high = np.quantile(drawn, stats.norm.cdf([shift - reach, shift + reach]))
    return Interval(float(estimate), float(min(low, estimate)), float(max(high, estimate)))


def ellipse(
    cloud: Complex[np.ndarray, "replicates"], level: float = 0.95
) -> tuple[float, float, float]:
    """Width, height and angle in degrees of the ellipse that holds `level` of a normal cloud of
    eigenvalues.
    """
    spread: Matrix = np.cov(np.real(cloud), np.imag(cloud))
    values, vectors = np.linalg.eigh(spread)
    reach = 2 * np.sqrt(np.clip(values, 0.0, None) * stats.chi2.ppf(level, 2))
    return (
        float(reach[1]),
        float(reach[0]),
        float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))),
    )
