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
from whorl._show import Shown, plural
from whorl.system import System


class Task(Shown, eqx.Module):
    """Inputs and the targets they should be turned into, rows of unit mass.

    Examples:
        >>> wh.Task.random(3, 3, seed=0).inputs.shape
        (6, 3)
    """

    inputs: Float[Array, "samples in"]
    targets: Float[Array, "samples out"]

    def __str__(self) -> str:
        (samples, inputs), outputs = self.inputs.shape, self.targets.shape[1]
        return (
            f"{plural(samples, 'sample')} with {plural(inputs, 'input')} and "
            f"{plural(outputs, 'output')}"
        )

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

    @classmethod
    def of(
        cls,
        system: System,
        *,
        seed: int | np.random.Generator,
        mixtures: int = 3,
        spread: float = 1.0,
    ) -> "Task":
        """A task that `system` can learn: its targets are its own outputs at another state.

        The inputs are the vertices and `mixtures` random mixtures; the other state is one step
        along normal scores of size `spread` away. Also for systems whose outputs do not sum to one.
        """
        _check.instance("system", system, System)
        rng, width = _construct.generator(seed), system.sizes[0]
        mixtures = _check.count("mixtures", mixtures, 0)
        rows = np.concatenate([np.eye(width), rng.dirichlet(np.ones(width), size=mixtures)])
        inputs = system.checked_inputs(rows.astype(system.dtype))
        size = _check.number("spread", spread, above=0.0)
        scores = [
            jnp.asarray(size * rng.standard_normal(part.shape), dtype=system.dtype)
            for part in system.blocks
        ]
        return cls(inputs, system.stepped(scores, 1.0).outputs(inputs))


def drawn(
    inputs: int,
    outputs: int,
    rng: np.random.Generator,
    mixtures: int = 3,
    concentration: float = 1.0,
) -> tuple[np.ndarray, ...]:
    """Inputs and targets of `Task.random` as plain arrays, which is faster for many tasks."""
    rows = np.concatenate([np.eye(inputs), rng.dirichlet(np.ones(inputs), size=mixtures)])
    return rows, rows @ rng.dirichlet(np.full(outputs, concentration), size=inputs)
