r"""One column.

A point of the open simplex, and how it may move (Eqs. 1, 2, 3, 4; Appendix A and B).

A column is a probability vector $p$. The operator $Q(p) = \mathrm{diag}(p) - pp^\mathsf{T}$ turns
any score $s$ into a velocity that conserves mass; it is applied here, never built. The exponential
step moves along a score without leaving the simplex, and its first two derivatives at zero are
$A_p(s)$ (`velocity`) and $B_p(s)$ (`acceleration`).

Every function acts along the first axis, so that it takes one column `(d,)` or a whole layer `(d,
columns)` alike. An entry that is exactly zero lies outside the support: it has no velocity and
stays zero through every step.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

Column = Float[Array, "d *columns"]


def mean(column: Column, score: Column) -> Float[Array, "1 *columns"]:
    r"""The average score $\bar s = p^\mathsf{T} s$ of each column."""
    return jnp.sum(column * score, axis=0, keepdims=True)


def centred(column: Column, score: Column) -> Column:
    r"""The score less its average, $s - \bar s$.

    Scores are first taken relative to that of the heaviest entry. Where a column is nearly all at
    one entry, its own score all but cancels against the average; relative to itself it is exactly
    zero, and every difference keeps its relative precision. Scores off the support have no
    effect, however large.
    """
    heaviest = jnp.argmax(column, axis=0, keepdims=True)
    relative = jnp.where(column > 0, score - jnp.take_along_axis(score, heaviest, axis=0), 0.0)
    return relative - mean(column, relative)


def velocity(column: Column, score: Column) -> Column:
    r"""Apply $Q(p)$ to a score (Eqs. 2, 3).

    Also the first derivative $A_p(s)$ of the exponential path (Eq. B1).

    Examples:
        >>> from whorl import simplex
        >>> print(simplex.velocity(jnp.array([0.5, 0.3, 0.2]), jnp.array([1.0, 0.0, 0.0])))
        [ 0.25 -0.15 -0.1 ]
    """
    return column * centred(column, score)


def acceleration(column: Column, score: Column) -> Column:
    r"""The second derivative $B_p(s)$ of the exponential path at zero (Eq. B2).

    Examples:
        >>> from whorl import simplex
        >>> print(simplex.acceleration(jnp.array([0.5, 0.5]), jnp.array([1.0, 0.0])))
        [0. 0.]
    """
    return column * centred(column, centred(column, score) ** 2)


def covariance(column: Float[Array, "d"]) -> Float[Array, "d d"]:
    r"""The matrix $Q(p)$ of one column (Eq. 2), for small problems and tests.

    The diagonal $p_i(1 - p_i)$ is summed as $\sum_{j\ne i} p_i p_j$, which no subtraction spoils.

    Examples:
        >>> from whorl import simplex
        >>> print(simplex.covariance(jnp.array([0.5, 0.5])))
        [[ 0.25 -0.25]
         [-0.25  0.25]]
    """
    flows = jnp.where(jnp.eye(column.shape[0], dtype=bool), 0.0, jnp.outer(column, column))
    return jnp.diag(jnp.sum(flows, axis=1)) - flows


def safe_root(values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The square root of numbers that are not negative, with the derivative zero where they are
    zero, instead of infinite.
    """
    positive = values > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, values, 1.0)), 0.0)


def covariance_root(column: Float[Array, "d"]) -> Float[Array, "d d"]:
    r"""A square root $S = \mathrm{diag}(u)(I - uu^\mathsf{T})$ of $Q(p) = SS^\mathsf{T}$, with $u =
    \sqrt p$.

    Its diagonal is a sum, so that no subtraction spoils it.
    """
    root = safe_root(column)
    itself = jnp.eye(column.shape[0], dtype=bool)
    others = jnp.sum(jnp.where(itself, 0.0, column[None, :]), axis=1)
    return root[:, None] * (jnp.diag(others) - jnp.where(itself, 0.0, jnp.outer(root, root)))


def step(column: Column, score: Column, step: ArrayLike) -> Column:
    r"""The normalised exponential step $p_i e^{\eta s_i} / \sum_j p_j e^{\eta s_j}$ (Eq. 4).

    Nothing overflows, but a growth of less than about $10^{-308}$ against the largest is zero, and
    a zero stays zero: `trajectory` stops before such a step.

    Examples:
        >>> from whorl import simplex
        >>> print(
        ...     np.round(
        ...         simplex.step(jnp.array([0.5, 0.5]), jnp.array([1.0, 0.0]), np.log(3.0)), 12
        ...     )
        ... )
        [0.75 0.25]
    """
    growth = step * score
    # Subtract the largest exponent on the support, so that nothing overflows. Scores off the support
    # have no effect.
    inside = column > 0
    top = jnp.max(jnp.where(inside, growth, -jnp.inf), axis=0, keepdims=True)
    grown = column * jnp.exp(jnp.where(inside, growth - jax.lax.stop_gradient(top), 0.0))
    return grown / jnp.sum(grown, axis=0, keepdims=True)


def geodesic(column: Column, score: Column, step: ArrayLike) -> Column:
    """The column `step` further along the Shahshahani geodesic that starts with velocity Q(p) s.

    Zero once past the boundary.
    """
    half = centred(column, score) * step / 2
    angle = safe_root(mean(column, half**2))
    root = jnp.cos(angle) + half * jnp.sinc(angle / np.pi)
    # The square hides a crossing: it would send the weight back up. Past half a circle every entry
    # has crossed.
    moved = jnp.where((root > 0) & (angle < np.pi), column * root**2, 0.0)
    # A circle keeps the mass only to round-off, and round-off adds up; the division keeps it from
    # doing so.
    return moved / jnp.sum(moved, axis=0, keepdims=True)


def score(column: Column, velocity: Column) -> Column:
    r"""The replicator representation $s_i = V_i / p_i$ of a tangent velocity (Eq. 8), zero off the
    support.

    Examples:
        >>> from whorl import simplex
        >>> print(simplex.score(jnp.array([0.5, 0.5]), jnp.array([0.25, -0.25])))
        [ 0.5 -0.5]
    """
    inside = column > 0
    return jnp.where(inside, velocity / jnp.where(inside, column, 1.0), 0.0)


def reduce(column: Column) -> Float[Array, "d-1 *columns"]:
    """Drop the last entry, which conservation fixes."""
    return column[:-1]


def expand(reduced: Float[Array, "e *columns"]) -> Float[Array, "e+1 *columns"]:
    """Restore the entry that `reduce` dropped."""
    return jnp.concatenate([reduced, 1.0 - jnp.sum(reduced, axis=0, keepdims=True)])


def tangent_basis(size: int) -> Float[np.ndarray, "d d-1"]:
    """An orthonormal basis of the zero-sum vectors (Helmert's).

    Column k weighs the first k + 1 entries against the next.
    """
    basis = np.zeros((size, size - 1))
    for k in range(1, size):
        basis[:k, k - 1] = 1.0
        basis[k, k - 1] = -k
        basis[:, k - 1] /= np.sqrt(k * (k + 1.0))
    return basis
