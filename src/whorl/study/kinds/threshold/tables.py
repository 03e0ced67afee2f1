"""The tables and statistics of the threshold study."""

from typing import Any

import numpy as np

from whorl.study import bootstrap, frames
from whorl.study.frames import Parts, Table, Tables
from whorl.study.kind import Depth
from whorl.study.kinds.threshold.compute import MEASURED
from whorl.study.parameters import Parameters

SIDES = ("loss_plus", "loss_minus", "loss_still", "back_plus", "back_minus", "back_still")


def tables(p: Parameters, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    deep = {depth: parts[Depth(depth)] for depth in p.depths}
    betas, families = frames.floats(p.betas), range(p.families)
    x, y = (next(iter(deep.values()))[side][:: betas.size] for side in "xy")
    configurations = [
        frames.product(family=families, depth=[n], beta=betas) | _configurations(p, d)
        for n, d in deep.items()
    ]
    built = {
        "tasks": frames.tasks(x, y, family=families),
        "weights": frames.weights(
            {n: d["layers"] for n, d in deep.items()}, family=families, beta=betas
        ),
        "configurations": frames.ordered(frames.joined(configurations), "family", "depth", "beta"),
    }
    return built | {"draws": _draws(p, built["configurations"])}


def _configurations(p: Parameters, d: Any) -> Table:
    sides: Table = dict(zip(SIDES, d["losses"].T, strict=True))
    ahead, back = (
        (sides[f"{way}_plus"] + sides[f"{way}_minus"]) / 2 - sides[f"{way}_still"]
        for way in ("loss", "back")
    )
    square = p.finite_step * p.finite_step  # a power may round otherwise
    finite = (ahead + back) / (2 * square)
    coefficient = (d["displacement"] - d["bending"]) / 12
    ratio = d["selected_bending"] / d["selected_displacement"]
    apart = np.abs(d["velocity"] - d["commanded"])
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
        "column_residual": frames.column_residual(d["layers"]),
    }
    measured = {name: d[name] for name in ("selected", *MEASURED)}
    measured["condition"] = frames.modes(d["factor"], p.rank_tol)[1]
    return measured | vectors | sides | derived


def _draws(p: Parameters, rows: Table) -> Table:
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


def statistics(p: Parameters, t: Tables) -> dict[str, Any]:
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
