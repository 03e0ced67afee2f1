"""What the page says of a foresight study."""

CAPTION = (
    "Does a turn pay when its consequences are foreseen? Mean gaps to the native learner "
    "against the updates foreseen, by condition, beside controls that look as far and choose "
    "among other steps or directions."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {}
