r"""Seeded tasks: compositions to redistribute, and what they should become.

A task has the vertices of the input simplex and a few Dirichlet(1) mixtures as inputs; its targets
are what a random column-stochastic teacher makes of them. Random numbers come from NumPy, so that a
seed means the same on every machine.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl import _check, _construct


class Task(eqx.Module):
    """Inputs and the targets they should be turned into, rows of unit mass.

    Examples:
        >>> wh.Task.random(3, 3, seed=0).inputs.shape
        (6, 3)
    """

    inputs: Float[Array, "samples in"]
    targets: Float[Array, "samples out"]

    @classmethod
    def random(
        cls,
        inputs: int,
        outputs: int,
        *,
        seed: int | np.random.Generator,
        mixtures: int = 3,
        concentration: float = 1.0,
    ) -> "Task":
        """The vertices, `mixtures` random mixtures, and a teacher with Dirichlet(`concentration`)
        columns.
        """
        sizes = _construct.widths((inputs, outputs))
        mixtures = _check.count("mixtures", mixtures, 0)
        spread = _check.number("concentration", concentration, above=0.0)
        _check.double("a task", np.float64)
        return cls(
            *map(
                jnp.asarray, drawn(sizes[0], sizes[1], _construct.generator(seed), mixtures, spread)
            )
        )


def drawn(
    inputs: int,
    outputs: int,
    rng: np.random.Generator,
    mixtures: int = 3,
    concentration: float = 1.0,
) -> tuple[np.ndarray, ...]:
    """Inputs and targets of `Task.random` before they are one, for whoever draws thousands."""
    rows = np.concatenate([np.eye(inputs), rng.dirichlet(np.ones(inputs), size=mixtures)])
    return rows, rows @ rng.dirichlet(np.full(outputs, concentration), size=inputs)
