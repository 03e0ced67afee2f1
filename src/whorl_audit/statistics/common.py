"""What the three kinds share: one number with its tolerance."""

import numpy as np

from whorl_audit.types import Array, Expected, Tables

AGREEMENT = 1e-12


def number(value: float, scale: float | None = None) -> Expected:
    """A statistic, in any order of summation; `scale` is the size of the terms where they may cancel."""
    return Expected(np.asarray(value, float), AGREEMENT, None if scale is None else np.asarray(scale, float))


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
