"""Many pairs of learners at once, on every core or on an accelerator.

`train_many` is `train` for a stack of networks of one shape. Networks whose widths are all three,
with full support, unit rates and the leaky law, go through `lanes`; all others through the general
loop, mapped over the stack. On a CPU both work through chunks of a fixed number of pairs, so that
neither memory nor the last bits of a result depend on how many workers there are. A pair that
cannot be finished does not disturb the others: it stops where `train` would stop it.
"""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from whorl import _check, _fused
from whorl._check import Numbers
from whorl._exponential import REACH
from whorl._programs import BLOCK, in_chunks
from whorl._programs import lane_program as _lane_program
from whorl.feedback import Leaky
from whorl.foresight import Rollout
from whorl.ledger import TERMS, Entry, Outcome
from whorl.policy import (
    Adaptive,
    Native,
    Policy,
    StepMatched,
    always,
    check_turn,
    curvature_gate,
    never,
)
from whorl.schedule import checked_order, checked_turns
from whorl.systems.layered import Network
from whorl.trajectory import begin, run, train

CHUNK = 256  # pairs of one call, and a part of a result's identity: last bits depend on it
GENERAL_CHUNK = 64


class Ensemble(eqx.Module):
    """The ends of many coupled pairs and their accounts; every array has a leading axis, the pairs.

    Examples:
        >>> nets = wh.stack([net, net])
        >>> data = [np.stack([rows, rows]) for rows in (x, y)]
        >>> many = wh.train_many(nets, *data, policy=wh.native(0.1), schedule=[[0, 1], [2, 3]], turns=[[1, 1], [-1, 1]])
        >>> many.completed.tolist(), many.gap.tolist()
        ([True, True], [0.0, 0.0])
    """

    nonreciprocal: Network
    native: Network
    sums: Entry
    updates: Entry | None  # (pairs, updates), where they were kept
    outcomes: Outcome | None  # likewise
    choices: Int[np.ndarray, "pairs updates"] | None  # likewise, of policies that pick from a list
    start: Float[np.ndarray, "pairs"]
    losses: tuple[Float[np.ndarray, "pairs"], Float[np.ndarray, "pairs"]]  # nonreciprocal, native
    made: Int[np.ndarray, "pairs"]  # updates made before the end, or before a pair stopped
    scheduled: int = eqx.field(static=True)

    @property
    def gap(self) -> Float[np.ndarray, "pairs"]:
        """Final loss of each nonreciprocal learner less that of its native twin."""
        return self.losses[0] - self.losses[1]

    @property
    def completed(self) -> Bool[np.ndarray, "pairs"]:
        """Which pairs made every scheduled update."""
        return self.made == self.scheduled

    @property
    def closure(self) -> Float[np.ndarray, "pairs"]:
        """How far each account is from its gap, relative to the largest loss involved."""
        size = np.maximum(np.maximum(*self.losses), np.maximum(self.start, np.finfo(float).tiny))
        return np.abs(np.asarray(self.sums.total) - self.gap) / size

    def __str__(self) -> str:
        means = ", ".join(
            f"{term} {np.mean(np.asarray(getattr(self.sums, term))):+.4e}" for term in TERMS
        )
        return (
            f"{int(self.completed.sum())} of {len(self.start)} pairs completed {self.scheduled} "
            "updates\n"
            f"mean gap {self.gap.mean():+.4e} = {means}\nlargest closure residual "
            f"{self.closure.max():.1e}"
        )


def stack(nets: Sequence[Network]) -> Network:
    """Networks of one shape as one network whose arrays have a leading axis, as `train_many` takes
    them.

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
) -> Ensemble:
    """Let many coupled pairs run, each from its own network on its own data.

    `nets` is a stack of networks (see `stack`), `inputs` and `targets` are `(pairs, samples, ...)`,
    `schedule` and `turns` are `(pairs, updates)`. `record` keeps the account and the losses of
    every update. `workers` is the number of threads, every core if left out; it changes how long a
    run takes and nothing else. `chunk` is the number of pairs that a core takes at once, a multiple
    of 64; last bits may depend on it.

    Examples:
        >>> nets = wh.stack([net, net])
        >>> data = [np.stack([rows, rows]) for rows in (x, y)]
        >>> many = wh.train_many(nets, *data, policy=wh.native(0.1), schedule=[[0, 1], [2, 3]], turns=[[1, 1], [-1, 1]])
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
    check_turn(policy, jax.tree.map(lambda leaf: leaf[0], nets))
    workers = (os.cpu_count() or 1) if workers is None else _check.count("workers", workers)
    size = _checked_chunk(chunk)
    kind = _lane_kind(nets, policy)
    if kind is None:
        return _general(nets, policy, data, record, workers, size or GENERAL_CHUNK)
    return _mended(
        _by_lanes(nets, policy, kind, data, record, workers, size or CHUNK), nets, policy, data
    )


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
            f"targets must have one row an input, but there are {y.shape[1]} targets and "
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


