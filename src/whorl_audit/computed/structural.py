"""The structural kind.

Joint responses, rotational modes, reciprocal trajectories, controls and two worked examples.
"""

from collections.abc import Callable

import numpy as np

from whorl_audit import draws, keys, network, plane
from whorl_audit.computed import common
from whorl_audit.computed.common import computed, drawn, exact
from whorl_audit.types import Array, Columns, Expected, Parameters

NOISE = 1e-13  # on every update of trajectories beside ours: some hundred times what round-off does
LOST = 1e-6  # share of a weight beyond which it has no digit left to be compared
COLUMN = 1e-3  # weights below it are measured by the round-off of their column, which sums to one
Shaken = Callable[..., Array]


def _outputs_solved(
    layers: Array, jac: Array, factor: Array, error: Array, leak: float, shaken: Shaken
) -> Array:
    """The score J^T v of the whole task with v = (K + leak)^-1 e, K = F F^T (Eq. 14).

    A solve loses digits with its condition.
    """
    operator = shaken(factor @ np.swapaxes(factor, 1, 2))
    potential = np.linalg.solve(operator + leak * np.eye(operator.shape[1]), error)
    condition = 1 + np.square(factor).sum(axis=(1, 2)) / leak
    potential = shaken(potential, potential * condition[:, None, None])
    return np.einsum("bsolrc,bso->blrc", jac, plane.out_of(potential.reshape(len(layers), -1, 2)))


def _weights_solved(
    layers: Array, jac: Array, factor: Array, error: Array, leak: float, shaken: Shaken
) -> Array:
    """The same by Gauss and Newton among the weights.

    (F^T F + leak) w = F^T e, and M^(1/2) w is p times the score (Eq. 17).
    """
    back = np.swapaxes(factor, 1, 2)
    motion = np.linalg.solve(shaken(back @ factor) + leak * np.eye(factor.shape[2]), back @ error)
    rates = np.einsum(
        "blrce,blce->blrc", network.roots(layers), motion.reshape(*layers.shape[:2], 3, -1)
    )
    return shaken(rates, np.ones_like(rates)) / np.maximum(layers, np.finfo(float).tiny)


def _updated(
    layers: Array,
    task: tuple[Array, Array],
    p: Parameters,
    route: Callable[..., Array],
    rng: np.random.Generator | None,
) -> Array:
    """One reciprocal update of the whole task in zero-sum coordinates.

    With `rng` there is noise wherever round-off enters.
    """

    def shaken(values: Array, size: Array | None = None) -> Array:
        if rng is None:
            return values
        largest = np.abs(values if size is None else size).reshape(len(values), -1).max(axis=1)
        return values + NOISE * np.einsum(
            "b,b...->b...", largest, rng.standard_normal(values.shape)
        )

    inputs, targets = task
    jac = network.jacobian(layers, inputs)
    factor = np.einsum("po,bson->bspn", plane.AXES, network.factor(jac, layers)).reshape(
        len(layers), 2 * draws.SAMPLES, -1
    )
    error = shaken(plane.into(targets - network.predict(layers, inputs))).reshape(
        len(layers), -1, 1
    )
    return network.step(layers, route(layers, jac, factor, error, p["leak"], shaken), p["step"])


def _modes(
    chosen: common.Selected, layers: Array, alpha: float, omegas: list[float]
) -> dict[str, Array]:
    """The columns of `modes`, each `(family, omega, ...)`, for one depth."""
    rows = []
    for omega in omegas:
        commanded = plane.mix(chosen.residual, alpha, omega)
        potential = plane.solve(chosen.response, commanded)
        inverse = np.stack(
            [plane.solve(chosen.response, np.tile(axis, (len(layers), 1))) for axis in np.eye(2)],
            axis=2,
        )
        mixer = plane.mix(np.eye(2), alpha, omega).T
        real, imag = plane.eigenvalue(-(chosen.response @ (inverse @ mixer)))
        moved = chosen.velocity(layers, chosen.score(potential))
        rate = -(plane.into(moved) * chosen.residual).sum(axis=1)
        predicted = -alpha * np.square(chosen.residual).sum(axis=1)
        size = np.linalg.norm(chosen.residual, axis=1)
        rows.append(
            (real, imag, moved, plane.out_of(commanded), rate, predicted, chosen.gain, size)
        )
    names = ("real", "imag", "velocity", "commanded", "loss_rate", "predicted_rate", "gain", "size")
    return {
        name: np.stack(values, axis=1)
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }


