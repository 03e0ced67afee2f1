"""Rollouts of width three, many pairs at once.

At every update all actions of all pairs go ahead as lanes side by side.

`foresight` defines what is computed; this file computes it faster, as `lanes` does for other
policies.
The number of updates that are looked ahead is a bound of a loop, not part of the program, so that
one compiled program serves every horizon and every list of as many actions: a plain foresight is
one whose foreseen order is the true one, whose mixture is (0, 1) and whose errors are zero.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from whorl.fast.fused import keep
from whorl.fast.kept import updated
from whorl.fast.lanes import (
    Columns,
    Knobs,
    Learner,
    Local,
    act,
    axis,
    choose,
    growth,
    loss,
    measure,
    span,
    stepped,
    update_native,
)


class Foresight(NamedTuple):
    """What a rollout is made of.

    Actions are (actions,), tables have the updates first and the lanes last.
    """

    amounts: Array
    fractions: Array
    horizon: Array
    foreseen: Array  # (updates, lanes)
    mixture: Array  # what b and r contribute to the direction in place of r, (updates, 2, lanes)
    errors: Array  # relative, of the losses that are read, (updates, actions, lanes)


def options(local: Local, native: Array, rule: Knobs, plan: Foresight) -> tuple[Array, Array]:
    """The step and the amount of every action, (actions, lanes)."""
    steps = []
    for amount, fraction in zip(axis(plan.amounts, 0), axis(plan.fractions, 0), strict=True):
        swung = (rule.omega * amount)[None, None] * local.r
        kept = rule.scale / jnp.maximum(
            span(local.b + swung, local.flow), span(local.b - swung, local.flow)
        )
        steps.append(fraction * jnp.where(amount == 0, native, kept))
    return keep(jnp.stack(steps)), rule.omega[None] * plan.amounts[:, None] * jnp.ones_like(native)[
        None
    ]


def landed(columns: Columns, local: Local, steps: Array, pushes: Array) -> Columns:
    """Where every action leads, actions as lanes side by side."""
    ends = []
    for step, push in zip(axis(steps, 0), axis(pushes, 0), strict=True):
        still = keep(columns.head * sum(growth(local.flow, local.b, step)))
        ends.append(stepped(columns, keep(still * sum(growth(local.flow, local.r, push)))))
    return Columns(*(jnp.concatenate(parts, -1) for parts in zip(*ends, strict=True)))


def ahead(
    columns: Columns,
    data: tuple[Array, Array],
    rule: Knobs,
    order: Array,
    first: Array,
    last: Array,
    actions: int,
    every: Array | int = 1,
) -> Columns:
    """The native learner goes on from there, through updates `first` to before `last`.

    An entry of the order serves `every` one.
    """
    scale, leak = (jnp.tile(value, actions) for value in (rule.scale, rule.leak))

    def body(number: Array, columns: Columns) -> Columns:
        sample = jax.lax.dynamic_index_in_dim(order, number // every, keepdims=False)
        x, y = keep(tuple(jnp.tile(choose(values, sample), (1, actions)) for values in data))
        local = measure(columns, x, y, leak)
        step = keep(scale / span(local.b, local.flow))
        return stepped(columns, keep(columns.head * sum(growth(local.flow, local.b, step))))

    return jax.lax.fori_loop(first, last, body, columns)


def lowest(readings: Array) -> Array:
    """The number of the lowest reading, the first of equals; NaN and infinity never win."""
    readings = jnp.where(jnp.isfinite(readings), readings, jnp.inf)
    best, at = readings[0], jnp.zeros(readings.shape[1:], jnp.int32)
    for number, reading in enumerate(axis(readings, 0)):
        at, best = jnp.where(reading < best, number, at), jnp.minimum(reading, best)
    return at


def update(
    state: Learner,
    samples: Any,
    rest: Array,
    data: tuple[Array, Array],
    now: tuple,
    rule: Knobs,
    plan: Foresight,
) -> tuple[Learner, tuple[Array, ...], list[Array]]:
    """One update of the learner that looks ahead.

    What is returned is that of `lanes.update_turning`, and the choice behind it.
    """
    number, x, y, turn = now
    local = measure(state.columns, x, y, rule.leak)
    direct, turned = (plan.mixture[number, part][None, None] for part in (0, 1))
    local = local._replace(r=keep(direct * local.b + turned * local.r))
    native = keep(rule.scale / span(local.b, local.flow))
    steps, amounts = options(local, native, rule, plan)
    actions, lanes = steps.shape
    last = jnp.minimum(plan.foreseen.shape[0], number + 1 + plan.horizon)
    ends = ahead(
        landed(state.columns, local, steps, amounts * turn[None] * steps),
        data,
        rule,
        plan.foreseen,
        number + 1,
        last,
        actions,
    )
    x_all, y_all = (jnp.tile(values, (1, 1, actions)) for values in samples)
    losses = keep(loss(ends.head, (x_all, y_all))).reshape(actions, lanes)
    choice = lowest((losses + rest[None]) * (1 + plan.errors[number]))
    step, amount = (choose(values[:, None], choice)[0] for values in (steps, amounts))
    state, terms, seen = act(state, samples, local, native, step, amount, turn)
    return state, terms, [*seen, choice.astype(step.dtype)]


def train(
    layers: Array,
    data: tuple[Array, Array],
    samples: Any,
    rest: Array,
    schedule: tuple[Array, Array],
    rule: Knobs,
    plan: Foresight,
    record: bool,
) -> Any:
    """Pairs from start to end, as `lanes.train`; an outcome has the choice as its eighth row."""
    columns = Columns(layers[:, :2], layers[:, 2])
    start = Learner(columns, keep(loss(columns.head, samples)))

    def body(carry: tuple, now: tuple[Array, Array, Array]) -> tuple[tuple, Any]:
        looking, native, sums, lost = carry
        number, sample, turn = now
        x, y = keep(tuple(choose(values, sample) for values in data))
        scheduled = number, x, y, turn.astype(layers.dtype)
        looking, (even, handedness, step, own), seen = update(
            looking, samples, rest, data, scheduled, rule, plan
        )
        native, other = update_native(native, samples, x, y, rule)
        row = jnp.stack([even, handedness, step, own - other])
        total = keep(sums + row)
        # A step not taken is made up for by drift later: the terms are large against their sum, so
        # what rounding takes is kept (Neumaier).
        lost = lost + jnp.where(
            jnp.abs(sums) >= jnp.abs(row), (sums - total) + row, (row - total) + sums
        )
        outcome = [*seen[:6], native.loss, seen[6]]
        return (looking, native, total, lost), (list(row), outcome)

    none = jnp.zeros((4, layers.shape[-1]), dtype=layers.dtype)
    numbers = jnp.arange(schedule[0].shape[0], dtype=jnp.int32)
    (looking, native, sums, lost), rows = updated(
        body, (start, start, none, none), (numbers, *schedule), layers, record, chooses=True
    )
    ends = (
        jnp.concatenate([c.head, c.tail[:, None]], 1) for c in (looking.columns, native.columns)
    )
    return sums + lost, rows, *ends, start.loss, looking.loss, native.loss
