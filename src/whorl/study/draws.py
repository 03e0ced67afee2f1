"""Every random number of a study, from streams that are keyed by what they are for.

A family is the same whoever its neighbours are.
"""

from functools import lru_cache

import numpy as np

from whorl import _construct, schedule
from whorl.ground.streams import stream
from whorl.task import drawn

TASK, COLUMNS, ORDER, TURNS, CONTROL, ANGLES, FORESEEN, READINGS, WIDE = range(9)


@lru_cache(maxsize=1 << 12)  # all depths share their tasks
def task(seed: int, family: int, concentration: float) -> tuple[np.ndarray, ...]:
    """Inputs and targets of a family, each (6, 3), for reading only."""
    return _kept(*drawn(3, 3, stream(seed, family, TASK), concentration=concentration))


def _kept(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    for array in arrays:
        array.flags.writeable = False
    return arrays


def dirichlet_layers(
    seed: int, family: int, depth: int, concentration: float, floor: float
) -> np.ndarray:
    """A network with Dirichlet columns and a uniform share, (depth, 3, 3)."""
    rng = stream(seed, family, COLUMNS, depth)
    draws = rng.dirichlet(np.full(3, concentration), size=(depth, 3))
    return (1 - floor) * draws.transpose(0, 2, 1) + floor / 3


def softmax_layers(seed: int, family: int, depth: int, beta: float, floor: float) -> np.ndarray:
    """A network with columns softmax(beta z) and a uniform share, (depth, 3, 3).

    All imbalances share the logits z.
    """
    return _construct.columns(
        beta * _logits(seed, family, depth), np.ones((3, 3), dtype=bool), floor
    )


@lru_cache(maxsize=1 << 12)
def _logits(seed: int, family: int, depth: int) -> np.ndarray:
    return _kept(stream(seed, family, COLUMNS, depth).standard_normal((depth, 3, 3)))[0]


def control_layers(seed: int, depth: int, concentration: float, floor: float) -> np.ndarray:
    """A network in two components, outputs {0, 1} and {2}, (depth, 3, 3)."""
    draws = stream(seed, 0, CONTROL, depth).dirichlet(np.full(2, concentration), size=(depth, 2))
    layers = np.zeros((depth, 3, 3))
    layers[:, :2, :2] = (1 - floor) * draws.transpose(0, 2, 1) + floor / 2
    layers[:, 2, 2] = 1.0
    return layers


def order(seed: int, trial: int, epochs: int) -> np.ndarray:
    """Which sample is shown at each update."""
    return schedule.permuted(6, epochs, stream(seed, trial, ORDER))


def turns(seed: int, trial: int, updates: int) -> np.ndarray:
    """Which way to turn at each update."""
    return schedule.fair_turns(updates, stream(seed, trial, TURNS))


def angles(seed: int, trial: int, updates: int) -> np.ndarray:
    """A direction for each update, as an angle from the residual in its plane."""
    return stream(seed, trial, ANGLES).uniform(0.0, 2 * np.pi, updates)


def foreseen(seed: int, trial: int, epochs: int) -> np.ndarray:
    """An order of the samples that is not the true one."""
    return schedule.permuted(6, epochs, stream(seed, trial, FORESEEN))


def readings(seed: int, trial: int, updates: int) -> np.ndarray:
    """Errors of the losses that are read for three actions at each update, in units of the
    noise.
    """
    return stream(seed, trial, READINGS).standard_normal((updates, 3))


def wide(
    seed: int, trial: int, width: int, concentration: float, epochs: int
) -> tuple[np.ndarray, ...]:
    """Inputs, targets and order of a wide trial: the vertices and three mixtures."""
    shown = drawn(width, width, stream(seed, trial, WIDE, TASK), concentration=concentration)
    return *shown, schedule.permuted(width + 3, epochs, stream(seed, trial, WIDE, ORDER))


def wide_layers(
    seed: int, trial: int, width: int, depth: int, beta: float, floor: float
) -> np.ndarray:
    """A network of any width with columns softmax(beta z) and a uniform share."""
    logits = stream(seed, trial, WIDE, COLUMNS, depth).standard_normal((depth, width, width))
    return _construct.columns(beta * logits, np.ones((width, width), dtype=bool), floor)


def largest_residual(layers: np.ndarray, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The sample with the largest residual norm, of networks (..., depth, 3, 3) and their tasks
    (..., 6, 3).
    """
    predictions = inputs
    for number in range(layers.shape[-3]):
        predictions = predictions @ np.swapaxes(layers[..., number, :, :], -1, -2)
    return np.asarray(np.argmax(np.sum((targets - predictions) ** 2, axis=-1), axis=-1))
