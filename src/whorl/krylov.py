r"""Spectral feedback on wide networks: $r(K)e$ from products with $K$ alone.

Lanczos' method (matfree's) builds a small tridiagonal $T$ that $K$ looks like from the residual;
then $r(K)e \approx \lVert e\rVert Q\,r(T)\,e_1$. Because $r$ may be anything, an iterative solver
for linear systems would not do; because $K$ is symmetric and is never built, no dense method would.

Lanczos' steps themselves cannot be differentiated: past the rank of $K$ they go on in directions
that round-off chose, and up to it they leave out where a changed $K$ would lead. The derivative is
therefore written down. With $\theta_i, u_i$ seen from the cotangent $c$ and $\phi_j, w_j$ seen from
$e$ it is $c^\mathsf{T}\,\mathrm{d}r(K)\,e = \sum_{ij} r[\theta_i, \phi_j]\,(c \cdot u_i)(w_j \cdot
e)\, u_i^\mathsf{T}\,\mathrm{d}K\,w_j$ with the divided differences of $r$; the leaky law solves its
defining equation instead.
"""

from typing import Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from whorl import _check
from whorl.budget import Turning, signed
from whorl.fast import small
from whorl.feedback import Law, SpectralLaw
from whorl.response import Response, need_matched
from whorl.system import Fields, Matrix

FIRST = 8  # products before the first look at the error


class Krylov(SpectralLaw):
    """A spectral law applied by Lanczos' method. Make one with `krylov`."""

    base: SpectralLaw
    tol: float = eqx.field(static=True)
    most: int = eqx.field(static=True)

    def weight(self, eigenvalues: Float[Array, "n"]) -> Float[Array, "n"]:
        return self.base.weight(eigenvalues)

    def matrix(self, response: Response) -> Matrix:
        return self.base.matrix(response)

    def potentials(self, response: Response, *errors: Fields) -> tuple[Fields, ...]:
        return tuple(self._potential(response, error) for error in errors)

    def _potential(self, response: Response, error: Fields) -> Fields:
        need_matched(response, "krylov")
        start = response.coordinates(error)
        most = min(self.most, start.shape[0])
        weight, parameters = small.hoisted(self.weight, start.dtype, most, small.pairs(most))
        if parameters or not _check.known(response, error):
            return response.lift(_differentiable(self, response, start, most, weight, parameters))
        if not jnp.any(start != 0):
            return jnp.zeros_like(error)
        order = min(FIRST, most)
        while True:
            answer, change = _answer(self, response, start, order)
            if float(change) <= self.tol:
                return response.lift(answer)
            if order == most:
                raise ValueError(
                    "most must allow enough products with the response for the tolerance "
                    f"{self.tol:g}, "
                    f"but after {order} the answer still changes by {float(change):.3g}"
                )
            order = min(2 * order, most)


class KrylovTurning(Law):
    r"""A law under a gain budget on the directions that Lanczos' method finds from the residual.

    $v = g\lVert e\rVert\,Q\,O(T)\,e_1$: the potential has the norm of the budget. The rate of the
    whole law needs all identifiable directions; of those that `most` products do not find nothing
    is turned, and as the residual changes so do the directions.
    """

    base: Turning
    most: int = eqx.field(static=True)

    def matrix(self, response: Response) -> Matrix:
        return self.base.matrix(response)

    def potentials(self, response: Response, *errors: Fields) -> tuple[Fields, ...]:
        need_matched(response, "krylov")
        return tuple(response.lift(self._potential(response, error)) for error in errors)

    def _potential(self, response: Response, error: Fields) -> Float[Array, "n"]:
        start = response.coordinates(error)
        basis, tridiagonal = _lanczos(response, start, min(self.most, start.shape[0]))
        values, vectors = small.modes(tridiagonal, response.resolved())
        kept = values > response.resolved(self.base.tol) * values[0]
        found = signed(basis.T @ vectors)
        # Past the rank Lanczos' vectors are round-off: there the residual itself answers.
        inside = jnp.where(kept, found.T @ start, 0.0)
        orthogonal = self.base.orthogonal(values, kept)
        turned = jnp.where(self.base.sense > 0, orthogonal, orthogonal.T) @ inside
        return self.base.gain * (start + found @ (turned - inside))


