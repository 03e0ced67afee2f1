"""The structural kind.

Joint responses, rotational modes, reciprocal trajectories, controls and two worked examples.

Reciprocal trajectories have a tolerance of their own: that of all computed columns, or what noise
of 1e-13 on every update does to ours, where that is more. Condition, leak, step and the smallest
weights decide it together. A millionth is the most: beyond, no digit is left, and the claim fails.
"""

from collections.abc import Callable

import numpy as np

from whorl_audit import draws, expect, network, plane, spec
from whorl_audit.expect import computed, drawn, largest, number, numbers, rows, same, summed, whole
from whorl_audit.formulas import by_network, column_residual, score_residual, stacked
from whorl_audit.keys import grid, interleave, layered
from whorl_audit.kinds import Kind
from whorl_audit.types import Array, Columns, Expected, Parameters, Table, Tables

EXAMPLES = ("negative", "positive")
RESPONSE = 3 * draws.SAMPLES
NOISE = 1e-13  # on every update of trajectories beside ours: some hundred times what round-off does
LOST = 1e-6  # share of a weight beyond which it has no digit left to be compared
COLUMN = 1e-3  # weights below it are measured by the round-off of their column, which sums to one
Shaken = Callable[..., Array]


def joint(p: Parameters) -> str | None:
    """The sentence where the step is too long for the leak."""
    if p["step"] > 5 * p["leak"]:
        return f"step must be at most 5 times leak, but they are {p['step']:g} and {p['leak']:g}"
    return None


def keys(p: Parameters) -> dict[str, Table]:
    """The keys of every table."""
    place = {"family": range(p["families"]), "depth": p["depths"]}
    operators, updates = grid(**place), grid(**place, update=range(p["updates"] + 1))
    return {
        "tasks": grid(family=range(p["families"]), sample=range(draws.SAMPLES)),
        "weights": layered(operators),
        "responses": grid(**place, row=range(RESPONSE), column=range(RESPONSE)),
        "operators": operators,
        "modes": grid(**place, omega=np.asarray(p["omegas"], float)),
        "trajectory_weights": layered(updates),
        "trajectories": updates,
        "control_weights": layered(grid(depth=p["depths"])),
        "control_responses": grid(depth=p["depths"], row=range(3), column=range(3)),
        "controls": grid(depth=p["depths"]),
        "curvature": grid(example=EXAMPLES, step=np.asarray(p["steps"], float)),
    }


def sizes(p: Parameters) -> dict[str, int]:
    """The rows of the longest tables."""
    return {
        "tasks": draws.SAMPLES * p["families"],
        "trajectory_weights": p["families"] * (p["updates"] + 1) * 9 * sum(p["depths"]),
        "modes": p["families"] * len(p["depths"]) * len(p["omegas"]),
    }


def _joint_factor(jac: Array, layers: Array) -> Array:
    """A factor `(batch, 2 samples, n)` of the response of the whole task in the plane."""
    factor = network.factor(jac, layers)
    inside = np.einsum("po,bson->bspn", plane.AXES, factor)
    return inside.reshape(len(layers), -1, factor.shape[-1])


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
        noise = np.einsum("b,b...->b...", largest, rng.standard_normal(values.shape))
        return values + NOISE * noise

    inputs, targets = task
    jac = network.jacobian(layers, inputs)
    residual = shaken(plane.into(targets - network.predict(layers, inputs)))
    error = residual.reshape(len(layers), -1, 1)
    score = route(layers, jac, _joint_factor(jac, layers), error, p["leak"], shaken)
    return network.step(layers, score, p["step"])


def _modes(
    chosen: network.Selected, layers: Array, alpha: float, omegas: list[float]
) -> dict[str, Array]:
    """The columns of `modes`, each `(family, omega, ...)`, for one depth."""
    residual, response, rows = chosen.residual, chosen.response, []
    axes = [np.tile(axis, (len(layers), 1)) for axis in np.eye(2)]
    size = np.linalg.norm(residual, axis=1)
    around = size + expect.cancelled(layers.shape[1])
    inverse = np.stack([plane.solve(response, axis) for axis in axes], axis=2)
    for omega in omegas:
        commanded = plane.mix(residual, alpha, omega)
        mixer = plane.mix(np.eye(2), alpha, omega).T
        real, imag = plane.eigenvalue(-(response @ (inverse @ mixer)))
        moved = chosen.velocity(layers, chosen.score(plane.solve(response, commanded)))
        row = {"real": real, "imag": imag, "velocity": moved, "commanded": plane.out_of(commanded)}
        row["loss_rate"] = -(plane.into(moved) * residual).sum(axis=1)
        row["predicted_rate"] = -alpha * np.square(residual).sum(axis=1)
        rows.append(row | {"gain": chosen.gain, "size": size, "around": around})
    return stacked(rows, axis=1)