def _mode_columns(by_depth: list[dict[str, Array]], p: Parameters) -> Columns:
    joined = {name: np.stack([part[name] for part in by_depth], axis=1) for name in by_depth[0]}
    stretch = common.stretched(joined["gain"])
    pair = np.hypot(p["alpha"], np.asarray(p["omegas"], float))
    return {
        "real": computed(joined["real"], pair * stretch),
        "imag": computed(joined["imag"], pair * stretch),
        **common.components("velocity", joined["velocity"], stretch),
        **common.components("commanded", joined["commanded"]),
        "loss_rate": computed(joined["loss_rate"], np.square(joined["size"]) * pair * stretch),
        "predicted_rate": computed(joined["predicted_rate"]),
    }


def _trajectory(layers: Array, inputs: Array, targets: Array, p: Parameters) -> dict[str, Array]:
    """The reciprocal trajectories by two routes `(family, update, depth, 3, 3)`, their losses, and
    the shares that round-off may take.

    How far round-off grows depends on condition, leak, step and the smallest weights together, so
    it is measured: beside each trajectory goes one with noise on every update.
    """
    rng, task = np.random.default_rng(0), (inputs, targets)
    found: dict[str, Array] = {}
    for name, route in (("layer_sum", _outputs_solved), ("gauss_newton", _weights_solved)):
        ours, noisy = [layers], [layers]
        for _ in range(p["updates"]):
            ours.append(_updated(ours[-1], task, p, route, None))
            noisy.append(_updated(noisy[-1], task, p, route, rng))
        found[name] = np.stack(ours, axis=1)
        apart = np.abs(np.stack(noisy, axis=1) - found[name]) / np.maximum(found[name], COLUMN)
        found[f"{name}_lost"] = np.minimum(apart.max(axis=(2, 3, 4)), LOST)
    losses = [
        network.losses(state, inputs, targets) for state in np.swapaxes(found["layer_sum"], 0, 1)
    ]
    return found | {"loss": np.stack(losses, axis=1)}


def _operators(
    layers: Array, inputs: Array, targets: Array, p: Parameters
) -> tuple[dict[str, Array], dict[str, Array], common.Selected]:
    """The columns of `operators`, the joint response and the selected sample, for one depth."""
    batch = len(layers)
    factor = network.factor(network.jacobian(layers, inputs), layers)
    stacked = np.einsum("po,bson->bspn", plane.AXES, factor).reshape(batch, -1, factor.shape[-1])
    rank, condition = plane.spectrum(stacked, p["rank_tol"])
    selected = common.largest_residual(layers, inputs, targets)
    chosen = common.select(layers, inputs, targets, selected)
    selected_rank, selected_condition = plane.spectrum(common.reduced(chosen.factor), p["rank_tol"])
    flat = factor.reshape(batch, keys.RESPONSE, -1)
    jac = network.jacobian(layers, inputs).reshape(batch, keys.RESPONSE, *layers.shape[1:])
    responses = {"layer_sum": _by_edges(jac, layers), "gram": flat @ np.swapaxes(flat, 1, 2)}
    values = {
        "selected": selected,
        "rank": rank,
        "condition": condition,
        "selected_rank": selected_rank,
    }
    return values | {"selected_condition": selected_condition}, responses, chosen


def _by_edges(jac: Array, layers: Array) -> Array:
    """K as a sum over layers and pairs of entries.

    P_j p_k times the product of how the outputs tell j from k (Eq. 13).
    """
    total = np.zeros((len(layers), keys.RESPONSE, keys.RESPONSE))
    for layer in range(layers.shape[1]):
        for j, k in network.EDGES:
            across = jac[:, :, layer, j] - jac[:, :, layer, k]
            total += (across * (layers[:, layer, j] * layers[:, layer, k])[:, None]) @ np.swapaxes(
                across, 1, 2
            )
    return total


def _controls(p: Parameters) -> dict[str, Columns]:
    layers = {
        depth: draws.control_layers(p["seed"], depth, p["column_concentration"], p["floor"])
        for depth in p["depths"]
    }
    factors = [
        network.factor(network.jacobian(state[None], np.full((1, 1, 3), 1 / 3)), state[None])[0, 0]
        for state in layers.values()
    ]
    responses = np.stack([factor @ factor.T for factor in factors])
    ranks = np.concatenate([plane.spectrum(factor[None], p["rank_tol"])[0] for factor in factors])
    return {
        "control_weights": {
            "weight": drawn(np.concatenate([state.ravel() for state in layers.values()]))
        },
        "control_responses": {
            "response": computed(responses, np.abs(responses).max(axis=(1, 2), keepdims=True))
        },
        "controls": {"rank": exact(ranks)},
    }


