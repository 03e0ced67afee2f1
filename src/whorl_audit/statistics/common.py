"""What the three kinds share: one number with its tolerance."""

import numpy as np

from whorl_audit.types import Array, Expected, Tables

AGREEMENT = 1e-12
EPSILON = 2.0**-52
APART = (
    100.0  # two sound programs do not differ by more in the round-off that is left of one identity
)
# What is zero but for round-off; where its rows are, if it has rows of its own; and in how many of
# them we must have round-off before a program that has none in any row did not compute them. One
# operator has 324 entries, and cannot be without.
# without.
ROUNDOFF: dict[str, tuple[str, str, int] | None] = {
    "factorisation.max": ("operators", "factorisation", 2),
    "symmetry.max": None,  # terms that are symmetric one by one leave none
    "score_residual.max": ("modes", "score_residual", 8),
    "pair_residual.max": ("modes", "pair_residual", 8),
    "dissipation_residual.max": ("modes", "dissipation_residual", 8),
    "discrepancy.max": ("trajectories", "discrepancy", 8),
    "column_residual.max": None,
    "control.null.max": None,
    "response_residual.max": ("configurations", "response_residual", 8),
    "closure.step.max": None,
    "closure.trajectory.max": ("trajectories", "closure", 8),
    "closure.paired.max": None,
    "closure.max": ("trajectories", "closure", 8),
}


def number(value: float, scale: float | None = None) -> Expected:
    """A statistic, in any order of summation.

    `scale` is the size of the terms where they may cancel.
    """
    return Expected(
        np.asarray(value, float), AGREEMENT, None if scale is None else np.asarray(scale, float)
    )


def rows(tables: Tables, *names: str) -> dict[str, Expected]:
    """The numbers of rows."""
    return {f"rows.{name}": number(len(next(iter(tables[name].values())))) for name in names}


def largest(tables: Tables, table: str, *columns: str) -> dict[str, Expected]:
    """The largest values of columns."""
    return {f"{column}.max": number(tables[table][column].max()) for column in columns}


def interval(name: str, values: Array, scale: float | None = None) -> dict[str, Expected]:
    """The central 95 % of resampled values."""
    lower, upper = np.quantile(values, [0.025, 0.975])
    return {f"{name}.lower": number(lower, scale), f"{name}.upper": number(upper, scale)}
