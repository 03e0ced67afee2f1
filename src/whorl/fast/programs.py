"""Compiled programs for chunks of pairs, and the work of many chunks on several threads."""

import functools
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from whorl import _progress
from whorl.fast import ahead, fused, lanes, layers, rollout

BLOCK = 64  # pairs that walk together through the caches of one core
ALIGNED = 64  # bytes
WARP = 16  # pairs whose numbers lie side by side on a device
LANES = ((4, 64), (12, 32), (np.inf, 8))  # the same for layers up to a width
DECOMPOSED = 32  # the same at least where responses are decomposed, in many small steps


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
            made = lanes.train(layers, x, y, samples, order, turns, rule, record)
            return pairs_first(rest, *made)
        amounts, fractions = numbers[4:, 0].reshape(2, -1)
        plan = rollout.Foresight(amounts, fractions, numbers[3, 0].astype(jnp.int32), *tables)
        made = rollout.train(layers, (x, y), samples, rest, (order, turns), rule, plan, record)
        return pairs_first(rest, *made)

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
        return fused.whole(
            lambda data: block_by_block(block, data) if fused.on_cpu() else block(*data)
        )(data)

    return jax.jit(chunk, compiler_options=fused.compiler_options())


def pairs_first(
    rest: Array, sums: Array, rows: Any, turning: Any, native: Any, *losses: Array
) -> tuple[Any, ...]:
    """What `train` of a kernel returns of one block, as users have it. `rest` is the part of a loss
    that no network changes.
    """
    ends = ([jnp.moveaxis(layer, -1, 0) for layer in layers] for layers in (turning, native))
    ended = (*ends, *(loss + rest for loss in losses))
    if rows is None:
        return list(sums), None, None, *ended
    kept, (taken, opposite, still, own, step, amount, other, *choice) = rows
    whole = [one + rest[:, None] for one in (taken, opposite, still, own, other)]
    return list(sums), kept, [*whole, step, amount, *choice], *ended


# What a kernel is made for, and how it makes its rule: from the arrays of a policy, the rows of
# that policy for the lanes at hand, and its numbers (scale and omega), all with the lanes last.
Ruled = Callable[[Any, Any, Array], layers.Rule]


@functools.cache
def layer_program(ruled: Ruled, rated: bool, decomposed: bool, record: bool) -> Callable[..., Any]:
    """A compiled chunk of pairs of any widths, as `lane_program` for those of width three; they may
    be `rated`, and their responses `decomposed`.

    Called with arrays of a policy that all pairs share, then layers, rates, data and the tables of
    `Policy.kernel_tables`, and last arrays of the policy with one row per pair.
    """

    # Arrays with and without a leading axis of learners meet throughout.
    @jax.numpy_rank_promotion("allow")
    def chunk(shared: Any, blocks: Sequence[Array], *given: Any) -> Any:
        kind = blocks[0].dtype
        last = jax.tree.map(
            lambda a: jnp.moveaxis(
                a.astype(kind) if jnp.isdtype(a.dtype, "real floating") else a, 0, -1
            ),
            (blocks, *given),
        )
        blocks, rates, x, y, order, turns, tables, own = last
        compressed, rest = layers.compress(x, y)

        def block(blocks: Any, rates: Any, x: Any, y: Any, data: Any, *more: Any) -> Any:
            rest, order, turns, (numbers, *ahead_of), own = more
            rule = ruled(shared, own, numbers)
            look = None
            if rule.policy == "rollout":
                amounts, fractions = numbers[4:, 0].reshape(2, -1)
                horizon = numbers[3, 0].astype(jnp.int32)
                plan = rollout.Foresight(amounts, fractions, horizon, *ahead_of)
                look = ahead.chooser(ahead.Task(x, y, data, rest), rule, plan)
            speeds = rates if rated else [None] * len(blocks)
            made = layers.train(blocks, speeds, (x, y), data, (order, turns), rule, record, look)
            return pairs_first(rest, *made)

        widest = max(size for layer in blocks for size in layer.shape[:2])
        lanes_at_once = next(size for limit, size in LANES if widest <= limit)
        if decomposed:
            lanes_at_once = max(lanes_at_once, DECOMPOSED)
        data = (blocks, rates, x, y, compressed, rest, order, turns, tables, own)
        return fused.whole(
            lambda data: (
                block_by_block(block, data, lanes_at_once)
                if fused.on_cpu()
                else side_by_side(block, data)
            ),
            inlined=True,
        )(data)

    return jax.jit(chunk, compiler_options=fused.compiler_options(quick=True))