def _mode_columns(found: dict[str, Array], p: Parameters) -> Columns:
    stretch = expect.stretched(found["gain"])
    pair = np.hypot(p["alpha"], np.asarray(p["omegas"], float))
    square, lost = found["size"] * found["around"], found["around"] - found["size"]
    return {
        "real": computed(found["real"], pair * stretch),
        "imag": computed(found["imag"], pair * stretch),
        **expect.components("velocity", found["velocity"], stretch),
        **expect.components("commanded", found["commanded"], least=pair * lost),
        "loss_rate": computed(found["loss_rate"], square * pair * stretch),
        "predicted_rate": computed(found["predicted_rate"], square * p["alpha"]),
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
) -> tuple[dict[str, Array], network.Selected]:
    """The columns of `operators` and `responses`, and the selected sample, for one depth."""
    jac = network.jacobian(layers, inputs)
    selected = network.largest_residual(layers, inputs, targets)
    chosen = network.select(layers, inputs, targets, selected)
    found = {"selected": selected}
    for prefix, factor in (
        ("", _joint_factor(jac, layers)),
        ("selected_", plane.reduced(chosen.factor)),
    ):
        found[f"{prefix}rank"], found[f"{prefix}condition"] = plane.spectrum(factor, p["rank_tol"])
    flat = network.factor(jac, layers).reshape(len(layers), RESPONSE, -1)
    found["layer_sum"] = _by_edges(jac.reshape(len(layers), RESPONSE, *layers.shape[1:]), layers)
    return found | {"gram": flat @ np.swapaxes(flat, 1, 2)}, chosen


def _by_edges(jac: Array, layers: Array) -> Array:
    """K as a sum over layers and pairs of entries.

    p_j p_k times the product of how the outputs tell j from k (Eq. 13).
    """
    total = np.zeros((len(layers), RESPONSE, RESPONSE))
    for layer in range(layers.shape[1]):
        for j, k in network.EDGES:
            across = jac[:, :, layer, j] - jac[:, :, layer, k]
            weights = (layers[:, layer, j] * layers[:, layer, k])[:, None]
            total += (across * weights) @ np.swapaxes(across, 1, 2)
    return total


def _controls(p: Parameters) -> dict[str, Columns]:
    shared, concentration = np.full((1, 1, 3), 1 / 3), p["column_concentration"]
    layers = [
        draws.control_layers(p["seed"], depth, concentration, p["floor"])[None]
        for depth in p["depths"]
    ]
    factors = [network.factor(network.jacobian(one, shared), one)[0, 0] for one in layers]
    responses = np.stack([factor @ factor.T for factor in factors])
    ranks = [plane.spectrum(factor[None], p["rank_tol"])[0] for factor in factors]
    size = np.abs(responses).max(axis=(1, 2), keepdims=True)
    return {
        "control_weights": {"weight": drawn(np.concatenate([one.ravel() for one in layers]))},
        "control_responses": {"response": computed(responses, size)},
        "controls": {"rank": whole(np.concatenate(ranks))},
    }


