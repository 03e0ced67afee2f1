"""The rows that every table must have, and their order.

Products of the design's values, the leftmost key slowest.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from whorl_audit import foresight as arms
from whorl_audit.draws import SAMPLES
from whorl_audit.types import Array, Parameters, Table, Whole

POLICIES = ("step_matched", "adaptive")
FLIPS = (0, 1)
EXAMPLES = ("negative", "positive")
RESPONSE = 3 * SAMPLES


def grid(**axes: Iterable[Any]) -> Table:
    """The product of the axes, the last varying fastest."""
    values = [np.asarray(list(axis)) for axis in axes.values()]
    index = np.indices([len(axis) for axis in values]).reshape(len(values), -1)
    return {name: axis[at] for name, axis, at in zip(axes, values, index, strict=True)}


def layered(prefix: Table, *, drop: tuple[str, ...] = ()) -> Table:
    """Every row of `prefix` once for each weight of a network of its depth."""
    counts = 9 * prefix["depth"]
    within = np.concatenate([np.arange(count) for count in counts])
    table = {name: np.repeat(values, counts) for name, values in prefix.items() if name not in drop}
    return table | {"layer": within // 9, "row": within // 3 % 3, "column": within % 3}


def interleave(depths: Whole, by_depth: dict[int, Array]) -> Array:
    """The weights `(rows of a depth, depth, 3, 3)` of every depth as one column, in the order in
    which `depths` names them.
    """
    queues = {depth: iter(values) for depth, values in by_depth.items()}
    return np.concatenate([next(queues[int(depth)]).ravel() for depth in depths])


def structural(p: Parameters) -> dict[str, Table]:
    """The keys of the structural tables."""
    families, depths = range(p["families"]), p["depths"]
    operators, updates = (
        grid(family=families, depth=depths),
        grid(family=families, depth=depths, update=range(p["updates"] + 1)),
    )
    return {
        "tasks": grid(family=families, sample=range(SAMPLES)),
        "weights": layered(operators),
        "responses": grid(
            family=families, depth=depths, row=range(RESPONSE), column=range(RESPONSE)
        ),
        "operators": operators,
        "modes": grid(family=families, depth=depths, omega=np.asarray(p["omegas"], float)),
        "trajectory_weights": layered(updates),
        "trajectories": updates,
        "control_weights": layered(grid(depth=depths)),
        "control_responses": grid(depth=depths, row=range(3), column=range(3)),
        "controls": grid(depth=depths),
        "curvature": grid(example=EXAMPLES, step=np.asarray(p["steps"], float)),
    }


def threshold(p: Parameters) -> dict[str, Table]:
    """The keys of the threshold tables."""
    rows = grid(family=range(p["families"]), depth=p["depths"], beta=np.asarray(p["betas"], float))
    return {
        "tasks": grid(family=range(p["families"]), sample=range(SAMPLES)),
        "weights": layered(rows),
        "configurations": rows,
        "draws": grid(draw=range(p["resamples"])),
    }


def horizon(p: Parameters) -> dict[str, Table]:
    """The keys of the horizon tables."""
    trials, depths, betas, scales = (
        range(p["trials"]),
        p["depths"],
        np.asarray(p["betas"], float),
        np.asarray(p["scales"], float),
    )
    rows = grid(trial=trials, depth=depths, beta=betas, scale=scales, policy=POLICIES, flip=FLIPS)
    numbers = np.arange(len(rows["trial"]))
    final = layered({"trajectory": numbers, "depth": rows["depth"]}, drop=("depth",))
    return {
        "tasks": grid(trial=trials, sample=range(SAMPLES)),
        "weights": layered(grid(trial=trials, depth=depths, beta=betas)),
        "schedule": grid(trial=trials, update=range(SAMPLES * p["epochs"])),
        "trajectories": {"trajectory": numbers, **rows},
        "updates": grid(trajectory=numbers, update=range(SAMPLES * p["epochs"])),
        "final_weights": final,
        "trials": grid(trial=trials, policy=POLICIES),
        "conditions": grid(depth=depths, beta=betas, scale=scales),
        "draws": grid(draw=range(p["resamples"])),
    }


def foresight(p: Parameters) -> dict[str, Table]:
    """The keys of the foresight tables."""
    trials, updates = range(p["trials"]), range(SAMPLES * p["epochs"])
    place: dict[str, Any] = {
        "depth": p["depths"],
        "beta": np.asarray(p["betas"], float),
        "scale": np.asarray(p["scales"], float),
    }
    rows = arms.keys(p)
    numbers, lengths = (
        np.arange(len(rows["arm"])),
        np.array([arms.updates(p, width) for width in rows["width"].tolist()]),
    )
    first = rows["trial"] == 0
    return {
        "tasks": grid(trial=trials, sample=range(SAMPLES)),
        "weights": layered(
            grid(trial=trials, depth=dict.fromkeys([*p["depths"], p["deep"]]), beta=place["beta"])
        ),
        "schedule": grid(trial=trials, update=updates),
        "readings": grid(trial=trials, update=updates, action=range(3)),
        "trajectories": {"trajectory": numbers, **rows},
        "choices": {
            "trajectory": np.repeat(numbers, lengths),
            "update": np.concatenate([np.arange(length) for length in lengths]),
        },
        "conditions": {name: values[first] for name, values in rows.items() if name != "trial"},
        "advantages": grid(control=arms.MAIN[1:], horizon=p["horizons"], **place),
        "payoff": grid(arm=arms.MAIN, **place),
        "costs": grid(horizon=p["horizons"]),
        "comparators": grid(learner=arms.LEARNERS, horizon=p["horizons"], **place, trial=trials),
        "comparisons": grid(learner=arms.LEARNERS, horizon=p["horizons"], **place),
    }


KEYS = {
    "structural": structural,
    "threshold": threshold,
    "horizon": horizon,
    "foresight": foresight,
}


def sizes(kind: str, p: Parameters) -> dict[str, int]:
    """The rows of the tables that decide how long an audit takes, by arithmetic.

    A design may ask for more than any memory holds.
    """
    count, depth, deep = (
        p["families" if "families" in p else "trials"],
        len(p["depths"]),
        9 * sum(p["depths"]),
    )
    found = {"tasks": SAMPLES * count}
    if kind == "structural":
        return found | {
            "trajectory_weights": count * (p["updates"] + 1) * deep,
            "modes": count * depth * len(p["omegas"]),
        }
    betas = count * len(p["betas"])
    if kind == "threshold":
        return found | {"weights": betas * deep, "draws": p["resamples"]}
    length = SAMPLES * p["epochs"]
    if kind == "horizon":
        rows = betas * depth * len(p["scales"]) * len(POLICIES) * len(FLIPS)
        return found | {
            "weights": betas * deep,
            "schedule": count * length,
            "updates": rows * length,
            "draws": p["resamples"],
        }
    places = len(p["betas"]) * len(p["scales"])
    runs = [
        (arm.width, len(arm.horizons) * len(arm.depths) * arm.trials * places)
        for arm in arms.arms(p)
    ]
    deep = 9 * sum(dict.fromkeys([*p["depths"], p["deep"]]))
    found |= {
        "weights": betas * deep,
        "schedule": count * length,
        "trajectories": sum(rows for _, rows in runs),
    }
    return found | {"choices": sum(rows * arms.updates(p, width) for width, rows in runs)}
