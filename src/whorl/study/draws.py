"""Every random number of a study, from streams that are keyed by what they are for.

A family is the same whoever its neighbours are.
"""

from functools import lru_cache

import numpy as np

from whorl import _construct
from whorl.ground.streams import stream as stream
from whorl.learning import schedule
from whorl.task import drawn

TASK, COLUMNS, ORDER, TURNS, CONTROL = range(5)  # what a stream is for; a kind may add others


@lru_cache(maxsize=1 << 12)  # all depths share their tasks
def task(seed: int, family: int, concentration: float) -> tuple[np.ndarray, ...]:
    """Inputs and targets of a family, each (6, 3), for reading only."""
    return _kept(*drawn(3, 3, stream(seed, family, TASK), concentration=concentration))


def tasks(seed: int, families: int, concentration: float) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets of all families, each (families, 6, 3)."""
    x, y = zip(*(task(seed, one, concentration) for one in range(families)), strict=True)
    return np.stack(x), np.stack(y)


def _kept(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    for array in arrays:
        array.flags.writeable = False
    return arrays


def softmax_layers(seed: int, family: int, depth: int, beta: float, floor: float) -> np.ndarray:
    """A network with columns softmax(beta z) and a uniform share, (depth, 3, 3).

    All imbalances share the logits z.
    """
    return _construct.columns(
        beta * _logits(seed, family, depth), np.ones((3, 3), dtype=bool), floor
    )


def softmax_networks(
    seed: int, families: int, depth: int, betas: list[float], floor: float
) -> np.ndarray:
    """Such networks of all families and imbalances, (families * imbalances, depth, 3, 3)."""
    at = [(family, beta) for family in range(families) for beta in betas]
    return np.stack([softmax_layers(seed, family, depth, beta, floor) for family, beta in at])


@lru_cache(maxsize=1 << 12)
def _logits(seed: int, family: int, depth: int) -> np.ndarray:
    return _kept(stream(seed, family, COLUMNS, depth).standard_normal((depth, 3, 3)))[0]


def wide(
    seed: int, trial: int, number: int, width: int, concentration: float, epochs: int
) -> tuple[np.ndarray, ...]:
    """Inputs, targets and order of a wide trial: the vertices and three mixtures.

    `number` is what the kind calls the streams of its wide arm.
    """
    shown = drawn(width, width, stream(seed, trial, number, TASK), concentration=concentration)
    return *shown, schedule.permuted(width + 3, epochs, stream(seed, trial, number, ORDER))


def wide_layers(
    seed: int, trial: int, number: int, depth: int, beta: float, width: int, floor: float
) -> np.ndarray:
    """A network of any width with columns softmax(beta z) and a uniform share, from the same
    streams.
    """
    logits = stream(seed, trial, number, COLUMNS, depth).standard_normal((depth, width, width))
    return _construct.columns(beta * logits, np.ones((width, width), dtype=bool), floor)


def order(seed: int, trial: int, epochs: int) -> np.ndarray:
    """Which sample is shown at each update."""
    return schedule.permuted(6, epochs, stream(seed, trial, ORDER))


def turns(seed: int, trial: int, updates: int) -> np.ndarray:
    """Which way to turn at each update."""
    return schedule.fair_turns(updates, stream(seed, trial, TURNS))


def largest_residual(layers: np.ndarray, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The sample with the largest residual norm, of networks (..., depth, 3, 3) and their tasks
    (..., 6, 3).
    """
    predictions = inputs
    for number in range(layers.shape[-3]):
        predictions = predictions @ np.swapaxes(layers[..., number, :, :], -1, -2)
    return np.asarray(np.argmax(np.sum((targets - predictions) ** 2, axis=-1), axis=-1))
