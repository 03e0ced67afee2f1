"""Many pairs of learners at once, on every core or on an accelerator.

`train_many` is `train` for a stack of networks of one shape. Policies, gates and spectral laws of
this library go through kernels (`dispatch` says which); a policy, gate or law that only its author
knows goes through the general loop, mapped over the stack. On a CPU all work through chunks of a
fixed number of pairs, so that neither memory nor the last bits of a result depend on how many
workers there are. A pair that
cannot be finished does not disturb the others: it stops where `train` would stop it.
"""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

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
from whorl.learning.policy import Policy, check_turn
from whorl.learning.results import Coupled, Info
from whorl.learning.schedule import checked_order, checked_turns
from whorl.learning.trajectory import begin, run, train
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

    nonreciprocal: Network
    native: Network
    ledger: Ledger
    updates: Info | None  # (pairs, updates), where they were kept
    made: Int[np.ndarray, "pairs"]  # updates made before the end, or before a pair stopped
    scheduled: int = eqx.field(static=True)
    stalled: ClassVar[bool] = False  # steps of columns never shrink to nothing


def stack(nets: Sequence[Network]) -> Network:
    """Networks of one shape as one network whose arrays have a leading axis, as `train_many` takes
    them.

    Args:
        nets: Networks that share their widths and their type.

    Returns:
        One network whose arrays have a leading axis.

    Examples:
        >>> wh.stack([net, net]).layers[0].shape
        (2, 3, 3)
    """
    if not nets:
        raise ValueError("nets must hold at least one network, but it is empty")
    for number, net in enumerate(nets):
        if net.widths != nets[0].widths or net.dtype != nets[0].dtype:
            raise ValueError(
                f"nets must share the widths {nets[0].widths} and one type, but network {number} "
                f"has {net.widths}, {net.dtype}"
            )
    if not _check.known(nets):
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    return jax.tree.map(
        lambda *leaves: jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves])), *nets
    )


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
    nets: Network,
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
    """Let many coupled pairs run, each from its own network on its own data.

    Args:
        nets: A stack of networks (see `stack`).
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
    if not isinstance(policy, Policy):
        raise ValueError(
            "policy must be native(...), step_matched(...), adaptive(...) or your own Policy, but "
            f"it is {_check.shown(policy)}"
        )
    policy.check(data[0].shape[1], data[2].shape[1], data[0].shape[0])
    check_turn(policy, dispatch.first(nets))
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
    nets: Network, policy: Policy, data: tuple[np.ndarray, ...], record: bool
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
    """Nobody asked for progress."""


def _checked_chunk(chunk: int | None) -> int | None:
    if chunk is not None and _check.count("chunk", chunk) % BLOCK:
        raise ValueError(f"chunk must be a multiple of {BLOCK}, but it is {chunk}")
    return chunk


def _checked_data(
    nets: Network, inputs: Numbers, targets: Numbers, order: Numbers, turns: Numbers
) -> tuple[np.ndarray, ...]:
    if any(layer.ndim != 3 for layer in nets.layers):
        raise ValueError(
            "nets must be a stack of networks, made by stack([...]), but its layers have shape "
            f"{nets.layers[0].shape}"
        )
    pairs = nets.layers[0].shape[0]
    widths = (nets.layers[0].shape[2], nets.layers[-1].shape[1])
    x = _check.compositions("inputs", inputs, widths[0], nets.dtype, pairs=pairs)
    y = _check.compositions("targets", targets, widths[1], nets.dtype, pairs=pairs)
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"targets must have one row per input, but there are {y.shape[1]} targets and "
            f"{x.shape[1]} inputs"
        )
    given, senses = _check.numpy("schedule", order), _check.numpy("turns", turns)
    for name, table in (("schedule", given), ("turns", senses)):
        if table.ndim != 2 or table.shape[0] != pairs:
            raise ValueError(
                f"{name} must have shape ({pairs}, updates), but its shape is {table.shape}"
            )
    flat = checked_order(given.ravel(), x.shape[1]), checked_turns(senses.ravel(), given.size)
    return np.asarray(x), np.asarray(y), *(np.asarray(part).reshape(given.shape) for part in flat)


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
    nets: Network,
    policy: Policy,
    data: tuple,
    record: bool,
    many: Callable[..., Any],
    chunk: int,
) -> Ensemble:
    own, shared = eqx.partition(policy, policy.per_pair())
    one_pair = _general_program(record)
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
def _general_program(record: bool) -> Callable[..., Any]:
    def one(
        shared: Policy, net: Network, x: Array, y: Array, order: Array, turns: Array, own: Policy
    ) -> Any:
        start = begin(net, x, y)
        final, sums, infos, _ = run(
            eqx.combine(own, shared), x, y, start, order, turns, record, None
        )
        return final, sums, infos, start.losses[0]

    return eqx.filter_jit(eqx.filter_vmap(one, in_axes=(None, 0, 0, 0, 0, 0, 0)))
