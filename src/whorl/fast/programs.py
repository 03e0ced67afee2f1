"""Compiled programs for chunks of pairs of width three, and the work of many chunks on several
threads.
"""

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from whorl.fast import fused, lanes, rollout

BLOCK = 64  # pairs that walk together through the caches of one core


@functools.cache
def lane_program(policy: str, gate: str, record: bool) -> Callable[..., Any]:
    """A compiled chunk.

    Pairs first on the way in and out, as users have them, and last in between, as `lanes` wants
    them.

    Numbers are scale, omega and leak; a rollout adds its horizon, amounts and fractions, and three
    tables: `rollout.Foresight`.
    """

    def block(
        layers: Array,
        x: Array,
        y: Array,
        samples: Any,
        rest: Array,
        order: Array,
        turns: Array,
        *more: Array,
    ) -> Any:
        numbers, *tables = more
        rule = lanes.Knobs(numbers[0], numbers[1], numbers[2], policy, gate)
        if policy != "rollout":
            return lanes.train(layers, x, y, samples, order, turns, rule, record)
        amounts, fractions = numbers[4:, 0].reshape(2, -1)
        plan = rollout.Foresight(amounts, fractions, numbers[3, 0].astype(jnp.int32), *tables)
        return rollout.train(layers, (x, y), samples, rest, (order, turns), rule, plan, record)

    def chunk(layers: Sequence[Array], *given: Array) -> Any:
        x, y, order, turns, *more = (jnp.moveaxis(array, 0, -1) for array in given)
        samples, rest = lanes.compress(x, y[:, :2])
        data = (
            jnp.stack([jnp.moveaxis(layer, 0, -1) for layer in layers]),
            x,
            y[:, :2],
            samples,
            rest,
            order,
            turns,
            *more,
        )
        work = fused.whole(
            lambda data: block_by_block(block, data) if fused.on_cpu() else block(*data)
        )
        sums, rows, turning, native, *losses = work(data)
        ends = ([jnp.moveaxis(layer, -1, 0) for layer in layers] for layers in (turning, native))
        if rows is None:
            return list(sums), None, None, *ends, *(loss + rest for loss in losses)
        kept, (taken, opposite, still, own, step, amount, other, *choice) = (
            jnp.moveaxis(part, (0, 1), (-1, 0)) for part in rows
        )
        seen = [
            *(one + rest[:, None] for one in (taken, opposite, still, own, other)),
            step,
            amount,
            *choice,
        ]
        return list(sums), list(kept), seen, *ends, *(loss + rest for loss in losses)

    return jax.jit(chunk, compiler_options=fused.compiler_options())


@functools.cache
def native_program() -> Callable[..., Any]:
    """A compiled chunk of native learners alone: their losses at marks.

    Numbers are scale, leak, how often an entry serves, and marks.
    """

    def block(
        layers: Array, x: Array, y: Array, samples: Any, order: Array, numbers: Array
    ) -> Array:
        rule = lanes.Knobs(numbers[0], numbers[0], numbers[1], "native", "never")
        every, *marks = numbers[2:, 0].astype(jnp.int32)
        return rollout.native_losses(layers, (x, y), samples, order, rule, jnp.stack(marks), every)

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
        return (work(data) + rest[None]).T

    return jax.jit(chunk, compiler_options=fused.compiler_options())


def block_by_block(function: Callable[..., Any], data: Any) -> Any:
    """One block after the other along the last axis, each result written where it belongs."""
    size = data[0].shape[-1]

    def one(first: Any) -> Any:
        return function(
            *jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, first, BLOCK, a.ndim - 1), data)
        )

    def write(number: Any, out: Any) -> Any:
        first = number * BLOCK
        return jax.tree.map(
            lambda to, new: jax.lax.dynamic_update_slice_in_dim(to, new, first, to.ndim - 1),
            out,
            one(first),
        )

    empty = jax.tree.map(
        lambda a: jnp.zeros((*a.shape[:-1], size), dtype=a.dtype), jax.eval_shape(one, 0)
    )
    return jax.lax.fori_loop(0, size // BLOCK, write, empty)


def in_chunks(call: Callable[..., Any], arrays: Any, size: int, workers: int) -> Any:
    """Call on pieces of `size` pairs, on several threads, and join what comes back.

    The last piece is filled up.
    """
    host = jax.tree.map(np.asarray, arrays)
    total = jax.tree.leaves(host)[0].shape[0]

    def piece(first: int) -> Any:
        def cut(array: np.ndarray) -> np.ndarray:
            part = array[first : first + size]
            return (
                part
                if len(part) == size
                else np.concatenate([part, np.repeat(part[-1:], size - len(part), axis=0)])
            )

        return jax.tree.map(np.asarray, call(*jax.tree.map(cut, host)))

    # XLA lets go of the interpreter while it runs, so that threads are enough to use every core.
    with ThreadPoolExecutor(workers) as pool:
        pieces = list(pool.map(piece, range(0, total, size)))
    return jax.tree.map(
        lambda *parts: parts[0][:total] if len(parts) == 1 else np.concatenate(parts)[:total],
        *pieces,
    )
