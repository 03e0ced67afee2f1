"""Small things that the kinds of study share.

Tables as columns, products of keys, modes of responses, and exact sums.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from whorl.simplex import tangent_basis

Table = dict[str, np.ndarray]
Tables = dict[str, Table]
Parts = Mapping[Any, Mapping[str, np.ndarray]]  # what each stage of a study computed


def product(**keys: Any) -> Table:
    """Key columns for every combination, the last key varying fastest."""
    sizes = [len(values) for values in keys.values()]
    inner = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    rows = math.prod(sizes)
    return {
        name: np.tile(np.repeat(np.asarray(values), below), rows // max(1, len(values) * below))
        for (name, values), below in zip(keys.items(), inner, strict=True)
    }


def joined(tables: Iterable[Table]) -> Table:
    """Tables with the same columns, one below the other."""
    tables = list(tables)
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def ordered(table: Table, *keys: str) -> Table:
    """Rows sorted by the keys, the first varying slowest.

    Values of a key keep the order of their first appearance.
    """
    ranks = []
    for key in keys:
        values, first, inverse = np.unique(table[key], return_index=True, return_inverse=True)
        ranks.append(np.argsort(np.argsort(first))[inverse.ravel()] if len(values) else inverse)
    rows = np.lexsort(ranks[::-1])
    return {name: column[rows] for name, column in table.items()}


def floats(values: Any) -> np.ndarray:
    """Numbers of a design, some of which may be written as whole ones."""
    return np.asarray(values, dtype=float)


def places(depth: int) -> dict[str, range]:
    """The keys of the weights of a network."""
    return {"layer": range(depth), "row": range(3), "column": range(3)}


def tasks(x: np.ndarray, y: np.ndarray, **key: Any) -> Table:
    """The table of inputs and targets, (families, 6, 3)."""
    sides = {"x": x, "y": y}
    return product(**key, sample=range(6)) | {
        f"{name}_{i}": side[:, :, i].ravel() for name, side in sides.items() for i in range(3)
    }


def weights(layers: Mapping[int, np.ndarray], **keys: Any) -> Table:
    """The table of initial weights from those of every depth, (keys, depth, 3, 3).

    The depth is the second key.
    """
    first, *rest = keys
    parts = [
        product(**{first: keys[first]}, depth=[n], **{key: keys[key] for key in rest}, **places(n))
        | {"weight": values.ravel()}
        for n, values in layers.items()
    ]
    return ordered(joined(parts), first, "depth", *rest, *places(1))


def counts(tables: Tables, *names: str) -> dict[str, Any]:
    """The statistics that say how many rows some tables have."""
    return {f"rows.{name}": len(next(iter(tables[name].values()))) for name in names}


def zero_sum(factor: np.ndarray) -> np.ndarray:
    """A factor (..., samples * 3, m) in zero-sum coordinates (..., samples * 2, m)."""
    *batch, rows, columns = factor.shape
    blocks = factor.reshape(*batch, rows // 3, 3, columns)
    return np.einsum("ak,...sam->...skm", np.asarray(tangent_basis(3)), blocks).reshape(
        *batch, rows // 3 * 2, columns
    )


def modes(factor: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Rank and condition number of B B^T, from singular values of B.

    An eigenvalue counts above `tol` times the largest.
    """
    values = np.linalg.svd(zero_sum(factor), compute_uv=False) ** 2
    kept = values > tol * values[..., :1]
    rank = kept.sum(axis=-1)
    weakest = np.take_along_axis(values, np.maximum(rank - 1, 0)[..., None], axis=-1)[..., 0]
    return rank, values[..., 0] / weakest


def column_residual(weights: np.ndarray) -> np.ndarray:
    """The largest |sum of a column - 1| of networks (..., depth, 3, 3), with sums rounded once."""
    off = np.abs(_sum_of_three(*np.moveaxis(weights, -2, 0)) - 1)
    return off.reshape(*weights.shape[:-3], -1).max(axis=-1)


def _sum_of_three(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Correctly rounded.

    By the errors of two sums where these add up exactly, which is nearly always, else as
    `exact_sum` does it.
    """
    first, missed = _two_sum(a, b)
    second, missed_too = _two_sum(first, c)
    rest, lost = _two_sum(missed, missed_too)
    total = second + rest
    if (hard := lost != 0).any():
        total[hard] = exact_sum(np.stack([a[hard], b[hard], c[hard]], axis=-1))
    return total


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A rounded sum and its rounding error, which is a number of the same kind (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def exact_sum(values: np.ndarray) -> np.ndarray:
    """Correctly rounded sums along the last axis: they do not depend on the order of the terms."""
    flat = values.reshape(-1, values.shape[-1]).tolist()
    return np.array([math.fsum(row) for row in flat]).reshape(values.shape[:-1])
