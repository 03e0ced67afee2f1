"""Derived columns of the foresight kind.

What is computed from stored choices is judged here too, since it needs the tables.
"""

import numpy as np

from whorl_audit import draws, foresight
from whorl_audit.computed.foresight import comparators, simulated
from whorl_audit.derived.common import same, summed, sums, whole
from whorl_audit.foresight import LEARNERS, MAIN
from whorl_audit.types import Array, Columns, Expected, Formulas, Parameters, Table, Tables

TERMS = ("even", "handedness", "step", "drift")


def bounds(values: Array, p: Parameters) -> tuple[Array, Array]:
    """The central 95 % of the means of rows `(rows, trials)` over resampled trials."""
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], values.shape[1])
    low, high = np.transpose(
        [np.quantile(row[chosen].mean(axis=1), [0.025, 0.975]) for row in values]
    )
    return low, high


def _bounded(values: Array, p: Parameters) -> dict[str, Expected]:
    low, high = bounds(values, p)
    return {
        name: summed(end, np.abs(values).max(axis=1))
        for name, end in (("lower", low), ("upper", high))
    }


def mean(values: Array) -> Array:
    """Correctly rounded sums over the last axis, divided by their number."""
    return sums(values.reshape(-1, values.shape[-1])) / values.shape[-1]


def _trajectories(tables: Tables, p: Parameters) -> Columns:
    table = tables["trajectories"]
    computed, _ = simulated(tables, p)
    gap = table["final"] - table["native"]
    total = ((table["even"] + table["handedness"]) + table["step"]) + table["drift"]
    away = np.bincount(tables["choices"]["trajectory"], tables["choices"]["action"] != 0, len(gap))
    return computed | {
        "gap": same(gap),
        "closure": same(np.abs(total - gap)),
        "departed": whole(away),
    }


def _choices(tables: Tables, p: Parameters) -> Columns:
    return simulated(tables, p)[1]


def _conditions(tables: Tables, p: Parameters) -> Columns:
    table, parts, first = tables["trajectories"], [], 0
    for arm in foresight.arms(p):
        size = len(arm.horizons) * len(arm.depths) * len(p["betas"]) * len(p["scales"]) * arm.trials
        part = {
            name: values[first : first + size].reshape(-1, arm.trials)
            for name, values in table.items()
        }
        first += size
        bounded = _bounded(part["gap"], p)
        columns = {name: same(mean(part[name])) for name in ("native", "gap", *TERMS)} | bounded
        columns["behind"] = whole((part["gap"] > 0).sum(axis=1))
        columns["departed"] = same(
            part["departed"].sum(axis=1) / (arm.trials * foresight.updates(p, arm.width))
        )
        parts.append(columns)
    joined = {name: _joined([part[name] for part in parts]) for name in parts[0]}
    return joined | {"pays": whole(tables["conditions"]["upper"] < 0)}


def _joined(parts: list[Expected]) -> Expected:
    scale = (
        None
        if parts[0].scale is None
        else np.concatenate([np.asarray(part.scale) for part in parts])
    )
    return Expected(np.concatenate([part.values for part in parts]), parts[0].tolerance, scale)


def main(table: Table, name: str, p: Parameters) -> Array:
    """A column of `trajectories` for the main arms, `(arm, horizon, condition, trial)`."""
    conditions = len(p["depths"]) * len(p["betas"]) * len(p["scales"])
    count = len(MAIN) * len(p["horizons"]) * conditions * p["trials"]
    return table[name][:count].reshape(len(MAIN), len(p["horizons"]), conditions, p["trials"])


def _advantages(tables: Tables, p: Parameters) -> Columns:
    final = main(tables["trajectories"], "final", p)
    gain = (final[1:] - final[:1]).reshape(-1, p["trials"])
    return {
        "advantage": same(mean(gain)),
        **_bounded(gain, p),
        "claimed": whole(tables["advantages"]["lower"] > 0),
    }


def _payoff(tables: Tables, p: Parameters) -> Columns:
    conditions = len(p["depths"]) * len(p["betas"]) * len(p["scales"])
    pays = tables["conditions"]["pays"][: len(MAIN) * len(p["horizons"]) * conditions].reshape(
        len(MAIN), -1, conditions
    )
    first, onward = [], []
    for arm in pays:
        for column in arm.T.tolist():
            first.append(
                next((k for k, good in zip(p["horizons"], column, strict=True) if good), -2)
            )
            onward.append(next((k for n, k in enumerate(p["horizons"]) if all(column[n:])), -2))
    return {"first": whole(np.array(first)), "onward": whole(np.array(onward))}


def _costs(_: Tables, p: Parameters) -> Columns:
    found = [(foresight.foreseen_updates(p, k), foresight.multiple(p, k)) for k in p["horizons"]]
    return {
        name: whole(np.array(column))
        for name, column in zip(("foresight", "multiple"), zip(*found, strict=True), strict=True)
    }


def _comparisons(tables: Tables, p: Parameters) -> Columns:
    final = tables["comparators"]["final"].reshape(
        len(LEARNERS), len(p["horizons"]), -1, p["trials"]
    )
    gap, apart = (final - main(tables["trajectories"], name, p)[:1] for name in ("native", "final"))
    apart = apart.reshape(-1, p["trials"])
    return {
        "gap": same(mean(gap)),
        "advantage": same(mean(apart)),
        **_bounded(apart, p),
        "share": same((apart < 0).sum(axis=1) / p["trials"]),
    }


DERIVED: Formulas = {
    "trajectories": _trajectories,
    "choices": _choices,
    "conditions": _conditions,
    "advantages": _advantages,
    "payoff": _payoff,
    "costs": _costs,
    "comparators": comparators,
    "comparisons": _comparisons,
}
