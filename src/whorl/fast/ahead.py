"""Rollouts of any widths: `rollout` on the arrays of `layers`, with actions as learners.

`foresight` defines what is computed; this file computes it faster.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from whorl.fast.fused import keep
from whorl.fast.layers import (
    Chooser,
    Groups,
    Layer,
    Local,
    Rule,
    choose,
    grown,
    growth,
    loss,
    native_step,
    swept,
    total,
    width_of,
)
from whorl.fast.rollout import Foresight, lowest


class Task(NamedTuple):
    """What is looked ahead on."""

    inputs: Array  # (samples, in, lanes)
    targets: Array
    data: tuple[Array, Array]  # compressed
    rest: Array  # the part of the loss that no network changes


def options(state: Groups, local: Local, rule: Rule, plan: Foresight) -> tuple[Array, Array]:
    """The step and the amount of every action, (actions, lanes)."""
    amounts = rule.omega * plan.amounts[:, None]

    def body(spread: Array, p: Layer, told: tuple) -> tuple[Array, None]:
        push, b, r = told
        p = p._replace(learner=0)
        swung = amounts[:, None] * r
        both = (width_of(b + sense * swung, push, p, rule.full) for sense in (1.0, -1.0))
        return keep(jnp.maximum(spread, jnp.maximum(*both))), None

    spread, _ = swept(body, jnp.ones_like(amounts), state, _turning(local))
    native = local.native[:1]
    steps = plan.fractions[:, None] * jnp.where(amounts == 0, native, rule.scale / spread)
    return keep(steps), amounts


def _turning(local: Local) -> Groups:
    """Rates times flows, b and r of the nonreciprocal learner alone."""
    stacks = zip(local.push, local.b, local.r, strict=True)
    return [tuple(part[:, :1] for part in stack) for stack in stacks]


def landed(state: Groups, local: Local, steps: Array, pushes: Array, rule: Rule) -> Groups:
    """Where every action leads, actions in the place of learners."""

    def body(carry: None, p: Layer, told: tuple) -> tuple[None, Array]:
        push, b, r = told
        p = p._replace(learner=0)
        still = grown(push, steps[:, None] * b, p, rule)
        even, odd = growth(push, pushes[:, None] * r, p, rule)
        raw = keep(still * (even + odd))
        return carry, keep(raw / total(raw, -3)[..., None, :, :])

    return swept(body, None, state, _turning(local))[1]


def chooser(task: Task, rule: Rule, plan: Foresight) -> Chooser:
    """The policy: every action goes ahead, and the one that ends lowest is taken."""

    def chosen(
        state: Groups, rates: Groups, local: Local, number: Array, turn: Array
    ) -> tuple[Local, Array, Array, Array]:
        direct, turned = plan.mixture[number, 0], plan.mixture[number, 1]
        mixed = [keep(direct * b + turned * r) for b, r in zip(local.b, local.r, strict=True)]
        local = local._replace(r=mixed)
        steps, amounts = options(state, local, rule, plan)
        last = jnp.minimum(plan.foreseen.shape[0], number + 1 + plan.horizon)

        def body(at: Array, ends: Groups) -> Groups:
            sample = jax.lax.dynamic_index_in_dim(plan.foreseen, at, keepdims=False)
            x, y = keep((choose(task.inputs, sample), choose(task.targets, sample)))
            return native_step(ends, rates, x, y, rule)

        ends = landed(state, local, steps, amounts * turn * steps, rule)
        ends = jax.lax.fori_loop(number + 1, last, body, ends)
        losses = keep(loss(ends, task.data))
        choice = lowest((losses + task.rest) * (1 + plan.errors[number]))
        step, amount = keep(
            (choose(steps[:, None], choice)[0], choose(amounts[:, None], choice)[0])
        )
        return local, step, amount, choice.astype(step.dtype)

    return chosen
