"""What the three kinds share: tasks, tolerances, and the scores of one sample."""

from dataclasses import dataclass

import numpy as np

from whorl_audit import network, plane
from whorl_audit.types import Array, Columns, Expected, Whole

DRAWN = 1e-12
COMPUTED = 1e-11
CONDITION = 1e-13  # times the root of the condition number


def drawn(values: Array) -> Expected:
    """A column that is drawn again."""
    return Expected(values.ravel(), DRAWN)


def computed(values: Array, scale: Array | None = None) -> Expected:
    """A computed column, to be measured by `scale`, which is broadcast over the rows."""
    return Expected(
        values.ravel(),
        COMPUTED,
        None if scale is None else np.broadcast_to(scale, values.shape).ravel(),
    )


def exact(values: Whole) -> Expected:
    """A column of whole numbers."""
    return Expected(values.ravel().astype(np.int64))


def condition(values: Array) -> Expected:
    """A column of condition numbers."""
    return Expected(values.ravel(), CONDITION, (values * np.sqrt(values)).ravel())


def loss(values: Array, stretch: Array | float = 1.0) -> Expected:
    """A column of losses.

    An error of the outputs enters times the residual, so that small losses keep fewer digits.
    """
    return computed(values, (values + 1e-2 * np.sqrt(values)) * stretch)


def stretched(gain: Array | float) -> Array:
    """How much the tolerance widens behind a solve that amplifies a residual by `gain`.

    Little below a thousand.
    """
    return 1 + np.asarray(gain) / 1e3


def components(name: str, vectors: Array, stretch: Array | float = 1.0) -> Columns:
    """The three components of vectors `(..., 3)`, measured by the length of the vector."""
    length = np.linalg.norm(vectors, axis=-1) * stretch
    return {f"{name}_{k}": computed(vectors[..., k], length) for k in range(3)}


def task_columns(inputs: Array, targets: Array) -> Columns:
    """The table `tasks`."""
    return {
        f"{name}_{k}": drawn(values[..., k])
        for name, values in (("x", inputs), ("y", targets))
        for k in range(3)
    }


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
    def singular(self) -> Array:
        """The two singular values of the factor in the plane, the larger first."""
        return np.linalg.svd(reduced(self.factor), compute_uv=False)

    @property
    def gain(self) -> Array:
        """The largest amplification of a residual by the inverse of the response."""
        return 1 / np.square(self.singular[:, 1])

    def score(self, potential: Array) -> Array:
        """The score of a potential given in the plane."""
        return network.carry_back(self.jacobian, plane.out_of(potential))

    def velocity(self, layers: Array, score: Array) -> Array:
        """How the sample's output moves under a score, by way of the weights."""
        return np.einsum("bolrc,blrc->bo", self.jacobian, network.velocity(layers, score))


def select(layers: Array, inputs: Array, targets: Array, chosen: Whole) -> Selected:
    """The chosen sample of every network."""
    at = np.arange(len(layers))
    entering, leaving = inputs[at, chosen][:, None], targets[at, chosen]
    jac = network.jacobian(layers, entering)
    factor = network.factor(jac, layers)[:, 0]
    residual = plane.into(leaving - network.predict(layers, entering)[:, 0])
    return Selected(residual, jac[:, 0], factor, plane.gram(factor))


def largest_residual(layers: Array, inputs: Array, targets: Array) -> Whole:
    """The sample with the largest residual."""
    return np.square(targets - network.predict(layers, inputs)).sum(axis=2).argmax(axis=1)


def reduced(factor: Array) -> Array:
    """A factor `(batch, 3, n)` in the plane, which has the same singular values but the zero
    one.
    """
    return np.einsum("po,bon->bpn", plane.AXES, factor)
