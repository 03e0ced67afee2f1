"""The physics of the threshold study.

One stage per depth; all families and imbalances of a depth are one compiled call.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from whorl.curvature import curvature, turn_scores
from whorl.feedback import rotational
from whorl.response import response
from whorl.study import draws
from whorl.study.kind import Arrays, Depth
from whorl.study.parameters import Parameters
from whorl.system import loss
from whorl.systems.layered import Network
from whorl.turn import quarter_turn

MEASURED = ("displacement", "bending", "selected_displacement", "selected_bending")


def stages(p: Parameters) -> list[Depth]:
    """Units of work that are kept when a run is interrupted."""
    return [*map(Depth, p.depths)]


def compute(p: Parameters, stage: Depth) -> Arrays:
    """The physics of one depth, as arrays over families and imbalances."""
    depth = stage.depth
    x, y = draws.tasks(p.seed, p.families, p.concentration)
    x, y = (np.repeat(part, len(p.betas), axis=0) for part in (x, y))
    layers = draws.softmax_networks(p.seed, p.families, depth, p.betas, p.floor)
    selected = draws.largest_residual(layers, x, y)
    # The selected sample goes first, so that one compiled program serves all configurations; sums
    # over samples do not mind.
    first = (np.arange(6) + selected[:, None]) % 6
    seen = _measured(depth)(
        layers,
        *(np.take_along_axis(rows, first[:, :, None], axis=1) for rows in (x, y)),
        float(p.finite_step),
    )
    names = (*MEASURED, "factor", "velocity", "commanded", "losses")
    return dict(zip(names, map(np.asarray, seen), strict=True)) | {
        "x": x,
        "y": y,
        "layers": layers,
        "selected": selected,
    }


@cache
def _measured(depth: int) -> Callable[..., Any]:
    like, turn = Network([np.full((3, 3), 1 / 3)] * depth), np.asarray(quarter_turn(3))

    def one(layers: Any, x: Any, y: Any, step: Any) -> Any:
        net, law = like.with_blocks(list(layers)), rotational()
        local = curvature(net, x, y, selected=0, law=law)
        straight, turning = turn_scores(net, x, y, selected=0, law=law)
        driven = response(net, x, selected=0)
        error = y[:1] - driven.predictions
        errors = y - response(net, x).predictions

        def after(size: Any, amount: float) -> Any:
            return loss(
                net.stepped([b + amount * r for b, r in zip(straight, turning, strict=True)], size),
                x,
                y,
            )

        losses = jnp.stack(
            [after(size, amount) for size in (step, -step) for amount in (1.0, -1.0, 0.0)]
        )
        bent = jnp.sum(errors * local.bending, axis=1)
        moved = jnp.sum(local.displacement**2, axis=1)
        velocity, commanded = driven @ law(driven, error), error + error @ turn.T
        return (
            moved.sum(),
            bent.sum(),
            moved[0],
            bent[0],
            driven.factor(),
            velocity[0],
            commanded[0],
            losses,
        )

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, None)))
