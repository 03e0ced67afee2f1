"""What the page says of a budgets study."""

CAPTION = (
    "What can rotation buy under a budget? Decades of loss by which laws that turn end below direct"
    " feedback of the same gain, against the updates made, with 95 % intervals. Below zero direct"
    " feedback is ahead."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {
    "diagonal.max": ("bounds", "diagonal"),
    "below.max": ("bounds", "below"),
    "gyration.max": ("bounds", "gyration"),
}
