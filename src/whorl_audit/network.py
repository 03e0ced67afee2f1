"""The physics in plain NumPy.

A forward map, its complex-step derivatives, and Gram factors without cancellation.

Layers are `(batch, depth, row, column)`, inputs `(batch, samples, column)`. The map is analytic, so
the imaginary part of F(p + i h q) / h is its derivative along q to the last bit. For a column that
sums to one, Q(p) is the sum over pairs j < k of p_j p_k (e_j - e_k)(e_j - e_k)^T, which gives a
factor whose entries are products of positive numbers: nothing cancels in it, and its singular
values keep digits that eigenvalues of K lose.
"""

from dataclasses import dataclass

import numpy as np

from whorl_audit import plane
from whorl_audit.types import Array, Whole

H = 1e-30  # the complex step: its square vanishes beside any real part
EDGES = ((0, 1), (0, 2), (1, 2))


def predict(layers: Array, inputs: Array) -> Array:
    """Outputs `(batch, samples, row)` (Eq. 11)."""
    flow = np.swapaxes(inputs, 1, 2)
    for n in range(layers.shape[1]):
        flow = layers[:, n] @ flow
    return np.swapaxes(flow, 1, 2)


def jacobian(layers: Array, inputs: Array) -> Array:
    """The derivative of the outputs by the weights, by complex step, `(batch, samples, out, depth,
    row, column)` (Eq. 5).
    """
    batch, depth, rows, columns = layers.shape
    samples = inputs.shape[1]
    flow = np.swapaxes(inputs, 1, 2)
    blocks = []
    for n in range(depth):
        entering, flow = flow, layers[:, n] @ flow
        moved = np.zeros((batch, rows, samples, rows, columns), complex)
        moved += flow[..., None, None]
        for row in range(rows):
            moved[:, row, :, row, :] += 1j * H * np.swapaxes(entering, 1, 2)
        moved = moved.reshape(batch, rows, -1)
        for later in range(n + 1, depth):
            moved = layers[:, later] @ moved
        blocks.append(
            np.swapaxes(np.imag(moved).reshape(batch, -1, samples, rows, columns) / H, 1, 2)
        )
    return np.stack(blocks, axis=3)


def roots(layers: Array) -> Array:
    """A square root of the mobility, `(batch, depth, row, column, edge)`, column by column (Eqs. 2,
    6).
    """
    result = np.zeros((*layers.shape, len(EDGES)))
    for edge, (j, k) in enumerate(EDGES):
        size = np.sqrt(layers[:, :, j] * layers[:, :, k])
        result[:, :, j, :, edge], result[:, :, k, :, edge] = size, -size
    return result


def factor(jac: Array, layers: Array) -> Array:
    """J M^(1/2), `(batch, samples, out, depth * column * edge)`: its Gram matrix is K (Eq. 12)."""
    product = np.einsum("bsolrc,blrce->bsolce", jac, roots(layers), optimize=True)
    return product.reshape(*product.shape[:3], -1)


def carry_back(jac: Array, potential: Array) -> Array:
    """The score J^T v of a potential `(batch, out)` on one sample's Jacobian `(batch, out, depth,
    row, column)`.
    """
    return np.einsum("bolrc,bo->blrc", jac, potential)


def velocity(layers: Array, score: Array) -> Array:
    """Q(p) s in every column (Eq. 3), pair by pair.

    Beside a heavy entry the mean of the scores would take the digits.
    """
    across = score[..., :, None, :] - score[..., None, :, :]
    return layers * np.einsum("...kc,...jkc->...jc", layers, across)


def step(layers: Array, score: Array, size: Array | complex) -> Array:
    """The normalised exponential step (Eq. 4)."""
    exponent = size * score
    highest = np.where(layers != 0, np.real(exponent), -np.inf).max(axis=-2, keepdims=True)
    grown = layers * np.exp(np.where(layers != 0, exponent - highest, 0.0))
    return grown / grown.sum(axis=-2, keepdims=True)


def turn(layers: Array, inputs: Array, score: Array) -> tuple[Array, Array]:
    """G and H_V `(batch, samples, out)` (Eq. 23).

    The velocity of the outputs along the exponential path, and the derivative of it.
    """
    score = score - (layers * score).sum(axis=-2, keepdims=True)
    moved = step(layers, score, 1j * H)
    moving = velocity(moved, score)
    flow, speed = np.swapaxes(inputs, 1, 2), np.zeros(1)
    for n in range(layers.shape[1]):
        speed = moved[:, n] @ speed + moving[:, n] @ flow if n else moving[:, n] @ flow
        flow = moved[:, n] @ flow
    speed = np.swapaxes(speed, 1, 2)
    return np.real(speed), np.imag(speed) / H


def losses(layers: Array, inputs: Array, targets: Array) -> Array:
    """Half the squared residual, summed over the samples (Eq. 5)."""
    return 0.5 * np.square(targets - predict(layers, inputs)).sum(axis=(1, 2))


@dataclass(frozen=True)
class Selected:
    """One sample of every network.

    Its residual in the plane, its Jacobian, and its response in the plane.
    """

    residual: Array
    jacobian: Array
    factor: Array
    response: Array

    @property
    def gain(self) -> Array:
        """The largest amplification of a residual by the inverse of the response."""
        values = np.linalg.svd(plane.reduced(self.factor), compute_uv=False)
        return 1 / np.square(values[:, 1])

    def score(self, potential: Array) -> Array:
        """The score of a potential given in the plane."""
        return carry_back(self.jacobian, plane.out_of(potential))

    def repaired(self) -> tuple[Array, Array]:
        """The reciprocal score and that of a unit turn under the repair law."""
        drives = (self.residual, plane.mix(self.residual, 0.0, 1.0))
        straight, across = (self.score(plane.solve(self.response, one)) for one in drives)
        return straight, across

    def velocity(self, layers: Array, score: Array) -> Array:
        """How the sample's output moves under a score, by way of the weights."""
        return np.einsum("bolrc,blrc->bo", self.jacobian, velocity(layers, score))


def select(layers: Array, inputs: Array, targets: Array, chosen: Whole) -> Selected:
    """The chosen sample of every network."""
    at = np.arange(len(layers))
    entering, leaving = inputs[at, chosen][:, None], targets[at, chosen]
    jac = jacobian(layers, entering)
    inside = factor(jac, layers)[:, 0]
    residual = plane.into(leaving - predict(layers, entering)[:, 0])
    return Selected(residual, jac[:, 0], inside, plane.gram(inside))


def largest_residual(layers: Array, inputs: Array, targets: Array) -> Whole:
    """The sample with the largest residual."""
    return np.square(targets - predict(layers, inputs)).sum(axis=2).argmax(axis=1)