@overload
def krylov(law: SpectralLaw, *, tol: float = ..., most: int = ...) -> SpectralLaw: ...
@overload
def krylov(law: Turning, *, tol: float = ..., most: int = ...) -> Law: ...
def krylov(law: SpectralLaw | Turning, *, tol: float = 1e-10, most: int = 256) -> Law:
    """Apply a spectral law by products with the response alone, for networks too wide to build it.

    The number of products doubles until the answer changes by at most `tol`, relative to its size,
    from the last few of them; more than `most` are an error. Inside `jax.jit` and friends, where no
    answer can be looked at, `most` products are always made.

    The answer has a right derivative in reverse mode (`jax.grad`), to the first order; with `leaky`
    in both modes, to any order.

    For a law under a gain budget, such as `geometric()`, `most` products are made and the modes
    that they find from the residual are turned. The gain is kept; the rate is reached only where
    all identifiable directions are found.

    Args:
        law: A spectral law, such as `leaky(0.1)`, or one under a gain budget.
        tol: How exact the answer must be, relative to its size.
        most: The most products with the response.

    Returns:
        The same law, by products with the response alone.

    Examples:
        >>> K, e = wh.response(net, x), wh.residual(net, x, y)
        >>> bool(np.allclose(wh.krylov(wh.leaky(0.1))(K, e), wh.leaky(0.1)(K, e)))
        True
    """
    if isinstance(law, Turning):
        return KrylovTurning(law, _check.count("most", most))
    _check.instance("law", law, SpectralLaw, "a spectral law such as leaky(0.1)")
    return Krylov(law, _check.number("tol", tol, above=0.0), _check.count("most", most))


