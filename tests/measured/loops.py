"""Loops with known answers, and noise of every kind an experimenter meets."""

import numpy as np

from whorl import measured
from whorl.measured import estimate
from whorl.simplex import tangent_basis

NOISES = ("gaussian", "heavy-tailed", "heteroscedastic")


def noise(kind, shape, drive, rng):
    """Noise of unit scale.

    `drive` is what was applied, `(rows, n)`; the last axes of `shape` are rows and n.
    """
    if kind == "gaussian":
        return rng.standard_normal(shape)
    if kind == "heavy-tailed":  # Student's t with two degrees of freedom: no variance
        return rng.standard_t(2, shape)
    if (
        kind == "heteroscedastic"
    ):  # grows with the square of what was applied, and one output is much worse than the others
        growth = np.linalg.norm(drive, axis=-1, keepdims=True) ** 2
        return rng.standard_normal(shape) * growth * np.where(np.arange(shape[-1]) == 0, 5.0, 1.0)
    raise ValueError(kind)


def reciprocal_loop(size, rng):
    """A random symmetric positive matrix on the zero-sum fields."""
    basis = tangent_basis(size)
    mixed = rng.standard_normal((size - 1, size - 1))
    return basis @ (mixed @ mixed.T / size + 0.3 * np.eye(size - 1)) @ basis.T


def spiral_loop(alpha=1.0, omega=0.8):
    """The paper's three-port rotation, with eigenvalues alpha +- i omega."""
    turn = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    return alpha * (np.eye(3) - 1 / 3) + omega * turn


def series(outputs, repeats):
    """Residuals that raise one output after the other, repeated, and the number of the repeat."""
    once = np.eye(outputs) - 1 / outputs
    return np.tile(once, (repeats, 1)), np.repeat(np.arange(repeats), outputs)


def fitted(applied, seen, runs=None):
    """The fit of one table."""
    record = measured.collect(applied, seen, repeat=runs).records[""]
    return estimate.fit(record.moments, "residual")


def skewed_loop(outputs, share, rng):
    """A loop whose skew part, in a random plane, has this share; its symmetric part decays alike."""
    basis, size = tangent_basis(outputs), outputs - 1
    turn = rng.standard_normal((size, size))
    turn = (turn - turn.T) / np.linalg.norm(turn - turn.T)
    return basis @ (np.eye(size) + np.sqrt(size) * share / np.sqrt(1 - share**2) * turn) @ basis.T


def gradient_loop(outputs, rng, gap=None):
    """A product of positive matrices, which is a gradient flow in another metric.

    With `gap`, two of its eigenvalues are that close.
    """
    basis, size = tangent_basis(outputs), outputs - 1
    frame = np.eye(size) + 0.5 * rng.standard_normal((size, size))
    values = np.linspace(1.0, 2.0, size)
    if gap is not None:
        values[1] = values[0] + gap
    return basis @ frame @ np.diag(values) @ np.linalg.inv(frame) @ basis.T
