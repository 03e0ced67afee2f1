"""What the page says of a horizon study."""

CAPTION = (
    "Where the gap to the native learner comes from: gaps trial by trial, the step and drift "
    "terms of the ledger, and the gain of the adaptive policy by condition."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {
    "closure.trajectory.max": ("trajectories", "closure"),
}
