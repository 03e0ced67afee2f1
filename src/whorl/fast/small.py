r"""Small symmetric matrices.

The inverse without LAPACK, and functions of a matrix with a derivative that is right at any rank.

Inside compiled loops over many networks a batched LAPACK call is slow, and with some versions of
jaxlib it never returns. Sweeping each pivot once (Gauss and Jordan, in place) is elementwise work;
for positive definite matrices it needs no pivoting.

The derivative of $f(K)$ weighs every pair of modes by the divided difference $f[\lambda_i,
\lambda_j]$ (Daleckii and Krein). That of the eigenvectors, which automatic differentiation would
take, divides by $\lambda_i - \lambda_j$: by round-off, where two modes answer nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl import _check

LARGEST = 8
NODES, SHARES = np.polynomial.legendre.leggauss(8)
Matrix = Float[Array, "n n"]
Weight = Callable[..., Float[Array, "n"]]


def inverse(matrix: Matrix) -> Matrix:
    """The inverse of a positive definite matrix, by sweeps up to size 8 and by LAPACK above."""
    size = matrix.shape[0]
    if size > LARGEST:
        return jnp.linalg.inv(matrix)
    for k in range(size):
        here = np.arange(size) == k
        row = jnp.where(here, 1.0, matrix[k]) / matrix[k, k]
        column = jnp.where(here, 0.0, matrix[:, k])
        cleared = jnp.where((here[:, None] | here[None, :]), 0.0, matrix)
        matrix = cleared + jnp.where(here[:, None], row[None, :], -column[:, None] * row[None, :])
    return matrix


def function(weight: Weight, matrix: Matrix, noise: float) -> Matrix:
    """The matrix with the modes of a positive semidefinite one and `weight` of its eigenvalues.

    Those within `noise` of zero are zero.
    """
    if _check.known(matrix):
        return _weighed(weight, *modes(matrix, noise))
    pure, parameters = hoisted(weight, matrix.dtype, matrix.shape[0], pairs(matrix.shape[0]))
    return _function(pure, noise, matrix, parameters)


def modes(matrix: Matrix, noise: float) -> tuple[Float[Array, "n"], Matrix]:
    """Eigenvalues, largest first and with those that round-off may have made set to zero, where a
    weight may be undefined; and modes.
    """
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    return jnp.where(values > noise * values[0], values, 0.0), vectors


def hoisted(weight: Weight, dtype: Any, *sizes: int) -> tuple[Weight, tuple[Any, ...]]:
    """The same function on that many eigenvalues, and apart from it the traced numbers it holds,
    which may be differentiated too.
    """
    made = {
        size: jax.closure_convert(lambda values: weight(values), jnp.ones(size, dtype=dtype))
        for size in sizes
    }
    return lambda values, *given: made[values.shape[0]][0](values, *given), tuple(made[sizes[0]][1])


def pairs(size: int) -> int:
    """How many numbers `divided` asks a weight for, between two sets of this size."""
    return 2 * size + size**2 * len(NODES)


def divided(
    weight: Weight, one: Float[Array, "n"], other: Float[Array, "m"], *parameters: Any
) -> Float[Array, "n m"]:
    """The divided differences of `weight` between two sets of eigenvalues.

    Its slope where two are equal.
    """
    pair = (len(one), len(other))
    x, y = jnp.broadcast_to(one[:, None], pair), jnp.broadcast_to(other[None, :], pair)
    top = jnp.maximum(x, y)
    # Between close values the mean slope, by a rule exact to degree 15; between others nothing
    # cancels.
    close = jnp.abs(x - y) <= 0.5 * top
    nodes, shares = (jnp.asarray(part / 2, dtype=one.dtype) for part in (NODES + 1, SHARES))
    between = jnp.where(
        close[:, :, None],
        x[:, :, None] + (y - x)[:, :, None] * nodes[None, None, :],
        top[:, :, None],
    )
    # All in one call, largest first as everywhere, since a weight may look at the largest value it
    # is shown.
    at = jnp.concatenate([one, other, between.ravel()])
    order = jnp.argsort(-at)
    found = jax.jvp(lambda points: weight(points, *parameters), (at[order],), (jnp.ones_like(at),))
    values, slopes = (part[jnp.argsort(order)] for part in found)
    rise = values[: pair[0]][:, None] - values[pair[0] : sum(pair)][None, :]
    mean = jnp.sum(slopes[sum(pair) :].reshape(between.shape) * shares[None, None, :], axis=2)
    return jnp.where(close, mean, rise / jnp.where(close, 1.0, x - y))


def _weighed(weight: Weight, values: Float[Array, "n"], vectors: Matrix) -> Matrix:
    return (vectors * weight(values)[None, :]) @ vectors.T


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _function(weight: Weight, noise: float, matrix: Matrix, parameters: tuple[Any, ...]) -> Matrix:
    return _weighed(lambda values: weight(values, *parameters), *modes(matrix, noise))


@_function.defjvp
def _moved(weight: Weight, noise: float, primals: tuple, tangents: tuple) -> tuple[Matrix, Matrix]:
    (matrix, parameters), (motion, drifts) = primals, tangents
    values, vectors = modes(matrix, noise)
    weights, changes = jax.jvp(lambda *given: weight(values, *given), parameters, drifts)
    inner = divided(weight, values, values, *parameters) * (
        vectors.T @ ((motion + motion.T) / 2) @ vectors
    )
    return _weighed(lambda _: weights, values, vectors), vectors @ (
        inner + jnp.diag(changes)
    ) @ vectors.T
