r"""Fair baselines.

The standard optimisers of a product of simplices, under the schedule and the envelope of the
physical learner.

Every rule here turns the residual into scores, and moves each column along its score by the size
that `policy.envelope` admits. A residual is that of the scheduled sample, or of all samples at
once; either way a scheduled entry is one update, and a run says how many residuals drove each of
them, so that the work behind two losses can be compared.

- `natural_gradient`: the direct law $s = \rho J^\mathsf{T} e$, moved along a geodesic of the
  Shahshahani metric $\langle V, W\rangle_p = \sum_i V_i W_i / p_i$.
- `exponentiated_gradient`: the same score, moved by the exponential (entropic mirror) step of Eq.
  4.
- `gauss_newton`: the damped step $\min_d \|e - Jd\|^2 + \mu \|d\|^2_{M^{-1}}$, solved among the
  parameters, with the exponential step.
- `boundary`: any law of `feedback`, with the exponential step: the physical learner itself, in the
  same loop.

*The geodesic.* With $u = \sqrt p$, $\sum \dot p_i^2 / p_i = 4\,|\dot u|^2$ and $|u| = 1$: the
geodesics are great circles. The velocity $p\,c$, with $c = s - \bar s$, is $\dot u = \sqrt p\, c /
2$, of speed $w = \frac12 \sqrt{\sum p c^2}$, and after a step $\eta$

$$ p_i(\eta) = p_i \Bigl(\cos\varphi + \frac{\eta c_i}{2} \frac{\sin\varphi}{\varphi}\Bigr)^2, \qquad \varphi = w \eta . $$

A circle, unlike an exponential, can reach the boundary: where the bracket vanishes. The envelope
bounds $\eta\,|c_i|$ by its scale $s$ and $\varphi$ by $s / 4$ (no deviation exceeds half its
range), so that the bracket is at least $\cos(s/4) - s/2$: positive up to $s = 1.8$. Beyond that an
entry whose circle has crossed the boundary is given the weight zero, which stops the run.

*Gauss-Newton.* $M = S S^\mathsf{T}$ with blocks $S_a = \sqrt{\rho_a}\,\mathrm{diag}(u)(I -
uu^\mathsf{T})$, and $d = Sz$ makes the problem an ordinary one, $\min_z \|e - JSz\|^2 +
\mu\|z\|^2$. Its velocity is that of the law `leaky(mu)` (Sec. IV), reached without $K$.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, UInt32

from whorl import _check, _progress
from whorl._check import Numbers, Order
from whorl._show import Valued, plural
from whorl.feedback import BOUNDARY, Law
from whorl.geometry import Faces
from whorl.learning.pace import Pace, at_rest, measured
from whorl.learning.policy import Scores, envelope
from whorl.learning.results import Result
from whorl.learning.schedule import drawn
from whorl.learning.trajectory import first, mean_loss
from whorl.response import Response, jacobian, response
from whorl.system import Fields, System, Trace, check_basis, checked_data, unravel


class Rule(Valued, eqx.Module):
    """A learner.

    What score every column gets from the residuals, and how a column moves along its score.

    Examples:
        >>> isinstance(wh.natural_gradient(), wh.Rule)
        True
    """

    # Whether `during` needs a random key: `learn`, `learn_many` and `closed_loop` then ask for one.
    draws: ClassVar[bool] = False

    @abstractmethod
    def scores(self, system: System, inputs: Array, residual: Fields) -> Scores:
        """One score per entry, rates included."""

    def during(self, number: Array, key: Array | None) -> "Rule":
        """The rule of one update; override it for a rule that draws, or that changes with time.

        Args:
            number: Updates made before this one.
            key: A random key that belongs to this update, where `draws` is set or one was given.

        Returns:
            A rule that holds what it needs of them as fields, of the same structure every time.
        """
        del number, key
        return self

    def at(self, system: System, trace: Trace, residual: Fields) -> Scores:
        """The scores at a state whose trace is known; override it to solve for no state again."""
        return self.scores(system, trace[0], residual)

    def move(self, system: System, scores: Scores, step: ArrayLike) -> System:
        """The system after a step; exponential, unless the rule says otherwise."""
        return system.stepped(scores, step)


class Boundary(Rule):
    """The physical learner.

    A law makes a potential, and the network carries it back to every column.
    """

    law: Law

    def scores(self, system: System, inputs: Array, residual: Fields) -> Scores:
        return self._driven(response(system, inputs), residual)

    def at(self, system: System, trace: Trace, residual: Fields) -> Scores:
        return self._driven(Response(system, trace, system, system.matched), residual)

    def _driven(self, driven: Response, residual: Fields) -> Scores:
        leak = self.law.damping
        if leak is not None and driven.samples > 1 and leak.ndim == 0:
            return joint_scores(driven, residual, leak)
        return driven.scores(self.law(driven, residual))


class ExponentiatedGradient(Rule):
    """Mirror descent with the entropy as mirror: the gradient's score, the exponential step."""

    def scores(self, system: System, inputs: Array, residual: Fields) -> Scores:
        return self.at(system, response(system, inputs).trace, residual)

    def at(self, system: System, trace: Trace, residual: Fields) -> Scores:
        return Response(system, trace, system, system.matched).scores(residual)


