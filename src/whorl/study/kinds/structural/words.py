"""What the page says of a structural study."""

from collections.abc import Mapping

from whorl.study.kinds.structural.figure import FULL
from whorl.study.report.words import typeset

CAPTION = (
    "Identities at round-off by depth, condition numbers and ranks of the joint response, and "
    "the two even differences that fall as the square of the step."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {
    "factorisation.max": ("operators", "factorisation"),
    "symmetry.max": ("operators", "symmetry"),
    "rank.min": ("operators", "rank"),
    "selected_rank.min": ("operators", "selected_rank"),
    "score_residual.max": ("modes", "score_residual"),
    "pair_residual.max": ("modes", "pair_residual"),
    "dissipation_residual.max": ("modes", "dissipation_residual"),
    "discrepancy.max": ("trajectories", "discrepancy"),
    "column_residual.max": ("trajectories", "column_residual"),
    "control.rank.min": ("controls", "rank"),
    "control.rank.max": ("controls", "rank"),
    "control.null.max": ("controls", "null_response"),
}
FIGURE = "Fig. 2"  # in the paper
QUESTION = "Do all identities hold, and is the joint rank kept at every depth?"
HELD = "Yes"


def found(statistics: Mapping[str, float]) -> str:
    """One sentence on what came out."""
    names = [name for name in statistics if name.endswith(("residual.max", "symmetry.max"))]
    worst = max((statistics[name] for name in names), default=0.0)
    least = statistics.get("rank.min")
    lost = "is full in every network" if least == FULL else f"falls to {least or 0:.0f} of {FULL}"
    rank = "" if least is None else f", and the joint rank {lost}"
    return f"The identities hold to {typeset(f'{worst:.0e}')}{rank}."
