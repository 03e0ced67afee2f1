"""The tables of the foresight study: gaps, advantages, pay-offs and comparisons."""

from typing import Any

import numpy as np

from whorl.ledger import TERMS
from whorl.study import bootstrap, frames
from whorl.study.draws import order, softmax_layers, task
from whorl.study.frames import Parts, Table, Tables, exact_sum
from whorl.study.kinds.foresight import arms, comparators, draws
from whorl.study.kinds.foresight.arms import MAIN
from whorl.study.kinds.foresight.comparators import LEARNERS, Compared
from whorl.study.kinds.foresight.parameters import Foresight

COMPUTED = ("start", "final", "native", *TERMS, "smallest")
NONE = -2  # no horizon of the design pays


def tables(p: Foresight, parts: Parts) -> Tables:
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


def _drawn_tables(p: Foresight) -> Tables:
    trials, updates = range(p.trials), p.updates
    x, y = (
        np.stack(part)
        for part in zip(*(task(p.seed, trial, p.concentration) for trial in trials), strict=True)
    )
    tasks = frames.product(trial=trials, sample=range(6))
    tasks |= {
        f"{name}_{i}": rows[:, :, i].ravel()
        for name, rows in (("x", x), ("y", y))
        for i in range(3)
    }
    depths = list(dict.fromkeys([*p.depths, p.deep]))
    weights = [
        frames.product(
            trial=[trial],
            depth=[depth],
            beta=[float(beta)],
            layer=range(depth),
            row=range(3),
            column=range(3),
        )
        | {"weight": softmax_layers(p.seed, trial, depth, beta, p.floor).ravel()}
        for trial in trials
        for depth in depths
        for beta in p.betas
    ]
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
        "tasks": tasks,
        "weights": frames.joined(weights),
        "schedule": schedule,
        "readings": readings,
    }


def _trajectories(p: Foresight, parts: Parts) -> Tables:
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


def bounds(p: Foresight, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the 95 % interval of the mean of every row, trials resampled together."""
    rows = bootstrap.resampled(p.bootstrap_seed, values.shape[1], p.resamples)
    ends = np.array([bootstrap.interval(one[rows].mean(axis=1)) for one in values])
    return ends[:, 0], ends[:, 1]


def mean(values: np.ndarray) -> np.ndarray:
    """Means along the last axis, from correctly rounded sums."""
    return exact_sum(values) / values.shape[-1]


def _conditions(p: Foresight, rows: Table) -> Table:
    tables = []
    for arm in arms.arms(p):
        here = rows["arm"] == arm.name
        part = {name: values[here].reshape(-1, arm.trials) for name, values in rows.items()}
        lower, upper = bounds(p, part["gap"])
        updates = p.epochs * (arm.width + 3)
        keys = {
            name: part[name][:, 0] for name in ("arm", "horizon", "width", "depth", "beta", "scale")
        }
        found = {
            "native": mean(part["native"]),
            "gap": mean(part["gap"]),
            "lower": lower,
            "upper": upper,
        }
        found |= {"pays": (upper < 0).astype(np.int64), "behind": (part["gap"] > 0).sum(axis=1)}
        found["departed"] = part["departed"].sum(axis=1) / (arm.trials * updates)
        tables.append(keys | found | {name: mean(part[name]) for name in TERMS})
    return frames.joined(tables)


def _main(p: Foresight, rows: Table, name: str) -> np.ndarray:
    """A column of the main arms, (arm, horizon, condition, trial)."""
    count = len(MAIN) * len(p.horizons) * len(p.depths) * len(p.betas) * len(p.scales) * p.trials
    return rows[name][:count].reshape(len(MAIN), len(p.horizons), -1, p.trials)


def _condition_keys(p: Foresight, **before: Any) -> Table:
    return frames.product(
        **before,
        depth=p.depths,
        beta=np.asarray(p.betas, dtype=float),
        scale=np.asarray(p.scales, dtype=float),
    )


def _advantages(p: Foresight, rows: Table) -> Table:
    final = _main(p, rows, "final")
    gain = (final[1:] - final[:1]).reshape(-1, p.trials)
    lower, upper = bounds(p, gain)
    keys = _condition_keys(p, control=MAIN[1:], horizon=p.horizons)
    return keys | {
        "advantage": mean(gain),
        "lower": lower,
        "upper": upper,
        "claimed": (lower > 0).astype(np.int64),
    }


def _payoff(p: Foresight, conditions: Table) -> Table:
    places = len(p.depths) * len(p.betas) * len(p.scales)
    pays = (
        conditions["pays"][: len(MAIN) * len(p.horizons) * places]
        .reshape(len(MAIN), len(p.horizons), places)
        .swapaxes(1, 2)
        == 1
    )
    onward = np.logical_and.accumulate(pays[..., ::-1], axis=-1)[..., ::-1]
    horizons = np.array(p.horizons)
    first = [
        np.where(good.any(axis=-1), horizons[good.argmax(axis=-1)], NONE).ravel()
        for good in (pays, onward)
    ]
    return _condition_keys(p, arm=MAIN) | {"first": first[0], "onward": first[1]}


def _comparisons(p: Foresight, parts: Parts, rows: Table) -> Tables:
    by_depth = [
        np.stack([parts[Compared(learner, depth)]["final"] for learner in LEARNERS])
        for depth in p.depths
    ]
    final = np.concatenate(by_depth, axis=2)  # learner, horizon, (depth, beta, scale, trial)
    keys = {"learner": LEARNERS, "horizon": p.horizons}
    betas, scales = (np.asarray(values, dtype=float) for values in (p.betas, p.scales))
    comparator = frames.product(
        **keys, depth=p.depths, beta=betas, scale=scales, trial=range(p.trials)
    ) | {"final": final.ravel()}
    final = final.reshape(len(LEARNERS), len(p.horizons), -1, p.trials)
    gap = final - _main(p, rows, "native")[:1]
    advantage = (final - _main(p, rows, "final")[:1]).reshape(-1, p.trials)
    lower, upper = bounds(p, advantage)
    found = {
        "gap": mean(gap.reshape(-1, p.trials)),
        "advantage": mean(advantage),
        "lower": lower,
        "upper": upper,
    }
    found["share"] = (advantage < 0).sum(axis=1) / p.trials
    return {"comparators": comparator, "comparisons": _condition_keys(p, **keys) | found}
