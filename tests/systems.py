"""Networks whose answers can be written down.

Every route to the response is tried on all of them.
"""

from typing import NamedTuple

import numpy as np

import whorl as wh


class System(NamedTuple):
    name: str
    net: wh.Network
    inputs: np.ndarray
    response: np.ndarray  # K on the flattened fields, solved by hand
    eigenvalues: list[float]  # on the zero-sum fields, largest first

    def __str__(self):
        return self.name


def _quarter(p):
    """Q(p), written out."""
    return np.array(
        [[a * (1 - a) if i == j else -a * b for j, b in enumerate(p)] for i, a in enumerate(p)]
    )


def uniform_column():
    """One source that spreads evenly over four outputs.

    Every zero-sum potential is answered alike, K = P / 4.
    """
    return System(
        "uniform column",
        wh.Network([np.full((4, 1), 0.25)]),
        np.ones((1, 1)),
        (np.eye(4) - 0.25) / 4,
        [0.25] * 3,
    )


def two_outputs():
    """One source and two outputs: only the difference moves, with a (1 - a)."""
    a = 0.3
    k = a * (1 - a)
    return System(
        "two outputs",
        wh.Network([np.array([[a], [1 - a]])]),
        np.ones((1, 1)),
        k * np.array([[1, -1], [-1, 1]]),
        [2 * k],
    )


def vertices():
    """One layer seen through its vertices.

    No sample shares a column, so K is block diagonal with rho Q(p).
    """
    layer = np.array([[0.5, 0.2], [0.25, 0.2], [0.25, 0.6]])
    rates = np.array([2.0, 0.5])
    blocks = np.zeros((6, 6))
    blocks[:3, :3], blocks[3:, 3:] = 2.0 * _quarter(layer[:, 0]), 0.5 * _quarter(layer[:, 1])
    # Q(1/2, 1/4, 1/4): 3/8 on (2, -1, -1) and 1/4 on (0, 1, -1). Q(1/5, 1/5, 3/5): 1/5 on (1, -1,
    # 0) and 9/25 on (1, 1, -2).
    return System(
        "vertices", wh.Network([layer], rates=[rates]), np.eye(2), blocks, [0.75, 0.5, 0.18, 0.1]
    )


def shared_column():
    """Two samples that use the same single column.

    One block repeated, half of the modes answer nothing.
    """
    p = np.array([0.5, 0.25, 0.25])
    return System(
        "shared column",
        wh.Network([p[:, None]]),
        np.ones((2, 1)),
        np.kron(np.ones((2, 2)), _quarter(p)),
        [0.75, 0.5, 0, 0],
    )


def two_layers():
    """A split that is split again, all by hand: the output fraction is ab + (1 - a)c."""
    a, b, c = 0.25, 0.8, 0.4
    net = wh.Network(
        [np.array([[a], [1 - a]]), np.array([[b, c], [1 - b, 1 - c]])], rates=[3.0, 0.5]
    )
    k = 3.0 * a * (1 - a) * (b - c) ** 2 + 0.5 * (a**2 * b * (1 - b) + (1 - a) ** 2 * c * (1 - c))
    return System("two layers", net, np.ones((1, 1)), k * np.array([[1, -1], [-1, 1]]), [2 * k])


def washed_out():
    """A uniform layer behind another: it forgets what came in, so that only itself responds."""
    net = wh.Network([np.array([[0.7, 0.1], [0.3, 0.9]]), np.full((3, 2), 1 / 3)])
    squares = (0.5 * 0.7 + 0.5 * 0.1) ** 2 + (0.5 * 0.3 + 0.5 * 0.9) ** 2
    return System(
        "washed out",
        net,
        np.array([[0.5, 0.5]]),
        squares * (np.eye(3) - 1 / 3) / 3,
        [squares / 3] * 2,
    )


def disconnected():
    """Two components without a path between them.

    Mass cannot cross, and the mode that would need it answers nothing.
    """
    layer = np.array([[0.5, 0.25, 0], [0.5, 0.75, 0], [0, 0, 1.0]])
    x = np.array([0.25, 0.25, 0.5])
    k = 0.0625 * (0.25 + 0.1875)
    net = wh.Network([layer], support=[layer > 0])
    return System(
        "disconnected", net, x[None], k * np.array([[1, -1, 0], [-1, 1, 0], [0, 0, 0]]), [2 * k, 0]
    )


def frozen_front():
    """A first layer with one supported entry a column cannot move.

    The second does all the answering.
    """
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    layer = np.array([[0.5, 0.2], [0.25, 0.2], [0.25, 0.6]])
    net = wh.Network([swap, layer], support=[swap > 0, layer > 0])
    return System("frozen front", net, np.array([[1.0, 0.0]]), _quarter(layer[:, 1]), [0.36, 0.2])


ALL = [
    uniform_column(),
    two_outputs(),
    vertices(),
    shared_column(),
    two_layers(),
    washed_out(),
    disconnected(),
    frozen_front(),
]
