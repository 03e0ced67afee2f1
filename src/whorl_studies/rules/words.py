"""What the page says of a study of rules."""

CAPTION = (
    "Three rules on random circuits: the skew share of their loops by the number of nodes, the "
    "spectra that decide whether a loop turns, and the bias of equilibrium propagation against "
    "the nudge."
)
# The rows behind an extreme, where a gate on it was broken: table and column.
ROWS: dict[str, tuple[str, str]] = {
    "propagation_skew.max": ("circuits", "propagation_skew"),
    "identity.max": ("circuits", "identity"),
    "response_skew.max": ("networks", "response_skew"),
    "one_sided.slope.max": ("circuits", "one_sided_slope"),
    "centred.slope.max": ("circuits", "centred_slope"),
}
