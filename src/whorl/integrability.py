r"""Is a score field a gradient? The reduced one-form and its exterior derivative (Eqs. 8, 9, 10).

A field gives a score to every entry of every block of a product of simplices. Only differences of
scores act, so that with the last entry of each block as reference the field is the one-form $\omega
= \sum_a\sum_{i<d_a} (s^a_i - s^a_{d_a})\,dp^a_i$. The motion is a Shahshahani gradient exactly when
$d\omega = 0$, within blocks and across them. Mind that a preconditioned gradient flow need not be
one: blocks that move at unequal rates, or through a state-dependent inverse, follow a gradient in
another metric.

A point is a tuple of columns, one per block; a field maps such a tuple to a tuple of scores. The
layers of a network are such a point too, with `(out, in)` arrays: their columns are the blocks.
Entries that are zero lie off the support and do not count.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from whorl import _check, _precision, simplex
from whorl._check import Numbers
from whorl._show import Shown
from whorl.geometry import Simplex
from whorl.system import ravel, unravel

COLUMNS = Simplex()
Point = tuple[Array, ...]
Field = Callable[[Point], Sequence[Array]]


class Integrability(Shown, eqx.Module):
    """A score field near one point.

    Its one-form, and how much of its first derivative no potential can have.

    `verdict` is the finding in a word: "closed", "turns", or "cannot tell" where the round-off of
    the derivative is as large as what decides. `closed` is True for the first word only.

    Examples:
        >>> middle = (np.array([0.5, 0.3, 0.2]),)
        >>> wh.integrability(wh.rock_paper_scissors, middle).closed
        False
    """

    one_form: Float[Array, "n"]
    exterior: Float[Array, "n n"]
    rotation: Float[Array, ""]
    roundoff: Float[Array, ""]  # what of the rotational share may be round-off
    asked: float | None = eqx.field(static=True)

    @property
    def tol(self) -> float:
        """The share that counts as none.

        The one asked for, or 1e-10 and the round-off where that is more.
        """
        return (
            _precision.tolerance(float(self.roundoff), 1e-10) if self.asked is None else self.asked
        )

    @property
    def verdict(self) -> str:
        """The finding in a word: "closed", "turns" or "cannot tell"."""
        return _precision.judged(
            float(self.rotation), self.tol, float(self.roundoff), "closed", "turns"
        )

    @property
    def closed(self) -> bool:
        """Whether the field can be a gradient here, as far as the precision can tell."""
        _check.need_known("the rotation", "compare it with tol as an array", self.rotation)
        return self.verdict == "closed"

    def __str__(self) -> str:
        share = f"the rotational share of its derivative is {float(self.rotation):.6g}"
        if self.verdict == _precision.CANNOT_TELL:
            return (
                f"Whether this field is a gradient here cannot be told: {share}, and its round-off"
                f" up to {float(self.roundoff):.3g}."
            )
        verdict = "can be a gradient" if self.closed else "is not a gradient"
        return f"This field {verdict} here: {share} (tolerance {self.tol:.3g})."


def one_form(field: Field, point: Sequence[Numbers]) -> Float[Array, "n"]:
    r"""The components $s^a_i - s^a_{d_a}$ of the reduced one-form at `point` (Eq. 9), block after
    block.

    Args:
        field: A function from a point, a tuple of columns or layers, to scores of the same shapes.
        point: Where: a tuple of columns or layers inside their simplices.

    Returns:
        One number per reduced coordinate, `(n,)`.

    Examples:
        >>> middle = (np.array([0.5, 0.3, 0.2]),)
        >>> print(wh.one_form(wh.rock_paper_scissors, middle))
        [0.1 0.5]
    """
    blocks = _checked_point(point)
    return _covector(field, blocks, _tangents(blocks))


def exterior_derivative(field: Field, point: Sequence[Numbers]) -> Float[Array, "n n"]:
    r"""The antisymmetric matrix $(d\omega)_{ij} = \partial_i\omega_j - \partial_j\omega_i$ in
    reduced coordinates (Eq. 10).

    Args:
        field: A function from a point, a tuple of columns or layers, to scores of the same shapes.
        point: Where: a tuple of columns or layers inside their simplices.

    Returns:
        An antisymmetric matrix over the reduced coordinates, `(n, n)`.

    Examples:
        >>> middle = (np.array([0.5, 0.3, 0.2]),)
        >>> print(wh.exterior_derivative(wh.rock_paper_scissors, middle))
        [[ 0.  6.]
         [-6.  0.]]
    """
    blocks = _checked_point(point)
    slopes, _ = _slopes(field, blocks, _tangents(blocks))
    return slopes.T - slopes


def integrability(
    field: Field, point: Sequence[Numbers], *, tol: float | None = None
) -> Integrability:
    r"""How far `field` is from a gradient at `point`.

    The derivative of the one-form splits into a symmetric part, which a potential may have, and an
    antisymmetric one, $d\omega/2$, which it may not. `rotation` is the size of the second over the
    size of both, in the Shahshahani metric: 0 for a gradient, 1 for pure circulation, and the same
    whichever entry of a block is taken as reference. The field can be a gradient where this share
    is at most `tol`: left out, 1e-10 or the round-off of the share where that is more, as it is in
    single precision.

    Examples:
        >>> middle = (np.array([0.5, 0.3, 0.2]),)
        >>> wh.integrability(lambda point: (jnp.log(point[0]),), middle).closed
        True
    """
    blocks = _checked_point(point)
    tangents = _tangents(blocks)
    slopes, terms = _slopes(field, blocks, tangents)
    frame = _frame(blocks)
    local = frame.T @ slopes @ frame
    whole, skew = jnp.linalg.norm(local), jnp.linalg.norm((local - local.T) / 2)
    slack = _precision.noise(local.dtype, len(local)) * jnp.linalg.norm(
        jnp.abs(frame).T @ terms @ jnp.abs(frame)
    )
    share, roundoff = (
        jnp.where(whole > 0, size / jnp.where(whole > 0, whole, 1.0), 0.0) for size in (skew, slack)
    )
    asked = None if tol is None else _check.number("tol", tol, least=0.0)
    return Integrability(
        _covector(field, blocks, tangents), slopes.T - slopes, share, roundoff, asked
    )


def circulation(field: Field, loop: Sequence[Numbers]) -> Float[Array, ""]:
    r"""The line integral $\oint\omega$ around a closed path.

    `loop` holds one array per block with the points of the path along the first axis, `(points, d)`
    or `(points, out, in)`, the last joined to the first. Gauss-Legendre with three nodes on each
    straight piece: exact for fields of degree five.

    Args:
        field: A function from a point, a tuple of columns or layers, to scores of the same shapes.
        loop: The path: one array per block, `(points, d)` or `(points, out, in)`.

    Returns:
        The integral, one number.

    Examples:
        >>> loop = (np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]),)
        >>> round(float(wh.circulation(wh.rock_paper_scissors, loop)), 9)
        0.48
    """
    paths = tuple(
        _check.array(f"loop {number}", path, _check.axes(f"loop {number}", path))
        for number, path in enumerate(loop)
    )
    if (
        not paths
        or any(path.ndim < 2 or path.shape[0] != paths[0].shape[0] for path in paths)
        or paths[0].shape[0] < 3
    ):
        raise ValueError(
            "loop must hold at least 3 points for each block alike, but its shapes are "
            f"{[path.shape for path in paths]}"
        )
    for number in range(paths[0].shape[0]):
        _checked_point([path[number] for path in paths])
    nodes, weights = np.polynomial.legendre.leggauss(3)

    def piece(start: Point, end: Point) -> Array:
        # Mass is conserved along the chord, so that the scores themselves may stand for their
        # differences.
        chord = tuple(e - s for s, e in zip(start, end, strict=True))
        total = jnp.zeros((), dtype=start[0].dtype)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            between = tuple(s + float(node) * c for s, c in zip(start, chord, strict=True))
            total = total + float(weight) * sum(
                jnp.sum(s * c) for s, c in zip(_scores(field, between), chord, strict=True)
            )
        return total

    result = jnp.sum(jax.vmap(piece)(paths, tuple(jnp.roll(path, -1, axis=0) for path in paths)))
    _check.finite("the circulation", result)
    return result


def rock_paper_scissors(point: Point) -> Point:
    """The scores of rock, paper and scissors against a population.

    The standing example of a conservative field that turns.

    Its motion keeps the product of the three shares, its orbits are closed, and the exterior
    derivative is 6 everywhere.

    Args:
        point: A tuple with one column of three shares.

    Returns:
        A tuple with the three scores.

    Examples:
        >>> print(wh.rock_paper_scissors((jnp.array([0.5, 0.3, 0.2]),))[0])
        [-0.1  0.3 -0.2]
    """
    (column,) = point
    return (jnp.roll(column, 1, axis=0) - jnp.roll(column, -1, axis=0),)


def _scores(field: Field, blocks: Point) -> Point:
    scores = tuple(jnp.asarray(score) for score in field(blocks))
    if [score.shape for score in scores] != [block.shape for block in blocks]:
        raise ValueError(
            f"field must return one score per entry, shapes {[block.shape for block in blocks]}, "
            f"but it returned {[score.shape for score in scores]}"
        )
    return scores


def _covector(
    field: Field, blocks: Point, tangents: Float[np.ndarray, "entries n"]
) -> Float[Array, "n"]:
    flat = _flat(_scores(field, blocks))
    result = jnp.asarray(tangents.T, dtype=flat.dtype) @ flat
    _check.finite("the one-form", result)
    return result


def _slopes(
    field: Field, blocks: Point, tangents: Float[np.ndarray, "entries n"]
) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
    """Row i, column j.

    How component i of the one-form changes along reduced coordinate j; and the size of the terms of
    that sum.
    """
    directions = jnp.asarray(tangents, dtype=blocks[0].dtype)

    def scores(shift: Float[Array, "n"]) -> Float[Array, "entries"]:
        moved = unravel([COLUMNS] * len(blocks), blocks, _flat(blocks) + directions @ shift)
        return _flat(_scores(field, moved))

    raw = jax.jacfwd(scores)(jnp.zeros(tangents.shape[1], dtype=directions.dtype))
    slopes = jnp.asarray(tangents.T, dtype=raw.dtype) @ raw
    _check.finite("the derivative of the field", slopes)
    return slopes, jnp.asarray(np.abs(tangents).T, dtype=raw.dtype) @ jnp.abs(raw)


def _flat(blocks: Point) -> Float[Array, "entries"]:
    return ravel([COLUMNS] * len(blocks), blocks)


def _columns(blocks: Point) -> list[Array]:
    return [column for block in blocks for column in block.reshape(block.shape[0], -1).T]


def _tangents(blocks: Point) -> Float[np.ndarray, "entries n"]:
    """One column a reduced coordinate: what it adds to every entry.

    Each supported entry is moved against the last one of its column.
    """
    pieces, sizes = [], [column.shape[0] for column in _columns(blocks)]
    for column, size in zip(_columns(blocks), sizes, strict=True):
        inside = np.flatnonzero(np.asarray(column)) if _check.known(column) else np.arange(size)
        piece = np.zeros((size, inside.size - 1))
        piece[inside[:-1], np.arange(inside.size - 1)] = 1.0
        piece[inside[-1], :] = -1.0
        pieces.append(piece)
    result = np.asarray(scipy.linalg.block_diag(*pieces))
    if result.shape[1] == 0:
        raise ValueError(
            "point must have a block that can move, but every column has a single positive entry"
        )
    return result


def _frame(blocks: Point) -> Float[Array, "n n"]:
    r"""Tangent vectors, orthonormal in the Shahshahani metric $\sum_i dp_i^2/p_i$, in reduced
    coordinates.
    """
    pieces = []
    for column in _columns(blocks):
        inside = column[np.flatnonzero(np.asarray(column))] if _check.known(column) else column
        if inside.shape[0] > 1:
            # Q(p) in reduced coordinates is the inverse metric; any square root of it is an
            # orthonormal frame.
            pieces.append(jnp.linalg.cholesky(simplex.covariance(inside)[:-1, :-1]))
    return jax.scipy.linalg.block_diag(*pieces)


def _checked_point(point: Sequence[Numbers]) -> Point:
    blocks = tuple(
        _check.array(f"block {number}", block, max(1, _check.axes(f"block {number}", block)))
        for number, block in enumerate(point)
    )
    if not blocks:
        raise ValueError("point must hold at least one block, but it is empty")
    for number, block in enumerate(blocks):
        if block.ndim > 2 or block.shape[0] < 2:
            raise ValueError(
                f"block {number} must be a column or a layer of at least 2 rows, but its shape is "
                f"{block.shape}"
            )
        COLUMNS.check(f"block {number}", block)
    return blocks
