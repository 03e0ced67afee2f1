"""Statistics of the structural kind."""

import numpy as np

from whorl_audit.keys import EXAMPLES
from whorl_audit.statistics.common import largest, number, rows
from whorl_audit.types import Expected, Parameters, Tables


def _ranks(tables: Tables, p: Parameters) -> dict[str, Expected]:
    table, controls = tables["operators"], tables["controls"]
    rank, condition = table["rank"], table["condition"]
    result = {}
    for depth in p["depths"]:
        here = table["depth"] == depth
        result[f"rank.full.depth{depth}"] = number((rank[here] == 6).sum())
        result[f"rank.five.depth{depth}"] = number((rank[here] == 5).sum())
        result[f"condition.median.depth{depth}"] = number(np.median(condition[here]))
    result |= {
        "rank.min": number(rank.min()),
        "selected_rank.min": number(table["selected_rank"].min()),
    }
    if (rank < 6).any():
        result["condition.deficient.min"] = number(condition[rank < 6].min())
        result["condition.deficient.max"] = number(condition[rank < 6].max())
    ranks = {"control.rank.min": controls["rank"].min(), "control.rank.max": controls["rank"].max()}
    return result | {
        name: number(value)
        for name, value in (ranks | {"control.null.max": controls["null_response"].max()}).items()
    }


def _examples(tables: Tables) -> dict[str, Expected]:
    table, result = tables["curvature"], {}
    for example in EXAMPLES:
        here = table["example"] == example
        step, even = np.log(table["step"][here]), np.log(np.abs(table["even_difference"][here]))
        across = step - step.mean()
        result[f"coefficient.{example}"] = number(table["coefficient"][here][0])
        result[f"slope.{example}"] = number(
            (across * (even - even.mean())).sum() / np.square(across).sum()
        )
        result[f"relative_error.{example}"] = number(
            table["relative_error"][here][table["step"][here].argmin()]
        )
    return result


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    weights = tables["trajectory_weights"]
    return {
        **rows(tables, "operators", "modes", "trajectories", "controls", "curvature"),
        **largest(tables, "operators", "factorisation", "symmetry"),
        **largest(tables, "modes", "score_residual", "pair_residual", "dissipation_residual"),
        **largest(tables, "trajectories", "discrepancy", "column_residual"),
        "weight.min": number(min(weights["layer_sum"].min(), weights["gauss_newton"].min())),
        **_ranks(tables, p),
        **_examples(tables),
    }