class NaturalGradient(ExponentiatedGradient):
    """Natural gradient of the Shahshahani metric.

    The gradient's score, moved along the metric's own geodesic.
    """

    def move(self, system: System, scores: Scores, step: ArrayLike) -> System:
        parts = zip(system.geometries, system.blocks, scores, strict=True)
        return system.with_blocks(
            [kind.geodesic(point, score, step) for kind, point, score in parts]
        )


class GaussNewton(Rule):
    """Damped metric Gauss-Newton, solved among the parameters through the square root of the
    mobility; the exponential step.
    """

    mu: Float[Array, ""]

    def scores(self, system: System, inputs: Array, residual: Fields) -> Scores:
        seen = rooted_jacobian(system, inputs)
        return _among_parameters(system, system.trace(inputs), seen, residual, self.mu)


def joint_scores(driven: Response, residual: Fields, mu: Array) -> Scores:
    r"""The scores of the law `leaky(mu)` over all samples, up to a constant per column, which moves
    nothing.

    One factorisation in the smaller of two spaces: with $K = BB^\mathsf{T}$ and $B = JS$, the
    velocity is $Sz$ with $z = (B^\mathsf{T}B + \mu)^{-1}B^\mathsf{T}e$ among the parameters, or
    that of the potential $(BB^\mathsf{T} + \mu)^{-1}e$ among the fields. $K$ is never built.

    Args:
        driven: The joint response.
        residual: One row per sample, `(samples, out)`.
        mu: The leak, above 0.

    Returns:
        One score per entry of every block, rates included.
    """
    seen = rooted_jacobian(driven.system, driven.trace[0])
    fields, parameters = seen.shape
    if parameters <= fields:
        return _among_parameters(driven.system, driven.trace, seen, residual, mu)
    triangle = jnp.linalg.qr(_damped(seen.T, mu), mode="r")
    half = jax.scipy.linalg.solve_triangular(triangle, residual.ravel(), trans=1)
    found = jax.scipy.linalg.solve_triangular(triangle, half)
    return driven.scores(found.reshape(residual.shape))


def _among_parameters(
    system: System, trace: Trace, seen: Array, residual: Fields, mu: Array
) -> Scores:
    """The damped least-squares problem among the parameters, and the scores of its solution."""
    kinds, points, rates = system.geometries, system.blocks, system.block_rates
    basis, triangle = jnp.linalg.qr(_damped(seen, mu))
    # What lies behind the rows of the residual is zero.
    found = jax.scipy.linalg.solve_triangular(triangle, basis[: len(seen)].T @ residual.ravel())
    if any(isinstance(kind, Faces) for kind in kinds):
        # The same velocity from the potential that is left, which has scores off a face, too.
        left = (residual.ravel() - seen @ found) / mu
        return system.scores(trace, left.reshape(residual.shape))
    parts = zip(kinds, points, rates, unravel(kinds, points, found), strict=True)
    return tuple(kind.unscore(point, kind.root(point, rate, z)) for kind, point, rate, z in parts)


def _damped(seen: Array, mu: Array) -> Array:
    """Damping as rows of the least-squares problem: the normal equations would square its condition
    number.
    """
    size = seen.shape[1]
    return jnp.concatenate(
        [seen, jnp.sqrt(mu).astype(seen.dtype) * jnp.eye(size, dtype=seen.dtype)]
    )


def rooted_jacobian(system: System, inputs: Array) -> Float[Array, "n parameters"]:
    r"""$JS$, the Jacobian times a square root of the mobility, $M = SS^\mathsf{T}$."""
    points = system.blocks
    rows = jnp.split(
        jacobian(system, inputs), np.cumsum([point.size for point in points])[:-1], axis=1
    )
    parts = zip(system.geometries, points, system.block_rates, rows, strict=True)
    return jnp.concatenate(
        [kind.rooted(point, rate, row) for kind, point, rate, row in parts], axis=1
    )


