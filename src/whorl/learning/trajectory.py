r"""Coupled trajectories: a nonreciprocal and a native learner from one start.

Section VI and Appendix C of the paper. Both see the same data in the same order under the same turn
schedule and step rule; one follows a policy, the other never turns. One compiled loop makes the
updates. Memory does not grow with their number unless a record of them is asked for. A learner that
would leave the interior stops: the pair stays where it was, and the result says at which update.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from whorl import _check, _progress
from whorl._check import Count, Numbers, Order
from whorl.learning import ledger
from whorl.learning.ledger import Ledger, Outcome, Terms
from whorl.learning.pace import Pace, at_rest
from whorl.learning.policy import Policy, check_policy, check_turn, envelope, look
from whorl.learning.results import Coupled, Info
from whorl.learning.schedule import drawn
from whorl.system import System, check_basis, checked_data


class PairState(eqx.Module):
    """What the next update needs."""

    nonreciprocal: System
    native: System
    losses: tuple[Float[Array, ""], Float[Array, ""]]  # mean over samples, in the same order
    number: Int[Array, ""]
    running: Bool[Array, ""]
    paces: tuple[Pace | None, Pace | None] = (None, None)


class Pair(Coupled):
    """Two learners after their last update, and the account of what separates them.

    Its names are those of every `whorl.Result`; `updates` and `losses` are None where
    `record=False`.

    Examples:
        >>> pair = wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0)
        >>> pair.status
        'completed 12 updates'
    """

    nonreciprocal: Any  # the system that learned, at its end
    native: Any
    ledger: Ledger
    schedule: Order
    turns: Order
    updates: Info | None  # for every update, where they were kept
    # with a leading axis, where they were kept: the start and every stride-th update after it
    states: tuple[Any, Any] | None
    made: Count  # updates made before the end, or before it stopped
    stalled: Any = False  # whether it stopped because neither learner moved any more

    @property
    def scheduled(self) -> int:
        return self.schedule.shape[-1]


def train(
    system: System,
    inputs: Numbers,
    targets: Numbers,
    *,
    policy: Policy,
    epochs: int | None = None,
    seed: int | np.random.Generator | None = None,
    schedule: Any = "permuted",
    turns: Numbers | None = None,
    flip: bool = False,
    record: bool = True,
    stride: int | None = None,
    progress: bool = False,
) -> Pair:
    """Let a nonreciprocal learner under `policy` and the native learner run side by side.

    Inside `jax.jit` and `vmap` a run that stops early cannot shorten its record: rows from `made`
    on are zero, and their states too.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.
        policy: What the nonreciprocal learner follows: `native`, `step_matched`, `adaptive`, your
            own.
        epochs: Passes over the samples, where `schedule` is a word.
        seed: Of order and turns: a whole number or a NumPy generator.
        schedule: "permuted" (a fresh order every epoch), "fixed", or a row of sample numbers,
            `(updates,)`.
        turns: The sense of each turn, +1 or -1, `(updates,)`; drawn fair from the seed if left out.
        flip: Whether to reverse all turns: the second replicate of a handedness pair.
        record: Whether to keep what happened at every update.
        stride: Also keep the states: at the start, and after every `stride` updates.
        progress: Whether to show a bar, on the error stream.

    Returns:
        Both learners at their end, with the ledger.

    Raises:
        ValueError: Where the data do not fit the system, or the policy cannot turn through it.

    Examples:
        >>> pair = wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0)
        >>> pair.made, pair.ledger.closed
        (12, True)
    """
    inputs, targets = checked_data(system, inputs, targets)
    check_policy(policy)
    order, senses = drawn(inputs.shape[0], epochs, seed, schedule, turns)
    senses = -senses if flip else senses
    policy.check(inputs.shape[0], order.size, None)
    check_turn(policy, system)
    check_basis(system, inputs)
    stride = None if stride is None else _check.count("stride", stride)
    start = begin(system, inputs, targets)
    _check.finite("the initial loss", start.losses)
    given = (policy, inputs, targets, start, jnp.asarray(order), jnp.asarray(senses))
    with _progress.bar("train", progress) as bar:
        final, sums, infos, states = run(*given, record, stride, bar)
    made = _check.counted(final.number)
    kept = first(made, infos)
    if stride is not None:
        states = first(made // stride + 1, states)
    account = Ledger(sums, None if kept is None else kept.terms, start.losses[0], *final.losses)
    stalled = _stalled(final.paces, inputs.shape[0])
    ends = final.nonreciprocal, final.native
    return Pair(*ends, account, order, senses, kept, states, made, stalled)


def first(rows: Count, tree: Any) -> Any:
    """The first rows of every array, where it is known how many they are.

    What lies behind them is zero.
    """
    return jax.tree.map(lambda leaf: leaf[:rows], tree) if isinstance(rows, int) else tree


def begin(system: System, inputs: Array, targets: Array) -> PairState:
    """Both learners at one state."""
    at, pace = mean_loss(system, inputs, targets), at_rest(system)
    running = jnp.ones((), dtype=bool)
    zero = jnp.zeros((), dtype=jnp.int32)
    return PairState(system, system, (at, at), zero, running, (pace, pace))


def mean_loss(system: System, inputs: Array, targets: Array) -> Float[Array, ""]:
    """Half the squared residual, mean over samples, of data that were checked before."""
    return jnp.sum((targets - system.outputs(inputs)) ** 2) / (2 * inputs.shape[0])


def update(
    policy: Policy,
    inputs: Array,
    targets: Array,
    state: PairState,
    sample: Array,
    turn: Array,
    plan: tuple[Array, Array],
) -> tuple[PairState, Info]:
    """One coupled update and its account (Eqs. C1 to C6); `plan` is the whole order with its turns.

    Examples:
        >>> import equinox as eqx
        >>> from whorl.learning import trajectory
        >>> zero, plus = jnp.array(0), jnp.array(1)
        >>> start, plan = trajectory.begin(net, x, y), (zero[None], plus[None])
        >>> state, info = eqx.filter_jit(trajectory.update)(
        ...     wh.adaptive(0.1), x, y, start, zero, plus, plan
        ... )
        >>> bool(np.isclose(info.terms.total, state.losses[0] - state.losses[1]))
        True
    """
    given = (inputs, targets, sample, turn, state.number, plan)
    learners = zip((state.nonreciprocal, state.native), state.paces, strict=True)
    view, other = (look(policy.law, one, *given, pace, policy.scale) for one, pace in learners)
    view = policy.seen(view)
    choice = policy.decide(view)
    own, native_step = (
        envelope(policy.scale, seen.system, seen.straight, seen.pace) for seen in (view, other)
    )

    def moved(amount: Array, size: Array) -> tuple[System, Array]:
        there = view.system.stepped(view.combined(amount), size)
        return there, mean_loss(there, inputs, targets)

    plus, plus_loss = moved(choice.amount, choice.step)
    minus, minus_loss = moved(-choice.amount, choice.step)
    _, zero_loss = moved(jnp.zeros_like(choice.amount), choice.step)
    _, own_loss = moved(jnp.zeros_like(choice.amount), own)
    native = other.system.stepped(other.straight, native_step)
    native_loss = mean_loss(native, inputs, targets)
    # Each loss is rounded to one number here. Left to itself the compiler contracts the last
    # product of a loss with the differences below into one operation with other last bits, and over
    # many updates the account drifts away from the gap. It cannot do so through a choice that it
    # does not know the outcome of.
    losses = jnp.where(
        state.running, jnp.stack([plus_loss, minus_loss, zero_loss, own_loss, native_loss]), jnp.inf
    )
    plus_loss, minus_loss, zero_loss, own_loss, native_loss = losses
    taken = jax.tree.map(lambda up, down: jnp.where(turn > 0, up, down), plus, minus)
    taken_loss = jnp.where(turn > 0, plus_loss, minus_loss)
    before, native_before = state.losses
    terms = ledger.terms(
        plus_loss - before,
        minus_loss - before,
        taken_loss - before,
        zero_loss - before,
        own_loss - before,
        native_loss - native_before,
    )
    paces = (
        None if view.pace is None else view.pace.stepped(choice.step),
        None if other.pace is None else other.pace.stepped(native_step),
    )
    running = state.running & ~jnp.asarray(_stalled(paces, inputs.shape[0]))
    after = PairState(taken, native, (taken_loss, native_loss), state.number + 1, running, paces)
    opposite_loss = jnp.where(turn > 0, minus_loss, plus_loss)
    outcome = Outcome(
        taken_loss, opposite_loss, zero_loss, own_loss, native_loss, choice.step, choice.amount
    )
    picked = jnp.asarray(choice.choice, dtype=jnp.int32)
    info = Info(terms, outcome, picked, own, native_step, view.ratio)
    return _guarded(state, after, info)


def _guarded(before: PairState, after: PairState, info: Info) -> tuple[PairState, Info]:
    """Stay put, with an empty account, once a weight would vanish or a number overflow."""
    sound = (
        before.running
        & jnp.all(jnp.isfinite(jnp.stack(after.losses)))
        & jnp.all(jnp.isfinite(jnp.stack(jax.tree.leaves(info.terms))))
    )
    for old, new in ((before.nonreciprocal, after.nonreciprocal), (before.native, after.native)):
        sound = sound & old.kept(new)
    kept = jax.tree.map(lambda new, old: jnp.where(sound, new, old), after, before)
    kept = eqx.tree_at(lambda state: state.running, kept, sound & after.running)
    return kept, jax.tree.map(lambda leaf: jnp.where(sound, leaf, jnp.zeros_like(leaf)), info)


def _stalled(paces: tuple[Pace | None, ...], samples: int) -> Any:
    """Whether no learner moved in a whole pass over the samples."""
    moving = [~pace.stalled(samples) for pace in paces if pace is not None]
    return ~jnp.any(jnp.stack(moving)) if moving else False


def run(
    policy: Policy,
    inputs: Array,
    targets: Array,
    start: PairState,
    order: Array,
    turns: Array,
    record: bool,
    stride: int | None,
    bar: _progress.Bar | None = None,
) -> tuple[PairState, Terms, Info | None, tuple[System, System] | None]:
    """All scheduled updates of a pair: its last state, its account, and what was asked to be kept.

    Nothing is checked here.
    """
    updates, plan = order.shape[0], (order, turns)
    frames = None if stride is None else _frames(start, updates // stride + 1)
    infos = None
    if record:
        one = jax.eval_shape(update, policy, inputs, targets, start, order[0], turns[0], plan)[1]
        infos = jax.tree.map(lambda leaf: jnp.zeros((updates, *leaf.shape), leaf.dtype), one)
    empty = ledger.zeros(inputs.dtype)
    state, sums, lost, infos, frames = _progress.in_pieces(
        lambda carry, first, last: _advanced(
            policy, inputs, targets, carry, plan, first, last, stride
        ),
        (start, empty, empty, infos, frames),
        updates,
        (policy, inputs, targets, plan),
        bar,
    )
    return state, jax.tree.map(jnp.add, sums, lost), infos, frames


@eqx.filter_jit
def _advanced(
    policy: Policy,
    inputs: Array,
    targets: Array,
    carry: tuple,
    plan: tuple[Array, Array],
    first: Count,
    last: Count,
    stride: int | None,
) -> tuple:
    """The updates from `first` to before `last`."""

    def body(number: Array, carry: tuple) -> tuple:
        state, sums, lost, infos, frames = carry
        sample, turn = plan[0][number], plan[1][number]
        state, info = update(policy, inputs, targets, state, sample, turn, plan)
        sums, lost = added(sums, lost, info.terms)
        if infos is not None:
            infos = jax.tree.map(lambda rows, row: rows.at[number].set(row), infos, info)
        if frames is not None:
            frames = _with_frame(frames, state, stride)
        return state, sums, lost, infos, frames

    return jax.lax.fori_loop(first, last, body, carry)


def added(sums: Terms, lost: Terms, terms: Terms) -> tuple[Terms, Terms]:
    """Add with a second number for what the first cannot hold (Neumaier), so that long accounts
    close as well as short ones.
    """
    total = jax.tree.map(jnp.add, sums, terms)

    def missed(old: Array, new: Array, whole: Array) -> Array:
        return jnp.where(jnp.abs(old) >= jnp.abs(new), (old - whole) + new, (new - whole) + old)

    return total, jax.tree.map(
        lambda gone, old, new, whole: gone + missed(old, new, whole), lost, sums, terms, total
    )


def _frames(start: PairState, count: int) -> tuple[System, System]:
    pair = (start.nonreciprocal, start.native)
    return jax.tree.map(
        lambda leaf: jnp.zeros((count, *leaf.shape), dtype=leaf.dtype).at[0].set(leaf), pair
    )


def _with_frame(
    frames: tuple[System, System], state: PairState, stride: int | None
) -> tuple[System, System]:
    """Write the state where the next frame belongs.

    Only the last write before the frame is full stays.
    """
    assert stride is not None
    at = (state.number + stride - 1) // stride
    pair = (state.nonreciprocal, state.native)
    return jax.tree.map(lambda frame, leaf: frame.at[at].set(leaf, mode="drop"), frames, pair)
