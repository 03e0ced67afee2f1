"""Statistics of the threshold kind."""

import numpy as np

from whorl_audit.derived.threshold import auc, ordered_pairs, shares
from whorl_audit.statistics.common import interval, largest, number, rows
from whorl_audit.types import Expected, Parameters, Tables


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    table, draws = tables["configurations"], tables["draws"]
    wins, positive, negative = ordered_pairs(table, p["families"])
    share = shares(table, p)
    both = positive.sum() > 0 and negative.sum() > 0  # without one of the classes there is no curve
    columns = {
        "accuracy": "accuracy",
        "favourable.first": "favourable_first",
        "favourable.last": "favourable_last",
    }
    median, first, third = (number(np.quantile(table["condition"], q)) for q in (0.5, 0.25, 0.75))
    result = {
        **rows(tables, "configurations"),
        **(
            {"auc": number(auc(np.ones((1, p["families"])), wins, positive, negative)[0])}
            if both
            else {}
        ),
        **{name: number(share[column].mean()) for name, column in columns.items()},
        "errors": number((table["predicted"] != table["favourable"]).sum()),
        "sign_agreement": number(
            (np.sign(table["finite"]) == np.sign(table["coefficient"])).mean()
        ),
        "weight.min": number(tables["weights"]["weight"].min()),
        "condition.max": number(table["condition"].max()),
        **(interval("auc", draws["auc"]) if both else {}),
    }
    for name, column in columns.items():
        result |= interval(name, draws[column])
    return result | {
        **largest(
            tables, "configurations", "response_residual", "coefficient_residual", "column_residual"
        ),
        "condition.q1": first,
        "condition.median": median,
        "condition.q3": third,
    }
