"""The threshold kind.

The finite-step coefficient of a turn that the selected sample drives through the repair law.

The area under the ROC curve is the share of pairs (favourable row, other row) that the ratio puts
in order. The pairs in order are counted once between every two families; a resample that holds
family f c_f times then has the sum of c_f c_g W_fg of them, and no resample is ever ranked.
"""

import numpy as np

from whorl_audit import draws, expect, network, plane, spec
from whorl_audit.expect import (
    computed,
    drawn,
    interval,
    largest,
    numbers,
    rows,
    same,
    summed,
    whole,
)
from whorl_audit.formulas import column_residual, score_residual, stacked
from whorl_audit.keys import grid, interleave, layered
from whorl_audit.kinds import Kind
from whorl_audit.types import Array, Columns, Expected, Parameters, Table, Tables


def keys(p: Parameters) -> dict[str, Table]:
    """The keys of every table."""
    rows = grid(family=range(p["families"]), depth=p["depths"], beta=np.asarray(p["betas"], float))
    return {
        "tasks": grid(family=range(p["families"]), sample=range(draws.SAMPLES)),
        "weights": layered(rows),
        "configurations": rows,
        "draws": grid(draw=range(p["resamples"])),
    }


def sizes(p: Parameters) -> dict[str, int]:
    """The rows of the longest tables."""
    return {
        "tasks": draws.SAMPLES * p["families"],
        "weights": p["families"] * len(p["betas"]) * 9 * sum(p["depths"]),
        "draws": p["resamples"],
    }


