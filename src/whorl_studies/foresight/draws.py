"""What only the foresight study draws: directions, a wrong schedule, and noise."""

import numpy as np

from whorl.study.compute import schedule
from whorl.study.draws import stream

ANGLES, FORESEEN, READINGS, WIDE = range(5, 9)  # the last is that of the wide arm


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