class Run(Result):
    """One learner after its last update.

    Its names are those of every `whorl.Result`; `losses` and `steps` are None where
    `record=False`.

    Examples:
        >>> run = wh.learn(net, x, y, rule=wh.exponentiated_gradient(), scale=0.2, epochs=2, seed=0)
        >>> run.status
        'completed 12 updates'
    """

    system: Any  # what learned, at its end
    start: Float[Array, "*runs"]  # loss before the first update
    final: Float[Array, "*runs"]  # loss after the last
    losses: Float[Array, "*made"] | None  # after every update, where they were kept
    steps: Float[Array, "*made"] | None  # the size of every update, where they were kept
    schedule: Order
    driving: int = eqx.field(static=True)  # residuals behind each update: 1, or all samples
    made: (
        Any  # updates made before the end, or before it stopped; one number per learner of a stack
    )
    stalled: Any = False  # whether it stopped because it no longer moved

    @property
    def scheduled(self) -> int:
        return self.schedule.shape[-1]

    def __str__(self) -> str:
        work = f"{plural(self.driving, 'residual')} per update"
        if np.ndim(self.start):
            spans = (f"{np.min(one):.3g} to {np.max(one):.3g}" for one in (self.start, self.final))
            return f"{self.status}, {work}; losses {' -> '.join(spans)}"
        return f"{self.status}, {work}; loss {float(self.start):.6e} -> {float(self.final):.6e}"


class LearnerState(eqx.Module):
    """What the next update needs."""

    system: System
    number: Int[Array, ""]
    running: Bool[Array, ""]
    pace: Pace | None = None
    key: UInt32[Array, "2"] | None = None  # of a rule that draws


def natural_gradient() -> Rule:
    """Shahshahani natural gradient, along geodesics.

    Examples:
        >>> rule = wh.natural_gradient()
    """
    return NaturalGradient()


def exponentiated_gradient() -> Rule:
    """Exponentiated gradient: entropic mirror descent.

    Examples:
        >>> rule = wh.exponentiated_gradient()
    """
    return ExponentiatedGradient()


def gauss_newton(mu: ArrayLike) -> Rule:
    """Damped metric Gauss-Newton, with damping `mu` > 0.

    Builds the dense Jacobian: for small networks and for comparisons.

    Examples:
        >>> rule = wh.gauss_newton(0.1)
    """
    return GaussNewton(_check.scalar("mu", mu, above=0.0))


def boundary(law: Law) -> Rule:
    """The learner of a boundary law, such as `leaky(0.1)`.

    With `leaky(0.1)` it is the same learner as `gauss_newton(0.1)`. Driven by all samples at once
    it also costs the same: one factorisation among the fields or among the parameters, whichever
    are fewer.

    Args:
        law: The law that turns residuals into potentials.

    Returns:
        A rule for `learn`.

    Examples:
        >>> rule = wh.boundary(wh.leaky(0.1))
    """
    _check.instance("law", law, Law, BOUNDARY)
    return Boundary(law)


