"""Rows and their order: products of a design's values, the leftmost key slowest."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from whorl_audit.types import Array, Table, Whole


def grid(**axes: Iterable[Any]) -> Table:
    """The product of the axes, the last varying fastest."""
    values = [np.asarray(list(axis)) for axis in axes.values()]
    index = np.indices([len(axis) for axis in values]).reshape(len(values), -1)
    return {name: axis[at] for name, axis, at in zip(axes, values, index, strict=True)}


def layered(prefix: Table, *, drop: tuple[str, ...] = ()) -> Table:
    """Every row of `prefix` once for each weight of a network of its depth."""
    counts = 9 * prefix["depth"]
    within = np.concatenate([np.arange(count) for count in counts])
    table = {name: np.repeat(values, counts) for name, values in prefix.items() if name not in drop}
    return table | {"layer": within // 9, "row": within // 3 % 3, "column": within % 3}


def interleave(depths: Whole, by_depth: dict[int, Array]) -> Array:
    """The weights `(rows of a depth, depth, 3, 3)` of every depth as one column, in the order in
    which `depths` names them.
    """
    queues = {depth: iter(values) for depth, values in by_depth.items()}
    return np.concatenate([next(queues[int(depth)]).ravel() for depth in depths])
