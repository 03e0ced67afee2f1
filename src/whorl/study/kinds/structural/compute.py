"""The physics of the structural study.

Response identities, rotational modes, reciprocal trajectories, and the two exact examples. One
stage per depth, and one for what has no families.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from whorl.curvature import curvature, turn_scores
from whorl.feedback import leaky, rotational
from whorl.ground.streams import stream
from whorl.learning.baseline import gauss_newton
from whorl.response import Response, response
from whorl.study import draws
from whorl.study.draws import COLUMNS, CONTROL
from whorl.study.kind import Arrays, Depth
from whorl.study.kinds.structural.parameters import Structural
from whorl.system import loss, total_loss
from whorl.systems.layered import Network
from whorl.turn import quarter_turn

MEASURED = (
    *("layer_sum", "gram", "factor", "selected_factor"),
    *("loops", "velocity", "commanded", "loss_rate", "predicted_rate"),
)
EXAMPLES = ("negative", "positive")
PORTION = 100  # families in one call of an update


class Explicit(NamedTuple):
    """The stage of what has no families: the disconnected controls and the curvature examples."""

    name: str = "explicit"


EXPLICIT = Explicit()
Stage = Depth | Explicit


def stages(p: Structural) -> list[Stage]:
    """Units of work that are kept when a run is interrupted."""
    return [*map(Depth, p.depths), EXPLICIT]


def compute(p: Structural, stage: Stage) -> Arrays:
    """The physics of one stage, as arrays."""
    return _depth(p, stage.depth) if isinstance(stage, Depth) else _explicit(p)


def _depth(p: Structural, depth: int) -> Arrays:
    families, spread = range(p.families), p.column_concentration
    x, y = draws.tasks(p.seed, p.families, p.concentration)
    layers = np.stack([dirichlet_layers(p.seed, f, depth, spread, p.floor) for f in families])
    selected = draws.largest_residual(layers, x, y)
    driven = (side[np.arange(p.families), selected][:, None] for side in (x, y))
    seen = _measured(depth)(layers, x, *driven, float(p.alpha), jnp.asarray(p.omegas))
    states = [(layers, layers)]
    for _ in range(p.updates):
        states.append(_moved(p, depth, states[-1], x, y))
    by_sum, by_newton = (
        np.stack([np.asarray(pair[route]) for pair in states], axis=1) for route in (0, 1)
    )
    losses = np.asarray(_losses(depth)(by_sum, x, y))
    found = dict(zip(MEASURED, map(np.asarray, seen), strict=True))
    return found | {
        "x": x,
        "y": y,
        "layers": layers,
        "selected": selected,
        "by_sum": by_sum,
        "by_newton": by_newton,
        "loss": losses,
    }


@cache
def _measured(depth: int) -> Callable[..., Any]:
    like, turn = Network([np.full((3, 3), 1 / 3)] * depth), np.asarray(quarter_turn(3))

    def one(layers: Any, x: Any, x_star: Any, y_star: Any, alpha: Any, omegas: Any) -> Any:
        net = like.with_blocks(list(layers))
        joint, driven = response(net, x), response(net, x_star)
        error = y_star - driven.predictions

        def mode(omega: Any) -> Any:
            law = rotational(alpha, omega)
            velocity = driven @ law(driven, error)
            commanded = alpha * error + omega * (error @ turn.T)
            loop = driven.reduced() @ law.matrix(driven)
            return (
                loop,
                velocity[0],
                commanded[0],
                -jnp.sum(error * velocity),
                -alpha * jnp.sum(error**2),
            )

        return joint.dense(), joint.gram(), joint.factor(), driven.factor(), *jax.vmap(mode)(omegas)

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, 0, None, None)))


def _moved(p: Structural, depth: int, state: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """One update of all families, some at a time.

    The two routes call LAPACK, and above some hundred of them wait for each other.
    """
    numbers, parts = (float(p.leak), float(p.step)), []
    for first in range(0, p.families, PORTION):
        here = slice(first, first + PORTION)
        some = tuple(one[here] for one in state)
        parts.append(jax.block_until_ready(_updated(depth)(some, x[here], y[here], *numbers)))
    return tuple(np.concatenate(sides) for sides in zip(*parts, strict=True))


@cache
def _updated(depth: int) -> Callable[..., Any]:
    """One reciprocal update by both routes: solved among the outputs, and among the parameters."""
    like = Network([np.full((3, 3), 1 / 3)] * depth)

    def one(state: Any, x: Any, y: Any, leak: Any, step: Any) -> Any:
        first, second = (like.with_blocks(list(layers)) for layers in state)
        joint = response(first, x)
        by_sum = first.stepped(joint.scores(leaky(leak)(joint, y - joint.predictions)), step)
        by_newton = second.stepped(
            gauss_newton(leak).scores(second, x, y - second.outputs(x)), step
        )
        return jnp.stack(by_sum.layers), jnp.stack(by_newton.layers)

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, None, None)))


@cache
def _losses(depth: int) -> Callable[..., Any]:
    like = Network([np.full((3, 3), 1 / 3)] * depth)

    def one(layers: Any, x: Any, y: Any) -> Any:
        return total_loss(like.with_blocks(list(layers)), x, y)

    return jax.jit(jax.vmap(jax.vmap(one, in_axes=(0, None, None))))


def _explicit(p: Structural) -> Arrays:
    found = {}
    even = np.full((1, 3), 1 / 3)
    for depth in p.depths:
        layers = control_layers(p.seed, depth, p.column_concentration, p.floor)
        driven = response(Network(list(layers), support=list(layers > 0)), even)
        matrix, factor = _matrix_and_factor(driven)
        found |= {
            f"weights{depth}": layers,
            f"response{depth}": np.asarray(matrix),
            f"factor{depth}": np.asarray(factor),
        }
    for name in EXAMPLES:
        start, target = getattr(p, f"{name}_start"), getattr(p, f"{name}_target")
        found[f"coefficient_{name}"], found[f"losses_{name}"] = map(
            np.asarray, _example(start, target, jnp.asarray(p.steps))
        )
    return found


@jax.jit
def _matrix_and_factor(driven: Response) -> Any:
    return driven.dense(), driven.factor()


@jax.jit
def _example(start: Any, target: Any, steps: Any) -> Any:
    """The coefficient of a one-layer network, and its losses after a turn, the opposite turn and no
    turn.
    """
    net = Network([jnp.asarray(start)[:, None]])
    x, y = jnp.ones((1, 1)), jnp.asarray(target)[None]
    straight, turning = turn_scores(net, x, y, selected=0)

    def after(step: Any, amount: Any) -> Any:
        return loss(
            net.stepped([b + amount * r for b, r in zip(straight, turning, strict=True)], step),
            x,
            y,
        )

    losses = jax.vmap(
        lambda step: jnp.stack([after(step, 1.0), after(step, -1.0), after(step, 0.0)])
    )(steps)
    return curvature(net, x, y, selected=0).coefficient, losses


def dirichlet_layers(
    seed: int, family: int, depth: int, concentration: float, floor: float
) -> np.ndarray:
    """A network with Dirichlet columns and a uniform share, (depth, 3, 3)."""
    rng = stream(seed, family, COLUMNS, depth)
    drawn = rng.dirichlet(np.full(3, concentration), size=(depth, 3))
    return (1 - floor) * drawn.transpose(0, 2, 1) + floor / 3


def control_layers(seed: int, depth: int, concentration: float, floor: float) -> np.ndarray:
    """A network in two components, outputs {0, 1} and {2}, (depth, 3, 3)."""
    drawn = stream(seed, 0, CONTROL, depth).dirichlet(np.full(2, concentration), size=(depth, 2))
    layers = np.zeros((depth, 3, 3))
    layers[:, :2, :2] = (1 - floor) * drawn.transpose(0, 2, 1) + floor / 2
    layers[:, 2, 2] = 1.0
    return layers