def _lane_kind(nets: Network, policy: Policy) -> tuple[str, str] | None:
    """The names under which `lanes` knows this policy, if it can do the work at all."""
    law = policy.law
    kinds = {
        Native: "native",
        StepMatched: "step_matched",
        Adaptive: "adaptive",
        Rollout: "rollout",
    }
    gates = {curvature_gate: "curvature", always: "always", never: "never"}
    fits = (
        type(nets) is Network
        and all(layer.shape[1:] == (3, 3) for layer in nets.layers)
        and nets.dtype == np.float64
        and isinstance(law.base, Leaky)
        and law.skew is None
        and law.alpha.ndim == 0
        and float(law.alpha) == 1.0
        and float(jnp.max(policy.scale)) <= REACH
        and all(bool(jnp.all(layer > 0)) for layer in nets.layers)
        and all(bool(jnp.all(rate == 1)) for rate in nets.rates)
    )
    gate: Any = policy.gate
    return (
        (kinds[type(policy)], gates[gate])
        if fits and type(policy) in kinds and gate in gates
        else None
    )


def _by_lanes(
    nets: Network,
    policy: Policy,
    kind: tuple[str, str],
    data: tuple,
    record: bool,
    workers: int,
    chunk: int,
) -> Ensemble:
    pairs, updates = data[2].shape
    size = chunk if _fused.on_cpu() else pairs
    arrays = (nets.layers, *data, *_lane_numbers(policy, data[2]))
    sums, rows, seen, turning, native, start, one, other = in_chunks(
        _lane_program(*kind, record), arrays, size, workers
    )
    kept = None if rows is None else Entry(*map(jnp.asarray, rows))
    outcomes = None if seen is None else Outcome(*map(jnp.asarray, seen[:7]))
    choices = None if seen is None or len(seen) == 7 else seen[7].astype(int)
    one_end, other_end = (
        nets.with_blocks([jnp.asarray(layer) for layer in layers]) for layers in (turning, native)
    )
    account = Entry(*map(jnp.asarray, sums))
    return Ensemble(
        one_end,
        other_end,
        account,
        kept,
        outcomes,
        choices,
        start,
        (one, other),
        np.full(pairs, updates),
        updates,
    )


def _lane_numbers(policy: Policy, order: np.ndarray) -> list[np.ndarray]:
    """What a program takes besides networks and data, one row a pair.

    The numbers of a policy, and the tables of a rollout.
    """
    assert isinstance(policy.law.base, Leaky)
    pairs, updates = order.shape
    numbers = [policy.scale, policy.omega, policy.law.base.mu]
    if not isinstance(policy, Rollout):
        return [np.stack([np.broadcast_to(one, pairs) for one in numbers], axis=1)]
    numbers += [policy.horizon, *policy.amounts, *policy.fractions]
    foreseen = order if policy.foreseen is None else policy.foreseen
    mixture = np.broadcast_to([0.0, 1.0], (pairs, updates, 2))
    if policy.angles is not None:
        mixture = np.stack([np.cos(policy.angles), np.sin(policy.angles)], axis=2)
    errors = (
        np.zeros((pairs, updates, policy.amounts.size)) if policy.errors is None else policy.errors
    )
    return [
        np.stack([np.broadcast_to(one, pairs) for one in numbers], axis=1),
        np.asarray(foreseen),
        mixture,
        np.asarray(errors),
    ]


def _mended(result: Ensemble, nets: Network, policy: Policy, data: tuple) -> Ensemble:
    """Run again, one by one and with care, the pairs that left the interior."""
    ends = [*result.nonreciprocal.layers, *result.native.layers]
    sound = np.isfinite(result.losses[0]) & np.isfinite(result.losses[1])
    for layer in ends:
        sound &= np.asarray((layer > 0) & jnp.isfinite(layer)).all(axis=(1, 2))
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
    account = pair.ledger
    updates, outcomes, choices = None, None, result.choices
    if choices is not None:
        choices = choices.copy()
        choices[number] = np.pad(pair.updates.choice, (0, result.scheduled - pair.made))
    if result.updates is not None:
        short = jax.tree.map(
            lambda leaf: jnp.pad(leaf, (0, result.scheduled - pair.made)),
            (account.updates, pair.updates.outcome),
        )
        whole = (result.updates, result.outcomes)
        updates, outcomes = jax.tree.map(lambda whole, one: whole.at[number].set(one), whole, short)
    put = lambda whole, one: np.concatenate([whole[:number], [one], whole[number + 1 :]])  # noqa: E731
    return Ensemble(
        jax.tree.map(
            lambda whole, one: whole.at[number].set(one), result.nonreciprocal, pair.nonreciprocal
        ),
        jax.tree.map(lambda whole, one: whole.at[number].set(one), result.native, pair.native),
        jax.tree.map(lambda whole, one: whole.at[number].set(one), result.sums, account.sums),
        updates,
        outcomes,
        choices,
        put(result.start, float(account.start)),
        (
            put(result.losses[0], float(account.nonreciprocal)),
            put(result.losses[1], float(account.native)),
        ),
        put(result.made, pair.made),
        result.scheduled,
    )


def _general(
    nets: Network, policy: Policy, data: tuple, record: bool, workers: int, chunk: int
) -> Ensemble:
    own, shared = eqx.partition(policy, policy.per_pair())
    one_pair = _general_program(record)
    final, sums, infos, start = in_chunks(
        lambda *chunk: one_pair(shared, *chunk), (nets, *data, own), chunk, workers
    )
    back = lambda tree: jax.tree.map(jnp.asarray, tree)  # noqa: E731
    return Ensemble(
        back(final.nonreciprocal),
        back(final.native),
        back(sums),
        back(infos.entry) if record else None,
        back(infos.outcome) if record else None,
        infos.choice.astype(int) if record and policy.chooses else None,
        start,
        final.losses,
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
