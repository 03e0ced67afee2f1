"""Derived columns of the threshold kind.

The area under the ROC curve is the share of pairs (favourable row, other row) that the ratio puts
in order. The pairs in order are counted once between every two families; a resample that holds
family f c_f times then has the sum of c_f c_g W_fg of them, and no resample is ever ranked.
"""

import numpy as np

from whorl_audit import draws
from whorl_audit.derived.common import column_residual, same, score_residual, summed, whole
from whorl_audit.types import Array, Columns, Formulas, Parameters, Table, Tables


def _configurations(tables: Tables, p: Parameters) -> Columns:
    table = tables["configurations"]
    samples = 2.0 * draws.SAMPLES
    coefficient = (table["displacement"] - table["bending"]) / samples
    ratio = table["selected_bending"] / table["selected_displacement"]
    ahead = (table["loss_plus"] + table["loss_minus"]) / 2 - table["loss_still"]
    behind = (table["back_plus"] + table["back_minus"]) / 2 - table["back_still"]
    finite = (ahead + behind) / (2 * (p["finite_step"] * p["finite_step"]))
    return {
        "coefficient": same(coefficient),
        "ratio": same(ratio),
        "favourable": whole(coefficient < 0),
        "predicted": whole(ratio > 1),
        "finite": same(finite),
        "coefficient_residual": same(
            np.abs(finite - coefficient)
            / np.maximum(np.abs(coefficient), table["displacement"] / samples)
        ),
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
        high = ratio[family][favourable[family] == 1]
        beaten = (high[:, None, None] > ratio).sum(axis=0) + 0.5 * (
            high[:, None, None] == ratio
        ).sum(axis=0)
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
    table = tables["configurations"]
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], p["families"])
    counts = (chosen[:, :, None] == np.arange(p["families"])).sum(axis=1).astype(float)
    means = {
        name: summed(counts @ share / p["families"]) for name, share in shares(table, p).items()
    }
    return {"auc": summed(auc(counts, *ordered_pairs(table, p["families"]))), **means}


DERIVED: Formulas = {"configurations": _configurations, "draws": _draws}
