"""What the page says of a horizon study."""

from collections.abc import Mapping

CAPTION = (
    "Where the gap to the native learner comes from: gaps trial by trial, the step and drift "
    "terms of the ledger, and the gain of the adaptive policy by condition."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {
    "closure.trajectory.max": ("trajectories", "closure"),
}
FIGURE = "Fig. 4"  # in the paper
QUESTION = "Over many updates, does a turn that pays locally pay in the end?"
HELD = "No: step and drift cost more than it gains"


def found(statistics: Mapping[str, float]) -> str:
    """One sentence on what came out."""
    matched, adaptive = (statistics.get(f"gap.{name}") for name in ("step_matched", "adaptive"))
    if matched is None or adaptive is None:
        return ""
    return (
        f"At the end of a run the mean gap to the native learner is {matched:+.2g} with"
        f" step-matched and {adaptive:+.2g} with adaptive turns (above zero: the native learner"
        " ends lower)."
    )
