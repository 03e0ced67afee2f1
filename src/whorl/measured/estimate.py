r"""The closed loop by weighted least squares.

$\dot F = \mathcal{R}e$ on the zero-sum directions that were excited.

$\hat{\mathcal{R}} = CG^{-1}$ with $G = \sum w\,xx^\mathsf{T}$ and $C = \sum w\,yx^\mathsf{T}$. Its
symmetric part dissipates, its skew part turns, and the eigenvalues are decay rates (real parts) and
rotation rates (imaginary parts). A direction excited less than `tol` times as strongly as the
strongest says nothing about the loop: it is left out, of what goes in and of what comes out, and
reported.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float

from whorl.measured.moments import Moments

Matrix = Float[np.ndarray, "n n"]
Stack = Float[np.ndarray, "units n n"]
TOL = 1e-4


@dataclass(frozen=True)
class Fit:
    """A loop estimated from measurements, in orthonormal coordinates of the excited directions."""

    gram: Stack  # per unit, in the coordinates of `basis`
    cross: Stack
    basis: Float[np.ndarray, "d n"]  # from those coordinates to the zero-sum ones
    strengths: Float[
        np.ndarray, "d"
    ]  # how strongly each principal direction was excited, strongest first
    spread: Float[np.ndarray, "units"]  # sum of w |y|^2 per unit
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
    def loop(self) -> Matrix:
        """The estimate."""
        return np.linalg.solve(self.gram.sum(axis=0), self.cross.sum(axis=0).T).T

    @property
    def symmetric(self) -> Matrix:
        """The part that follows a gradient."""
        return (self.loop + self.loop.T) / 2

    @property
    def skew(self) -> Matrix:
        """The part that turns."""
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

    @cached_property
    def scatter(self) -> float:
        """Standard deviation of one coordinate of one measurement of weight one around the fit."""
        total, cross = self.spread.sum(), self.cross.sum(axis=0)
        misfit = max(float(total - np.sum(self.loop * cross)), 0.0)
        free = (self.rows - self.rank) * self.rank
        return float(np.sqrt(misfit / free)) if free > 0 else 0.0

    @property
    def leftover(self) -> Stack:
        """What the fit does not explain, per unit: the sums of w (y - R x) x^T."""
        return self.cross - self.loop @ self.gram


def fit(moments: Moments, drive: str, answer: str = "velocity", *, tol: float = TOL) -> Fit:
    """Estimate the matrix that takes one part of the measurements to another."""
    gram, cross = moments.between(drive, drive), moments.between(answer, drive)
    values, vectors = np.linalg.eigh(gram.sum(axis=0))
    strengths = np.sqrt(np.clip(values[::-1], 0.0, None))
    if not strengths[0] > 0:
        raise ValueError(
            f"{drive} must excite a direction, but it is constant over the outputs of every "
            "measurement"
        )
    basis = vectors[:, ::-1][:, strengths > tol * strengths[0]]
    kept = np.einsum("uab,ap,bp->u", moments.between(answer, answer), basis, basis)
    return Fit(
        basis.T @ gram @ basis,
        basis.T @ cross @ basis,
        basis,
        strengths,
        kept,
        int(moments.rows.sum()),
    )


def skewness(loop: Matrix) -> float:
    """Size of the skew part over the size of the whole; 0 for a loop that does nothing."""
    size = np.linalg.norm(loop)
    return float(np.linalg.norm(loop - loop.T) / 2 / size) if size > 0 else 0.0
