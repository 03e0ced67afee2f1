"""The statistics of the horizon study."""

from typing import Any

import numpy as np

from whorl.ledger import TERMS
from whorl.study import bootstrap, frames
from whorl.study.frames import Tables
from whorl.study.kinds.horizon.compute import POLICIES, SIDES
from whorl.study.kinds.horizon.tables import total
from whorl.study.parameters import Coupled


def statistics(p: Coupled, t: Tables) -> dict[str, Any]:
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
    ends = (t["final_weights"][name].reshape(-1, 1, 3, 3) for name in SIDES)
    found["column_residual.max"] = max(frames.column_residual(end).max() for end in ends)
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
