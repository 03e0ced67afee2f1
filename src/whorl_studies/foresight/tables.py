"""The tables and statistics of the foresight study."""

import math
from typing import Any

import numpy as np

from whorl.study import bootstrap, frames
from whorl.study.compute import TERMS
from whorl.study.draws import order, softmax_networks, tasks
from whorl.study.frames import Parts, Table, Tables, exact_sum
from whorl.study.parameters import Coupled
from whorl_studies.foresight import arms, comparators, draws
from whorl_studies.foresight.arms import MAIN, label
from whorl_studies.foresight.comparators import LEARNERS, Compared

COMPUTED = ("start", "final", "native", *TERMS, "smallest")
NONE = -2  # no horizon of the design pays


def tables(p: Coupled, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    built = _drawn_tables(p) | _trajectories(p, parts)
    built["conditions"] = _conditions(p, built["trajectories"])
    built["advantages"] = _advantages(p, built["trajectories"])
    built["payoff"] = _payoff(p, built["conditions"])
    built["costs"] = {
        "horizon": np.array(p.horizons),
        "foresight": np.array([comparators.foresight(p, horizon) for horizon in p.horizons]),
        "multiple": np.array([comparators.multiple(p, horizon) for horizon in p.horizons]),
    }
    return built | _comparisons(p, parts, built["trajectories"])


def _drawn_tables(p: Coupled) -> Tables:
    trials, updates = range(p.trials), p.updates
    x, y = tasks(p.seed, p.trials, p.concentration)
    layers = {
        depth: softmax_networks(p.seed, p.trials, depth, p.betas, p.floor)
        for depth in [*p.depths, p.deep]
    }
    drawn = {"sample": order, "foreseen": draws.foreseen}
    schedule = frames.product(trial=trials, update=range(updates))
    schedule |= {
        name: np.concatenate([make(p.seed, trial, p.epochs) for trial in trials])
        for name, make in drawn.items()
    }
    schedule["angle"] = np.concatenate([draws.angles(p.seed, trial, updates) for trial in trials])
    readings = frames.product(trial=trials, update=range(updates), action=range(3))
    readings["error"] = np.concatenate(
        [draws.readings(p.seed, trial, updates).ravel() for trial in trials]
    )
    return {
        "tasks": frames.tasks(x, y, trial=trials),
        "weights": frames.weights(layers, trial=trials, beta=frames.floats(p.betas)),
        "schedule": schedule,
        "readings": readings,
    }


def _trajectories(p: Coupled, parts: Parts) -> Tables:
    calls = arms.calls(p)
    keys = frames.joined(arms.keys(p, call) for call in calls)
    seen = {name: np.concatenate([parts[call][name] for call in calls]) for name in COMPUTED}
    number = np.arange(len(keys["arm"]))
    actions = [row for call in calls for row in parts[call]["choices"]]
    gap = seen["final"] - seen["native"]
    total = ((seen["even"] + seen["handedness"]) + seen["step"]) + seen["drift"]
    derived = {
        "gap": gap,
        "closure": np.abs(total - gap),
        "departed": np.array([np.count_nonzero(row) for row in actions]),
    }
    choices = {
        "trajectory": np.repeat(number, [len(row) for row in actions]),
        "update": np.concatenate([np.arange(len(row)) for row in actions]),
        "action": np.concatenate(actions).astype(np.int64),
    }
    return {"trajectories": {"trajectory": number} | keys | seen | derived, "choices": choices}


def _bounds(p: Coupled, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the 95 % interval of the mean of every row, trials resampled together."""
    rows = bootstrap.resampled(p.bootstrap_seed, values.shape[1], p.resamples)
    ends = np.array([bootstrap.interval(one[rows].mean(axis=1)) for one in values])
    return ends[:, 0], ends[:, 1]


def _mean(values: np.ndarray) -> np.ndarray:
    """Means along the last axis, from correctly rounded sums."""
    return exact_sum(values) / values.shape[-1]


def _conditions(p: Coupled, rows: Table) -> Table:
    tables = []
    for arm in arms.arms(p):
        here = rows["arm"] == arm.name
        part = {name: values[here].reshape(-1, arm.trials) for name, values in rows.items()}
        lower, upper = _bounds(p, part["gap"])
        updates = p.epochs * (arm.width + 3)
        keys = {
            name: part[name][:, 0] for name in ("arm", "horizon", "width", "depth", "beta", "scale")
        }
        found = {
            "native": _mean(part["native"]),
            "gap": _mean(part["gap"]),
            "lower": lower,
            "upper": upper,
        }
        found |= {"pays": (upper < 0).astype(np.int64), "behind": (part["gap"] > 0).sum(axis=1)}
        found["departed"] = part["departed"].sum(axis=1) / (arm.trials * updates)
        tables.append(keys | found | {name: _mean(part[name]) for name in TERMS})
    return frames.joined(tables)


def _main(p: Coupled, rows: Table, name: str) -> np.ndarray:
    """A column of the main arms, (arm, horizon, condition, trial)."""
    count = len(MAIN) * len(p.horizons) * len(p.depths) * len(p.betas) * len(p.scales) * p.trials
    return rows[name][:count].reshape(len(MAIN), len(p.horizons), -1, p.trials)


def _advantages(p: Coupled, rows: Table) -> Table:
    final = _main(p, rows, "final")
    gain = (final[1:] - final[:1]).reshape(-1, p.trials)
    lower, upper = _bounds(p, gain)
    keys = frames.product(control=MAIN[1:], horizon=p.horizons, **p.conditions)
    return keys | {
        "advantage": _mean(gain),
        "lower": lower,
        "upper": upper,
        "claimed": (lower > 0).astype(np.int64),
    }


def _payoff(p: Coupled, conditions: Table) -> Table:
    shape = len(MAIN), len(p.horizons), len(p.depths) * len(p.betas) * len(p.scales)
    pays = conditions["pays"][: math.prod(shape)].reshape(shape).swapaxes(1, 2) == 1
    onward = np.logical_and.accumulate(pays[..., ::-1], axis=-1)[..., ::-1]
    horizons = np.array(p.horizons)
    first = [
        np.where(good.any(axis=-1), horizons[good.argmax(axis=-1)], NONE).ravel()
        for good in (pays, onward)
    ]
    return frames.product(arm=MAIN, **p.conditions) | {"first": first[0], "onward": first[1]}


def _comparisons(p: Coupled, parts: Parts, rows: Table) -> Tables:
    by_depth = [
        np.stack([parts[Compared(learner, depth)]["final"] for learner in LEARNERS])
        for depth in p.depths
    ]
    final = np.concatenate(by_depth, axis=2)  # learner, horizon, (depth, beta, scale, trial)
    keys = {"learner": LEARNERS, "horizon": p.horizons} | p.conditions
    comparator = frames.product(**keys, trial=range(p.trials))
    comparator["final"] = final.ravel()
    final = final.reshape(len(LEARNERS), len(p.horizons), -1, p.trials)
    gap = final - _main(p, rows, "native")[:1]
    advantage = (final - _main(p, rows, "final")[:1]).reshape(-1, p.trials)
    lower, upper = _bounds(p, advantage)
    found = {
        "gap": _mean(gap.reshape(-1, p.trials)),
        "advantage": _mean(advantage),
        "lower": lower,
        "upper": upper,
    }
    found["share"] = (advantage < 0).sum(axis=1) / p.trials
    return {"comparators": comparator, "comparisons": frames.product(**keys) | found}


def statistics(p: Coupled, t: Tables) -> dict[str, Any]:
    """Every number that a gate or the report speaks of."""
    rows = t["trajectories"]
    found = frames.counts(t, "trajectories", "choices", "conditions")
    true = np.isin(rows["arm"], [arm.name for arm in arms.arms(p) if arm.true]) & (
        rows["horizon"] < 0
    )
    if true.any():
        found["rollout.worst"] = rows["gap"][true].max()
    found["closure.max"], found["weight.min"] = rows["closure"].max(), rows["smallest"].min()
    found["native.difference"] = _native_difference(rows)
    for horizon, foresight in zip(p.horizons, t["costs"]["foresight"], strict=True):
        found[f"cost.{label(horizon)}"] = foresight / (p.updates)
    found |= _gaps(p, t) | _counts(p, t)
    return found


def _native_difference(rows: Table) -> float:
    """The largest difference of the native losses between trajectories that share width, condition
    and trial.
    """
    keys = np.stack(
        [rows[name].astype(float) for name in ("width", "depth", "beta", "scale", "trial")]
    )
    _, group = np.unique(keys, axis=1, return_inverse=True)
    high, low = np.full(group.max() + 1, -np.inf), np.full(group.max() + 1, np.inf)
    np.maximum.at(high, group.ravel(), rows["native"])
    np.minimum.at(low, group.ravel(), rows["native"])
    return float((high - low).max())


def _gaps(p: Coupled, t: Tables) -> dict[str, Any]:
    """For every arm and horizon.

    The conditions in which it pays, and the gap over all conditions with its interval.
    """
    found: dict[str, Any] = {}
    rows, conditions = t["trajectories"], t["conditions"]
    for arm in arms.arms(p):
        for horizon in arm.horizons:
            name = f"{arm.name}.{label(horizon)}"
            here = (rows["arm"] == arm.name) & (rows["horizon"] == horizon)
            by_trial = _mean(rows["gap"][here].reshape(-1, arm.trials).T)
            lower, upper = _bounds(p, by_trial[None])
            found[f"pays.{name}"] = conditions["pays"][
                (conditions["arm"] == arm.name) & (conditions["horizon"] == horizon)
            ].sum()
            found |= {
                f"gap.{name}": by_trial.mean(),
                f"gap.{name}.lower": lower[0],
                f"gap.{name}.upper": upper[0],
            }
    return found


def _counts(p: Coupled, t: Tables) -> dict[str, Any]:
    """Conditions in which turning wins against a control or a comparator, and in which it loses, as
    the bounds say.
    """
    found: dict[str, Any] = {}
    for table, key, names in (
        ("advantages", "control", MAIN[1:]),
        ("comparisons", "learner", LEARNERS),
    ):
        rows = t[table]
        for name in names:
            for horizon in p.horizons:
                here = (rows[key] == name) & (rows["horizon"] == horizon)
                found[f"against.{name}.{label(horizon)}.wins"] = np.sum(rows["lower"][here] > 0)
                found[f"against.{name}.{label(horizon)}.loses"] = np.sum(rows["upper"][here] < 0)
    return found
