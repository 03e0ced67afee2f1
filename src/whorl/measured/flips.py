r"""Is the loop reciprocal?

A test whose level does not rest on the noise being Gaussian, equal, or of known size.

*The model.* $y = b + Sx$ with symmetric $S$, fitted to all measurements, leaves $e$. If the loop
has a skew part, $e$ follows it: the score $s = \sum_u \tilde Z_u^\mathsf{T}e_u$, with $\tilde Z$
the directions of skew matrices freed of everything a symmetric loop and an offset can explain, is
then larger than noise makes it.

*The signs.* Noise that is as likely to be $\varepsilon$ as $-\varepsilon$, unit by unit, makes
other experiments as likely as this one. Each of them gives the units' leftovers random signs, fits
$b$ and $S$ again, and takes the same statistic,

$$ T = s^\mathsf{T}\bigl[(1-\lambda)\,\tfrac{\operatorname{tr}V}{p}\,1 + \lambda V\bigr]^{-1}s,
\qquad V = \sum_u s_us_u^\mathsf{T}, $$

in coordinates in which $\tilde Z^\mathsf{T}\tilde Z = 1$. The p-value is the share of experiments
whose $T$ is at least the observed one. Because each is divided by its own scatter, the level holds
where the noise differs from row to row; because the scatter is drawn to a multiple of the identity
where units are few, the test keeps its power. A leftover is smaller than the noise behind it and is
enlarged by $(1-H_u)^{-1/2}$, with $H_u$ the unit's block of the projector on the fit.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from whorl.measured.estimate import Fit, Matrix, Stack

LEAST = 6  # units; all signs of six give 32 distinct experiments, 1/32 is the first level below 5 %
DRAWS = 1999
WIDE = 16  # directions from which on experiments are not fitted again: too many unknowns
FEW = 14.0  # units whose own scatter counts as much as the usual one
CHUNK = 2_000_000  # numbers that the scores of some experiments may take


@dataclass(frozen=True)
class Scores:
    """What every unit says about the skew part, and what the symmetric fit takes of it.

    Planes are the coordinates of skew matrices in which the design is the identity.
    """

    noise: Float[np.ndarray, "units planes"]  # of the enlarged leftovers
    seen: Float[np.ndarray, "units planes"]  # of the leftovers themselves
    fitted: Float[np.ndarray, "units unknowns"]  # the same leftovers along the symmetric fit
    mixed: Float[np.ndarray, "units planes unknowns"]  # what of the fit stands in a unit's score

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self.noise)

    def statistic(self, flips: Float[np.ndarray, "draws units"]) -> Float[np.ndarray, "draws"]:
        """T of experiments with these signs."""
        found, planes = [], self.noise.shape[1]
        size = max(1, CHUNK // max(self.noise.size, 1))
        for part in range(0, len(flips), size):
            signs = flips[part : part + size]
            if not self.mixed.size:
                found.append(np.sum((signs @ self.noise) ** 2, axis=1))
                continue
            found.append(studentised(self.again(signs), self.usual))
        return np.concatenate(found) if planes else np.zeros(len(flips))

    def again(
        self, signs: Float[np.ndarray, "draws units"]
    ) -> Float[np.ndarray, "draws units planes"]:
        """The scores of experiments with these signs, each fitted again."""
        fitted = np.einsum("upk,fk->fup", self.mixed, signs @ self.fitted, optimize=True)
        return signs[:, :, None] * self.noise - fitted

    def observed(self) -> float:
        """T of the experiment as it was."""
        if not self.mixed.size:
            return float(np.sum(self.seen.sum(axis=0) ** 2))
        return float(studentised(self.seen[None], self.usual)[0])

    @cached_property
    def usual(self) -> Matrix:
        """The scatter of the scores on average over all signs."""
        taken = np.einsum("upk,uk->up", self.mixed, self.fitted)
        own = self.noise - taken
        pushed = self.mixed @ (self.fitted.T @ self.fitted)
        every = np.tensordot(pushed, self.mixed, axes=([0, 2], [0, 2]))
        return own.T @ own + every - taken.T @ taken


@dataclass(frozen=True)
class Test:
    """The outcome of the test of "reciprocal"."""

    p: float
    scores: Scores

    @property
    def units(self) -> int:
        """Number of units whose signs were changed."""
        return self.scores.units

    @cached_property
    def draws(self) -> int:
        """Number of experiments compared."""
        return len(signs(self.units, 0))


def reciprocal(fit: Fit, *, seed: int = 0) -> Test:
    """Test that the skew part is zero."""
    if len(fit.gram) < LEAST:
        raise ValueError(
            f"the measurements must have at least {LEAST} independent units, but they have "
            f"{len(fit.gram)}: repeat the series of measurements"
        )
    found = scores(fit)
    tried = found.statistic(signs(found.units, seed)[1:])
    seen = found.observed()
    # Statistics that are equal in exact arithmetic must not be told apart by round-off.
    return Test(float((1 + np.sum(tried >= seen * (1 - 1e-9))) / (1 + len(tried))), found)


def without(fit: Fit, part: float) -> Fit:
    """The same experiment with a part of the skew part taken away, from 0 to 1."""
    skew = part * fit.skew
    cross, answer = fit.cross - skew @ fit.gram, fit.answer - fit.drive @ skew.T
    return replace(fit, cross=cross, answer=answer)


def studentised(
    scores: Float[np.ndarray, "draws units planes"],
    usual: Float[np.ndarray, "*draws planes planes"] | None = None,
) -> Float[np.ndarray, "draws"]:
    """The squared size of the sum of the scores against their own scatter.

    Where units are few, their own scatter is drawn towards the `usual` one.
    """
    units, planes = scores.shape[1:]
    own = units / (units + 2.0 * planes)
    scatter = np.matmul(scores.swapaxes(1, 2), scores)
    if usual is not None:
        scatter += FEW / (units + FEW) * (usual - scatter)
    mean = np.trace(scatter, axis1=1, axis2=2) / planes
    floor = np.maximum(mean, np.finfo(float).tiny)
    blend = own * scatter + ((1 - own) * floor)[:, None, None] * np.eye(planes)
    total = scores.sum(axis=1)
    return np.einsum("fp,fp->f", total, np.linalg.solve(blend, total[:, :, None])[:, :, 0])


def scores(fit: Fit) -> Scores:
    """The score of every unit after the symmetric fit with an offset."""
    return _wide(fit) if fit.rank > WIDE else _narrow(fit)


def _narrow(fit: Fit) -> Scores:
    even, odd = shapes(fit.rank)
    units, rank = len(fit.gram), fit.rank
    # Normal equations of the symmetric fit with an offset, unit by unit.
    count = len(even) + rank
    normal = np.zeros((units, count, count))
    pushed, skewed = _pushed(even, fit.gram), _pushed(odd, fit.gram)
    normal[:, : len(even), : len(even)] = pushed @ even.reshape(len(even), -1).T
    normal[:, : len(even), len(even) :] = np.einsum("aij,uj->uai", even, fit.drive)
    normal[:, len(even) :, : len(even)] = normal[:, : len(even), len(even) :].swapaxes(1, 2)
    normal[:, len(even) :, len(even) :] = fit.weight[:, None, None] * np.eye(rank)
    mixed = np.concatenate(
        [
            skewed @ even.reshape(len(even), -1).T,
            np.einsum("pij,uj->upi", odd, fit.drive),
        ],
        axis=2,
    )
    known = np.concatenate([np.einsum("aij,uij->ua", even, fit.cross), fit.answer], axis=1)
    moved = np.einsum("pij,uij->up", odd, fit.cross)
    root = _inverse_root(normal.sum(axis=0))
    normal, mixed, known = root.T @ normal @ root, mixed @ root, known @ root
    answer, cross = known.sum(axis=0), mixed.sum(axis=0)
    left = known - normal @ answer  # along the fit, what each unit leaves over
    pure = mixed - cross @ normal  # directions of skew matrices freed of the fit
    seen = (moved - mixed @ answer) - left @ cross.T
    whole = skewed.sum(axis=0) @ odd.reshape(len(odd), -1).T
    white = _inverse_root(whole - cross @ cross.T)
    seen, pure = seen @ white, white.T @ pure
    # (1 - H)^(-1/2) e, with H = X X^T of the unit, through the small matrix X^T X.
    values, vectors = np.linalg.eigh(normal)
    values = np.clip(values, 0.0, 0.95)
    ratio = np.where(values > 1e-9, ((1 - values) ** -0.5 - 1) / np.maximum(values, 1e-9), 0.5)
    more = (vectors * ratio[:, None, :]) @ (vectors.swapaxes(1, 2) @ left[:, :, None])
    noise = seen + (pure @ more)[:, :, 0]
    fitted = left + (normal @ more)[:, :, 0]
    return Scores(noise, seen, fitted, pure)


def _pushed(
    shapes: Float[np.ndarray, "shapes n n"], gram: Stack
) -> Float[np.ndarray, "units shapes nn"]:
    """Every shape times the Gram matrix of every unit, flat."""
    return (shapes @ gram[:, None]).reshape(len(gram), len(shapes), -1)


def _wide(fit: Fit) -> Scores:
    values, axes = np.linalg.eigh(fit.gram.sum(axis=0))
    cross = axes.T @ fit.cross @ axes
    gram = axes.T @ fit.gram @ axes
    total = cross.sum(axis=0)
    both = values[:, None] + values[None, :]
    symmetric = (total + total.T) / both
    one, other = np.triu_indices(fit.rank, k=1)
    weights = np.sqrt(1.0 / values[one] + 1.0 / values[other])

    def scored(left: Stack) -> Float[np.ndarray, "units planes"]:
        # What a symmetric loop explains is taken out of the score of each plane.
        share = (left * values[:, None] - left.swapaxes(1, 2) * values[None, :]) / both
        return share[:, one, other] * weights

    left = cross - symmetric @ gram
    # A symmetric loop takes half of what a loop takes of a unit's noise, and the offset its share.
    white = gram / np.sqrt(np.outer(values, values))
    held, turned = np.linalg.eigh(white)
    taken = held * (fit.rank + 1) / (2 * fit.rank) + (fit.weight / fit.weight.sum())[:, None]
    larger = (left / np.sqrt(values)) @ turned / np.sqrt(1 - np.clip(taken, 0.0, 0.95))[:, None]
    noise, seen = scored(larger @ turned.swapaxes(1, 2) * np.sqrt(values)), scored(left)
    return Scores(noise, seen, np.zeros((len(seen), 0)), np.zeros((*seen.shape, 0)))


def shapes(
    size: int,
) -> tuple[Float[np.ndarray, "unknowns n n"], Float[np.ndarray, "planes n n"]]:
    """Bases of the symmetric and of the skew matrices."""
    one, other = np.triu_indices(size)
    even = np.zeros((len(one), size, size))
    even[np.arange(len(one)), one, other] = even[np.arange(len(one)), other, one] = 1.0
    one, other = np.triu_indices(size, k=1)
    odd = np.zeros((len(one), size, size))
    odd[np.arange(len(one)), one, other], odd[np.arange(len(one)), other, one] = 1.0, -1.0
    return even, odd


def signs(units: int, seed: int) -> Float[np.ndarray, "draws units"]:
    """All sign patterns up to a global sign, or, where they are many, the observed one and random
    ones.
    """
    if units <= 12:
        codes = np.arange(2 ** (units - 1))[:, None] >> np.arange(units)
        return 1.0 - 2.0 * (codes & 1)
    drawn = 2.0 * np.random.default_rng([seed, units]).integers(0, 2, (DRAWS + 1, units)) - 1.0
    drawn[0] = 1.0
    return drawn


def _inverse_root(matrix: Matrix) -> Float[np.ndarray, "n kept"]:
    """A root of the inverse, on the directions in which the matrix is not zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    held = values > 1e-10 * values[-1]
    return vectors[:, held] / np.sqrt(values[held])
