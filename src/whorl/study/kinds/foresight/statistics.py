"""The statistics of the foresight study."""

from typing import Any

import numpy as np

from whorl.study.frames import Table, Tables
from whorl.study.kinds.foresight import arms
from whorl.study.kinds.foresight.arms import MAIN, label
from whorl.study.kinds.foresight.comparators import LEARNERS
from whorl.study.kinds.foresight.parameters import Foresight
from whorl.study.kinds.foresight.tables import bounds, mean


def statistics(p: Foresight, t: Tables) -> dict[str, Any]:
    """Every number that a gate or the report speaks of."""
    rows = t["trajectories"]
    found: dict[str, Any] = {
        f"rows.{name}": len(next(iter(t[name].values())))
        for name in ("trajectories", "choices", "conditions")
    }
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


def _gaps(p: Foresight, t: Tables) -> dict[str, Any]:
    """For every arm and horizon.

    The conditions in which it pays, and the gap over all conditions with its interval.
    """
    found: dict[str, Any] = {}
    rows, conditions = t["trajectories"], t["conditions"]
    for arm in arms.arms(p):
        for horizon in arm.horizons:
            name = f"{arm.name}.{label(horizon)}"
            here = (rows["arm"] == arm.name) & (rows["horizon"] == horizon)
            by_trial = mean(rows["gap"][here].reshape(-1, arm.trials).T)
            lower, upper = bounds(p, by_trial[None])
            found[f"pays.{name}"] = conditions["pays"][
                (conditions["arm"] == arm.name) & (conditions["horizon"] == horizon)
            ].sum()
            found |= {
                f"gap.{name}": by_trial.mean(),
                f"gap.{name}.lower": lower[0],
                f"gap.{name}.upper": upper[0],
            }
    return found


def _counts(p: Foresight, t: Tables) -> dict[str, Any]:
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
