r"""What a block of parameters lives on, and how it may move there (Eqs. 1, 2, 3, 4 for the
simplex).

A block is one array of parameters, and its geometry says three things. *Where it may be*: columns
on a simplex, positive numbers, any numbers. *How it answers a slope*: the mobility $M$ turns the
slope $g = J^\mathsf{T}v$ into the velocity $Mg$. *How it takes a finite step*: along a score $s$,
which `score` makes from the slope, so that the path stays where it may be and starts with that
velocity.

| geometry | step of size $\eta$ | velocity | score of a slope $g$ |
|---|---|---|---|
| `Simplex` | $p_i e^{\eta s_i} / \sum_j p_j e^{\eta s_j}$ | $Q(p)s$ | $g$ |
| `Positive` | $x e^{\eta s}$ | $x s$ | $m(x) g / x$ |
| `Flat` | $x + \eta s$ | $s$ | $g$ |

Rates multiply the slope before the geometry sees it. The `spread` of a score bounds the step of a
learner (`whorl.learning.policy` has the formula). It is the fastest relative change that the score
causes: of the ratio of two entries of a column, of a positive number, of any number relative to the
`size` that its geometry declares. A spread is one over a time, whatever the parameters are measured
in. To write a geometry of your own, subclass `Geometry`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from whorl import _check, simplex
from whorl.registry import geometries

Block = Float[Array, "..."]
Vector = Float[Array, "_size"]
Rows = Float[Array, "n _size"]


class Geometry(eqx.Module):
    """What one block of parameters lives on. All functions act on the whole block.

    Examples:
        >>> from whorl.geometry import Flat, Positive, Simplex
        >>> point, score = jnp.array([0.5, 0.3, 0.2]), jnp.array([1.0, 0.0, 0.0])
        >>> [
        ...     round(float(kind.step(point, score, 0.1).sum()), 6)
        ...     for kind in (Simplex(), Positive(), Flat())
        ... ]
        [1.0, 1.052585, 1.1]
    """

    # Whether scores are pure numbers: a learner then bounds its step without measuring how fast
    # the outputs move (`policy.envelope`).
    unitless: ClassVar[bool] = False

    @abstractmethod
    def check(self, name: str, point: Block) -> None:
        """Refuse a point that does not lie inside, in one sentence that begins with `name`."""

    @abstractmethod
    def step(self, point: Block, score: Block, step: ArrayLike) -> Block:
        """The point a finite step along a score away."""

    @abstractmethod
    def velocity(self, point: Block, score: Block) -> Block:
        """The first derivative of `step` at size zero."""

    @abstractmethod
    def acceleration(self, point: Block, score: Block) -> Block:
        """The second derivative of `step` at size zero."""

    @abstractmethod
    def spread(self, point: Block, score: Block) -> Float[Array, ""]:
        """The fastest relative change along a score, per unit of time; it bounds a step."""

    @abstractmethod
    def geodesic(self, point: Block, score: Block, step: ArrayLike) -> Block:
        """The point reached along the geodesic of the metric of this mobility, with the velocity of
        the score at its start.
        """

    @abstractmethod
    def root(self, point: Block, rate: ArrayLike, field: Block) -> Block:
        r"""Apply an $S$ with $S S^\mathsf{T} = M$, a square root of the mobility, to a field of the
        block's shape.
        """

    @abstractmethod
    def rooted(self, point: Block, rate: ArrayLike, rows: Rows) -> Rows:
        """Multiply rows, in the order of `ravel`, by the same S from the right."""

    def score(self, point: Block, slope: Block) -> Block:
        """The score that answers a slope, the rate included."""
        del point
        return slope

    def unscore(self, point: Block, velocity: Block) -> Block:
        """The score that a velocity belongs to: undo `velocity`."""
        del point
        return velocity

    def kept(self, before: Block, after: Block) -> Bool[Array, ""]:
        """Whether a point that came from `before` is still inside."""
        del before
        return jnp.all(jnp.isfinite(after))

    def gauge(self, point: Block, slope: Block) -> Block:
        """The slope up to what the mobility annihilates, such that products with it do not
        cancel.
        """
        del point
        return slope

    def chart(self, point: Block) -> Block:
        """Coordinates without boundary, for motion in continuous time."""
        return point

    def point(self, like: Block, chart: Block) -> Block:
        """Undo `chart`; `like` is any point of the same support."""
        del like
        return chart

    def drift(self, point: Block, score: Block) -> Block:
        """How fast the coordinates of `chart` move along a score."""
        del point
        return score

    def ravel(self, block: Block) -> Vector:
        """The block as one vector."""
        return block.ravel()

    def unravel(self, like: Block, vector: Vector) -> Block:
        """Undo `ravel`."""
        return vector.reshape(like.shape)

    def mobility(self, point: Block, rate: ArrayLike) -> Float[Array, "size size"]:
        """The dense matrix M, rates included, in the order of `ravel`; for small blocks."""

        def column(unit: Vector) -> Vector:
            slope = jnp.multiply(rate, self.unravel(point, unit))
            return self.ravel(self.velocity(point, self.score(point, slope)))

        return jax.vmap(column, out_axes=1)(jnp.eye(point.size, dtype=point.dtype))


@geometries.register("simplex", help="Columns that each sum to one.")
class Simplex(Geometry):
    r"""Columns along the first axis, each a probability vector with the mobility $Q(p) =
    \mathrm{diag}(p) - pp^\mathsf{T}$.

    An entry that is exactly zero lies outside the support and stays zero.

    Examples:
        >>> print(wh.Simplex().velocity(jnp.array([0.5, 0.3, 0.2]), jnp.array([1.0, 0.0, 0.0])))
        [ 0.25 -0.15 -0.1 ]
    """

    unitless: ClassVar[bool] = True

    def check(self, name: str, point: Block) -> None:
        if not _check.known(point):
            return
        seen = np.asarray(point)
        _check.every(name, "non-negative", seen, lambda one: one >= 0)
        _check.columns(name, seen)

    def step(self, point: Block, score: Block, step: ArrayLike) -> Block:
        return simplex.step(point, score, step)

    def velocity(self, point: Block, score: Block) -> Block:
        return simplex.velocity(point, score)

    def acceleration(self, point: Block, score: Block) -> Block:
        return simplex.acceleration(point, score)

    def spread(self, point: Block, score: Block) -> Float[Array, ""]:
        inside = point > 0
        top = jnp.max(jnp.where(inside, score, -jnp.inf), axis=0)
        return jnp.max(top - jnp.min(jnp.where(inside, score, jnp.inf), axis=0))

    def geodesic(self, point: Block, score: Block, step: ArrayLike) -> Block:
        return simplex.geodesic(point, score, step)

    def root(self, point: Block, rate: ArrayLike, field: Block) -> Block:
        columns = field.reshape(field.shape[0], -1)
        return jnp.einsum("iok,ki->oi", _roots(point, rate), columns).reshape(point.shape)

    def rooted(self, point: Block, rate: ArrayLike, rows: Rows) -> Rows:
        columns = rows.reshape(rows.shape[0], -1, point.shape[0])
        return jnp.einsum("nio,iok->nik", columns, _roots(point, rate)).reshape(rows.shape)

    def unscore(self, point: Block, velocity: Block) -> Block:
        return simplex.score(point, velocity)

    def kept(self, before: Block, after: Block) -> Bool[Array, ""]:
        # A weight that vanished or became NaN is no longer positive.
        return jnp.all((before > 0) == (after > 0))

    def gauge(self, point: Block, slope: Block) -> Block:
        heaviest = jnp.argmax(point, axis=0, keepdims=True)
        return slope - jnp.take_along_axis(slope, heaviest, axis=0)

    def chart(self, point: Block) -> Block:
        return jnp.log(jnp.where(point > 0, point, 1.0))

    def point(self, like: Block, chart: Block) -> Block:
        # A step of size one from equal weights on the support is the normalised exponential.
        return simplex.step((like > 0).astype(like.dtype), chart, 1.0)

    def drift(self, point: Block, score: Block) -> Block:
        # A score means the same with any constant added to a column; without its mean the
        # logarithms stay near zero.
        return simplex.centred(point, score)

    def mobility(self, point: Block, rate: ArrayLike) -> Float[Array, "size size"]:
        columns = point.reshape(point.shape[0], -1)
        blocks = [
            one * simplex.covariance(p)
            for p, one in zip(columns.T, _each_column(point, rate), strict=True)
        ]
        return jax.scipy.linalg.block_diag(*blocks)

    def ravel(self, block: Block) -> Vector:
        """Column after column (Eq. 1)."""
        return jnp.moveaxis(block, 0, -1).ravel()

    def unravel(self, like: Block, vector: Vector) -> Block:
        return jnp.moveaxis(vector.reshape((*like.shape[1:], like.shape[0])), -1, 0)


class Faces(Simplex):
    r"""Columns that may reach the boundary of the simplex and come back.

    A weight that falls below `least` becomes exactly zero. On the face that is left, everything is
    as on a smaller simplex: $Q(p)$ has no row for the weight, and so the response has none. It
    returns, with twice `least`, as soon as its score exceeds the mean score $p^\mathsf{T}s$ of its
    column: at an optimum no score off the face does. Mass is exact after every step.

    Examples:
        >>> kind = wh.Faces(jnp.array(1e-3))
        >>> print(kind.step(jnp.array([0.5, 0.4995, 0.0005]), jnp.array([1.0, 0.0, -1.0]), 0.0))
        [0.50025013 0.49974987 0.        ]
        >>> bool(kind.step(jnp.array([0.5, 0.5, 0.0]), jnp.array([0.0, 0.0, 1.0]), 0.1)[2] > 0)
        True
    """

    least: Float[Array, ""]

    def step(self, point: Block, score: Block, step: ArrayLike) -> Block:
        return self._moved(simplex.step, point, score, step)

    def geodesic(self, point: Block, score: Block, step: ArrayLike) -> Block:
        return self._moved(simplex.geodesic, point, score, step)

    def _moved(self, move: Any, point: Block, score: Block, step: ArrayLike) -> Block:
        excess = score - simplex.mean(point, score)
        # Scores are known to round-off: one that ties with the mean says nothing.
        scale = jnp.max(jnp.abs(score), axis=0, keepdims=True)
        back = (point == 0) & (excess > 16 * jnp.finfo(point.dtype).eps * scale)
        moved = move(jnp.where(back, 2 * self.least, point), score, step)
        left = jnp.where((moved < self.least) & (excess < 0), 0.0, moved)
        return left / jnp.sum(left, axis=0, keepdims=True)

    def kept(self, before: Block, after: Block) -> Bool[Array, ""]:
        del before
        return jnp.all(jnp.isfinite(after) & (after >= 0))


def _each_column(point: Block, rate: ArrayLike) -> Float[Array, "columns"]:
    """One rate per column."""
    return jnp.broadcast_to(rate, point.shape)[0].ravel()


def _roots(point: Block, rate: ArrayLike) -> Float[Array, "columns d d"]:
    """A square root of the mobility of every column."""
    columns = point.reshape(point.shape[0], -1)
    return jnp.sqrt(_each_column(point, rate))[:, None, None] * jax.vmap(simplex.covariance_root)(
        columns.T
    )


def logarithmic(point: Block) -> Block:
    r"""The mobility $x^2$, under which the logarithm of $x$ follows its own gradient."""
    return point**2


def proportional(point: Block) -> Block:
    r"""The mobility $x$, that of a weight far from the rest of its column."""
    return point


def uniform(point: Block) -> Block:
    """The mobility 1, under which the number itself follows its own gradient."""
    return jnp.ones_like(point)


@geometries.register("positive", help="Positive numbers; a step multiplies.")
class Positive(Geometry):
    r"""Positive numbers with a mobility $m(x)$ of their own.

    The step multiplies, so that no sign is ever lost.

    `law` gives the mobility: `logarithmic`, `proportional`, `uniform`, or your own function of the
    block, positive and element by element.

    Examples:
        >>> from whorl import geometry
        >>> conductance, slope = jnp.array([2.0]), jnp.array([1.0])
        >>> [
        ...     wh.Positive(law).score(conductance, slope).tolist()
        ...     for law in (geometry.logarithmic, geometry.uniform)
        ... ]
        [[2.0], [0.5]]
    """

    law: Callable[[Block], Block] = eqx.field(static=True, default=logarithmic)

    def check(self, name: str, point: Block) -> None:
        if _check.known(point):
            _check.every(name, "positive", np.asarray(point), lambda one: one > 0)

    def step(self, point: Block, score: Block, step: ArrayLike) -> Block:
        return point * jnp.exp(step * score)

    def velocity(self, point: Block, score: Block) -> Block:
        return point * score

    def acceleration(self, point: Block, score: Block) -> Block:
        return point * score**2

    def spread(self, point: Block, score: Block) -> Float[Array, ""]:
        del point
        return jnp.max(jnp.abs(score))

    def geodesic(self, point: Block, score: Block, step: ArrayLike) -> Block:
        # In the arc length, the integral of dx / sqrt(m), a geodesic is a straight line; two
        # mobilities have it in closed form.
        if self.law is proportional:
            return point * jnp.maximum(1 + step * score / 2, 0.0) ** 2
        if self.law is uniform:
            return jnp.maximum(point * (1 + step * score), 0.0)
        return self.step(point, score, step)

    def root(self, point: Block, rate: ArrayLike, field: Block) -> Block:
        return jnp.sqrt(rate * self.law(point)) * field

    def rooted(self, point: Block, rate: ArrayLike, rows: Rows) -> Rows:
        return rows * jnp.sqrt(rate * self.law(point)).ravel()[None, :]

    def score(self, point: Block, slope: Block) -> Block:
        return self.law(point) / point * slope

    def unscore(self, point: Block, velocity: Block) -> Block:
        return velocity / point

    def kept(self, before: Block, after: Block) -> Bool[Array, ""]:
        del before
        return jnp.all((after > 0) & jnp.isfinite(after))

    def chart(self, point: Block) -> Block:
        return jnp.log(point)

    def point(self, like: Block, chart: Block) -> Block:
        del like
        return jnp.exp(chart)


@geometries.register("flat")
class Flat(Geometry):
    """Any numbers, with the mobility 1 and steps that add.

    `size` declares how large a change of these numbers is: one update then changes none of them by
    more than the step scale times `size`. Without it, only the motion of the outputs bounds a step.

    Examples:
        >>> wh.Flat().step(jnp.array([0.5]), jnp.array([-2.0]), 0.5).tolist()
        [-0.5]
        >>> float(wh.Flat(size=10.0).spread(jnp.array([0.5]), jnp.array([-2.0])))
        0.2
    """

    size: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.size is not None:
            _check.number("size", self.size, above=0.0)

    def check(self, name: str, point: Block) -> None:
        del name, point

    def step(self, point: Block, score: Block, step: ArrayLike) -> Block:
        return point + step * score

    def velocity(self, point: Block, score: Block) -> Block:
        del point
        return score

    def acceleration(self, point: Block, score: Block) -> Block:
        del point
        return jnp.zeros_like(score)

    def spread(self, point: Block, score: Block) -> Float[Array, ""]:
        del point
        if self.size is None:
            return jnp.zeros((), dtype=score.dtype)
        return jnp.max(jnp.abs(score)) / self.size

    def geodesic(self, point: Block, score: Block, step: ArrayLike) -> Block:
        return self.step(point, score, step)

    def root(self, point: Block, rate: ArrayLike, field: Block) -> Block:
        return jnp.sqrt(rate * jnp.ones_like(point)) * field

    def rooted(self, point: Block, rate: ArrayLike, rows: Rows) -> Rows:
        return rows * jnp.sqrt(rate * jnp.ones_like(point)).ravel()[None, :]


def block(geometry: Geometry) -> Any:
    """Declare a field of a `System` as parameters on a geometry.

    The field holds one array or a tuple of them.

    Args:
        geometry: What the field's arrays live on: `Simplex()`, `Positive()`, `Flat()` or your own.

    Returns:
        What to assign to the field.

    Examples:
        >>> import equinox as eqx
        >>> from whorl.geometry import Positive, block
        >>> class Line(eqx.Module):
        ...     conductances: jax.Array = block(Positive())
    """
    if not isinstance(geometry, Geometry):
        raise ValueError(
            "geometry must be one of "
            f"{', '.join(f'{known.factory.__name__}()' for known in geometries)} or your own "
            f"Geometry, but it is {_check.shown(geometry)}"
        )
    return eqx.field(metadata={"geometry": geometry})