def _turning(
    layers: Array, inputs: Array, targets: Array, across: Array, selected: Array
) -> dict[str, Array]:
    """||G||^2 and e H_V of all samples and of the selected one.

    With the sizes that their round-off is relative to.
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
    selected = network.largest_residual(layers, inputs, targets)
    chosen = network.select(layers, inputs, targets, selected)
    straight, across = chosen.repaired()
    scores = {"plus": straight + across, "minus": straight - across, "still": straight}
    values = {
        "selected": selected,
        **_turning(layers, inputs, targets, across, selected),
        "condition": plane.spectrum(plane.reduced(chosen.factor), p["rank_tol"])[1],
        "gain": chosen.gain,
        "cancelled": np.sqrt(2) * expect.cancelled(np.full(len(layers), layers.shape[1])),
        "velocity": chosen.velocity(layers, scores["plus"]),
        "commanded": plane.out_of(plane.mix(chosen.residual, 1.0, 1.0)),
    }
    for prefix, way in (("loss", p["finite_step"]), ("back", -p["finite_step"])):
        for name, score in scores.items():
            end = network.step(layers, score, way)
            values[f"{prefix}_{name}"] = network.losses(end, inputs, targets) / draws.SAMPLES
    return values


def _columns(values: dict[str, Array]) -> Columns:
    stretch = expect.stretched(values["gain"])
    turning = {
        prefix + name: computed(values[prefix + name], values[prefix + "size"] * stretch)
        for prefix in ("", "selected_")
        for name in ("displacement", "bending")
    }
    losses = [name for name in values if name.startswith(("loss_", "back_"))]
    return {
        "selected": whole(values["selected"]),
        **turning,
        "condition": expect.condition(values["condition"]),
        **expect.components("velocity", values["velocity"], stretch),
        **expect.components("commanded", values["commanded"], least=values["cancelled"]),
        **{name: expect.loss(values[name], stretch) for name in losses},
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
        shape = (families, len(betas))
        parts.append({name: one.reshape(*shape, *one.shape[1:]) for name, one in values.items()})
    return {
        "tasks": expect.task_columns(inputs, targets),
        "weights": {"weight": drawn(interleave(keys(p)["configurations"]["depth"], start))},
        "configurations": _columns(stacked(parts, axis=1)),
    }


def _judged(tables: Tables, p: Parameters) -> Columns:
    table, samples = tables["configurations"], 2.0 * draws.SAMPLES
    coefficient = (table["displacement"] - table["bending"]) / samples
    ratio = table["selected_bending"] / table["selected_displacement"]
    ahead = (table["loss_plus"] + table["loss_minus"]) / 2 - table["loss_still"]
    behind = (table["back_plus"] + table["back_minus"]) / 2 - table["back_still"]
    finite = (ahead + behind) / (2 * (p["finite_step"] * p["finite_step"]))
    size = np.maximum(np.abs(coefficient), table["displacement"] / samples)
    return {
        "coefficient": same(coefficient),
        "ratio": same(ratio),
        "favourable": whole(coefficient < 0),
        "predicted": whole(ratio > 1),
        "finite": same(finite),
        "coefficient_residual": same(np.abs(finite - coefficient) / size),
        "response_residual": same(score_residual(table)),
        "column_residual": same(column_residual(tables["weights"]["weight"], table["depth"])),
    }


def ordered_pairs(table: Table, families: int) -> tuple[Array, Array, Array]:
    """Pairs in order `(family of the favourable, family of the other)`, and the numbers of
    favourable and other rows of every family.
    """
    ratio, favourable = (table[name].reshape(families, -1) for name in ("ratio", "favourable"))
    wins = np.zeros((families, families))
    for family in range(families):
        high = ratio[family][favourable[family] == 1][:, None, None]
        beaten = (high > ratio).sum(axis=0) + 0.5 * (high == ratio).sum(axis=0)
        wins[family] = (beaten * (favourable == 0)).sum(axis=1)
    positive = (favourable == 1).sum(axis=1).astype(float)
    return wins, positive, ratio.shape[1] - positive


def auc(counts: Array, wins: Array, positive: Array, negative: Array) -> Array:
    """The area under the curve for rows `counts` of how often every family was drawn.

    One half where one of the classes is empty.
    """
    pairs = (counts @ positive) * (counts @ negative)
    inside = np.einsum("nf,fg,ng->n", counts, wins, counts, optimize=True)
    return np.where(pairs > 0, inside / np.where(pairs > 0, pairs, 1.0), 0.5)


def shares(table: Table, p: Parameters) -> dict[str, Array]:
    """The share of every family for which a statement holds.

    One prediction right, favourable at the first and the last imbalance.
    """
    shape = (p["families"], len(p["depths"]), len(p["betas"]))
    favourable, predicted = (table[name].reshape(shape) for name in ("favourable", "predicted"))
    return {
        "accuracy": (favourable == predicted).mean(axis=(1, 2)),
        "favourable_first": favourable[:, :, 0].mean(axis=1),
        "favourable_last": favourable[:, :, -1].mean(axis=1),
    }


def _draws(tables: Tables, p: Parameters) -> Columns:
    table, families = tables["configurations"], p["families"]
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], families)
    counts = (chosen[:, :, None] == np.arange(families)).sum(axis=1).astype(float)
    return {
        "auc": summed(auc(counts, *ordered_pairs(table, families))),
        **{name: summed(counts @ share / families) for name, share in shares(table, p).items()},
    }


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    table, resampled = tables["configurations"], tables["draws"]
    share, pairs = shares(table, p), ordered_pairs(table, p["families"])
    area, between = {}, {}
    if all(side.sum() > 0 for side in pairs[1:]):  # a curve needs both classes
        area = {"auc": auc(np.ones((1, p["families"])), *pairs)[0]}
        between = interval("auc", resampled["auc"])
    for name in share:
        area[name.replace("_", ".")] = share[name].mean()
        between |= interval(name.replace("_", "."), resampled[name])
    agreeing = np.sign(table["finite"]) == np.sign(table["coefficient"])
    plain = {
        "errors": (table["predicted"] != table["favourable"]).sum(),
        "sign_agreement": agreeing.mean(),
        "weight.min": tables["weights"]["weight"].min(),
        "condition.max": table["condition"].max(),
    }
    residuals = ("response_residual", "coefficient_residual", "column_residual")
    quantiles = {"condition.q1": 0.25, "condition.median": 0.5, "condition.q3": 0.75}
    return {
        **rows(tables, "configurations"),
        **numbers(area | plain),
        **between,
        **largest(tables, "configurations", *residuals),
        **numbers({name: np.quantile(table["condition"], at) for name, at in quantiles.items()}),
    }


KIND = Kind(
    spec=spec.of("threshold"),
    keys=keys,
    sizes=sizes,
    expected=expected,
    derived={"configurations": _judged, "draws": _draws},
    statistics=statistics,
    roundoff={
        "column_residual.max": None,
        "response_residual.max": ("configurations", "response_residual", 8),
    },
    paper=True,
)
