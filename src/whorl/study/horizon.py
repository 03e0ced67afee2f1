"""The horizon study.

Coupled pairs under two policies, their accounts, and what the gap to the native learner is made of.

One stage for every depth, policy and step scale; its trials, imbalances and turn replicates are one
call of `train_many`.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from whorl.ensemble import train_many
from whorl.feedback import leaky, rotational
from whorl.policy import Policy, adaptive, step_matched
from whorl.study import _frames, bootstrap, draws
from whorl.study._frames import Parts, Table, Tables, exact_sum

POLICIES: dict[str, Callable[..., Policy]] = {"step_matched": step_matched, "adaptive": adaptive}
Terms = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
LOSSES = ("taken", "opposite", "still", "own", "native")
TERMS = ("even", "handedness", "step", "drift")


def stages(p: SimpleNamespace) -> list[str]:
    """Units of work that are kept when a run is interrupted."""
    return [
        _stage(depth, policy, scale)
        for depth in p.depths
        for scale in p.scales
        for policy in POLICIES
    ]


def _stage(depth: int, policy: str, scale: float) -> str:
    return f"depth{depth}-{policy}-{scale!r}"


def compute(p: SimpleNamespace, stage: str) -> dict[str, np.ndarray]:
    """All pairs of one depth, policy and scale: arrays over trial, imbalance and flip."""
    depth, policy, scale = next(
        (d, name, s)
        for d in p.depths
        for name in POLICIES
        for s in p.scales
        if _stage(d, name, s) == stage
    )
    cases = [
        (trial, beta, flip) for trial in range(p.trials) for beta in p.betas for flip in (0, 1)
    ]
    starts = {
        (t, beta): draws.softmax_layers(p.seed, t, depth, beta, p.floor)
        for t in range(p.trials)
        for beta in p.betas
    }
    x, y, order, turns = (
        np.stack(part)
        for part in zip(*(_trial(p, trial, flip) for trial, _, flip in cases), strict=True)
    )
    law = rotational(p.alpha, base=leaky(p.leak))
    layers = np.stack([starts[trial, beta] for trial, beta, _ in cases])
    made = train_many(
        _frames.network(layers),
        x,
        y,
        policy=POLICIES[policy](scale, omega=p.omega, law=law),
        schedule=order,
        turns=turns,
        record=True,
        chunk=p.chunk,
    )
    if not made.completed.all():
        raise ValueError(
            f"every pair must stay in the interior, but {int((~made.completed).sum())} of stage "
            f"{stage} did not"
        )
    assert made.updates is not None
    outcomes = {
        name: np.asarray(getattr(made.updates.outcome, name))
        for name in (*LOSSES, "step", "amount")
    }
    ends = {
        f"end_{name}": np.stack([np.asarray(part) for part in net.layers], axis=1)
        for name, net in _ends(made)
    }
    return outcomes | ends | {"start": made.start, "layers": layers[::2]}


def _ends(made: Any) -> tuple[tuple[str, Any], ...]:
    return ("nonreciprocal", made.nonreciprocal), ("native", made.native)


def _trial(p: SimpleNamespace, trial: int, flip: int) -> tuple[np.ndarray, ...]:
    x, y = draws.task(p.seed, trial, p.concentration)
    order = draws.order(p.seed, trial, p.epochs)
    return x, y, order, draws.turns(p.seed, trial, order.size) * (1 - 2 * flip)


def tables(p: SimpleNamespace, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    built = _drawn_tables(p, parts) | _trajectory_tables(p, parts)
    built["trials"] = _trials(p, built["trajectories"])
    return built | _conditions(p, built)


def _drawn_tables(p: SimpleNamespace, parts: Parts) -> Tables:
    x, y, order, turns = (
        np.stack(part)
        for part in zip(*(_trial(p, trial, 0) for trial in range(p.trials)), strict=True)
    )
    tasks = _frames.product(trial=range(p.trials), sample=range(6))
    tasks |= {
        f"{name}_{i}": rows[:, :, i].ravel()
        for name, rows in (("x", x), ("y", y))
        for i in range(3)
    }
    schedule = _frames.product(trial=range(p.trials), update=range(order.shape[1]))
    weights = [
        _frames.product(
            trial=range(p.trials),
            depth=[n],
            beta=_floats(p.betas),
            layer=range(n),
            row=range(3),
            column=range(3),
        )
        | {"weight": parts[_stage(n, "step_matched", p.scales[0])]["layers"].ravel()}
        for n in p.depths
    ]
    return {
        "tasks": tasks,
        "weights": _frames.ordered(
            _frames.joined(weights), "trial", "depth", "beta", "layer", "row", "column"
        ),
        "schedule": schedule | {"sample": order.ravel(), "turn": turns.ravel()},
    }


def _floats(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=float)


def _shape(p: SimpleNamespace) -> tuple[int, ...]:
    return p.trials, len(p.depths), len(p.betas), len(p.scales), len(POLICIES), 2


def _gathered(p: SimpleNamespace, parts: Parts, name: str) -> np.ndarray:
    """One array of all stages, trajectories first in the order of their numbers."""

    def stage(depth: int, policy: str, scale: float) -> np.ndarray:
        values = parts[_stage(depth, policy, scale)][name]
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


def _trajectory_tables(p: SimpleNamespace, parts: Parts) -> Tables:
    seen = {name: _gathered(p, parts, name) for name in (*LOSSES, "step", "amount", "start")}
    start, updates = seen["start"], seen["taken"].shape[1]
    terms = dict(zip(TERMS, account(start, *(seen[name] for name in LOSSES)), strict=True))
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
    smallest = np.minimum(
        *(np.array([np.min(side) for side in final[name]]) for name in ("nonreciprocal", "native"))
    )
    keys = _frames.product(
        trial=range(p.trials),
        depth=p.depths,
        beta=_floats(p.betas),
        scale=_floats(p.scales),
        policy=list(POLICIES),
        flip=[0, 1],
    )
    gap = seen["taken"][:, -1] - seen["native"][:, -1]
    sums = {name: exact_sum(values) for name, values in terms.items()}
    table = (
        {"trajectory": number}
        | keys
        | {
            "start": start,
            "final": seen["taken"][:, -1],
            "native": seen["native"][:, -1],
            "gap": gap,
        }
    )
    closing = {
        "closure": np.abs(total(sums) - gap),
        "opened": (seen["amount"] > 0).sum(axis=1),
        "smallest": smallest,
    }
    places = {n: _frames.product(layer=range(n), row=range(3), column=range(3)) for n in p.depths}
    weights = {"trajectory": np.repeat(number, [one.size for one in final["native"]])}
    weights |= _frames.joined(places[len(one)] for one in final["native"])
    weights |= {name: np.concatenate([one.ravel() for one in side]) for name, side in final.items()}
    return {
        "trajectories": table | sums | closing,
        "updates": rows | {name: values.ravel() for name, values in terms.items()},
        "final_weights": weights,
    }


def _final_weights(p: SimpleNamespace, parts: Parts) -> dict[str, list[np.ndarray]]:
    """The last states of every trajectory, in the order of their numbers.

    Depths differ, so a list.
    """
    found = {}
    for name in ("nonreciprocal", "native"):
        by_depth = [
            _gathered(SimpleNamespace(**vars(p) | {"depths": [n]}), parts, f"end_{name}")
            for n in p.depths
        ]
        inner = len(p.betas) * len(p.scales) * len(POLICIES) * 2
        found[name] = [
            one
            for trial in range(p.trials)
            for deep in by_depth
            for one in deep[trial * inner : (trial + 1) * inner]
        ]
    return found


def account(
    start: np.ndarray,
    taken: np.ndarray,
    opposite: np.ndarray,
    still: np.ndarray,
    own: np.ndarray,
    native: np.ndarray,
) -> Terms:
    """The four terms of every update from the losses after it (Eqs.

    C3 to C6), each difference rounded once.
    """
    before, native_before = (
        np.concatenate([start[:, None], losses[:, :-1]], axis=1) for losses in (taken, native)
    )
    a, o, z, w = (losses - before for losses in (taken, opposite, still, own))
    n, m = native - native_before, (a + o) / 2
    return m - z, a - m, z - w, w - n


def total(terms: Any) -> np.ndarray:
    """Even, handedness, step and drift, added in this order."""
    return ((terms["even"] + terms["handedness"]) + terms["step"]) + terms["drift"]


def _trials(p: SimpleNamespace, rows: Table) -> Table:
    keys = _frames.product(trial=range(p.trials), policy=list(POLICIES))
    cells = p.trials, len(p.depths) * len(p.betas) * len(p.scales), len(POLICIES), 2
    count = cells[1] * 2

    def mean(values: np.ndarray) -> np.ndarray:
        return exact_sum(values.reshape(cells).transpose(0, 2, 1, 3).reshape(-1, count)) / count

    return keys | {name: mean(rows[name]) for name in ("gap", *TERMS)}


def _conditions(p: SimpleNamespace, built: Tables) -> Tables:
    rows = bootstrap.resampled(p.bootstrap_seed, p.trials, p.resamples)
    by_trial = built["trials"]["gap"].reshape(p.trials, 2)
    gaps = built["trajectories"]["gap"].reshape(p.trials, -1, len(POLICIES), 2)
    count = p.trials * 2
    means = exact_sum(gaps.transpose(1, 2, 0, 3).reshape(-1, count)).reshape(-1, 2) / count
    gain = (gaps[:, :, 0].sum(axis=-1) - gaps[:, :, 1].sum(axis=-1)) / 2
    bounds = np.array([bootstrap.interval(one[rows].mean(axis=1)) for one in gain.T])
    keys = _frames.product(depth=p.depths, beta=_floats(p.betas), scale=_floats(p.scales))
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


def statistics(p: SimpleNamespace, t: Tables) -> dict[str, Any]:
    """Every number that a gate, the comparison or the report speaks of."""
    rows, trials = t["trajectories"], t["trials"]
    found: dict[str, Any] = {
        f"rows.{name}": len(next(iter(t[name].values())))
        for name in ("updates", "trajectories", "conditions")
    }
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
    sums, gaps = (values.reshape(-1, len(POLICIES), 2) for values in (total(rows), rows["gap"]))
    found["closure.paired.max"] = np.abs(
        (sums[:, 0] - sums[:, 1]) - (gaps[:, 0] - gaps[:, 1])
    ).max()
    native = t["updates"]["native"].reshape(-1, len(POLICIES) * 2, rows_of_one(t))
    found["native.difference"] = (native.max(axis=1) - native.min(axis=1)).max()
    found["weight.min"] = rows["smallest"].min()
    ends = (t["final_weights"][name].reshape(-1, 1, 3, 3) for name in ("nonreciprocal", "native"))
    found["column_residual.max"] = max(_frames.column_residual(end).max() for end in ends)
    return found


def rows_of_one(t: Tables) -> int:
    """Updates of a trajectory."""
    return len(t["updates"]["update"]) // len(t["trajectories"]["trajectory"])


def _step_closure(t: Tables) -> float:
    updates, shape = t["updates"], (len(t["trajectories"]["start"]), rows_of_one(t))
    taken, native = (updates[name].reshape(shape) for name in ("taken", "native"))
    start = t["trajectories"]["start"][:, None]
    a, n = (side - np.concatenate([start, side[:, :-1]], axis=1) for side in (taken, native))
    return float(np.abs(total(updates).reshape(shape) - (a - n)).max())
