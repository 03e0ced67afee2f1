r"""The rules that people train physical systems with, each a `Rule` as the baselines are.

A rule maps a system, inputs and a residual $e$ to a velocity of the parameters.
`closed_loop(system, inputs, rule)` probes what it makes the outputs do, and `learn` trains with it.
Those below compare two states of a system that settles (`whorl.settling`): a free one, and one that
is pushed at its outputs. With $S(f) = -\partial_\theta E$ of the state under the force $f$, output
impedance $Z$ and mobility $M$:

| rule | velocity at a finite nudge | in the limit | closed loop |
|---|---|---|---|
| `equilibrium_propagation` | $M\,(S(f_\beta) - S(0))/\beta$, springs of stiffness $\beta$ to the targets | $M J^\mathsf{T}e$ | $K(1 + \beta Z)^{-1}$ |
| the same, centred | $M\,(S(f_\beta) - S(f_{-\beta}))/2\beta$ | $M J^\mathsf{T}e$ | $K(1 - \beta^2Z^2)^{-1}$ |
| `coupled_learning` | $M\,(S(f) - S(0))/\beta$, outputs held at $y + \beta e$ | $M J^\mathsf{T}Z^{-1}e$ | $K Z^{-1}$ |
| `contrastive_learning` | the same with $\beta = 1$: outputs held at their targets | | $K Z^{-1}$ |
| `adjoint_coupled_learning` | | $-M\,\partial_\theta\,\tfrac12 e^\mathsf{T}Z^{-1}e$ | $K Z^{-1}$ |
| `feedback_alignment` | $M J_0^\mathsf{T}e$, carried back by other parameters | | $J M J_0^\mathsf{T}$ |

Loops are those at no residual. $K$ and $Z$ are symmetric and positive, so that $KZ^{-1}$ is similar
to a symmetric matrix: its eigenvalues are real, and it is a gradient flow in the metric $Z^{-1}$.
Stiff springs lead from equilibrium propagation to coupled learning, and only in the limit of soft
ones is the loop symmetric. Nothing makes $J_0$ alike.

References: Scellier and Bengio, Frontiers in Computational Neuroscience 11, 24 (2017); Laborieux et
al., Frontiers in Neuroscience 15, 633674 (2021), for the centred nudge; Stern, Hexner, Rocks and
Liu, Physical Review X 11, 021045 (2021); Movellan, Connectionist Models Summer School (1991);
Lillicrap et al., Nature Communications 7, 13276 (2016). Adjoint coupled learning is that of
McGinnis, Li and Mori, arXiv:2606.15443 (2026), as we read it: the gradient of the energy that it
takes to hold the outputs at their targets, which coupled learning follows up to its dependence on
$Z$.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from whorl import _check
from whorl.geometry import Block, Geometry
from whorl.learning.baseline import Rule
from whorl.learning.policy import Scores
from whorl.registry import Field, rules
from whorl.settling import Influence, Settling, States, widened
from whorl.system import Blocks, Fields, System, Trace

NUDGE = Field(
    "nudge",
    0.0,
    0.0,
    10.0,
    label="Nudge",
    help="how far outputs are pushed; 0: the limit",
    slider=(0.0, 1.0, 0.01),
)
SEED = Field("seed", 0, 0, 2**31, type="whole", help="of the way back", per_pair=False)
SPREAD = Field(
    "spread",
    1.0,
    0.0,
    100.0,
    label="Spread",
    help="how unlike the way back is",
    slider=(0.0, 4.0, 0.1),
    per_pair=False,
)


class Settled(Rule):
    """A rule that only a system that settles can follow."""

    @abstractmethod
    def slopes(self, system: Settling, inputs: Array, residual: Fields) -> tuple[Block, ...]:
        """What moves the parameters, before their mobility."""

    def scores(self, system: System, inputs: Array, residual: Fields) -> Scores:
        return system.scores_of(self.slopes(_settling(self, system), inputs, residual))


class Contrast(Settled):
    """A rule that compares the free state of a settling system with a pushed one."""

    nudge: Float[Array, ""]
    limit: bool = eqx.field(static=True)  # whether the nudge is zero, known before compilation

    @abstractmethod
    def force(self, system: Settling, inputs: Array, residual: Fields, nudge: Array) -> Fields:
        """The force of a finite nudge on a nonlinear system."""

    @abstractmethod
    def direction(
        self, system: Settling, impedance: Array, residual: Fields, nudge: Array | None
    ) -> Fields:
        """The force of a nudge on outputs that answer by their impedance; None: per nudge, in the
        limit.
        """

    def at(self, system: System, trace: Trace, residual: Fields) -> Scores:
        settling = _settling(self, system)
        reached = settling.reached(trace)
        return system.scores_of(self._slopes(settling, trace[0], residual, reached))

    def slopes(self, system: Settling, inputs: Array, residual: Fields) -> tuple[Block, ...]:
        return self._slopes(system, inputs, residual, system.reach(inputs))

    def _slopes(
        self, system: Settling, inputs: Array, residual: Fields, reached: tuple[States, Influence]
    ) -> tuple[Block, ...]:
        if not (self.limit or system.linear):
            # The difference of two states, in the widest precision that is at hand.
            slopes = self._finite(*widened((system, inputs, residual)))
            return tuple(slope.astype(system.dtype) for slope in slopes)
        states, influence = reached
        impedance = system.impedance_at(states, influence)

        def moved(nudge: Array | None) -> States:
            force = self.direction(system, impedance, residual, nudge)
            return jnp.einsum(
                "so,rox->sx" if len(influence) == 1 else "so,sox->sx", force, influence
            )

        if self.limit:
            return _change(system, states, moved(None), 1.0)
        ahead, behind = moved(self.nudge), self._behind(moved)
        # The energy of a linear system is quadratic in its state, so that the difference of two
        # slopes is their derivative halfway. Unlike the difference it cancels nothing.
        middle = states + (ahead + behind) / 2
        return _change(system, middle, ahead - behind, self._apart * self.nudge)

    @property
    def _apart(self) -> float:
        """How many nudges lie between the two states."""
        return 1.0

    def _behind(self, moved: Callable[[Array], States]) -> States | float:
        """Where the other state lies from the free one."""
        del moved
        return 0.0

    def _finite(self, system: Settling, inputs: Array, residual: Fields) -> tuple[Block, ...]:
        pushed = self._seen(system, inputs, residual, self.nudge)
        free = system.slopes(system.settle(inputs, system.no_force(inputs)))
        return jax.tree.map(lambda one, other: (one - other) / self.nudge, pushed, free)

    def _seen(self, system: Settling, inputs: Array, residual: Fields, nudge: Array) -> Blocks:
        force = self.force(system, inputs, residual, nudge)
        return system.slopes(system.settle(inputs, force))


class EquilibriumPropagation(Contrast):
    """Springs pull the outputs towards their targets."""

    centred: bool = eqx.field(static=True)

    def force(self, system: Settling, inputs: Array, residual: Fields, nudge: Array) -> Fields:
        return system.sprung(inputs, residual, nudge)

    def direction(
        self, system: Settling, impedance: Array, residual: Fields, nudge: Array | None
    ) -> Fields:
        return residual if nudge is None else system.forces(impedance, residual, nudge)

    @property
    def _apart(self) -> float:
        return 2.0 if self.centred else 1.0

    def _behind(self, moved: Callable[[Array], States]) -> States | float:
        return moved(-self.nudge) if self.centred else 0.0

    def _finite(self, system: Settling, inputs: Array, residual: Fields) -> tuple[Block, ...]:
        if not self.centred:
            return super()._finite(system, inputs, residual)
        ahead, behind = (
            self._seen(system, inputs, residual, way * self.nudge) for way in (1.0, -1.0)
        )
        return jax.tree.map(lambda one, other: (one - other) / (2 * self.nudge), ahead, behind)


class CoupledLearning(Contrast):
    """The outputs are held a little nearer to their targets."""

    def force(self, system: Settling, inputs: Array, residual: Fields, nudge: Array) -> Fields:
        return system.holding(inputs, nudge * residual)

    def direction(
        self, system: Settling, impedance: Array, residual: Fields, nudge: Array | None
    ) -> Fields:
        return system.forces(impedance, residual if nudge is None else nudge * residual)


class AdjointCoupledLearning(Settled):
    """The gradient of the energy that it takes to hold the outputs at their targets."""

    def slopes(self, system: Settling, inputs: Array, residual: Fields) -> tuple[Block, ...]:
        wanted = system.outputs(inputs) + residual

        def held(blocks: tuple[Block, ...]) -> Float[Array, ""]:
            moved = system.with_blocks(blocks)
            missing = wanted - moved.outputs(inputs)
            return -jnp.sum(missing * moved.forces(moved.impedance(inputs), missing)) / 2

        return jax.grad(held)(system.blocks)


class FeedbackAlignment(Rule):
    """The residual is carried back by fixed parameters that are not those of the way forward."""

    seed: int = eqx.field(static=True)
    spread: float = eqx.field(static=True)

    def scores(self, system: System, inputs: Array, residual: Fields) -> Scores:
        other = system.with_blocks(self.way(system))
        return system.scores_of(other.back(system.trace(inputs), residual))

    def way(self, system: System) -> tuple[Block, ...]:
        """The parameters of the way back: standard normal numbers times `spread`, in the chart of
        each block's geometry, so that columns stay columns and conductances positive.
        """
        draws = np.random.default_rng(self.seed)

        def drawn(kind: Geometry, point: Block) -> Block:
            chart = self.spread * draws.standard_normal(point.shape)
            return kind.point(point, jnp.asarray(chart, dtype=point.dtype))

        return tuple(map(drawn, system.geometries, system.blocks))


def _settling(rule: Rule, system: System) -> Settling:
    """The system, if it settles."""
    if not isinstance(system, Settling):
        raise ValueError(
            f"system must settle, as a Circuit does, to learn by {_name(rule)}, but it is a "
            f"{type(system).__name__}"
        )
    return system


def _change(system: Settling, states: States, moved: States, size: ArrayLike) -> tuple[Block, ...]:
    """How the slopes change along a motion of the state, per unit of `size`."""
    return jax.tree.map(lambda slope: slope / size, jax.jvp(system.slopes, (states,), (moved,))[1])


def _name(rule: Rule) -> str:
    letters = type(rule).__name__
    return "".join(f" {one.lower()}" if one.isupper() else one for one in letters).strip()


def _nudge(nudge: ArrayLike) -> tuple[Array, bool]:
    size = _check.scalar("nudge", nudge, least=0.0)
    return size, _check.known(size) and not float(size)


@rules.register(parameters=(NUDGE,), where=("explorer",), label="equilibrium propagation")
def equilibrium_propagation(nudge: ArrayLike = 0.0, *, centred: bool = False) -> Rule:
    """Equilibrium propagation: springs pull the outputs of the settled state to their targets.

    Args:
        nudge: Stiffness of the springs, in force per output; 0, the default, is the limit.
        centred: Whether the free state is replaced by one that springs push away, which makes the
            bias quadratic in the nudge; the nudge must then be weaker than the system is stiff.

    Returns:
        A rule for `learn` and `closed_loop`.

    Raises:
        ValueError: Where `nudge` is negative.

    Examples:
        >>> bridge = wh.Circuit([[0, 1], [1, 2]], [1.0, 3.0], sources=[0], outputs=[1], ground=[2])
        >>> loop = wh.closed_loop(bridge, [[1.0]], wh.equilibrium_propagation())
        >>> bool(np.allclose(loop.reduced, wh.response(bridge, [[1.0]]).reduced()))
        True
    """
    if not isinstance(centred, bool):
        raise ValueError(f"centred must be True or False, but it is {_check.shown(centred)}")
    return EquilibriumPropagation(*_nudge(nudge), centred)


@rules.register(parameters=(NUDGE,), where=("explorer",), label="coupled learning")
def coupled_learning(nudge: ArrayLike = 0.0) -> Rule:
    """Coupled learning: the outputs are held a little nearer to their targets than they are.

    Args:
        nudge: The share of the residual by which outputs are moved; 0, the default, is the limit.

    Returns:
        A rule for `learn` and `closed_loop`.

    Raises:
        ValueError: Where `nudge` is negative.

    Examples:
        >>> bridge = wh.Circuit([[0, 1], [1, 2]], [1.0, 3.0], sources=[0], outputs=[1], ground=[2])
        >>> loop = wh.closed_loop(bridge, [[1.0]], wh.coupled_learning())
        >>> K, Z = wh.response(bridge, [[1.0]]).reduced(), bridge.impedance(jnp.array([[1.0]]))[0]
        >>> bool(np.allclose(loop.reduced, K / Z))
        True
    """
    return CoupledLearning(*_nudge(nudge))


@rules.register(where=("explorer",), label="contrastive learning")
def contrastive_learning() -> Rule:
    """Contrastive learning with hard clamping: the outputs are held at their targets.

    Examples:
        >>> float(wh.contrastive_learning().nudge)
        1.0
    """
    return CoupledLearning(*_nudge(1.0))


@rules.register(
    where=("explorer",),
    label="adjoint coupled",
    help="Down the gradient of the energy that it takes to hold the outputs at their targets.",
)
def adjoint_coupled_learning() -> Rule:
    r"""Adjoint coupled learning: down the gradient of $\tfrac12 e^\mathsf{T}Z^{-1}e$.

    The energy that it takes to hold the outputs at their targets; in a linear circuit contrastive
    learning follows it, too.

    Examples:
        >>> bridge = wh.Circuit([[0, 1], [1, 2]], [1.0, 3.0], sources=[0], outputs=[1], ground=[2])
        >>> loop = wh.closed_loop(bridge, [[1.0]], wh.adjoint_coupled_learning())
        >>> wh.certify(loop).verdict
        'reciprocal'
    """
    return AdjointCoupledLearning()


@rules.register(parameters=(SEED, SPREAD), where=("explorer",), label="feedback alignment")
def feedback_alignment(seed: int = 0, *, spread: float = 1.0) -> Rule:
    """Feedback alignment: a fixed random way back.

    Args:
        seed: Of the parameters of the way back.
        spread: Their standard deviation in the chart of their geometry: of logarithms of
            conductances, of logits of columns.

    Returns:
        A rule for `learn` and `closed_loop`, for any system.

    Raises:
        ValueError: Where `seed` is no whole number, or `spread` is negative.

    Examples:
        >>> loop = wh.closed_loop(net, x[:1], wh.feedback_alignment(seed=1))
        >>> wh.certify(loop).reciprocal
        False
    """
    return FeedbackAlignment(
        _check.count("seed", seed, least=0), _check.number("spread", spread, least=0.0)
    )
