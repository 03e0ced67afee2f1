"""The statistics of the threshold study."""

from typing import Any

import numpy as np

from whorl.study import bootstrap
from whorl.study.frames import Tables
from whorl.study.kinds.threshold.parameters import Threshold


def statistics(p: Threshold, t: Tables) -> dict[str, Any]:
    """Every number that a gate, the comparison or the report speaks of."""
    rows, draw = t["configurations"], t["draws"]
    favourable, right = rows["favourable"] == 1, rows["predicted"] == rows["favourable"]
    first, last = (rows["beta"] == beta for beta in (p.betas[0], p.betas[-1]))
    area = bootstrap.auc(rows["ratio"], favourable)
    found: dict[str, Any] = {
        "rows.configurations": right.size,
        **({} if area is None else {"auc": area}),
        "accuracy": right.mean(),
        "favourable.first": favourable[first].mean(),
        "favourable.last": favourable[last].mean(),
        "errors": np.sum(~right),
        "sign_agreement": np.mean(np.sign(rows["finite"]) == np.sign(rows["coefficient"])),
        "weight.min": t["weights"]["weight"].min(),
        "condition.max": rows["condition"].max(),
    }
    for name in ("auc", "accuracy", "favourable.first", "favourable.last"):
        if name not in found:
            continue
        found[f"{name}.lower"], found[f"{name}.upper"] = bootstrap.interval(
            draw[name.replace(".", "_")]
        )
    found |= {
        f"{name}.max": rows[name].max()
        for name in ("response_residual", "coefficient_residual", "column_residual")
    }
    quartiles = np.quantile(rows["condition"], [0.25, 0.5, 0.75])
    return found | dict(
        zip(("condition.q1", "condition.median", "condition.q3"), quartiles, strict=True)
    )
