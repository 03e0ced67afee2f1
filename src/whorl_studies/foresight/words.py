"""What the page says of a foresight study."""

from collections.abc import Mapping

CAPTION = (
    "Does a turn pay when its consequences are foreseen? Mean gaps to the native learner "
    "against the updates foreseen, by condition, beside controls that look as far and choose "
    "among other steps or directions."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {}
QUESTION = "Does a turn pay when its consequences are foreseen?"


def found(statistics: Mapping[str, float]) -> str:
    """One sentence on what came out."""
    pays = statistics.get("pays.turns.end")
    return "" if pays is None else f"Foreseen turns end lower in {pays:.0f} conditions."
