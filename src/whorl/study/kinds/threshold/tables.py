"""The tables of the threshold study: coefficients, ratios, predictions and their bootstrap."""

from typing import Any

import numpy as np

from whorl.study import bootstrap, frames
from whorl.study.frames import Parts, Table, Tables
from whorl.study.kind import Depth
from whorl.study.kinds.threshold.parameters import Threshold

SIDES = ("loss_plus", "loss_minus", "loss_still", "back_plus", "back_minus", "back_still")


def tables(p: Threshold, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    deep = {depth: parts[Depth(depth)] for depth in p.depths}
    betas = np.asarray(p.betas, dtype=float)
    first = next(iter(deep.values()))
    keys = frames.product(family=range(p.families), sample=range(6))
    tasks = keys | {
        f"{side}_{i}": first[side][:: betas.size, :, i].ravel() for side in "xy" for i in range(3)
    }
    weights = [
        frames.product(
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
        frames.product(family=range(p.families), depth=[n], beta=betas) | _configurations(p, d)
        for n, d in deep.items()
    ]
    built = {
        "tasks": tasks,
        "weights": frames.ordered(
            frames.joined(weights), "family", "depth", "beta", "layer", "row", "column"
        ),
        "configurations": frames.ordered(frames.joined(configurations), "family", "depth", "beta"),
    }
    return built | {"draws": _draws(p, built["configurations"])}


def _configurations(p: Threshold, d: Any) -> Table:
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
        "column_residual": frames.column_residual(d["layers"]),
    }
    return (
        locals_
        | {"condition": frames.modes(d["factor"], p.rank_tol)[1]}
        | vectors
        | sides
        | derived
    )


def _draws(p: Threshold, rows: Table) -> Table:
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
