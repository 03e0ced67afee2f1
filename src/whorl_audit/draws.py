"""The random numbers of a design, drawn again.

A stream of its own for every family, depth and purpose.
"""

import numpy as np

from whorl_audit.types import Array, Whole

SAMPLES = 6  # three vertices and three mixtures


def stream(seed: int, *key: int) -> np.random.Generator:
    """The generator of one purpose."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def task(
    seed: int, family: int, concentration: float, width: int = 3, key: tuple[int, ...] = ()
) -> tuple[Array, Array]:
    """Inputs and targets `(width + 3, width)` of a family; `key` is that of a wide arm."""
    rng = stream(seed, family, *key, 0)
    mixtures = rng.dirichlet(np.ones(width), 3)
    teacher = rng.dirichlet(np.full(width, concentration), width)
    inputs = np.concatenate([np.eye(width), mixtures])
    return inputs, np.einsum("si,io->so", inputs, teacher)


def tasks(seed: int, families: int, concentration: float) -> tuple[Array, Array]:
    """Inputs and targets `(families, 6, 3)` of all families."""
    pairs = [task(seed, family, concentration) for family in range(families)]
    return np.array([inputs for inputs, _ in pairs]), np.array([targets for _, targets in pairs])


def dirichlet_layers(
    seed: int, family: int, depth: int, concentration: float, floor: float, key: int = 1
) -> Array:
    """Layers `(depth, row, column)` of the Dirichlet kind: the i-th row drawn is column i."""
    rows = stream(seed, family, key, depth).dirichlet(np.full(3, concentration), (depth, 3))
    return np.swapaxes((1 - floor) * rows + floor / 3, 1, 2)


def softmax(rng: np.random.Generator, depth: int, width: int, beta: float, floor: float) -> Array:
    """Layers `(depth, row, column)` of the softmax kind, of any width."""
    logits = beta * rng.standard_normal((depth, width, width))
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (1 - floor) * grown / grown.sum(axis=1, keepdims=True) + floor / width


def softmax_layers(seed: int, family: int, depth: int, beta: float, floor: float) -> Array:
    """Layers of the softmax kind of a family."""
    return softmax(stream(seed, family, 1, depth), depth, 3, beta, floor)


def control_layers(seed: int, depth: int, concentration: float, floor: float) -> Array:
    """Layers of the disconnected control.

    Two columns that share two outputs, and a third that keeps to itself.
    """
    rows = stream(seed, 0, 4, depth).dirichlet(np.full(2, concentration), (depth, 2))
    layers = np.zeros((depth, 3, 3))
    layers[:, :2, :2] = np.swapaxes((1 - floor) * rows + floor / 2, 1, 2)
    layers[:, 2, 2] = 1
    return layers


def order(rng: np.random.Generator, epochs: int, samples: int) -> Whole:
    """Epoch after epoch a permutation."""
    return np.concatenate([rng.permutation(samples) for _ in range(epochs)]).astype(np.int64)


def schedule(seed: int, trial: int, epochs: int) -> tuple[Whole, Whole]:
    """The sample of every update and its turn, +1 or -1."""
    samples = order(stream(seed, trial, 2), epochs, SAMPLES)
    turns = stream(seed, trial, 3).integers(0, 2, len(samples))
    return samples, np.where(turns == 1, 1, -1).astype(np.int64)


def resamples(seed: int, number: int, units: int) -> Whole:
    """Resampled families or trials, one row per resample."""
    return stream(seed).integers(0, units, (number, units))
