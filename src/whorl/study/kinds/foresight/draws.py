"""What only the foresight study draws: directions, a wrong schedule, noise, and wide trials."""

import numpy as np

from whorl import _construct
from whorl.ground.streams import stream
from whorl.learning import schedule
from whorl.study.draws import COLUMNS, ORDER, TASK
from whorl.task import drawn

ANGLES, FORESEEN, READINGS, WIDE = range(5, 9)


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
    seed: int, trial: int, depth: int, beta: float, width: int, floor: float
) -> np.ndarray:
    """A network of any width with columns softmax(beta z) and a uniform share."""
    logits = stream(seed, trial, WIDE, COLUMNS, depth).standard_normal((depth, width, width))
    return _construct.columns(beta * logits, np.ones((width, width), dtype=bool), floor)
