r"""Policies that judge a step by where the native learner would end if it went on from there.

A turn changes the states that are visited next, so its worth shows only later. Both policies here
look ahead along the schedule: they let the native learner go on for `horizon` updates from where a
step would land, and read the loss there.

- `rollout` tries every action of a finite list and takes the one that ends lowest, the first of
  equals. With the horizon at the end of the schedule, and the native step among the actions, it can
  never finish behind the native learner: what is still to be lost from the present state on, $V_t$,
  falls or stays at every update, because the native step alone would keep it.
- `costate` spends one pass back through the continuation. With $f(a)$ the loss ahead after a turn
  of amount $a$, the pass gives $f(0)$ and $f'(0)$ (and one more derivative $f''(0)$), and the best
  amount in $[-\Omega, \Omega]$ follows in closed form.

An action is an amount of turning in units of $\Omega$, in the scheduled sense, and a fraction of
the admissible step. That step keeps room for the turn in either sense, as `step_matched` does;
without a turn it is the native one.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from whorl import _check
from whorl._check import Numbers
from whorl.feedback import Rotational
from whorl.learning.pace import Pace, measured
from whorl.learning.policy import (
    SCALE,
    Decision,
    Policy,
    View,
    always,
    checked,
    envelope,
    parts,
    reserved,
)
from whorl.learning.trajectory import mean_loss
from whorl.registry import policies
from whorl.response import response
from whorl.system import System

FOREVER = 2**30  # a horizon beyond every schedule


class Action(NamedTuple):
    """What may be tried.

    An amount of turning in units of omega, and a fraction of the admissible step.

    Examples:
        >>> wh.Action(amount=1.0), wh.Action(fraction=0.5)
        (Action(amount=1.0, fraction=1.0), Action(amount=0.0, fraction=0.5))
    """

    amount: float = 0.0
    fraction: float = 1.0


TURNS = (Action(), Action(1.0), Action(-1.0))


class Rollout(Policy):
    """Try every action, let the native learner go on from each, and take the one that ends
    lowest.
    """

    amounts: Float[Array, "actions"]
    fractions: Float[Array, "actions"]
    horizon: Int[Array, ""]
    kernel: ClassVar[str | None] = "rollout"

    @property
    def turns(self) -> bool:
        return super().turns and not (_check.known(self.amounts) and not np.any(self.amounts))

    def options(self, view: View) -> tuple[Float[Array, "actions"], Float[Array, "actions"]]:
        """The step and the amount of every action."""
        amounts = (self.omega * self.amounts).astype(view.system.dtype)
        native = envelope(self.scale, view.system, view.straight, view.pace)
        kept = jax.vmap(lambda amount: reserved(self.scale, amount, view))(amounts)
        return self.fractions.astype(native.dtype) * jnp.where(amounts == 0, native, kept), amounts

    def ends(self, view: View) -> Float[Array, "actions"]:
        """The loss that is read ahead after every action.

        Infinite where an action cannot be carried out.
        """
        order = view.order
        last = jnp.minimum(order.shape[0], view.number + 1 + self.horizon)

        def end(step: Array, amount: Array) -> Array:
            moved = view.system.stepped(view.combined(view.turn * amount), step)
            x, y = view.inputs, view.targets

            def ahead(at: Array, now: tuple[System, Pace | None]) -> tuple[System, Pace | None]:
                return native_step(self, now[0], now[1], x, y, order[at])

            end, _ = jax.lax.fori_loop(view.number + 1, last, ahead, (moved, view.pace))
            return mean_loss(end, x, y)

        losses = jax.vmap(end)(*self.options(view))
        return jnp.where(jnp.isfinite(losses), losses, jnp.inf)

    def decide(self, view: View) -> Decision:
        steps, amounts = self.options(view)
        # Which is best does not change under a small change: nothing to differentiate, and the loop
        # ahead has no reverse mode.
        best = jnp.argmin(jax.lax.stop_gradient(self).ends(jax.lax.stop_gradient(view)))
        return Decision(steps[best], amounts[best], best.astype(jnp.int32))

    def kernel_tables(self, order: np.ndarray) -> list[np.ndarray]:
        (numbers,) = super().kernel_tables(order)
        actions = np.concatenate([[self.horizon], self.amounts, self.fractions])
        ahead = np.broadcast_to(actions, (len(order), actions.size))
        return [
            np.concatenate([numbers, ahead], axis=1),
            order,
            np.broadcast_to([0.0, 1.0], (*order.shape, 2)),
            np.zeros((*order.shape, self.amounts.size)),
        ]


class Costate(Policy):
    """Turn by the amount that a Taylor polynomial of the loss ahead likes best, where it promises
    to end below the native step.
    """

    horizon: int | None = eqx.field(static=True)
    order: int = eqx.field(static=True)

    def ahead(self, view: View, system: System) -> Float[Array, ""]:
        """The loss after the native learner went on from `system`.

        A loop of fixed length, as a reverse pass needs it.
        """
        updates = view.order.shape[0]
        length = updates - 1 if self.horizon is None else min(self.horizon, updates - 1)

        def body(now: tuple[System, Pace | None], offset: Array) -> tuple[Any, None]:
            at = view.number + 1 + offset
            moved = native_step(
                self, *now, view.inputs, view.targets, view.order[jnp.minimum(at, updates - 1)]
            )
            return (
                jax.tree.map(lambda new, old: jnp.where(at < updates, new, old), moved, now),
                None,
            )

        offsets = jnp.arange(length, dtype=view.number.dtype)
        (end, _), _ = jax.lax.scan(body, (system, view.pace), offsets)
        return mean_loss(end, view.inputs, view.targets)

    def derivatives(self, view: View) -> tuple[Array, Array, Array]:
        """Value, slope and curvature of the loss ahead as a function of the amount, at none, with
        the step that a turn may take.
        """
        step = reserved(self.scale, self.omega, view)

        def loss(amount: Array) -> Array:
            return self.ahead(view, view.system.stepped(view.combined(view.turn * amount), step))

        none = jnp.zeros_like(step)
        value, slope = jax.value_and_grad(loss)(none)
        return (
            value,
            slope,
            (
                jax.jvp(jax.grad(loss), (none,), (jnp.ones_like(none),))[1]
                if self.order == 2
                else none
            ),
        )

    def decide(self, view: View) -> Decision:
        value, slope, bend = self.derivatives(view)
        kept, full = (
            reserved(self.scale, self.omega, view),
            envelope(self.scale, view.system, view.straight, view.pace),
        )
        inside = jnp.where(bend > 0, -slope / jnp.where(bend > 0, bend, 1.0), 0.0)
        omega = self.omega.astype(kept.dtype)
        amounts = jnp.stack([omega, -omega, jnp.clip(inside, -omega, omega)])
        promised = value + amounts * slope + amounts**2 * bend / 2
        best = jnp.argmin(promised)
        native = self.ahead(view, view.system.stepped(view.straight, full))
        turns = promised[best] < native
        return Decision(
            jnp.where(turns, kept, full),
            jnp.where(turns, amounts[best], 0.0),
            turns.astype(jnp.int32),
        )


def native_step(
    policy: Policy, system: System, pace: Pace | None, inputs: Array, targets: Array, sample: Array
) -> tuple[System, Pace | None]:
    """One update of the native learner, and its pace after it."""
    driven = response(system, inputs[sample][None, :])
    error = targets[sample][None, :] - driven.predictions
    straight = driven.scores(parts(policy.law, driven, error)[0])
    pace = measured(
        pace, policy.scale, system, driven.trace, straight, error, targets[sample][None, :]
    )
    return system.stepped(straight, envelope(policy.scale, system, straight, pace)), pace


def steps(*fractions: float) -> tuple[Action, ...]:
    """Actions that never turn: the native step, and fractions of it.

    Examples:
        >>> from whorl.learning import foresight
        >>> foresight.steps(1.0, 0.5)
        (Action(amount=0.0, fraction=1.0), Action(amount=0.0, fraction=0.5))
    """
    return tuple(Action(0.0, fraction) for fraction in fractions)


# Its list of actions is for Python only.
@policies.register(parameters=(SCALE,), where=())
def rollout(
    scale: Numbers,
    *,
    horizon: int | None,
    actions: Sequence[tuple[float, float]] = TURNS,
    omega: Numbers = 1.0,
    law: Rotational | None = None,
) -> Policy:
    """Take the action that ends lowest after `horizon` further updates of the native learner.

    Args:
        scale: The step scale s of the envelope; in `train_many` one number, or one per pair.
        horizon: How many updates ahead; None looks to the end of the schedule.
        actions: Pairs of an amount of turning, in units of `omega` and in the scheduled sense, and
            a fraction of the admissible step. The default is the native step and the two turns.
        omega: The amount of turning.
        law: What makes the scores; `rotational(base=leaky(0.1))` if left out.

    Examples:
        >>> policy = wh.rollout(
        ...     0.1, horizon=18, actions=[wh.Action(), wh.Action(1.0), wh.Action(-1.0)]
        ... )
        >>> policy.amounts.tolist()
        [0.0, 1.0, -1.0]
    """
    amounts, fractions = _checked_actions(actions)
    base = checked(scale, omega, always, law)
    ahead = FOREVER if horizon is None else min(_check.count("horizon", horizon, 0), FOREVER)
    return Rollout(*base, amounts, fractions, jnp.asarray(ahead, dtype=jnp.int32))


# A pass back through the schedule is for Python only.
@policies.register(parameters=(SCALE,), where=())
def costate(
    scale: Numbers,
    *,
    horizon: int | None,
    omega: Numbers = 1.0,
    order: int = 1,
    law: Rotational | None = None,
) -> Policy:
    """Choose the amount of turning in [-omega, omega] from one pass back through the native
    continuation of `horizon` updates.

    `order` is that of the Taylor polynomial in the amount: 1 turns by all or nothing, 2 also by
    what lies between.

    Args:
        scale: The step scale s of the envelope, above 0; in `train_many` one number, or one per
            pair.
        horizon: How many updates ahead; None looks to the end of the schedule.
        omega: The largest amount of turning, at least 0.
        order: Of the Taylor polynomial in the amount, 1 or 2.
        law: What makes the scores; `rotational(base=leaky(0.1))` if left out.

    Returns:
        The policy.

    Examples:
        >>> wh.costate(0.1, horizon=6, order=2).horizon
        6
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, but it is {_check.shown(order)}")
    return Costate(
        *checked(scale, omega, always, law),
        None if horizon is None else _check.count("horizon", horizon, 0),
        order,
    )


def _checked_actions(actions: Any) -> tuple[Array, Array]:
    """Amounts and fractions of actions that can be told apart and carried out."""
    given = _check.listed("actions", actions)
    if not given or any(not hasattr(one, "__len__") or len(one) != 2 for one in given):
        raise ValueError(
            "actions must be pairs of an amount and a fraction, but they are "
            f"{_check.shown(actions)}"
        )
    table = _check.array("actions", given, 2)
    fractions = np.array([float(one[1]) for one in given]) if _check.known(given) else np.zeros(1)
    bad = (fractions < 0) | (fractions > 1)
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"actions must take a fraction from 0 to 1 of the step, but action {where} takes "
            f"{fractions[where]:g}"
        )
    return table[:, 0], table[:, 1]
