"""Many single learners at once, on every core or on an accelerator."""

import functools
import os
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from whorl import _check, _progress
from whorl._check import Numbers
from whorl.fast.programs import in_chunks
from whorl.learning.baseline import Rule, Run, checked_key, checked_rule, whole
from whorl.learning.stack import checked_stack, mapped
from whorl.system import System
from whorl.systems.layered import Network

CHUNK = 64  # learners of one call


def learn_many(
    systems: System,
    inputs: Numbers,
    targets: Numbers,
    *,
    rule: Rule,
    scale: Numbers,
    schedule: Numbers,
    full_batch: bool = False,
    record: bool = False,
    workers: int | None = None,
    chunk: int = CHUNK,
    progress: bool = False,
    key: Any = None,
) -> Run:
    """Let many learners run, each from its own system on its own data, as `learn` would.

    Args:
        systems: A stack of systems (see `stack`).
        inputs: Inputs of every learner, `(learners, samples, in)`.
        targets: Targets of every learner, `(learners, samples, out)`.
        rule: How residuals become scores, the same for all.
        scale: The step scale s of the envelope, above 0: one number, or one per learner.
        schedule: The sample shown at each update, `(learners, updates)`.
        full_batch: Whether the residuals of all samples, summed, drive every update.
        record: Whether to keep the loss and the step of every update.
        workers: Threads; every core if left out. It changes how long a run takes and nothing else.
        chunk: Learners that a core takes at once.
        progress: Whether to show a bar, on the error stream.
        key: Of a rule that draws: a whole number or a key of `jax.random`. Learner n draws as
            `learn` does with `jax.random.fold_in(key, n)`.

    Returns:
        The ends of all learners; every array has a leading axis.

    Raises:
        ValueError: Where shapes do not fit together, or `systems` is no stack.

    Examples:
        >>> circuits = wh.stack(
        ...     [
        ...         wh.Circuit([[0, 1], [1, 2]], sizes, sources=[0], outputs=[1], ground=[2])
        ...         for sizes in ([1.0, 2.0], [3.0, 4.0])
        ...     ]
        ... )
        >>> run = wh.learn_many(
        ...     circuits,
        ...     [[[1.0]], [[1.0]]],
        ...     [[[0.5]], [[0.5]]],
        ...     rule=wh.coupled_learning(),
        ...     scale=0.1,
        ...     schedule=np.zeros((2, 100), dtype=int),
        ... )
        >>> bool((run.final < 1e-6 * run.start).all())
        True
    """
    instead = "map learn over the systems with jax.vmap"
    _check.need_known("what learn_many trains", instead, systems, inputs, targets, scale, schedule)
    x, y, order = checked_stack(systems, inputs, targets, schedule)
    checked_rule(rule)
    sizes = _check.numbers("scale", scale, above=0.0)
    if sizes.ndim and sizes.shape != (len(x),):
        raise ValueError(
            f"scale must be one number or one per learner, {len(x)}, but its shape is {sizes.shape}"
        )
    workers = (os.cpu_count() or 1) if workers is None else _check.count("workers", workers)
    program = _program(full_batch, record, isinstance(systems, Network))
    every = checked_key(rule, key)
    keys = (
        None if every is None else jax.vmap(jax.random.fold_in, (None, 0))(every, np.arange(len(x)))
    )
    arrays = (systems, x, y, np.broadcast_to(sizes, len(x)).astype(x.dtype), order, keys)
    with _progress.bar("learn_many", progress) as bar:
        told = {"told": bar.to} if bar else {}
        size = min(_check.count("chunk", chunk), len(x))
        made = in_chunks(functools.partial(program, rule), arrays, size, workers, **told)
    final, begun, ended, kept, stalled = made
    losses, steps = (None, None) if kept is None else map(jnp.asarray, kept)
    driving = x.shape[1] if full_batch else 1
    return Run(
        jax.tree.map(jnp.asarray, final.system),
        jnp.asarray(begun),
        jnp.asarray(ended),
        losses,
        steps,
        order,
        driving,
        np.asarray(final.number),
        stalled,
    )


@functools.cache
def _program(full_batch: bool, record: bool, side_by_side: bool) -> Callable[..., Any]:
    def one(
        rule: Rule,
        system: System,
        x: Array,
        y: Array,
        scale: Array,
        order: Array,
        key: Array | None,
    ) -> Any:
        return whole(rule, system, x, y, scale, order, full_batch, record, key)

    return eqx.filter_jit(
        lambda rule, *chunk: mapped(lambda *each: one(rule, *each), side_by_side)(*chunk)
    )
