"""What the page says of a threshold study."""

from collections.abc import Mapping

CAPTION = (
    "Where a turn helps: the share of favourable configurations by imbalance and depth, and "
    "the coefficient against the curvature ratio of one sample."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {
    "response_residual.max": ("configurations", "response_residual"),
    "coefficient_residual.max": ("configurations", "coefficient_residual"),
    "column_residual.max": ("configurations", "column_residual"),
    "condition.max": ("configurations", "condition"),
}
FIGURE = "Fig. 3"  # in the paper
QUESTION = "Does the curvature of one sample say whether a turn helps?"
HELD = "Yes"


def found(statistics: Mapping[str, float]) -> str:
    """One sentence on what came out."""
    area, right = statistics.get("auc"), statistics.get("accuracy")
    if area is None or right is None:
        return ""
    return (
        "The curvature ratio of one sample rightly says whether a turn helps in "
        f"{100 * right:.1f} % of the configurations (area under the ROC curve {area:.4f})."
    )
