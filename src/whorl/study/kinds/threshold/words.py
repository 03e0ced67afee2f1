"""What the page says of a threshold study."""

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
