"""The threshold study.

Does the ratio of one sample predict the sign of the coefficient of all of them?

One stage a depth; all families and imbalances of a depth are one compiled call.
"""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from whorl.curvature import curvature, turn_scores
from whorl.feedback import rotational
from whorl.response import response
from whorl.study import _frames, bootstrap, draws
from whorl.study._frames import Parts, Table, Tables
from whorl.system import loss
from whorl.turn import quarter_turn

SIDES = ("loss_plus", "loss_minus", "loss_still", "back_plus", "back_minus", "back_still")


def stages(p: SimpleNamespace) -> list[str]:
    """Units of work that are kept when a run is interrupted."""
    return [f"depth{depth}" for depth in p.depths]


def compute(p: SimpleNamespace, stage: str) -> dict[str, np.ndarray]:
    """The physics of one depth, as arrays over families and imbalances."""
    depth = int(stage.removeprefix("depth"))
    tasks = [draws.task(p.seed, family, p.concentration) for family in range(p.families)]
    x, y = (np.repeat(np.stack(part), len(p.betas), axis=0) for part in zip(*tasks, strict=True))
    layers = np.stack(
        [
            draws.softmax_layers(p.seed, f, depth, beta, p.floor)
            for f in range(p.families)
            for beta in p.betas
        ]
    )
    selected = draws.largest_residual(layers, x, y)
    # The selected sample goes first, so that one compiled program serves all configurations; sums
    # over samples do not mind.
    first = (np.arange(6) + selected[:, None]) % 6
    seen = _measured(depth)(
        layers,
        *(np.take_along_axis(rows, first[:, :, None], axis=1) for rows in (x, y)),
        float(p.finite_step),
    )
    names = (
        "displacement",
        "bending",
        "selected_displacement",
        "selected_bending",
        "factor",
        "velocity",
        "commanded",
        "losses",
    )
    return dict(zip(names, map(np.asarray, seen), strict=True)) | {
        "x": x,
        "y": y,
        "layers": layers,
        "selected": selected,
    }


@cache
def _measured(depth: int) -> Callable[..., Any]:
    like, turn = _frames.network(np.full((depth, 3, 3), 1 / 3)), np.asarray(quarter_turn(3))

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


def tables(p: SimpleNamespace, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    deep = {depth: parts[f"depth{depth}"] for depth in p.depths}
    betas = np.asarray(p.betas, dtype=float)
    first = next(iter(deep.values()))
    keys = _frames.product(family=range(p.families), sample=range(6))
    tasks = keys | {
        f"{side}_{i}": first[side][:: betas.size, :, i].ravel() for side in "xy" for i in range(3)
    }
    weights = [
        _frames.product(
            family=range(p.families),
            depth=[n],
            beta=betas,
            layer=range(n),
            row=range(3),
            column=range(3),
        )
        | {"weight": d["layers"].ravel()}
        for n, d in deep.items()
    ]
    configurations = [
        _frames.product(family=range(p.families), depth=[n], beta=betas) | _configurations(p, d)
        for n, d in deep.items()
    ]
    built = {
        "tasks": tasks,
        "weights": _frames.ordered(
            _frames.joined(weights), "family", "depth", "beta", "layer", "row", "column"
        ),
        "configurations": _frames.ordered(
            _frames.joined(configurations), "family", "depth", "beta"
        ),
    }
    return built | {"draws": _draws(p, built["configurations"])}


def _configurations(p: SimpleNamespace, d: Any) -> Table:
    sides: Table = dict(zip(SIDES, d["losses"].T, strict=True))
    ahead, back = (
        (sides[f"{way}_plus"] + sides[f"{way}_minus"]) / 2 - sides[f"{way}_still"]
        for way in ("loss", "back")
    )
    finite = (ahead + back) / (
        2 * (p.finite_step * p.finite_step)
    )  # a product: a power may round otherwise
    coefficient = (d["displacement"] - d["bending"]) / 12
    ratio = d["selected_bending"] / d["selected_displacement"]
    apart = np.abs(d["velocity"] - d["commanded"])
    locals_ = {
        name: d[name]
        for name in (
            "selected",
            "displacement",
            "bending",
            "selected_displacement",
            "selected_bending",
        )
    }
    vectors = {f"{name}_{i}": d[name][:, i] for name in ("velocity", "commanded") for i in range(3)}
    derived = {
        "coefficient": coefficient,
        "ratio": ratio,
        "favourable": (coefficient < 0).astype(int),
        "predicted": (ratio > 1).astype(int),
        "finite": finite,
        "coefficient_residual": np.abs(finite - coefficient)
        / np.maximum(np.abs(coefficient), d["displacement"] / 12),
        "response_residual": (apart[:, 0] + apart[:, 1]) + apart[:, 2],
        "column_residual": _frames.column_residual(d["layers"]),
    }
    return (
        locals_
        | {"condition": _frames.modes(d["factor"], p.rank_tol)[1]}
        | vectors
        | sides
        | derived
    )


def _draws(p: SimpleNamespace, rows: Table) -> Table:
    counts = bootstrap.multiplicities(
        bootstrap.resampled(p.bootstrap_seed, p.families, p.resamples), p.families
    )
    favourable = rows["favourable"] == 1

    def drawn(those: np.ndarray) -> np.ndarray:
        return counts @ np.bincount(rows["family"][those], minlength=p.families)

    def share(hits: np.ndarray, among: np.ndarray) -> np.ndarray:
        return drawn(among & hits) / drawn(among)

    everywhere = np.ones(favourable.size, dtype=bool)
    first, last = (rows["beta"] == beta for beta in (p.betas[0], p.betas[-1]))
    return {
        "draw": np.arange(p.resamples),
        "auc": bootstrap.clustered_auc(rows["ratio"], favourable, rows["family"], counts),
        "accuracy": share(rows["predicted"] == rows["favourable"], everywhere),
        "favourable_first": share(favourable, first),
        "favourable_last": share(favourable, last),
    }


def statistics(p: SimpleNamespace, t: Tables) -> dict[str, Any]:
    """Every number that a gate, the comparison or the report speaks of."""
    rows, draw = t["configurations"], t["draws"]
    favourable, right = rows["favourable"] == 1, rows["predicted"] == rows["favourable"]
    first, last = (rows["beta"] == beta for beta in (p.betas[0], p.betas[-1]))
    area = bootstrap.auc(rows["ratio"], favourable)
    found: dict[str, Any] = {
        "rows.configurations": right.size,
        **({} if area is None else {"auc": area}),
        "accuracy": right.mean(),
        "favourable.first": favourable[first].mean(),
        "favourable.last": favourable[last].mean(),
        "errors": np.sum(~right),
        "sign_agreement": np.mean(np.sign(rows["finite"]) == np.sign(rows["coefficient"])),
        "weight.min": t["weights"]["weight"].min(),
        "condition.max": rows["condition"].max(),
    }
    for name in ("auc", "accuracy", "favourable.first", "favourable.last"):
        if name not in found:
            continue
        found[f"{name}.lower"], found[f"{name}.upper"] = bootstrap.interval(
            draw[name.replace(".", "_")]
        )
    found |= {
        f"{name}.max": rows[name].max()
        for name in ("response_residual", "coefficient_residual", "column_residual")
    }
    quartiles = np.quantile(rows["condition"], [0.25, 0.5, 0.75])
    return found | dict(
        zip(("condition.q1", "condition.median", "condition.q3"), quartiles, strict=True)
    )
