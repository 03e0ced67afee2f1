"""The structural kind: joint responses, rotational modes, reciprocal trajectories, controls and two worked examples."""

import numpy as np

from whorl_audit import draws, keys, network, plane
from whorl_audit.computed import common
from whorl_audit.computed.common import computed, drawn, exact
from whorl_audit.types import Array, Columns, Expected, Parameters


def _gauss_newton(layers: Array, inputs: Array, targets: Array, leak: float, size: float) -> Array:
    """One reciprocal update of the whole task in reduced weights: (J^T J + leak M^+) z = J^T e on the tangent plane of every column."""
    batch = len(layers)
    tangents = np.einsum("bsolrc,pr->bsolcp", network.jacobian(layers, inputs), plane.AXES)
    tangents = tangents.reshape(batch, tangents.shape[1] * 3, -1)
    error = (targets - network.predict(layers, inputs)).reshape(batch, -1, 1)
    blocks = np.einsum("pr,blrc,qr->blcpq", plane.AXES, 1 / layers, plane.AXES).reshape(batch, -1, 2, 2)
    metric = np.einsum("bnpq,nm->bnpmq", blocks, np.eye(blocks.shape[1])).reshape(batch, *tangents.shape[2:] * 2)
    back = np.swapaxes(tangents, 1, 2)
    motion = np.linalg.solve(back @ tangents + leak * metric, back @ error).reshape(*layers.shape[:2], 3, 2)
    return network.step(layers, np.swapaxes(plane.out_of(motion), 2, 3) / layers, size)


