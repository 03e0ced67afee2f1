"""What the page says of a structural study."""

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
