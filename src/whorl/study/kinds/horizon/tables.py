"""The tables and statistics of the horizon study."""

from dataclasses import replace
from typing import Any

import numpy as np

from whorl.learning.ledger import TERMS
from whorl.study import bootstrap, frames
from whorl.study.frames import Parts, Table, Tables, exact_sum
from whorl.study.kinds.horizon.compute import LOSSES, POLICIES, SIDES, Stage, drawn
from whorl.study.parameters import Coupled


def tables(p: Coupled, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    built = _drawn_tables(p, parts) | _trajectory_tables(p, parts)
    built["trials"] = _trials(p, built["trajectories"])
    return built | _conditions(p, built)


def _drawn_tables(p: Coupled, parts: Parts) -> Tables:
    x, y, order, turns = drawn(p)
    trials, betas = range(p.trials), frames.floats(p.betas)
    layers = {n: parts[Stage(n, "step_matched", p.scales[0])]["layers"] for n in p.depths}
    schedule = frames.product(trial=trials, update=range(order.shape[1]))
    return {
        "tasks": frames.tasks(x, y, trial=trials),
        "weights": frames.weights(layers, trial=trials, beta=betas),
        "schedule": schedule | {"sample": order.ravel(), "turn": turns.ravel()},
    }


def _gathered(p: Coupled, parts: Parts, name: str) -> np.ndarray:
    """One array of all stages, trajectories first in the order of their numbers."""

    def stage(depth: int, policy: str, scale: float) -> np.ndarray:
        values = parts[Stage(depth, policy, scale)][name]
        return values.reshape(p.trials, len(p.betas), 2, *values.shape[1:])

    nested = np.stack(
        [
            np.stack([np.stack([stage(d, name_, s) for name_ in POLICIES]) for s in p.scales])
            for d in p.depths
        ]
    )
    # depth, scale, policy, trial, beta, flip  ->  trial, depth, beta, scale, policy, flip
    placed = np.moveaxis(nested, (3, 0, 4, 1, 2, 5), range(6))
    return placed.reshape(-1, *placed.shape[6:])


def _trajectory_tables(p: Coupled, parts: Parts) -> Tables:
    seen = {name: _gathered(p, parts, name) for name in (*LOSSES, "step", "amount", "start")}
    start, updates = seen["start"], seen["taken"].shape[1]
    terms = _account(seen)
    number = np.arange(start.size)
    rows = {
        "trajectory": np.repeat(number, updates),
        "update": np.tile(np.arange(updates), start.size),
    }
    rows |= {name: seen[name].ravel() for name in LOSSES} | {
        "size": seen["step"].ravel(),
        "amount": seen["amount"].ravel(),
    }
    final = _final_weights(p, parts)
    smallest = np.minimum(*(np.array([np.min(side) for side in final[name]]) for name in SIDES))
    keys = frames.product(trial=range(p.trials), **p.conditions, policy=list(POLICIES), flip=[0, 1])
    gap = seen["taken"][:, -1] - seen["native"][:, -1]
    sums = {name: exact_sum(values) for name, values in terms.items()}
    ends = {
        "start": start,
        "final": seen["taken"][:, -1],
        "native": seen["native"][:, -1],
        "gap": gap,
    }
    closing = {
        "closure": np.abs(_total(sums) - gap),
        "opened": (seen["amount"] > 0).sum(axis=1),
        "smallest": smallest,
    }
    places = {n: frames.product(**frames.places(n)) for n in p.depths}
    weights = {"trajectory": np.repeat(number, [one.size for one in final["native"]])}
    weights |= frames.joined(places[len(one)] for one in final["native"])
    weights |= {name: np.concatenate([one.ravel() for one in side]) for name, side in final.items()}
    return {
        "trajectories": {"trajectory": number} | keys | ends | sums | closing,
        "updates": rows | {name: values.ravel() for name, values in terms.items()},
        "final_weights": weights,
    }


def _final_weights(p: Coupled, parts: Parts) -> dict[str, list[np.ndarray]]:
    """The last states of every trajectory, in the order of their numbers.

    Depths differ, so a list.
    """
    found = {}
    for name in SIDES:
        by_depth = [_gathered(replace(p, depths=[n]), parts, f"end_{name}") for n in p.depths]
        inner = len(p.betas) * len(p.scales) * len(POLICIES) * 2
        found[name] = [
            one
            for trial in range(p.trials)
            for deep in by_depth
            for one in deep[trial * inner : (trial + 1) * inner]
        ]
    return found


def _account(seen: Table) -> Table:
    """The four terms of every update from the losses after it, each difference rounded once
    (Eqs. C3 to C6).
    """
    before, native_before = (
        np.concatenate([seen["start"][:, None], seen[name][:, :-1]], axis=1)
        for name in ("taken", "native")
    )
    a, o, z, w = (seen[name] - before for name in ("taken", "opposite", "still", "own"))
    n, m = seen["native"] - native_before, (a + o) / 2
    return {"even": m - z, "handedness": a - m, "step": z - w, "drift": w - n}


def _total(terms: Any) -> np.ndarray:
    """Even, handedness, step and drift, added in this order."""
    return ((terms["even"] + terms["handedness"]) + terms["step"]) + terms["drift"]


def _trials(p: Coupled, rows: Table) -> Table:
    keys = frames.product(trial=range(p.trials), policy=list(POLICIES))
    cells = p.trials, len(p.depths) * len(p.betas) * len(p.scales), len(POLICIES), 2
    count = cells[1] * 2

    def mean(values: np.ndarray) -> np.ndarray:
        return exact_sum(values.reshape(cells).transpose(0, 2, 1, 3).reshape(-1, count)) / count

    return keys | {name: mean(rows[name]) for name in ("gap", *TERMS)}


def _conditions(p: Coupled, built: Tables) -> Tables:
    rows = bootstrap.resampled(p.bootstrap_seed, p.trials, p.resamples)
    by_trial = built["trials"]["gap"].reshape(p.trials, 2)
    gaps = built["trajectories"]["gap"].reshape(p.trials, -1, len(POLICIES), 2)
    count = p.trials * 2
    means = exact_sum(gaps.transpose(1, 2, 0, 3).reshape(-1, count)).reshape(-1, 2) / count
    gain = (gaps[:, :, 0].sum(axis=-1) - gaps[:, :, 1].sum(axis=-1)) / 2
    bounds = np.array([bootstrap.interval(one[rows].mean(axis=1)) for one in gain.T])
    keys = frames.product(**p.conditions)
    gaps_of = {
        "gap_step_matched": means[:, 0],
        "gap_adaptive": means[:, 1],
        "gain": means[:, 0] - means[:, 1],
    }
    conditions = keys | gaps_of | {"lower": bounds[:, 0], "upper": bounds[:, 1]}
    one, other = (side[rows].mean(axis=1) for side in by_trial.T)
    drawn = {
        "draw": np.arange(p.resamples),
        "gap_step_matched": one,
        "gap_adaptive": other,
        "gain": one - other,
    }
    return {"conditions": conditions, "draws": drawn}


def statistics(p: Coupled, t: Tables) -> dict[str, Any]:
    """Every number that a gate, the comparison or the report speaks of."""
    rows, trials = t["trajectories"], t["trials"]
    found = frames.counts(t, "updates", "trajectories", "conditions")
    for policy in POLICIES:
        here = trials["policy"] == policy
        means = {name: trials[name][here].mean() for name in ("gap", *TERMS)}
        found |= {f"{name}.{policy}": means[name] for name in ("gap", "step", "drift")}
        found[f"turning.{policy}"] = means["even"] + means["handedness"]
        found[f"gap.{policy}.lower"], found[f"gap.{policy}.upper"] = bootstrap.interval(
            t["draws"][f"gap_{policy}"]
        )
    found["gain"] = found["gap.step_matched"] - found["gap.adaptive"]
    found["gain.lower"], found["gain.upper"] = bootstrap.interval(t["draws"]["gain"])
    found["conditions.adaptive_better"] = np.sum(t["conditions"]["gain"] > 0)
    found["step.recovered"] = found["step.step_matched"] - found["step.adaptive"]
    if found["step.recovered"] != 0:
        found["drift.offset"] = (found["drift.adaptive"] - found["drift.step_matched"]) / found[
            "step.recovered"
        ]
    found["closure.step.max"] = _step_closure(t)
    found["closure.trajectory.max"] = rows["closure"].max()
    sums, gaps = (values.reshape(-1, len(POLICIES), 2) for values in (_total(rows), rows["gap"]))
    found["closure.paired.max"] = np.abs(
        (sums[:, 0] - sums[:, 1]) - (gaps[:, 0] - gaps[:, 1])
    ).max()
    native = t["updates"]["native"].reshape(-1, len(POLICIES) * 2, _updates_of_one(t))
    found["native.difference"] = (native.max(axis=1) - native.min(axis=1)).max()
    found["weight.min"] = rows["smallest"].min()
    ends = (t["final_weights"][name].reshape(-1, 1, 3, 3) for name in SIDES)
    found["column_residual.max"] = max(frames.column_residual(end).max() for end in ends)
    return found


def _updates_of_one(t: Tables) -> int:
    """Updates of a trajectory."""
    return len(t["updates"]["update"]) // len(t["trajectories"]["trajectory"])


def _step_closure(t: Tables) -> float:
    updates, shape = t["updates"], (len(t["trajectories"]["start"]), _updates_of_one(t))
    taken, native = (updates[name].reshape(shape) for name in ("taken", "native"))
    start = t["trajectories"]["start"][:, None]
    a, n = (side - np.concatenate([start, side[:, :-1]], axis=1) for side in (taken, native))
    return float(np.abs(_total(updates).reshape(shape) - (a - n)).max())