def _modes(chosen: common.Selected, layers: Array, alpha: float, omegas: list[float]) -> dict[str, Array]:
    """The columns of `modes`, each `(family, omega, ...)`, for one depth."""
    rows = []
    for omega in omegas:
        commanded = plane.mix(chosen.residual, alpha, omega)
        potential = plane.solve(chosen.response, commanded)
        inverse = np.stack([plane.solve(chosen.response, np.tile(axis, (len(layers), 1))) for axis in np.eye(2)], axis=2)
        mixer = plane.mix(np.eye(2), alpha, omega).T
        real, imag = plane.eigenvalue(-(chosen.response @ (inverse @ mixer)))
        moved = chosen.velocity(layers, chosen.score(potential))
        rate = -(plane.into(moved) * chosen.residual).sum(axis=1)
        predicted = -alpha * np.square(chosen.residual).sum(axis=1)
        rows.append((real, imag, moved, plane.out_of(commanded), rate, predicted, chosen.gain))
    names = ("real", "imag", "velocity", "commanded", "loss_rate", "predicted_rate", "gain")
    return {name: np.stack(values, axis=1) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def _mode_columns(by_depth: list[dict[str, Array]], p: Parameters) -> Columns:
    joined = {name: np.stack([part[name] for part in by_depth], axis=1) for name in by_depth[0]}
    stretch = common.stretched(joined["gain"])
    pair = np.hypot(p["alpha"], np.asarray(p["omegas"], float))
    return {
        "real": computed(joined["real"], pair * stretch),
        "imag": computed(joined["imag"], pair * stretch),
        **common.components("velocity", joined["velocity"], stretch),
        **common.components("commanded", joined["commanded"]),
        "loss_rate": computed(joined["loss_rate"], np.abs(joined["loss_rate"]) * stretch),
        "predicted_rate": computed(joined["predicted_rate"]),
    }


def _trajectory(layers: Array, inputs: Array, targets: Array, p: Parameters) -> tuple[Array, Array]:
    """States `(family, update, depth, 3, 3)` and losses `(family, update)` of the reciprocal trajectories."""
    states = [layers]
    for _ in range(p["updates"]):
        states.append(_gauss_newton(states[-1], inputs, targets, p["leak"], p["step"]))
    return np.stack(states, axis=1), np.stack([network.losses(state, inputs, targets) for state in states], axis=1)


def _operators(layers: Array, inputs: Array, targets: Array, p: Parameters) -> tuple[dict[str, Array], Array, common.Selected]:
    """The columns of `operators`, the joint response and the selected sample, for one depth."""
    batch = len(layers)
    factor = network.factor(network.jacobian(layers, inputs), layers)
    stacked = np.einsum("po,bson->bspn", plane.AXES, factor).reshape(batch, -1, factor.shape[-1])
    rank, condition = plane.spectrum(stacked, p["rank_tol"])
    selected = common.largest_residual(layers, inputs, targets)
    chosen = common.select(layers, inputs, targets, selected)
    selected_rank, selected_condition = plane.spectrum(common.reduced(chosen.factor), p["rank_tol"])
    flat = factor.reshape(batch, keys.RESPONSE, -1)
    values = {"selected": selected, "rank": rank, "condition": condition, "selected_rank": selected_rank}
    return values | {"selected_condition": selected_condition}, flat @ np.swapaxes(flat, 1, 2), chosen


def _controls(p: Parameters) -> dict[str, Columns]:
    layers = {depth: draws.control_layers(p["seed"], depth, p["column_concentration"], p["floor"]) for depth in p["depths"]}
    factors = [network.factor(network.jacobian(state[None], np.full((1, 1, 3), 1 / 3)), state[None])[0, 0] for state in layers.values()]
    responses = np.stack([factor @ factor.T for factor in factors])
    ranks = np.concatenate([plane.spectrum(factor[None], p["rank_tol"])[0] for factor in factors])
    return {
        "control_weights": {"weight": drawn(np.concatenate([state.ravel() for state in layers.values()]))},
        "control_responses": {"response": computed(responses, np.abs(responses).max(axis=(1, 2), keepdims=True))},
        "controls": {"rank": exact(ranks)},
    }


def _curvature(p: Parameters) -> Columns:
    """Two columns with input one under the repair law: the coefficient, and the losses after steps along s0 + s1, s0 - s1 and s0."""
    one, rows = np.ones((1, 1, 1)), []
    for example in keys.EXAMPLES:
        layers = np.reshape(np.asarray(p[f"{example}_start"], float), (1, 1, 3, 1))
        targets = np.reshape(np.asarray(p[f"{example}_target"], float), (1, 1, 3))
        chosen = common.select(layers, one, targets, np.zeros(1, np.int64))
        straight = chosen.score(plane.solve(chosen.response, chosen.residual))
        across = chosen.score(plane.solve(chosen.response, plane.mix(chosen.residual, 0.0, 1.0)))
        moved, bent = network.turn(layers, one, across)
        coefficient = (np.square(moved).sum() - (plane.out_of(chosen.residual) * bent[:, 0]).sum()) / 2
        for size in p["steps"]:
            scores = (straight + across, straight - across, straight)
            rows.append([coefficient, *(network.losses(network.step(layers, score, size), one, targets)[0] for score in scores)])
    table = np.array(rows)
    losses = {name: common.loss(table[:, n]) for n, name in enumerate(("loss_plus", "loss_minus", "loss_still"), start=1)}
    return {"coefficient": computed(table[:, 0]), **losses}


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column of the kind."""
    inputs, targets = draws.tasks(p["seed"], p["families"], p["concentration"])
    start, states, modes, operators, responses, losses = {}, {}, [], [], [], []
    for depth in p["depths"]:
        drawn_layers = [
            draws.dirichlet_layers(p["seed"], family, depth, p["column_concentration"], p["floor"]) for family in range(p["families"])
        ]
        start[depth] = layers = np.array(drawn_layers)
        values, response, chosen = _operators(layers, inputs, targets, p)
        path, loss = _trajectory(layers, inputs, targets, p)
        states[depth] = path.reshape(-1, *layers.shape[1:])
        operators.append(values)
        responses.append(response)
        losses.append(loss)
        modes.append(_modes(chosen, layers, p["alpha"], p["omegas"]))
    row_keys = keys.structural(p)
    response = np.stack(responses, axis=1)
    weights = drawn(keys.interleave(row_keys["operators"]["depth"], start))
    stretch = common.stretched(1 / max(p["leak"], 1e-9))
    path = keys.interleave(row_keys["trajectories"]["depth"], states)
    moved = computed(path, path * stretch)
    joined = {name: np.stack([part[name] for part in operators], axis=1) for name in operators[0]}
    gram = computed(response, np.maximum(np.abs(response), 1e-3 * np.abs(response).max(axis=(2, 3), keepdims=True)))
    return {
        "tasks": common.task_columns(inputs, targets),
        "weights": {"weight": weights},
        "responses": {"layer_sum": gram, "gram": gram},
        "operators": {name: _operator_column(name, values) for name, values in joined.items()},
        "modes": _mode_columns(modes, p),
        "trajectory_weights": {"layer_sum": moved, "gauss_newton": moved},
        "trajectories": {"loss": common.loss(np.stack(losses, axis=1), stretch)},
        **_controls(p),
        "curvature": _curvature(p),
    }


def _operator_column(name: str, values: Array) -> Expected:
    return common.condition(values) if name.endswith("condition") else exact(values.astype(np.int64))
