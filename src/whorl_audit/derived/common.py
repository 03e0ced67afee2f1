"""What the three kinds share: sums, residuals of columns, and the intervals of resampled means."""

import math

import numpy as np

from whorl_audit.types import Array, Expected, Table, Whole

SUMMATION = 1e-12


def same(values: Array) -> Expected:
    """A column that must hold these numbers and no others."""
    return Expected(values)


def whole(values: Array) -> Expected:
    """A column of counts, or of truths as 0 and 1."""
    return Expected(values.astype(np.int64))


def summed(values: Array, scale: Array | None = None) -> Expected:
    """A column whose order of summation is open."""
    return Expected(values, SUMMATION, scale)


def sums(rows: Array) -> Array:
    """The correctly rounded sum of every row."""
    return np.array([math.fsum(row) for row in rows.tolist()])


def score_residual(table: Table) -> Array:
    """|velocity - commanded|, component by component, summed."""
    first, second, third = (
        np.abs(table[f"velocity_{k}"] - table[f"commanded_{k}"]) for k in range(3)
    )
    return (first + second) + third


def column_sums(weights: Array) -> Array:
    """The correctly rounded sums `(layers, 3)` of the columns of weights stored layer after layer,
    row after row.
    """
    columns = np.swapaxes(weights.reshape(-1, 3, 3), 1, 2).reshape(-1, 3)
    return sums(columns).reshape(-1, 3)


def column_residual(weights: Array, depths: Whole) -> Array:
    """The largest |sum - 1| over the columns of every network, networks of the given depths
    following each other.
    """
    return by_network(np.abs(column_sums(weights) - 1), depths, np.maximum)


def by_network(per_layer: Array, depths: Whole, reduce: np.ufunc) -> Array:
    """One value a network from values `(layers, n)`."""
    starts = np.concatenate([[0], np.cumsum(depths)[:-1]])
    return reduce.reduceat(reduce.reduce(per_layer, axis=1), starts)
