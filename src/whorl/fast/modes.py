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

from whorl.fast.fused import keep, on_cpu

SWEEPS = 15  # of Jacobi's rotations at most; six or seven do for sizes up to sixteen
STEPS = 6  # of the QR method per mode at most; one or two do


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
    return jnp.moveaxis(keep(jnp.stack(found)), (-2, 0), (0, -2))


def _once(array: Array) -> Array:
    """Made once on every device: what each step reads twice would double with every step."""
    return keep(jax.lax.optimization_barrier(array))


def decomposed(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (..., size, lanes) and modes (..., mode, entry, lanes) of symmetric matrices.

    A CPU makes the matrix tridiagonal first, which takes a tenth of the work; a device, for which
    every small step is a call, takes rotations that do not touch each other side by side.
    """
    if not on_cpu():
        return _by_rotations(matrix)
    size = matrix.shape[-2]
    scale = keep(
        functools.reduce(jnp.maximum, (jnp.abs(matrix[..., i, i, :]) for i in range(size)))
    )
    scale = jnp.where(scale > 0, scale, 1.0)[..., None, :]
    values, modes = _straightened(*_tridiagonal(keep(matrix / scale[..., None, :])))
    return jnp.stack(values, -2) * scale, jnp.stack(modes, -3)


def _tridiagonal(matrix: Array) -> tuple[list[Array], list[Array], list[Array]]:
    """Diagonal, the numbers beside it, and the rows of an orthogonal basis in which a matrix has no
    others, by Householder's reflections.
    """
    size = matrix.shape[-2]
    places = jnp.arange(size)[:, None]
    basis = jnp.broadcast_to(jnp.eye(size, dtype=matrix.dtype)[:, :, None], matrix.shape)

    def mirrored(k: Array, carry: tuple) -> tuple:
        matrix, basis = carry
        row = jax.lax.dynamic_index_in_dim(matrix, k, matrix.ndim - 3, keepdims=False)
        row = jnp.where(places > k, row, 0.0)
        first = jax.lax.dynamic_index_in_dim(row, k + 1, row.ndim - 2, keepdims=False)
        length = jnp.copysign(jnp.sqrt(_inner(row, row)), first)
        mirror = row + jnp.where(places == k + 1, length[..., None, :], 0.0)
        square = length * (length + first)  # half of that of the mirror; nothing is lost in it
        inverse = jnp.where(square > 0, 1 / jnp.where(square > 0, square, 1.0), 0.0)
        mirror, inverse = keep((mirror, inverse[..., None, :]))
        moved = keep(inverse * _applied(matrix, mirror, -2))
        along = _inner(moved, mirror)[..., None, :] * inverse / 2
        moved, seen = keep((moved - along * mirror, inverse * _applied(basis, mirror, -3)))
        turned = mirror[..., :, None, :] * moved[..., None, :, :]
        turned = turned + moved[..., :, None, :] * mirror[..., None, :, :]
        return keep((matrix - turned, basis - mirror[..., :, None, :] * seen[..., None, :, :]))

    matrix, basis = jax.lax.fori_loop(0, size - 2, mirrored, (matrix, basis))
    return (
        [matrix[..., i, i, :] for i in range(size)],
        [matrix[..., i, i + 1, :] for i in range(size - 1)],
        [basis[..., i, :, :] for i in range(size)],
    )


def _inner(one: Array, other: Array) -> Array:
    return _total(one[..., i, :] * other[..., i, :] for i in range(one.shape[-2]))


def _straightened(
    diagonal: list[Array], beside: list[Array], rows: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Eigenvalues and modes of tridiagonal matrices whose basis is `rows`.

    The QR method with Wilkinson's shift, in steps that all lanes take together. Where the number
    beside two places is below round-off nothing is turned, so that lanes that are done, and parts
    that have come apart, are left alone to the bit.
    """
    size = len(diagonal)
    if size == 1:
        return diagonal, rows
    # Once a number is below the round-off of the whole, turning it away changes nothing.
    least = keep(jnp.finfo(rows[0].dtype).eps / 8 * _total(jnp.abs(one) for one in diagonal))

    def step(carry: tuple) -> tuple:
        d, e, rows = (list(part) for part in carry[:3])
        busy = keep([jnp.abs(one) > least for one in e])
        shift, beyond = _shift(d, e, busy), e[0]
        for i in range(size - 1):
            # A chase begins anew behind a place where the matrix has come apart.
            chased = busy[i - 1] if i else False
            x = jnp.where(chased, e[i - 1] if i else 0.0, d[i] - shift)
            z = jnp.where(chased, beyond, e[i])
            length = jnp.sqrt(x * x + z * z)
            turned = busy[i] & (length > 0)
            inverse = 1 / jnp.where(turned, length, 1.0)
            cosine = jnp.where(turned, x * inverse, 1.0)
            sine = jnp.where(turned, z * inverse, 0.0)
            if i:
                length = jnp.where(chased & turned, length, e[i - 1])
            cosine, sine, length = keep((cosine, sine, length))
            e[max(i - 1, 0)] = length if i else e[0]
            by = (d[i + 1] - d[i]) * sine + 2 * cosine * e[i]
            after = jnp.where(turned, cosine * by - e[i], e[i])
            onward = [sine * e[i + 1], cosine * e[i + 1]] if i + 2 < size else []
            d[i], d[i + 1], e[i], *onward = keep(
                [d[i] + sine * by, d[i + 1] - sine * by, after, *onward]
            )
            if onward:
                beyond, e[i + 1] = onward
            one, other = rows[i], rows[i + 1]
            cosine, sine = cosine[..., None, :], sine[..., None, :]
            rows[i : i + 2] = keep([cosine * one + sine * other, cosine * other - sine * one])
        return d, e, rows, carry[3] + 1

    def going(carry: tuple) -> Array:
        busy = (jnp.any(jnp.abs(one) > least) for one in carry[1])
        return functools.reduce(operator.or_, busy) & (carry[3] < STEPS * size)

    diagonal, _, rows, _ = jax.lax.while_loop(going, step, (diagonal, beside, rows, 0))
    return diagonal, rows


def _shift(d: list[Array], e: list[Array], busy: list[Array]) -> Array:
    """Wilkinson's: of the last two places that have not come apart, the eigenvalue nearer to the
    last.
    """
    last = d[1], d[0], e[0]
    for i in range(1, len(e)):
        new = d[i + 1], d[i], e[i]
        last = tuple(jnp.where(busy[i], *pair) for pair in zip(new, last, strict=True))
    end, before, beside = keep(last)
    half = (before - end) / 2
    far = half + jnp.copysign(jnp.sqrt(half * half + beside * beside), half)
    return keep(end - jnp.where(far != 0, beside * beside / jnp.where(far != 0, far, 1.0), 0.0))


def _by_rotations(matrix: Array) -> tuple[Array, Array]:
    """What `decomposed` gives.

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
