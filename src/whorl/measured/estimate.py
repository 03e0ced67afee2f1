r"""The closed loop by weighted least squares.

$\dot F = b + \mathcal{R}e$ on the zero-sum directions that were excited.

$\hat{\mathcal{R}} = CG^{-1}$ with $G = \sum w\,xx^\mathsf{T}$ and $C = \sum w\,yx^\mathsf{T}$, both
about the means, so that a velocity that is there without any residual, $b$, does not pass for a
loop. Its eigenvalues are decay rates (real parts) and rotation rates (imaginary parts). A direction
excited less than `tol` times as strongly as the strongest says nothing about the loop: it is left
out, of what goes in and of what comes out, and reported.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float

from whorl.measured.moments import Moments

Matrix = Float[np.ndarray, "n n"]
Stack = Float[np.ndarray, "units n n"]
TOL = 1e-4


class Estimated:
    """What is read off an estimated loop, with what every independent unit's noise added to it."""

    loop: Matrix
    influence: Stack
    free: float  # degrees of freedom of the scatter

    @cached_property
    def wary(self) -> Stack:
        """The influence where noise may grow with what was applied."""
        return self.influence

    def told(self, way: Matrix) -> Float[np.ndarray, "units"]:
        """How much of a step along this way, of size one, every unit sees: in all, one."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """Number of directions."""
        return self.loop.shape[0]

    @property
    def symmetric(self) -> Matrix:
        """The symmetric part."""
        return (self.loop + self.loop.T) / 2

    @property
    def skew(self) -> Matrix:
        """The skew part."""
        return (self.loop - self.loop.T) / 2

    @property
    def skewness(self) -> float:
        """Size of the skew part over the size of the loop."""
        return skewness(self.loop)

    @property
    def index(self) -> float:
        """The symmetric share of the loop's squared size.

        1 for a reciprocal loop, 0 for one that only turns.
        """
        return 1.0 - self.skewness**2

    @cached_property
    def eigenvalues(self) -> Complex[np.ndarray, "n"]:
        """Decay rates and rotation rates, slowest decay first."""
        values = np.linalg.eigvals(self.loop).astype(complex)
        return values[np.lexsort((np.imag(values), np.real(values)))]

    @property
    def clean(self) -> float:
        """Size of the symmetric part without what noise adds to it."""
        # Of a matrix of independent noise, the symmetric part has this share.
        added = float(np.sum(self.influence**2)) * (self.rank + 1) / (2 * self.rank)
        seen = float(np.sum(self.symmetric**2))
        return float(np.sqrt(max(seen - added, 0.04 * seen)))


@dataclass(frozen=True)
class Fit(Estimated):
    """A loop estimated from measurements, in orthonormal coordinates of the excited directions."""

    gram: Stack  # per unit, in the coordinates of `basis`, about the mean of all units
    cross: Stack
    weight: Float[np.ndarray, "units"]  # sum of w per unit
    drive: Float[np.ndarray, "units n"]  # sum of w (x - mean) per unit
    answer: Float[np.ndarray, "units n"]  # sum of w (y - mean) per unit
    mean: Float[np.ndarray, "n"]  # of x
    offset: Float[np.ndarray, "n"]  # the velocity without any residual
    basis: Float[np.ndarray, "d n"]  # from those coordinates to the zero-sum ones
    strengths: Float[
        np.ndarray, "d"
    ]  # how strongly each principal direction was excited, strongest first
    spread: Float[np.ndarray, "units"]  # sum of w |y - mean|^2 per unit
    rows: int

    @property
    def rank(self) -> int:
        """Number of excited directions."""
        return self.basis.shape[1]

    @property
    def condition(self) -> float:
        """Strongest over weakest excitation, among the directions that count."""
        return float(self.strengths[0] / self.strengths[self.rank - 1])

    @cached_property
    def loop(self) -> Matrix:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The estimate."""
        return np.linalg.solve(self.gram.sum(axis=0), self.cross.sum(axis=0).T).T

    @cached_property
    def scatter(self) -> float:
        """Standard deviation of one coordinate of one measurement of weight one around the fit."""
        total, cross = self.spread.sum(), self.cross.sum(axis=0)
        misfit = float(total - np.sum(self.loop * cross))
        free = (self.rows - self.rank - 1) * self.rank
        # What is left of two sums of rows is round-off below this: the data are exact.
        exact = self.rows * np.finfo(float).eps * total
        return float(np.sqrt(misfit / free)) if free > 0 and misfit > exact else 0.0

    @property
    def leftover(self) -> Stack:
        """What the fit does not explain, per unit: the sums of w (y - R x) x^T about the means."""
        return self.cross - self.loop @ self.gram

    @property
    def free(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        r"""Degrees of freedom of the scatter: rows, or repeats, less what the fit has taken.

        Rows that were driven unequally count as fewer: $(\sum h)^2 / \sum h^2$ of their leverages.
        """
        units = len(self.gram)
        held = np.trace(np.linalg.solve(self.gram.sum(axis=0), self.gram), axis1=-2, axis2=-1)
        alike = held.sum() ** 2 / np.sum(held**2) / units
        return max(alike * (units - self.rank - 1 if units == self.rows else units - 1), 1.0)

    def _influence(self, *, wary: bool) -> Stack:
        left = self.answer - self.drive @ self.loop.T
        return influence(self.gram, self.drive, self.weight, self.leftover, left, wary=wary)

    @cached_property
    def influence(self) -> Stack:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What every unit's noise has added to the estimate, as far as its leftover tells."""
        return self._influence(wary=False)

    @cached_property
    def wary(self) -> Stack:
        """The influence where noise may grow with what was applied."""
        return self._influence(wary=True)

    def told(self, way: Matrix) -> Float[np.ndarray, "units"]:
        """How much of a step along this way, of size one, every unit sees: in all, one."""
        known = np.linalg.solve(self.gram.sum(axis=0), way.T).T
        return np.sum((way @ self.gram) * known, axis=(1, 2))


def influence(
    gram: Stack,
    drive: Float[np.ndarray, "units n"],
    weight: Float[np.ndarray, "units"],
    left: Float[np.ndarray, "units m n"],
    level: Float[np.ndarray, "units m"],
    *,
    wary: bool = False,
) -> Float[np.ndarray, "units m n"]:
    r"""What every unit's noise has added to a regression with an offset, as its leftover tells.

    `left` and `level` are the leftovers along what was applied and along the offset. A leftover is
    smaller than the noise behind it: by $(1-h)^{1/2}$ for equal noise, where $h$ are the leverages,
    the eigenvalues of the unit's block of the projector on the fit. Noise that grows with what was
    applied hides most where leverages are large: to be `wary` of it the power is $h/2m$ (as in
    Cribari-Neto's HC4), with $m$ their average, each counted by its size.
    """
    values, axes = np.linalg.eigh(gram.sum(axis=0))
    root, size = axes / np.sqrt(values), np.sqrt(weight.sum())
    white = np.concatenate([left @ root, level[:, :, None] / size], axis=2)
    beside = (drive @ root)[:, :, None] / size
    last = (weight / size**2)[:, None, None]
    held, turned = np.linalg.eigh(
        np.block([[root.T @ gram @ root, beside], [beside.swapaxes(1, 2), last]])
    )
    held = np.clip(held, 0.0, 0.95)
    power = held * held.sum() / np.sum(held**2) if wary else 1.0
    larger = (white @ turned * ((1 - held) ** (-power / 2))[:, None, :]) @ turned.swapaxes(1, 2)
    return larger[:, :, :-1] @ root.T


def fit(moments: Moments, drive: str, answer: str = "velocity", *, tol: float = TOL) -> Fit:
    """Estimate the matrix that takes one part of the measurements to another."""
    weight = moments.between("one", "one")[:, 0, 0]
    first, second = (moments.between(part, "one")[:, :, 0] for part in (drive, answer))
    total = weight.sum()
    mean, level = first.sum(axis=0) / total, second.sum(axis=0) / total
    gram = about(moments.between(drive, drive), first, first, mean, mean, weight)
    cross = about(moments.between(answer, drive), second, first, level, mean, weight)
    own = about(moments.between(answer, answer), second, second, level, level, weight)
    values, vectors = np.linalg.eigh(gram.sum(axis=0))
    if values[0] < -1e-9 * abs(values[-1]):
        raise ValueError(
            "residual_uncertainty must be smaller than the scatter of the residuals in every "
            "direction, but it exceeds that: there is no drive left"
        )
    strengths = np.sqrt(np.clip(values[::-1], 0.0, None))
    if not strengths[0] > 0:
        raise ValueError(
            f"{drive} must vary in some direction from measurement to measurement, but it is the "
            "same in all of them"
        )
    basis = vectors[:, ::-1][:, strengths > tol * strengths[0]]
    inner = basis.T @ cross @ basis
    loop = np.linalg.solve((basis.T @ gram @ basis).sum(axis=0), inner.sum(axis=0).T).T
    return Fit(
        basis.T @ gram @ basis,
        inner,
        weight,
        (first - weight[:, None] * mean) @ basis,
        (second - weight[:, None] * level) @ basis,
        mean @ basis,
        level @ basis - loop @ (mean @ basis),
        basis,
        strengths,
        np.einsum("uab,ap,bp->u", own, basis, basis),
        int(moments.rows.sum()),
    )


def about(
    products: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    left_mean: np.ndarray,
    right_mean: np.ndarray,
    weight: np.ndarray,
) -> np.ndarray:
    """Sums of products about means, unit by unit."""
    return (
        products
        - left[:, :, None] * right_mean
        - left_mean[:, None] * right[:, None, :]
        + weight[:, None, None] * np.outer(left_mean, right_mean)
    )


def skewness(loop: Matrix) -> float:
    """Size of the skew part over the size of the whole; 0 for a loop that does nothing."""
    size = np.linalg.norm(loop)
    return float(np.linalg.norm(loop - loop.T) / 2 / size) if size > 0 else 0.0


def crossing(above: Callable[[float], bool], low: float, high: float) -> float:
    """Where something that does not hold at `low` begins to hold."""
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return (low + high) / 2


def sidak(p: float, tried: float) -> float:
    """The p-value of the smallest of some independent ones; with 1 / tried, the level of each."""
    return p if tried == 1 or p >= 1 else float(-np.expm1(tried * np.log1p(-p)))
