"""The networks of the structural study: Dirichlet columns, and columns in two components."""

import numpy as np

from whorl.ground.streams import stream
from whorl.study.draws import COLUMNS, CONTROL


def dirichlet_layers(
    seed: int, family: int, depth: int, concentration: float, floor: float
) -> np.ndarray:
    """A network with Dirichlet columns and a uniform share, (depth, 3, 3)."""
    rng = stream(seed, family, COLUMNS, depth)
    draws = rng.dirichlet(np.full(3, concentration), size=(depth, 3))
    return (1 - floor) * draws.transpose(0, 2, 1) + floor / 3


def control_layers(seed: int, depth: int, concentration: float, floor: float) -> np.ndarray:
    """A network in two components, outputs {0, 1} and {2}, (depth, 3, 3)."""
    draws = stream(seed, 0, CONTROL, depth).dirichlet(np.full(2, concentration), size=(depth, 2))
    layers = np.zeros((depth, 3, 3))
    layers[:, :2, :2] = (1 - floor) * draws.transpose(0, 2, 1) + floor / 2
    layers[:, 2, 2] = 1.0
    return layers
