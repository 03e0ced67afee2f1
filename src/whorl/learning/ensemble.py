"""Many pairs of learners at once, on every core or on an accelerator.

`train_many` is `train` for a stack of systems of one structure. Policies, gates and spectral laws of
this library go through kernels (`dispatch` says which); a policy, gate or law that only its author
knows goes through the general loop, mapped over the stack. On a CPU all work through chunks of a
fixed number of pairs, so that neither memory nor the last bits of a result depend on how many
workers there are. A pair that
cannot be finished does not disturb the others: it stops where `train` would stop it.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from whorl import _check, _progress
from whorl._check import Numbers
from whorl.fast import fused
from whorl.fast.programs import BLOCK, in_chunks, lane_program, layer_program
from whorl.learning import dispatch
from whorl.learning.ledger import Ledger, Outcome, Terms
from whorl.learning.policy import Policy, check_policy, check_turn
from whorl.learning.results import Coupled, Info
from whorl.learning.schedule import checked_turns
from whorl.learning.stack import checked_rows, checked_stack, first, mapped
from whorl.learning.trajectory import begin, run, train
from whorl.system import System
from whorl.systems.layered import Network

CHUNK = 256  # pairs of one call, and a part of a result's identity: last bits depend on it
GENERAL_CHUNK = 64
AT_ONCE = 2**23  # weights of any widths that a device takes at once; more fall out of its cache


class Ensemble(Coupled):
    """The ends of many coupled pairs and their accounts; every array has a leading axis, the pairs.

    Its names are those of every `whorl.Result`; `updates` and `losses` are None where
    `record=False`.

    Examples:
        >>> nets = wh.stack([net, net])
        >>> data = [np.stack([rows, rows]) for rows in (x, y)]
        >>> many = wh.train_many(
        ...     nets,
        ...     *data,
        ...     policy=wh.native(0.1),
        ...     schedule=[[0, 1], [2, 3]],
        ...     turns=[[1, 1], [-1, 1]],
        ... )
        >>> many.completed.tolist(), many.gap.tolist()
        ([True, True], [0.0, 0.0])
    """

    nonreciprocal: Any  # stacks of systems, at their ends
    native: Any
    ledger: Ledger
    updates: Info | None  # (pairs, updates), where they were kept
    made: Int[np.ndarray, "pairs"]  # updates made before the end, or before a pair stopped
    scheduled: int = eqx.field(static=True)
    stalled: Any = False  # whether a pair stopped because neither learner moved any more


def stacked(layers: Float[np.ndarray, "pairs depth width width"]) -> Network:
    """The same from layers that were drawn and checked as arrays, all rates one.

    Examples:
        >>> from whorl.learning.ensemble import stacked
        >>> stacked(np.full((5, 2, 3, 3), 1 / 3)).layers[1].shape
        (5, 3, 3)
    """
    pairs, depth, _, width = layers.shape
    like = Network([np.full((width, width), 1 / width)])
    arrays = tuple(layers[:, number] for number in range(depth)), (np.ones((pairs, width)),) * depth
    return eqx.tree_at(lambda net: (net.layers, net.rates), like, jax.device_put(arrays))


def train_many(
    nets: Any,
    inputs: Numbers,
    targets: Numbers,
    *,
    policy: Policy,
    schedule: Numbers,
    turns: Numbers,
    record: bool = False,
    workers: int | None = None,
    chunk: int | None = None,
    progress: bool = False,
) -> Ensemble:
    """Let many coupled pairs run, each from its own system on its own data.

    Args:
        nets: A stack of networks, or of other systems (see `stack`).
        inputs: Inputs of every pair, `(pairs, samples, in)`.
        targets: Targets of every pair, `(pairs, samples, out)`.
        policy: What the nonreciprocal learners follow; its numbers may be given once per pair.
        schedule: The sample shown at each update, `(pairs, updates)`.
        turns: The sense of each turn, +1 or -1, `(pairs, updates)`.
        record: Whether to keep what happened at every update.
        workers: Threads; every core if left out. It changes how long a run takes and nothing else.
        chunk: Pairs that a core takes at once, a multiple of 64; last bits may depend on it.
        progress: Whether to show a bar, on the error stream.

    Returns:
        The ends of all pairs and their ledgers.

    Raises:
        ValueError: Where shapes do not fit together, or the policy cannot turn through these
            networks.

    Examples:
        >>> nets = wh.stack([net, net])
        >>> data = [np.stack([rows, rows]) for rows in (x, y)]
        >>> many = wh.train_many(
        ...     nets,
        ...     *data,
        ...     policy=wh.native(0.1),
        ...     schedule=[[0, 1], [2, 3]],
        ...     turns=[[1, 1], [-1, 1]],
        ... )
        >>> many.made.tolist()
        [2, 2]
    """
    instead = "map train over the pairs with jax.vmap"
    _check.need_known(
        "what train_many trains", instead, nets, inputs, targets, policy, schedule, turns
    )
    data = _checked_data(nets, inputs, targets, schedule, turns)
    check_policy(policy)
    policy.check(data[0].shape[1], data[2].shape[1], data[0].shape[0])
    check_turn(policy, first(nets))
    workers = (os.cpu_count() or 1) if workers is None else _check.count("workers", workers)
    size = _checked_chunk(chunk)
    found = prepared(nets, policy, data, record)
    with _progress.bar("train_many", progress) as bar:
        many = functools.partial(in_chunks, workers=workers, told=bar.to if bar else _unheard)
        if found is None:
            return _general(nets, policy, data, record, many, size or GENERAL_CHUNK)
        program, arrays = found
        at_once = (size or CHUNK) if fused.on_cpu() else device_chunk(nets, policy)
        made = many(program, arrays, at_once)
    return _mended(_gathered(made, nets, data[2].shape[1]), nets, policy, data)


def prepared(
    nets: Any, policy: Policy, data: tuple[np.ndarray, ...], record: bool
) -> tuple[Callable[..., Any], tuple] | None:
    """The kernel for this work and what it is called with, if there is one.

    Args:
        nets: A stack of networks.
        policy: What the nonreciprocal learners follow.
        data: Inputs, targets, schedule and turns that were checked, one row per pair.
        record: Whether to keep what happened at every update.

    Returns:
        A compiled program and its arrays, or None where only the general loop can do the work.
    """
    if (lanes := dispatch.lane_kind(nets, policy)) is not None:
        arrays = (nets.layers, *data, *policy.kernel_tables(data[2]))
        return lane_program(*lanes, record), arrays
    if (kind := dispatch.layer_kind(nets, policy)) is not None:
        own, shared = (part.law for part in eqx.partition(policy, policy.per_pair()))
        program = layer_program(kind, kind.rated, kind.decomposed, record)
        arrays = (nets.layers, nets.rates, *data, policy.kernel_tables(data[2]), own)
        return functools.partial(program, eqx.filter(shared, eqx.is_array)), arrays
    return None


def device_chunk(nets: Network, policy: Policy) -> int:
    """How many pairs a device takes at once: pieces of one size, as few as fit its cache."""
    pairs = nets.layers[0].shape[0]
    weights = sum(layer.size for layer in nets.layers)
    pieces = 1 if dispatch.lane_kind(nets, policy) else -(-weights // AT_ONCE)
    return -(-pairs // pieces)


def _unheard(_share: float) -> None:
    """Ignore progress that was not asked for."""


def _checked_chunk(chunk: int | None) -> int | None:
    if chunk is not None and _check.count("chunk", chunk) % BLOCK:
        raise ValueError(f"chunk must be a multiple of {BLOCK}, but it is {chunk}")
    return chunk


def _checked_data(
    nets: System, inputs: Numbers, targets: Numbers, order: Numbers, turns: Numbers
) -> tuple[np.ndarray, ...]:
    x, y, given = checked_stack(nets, inputs, targets, order)
    senses = checked_rows("turns", turns, len(x))
    return x, y, given, checked_turns(senses.ravel(), given.size).reshape(given.shape)


def _gathered(made: tuple, nets: Network, updates: int) -> Ensemble:
    *_, start, one, other = made
    choice = None if made[2] is None or len(made[2]) == 7 else made[2].pop().astype(int)
    # Nothing else holds these arrays, so that a CPU need not copy them.
    sums, rows, seen, turning, native = jax.device_put(made[:5], may_alias=True)
    kept = None if rows is None else Info(Terms(*rows), Outcome(*seen), choice)
    one_end, other_end = (nets.with_blocks(layers) for layers in (turning, native))
    account = Ledger(Terms(*sums), None if kept is None else kept.terms, start, one, other)
    return Ensemble(one_end, other_end, account, kept, np.full(len(start), updates), updates)


def _mended(result: Ensemble, nets: Network, policy: Policy, data: tuple) -> Ensemble:
    """Run again, one by one and with care, the pairs that left the interior."""
    sound = np.isfinite(result.final[0]) & np.isfinite(result.final[1])
    begun, *ends = fused.at_hand((nets, result.nonreciprocal, result.native))
    for end in ends:
        for layer, began in zip(end.layers, begun.layers, strict=True):
            inside = ((layer > 0) | (began == 0)) & (abs(layer) < np.inf)
            sound &= np.asarray(inside.all(axis=(1, 2)))
    for number in np.flatnonzero(~sound):
        x, y, order, turns = (array[number] for array in data)
        own, shared = eqx.partition(policy, policy.per_pair())
        net, own = jax.tree.map(lambda leaf, at=int(number): leaf[at], (nets, own))
        single = eqx.combine(own, shared)
        pair = train(
            net, x, y, policy=single, schedule=order, turns=turns, record=result.updates is not None
        )
        result = _spliced(result, int(number), pair)
    return result


def _spliced(result: Ensemble, number: int, pair: Any) -> Ensemble:
    room = (0, result.scheduled - pair.made)

    def put(whole: Any, one: Any) -> Any:
        new = np.asarray(whole).copy()
        new[number] = one
        return new if isinstance(whole, np.ndarray) else jnp.asarray(new)

    kept = result.updates
    if kept is not None:
        seen = Info(
            pair.updates.terms,
            pair.updates.outcome,
            None if kept.choice is None else pair.updates.choice,
        )
        kept = jax.tree.map(lambda whole, one: put(whole, np.pad(one, room)), kept, seen)
    whole, one = (
        (side.nonreciprocal, side.native, side.ledger.sums, *side.final, side.start)
        for side in (result, pair)
    )
    turning, native, sums, *losses, start = jax.tree.map(put, whole, one)
    account = Ledger(sums, None if kept is None else kept.terms, start, *losses)
    return Ensemble(turning, native, account, kept, put(result.made, pair.made), result.scheduled)


def _general(
    nets: System,
    policy: Policy,
    data: tuple,
    record: bool,
    many: Callable[..., Any],
    chunk: int,
) -> Ensemble:
    own, shared = eqx.partition(policy, policy.per_pair())
    one_pair = _general_program(record, isinstance(nets, Network))
    final, sums, infos, start = many(
        lambda *chunk: one_pair(shared, *chunk), (nets, *data, own), chunk
    )
    back = lambda tree: jax.tree.map(jnp.asarray, tree)  # noqa: E731
    kept = None
    if record:
        choice = infos.choice.astype(int) if policy.chooses else None
        kept = Info(back(infos.terms), back(infos.outcome), choice)
    account = Ledger(back(sums), None if kept is None else kept.terms, start, *final.losses)
    return Ensemble(
        back(final.nonreciprocal),
        back(final.native),
        account,
        kept,
        final.number.astype(int),
        data[2].shape[1],
    )


@functools.cache
def _general_program(record: bool, side_by_side: bool) -> Callable[..., Any]:
    def one(
        shared: Policy, net: System, x: Array, y: Array, order: Array, turns: Array, own: Policy
    ) -> Any:
        start = begin(net, x, y)
        final, sums, infos, _ = run(
            eqx.combine(own, shared), x, y, start, order, turns, record, None
        )
        return final, sums, infos, start.losses[0]

    return eqx.filter_jit(
        lambda shared, *chunk: mapped(lambda *each: one(shared, *each), side_by_side)(*chunk)
    )
