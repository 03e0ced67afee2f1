r"""How small a turn would this experiment have seen, and how many repeats would a smaller one take?

Experiments are drawn as the test draws them, with random signs of the enlarged leftovers, and a
skew part of a given size is added to every unit. The power is the share of them whose statistic
exceeds what the noise alone reaches in one case of twenty. If the whole series of measurements is
run $k$ times, what the skew part adds is $\sqrt{k}$ times as large against the same noise. The turn
is drawn in all directions, because its plane is unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy import stats

from whorl.measured.estimate import Fit
from whorl.measured.flips import scores, shapes, studentised, without

DRAWS = 800
LITTLE = 0.5  # a chance below this, of seeing what was asked for, is little power
WIDE = 10  # directions from which on the power is that of equal noise
MOST = 1e6  # times; more repeats are not practical


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

    @property
    def little(self) -> bool:
        """Whether a skew part of that size would hardly have been seen."""
        return self.power < LITTLE

    def more(self, repeats: int) -> int | None:
        """How many repeats beyond those there are; None where no number would do."""
        return (
            max(0, int(np.ceil((self.times - 1) * max(repeats, 1) - 1e-9)))
            if np.isfinite(self.times)
            else None
        )


def power(
    fit: Fit,
    *,
    size: float = 0.1,
    chance: float = 0.8,
    level: float = 0.05,
    seed: int = 0,
) -> Power:
    """The power of the test against a skew part of `size` times the loop, and the repeats that
    would give it `chance`.
    """
    if not fit.scatter or not fit.clean:  # no noise, nothing to wait for
        return Power(chance, size, 1.0, 1.0, 0.0)
    tried, units = _experiments(fit, seed), len(fit.gram)
    return searched(tried, fit.clean, units, size=size, chance=chance, level=level)


def searched(
    tried: Callable[[float], np.ndarray],
    whole: float,
    units: int,
    *,
    size: float,
    chance: float,
    level: float,
) -> Power:
    """The power of a test whose statistic `tried` draws, for skew parts of a given size.

    `whole` is the size of the symmetric part, and `units` are the independent ones.
    """
    limit = np.quantile(tried(0.0), 1 - level)

    def of(share: float, times: float) -> float:
        reach = whole * share / np.sqrt(1 - share**2)
        blunt = _blunt(units, times, level)
        return float(np.mean(tried(np.sqrt(times) * reach) >= limit * blunt))

    times = (
        1.0
        if of(size, 1.0) >= chance
        else _first(lambda tried: of(size, tried) >= chance, 1.0, MOST)
    )
    visible = _first(lambda tried: of(tried, 1.0) >= chance, 1e-6, 1 - 1e-6)
    return Power(chance, size, times, of(size, 1.0), min(visible, 1.0))


def _experiments(fit: Fit, seed: int) -> Callable[[float], np.ndarray]:
    """The statistic of many experiments with a skew part of a given size in random planes."""
    rng, units = np.random.default_rng([seed, 3]), len(fit.gram)
    one, other = np.triu_indices(fit.rank, k=1)
    draws = int(np.clip(4e6 // (units * len(one)), 200, DRAWS))
    flips = 2.0 * rng.integers(0, 2, (draws, units)) - 1.0
    turns = random_turns(len(one), draws, rng)
    moved = (fit.influence - fit.influence.swapaxes(1, 2)) / 2
    if fit.rank > WIDE:
        values, axes = np.linalg.eigh(fit.gram.sum(axis=0))
        told = 2 * np.sqrt(values[one] * values[other] / (values[one] + values[other]))
        sums = (flips @ (axes.T @ moved @ axes)[:, one, other]) * told
        return lambda reach: np.sum((sums + reach * told * turns) ** 2, axis=1)
    # What skew parts add to the score of each unit, after the symmetric fit has taken its share.
    alone = [
        scores(replace(fit, cross=odd @ fit.gram, answer=fit.drive @ odd.T))
        for odd in shapes(fit.rank)[1]
    ]
    planes = np.stack([each.seen for each in alone])
    whole = planes.sum(axis=1)
    added = np.einsum("fp,pus->fus", turns, planes, optimize=True)
    # The usual scatter grows with them as their own does, less what fitting again takes.
    grown = sum(one @ each.usual @ one for one, each in zip(whole, alone, strict=True))
    grown /= sum(np.sum((each.seen @ one) ** 2) for one, each in zip(whole, alone, strict=True))
    # The same experiment without the skew part that was found, which has taken noise with it.
    calm = scores(without(fit, 1.0))
    more = np.linalg.norm(moved[:, one, other] @ whole) / np.linalg.norm(calm.noise)
    drawn, usual = more * calm.again(flips), more**2 * calm.usual

    mixed, told = drawn.swapaxes(1, 2) @ added, added.swapaxes(1, 2) @ added
    mixed += mixed.swapaxes(1, 2)

    def tried(reach: float) -> np.ndarray:
        more = grown * (reach * mixed + reach**2 * told)
        return studentised(drawn + reach * added, usual + more)

    return tried


def random_turns(
    planes: int, draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draws planes"]:
    """The upper triangles of skew matrices of size one in random directions."""
    turns = rng.standard_normal((draws, planes))
    return turns / np.linalg.norm(turns, axis=1, keepdims=True) / np.sqrt(2.0)


def _blunt(units: int, times: float, level: float) -> float:
    # More units make a sharper test: the price is that of Student's t.
    now, then = (
        stats.t.ppf(1 - level / 2, max(units * factor - 1, 1.0)) ** 2 for factor in (1.0, times)
    )
    return float(then / now)


def _first(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest value, to one part in a hundred, for which `enough` holds.

    Infinite where it does not hold at `high`.
    """
    if not enough(high):
        return float("inf")
    while high / low > 1.01:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)
