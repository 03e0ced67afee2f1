r"""Spectral feedback on wide networks: $r(K)e$ from products with $K$ alone.

Lanczos' method (matfree's) builds a small tridiagonal $T$ that $K$ looks like from the residual; then $r(K)e \approx \lVert e\rVert
Q\,r(T)\,e_1$. Because $r$ may be anything, an iterative solver for linear systems would not do; because $K$ is symmetric and is never
built, no dense method would.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from whorl import _check
from whorl.feedback import SpectralLaw
from whorl.response import Fields, Matrix, Response

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
        start = response.coordinates(error)
        most = min(self.most, start.shape[0])
        if not _check.known(response, error, self):
            return response.lift(_answer(self, response, start, most)[0])
        if not jnp.any(start != 0):
            return jnp.zeros_like(error)
        order = min(FIRST, most)
        while True:
            answer, change = _answer(self, response, start, order)
            if float(change) <= self.tol:
                return response.lift(answer)
            if order == most:
                raise ValueError(
                    f"most must allow enough products with the response for the tolerance {self.tol:g}, "
                    f"but after {order} the answer still changes by {float(change):.3g}"
                )
            order = min(2 * order, most)


def krylov(law: SpectralLaw, *, tol: float = 1e-10, most: int = 256) -> Krylov:
    """Apply a spectral law by products with the response alone, for networks too wide to build it.

    The number of products doubles until the answer changes by at most `tol`, relative to its size, from the last few of them; more
    than `most` are an error. Inside `jax.jit`, where no answer can be looked at, `most` products are always made.

    Examples:
        >>> K, e = wh.response(net, x), wh.residual(net, x, y)
        >>> bool(np.allclose(wh.krylov(wh.leaky(0.1))(K, e), wh.leaky(0.1)(K, e)))
        True
    """
    if not isinstance(law, SpectralLaw):
        raise ValueError(f"law must be a spectral law such as leaky(0.1), but it is {_check.shown(law)}")
    return Krylov(law, _check.number("tol", tol, above=0.0), _check.count("most", most))


@eqx.filter_jit
def _answer(law: Krylov, response: Response, start: Float[Array, "n"], order: int) -> tuple[Float[Array, "n"], Float[Array, ""]]:
    """The answer after `order` products, and how much the last quarter of them changed it."""
    basis, tridiagonal = _lanczos(response, start, order)
    length = jnp.linalg.norm(start)
    fewer = max(1, (3 * order) // 4)
    answer, before = (length * (basis[:k].T @ _first_column(law, tridiagonal[:k, :k])) for k in (order, fewer))
    size = jnp.linalg.norm(answer)
    change = jnp.where(order == start.shape[0], 0.0, jnp.linalg.norm(answer - before) / jnp.where(size > 0, size, 1.0))
    return answer, change


def _lanczos(response: Response, start: Float[Array, "n"], order: int) -> tuple[Any, Any]:
    from matfree import decomp

    def product(vector: Float[Array, "n"]) -> Float[Array, "n"]:
        return response.coordinates(response @ response.lift(vector))

    # Normalised over there. No residual has no direction: any one will do, since the answer has the residual's length.
    somewhere = jnp.where(jnp.any(start != 0), start, jnp.ones_like(start))
    basis, tridiagonal, *_ = decomp.tridiag_sym(order, custom_vjp=False)(product, somewhere)
    return basis, tridiagonal


def _first_column(law: Krylov, tridiagonal: Array) -> Float[Array, "k"]:
    values, vectors = jnp.linalg.eigh(tridiagonal)
    return vectors @ (law.weight(jnp.maximum(values, 0.0)) * vectors[0])
