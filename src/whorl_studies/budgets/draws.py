"""What only the budgets study draws: random laws, errors of responses, noise, flips."""

import numpy as np

from whorl.study.compute import schedule
from whorl.study.draws import stream

STRUCTURAL, LAW, ERROR, NOISE, FLIPS, WIDE = range(10, 16)  # the last is that of the wide arm


def structural_layers(seed: int, trial: int, depth: int, spread: float, floor: float) -> np.ndarray:
    """A network with Dirichlet columns and a uniform share, (depth, 3, 3)."""
    rows = stream(seed, trial, STRUCTURAL, depth).dirichlet(np.full(3, spread), (depth, 3))
    return np.swapaxes((1 - floor) * rows + floor / 3, 1, 2)


def orthogonal(seed: int, trial: int, size: int) -> np.ndarray:
    """A random rotation of so many directions, by the invariant measure."""
    basis, triangle = np.linalg.qr(stream(seed, trial, LAW, size).standard_normal((size, size)))
    basis = basis * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    basis[:, 0] *= np.sign(np.linalg.det(basis))
    return basis


def error(seed: int, trial: int, size: int) -> np.ndarray:
    """The error of a known response, in units of its relative size."""
    return stream(seed, trial, ERROR, size).standard_normal((size, size))


def noise(seed: int, trial: int, updates: int, size: int) -> np.ndarray:
    """Errors of the residuals that are read, in units of the noise, (updates, size)."""
    return stream(seed, trial, NOISE, size).standard_normal((updates, size))


def flips(seed: int, trial: int, updates: int, frequency: float) -> np.ndarray:
    """A sense that flips now and then."""
    return schedule.flipping_turns(updates, frequency, stream(seed, trial, FLIPS))