def learn(
    system: System,
    inputs: Numbers,
    targets: Numbers,
    *,
    rule: Rule,
    scale: ArrayLike,
    epochs: int | None = None,
    seed: int | np.random.Generator | None = None,
    schedule: Any = "permuted",
    full_batch: bool = False,
    record: bool = True,
    key: Any = None,
) -> Run:
    """Let one learner run under the envelope of `scale`.

    `schedule`, `epochs` and `seed` mean what they mean to `train`, and the same seed shows the same
    samples in the same order. With `full_batch` all residuals, summed, drive every update, and the
    schedule only counts them: no seed is needed, and an epoch makes as many updates as there are
    samples. `record` keeps the loss and the step of every update; inside `jax.jit` and `vmap` a run
    that stops early cannot shorten it, and rows from `made` on are zero.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.
        rule: How residuals become scores: `boundary(law)`, `natural_gradient()`, your own `Rule`.
        scale: The step scale s of the envelope, above 0: the largest share by which an update
            changes a parameter or closes a residual.
        epochs: Passes over the samples, where `schedule` is a word.
        seed: Of the order of the samples: a whole number or a NumPy generator.
        schedule: "permuted", "fixed", or a row of sample numbers, `(updates,)`.
        full_batch: Whether the residuals of all samples, summed, drive every update.
        record: Whether to keep the loss and the step of every update.
        key: Of a rule that draws: a whole number or a key of `jax.random`.

    Returns:
        The system at its end, with losses and steps.

    Raises:
        ValueError: Where the data do not fit the system, or `rule` is not a `Rule`.

    Examples:
        >>> run = wh.learn(net, x, y, rule=wh.exponentiated_gradient(), scale=0.2, epochs=2, seed=0)
        >>> bool(run.final < run.start)
        True
    """
    inputs, targets = checked_data(system, inputs, targets)
    checked_rule(rule)
    check_basis(system, inputs)
    size = _check.scalar("scale", scale, above=0.0)
    order = _order(inputs.shape[0], epochs, seed, schedule, full_batch)
    start = begin(system, checked_key(rule, key))
    # Samples that only wait for their turn may be padded; those that are all read at every update
    # may not.
    rows = (inputs, targets) if full_batch or record else (_padded(inputs), _padded(targets))
    padded, window = _padded(order), 1 if full_batch else inputs.shape[0]
    none = jnp.zeros(padded.shape, dtype=inputs.dtype)
    final, kept = _progress.in_pieces(
        lambda carry, first, last: _run(
            rule, *rows, carry, size, padded, first, last, full_batch, jnp.asarray(window)
        ),
        (start, (none, none) if record else None),
        order.size,
        (rule, rows, size, padded),
    )
    made = _check.counted(final.number)
    begun, ended = mean_loss(system, inputs, targets), mean_loss(final.system, inputs, targets)
    kept = _ended(system, kept, made, ended)
    losses, steps = (None, None) if kept is None else first(made, first(order.size, kept))
    stalled = False if final.pace is None else final.pace.stalled(window)
    driving = inputs.shape[0] if full_batch else 1
    return Run(final.system, begun, ended, losses, steps, order, driving, made, stalled)


def checked_rule(rule: Rule) -> Rule:
    """A rule, or a refusal."""
    _check.instance("rule", rule, Rule, "natural_gradient(), gauss_newton(...) or your own Rule")
    return rule


def checked_key(rule: Rule, key: Any) -> Array | None:
    """The key of a rule that draws; None where there is nothing to draw."""
    if key is None and not rule.draws:
        return None
    return _check.key(key, f"the rule {type(rule).__name__} draws")


def begin(system: System, key: Array | None = None) -> LearnerState:
    """A learner before its first update."""
    zero, running = jnp.zeros((), dtype=jnp.int32), jnp.ones((), dtype=bool)
    return LearnerState(system, zero, running, at_rest(system), key)


def whole(
    rule: Rule,
    system: System,
    inputs: Array,
    targets: Array,
    scale: Array,
    order: Array,
    full_batch: bool,
    record: bool,
    key: Array | None = None,
) -> tuple[LearnerState, Array, Array, tuple[Array, Array] | None, Any]:
    """A whole run of data that were checked before, inside a compiled program.

    Returns:
        The last state, the losses before the first and after the last update, losses and steps of
        every update where they were asked for, and whether it stalled.
    """
    window = jnp.asarray(1 if full_batch else inputs.shape[0])
    none = jnp.zeros(order.shape, dtype=inputs.dtype)
    begin_at, end_at = (jnp.asarray(number, dtype=jnp.int32) for number in (0, len(order)))
    carry = (begin(system, key), (none, none) if record else None)
    final, kept = _run(
        rule, inputs, targets, carry, scale, order, begin_at, end_at, full_batch, window
    )
    stalled = jnp.zeros((), bool) if final.pace is None else final.pace.stalled(window)
    begun, ended = (mean_loss(one, inputs, targets) for one in (system, final.system))
    return final, begun, ended, _ended(system, kept, final.number, ended), stalled


def update(
    rule: Rule, inputs: Array, targets: Array, state: LearnerState, scale: Array
) -> tuple[LearnerState, Float[Array, ""]]:
    """One update driven by the residuals of these samples, and its step."""
    return updated(rule, targets, state, scale, state.system.trace(inputs))