def side_by_side(function: Callable[..., Any], data: Any) -> Any:
    """Blocks along the last axis at once, each by itself in memory: what a multiprocessor reads of
    a matrix again and again then stays in its own cache. The last block is filled up with the first
    pair.
    """
    size = jax.tree.leaves(data)[0].shape[-1]
    room = -size % WARP

    def split(array: Array) -> Array:
        filled = jnp.concatenate([array, jnp.repeat(array[..., :1], room, -1)], -1)
        return jnp.moveaxis(filled.reshape(*array.shape[:-1], -1, WARP), -2, 0)

    out = jax.vmap(lambda data: function(*data))(jax.tree.map(split, data))
    return jax.tree.map(lambda array: array.reshape(-1, *array.shape[2:])[:size], out)


def block_by_block(function: Callable[..., Any], data: Any, width: int = BLOCK) -> Any:
    """One block after the other along the last axis, each result written where it belongs; results
    have their pairs first.
    """
    size = jax.tree.leaves(data)[0].shape[-1]

    def one(first: Any) -> Any:
        return function(
            *jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, first, width, a.ndim - 1), data)
        )

    def write(number: Any, out: Any) -> Any:
        first = number * width
        return jax.tree.map(
            lambda to, new: jax.lax.dynamic_update_slice_in_dim(to, new, first, 0),
            out,
            one(first),
        )

    empty = jax.tree.map(
        lambda a: jnp.zeros((size, *a.shape[1:]), dtype=a.dtype), jax.eval_shape(one, 0)
    )
    return jax.lax.fori_loop(0, size // width, write, empty)


def in_chunks(
    call: Callable[..., Any],
    arrays: Any,
    size: int,
    workers: int,
    told: Callable[[float], None] = lambda _: None,
) -> Any:
    """Call on pieces of `size` pairs, on several threads, and join what comes back.

    The last piece is filled up. `told` hears which share is done.
    """
    host = jax.tree.map(np.asarray, arrays)
    total = jax.tree.leaves(host)[0].shape[0]
    lock, whole, done, stop = threading.Lock(), [], [], threading.Event()

    def piece(first: int) -> None:
        def cut(array: np.ndarray) -> np.ndarray:
            part = array[first : first + size]
            return (
                part
                if len(part) == size
                else np.concatenate([part, np.repeat(part[-1:], size - len(part), axis=0)])
            )

        def put(to: np.ndarray, made: np.ndarray) -> None:
            to[first : first + size] = made[: total - first]

        made = jax.tree.map(np.asarray, _progress.waited(call(*jax.tree.map(cut, host)), stop))
        with lock:
            if not whole:
                whole.append(jax.tree.map(lambda part: _room(part, total), made))
        jax.tree.map(put, whole[0], made)
        with lock:
            done.append(first)
            told(min(len(done) * size / total, 1.0))

    _shared(piece, range(0, total, size), workers, stop)
    return whole[0]


def _shared(
    work: Callable[[int], None], items: Sequence[int], workers: int, stop: threading.Event
) -> None:
    """Work on every item with several threads; after an error or interrupt, start no further item.

    XLA lets go of the interpreter while it runs, so that threads are enough to use every core. This
    thread is one of them: where there is little to do, handing it over costs as much.
    """
    waiting, lock = iter(items), threading.Lock()

    def following() -> int | None:
        with lock:
            return next(waiting, None)

    def take() -> None:
        try:
            while (item := following()) is not None:
                work(item)
        except BaseException:
            stop.set()
            while following() is not None:
                pass
            raise

    helpers = min(workers, len(items)) - 1
    with ThreadPoolExecutor(max(helpers, 1)) as pool:
        others = [pool.submit(take) for _ in range(helpers)]
        take()
        for other in others:
            other.result()


def _room(like: np.ndarray, total: int) -> np.ndarray:
    """An empty array for all pairs that begins where a device may use it without a copy."""
    shape = (total, *like.shape[1:])
    raw = np.empty(math.prod(shape) * like.itemsize + ALIGNED, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNED
    return raw[start : start + math.prod(shape) * like.itemsize].view(like.dtype).reshape(shape)
