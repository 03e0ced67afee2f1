"""Statistics of the foresight kind."""

import numpy as np

from whorl_audit import foresight
from whorl_audit.derived.foresight import bounds, mean
from whorl_audit.foresight import LEARNERS, MAIN, label
from whorl_audit.statistics.common import number, rows
from whorl_audit.types import Expected, Parameters, Table, Tables


def _native_difference(table: Table) -> float:
    apart: dict[tuple[float, ...], list[float]] = {}
    names = ("width", "depth", "beta", "scale", "trial")
    for *key, value in zip(
        *(table[name].tolist() for name in names), table["native"].tolist(), strict=True
    ):
        apart.setdefault(tuple(key), []).append(value)
    return max(max(values) - min(values) for values in apart.values())


def _gaps(tables: Tables, p: Parameters) -> dict[str, Expected]:
    table, conditions, found = tables["trajectories"], tables["conditions"], {}
    for arm in foresight.arms(p):
        for horizon in arm.horizons:
            name = f"{arm.name}.{label(horizon)}"
            gaps = table["gap"][(table["arm"] == arm.name) & (table["horizon"] == horizon)].reshape(
                -1, arm.trials
            )
            by_trial = mean(gaps.T)
            (low,), (high,) = bounds(by_trial[None], p)
            size = float(np.abs(gaps).max())
            here = (conditions["arm"] == arm.name) & (conditions["horizon"] == horizon)
            found[f"pays.{name}"] = number(conditions["pays"][here].sum())
            found |= {f"gap.{name}": number(by_trial.mean(), size)}
            found |= {
                f"gap.{name}.lower": number(low, size),
                f"gap.{name}.upper": number(high, size),
            }
    return found


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    table = tables["trajectories"]
    found = rows(tables, "trajectories", "choices", "conditions")
    seeing = [arm.name for arm in foresight.arms(p) if arm.sees]
    far = np.isin(table["arm"], seeing) & (table["horizon"] == foresight.END)
    if far.any():
        found["rollout.worst"] = number(table["gap"][far].max())
    found |= {
        "closure.max": number(table["closure"].max()),
        "weight.min": number(table["smallest"].min()),
    }
    found["native.difference"] = number(_native_difference(table))
    for horizon, count in zip(p["horizons"], tables["costs"]["foresight"].tolist(), strict=True):
        found[f"cost.{label(horizon)}"] = number(count / foresight.updates(p, 3))
    found |= _gaps(tables, p)
    for name, key, others in (
        ("advantages", "control", MAIN[1:]),
        ("comparisons", "learner", LEARNERS),
    ):
        other = tables[name]
        for who in others:
            for horizon in p["horizons"]:
                here = (other[key] == who) & (other["horizon"] == horizon)
                found[f"against.{who}.{label(horizon)}.wins"] = number(
                    (other["lower"][here] > 0).sum()
                )
                found[f"against.{who}.{label(horizon)}.loses"] = number(
                    (other["upper"][here] < 0).sum()
                )
    return found
