r"""Is the loop reciprocal?

A test whose level does not rest on the noise being Gaussian, equal, or of known size.

If $\mathcal{R}$ is symmetric, any two measurements obey $x_r\cdot y_s = x_s\cdot y_r$, as in the
reciprocity theorems of Betti and Lorentz. The same holds for a group of measurements. With $G$ and
$C$ the group's own sums and $S$ its own symmetric fit, $SG + GS = C + C^\mathsf{T}$, what is left,

$$ M = C - SG = -M^\mathsf{T}, $$

does not contain $\mathcal{R}$ at all: it is linear in the group's noise. Noise that is as likely to
be $\varepsilon$ as $-\varepsilon$, group by group, then makes $\pm M$ equally likely, and the sums
$\sum_g \pm M_g$ over all signs are as good as the observed one. The share of them that is at least
as large is an exact p-value: whatever the noise's distribution, whatever its size in each group,
however it is correlated within a group.

How rows are put into groups depends on what was applied and never on what was measured, so it may
be chosen to keep information.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from whorl.measured.estimate import Fit, Matrix, Stack

LEAST = 6  # groups; all signs of six give 32 distinct sums, and 1/32 is the first level below 5 %
COUNTS = (7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 48, 64)
DRAWS = 1999


@dataclass(frozen=True)
class Test:
    """The outcome of the test of "reciprocal"."""

    p: float
    groups: int
    retained: float  # share of the information about the skew part that survives the grouping
    scores: Float[np.ndarray, "groups n n"]  # M of every group
    labels: Int[np.ndarray, "units"]  # the group of every unit

    @property
    def smallest(self) -> float:
        """The smallest p-value that this many groups can give."""
        return 1.0 / len(signs(self.groups, 0))


def reciprocal(fit: Fit, *, seed: int = 0) -> Test:
    """Test that the skew part is zero."""
    labels, retained = grouping(fit.gram, seed=seed)
    groups = int(labels.max()) + 1
    gram = gathered(fit.gram, labels)
    moved = scores(gram, gathered(fit.cross, labels))
    p = float(p_values(gram, moved, signs(groups, seed)))
    return Test(p, groups, retained, moved, labels)


def scores(
    gram: Stack, cross: Float[np.ndarray, "*experiments groups n n"]
) -> Float[np.ndarray, "*experiments groups n n"]:
    """The skew remainder M = C - S G of every group after its own symmetric fit."""
    values, vectors = np.linalg.eigh(gram)
    values = np.clip(values, 0.0, None)
    turned = vectors.swapaxes(-1, -2) @ cross @ vectors
    rows, columns = values[..., :, None], values[..., None, :]
    both = rows + columns
    # A pair of directions that a group has not excited has no remainder.
    both = np.where(both > 1e-12 * values[..., -1, None, None], both, np.inf)
    remainder = (turned * rows - turned.swapaxes(-1, -2) * columns) / both
    return vectors @ remainder @ vectors.swapaxes(-1, -2)


def metric(gram: Matrix) -> tuple[Matrix, Float[np.ndarray, "planes"]]:
    """The principal axes of a design, and how much one unit of score in each of their planes tells
    about the skew part.
    """
    values, vectors = np.linalg.eigh(gram)
    one, other = np.triu_indices(len(values), k=1)
    return vectors, np.sqrt(1.0 / values[one] + 1.0 / values[other])


def statistic(
    moved: Float[np.ndarray, "*many n n"], axes: Matrix, weights: Float[np.ndarray, "planes"]
) -> Float[np.ndarray, "*many"]:
    """The squared size of a score.

    The classical statistic for equal noise, which no rotation of the coordinates changes.
    """
    one, other = np.triu_indices(axes.shape[0], k=1)
    return np.asarray(np.sum(((axes.T @ moved @ axes)[..., one, other] * weights) ** 2, axis=-1))


def p_values(
    gram: Stack,
    moved: Float[np.ndarray, "*experiments groups n n"],
    flips: Float[np.ndarray, "draws groups"],
) -> Float[np.ndarray, "*experiments"]:
    """The share of sign patterns, the observed one among them, whose sum is at least as large as
    the observed.
    """
    axes, weights = metric(gram.sum(axis=0))
    one, other = np.triu_indices(axes.shape[0], k=1)
    seen = (axes.T @ moved @ axes)[..., one, other] * weights
    sums = np.sum((flips @ seen) ** 2, axis=-1)
    # Sums that are equal in exact arithmetic must not be told apart by round-off.
    return np.asarray(np.mean(sums >= sums[..., :1] * (1 - 1e-9), axis=-1))


def signs(groups: int, seed: int) -> Float[np.ndarray, "draws groups"]:
    """All sign patterns up to a global sign, or, where they are many, the observed one and random
    ones.
    """
    if groups <= 12:
        codes = np.arange(2 ** (groups - 1))[:, None] >> np.arange(groups)
        return 1.0 - 2.0 * (codes & 1)
    drawn = 2.0 * np.random.default_rng([seed, groups]).integers(0, 2, (DRAWS + 1, groups)) - 1.0
    drawn[0] = 1.0
    return drawn


def gathered(
    stack: Float[np.ndarray, "*experiments units n n"], labels: Int[np.ndarray, "units"]
) -> np.ndarray:
    """Sums over the units of each group."""
    chosen = (np.arange(labels.max() + 1)[:, None] == labels).astype(float)
    flat = chosen @ stack.reshape(*stack.shape[:-2], -1)
    return flat.reshape(*stack.shape[:-3], len(chosen), *stack.shape[-2:])


def grouping(gram: Stack, *, seed: int = 0) -> tuple[Int[np.ndarray, "units"], float]:
    """Put units into groups so that the groups together know as much as possible about the skew
    part.

    Few groups keep more information, but few signs make a blunt test. The choice is the largest
    information over the squared quantile of Student's t with one degree of freedom fewer than
    groups.
    """
    units, size = len(gram), gram.shape[-1]
    values, vectors = np.linalg.eigh(gram.sum(axis=0))
    white = vectors / np.sqrt(values)
    spheres = white.T @ gram @ white
    rng = np.random.default_rng([seed, 1])
    tries = int(np.clip(2e6 / (units * size**2), 3, 48))
    best: tuple[float, np.ndarray | None, float] = (0.0, None, 0.0)
    for count in [count for count in COUNTS if count <= units] + [LEAST] * (units < 2 * COUNTS[0]):
        orders = _orders(units, count, tries, rng)
        starts = -(-np.arange(count) * units // count)
        kept = information(np.add.reduceat(spheres[orders], starts, axis=1))
        worth = np.where(kept.min(axis=1) > 1e-9 * kept.max(axis=1), kept.sum(axis=1), 0.0)
        blunt, chosen = stats.t.ppf(0.975, count - 1) ** 2, int(np.argmax(worth))
        if worth[chosen] / blunt > best[0]:
            labels = np.empty(units, dtype=int)
            labels[orders[chosen]] = np.searchsorted(starts, np.arange(units), side="right") - 1
            best = (float(worth[chosen] / blunt), labels, float(worth[chosen]))
    if best[1] is None:
        raise ValueError(
            f"the measurements must allow {LEAST} separate comparisons of two directions, but "
            f"{units} independent units do not: "
            "repeat the series of measurements"
        )
    return best[1], best[2] / (size * (size - 1) / 4)


def information(gram: Float[np.ndarray, "*many n n"]) -> Float[np.ndarray, "*many"]:
    """What each group knows about the skew part.

    Over all planes, the sum of g_i g_j / (g_i + g_j).
    """
    values = np.clip(np.linalg.eigvalsh(gram), 0.0, None)
    one, other = np.triu_indices(values.shape[-1], k=1)
    both = values[..., one] + values[..., other]
    return np.sum(
        np.divide(
            values[..., one] * values[..., other], both, out=np.zeros_like(both), where=both > 0
        ),
        axis=-1,
    )


def _orders(
    units: int, count: int, tries: int, rng: np.random.Generator
) -> Int[np.ndarray, "tries units"]:
    """Orders of the units in which neighbours make a group.

    As they came, dealt like cards, and shuffled.
    """
    came = np.arange(units)
    return np.stack(
        [
            came,
            np.argsort(came % count, kind="stable"),
            *(rng.permutation(units) for _ in range(tries)),
        ]
    )
