r"""Small symmetric systems, many at once.

Matrices are (..., size, size, lanes): the batch is last and everything is elementwise work, since
batched LAPACK calls are slow inside compiled loops and with some versions of jaxlib never return.
"""

import functools
import operator
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jax import Array

from whorl.fast.fused import keep

SWEEPS = 15  # of Jacobi's rotations at most; six or seven do for sizes up to sixteen


def solved(matrix: Array, given: Array) -> Array:
    """Solve with a positive definite matrix for right sides (kinds, ..., size, lanes).

    Gauss' elimination in Crout's order, which needs no choice of pivots here. Column and row of a
    pivot are made when their turn comes, each from all that came before, and nothing else is
    written: what is left of a matrix would otherwise go through memory once per pivot.
    """
    table = keep(jnp.concatenate([matrix, jnp.moveaxis(given, 0, -2)], -2))
    columns, rows, found = [], [], []
    for k in range(matrix.shape[-2]):
        column, row = table[..., k:, k, :], table[..., k, k + 1 :, :]
        for j, (left, above) in enumerate(zip(columns, rows, strict=True), 1):
            place = k - j  # column and row of a pivot begin with it and behind it
            column = column - left[..., place + 1 :, :] * above[..., place : place + 1, :]
            row = row - left[..., place + 1 : place + 2, :] * above[..., place + 1 :, :]
        columns.append(_once(column))
        rows.append(_once(row / columns[-1][..., :1, :]))
    for row in rows[::-1]:
        known = (row[..., i : i + 1, :] * one for i, one in enumerate(found))
        right = row[..., len(found) :, :]
        found.insert(0, _once(functools.reduce(operator.sub, known, right)))
    return jnp.moveaxis(jnp.stack(found, -2), -3, 0)


def _once(array: Array) -> Array:
    """Made once on every device: what each step reads twice would double with every step."""
    return keep(jax.lax.optimization_barrier(array))


def decomposed(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (..., size, lanes) and modes (..., mode, entry, lanes) of symmetric matrices.

    Jacobi's rotations, as many at once as do not touch each other. Pairs are the upper and the
    lower half, and everybody but the first moves on by one place after each round, so that one
    short program makes all of them. Lanes that are done are left alone to the bit.
    """
    size = matrix.shape[-2]
    half, odd = (size + 1) // 2, size % 2
    room = [(0, 0)] * (matrix.ndim - 3) + [(0, odd), (0, odd), (0, 0)]
    matrix = jnp.pad(matrix, room)
    vectors = jnp.broadcast_to(jnp.eye(2 * half, dtype=matrix.dtype)[:, :, None], matrix.shape)
    diagonal = jnp.stack([matrix[..., i, i, :] for i in range(size)])
    # Once an entry is below the round-off of the whole, turning it away changes nothing.
    least = keep(jnp.finfo(matrix.dtype).eps / 8 * _total(jnp.abs(diagonal)))

    def one_round(_: Array, carry: tuple) -> tuple:
        matrix, vectors, busy = carry
        p, q, apart = (
            jnp.stack([matrix[..., i + a, i + b, :] for i in range(half)], -2)
            for a, b in ((0, 0), (half, half), (0, half))
        )
        active = jnp.abs(apart) > least[..., None, :]
        slant = (q - p) / (2 * jnp.where(active, apart, 1.0))
        tangent = jnp.copysign(1.0 / (jnp.abs(slant) + jnp.sqrt(1 + slant * slant)), slant)
        tangent = jnp.where(active, tangent, 0.0)
        cosine = 1.0 / jnp.sqrt(1 + tangent * tangent)
        turn = keep((cosine, tangent * cosine))
        matrix = keep(_rotated(keep(_rotated(matrix, turn, -3)), turn, -2))
        return matrix, keep(_rotated(vectors, turn, -3)), busy | jnp.any(active)

    def sweep(carry: tuple) -> tuple:
        matrix, vectors, _, count = carry
        start = (matrix, vectors, jnp.zeros((), dtype=bool))
        return *jax.lax.fori_loop(0, 2 * half - 1, one_round, start), count + 1

    start = (matrix, vectors, jnp.ones((), dtype=bool), 0)
    going = lambda carry: carry[2] & (carry[3] < SWEEPS)  # noqa: E731
    matrix, vectors, _, _ = jax.lax.while_loop(going, sweep, start)
    values = jnp.stack([matrix[..., i, i, :] for i in range(size)], -2)
    return values, vectors[..., :size, :size, :]


def _rotated(table: Array, turn: tuple[Array, Array], axis: int) -> Array:
    """Rows or columns turned in pairs, and moved on."""
    cosine, sine = (part[..., :, None, :] if axis == -3 else part[..., None, :, :] for part in turn)
    upper, lower = jnp.split(table, 2, axis)
    upper, lower = cosine * upper - sine * lower, sine * upper + cosine * lower
    half = upper.shape[axis]
    if half == 1:
        return jnp.concatenate([upper, lower], axis)

    def part(of: Array, first: int, last: int) -> Array:
        return jax.lax.slice_in_dim(of, first, last, axis=of.ndim + axis)

    order = [(upper, 0, 1), (lower, 0, 1), (upper, 1, half - 1), (lower, 1, half)]
    return jnp.concatenate([*(part(*one) for one in order), part(upper, half - 1, half)], axis)


def weighed(matrix: Array, given: Array, weight: Callable[[Array], Array], noise: float) -> Array:
    """`weight` of the eigenvalues of positive semidefinite matrices, on fields (kinds, ..., size,
    lanes).

    The weight is shown the eigenvalues (size, ..., lanes) largest first, those within `noise` of
    zero as zero.
    """
    values, vectors = decomposed(matrix)
    listed = [values[..., i, :] for i in range(values.shape[-2])]
    each = jnp.stack(listed)
    # Places, largest first and the first of equals before the others, counted elementwise: a sort
    # would not use the lanes.
    numbers = jnp.arange(len(listed)).reshape(-1, *[1] * listed[0].ndim)
    larger = ((one > each) | ((one == each) & (i < numbers)) for i, one in enumerate(listed))
    place = keep(_total(part.astype(numbers.dtype) for part in larger))
    ordered = keep(_total(jnp.where(numbers == place[i], one, 0.0) for i, one in enumerate(listed)))
    found = weight(jnp.where(ordered > noise * ordered[:1], ordered, 0.0))
    weights = _total(jnp.where(place == i, one, 0.0) for i, one in enumerate(found))
    inside = keep(jnp.moveaxis(weights, 0, -2) * _applied(vectors, given, -2))
    return _applied(vectors, inside, -3)


def _total(parts: Iterable[Array]) -> Array:
    return functools.reduce(operator.add, parts)


def _applied(matrix: Array, given: Array, axis: int) -> Array:
    """A matrix, summed over its columns (-2) or rows (-3), on fields (kinds, ..., size, lanes)."""
    return _total(
        jax.lax.index_in_dim(matrix, j, matrix.ndim + axis, keepdims=False)
        * given[..., j, :][..., None, :]
        for j in range(matrix.shape[axis])
    )