def _curvature(p: Parameters) -> Columns:
    """Two columns with input one under the repair law.

    The coefficient, and the losses after steps along s0 + s1, s0 - s1 and s0.
    """
    one, rows = np.ones((1, 1, 1)), []
    for example in EXAMPLES:
        layers = np.reshape(np.asarray(p[f"{example}_start"], float), (1, 1, 3, 1))
        targets = np.reshape(np.asarray(p[f"{example}_target"], float), (1, 1, 3))
        chosen = network.select(layers, one, targets, np.zeros(1, np.int64))
        straight, across = chosen.repaired()
        moved, bent = network.turn(layers, one, across)
        inward = (plane.out_of(chosen.residual) * bent[:, 0]).sum()
        coefficient = (np.square(moved).sum() - inward) / 2
        for size in p["steps"]:
            scores = (straight + across, straight - across, straight)
            ends = [network.step(layers, score, size) for score in scores]
            rows.append([coefficient, *(network.losses(end, one, targets)[0] for end in ends)])
    coefficient, *losses = np.array(rows).T
    names = ("loss_plus", "loss_minus", "loss_still")
    columns = {name: expect.loss(column) for name, column in zip(names, losses, strict=True)}
    return {"coefficient": computed(coefficient)} | columns


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column of the kind."""
    inputs, targets = draws.tasks(p["seed"], p["families"], p["concentration"])
    start, paths, modes, operators = {}, {}, [], []
    for depth in p["depths"]:
        drawn_layers = [
            draws.dirichlet_layers(p["seed"], family, depth, p["column_concentration"], p["floor"])
            for family in range(p["families"])
        ]
        start[depth] = layers = np.array(drawn_layers)
        values, chosen = _operators(layers, inputs, targets, p)
        paths[depth] = _trajectory(layers, inputs, targets, p)
        operators.append(values)
        modes.append(_modes(chosen, layers, p["alpha"], p["omegas"]))
    row_keys, found = keys(p), stacked(operators, axis=1)
    responses = {name: _response_column(found.pop(name)) for name in ("layer_sum", "gram")}
    return {
        "tasks": expect.task_columns(inputs, targets),
        "weights": {"weight": drawn(interleave(row_keys["operators"]["depth"], start))},
        "responses": responses,
        "operators": {
            name: (expect.condition if name.endswith("condition") else whole)(values)
            for name, values in found.items()
        },
        "modes": _mode_columns(stacked(modes, axis=1), p),
        **_trajectory_columns(paths, row_keys["trajectories"]["depth"]),
        **_controls(p),
        "curvature": _curvature(p),
    }


def _response_column(values: Array) -> Expected:
    size = np.abs(values)
    return computed(values, np.maximum(size, 1e-3 * size.max(axis=(2, 3), keepdims=True)))


def _trajectory_columns(paths: dict[int, dict[str, Array]], depths: Array) -> dict[str, Columns]:
    """Weights and losses, measured by their size, or by what is left of it where round-off
    grows.
    """
    weights, shares = {}, {}
    for name in ("layer_sum", "gauss_newton"):
        by_depth = {depth: path[name].reshape(-1, depth, 3, 3) for depth, path in paths.items()}
        values = interleave(depths, by_depth)
        lost = np.stack([path[f"{name}_lost"] for path in paths.values()], axis=1)
        shares[name] = np.maximum(1.0, lost / expect.COMPUTED)
        each = np.repeat(shares[name].ravel(), 9 * depths)
        weights[name] = computed(values, np.maximum(values, COLUMN) * each)
    losses = np.stack([path["loss"] for path in paths.values()], axis=1)
    return {
        "trajectory_weights": weights,
        "trajectories": {"loss": expect.loss(losses, shares["layer_sum"])},
    }


def _norm(matrices: Array) -> Array:
    return np.sqrt(np.square(matrices).sum(axis=(1, 2)))


def _operator_residuals(tables: Tables, _: Parameters) -> Columns:
    table = tables["responses"]
    by_layer, gram = (table[name].reshape(-1, RESPONSE, RESPONSE) for name in ("layer_sum", "gram"))
    return {
        "factorisation": summed(_norm(by_layer - gram) / _norm(gram)),
        "symmetry": summed(_norm(by_layer - np.swapaxes(by_layer, 1, 2)) / _norm(by_layer)),
    }


def _mode_residuals(tables: Tables, p: Parameters) -> Columns:
    table = tables["modes"]
    pair = np.abs(table["real"] + p["alpha"]) + np.abs(table["imag"] - table["omega"])
    return {
        "pair_residual": same(pair),
        "score_residual": same(score_residual(table)),
        "dissipation_residual": same(np.abs(table["loss_rate"] - table["predicted_rate"])),
    }


def _trajectory_residuals(tables: Tables, _: Parameters) -> Columns:
    depths, weights = tables["trajectories"]["depth"], tables["trajectory_weights"]
    by_layer = weights["layer_sum"]
    apart = np.abs(by_layer - weights["gauss_newton"])
    return {
        "discrepancy": same(by_network(apart.reshape(-1, 9), depths, np.maximum)),
        "column_residual": same(column_residual(by_layer, depths)),
        "smallest": same(by_network(by_layer.reshape(-1, 9), depths, np.minimum)),
    }


def _null_responses(tables: Tables, _: Parameters) -> Columns:
    response = tables["control_responses"]["response"].reshape(-1, 3, 3)
    null = np.abs((response[:, :, 0] + response[:, :, 1]) - 2 * response[:, :, 2])
    return {"null_response": same(((null[:, 0] + null[:, 1]) + null[:, 2]) / np.sqrt(6.0))}


def _even_differences(tables: Tables, _: Parameters) -> Columns:
    table = tables["curvature"]
    even = (table["loss_plus"] + table["loss_minus"]) / 2 - table["loss_still"]
    estimate = even / (table["step"] * table["step"])
    return {
        "even_difference": same(even),
        "estimate": same(estimate),
        "relative_error": same(np.abs(estimate / table["coefficient"] - 1)),
    }


def _ranks(tables: Tables, p: Parameters) -> dict[str, float]:
    table, controls, result = tables["operators"], tables["controls"], {}
    rank, condition = table["rank"], table["condition"]
    for depth in p["depths"]:
        here = table["depth"] == depth
        result[f"rank.full.depth{depth}"] = (rank[here] == 6).sum()
        result[f"rank.five.depth{depth}"] = (rank[here] == 5).sum()
        result[f"condition.median.depth{depth}"] = np.median(condition[here])
    result |= {"rank.min": rank.min(), "selected_rank.min": table["selected_rank"].min()}
    if (rank < 6).any():
        result["condition.deficient.min"] = condition[rank < 6].min()
        result["condition.deficient.max"] = condition[rank < 6].max()
    result["control.rank.min"] = controls["rank"].min()
    result["control.rank.max"] = controls["rank"].max()
    return result | {"control.null.max": controls["null_response"].max()}


def _examples(tables: Tables) -> dict[str, Expected]:
    table, result = tables["curvature"], dict[str, Expected]()
    for example in EXAMPLES:
        here = {name: values[table["example"] == example] for name, values in table.items()}
        step, even = np.log(here["step"]), np.log(np.abs(here["even_difference"]))
        across = step - step.mean()
        slope = (across * (even - even.mean())).sum() / np.square(across).sum()
        # A logarithm is rounded by its own size, however little it changes from step to step.
        logarithms = np.abs(even).max() + abs(slope) * np.abs(step).max()
        terms = np.abs(across).sum() * logarithms / np.square(across).sum()
        smallest = here["relative_error"][here["step"].argmin()]
        result[f"coefficient.{example}"] = number(here["coefficient"][0])
        result[f"slope.{example}"] = number(slope, max(abs(slope), terms))
        result[f"relative_error.{example}"] = number(smallest)
    return result


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    weights = tables["trajectory_weights"]
    smallest = min(weights["layer_sum"].min(), weights["gauss_newton"].min())
    return {
        **rows(tables, "operators", "modes", "trajectories", "controls", "curvature"),
        **largest(tables, "operators", "factorisation", "symmetry"),
        **largest(tables, "modes", "score_residual", "pair_residual", "dissipation_residual"),
        **largest(tables, "trajectories", "discrepancy", "column_residual"),
        **numbers({"weight.min": smallest} | _ranks(tables, p)),
        **_examples(tables),
    }


def grown(expected: dict[str, Columns]) -> dict[str, float]:
    """How far the two routes may part, as our own noisy trajectories show."""
    room = 0.0
    for one in expected["trajectory_weights"].values():
        scale = np.asarray(one.scale)
        wide = scale[scale > np.maximum(one.values, COLUMN)]
        room += float(np.max(one.tolerance * wide, initial=0.0))
    return {"discrepancy.max": room}


KIND = Kind(
    spec=spec.of("structural"),
    keys=keys,
    sizes=sizes,
    expected=expected,
    derived={
        "operators": _operator_residuals,
        "modes": _mode_residuals,
        "trajectories": _trajectory_residuals,
        "controls": _null_responses,
        "curvature": _even_differences,
    },
    statistics=statistics,
    roundoff={
        "factorisation.max": ("operators", "factorisation", 2),  # an operator has 324 entries
        "symmetry.max": None,  # terms that are symmetric one by one leave none
        "score_residual.max": ("modes", "score_residual", 8),
        "pair_residual.max": ("modes", "pair_residual", 8),
        "dissipation_residual.max": ("modes", "dissipation_residual", 8),
        "discrepancy.max": ("trajectories", "discrepancy", 8),
        "column_residual.max": None,
        "control.null.max": None,
    },
    joint=joint,
    grown=grown,
    paper=True,
)
