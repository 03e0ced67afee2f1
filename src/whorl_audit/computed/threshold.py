"""The threshold kind.

The finite-step coefficient of a turn that the selected sample drives through the repair law.
"""

import numpy as np

from whorl_audit import draws, keys, network, plane
from whorl_audit.computed import common
from whorl_audit.computed.common import computed, drawn, exact
from whorl_audit.types import Array, Columns, Parameters


def _turning(
    layers: Array, inputs: Array, targets: Array, across: Array, selected: Array
) -> dict[str, Array]:
    """||G||^2 and e .

    H_V of all samples and of the selected one, with the sizes that their round-off is relative to.
    """
    residual = targets - network.predict(layers, inputs)
    moved, bent = network.turn(layers, inputs, across)
    at = np.arange(len(layers))
    displacement, bending = np.square(moved).sum(axis=2), (residual * bent).sum(axis=2)
    size = displacement + np.linalg.norm(residual, axis=2) * np.linalg.norm(bent, axis=2)
    return {
        "displacement": displacement.sum(axis=1),
        "bending": bending.sum(axis=1),
        "selected_displacement": displacement[at, selected],
        "selected_bending": bending[at, selected],
        "size": size.sum(axis=1),
        "selected_size": size[at, selected],
    }


def _configurations(
    layers: Array, inputs: Array, targets: Array, p: Parameters
) -> dict[str, Array]:
    """The computed columns of `configurations` for one depth."""
    size = p["finite_step"]
    selected = common.largest_residual(layers, inputs, targets)
    chosen = common.select(layers, inputs, targets, selected)
    straight = chosen.score(plane.solve(chosen.response, chosen.residual))
    across = chosen.score(plane.solve(chosen.response, plane.mix(chosen.residual, 0.0, 1.0)))
    scores = {"plus": straight + across, "minus": straight - across, "still": straight}
    values = {
        "selected": selected,
        **_turning(layers, inputs, targets, across, selected),
        "condition": plane.spectrum(common.reduced(chosen.factor), p["rank_tol"])[1],
        "gain": chosen.gain,
        "velocity": chosen.velocity(layers, scores["plus"]),
        "commanded": plane.out_of(plane.mix(chosen.residual, 1.0, 1.0)),
    }
    for prefix, way in (("loss", size), ("back", -size)):
        for name, score in scores.items():
            values[f"{prefix}_{name}"] = (
                network.losses(network.step(layers, score, way), inputs, targets) / draws.SAMPLES
            )
    return values


def _columns(values: dict[str, Array]) -> Columns:
    sizes = {
        prefix + name: values[prefix + "size"]
        for prefix in ("", "selected_")
        for name in ("displacement", "bending")
    }
    stretch = common.stretched(values["gain"])
    return {
        "selected": exact(values["selected"]),
        **{name: computed(values[name], size * stretch) for name, size in sizes.items()},
        "condition": common.condition(values["condition"]),
        **common.components("velocity", values["velocity"], stretch),
        **common.components("commanded", values["commanded"]),
        **{
            name: common.loss(column, stretch)
            for name, column in values.items()
            if name.startswith(("loss_", "back_"))
        },
    }


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column of the kind."""
    families, betas = p["families"], p["betas"]
    inputs, targets = draws.tasks(p["seed"], families, p["concentration"])
    repeated = np.repeat(inputs, len(betas), axis=0), np.repeat(targets, len(betas), axis=0)
    start, parts = {}, []
    for depth in p["depths"]:
        layers = [
            draws.softmax_layers(p["seed"], family, depth, beta, p["floor"])
            for family in range(families)
            for beta in betas
        ]
        start[depth] = np.array(layers)
        values = _configurations(start[depth], *repeated, p)
        parts.append(
            {
                name: column.reshape(families, len(betas), *column.shape[1:])
                for name, column in values.items()
            }
        )
    joined = {name: np.stack([part[name] for part in parts], axis=1) for name in parts[0]}
    rows = keys.threshold(p)["configurations"]
    return {
        "tasks": common.task_columns(inputs, targets),
        "weights": {"weight": drawn(keys.interleave(rows["depth"], start))},
        "configurations": _columns(joined),
    }
