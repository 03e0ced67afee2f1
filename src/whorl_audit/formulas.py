"""Sums and residuals for columns of several kinds."""

import math

import numpy as np

from whorl_audit.types import Array, Table, Whole

TERMS = ("even", "handedness", "step", "drift")  # of a ledger


def total(table: Table) -> Array:
    """((even + handedness) + step) + drift."""
    return ((table["even"] + table["handedness"]) + table["step"]) + table["drift"]


def sums(rows: Array) -> Array:
    """The correctly rounded sum of every row."""
    return np.array([math.fsum(row) for row in rows.tolist()])


def means(values: Array) -> Array:
    """Correctly rounded sums over the last axis, divided by their number, in one row."""
    return sums(values.reshape(-1, values.shape[-1])) / values.shape[-1]


def stacked(parts: list[dict[str, Array]], axis: int) -> dict[str, Array]:
    """The arrays of every name, side by side along a new axis."""
    return {name: np.stack([part[name] for part in parts], axis=axis) for name in parts[0]}


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
    """One value per network from values `(layers, n)`."""
    starts = np.concatenate([[0], np.cumsum(depths)[:-1]])
    return reduce.reduceat(reduce.reduce(per_layer, axis=1), starts)
