"""The statistics of the structural study."""

from typing import Any

import numpy as np

from whorl.study.frames import Table, Tables
from whorl.study.kinds.structural.compute import EXAMPLES
from whorl.study.kinds.structural.parameters import Structural

FULL = 6  # directions of a connected network with three sources and three outputs


def statistics(p: Structural, t: Tables) -> dict[str, Any]:
    """Every number that a gate, the comparison or the report speaks of."""
    operators, states = t["operators"], t["trajectory_weights"]
    found: dict[str, Any] = {
        f"rows.{name}": len(next(iter(t[name].values())))
        for name in ("operators", "modes", "trajectories", "controls", "curvature")
    }
    for table, names in {
        "operators": ("factorisation", "symmetry"),
        "modes": ("score_residual", "pair_residual", "dissipation_residual"),
        "trajectories": ("discrepancy", "column_residual"),
    }.items():
        found |= {f"{name}.max": t[table][name].max() for name in names}
    found["weight.min"] = min(states["layer_sum"].min(), states["gauss_newton"].min())
    for depth in p.depths:
        here = operators["depth"] == depth
        found |= {
            f"rank.{word}.depth{depth}": np.sum(operators["rank"][here] == rank)
            for word, rank in (("full", FULL), ("five", 5))
        }
        found[f"condition.median.depth{depth}"] = np.median(operators["condition"][here])
    found |= {
        "rank.min": operators["rank"].min(),
        "selected_rank.min": operators["selected_rank"].min(),
    }
    deficient = operators["condition"][operators["rank"] < FULL]
    if deficient.size:
        found |= {
            "condition.deficient.min": deficient.min(),
            "condition.deficient.max": deficient.max(),
        }
    found |= {
        "control.rank.min": t["controls"]["rank"].min(),
        "control.rank.max": t["controls"]["rank"].max(),
    }
    found["control.null.max"] = t["controls"]["null_response"].max()
    return found | {
        name: value for example in EXAMPLES for name, value in _fit(t["curvature"], example).items()
    }


def _fit(t: Table, example: str) -> dict[str, float]:
    rows = t["example"] == example
    steps = t["step"][rows]
    slope = np.polyfit(np.log(steps), np.log(np.abs(t["even_difference"][rows])), 1)[0]
    error = t["relative_error"][rows][np.argmin(steps)]
    return {
        f"coefficient.{example}": t["coefficient"][rows][0],
        f"slope.{example}": slope,
        f"relative_error.{example}": error,
    }