def _curvature(p: Parameters) -> Columns:
    """Two columns with input one under the repair law.

    The coefficient, and the losses after steps along s0 + s1, s0 - s1 and s0.
    """
    one, rows = np.ones((1, 1, 1)), []
    for example in keys.EXAMPLES:
        layers = np.reshape(np.asarray(p[f"{example}_start"], float), (1, 1, 3, 1))
        targets = np.reshape(np.asarray(p[f"{example}_target"], float), (1, 1, 3))
        chosen = common.select(layers, one, targets, np.zeros(1, np.int64))
        straight = chosen.score(plane.solve(chosen.response, chosen.residual))
        across = chosen.score(plane.solve(chosen.response, plane.mix(chosen.residual, 0.0, 1.0)))
        moved, bent = network.turn(layers, one, across)
        coefficient = (
            np.square(moved).sum() - (plane.out_of(chosen.residual) * bent[:, 0]).sum()
        ) / 2
        for size in p["steps"]:
            scores = (straight + across, straight - across, straight)
            rows.append(
                [
                    coefficient,
                    *(
                        network.losses(network.step(layers, score, size), one, targets)[0]
                        for score in scores
                    ),
                ]
            )
    table = np.array(rows)
    losses = {
        name: common.loss(table[:, n])
        for n, name in enumerate(("loss_plus", "loss_minus", "loss_still"), start=1)
    }
    return {"coefficient": computed(table[:, 0]), **losses}


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column of the kind."""
    inputs, targets = draws.tasks(p["seed"], p["families"], p["concentration"])
    start, paths, modes, operators, responses = {}, {}, [], [], []
    for depth in p["depths"]:
        drawn_layers = [
            draws.dirichlet_layers(p["seed"], family, depth, p["column_concentration"], p["floor"])
            for family in range(p["families"])
        ]
        start[depth] = layers = np.array(drawn_layers)
        values, response, chosen = _operators(layers, inputs, targets, p)
        paths[depth] = _trajectory(layers, inputs, targets, p)
        operators.append(values)
        responses.append(response)
        modes.append(_modes(chosen, layers, p["alpha"], p["omegas"]))
    row_keys = keys.structural(p)
    weights = drawn(keys.interleave(row_keys["operators"]["depth"], start))
    joined = {name: np.stack([part[name] for part in operators], axis=1) for name in operators[0]}
    return {
        "tasks": common.task_columns(inputs, targets),
        "weights": {"weight": weights},
        "responses": {
            name: _response_column(np.stack([part[name] for part in responses], axis=1))
            for name in ("layer_sum", "gram")
        },
        "operators": {name: _operator_column(name, values) for name, values in joined.items()},
        "modes": _mode_columns(modes, p),
        **_trajectory_columns(paths, row_keys["trajectories"]["depth"]),
        **_controls(p),
        "curvature": _curvature(p),
    }


def _response_column(values: Array) -> Expected:
    return computed(
        values, np.maximum(np.abs(values), 1e-3 * np.abs(values).max(axis=(2, 3), keepdims=True))
    )


def _trajectory_columns(paths: dict[int, dict[str, Array]], depths: Array) -> dict[str, Columns]:
    """Weights and losses, measured by their size, or by what is left of it where round-off
    grows.
    """
    weights, shares = {}, {}
    for name in ("layer_sum", "gauss_newton"):
        values = keys.interleave(
            depths, {depth: path[name].reshape(-1, depth, 3, 3) for depth, path in paths.items()}
        )
        lost = np.stack([path[f"{name}_lost"] for path in paths.values()], axis=1)
        shares[name] = np.maximum(1.0, lost / common.COMPUTED)
        weights[name] = computed(
            values, np.maximum(values, COLUMN) * np.repeat(shares[name].ravel(), 9 * depths)
        )
    losses = np.stack([path["loss"] for path in paths.values()], axis=1)
    return {
        "trajectory_weights": weights,
        "trajectories": {"loss": common.loss(losses, shares["layer_sum"])},
    }


def _operator_column(name: str, values: Array) -> Expected:
    return (
        common.condition(values) if name.endswith("condition") else exact(values.astype(np.int64))
    )
