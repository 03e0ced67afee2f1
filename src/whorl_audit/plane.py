"""The zero-sum plane of three outputs, where every solve is 2 x 2 and written out.

With the axes (1, -1, 0) / sqrt 2 and (1, 1, -2) / sqrt 6 the quarter-turn C of Eq. 18 sends the
first to the second, and the second to minus the first.
"""

import numpy as np

from whorl_audit.types import Array

AXES = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])


def into(vectors: Array) -> Array:
    """Coordinates in the plane of vectors `(..., 3)`."""
    return vectors @ AXES.T


def out_of(coordinates: Array) -> Array:
    """The zero-sum vectors of coordinates `(..., 2)`."""
    return coordinates @ AXES


def mix(coordinates: Array, alpha: float, omega: float) -> Array:
    """(alpha P + omega C) in the plane (Eq. 18)."""
    first, second = coordinates[..., 0], coordinates[..., 1]
    return np.stack([alpha * first - omega * second, alpha * second + omega * first], axis=-1)


def reduced(factor: Array) -> Array:
    """A factor `(batch, 3, n)` in the plane, which has the same singular values but the zero
    one.
    """
    return np.einsum("po,bon->bpn", AXES, factor)


def gram(factor: Array) -> Array:
    """The response in the plane, `(batch, 2, 2)`, from a factor `(batch, 3, n)` of it."""
    inside = reduced(factor)
    return inside @ np.swapaxes(inside, 1, 2)


def solve(operator: Array, right: Array) -> Array:
    """The solution of a symmetric 2 x 2 system by Cramer's rule."""
    a, b, d = operator[:, 0, 0], operator[:, 0, 1], operator[:, 1, 1]
    determinant = a * d - b * b
    return (
        np.stack([d * right[:, 0] - b * right[:, 1], a * right[:, 1] - b * right[:, 0]], axis=-1)
        / determinant[:, None]
    )


def eigenvalue(operator: Array) -> tuple[Array, Array]:
    """The eigenvalue of 2 x 2 operators whose imaginary part is not negative, as two reals.

    The upper one where both are real.
    """
    a, b, c, d = operator[:, 0, 0], operator[:, 0, 1], operator[:, 1, 0], operator[:, 1, 1]
    discriminant = np.square((a - d) / 2) + b * c
    return (a + d) / 2 + np.sqrt(np.maximum(discriminant, 0)), np.sqrt(np.maximum(-discriminant, 0))


def spectrum(factor: Array, tolerance: float) -> tuple[Array, Array]:
    """Rank and condition number of F F^T, for factors F `(batch, n, m)`.

    The eigenvalues above `tolerance` times the largest count.
    """
    values = np.square(np.linalg.svd(factor, compute_uv=False))
    rank = (values > tolerance * values[:, :1]).sum(axis=1)
    return rank, values[:, 0] / values[np.arange(len(values)), np.maximum(rank - 1, 0)]
