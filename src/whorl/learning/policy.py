r"""Policies: how far to step, and how much to turn.

Section VII C of the paper, with its envelope and its curvature gate. A policy sees the scores
before an update and answers with a step and an amount of turning: that is the whole contract. The
step of any applied score $u$ is bounded by the envelope

$$ \eta = \frac{s}{\max(\kappa, \mathrm{spread}(u))} , $$

which has the unit of a time, as a score is a rate. The spread is the fastest relative change of a
parameter (`whorl.geometry`), within a column $\max_i u_i - \min_i u_i$, so that no update changes
the logarithm of a positive number, or of a ratio within a column, by more than $s$. The pace
$\kappa$ keeps the outputs from overshooting:

- For columns alone $\kappa = 1$, the paper's envelope: their scores and outputs are pure numbers.
- Elsewhere 1 would be in arbitrary units. There $\kappa$ is the largest
  $\lVert\dot F\rVert / \lVert e\rVert$ of the run so far: how fast the reciprocal score moves the
  outputs of the driving samples, relative to their residual $e$ (largest entries, see `pace`). One
  update then closes at most the share $s$ of a residual. A law that inverts the response moves
  outputs at $\dot F = e$, and has $\kappa = 1$ again.

Other units of parameters, outputs or time leave the path of a learner as it is. `native` never
turns and takes the full envelope of the reciprocal score. `step_matched` always keeps room
for a turn of either sense, `adaptive` only where it takes one. Policies that look ahead are in
`foresight`.

To write a policy of your own, subclass `Policy` and give `decide`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from whorl import _check
from whorl._check import Numbers
from whorl._show import Valued
from whorl.feedback import OMEGA, Rotational, leaky, rotational
from whorl.learning.pace import Pace, measured
from whorl.registry import Field, gates, policies
from whorl.response import Response, response
from whorl.system import Block, Blocks, Fields, System
from whorl.turn import zero_sum

Scores = tuple[Block, ...]


class View(eqx.Module):
    """What a policy sees before an update.

    Examples:
        >>> from whorl.learning import policy
        >>> view = policy.look(
        ...     wh.rotational(base=wh.leaky(0.1)), net, x, y, sample=0, turn=1, number=0
        ... )
        >>> bool(
        ...     np.isclose(
        ...         view.ratio,
        ...         wh.curvature(
        ...             net, x, y, selected=0, law=wh.rotational(base=wh.leaky(0.1))
        ...         ).ratio,
        ...     )
        ... )
        True
    """

    system: System
    straight: Scores  # the reciprocal score b
    turning: Scores  # the rotational score r, for a unit amount
    displacement: Float[
        Array, ""
    ]  # squared first-order displacement of the scheduled sample under r
    bending: Float[Array, ""]  # its second-order displacement along the residual
    sample: Int[Array, ""]  # the scheduled sample
    turn: Float[Array, ""]  # the scheduled sense, +1 or -1
    number: Int[Array, ""]  # updates made so far: the place of this one in `order` and `turns`
    inputs: Float[Array, "samples _in"]  # the whole task
    targets: Float[Array, "samples _out"]
    order: Int[Array, "updates"]  # the whole schedule
    turns: Int[Array, "updates"]
    pace: Pace | None = None  # how fast outputs have moved; None for columns

    @property
    def ratio(self) -> Float[Array, ""]:
        """The local ratio chi of Eq. 27; 0 where nothing would be displaced."""
        moved = self.displacement > 0
        return jnp.where(moved, self.bending / jnp.where(moved, self.displacement, 1.0), 0.0)

    def combined(self, amount: ArrayLike) -> Scores:
        """The score b + amount r."""
        return tuple(b + amount * r for b, r in zip(self.straight, self.turning, strict=True))


class Decision(eqx.Module):
    """What a policy answers: the step to take and the amount of turning.

    The learner turns by the scheduled sense times the amount, so that a negative amount is a turn
    against the schedule. A policy that picks from a list may say which it was; the record of a run
    keeps it.

    Examples:
        >>> wh.Decision(step=jnp.array(0.1), amount=jnp.array(1.0)).choice
        0
    """

    step: Float[Array, ""]
    amount: Float[Array, ""]
    choice: Int[Array, ""] | int = 0


Gate = Callable[[View], Bool[Array, ""]]


class Policy(Valued, eqx.Module):
    """A rule for step and amount, with the law that makes the scores.

    Examples:
        >>> wh.adaptive(0.1).omega.tolist(), wh.native(0.1).omega.tolist()
        (1.0, 0.0)
    """

    scale: Float[
        Array, "..."
    ]  # like the omega and the numbers of the law: one number, or in an ensemble one per pair
    omega: Float[Array, "..."]
    gate: Gate = eqx.field(static=True)
    law: Rotational
    # fields, or fields of fields, that may be rows with one number per pair of an ensemble; a
    # policy
    # with numbers of its own adds their names
    numbers: ClassVar[tuple[str, ...]] = ("scale", "omega", "law.alpha", "law.omega", "law.base")
    # whether `Decision.choice` says something, so that an ensemble keeps it
    chooses: ClassVar[bool] = True
    # the name under which the kernels of `fast` know this very class; None for those they do not
    kernel: ClassVar[str | None] = None

    @abstractmethod
    def decide(self, view: View) -> Decision:
        """Say how far to step along b + sigma * amount * r, and the amount."""

    @property
    def turns(self) -> bool:
        """Whether this policy may ever turn; only then does it need outputs that can be turned."""
        # NumPy's array, since any function of JAX's would be traced under jit, a known one, too.
        known = _check.known(self.omega)
        return self.gate is not never and not (known and not np.asarray(self.omega).any())

    def seen(self, view: View) -> View:
        """The view with which this policy replaces the plain one, for itself and for the ledger.

        Most do not.
        """
        return view

    def check(self, samples: int, updates: int, pairs: int | None) -> None:
        """Refuse a run that this policy was not made for; `pairs` is None for a single one."""
        del samples, updates
        if not any(eqx.is_array(leaf) and leaf.ndim for leaf in jax.tree.leaves(self)):
            return  # as nearly always, and sooner than by names
        for path, leaf in jax.tree_util.tree_leaves_with_path(self):
            if _is_row(self.numbers, path, leaf) and leaf.shape != (pairs,):
                name = jax.tree_util.keystr(path).rpartition(".")[2]
                wanted = (
                    "one number"
                    if pairs is None
                    else f"one number, or one for each of {pairs} pairs"
                )
                raise ValueError(f"{name} must be {wanted}, but its shape is {leaf.shape}")

    def kernel_tables(self, order: np.ndarray) -> list[np.ndarray]:
        """What the kernel of this policy takes besides networks and data, one row per pair.

        Args:
            order: The samples that are shown, `(pairs, updates)`.

        Returns:
            A table of numbers, `(pairs, numbers)`: scale, omega and leak, if any. More where a
            kernel asks for more.
        """
        leak = self.law.base.damping
        numbers = (self.scale, self.omega, 0.0 if leak is None else leak)
        return [np.stack([np.broadcast_to(one, len(order)) for one in numbers], axis=1)]

    def per_pair(self) -> Any:
        """Which arrays have a leading axis for the pairs of an ensemble: a tree of booleans."""
        names = self.numbers
        return jax.tree_util.tree_map_with_path(lambda path, leaf: _is_row(names, path, leaf), self)


def _is_row(names: tuple[str, ...], path: Any, leaf: Any) -> bool:
    """Whether a leaf is one of these numbers, given once per pair."""
    field = jax.tree_util.keystr(path) + "."
    return eqx.is_array(leaf) and leaf.ndim > 0 and field.startswith(tuple(f".{n}." for n in names))


class Native(Policy):
    """Never turn; take the full admissible step of the reciprocal score."""

    chooses: ClassVar[bool] = False
    kernel: ClassVar[str | None] = "native"

    def decide(self, view: View) -> Decision:
        step = envelope(self.scale, view.system, view.straight, view.pace)
        return Decision(step, jnp.zeros_like(step))


class StepMatched(Policy):
    """Always keep room for a turn of either sense, whether or not the gate is open."""

    chooses: ClassVar[bool] = False
    kernel: ClassVar[str | None] = "step_matched"

    def decide(self, view: View) -> Decision:
        step = reserved(self.scale, self.omega, view)
        return Decision(step, jnp.where(self.gate(view), self.omega, 0.0).astype(step.dtype))


class Adaptive(Policy):
    """Keep room for a turn only where the gate is open; take the native step elsewhere."""

    chooses: ClassVar[bool] = False
    kernel: ClassVar[str | None] = "adaptive"

    def decide(self, view: View) -> Decision:
        kept, full = (
            reserved(self.scale, self.omega, view),
            envelope(self.scale, view.system, view.straight, view.pace),
        )
        is_open = self.gate(view)
        return Decision(
            jnp.where(is_open, kept, full), jnp.where(is_open, self.omega, 0.0).astype(full.dtype)
        )


def envelope(
    scale: Array, system: System, scores: Blocks, pace: Pace | None = None
) -> Float[Array, ""]:
    """The admissible step of an applied score: `scale` over its spread, or over `pace` if that is
    more.

    Args:
        scale: The step scale s.
        system: What learns.
        scores: One score per block.
        pace: How fast the outputs have moved at most, relative to their residual (`View.pace`). Left
            out it is 1 where all blocks are columns, and elsewhere the spread alone counts.

    Examples:
        >>> from whorl.learning import policy
        >>> float(
        ...     policy.envelope(
        ...         jnp.array(0.1), wh.Network([[[0.5], [0.5]]]), (jnp.array([[4.0], [0.0]]),)
        ...     )
        ... )
        0.025
    """
    if system.unitless:
        return admitted(scale, system.spread(scores))
    return admitted(scale, system.spread(scores), 0.0 if pace is None else pace.rate)


def admitted(scale: Array, spread: Array, pace: ArrayLike = 1.0) -> Float[Array, ""]:
    """The step that the envelope admits for a score of this spread; zero where nothing moves."""
    fastest = jnp.maximum(pace, spread)
    if isinstance(pace, float) and pace > 0:
        return scale / fastest
    return jnp.where(fastest > 0, scale / jnp.where(fastest > 0, fastest, 1.0), 0.0)


def reserved(scale: Array, omega: Array, view: View) -> Float[Array, ""]:
    """The step that either sense of the turn could take.

    Examples:
        >>> from whorl.learning import policy
        >>> view = policy.look(
        ...     wh.rotational(base=wh.leaky(0.1)), net, x, y, sample=0, turn=1, number=0
        ... )
        >>> 0 < float(policy.reserved(jnp.array(0.1), jnp.array(1.0), view)) <= 0.1
        True
    """
    return jnp.minimum(
        envelope(scale, view.system, view.combined(omega), view.pace),
        envelope(scale, view.system, view.combined(-omega), view.pace),
    )


def look(
    law: Rotational,
    system: System,
    inputs: Array,
    targets: Array,
    sample: ArrayLike,
    turn: ArrayLike,
    number: ArrayLike,
    plan: tuple[Array, Array] | None = None,
    pace: Pace | None = None,
    scale: ArrayLike = 1.0,
) -> View:
    """Gather what a policy sees at one state.

    `plan` is the whole order with its turns, this one update if left out. `pace` is that of the
    updates before, and `scale` that of the step. Nothing is checked.
    """
    x, y = inputs[sample][None, :], targets[sample][None, :]
    order, turns = (jnp.asarray(sample)[None], jnp.asarray(turn)[None]) if plan is None else plan
    driven = response(system, x)
    error = y - driven.predictions
    straight, turning = (driven.scores(potential) for potential in parts(law, driven, error))
    _, moved, bent = system.jet(x, turning)
    return View(
        system,
        straight,
        turning,
        jnp.sum(moved**2),
        jnp.sum(error * bent),
        jnp.asarray(sample),
        jnp.asarray(turn, dtype=system.dtype),
        jnp.asarray(number),
        inputs,
        targets,
        order,
        turns,
        measured(pace, scale, system, driven.trace, straight, error, y),
    )


def parts(law: Rotational, driven: Response, error: Fields) -> tuple[Fields, Fields]:
    """The potentials of the reciprocal and the rotational score.

    A single direction leaves nothing to turn: the second is zero.
    """
    if can_turn(law, driven.system):
        return law.parts(driven, error)
    return law.base.potentials(driven, law.alpha * error)[0], jnp.zeros_like(error)


def can_turn(law: Rotational, system: System) -> bool:
    """Whether the residual of one sample has room for a turn, which takes two directions.

    A skew matrix that was given is believed.
    """
    return law.skew is not None or system.basis().shape[1] > 1


def check_policy(policy: Any) -> None:
    """Refuse what is no policy."""
    rule = "native(...), step_matched(...), adaptive(...) or your own Policy"
    _check.instance("policy", policy, Policy, rule)


def check_turn(policy: Policy, system: System) -> None:
    """Refuse a policy that would turn where no turn exists."""
    if policy.turns and not can_turn(policy.law, system):
        least = "3 outputs" if zero_sum(system.basis()) else "2 outputs that move by themselves"
        rule = f"a policy that turns must have at least {least} to turn one sample"
        raise ValueError(
            f"{rule}, but there are {system.sizes[1]}: use native(...), which never turns"
        )


@gates.register("curvature", label="by curvature")
def curvature_gate(view: View) -> Bool[Array, ""]:
    """Open where the local ratio exceeds one."""
    return view.bending > view.displacement


@gates.register(label="always open")
def always(view: View) -> Bool[Array, ""]:
    """Open at every update."""
    return jnp.ones_like(view.displacement, dtype=bool)


@gates.register(label="never open")
def never(view: View) -> Bool[Array, ""]:
    """Open at no update."""
    return jnp.zeros_like(view.displacement, dtype=bool)


SCALE = Field("scale", 0.1, 1e-9, 1.0, label="Step scale", slider=(0.01, 1.0, 0.01))
GATE = Field("gate", "curvature", type="choice", among=gates, label="Gate", per_pair=False)


@policies.register(parameters=(SCALE,), where=("sweep", "explorer"))
def native(scale: Numbers, *, law: Rotational | None = None) -> Policy:
    """The reciprocal learner every other policy is compared with.

    Args:
        scale: The step scale s of the envelope, above 0: the largest share by which an update
            changes a parameter or closes a residual; in `train_many` one number, or one per pair.
        law: What makes the scores; `rotational(base=leaky(0.1))` if left out.

    Returns:
        The policy.

    Examples:
        >>> float(wh.native(0.1).scale)
        0.1
    """
    return Native(*checked(scale, 0.0, "never", law))


@policies.register(parameters=(SCALE, OMEGA, GATE))
def step_matched(
    scale: Numbers,
    *,
    omega: Numbers = 1.0,
    gate: str | Gate = "curvature",
    law: Rotational | None = None,
) -> Policy:
    """Turn by `omega` where the gate is open, and step at every update as if a turn of either sense
    had to fit.

    Args:
        scale: The step scale s of the envelope, above 0: the largest share by which an update
            changes a parameter or closes a residual; in `train_many` one number, or one per pair.
        omega: The amount of turning, at least 0.
        gate: When to turn: "curvature", "always", "never", or a function from `View` to a boolean.
        law: What makes the scores; `rotational(base=leaky(0.1))` if left out. Curvature gates on
            it.

    Returns:
        The policy.

    Examples:
        >>> wh.step_matched(0.1, gate="always").gate.__name__
        'always'
    """
    return StepMatched(*checked(scale, omega, gate, law))


@policies.register(parameters=(SCALE, OMEGA, GATE))
def adaptive(
    scale: Numbers,
    *,
    omega: Numbers = 1.0,
    gate: str | Gate = "curvature",
    law: Rotational | None = None,
) -> Policy:
    """Turn by `omega` where the gate is open, and take the native step where it is not.

    In `train_many`, `scale`, `omega` and the numbers of the law may each be a row with one number
    per pair.

    Args:
        scale: The step scale s of the envelope, above 0: the largest share by which an update
            changes a parameter or closes a residual; in `train_many` one number, or one per pair.
        omega: The amount of turning, at least 0.
        gate: When to turn: "curvature" (local ratio above one), "always", "never", or a function
            from `View` to a boolean.
        law: What makes the scores; `rotational(base=leaky(0.1))` if left out. Curvature gates on
            it.

    Returns:
        The policy.

    Examples:
        >>> wh.adaptive(0.1, omega=0.5).gate.__name__
        'curvature_gate'
    """
    return Adaptive(*checked(scale, omega, gate, law))


def checked(
    scale: Numbers, omega: Numbers, gate: str | Gate, law: Rotational | None
) -> tuple[Array, Array, Gate, Rotational]:
    """The four fields that every policy has, from what a user gave.

    Examples:
        >>> from whorl.learning import policy
        >>> scale, omega, gate, law = policy.checked(0.1, 1.0, "curvature", None)
    """
    if isinstance(gate, str) or not callable(gate):
        gate = gates.get(gate, also=" or a function").factory
    law = rotational(base=leaky(0.1)) if law is None else law
    _check.instance("law", law, Rotational, "rotational(...), since it has to name a turn")
    return (
        _check.numbers("scale", scale, above=0.0),
        _check.numbers("omega", omega, least=0.0),
        gate,
        law,
    )
