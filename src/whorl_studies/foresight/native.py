"""Compiled native learners that read their losses at marks, for learners with equal compute."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from whorl.study.compute import ahead, block_by_block, fused, keep, lanes


@functools.cache
def program() -> Callable[..., Any]:
    """A compiled chunk of native learners alone: their losses at marks.

    Numbers are scale, leak, how often an entry serves, and marks.
    """

    def block(
        layers: Array, x: Array, y: Array, samples: Any, order: Array, numbers: Array
    ) -> Array:
        rule = lanes.Knobs(numbers[0], numbers[0], numbers[1], "native", "never")
        every, *marks = numbers[2:, 0].astype(jnp.int32)
        return native_losses(layers, (x, y), samples, order, rule, jnp.stack(marks), every).T

    def chunk(layers: Sequence[Array], *given: Array) -> Array:
        x, y, order, numbers = (jnp.moveaxis(array, 0, -1) for array in given)
        samples, rest = lanes.compress(x, y[:, :2])
        data = (
            jnp.stack([jnp.moveaxis(layer, 0, -1) for layer in layers]),
            x,
            y[:, :2],
            samples,
            order,
            numbers,
        )
        work = fused.whole(
            lambda data: block_by_block(block, data) if fused.on_cpu() else block(*data)
        )
        return work(data) + rest[:, None]

    return jax.jit(chunk, compiler_options=fused.compiler_options())


def native_losses(
    layers: Array,
    data: tuple[Array, Array],
    samples: Any,
    order: Array,
    rule: lanes.Knobs,
    marks: Array,
    every: Array,
) -> Array:
    """Losses of the native learner alone after the numbers of updates in `marks`, which do not
    fall; (marks, lanes).
    """

    def body(
        carry: tuple[lanes.Columns, Array], mark: Array
    ) -> tuple[tuple[lanes.Columns, Array], Array]:
        columns = ahead(carry[0], data, rule, order, carry[1], mark, 1, every)
        return (columns, mark), keep(lanes.loss(columns.head, samples))

    start = lanes.Columns(layers[:, :2], layers[:, 2])
    return jax.lax.scan(body, (start, jnp.zeros((), dtype=marks.dtype)), marks)[1]
