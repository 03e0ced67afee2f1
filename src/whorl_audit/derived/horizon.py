"""Derived columns of the horizon kind: the ledger of every update, and the sums and means of it."""

import numpy as np

from whorl_audit import draws
from whorl_audit.derived.common import by_network, same, summed, sums, whole
from whorl_audit.keys import POLICIES
from whorl_audit.types import Array, Columns, Formulas, Parameters, Table, Tables

TERMS = ("even", "handedness", "step", "drift")


def increments(tables: Tables) -> dict[str, Array]:
    """The loss increments of every update, `(trajectories, updates)`: a, o, z, w and n."""
    start = tables["trajectories"]["start"][:, None]
    losses = {
        name: tables["updates"][name].reshape(len(start), -1)
        for name in ("taken", "opposite", "still", "own", "native")
    }
    before = np.concatenate([start, losses["taken"][:, :-1]], axis=1)
    native_before = np.concatenate([start, losses["native"][:, :-1]], axis=1)
    return {
        name: values - (native_before if name == "native" else before)
        for name, values in losses.items()
    }


def _updates(tables: Tables, _: Parameters) -> Columns:
    by = increments(tables)
    middle = (by["taken"] + by["opposite"]) / 2
    ledger = (
        middle - by["still"],
        by["taken"] - middle,
        by["still"] - by["own"],
        by["own"] - by["native"],
    )
    return {name: same(values.ravel()) for name, values in zip(TERMS, ledger, strict=True)}


def total(table: Table) -> Array:
    """((even + handedness) + step) + drift."""
    return ((table["even"] + table["handedness"]) + table["step"]) + table["drift"]


def _trajectories(tables: Tables, _: Parameters) -> Columns:
    table, updates, weights = tables["trajectories"], tables["updates"], tables["final_weights"]
    rows = len(table["trajectory"])
    last = {name: updates[name].reshape(rows, -1)[:, -1] for name in ("taken", "native")}
    terms = {name: sums(updates[name].reshape(rows, -1)) for name in TERMS}
    gap = last["taken"] - last["native"]
    lowest = [
        by_network(weights[name].reshape(-1, 9), table["depth"], np.minimum)
        for name in ("nonreciprocal", "native")
    ]
    return {
        "final": same(last["taken"]),
        "native": same(last["native"]),
        "gap": same(gap),
        **{name: same(values) for name, values in terms.items()},
        "closure": same(np.abs(total(terms) - gap)),
        "opened": whole((updates["amount"].reshape(rows, -1) > 0).sum(axis=1)),
        "smallest": same(np.minimum(*lowest)),
    }


def _shaped(values: Array, p: Parameters) -> Array:
    """A column of `trajectories` as `(trial, condition, policy, flip)`."""
    return values.reshape(p["trials"], -1, len(POLICIES), 2)


def _trials(tables: Tables, p: Parameters) -> Columns:
    columns = {}
    for name in ("gap", *TERMS):
        values = np.swapaxes(_shaped(tables["trajectories"][name], p), 1, 2).reshape(
            p["trials"] * len(POLICIES), -1
        )
        columns[name] = same(sums(values) / values.shape[1])
    return columns


def _conditions(tables: Tables, p: Parameters) -> Columns:
    gaps = _shaped(tables["trajectories"]["gap"], p)
    by_policy = [
        np.swapaxes(gaps[:, :, policy], 0, 1).reshape(gaps.shape[1], -1)
        for policy in range(len(POLICIES))
    ]
    matched, adaptive = (sums(values) / values.shape[1] for values in by_policy)
    flips = gaps.mean(axis=3)
    gain = flips[:, :, 0] - flips[:, :, 1]
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], p["trials"])
    lower, upper = np.quantile(gain[chosen].mean(axis=1), [0.025, 0.975], axis=0)
    scale = np.abs(flips).max(axis=(0, 2))
    return {
        "gap_step_matched": same(matched),
        "gap_adaptive": same(adaptive),
        "gain": same(matched - adaptive),
        "lower": summed(lower, scale),
        "upper": summed(upper, scale),
    }


def _draws(tables: Tables, p: Parameters) -> Columns:
    gaps = tables["trials"]["gap"].reshape(p["trials"], len(POLICIES))
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], p["trials"])
    matched, adaptive = gaps[chosen].mean(axis=1).T
    scale = np.full(len(chosen), np.abs(gaps).max())
    columns = {"gap_step_matched": matched, "gap_adaptive": adaptive, "gain": matched - adaptive}
    return {name: summed(values, scale) for name, values in columns.items()}


DERIVED: Formulas = {
    "updates": _updates,
    "trajectories": _trajectories,
    "trials": _trials,
    "conditions": _conditions,
    "draws": _draws,
}
