"""Reciprocal learners with the compute of a foresight.

Native for longer, native with a finer step, and the full-batch metric gradient.
"""

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from whorl import Network
from whorl.study import draws
from whorl.study.compute import baseline, fused, in_chunks, mean_loss
from whorl.study.frames import Table, product
from whorl.study.kind import Arrays
from whorl.study.parameters import Coupled
from whorl_studies.foresight import native
from whorl_studies.foresight.arms import narrow

LEARNERS = ("longer", "finer", "full_batch")
ACTIONS = 3
SAMPLES = 6


class Compared(NamedTuple):
    """The stage of one learner at one depth."""

    learner: str
    depth: int

    @property
    def name(self) -> str:
        """As in `longer-depth2`."""
        return f"{self.learner}-depth{self.depth}"


def foresight(p: Coupled, horizon: int) -> int:
    """Updates that a trajectory makes in foresight only.

    At each of its own, every action's step and what follows it.
    """
    updates = p.updates
    left = np.arange(updates)[::-1]
    return int(ACTIONS * np.sum(1 + (left if horizon < 0 else np.minimum(left, horizon))))


def multiple(p: Coupled, horizon: int) -> int:
    """How many updates for one the same compute gives a learner that does not look ahead, rounded
    up in its favour.
    """
    return 1 - (-foresight(p, horizon) // (p.updates))


def compute(p: Coupled, stage: Compared) -> Arrays:
    """The final losses of one learner at one depth, (horizons, rows)."""
    rows = product(**p.conditions | {"depth": [stage.depth], "trial": range(p.trials)})
    make = {"longer": _longer, "finer": _finer, "full_batch": _full_batch}[stage.learner]
    return {"final": make(p, rows)}


def _native(
    p: Coupled, rows: Table, order: np.ndarray, scale: np.ndarray, marks: list[int], every: int
) -> np.ndarray:
    """Losses of native learners after the numbers of updates in `marks`, (marks, rows).

    Every sample is shown `every` times in a row.
    """
    nets, x, y, _ = narrow(p, rows)
    settings = np.array([p.leak, every, *marks], dtype=float)
    numbers = np.column_stack([scale, np.broadcast_to(settings, (len(order), len(settings)))])
    size = p.chunk if fused.on_cpu() else len(order)
    found = in_chunks(
        native.program(), (nets.layers, x, y, order, numbers), size, os.cpu_count() or 1
    )
    if not np.isfinite(found).all():
        raise ValueError(
            "every comparator must stay in the interior, but "
            f"{int((~np.isfinite(found)).any(axis=1).sum())} did not"
        )
    return found.T


def _longer(p: Coupled, rows: Table) -> np.ndarray:
    """The native learner goes on, through fresh permutations of the samples."""
    updates = [p.updates * multiple(p, horizon) for horizon in p.horizons]
    long = np.stack(
        [draws.order(p.seed, trial, max(updates) // SAMPLES) for trial in range(p.trials)]
    )
    marks = sorted(updates)
    found = _native(p, rows, long[rows["trial"]], rows["scale"], marks, 1)
    return np.stack([found[marks.index(count)] for count in updates])


def _finer(p: Coupled, rows: Table) -> np.ndarray:
    """Every scheduled sample is shown `multiple` times in a row, with the scale divided by as
    much.
    """
    order = narrow(p, rows)[3]
    times = [multiple(p, horizon) for horizon in p.horizons]
    return np.stack(
        [
            _native(p, rows, order, rows["scale"] / many, [order.shape[1] * many], many)[0]
            for many in times
        ]
    )


def _full_batch(p: Coupled, rows: Table) -> np.ndarray:
    """The metric gradient of the whole task, whose update counts as one for each sample."""
    nets, x, y, _ = narrow(p, rows)
    counts = [p.epochs * multiple(p, horizon) for horizon in p.horizons]
    found: dict[int, np.ndarray] = {}
    before = 0
    for count in sorted(set(counts)):
        nets, loss, running = _gradient_program()(
            nets,
            jnp.asarray(x),
            jnp.asarray(y),
            jnp.asarray(rows["scale"]),
            jnp.asarray(count - before),
        )
        if not bool(jnp.all(running)):
            raise ValueError(
                f"every comparator must stay in the interior, but {int(jnp.sum(~running))} did not"
            )
        before, found[count] = count, np.asarray(loss)
    return np.stack([found[count] for count in counts])


@functools.cache
def _gradient_program() -> Callable[..., Any]:
    rule = baseline.exponentiated_gradient()

    def one(net: Network, x: jax.Array, y: jax.Array, scale: jax.Array, count: jax.Array) -> Any:
        start = baseline.LearnerState(net, jnp.zeros((), dtype=jnp.int32), jnp.ones((), dtype=bool))
        end = jax.lax.fori_loop(
            0, count, lambda _, state: baseline.update(rule, x, y, state, scale)[0], start
        )
        return end.system, mean_loss(end.system, x, y), end.running

    return eqx.filter_jit(jax.vmap(one, in_axes=(0, 0, 0, 0, None)))
