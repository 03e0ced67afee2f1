"""What a design may say: the parameters of each kind of study, and the rule for each."""

from typing import Any

from whorl.ground.rules import (
    BETAS,
    CHUNK,
    DEPTHS,
    HORIZONS,
    LEAK,
    RANK_TOL,
    SCALES,
    SEED,
    SPREAD,
    Rule,
    between,
    composition,
    fractions,
    many,
    only,
    whole,
)

COMMON: dict[str, Rule] = {
    "seed": SEED,
    "depths": DEPTHS,
    "width": only(3),
    "mixtures": only(3),
    "concentration": SPREAD,
    "floor": between(1e-9, 1),
}
COUPLED: dict[str, Rule] = COMMON | {
    "bootstrap_seed": SEED,
    "trials": whole(2, 100_000),
    "betas": BETAS,
    "scales": SCALES,
    "epochs": whole(1, 1_000_000),
    "leak": LEAK,
    "alpha": only(1.0),
    "omega": between(1e-3, 1e3),
    "resamples": whole(1, 1_000_000),
    "chunk": CHUNK,
}
PARAMETERS: dict[str, dict[str, Rule]] = {
    "structural": COMMON
    | {
        "families": whole(1, 100_000),
        "column_concentration": between(0.1, 1e3),
        "floor": between(
            0.01, 0.9
        ),  # columns at a vertex, or all alike, leave trajectories to round-off
        "alpha": between(0.01, 100),
        "omegas": many(0, 100),
        "updates": whole(1, 10_000),
        "step": between(1e-6, 1),  # 1 would repair the residual at once were it not for the leak
        "leak": LEAK,
        "rank_tol": RANK_TOL,
        "steps": many(1e-6, 1, least=2),
        "negative_start": composition(),
        "negative_target": composition(),
        "positive_start": composition(),
        "positive_target": composition(),
    },
    "threshold": COMMON
    | {
        "bootstrap_seed": SEED,
        "families": whole(2, 100_000),
        "betas": BETAS,
        "finite_step": between(1e-8, 1),
        "resamples": whole(1, 1_000_000),
        "rank_tol": RANK_TOL,
    },
    "horizon": COUPLED,
    "foresight": COUPLED
    | {
        "horizons": HORIZONS,
        "halves": fractions(),
        "quarters": fractions(),
        "robust_horizons": HORIZONS,
        "noises": many(1e-6, 10),
        "omegas": many(1e-3, 1e3),
        "deep": whole(1, 64),
        "wide": whole(4, 9),
        "wide_trials": whole(2, 100_000),
    },
}
# steps of the structural study, in leaks: a residual out of reach is amplified by step / leak
STEEPEST = 5


def together(kind: str, values: dict[str, Any]) -> tuple[str, str, Any] | None:
    """The parameter, the rule and the value where parameters that are good one by one do not fit
    together.
    """
    if kind == "structural" and values["step"] > STEEPEST * values["leak"]:
        return (
            "step",
            f"step must be at most {STEEPEST} times leak, {STEEPEST * values['leak']:g}",
            values["step"],
        )
    return None


ORIGINS = ("stated", "reading", "own")
RELATIONS = ("<", "<=", ">", ">=", "==")
