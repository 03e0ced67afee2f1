"""Statistics of the horizon kind."""

import numpy as np

from whorl_audit.derived.common import column_sums
from whorl_audit.derived.horizon import increments, total
from whorl_audit.keys import POLICIES
from whorl_audit.statistics.common import interval, number, rows
from whorl_audit.types import Array, Expected, Parameters, Tables


def _means(tables: Tables) -> dict[str, Expected]:
    """Means over trials by policy, what the adaptive policy recovers of the step term, and what
    drift takes back.
    """
    table, draws, result, mean = tables["trials"], tables["draws"], {}, {}
    for policy in POLICIES:
        here = table["policy"] == policy
        for name in ("gap", "step", "drift", "even", "handedness"):
            mean[name, policy] = table[name][here].mean()
        for name in ("gap", "step", "drift"):
            result[f"{name}.{policy}"] = number(mean[name, policy], np.abs(table[name]).mean())
        size = np.abs(table["even"]).mean() + np.abs(table["handedness"]).mean()
        result[f"turning.{policy}"] = number(
            mean["even", policy] + mean["handedness", policy], size
        )
        result |= interval(f"gap.{policy}", draws[f"gap_{policy}"])
    gap = np.abs(table["gap"]).mean()
    result |= {
        "gain": number(mean["gap", "step_matched"] - mean["gap", "adaptive"], gap),
        **interval("gain", draws["gain"], gap),
    }
    result["conditions.adaptive_better"] = number((tables["conditions"]["gain"] > 0).sum())
    step, recovered = (
        np.abs(table["step"]).mean(),
        mean["step", "step_matched"] - mean["step", "adaptive"],
    )
    result["step.recovered"] = number(recovered, step)
    if recovered != 0:
        offset = (mean["drift", "adaptive"] - mean["drift", "step_matched"]) / recovered
        result["drift.offset"] = number(offset, max(1.0, abs(offset)) * (1 + step / abs(recovered)))
    return result


def _closures(tables: Tables) -> dict[str, Expected]:
    """What is left over of the identity.

    At every update, along every trajectory, between the policies of every pair.
    """
    table, by = tables["trajectories"], increments(tables)
    step = np.abs(total(tables["updates"]) - (by["taken"] - by["native"]).ravel())
    sums, gaps = (values.reshape(-1, len(POLICIES), 2) for values in (total(table), table["gap"]))
    paired = np.abs((sums[:, 0] - sums[:, 1]) - (gaps[:, 0] - gaps[:, 1]))
    twins = tables["updates"]["native"].reshape(len(gaps), len(POLICIES) * 2, -1)
    return {
        "closure.step.max": number(step.max()),
        "closure.trajectory.max": number(table["closure"].max()),
        "closure.paired.max": number(paired.max()),
        "native.difference": number((twins.max(axis=1) - twins.min(axis=1)).max()),
    }


def statistics(tables: Tables, _: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    weights: list[Array] = [tables["final_weights"][name] for name in ("nonreciprocal", "native")]
    return {
        **rows(tables, "updates", "trajectories", "conditions"),
        **_means(tables),
        **_closures(tables),
        "weight.min": number(min(values.min() for values in weights)),
        "column_residual.max": number(
            max(np.abs(column_sums(values) - 1).max() for values in weights)
        ),
    }