@eqx.filter_jit
def _answer(
    law: Krylov, response: Response, start: Float[Array, "n"], order: int
) -> tuple[Float[Array, "n"], Float[Array, ""]]:
    """The answer after `order` products, and how much the last quarter of them changed it."""
    basis, tridiagonal = _lanczos(response, start, order)
    length, noise = jnp.linalg.norm(start), response.resolved()
    fewer = max(1, (3 * order) // 4)
    answer, before = (
        length * (basis[:k].T @ _first_column(law.weight, tridiagonal[:k, :k], noise))
        for k in (order, fewer)
    )
    size = jnp.linalg.norm(answer)
    change = jnp.where(
        order == start.shape[0],
        0.0,
        jnp.linalg.norm(answer - before) / jnp.where(size > 0, size, 1.0),
    )
    return answer, change


def _differentiable(
    law: Krylov,
    response: Response,
    start: Float[Array, "n"],
    order: int,
    weight: small.Weight,
    parameters: tuple[Any, ...],
) -> Float[Array, "n"]:
    """The answer after `order` products, with a derivative."""
    leak = law.base.damping
    if leak is not None:
        return jax.lax.custom_linear_solve(
            lambda vector: _product(response, vector) + leak * vector,
            start,
            lambda _, right: _answer(law, response, right, order)[0],
            symmetric=True,
        )
    try:
        return _applied((response, start, parameters), weight, order)
    except TypeError as unknown:
        if "forward-mode" not in str(unknown):
            raise
        raise ValueError(
            "krylov must be differentiated in reverse mode (jax.grad, jax.vjp) for laws other than "
            "leaky, but forward mode was asked for"
        ) from unknown


class _Seen(eqx.Module):
    """The modes of K as they are seen from one vector.

    Eigenvalues, modes, and the vector along them.
    """

    values: Float[Array, "k"]
    modes: Float[Array, "n k"]
    shares: Float[Array, "k"]


def _seen(response: Response, start: Float[Array, "n"], order: int) -> _Seen:
    basis, tridiagonal = _lanczos(response, start, order)
    values, vectors = small.modes(tridiagonal, response.resolved())
    return _Seen(values, basis.T @ vectors, jnp.linalg.norm(start) * vectors[0])


@eqx.filter_custom_vjp
def _applied(
    moving: tuple[Response, Array, tuple[Any, ...]], weight: small.Weight, order: int
) -> Float[Array, "n"]:
    """r(K) e, as a function of the response, of e and of what r depends on."""
    return _forward(moving, weight, order)[0]


def _forward(
    moving: tuple[Response, Array, tuple[Any, ...]], weight: small.Weight, order: int
) -> tuple[Float[Array, "n"], _Seen]:
    response, start, parameters = moving
    seen = _seen(response, start, order)
    return seen.modes @ (weight(seen.values, *parameters) * seen.shares), seen


_applied.def_fwd(lambda _, *given: _forward(*given))


@_applied.def_bwd
def _backward(
    seen: _Seen,
    cotangent: Float[Array, "n"],
    _: Any,
    moving: Any,
    weight: small.Weight,
    order: int,
) -> Any:
    response, _, parameters = moving
    back = _seen(response, cotangent, order)
    terms = (
        small.divided(weight, back.values, seen.values, *parameters)
        * back.shares[:, None]
        * seen.shares[None, :]
    )
    along = seen.shares * (seen.modes.T @ cotangent)
    return (
        _pulled(response, seen.modes.T, (back.modes @ terms).T),
        back.modes @ (weight(back.values, *parameters) * back.shares),
        jax.vjp(lambda *given: jnp.sum(along * weight(seen.values, *given)), *parameters)[1](
            jnp.ones((), dtype=along.dtype)
        ),
    )


def _pulled(
    response: Response, vectors: Float[Array, "k n"], cotangents: Float[Array, "k n"]
) -> Response:
    """The gradient of the sum of cotangent x K vector over all pairs.

    One at a time, since each takes a layer's memory.
    """
    moving, still = eqx.partition(response, eqx.is_inexact_array)

    def one(total: Any, pair: tuple[Array, Array]) -> tuple[Any, None]:
        _, pull = jax.vjp(lambda parts: _product(eqx.combine(parts, still), pair[0]), moving)
        return jax.tree.map(jnp.add, total, pull(pair[1])[0]), None

    return jax.lax.scan(one, jax.tree.map(jnp.zeros_like, moving), (vectors, cotangents))[0]


def _product(response: Response, vector: Float[Array, "n"]) -> Float[Array, "n"]:
    return response.coordinates(response @ response.lift(vector))


def _lanczos(response: Response, start: Float[Array, "n"], order: int) -> tuple[Any, Any]:
    from matfree import decomp

    # Normalised over there. No residual has no direction: any one will do, since the answer has the
    # residual's length.
    somewhere = jnp.where(jnp.any(start != 0), start, jnp.ones_like(start))
    basis, tridiagonal, *_ = decomp.tridiag_sym(order, custom_vjp=False)(
        lambda vector: _product(response, vector), somewhere
    )
    return _no_derivative(basis, tridiagonal)


@jax.custom_jvp
def _no_derivative(basis: Array, tridiagonal: Array) -> tuple[Array, Array]:
    return basis, tridiagonal


@_no_derivative.defjvp
def _refused(*_: Any) -> Any:
    raise ValueError(
        "krylov must be differentiated once at most for laws other than leaky, but a higher "
        "derivative was asked for"
    )


def _first_column(weight: small.Weight, tridiagonal: Array, noise: float) -> Float[Array, "k"]:
    values, vectors = small.modes(tridiagonal, noise)
    return vectors @ (weight(values) * vectors[0])