def updated(
    rule: Rule,
    targets: Array,
    state: LearnerState,
    scale: Array,
    trace: Trace,
) -> tuple[LearnerState, Float[Array, ""]]:
    """The same where the trace of the samples is known."""
    now, pace, key = state.system, state.pace, state.key
    rule = rule.during(state.number, None if key is None else jax.random.fold_in(key, state.number))
    error = targets - trace[-1]
    scores = rule.at(now, trace, error)
    if pace is not None:
        pace = measured(pace, scale, now, trace, scores, error, targets)
    size = envelope(scale, now, scores, pace).astype(targets.dtype)
    moved = rule.move(now, scores, size)
    # The learner stays where it is once a block would leave its geometry.
    sound = now.kept(moved)
    kept = jax.tree.map(
        lambda new, old: jnp.where(sound, new, old),
        LearnerState(
            moved, state.number + 1, sound, None if pace is None else pace.stepped(size), key
        ),
        state,
    )
    return eqx.tree_at(lambda reached: reached.running, kept, sound), size


@eqx.filter_jit
def _run(
    rule: Rule,
    inputs: Array,
    targets: Array,
    carry: tuple[LearnerState, tuple[Array, Array] | None],
    scale: Array,
    order: Array,
    first: Any,
    last: Any,
    full_batch: bool,
    window: Array,
) -> tuple[LearnerState, tuple[Array, Array] | None]:
    """Make the updates from `first` to before `last`, unless the learner stops.

    It stalls once no step of `window` updates in a row could move anything.
    """

    def make(number: Array, carry: Any) -> Any:
        before, kept = carry
        now, sample = before.system, order[number]
        aims = targets if full_batch else targets[sample][None, :]
        if kept is not None and _shares(now):
            # One trace serves this update and the loss after the one before.
            every = now.trace(inputs)
            kept = (_put(kept[0], number - 1, _half_squares(targets - every[-1])), kept[1])
            trace = every if full_batch else now.sample(every, sample)
        else:
            trace = now.trace(inputs if full_batch else inputs[sample][None, :])
        state, size = updated(rule, aims, before, scale, trace)
        if kept is not None:
            losses, steps = kept
            if not _shares(now):
                losses = _put(losses, number, mean_loss(state.system, inputs, targets))
            kept = (losses, _put(steps, number, size))
        if state.pace is not None:
            moving = state.running & ~state.pace.stalled(window)
            state = eqx.tree_at(lambda reached: reached.running, state, moving)
        return state, kept

    if not isinstance(last, int):
        return jax.lax.while_loop(
            lambda state: (state[0] < last) & state[1][0].running,
            lambda state: (state[0] + 1, make(*state)),
            (first, carry),
        )[1]
    # Where numbers are traced the loop needs derivatives, and so a length. What is left of it after
    # a learner stopped costs next to nothing.
    return jax.lax.fori_loop(
        first,
        last,
        lambda number, carry: jax.lax.cond(
            carry[0].running, make, lambda _, carry: carry, number, carry
        ),
        carry,
    )


def _shares(system: System) -> bool:
    """Whether the trace of one sample is part of that of all."""
    return type(system).sample is not System.sample


def _half_squares(error: Fields) -> Float[Array, ""]:
    """Half the squared residual, mean over samples."""
    return jnp.sum(error**2) / (2 * len(error))


def _put(row: Array, number: Array, value: Array) -> Array:
    """The row with a value at a number, unless that is below zero."""
    return row.at[jnp.where(number < 0, row.size, number)].set(value, mode="drop")


def _ended(system: System, kept: tuple[Array, Array] | None, made: Any, loss: Array) -> Any:
    """What was kept, with the loss after the last update, which no later update has found."""
    if kept is None or not _shares(system):
        return kept
    return _put(kept[0], jnp.asarray(made) - 1, loss), kept[1]


def _padded(rows: Array | np.ndarray) -> Array:
    """The rows with zeros behind them to the next power of two, so that runs of many lengths share
    few compiled loops.
    """
    room = (1 << (len(rows) - 1).bit_length()) - len(rows)
    widths = [(0, room)] + [(0, 0)] * (rows.ndim - 1)
    return (
        jnp.asarray(np.pad(np.asarray(rows), widths))
        if _check.known(rows)
        else jnp.pad(rows, widths)
    )


def _order(
    samples: int,
    epochs: int | None,
    seed: int | np.random.Generator | None,
    schedule: Any,
    full_batch: bool,
) -> Order:
    """The order that `train` would draw.

    Its turns are drawn as well, and left: a Generator then moves on as far as it does there.
    """
    unseeded = seed is None and (full_batch or not isinstance(schedule, str) or schedule == "fixed")
    return drawn(samples, epochs, 0 if unseeded else seed, schedule, None)[0]
