r"""Boundary laws: what potential to apply, given the error (Eqs. 14, 18, 19, 20).

A law maps a response and a residual to a potential. `direct`, `repair`, `leaky` and `spectral`
weigh each mode of $K$ by a non-negative $r(\lambda)$: the closed loop $K r(K)$ is then symmetric,
and learning is a preconditioned gradient flow. `rotational` turns the residual before one of these
laws sees it, by $T = \alpha P + \Omega C$ with a skew $C$, and so leaves that class.

To write a law of your own, subclass `Law` and say what its matrix is in the coordinates of
`System.basis`, or `SpectralLaw` and give `weight`.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from whorl import _check
from whorl._check import Numbers
from whorl._show import Valued
from whorl.fast import small
from whorl.registry import Field, laws
from whorl.response import Response, need_matched
from whorl.system import Fields, Matrix
from whorl.turn import joint_skew, turned, zero_sum


class Law(Valued, eqx.Module):
    r"""A linear boundary law $v = \mathcal{B}e$.

    Examples:
        >>> isinstance(wh.direct(), wh.Law), isinstance(wh.rotational(), wh.Law)
        (True, True)
    """

    @abstractmethod
    def matrix(self, response: Response) -> Matrix:
        r"""The matrix $\mathcal{B}$ in the coordinates of `System.basis`."""

    @property
    def damping(self) -> Array | None:
        r"""The $\mu$ of a law that is $(K + \mu)^{-1}$ in all it does; None of every other law.

        Kernels apply such a law by a solve, without the modes of the response.
        """
        return None

    def check(self, response: Response) -> None:
        """Refuse a response that this law cannot act through; most laws can act through any."""

    def potentials(self, response: Response, *errors: Fields) -> tuple[Fields, ...]:
        """The potentials that answer several residuals at one state."""
        matrix = self.matrix(response)
        return tuple(response.lift(matrix @ response.coordinates(error)) for error in errors)

    def parts(self, response: Response, residual: Numbers) -> tuple[Fields, Fields]:
        """The reciprocal and the turning potential, by the symmetric and the skew part of the
        law.
        """
        matrix, error = self.matrix(response), response.field("residual", residual)
        seen = response.coordinates(error)
        straight, turning = ((matrix + sign * matrix.T) / 2 @ seen for sign in (1, -1))
        return response.lift(straight), response.lift(turning)

    def __call__(self, response: Response, residual: Numbers) -> Fields:
        """The potential that answers `residual`."""
        return self.potentials(response, response.field("residual", residual))[0]


class SpectralLaw(Law):
    r"""A law $v = r(K)e$ with $r \ge 0$ on the spectrum of $K$ (Eq. 14).

    Examples:
        >>> wh.leaky(0.5).weight(jnp.array([0.5, 1.5])).tolist()
        [1.0, 0.5]
    """

    @abstractmethod
    def weight(self, eigenvalues: Float[Array, "n"]) -> Float[Array, "n"]:
        r"""The feedback strength $r(\lambda)$ of each mode."""

    def matrix(self, response: Response) -> Matrix:
        need_matched(response, "a spectral law")
        return small.function(self.weight, response.reduced(), response.resolved())


class Direct(SpectralLaw):
    """Apply the error itself: r = 1."""

    def weight(self, eigenvalues: Float[Array, "n"]) -> Float[Array, "n"]:
        return jnp.ones_like(eigenvalues)

    def matrix(self, response: Response) -> Matrix:
        return jnp.eye(response.directions, dtype=response.system.dtype)


class Repair(SpectralLaw):
    r"""Undo the response, where it can be undone.

    $r(\lambda) = 1/\lambda$ above `tol` times the largest, else 0.
    """

    tol: float = eqx.field(static=True)

    def weight(self, eigenvalues: Float[Array, "n"]) -> Float[Array, "n"]:
        kept = eigenvalues > self.tol * jnp.max(eigenvalues)
        return jnp.where(kept, 1.0 / jnp.where(kept, eigenvalues, 1.0), 0.0)

    def matrix(self, response: Response) -> Matrix:
        return jnp.linalg.pinv(
            response.reduced(), rtol=response.resolved(self.tol), hermitian=response.matched
        )


class Leaky(SpectralLaw):
    r"""Undo the response up to a leak.

    $r(\lambda) = 1/(\lambda + \mu)$, the damped metric Gauss-Newton direction.
    """

    mu: Float[Array, "..."]  # a row of them only for `train_many`, one per pair

    @property
    def damping(self) -> Array | None:
        return self.mu if type(self) is Leaky else None  # a subclass may act otherwise

    def weight(self, eigenvalues: Float[Array, "n"]) -> Float[Array, "n"]:
        return 1.0 / (eigenvalues + self._leak())

    def _leak(self) -> Float[Array, ""]:
        if self.mu.ndim:
            raise ValueError(
                f"mu must be one number, except in train_many, but its shape is {self.mu.shape}"
            )
        return self.mu

    def matrix(self, response: Response) -> Matrix:
        damped = self._damped(response)
        self._refuse_round_off(response, damped)
        return small.inverse(damped) if response.matched else jnp.linalg.inv(damped)

    def check(self, response: Response) -> None:
        if _check.known(response, self.mu):
            self._refuse_round_off(response, self._damped(response))

    def _damped(self, response: Response) -> Matrix:
        reduced = response.reduced()
        return reduced + self._leak() * jnp.eye(reduced.shape[0], dtype=reduced.dtype)

    def _refuse_round_off(self, response: Response, damped: Matrix) -> None:
        # Below the round-off of K the leak decides nothing: what is inverted then is that
        # round-off.
        noise = response.resolved()
        if not _check.known(damped, self.mu) or float(self.mu) > noise * np.linalg.norm(damped):
            return
        sizes = np.linalg.svd(np.asarray(damped), compute_uv=False)
        if sizes.size and sizes[-1] <= noise * sizes[0]:
            raise ValueError(
                f"mu must exceed the round-off of a response with modes that answer nothing, "
                f"{noise * sizes[0]:.3g} in {damped.dtype}, but it is {float(self.mu):g}"
            )


class Spectral(SpectralLaw):
    r"""Any $r(\lambda) \ge 0$ of the user's, given as a function of an array of eigenvalues."""

    r: Callable[[Array], ArrayLike]

    def weight(self, eigenvalues: Float[Array, "n"]) -> Float[Array, "n"]:
        values = jnp.asarray(self.r(eigenvalues), dtype=eigenvalues.dtype)
        if values.shape != eigenvalues.shape:
            raise ValueError(
                f"r must return one number an eigenvalue, {eigenvalues.shape}, but it returned the "
                f"shape {values.shape}"
            )
        if _check.known(values):
            bad = ~(np.isfinite(np.asarray(values)) & (np.asarray(values) >= 0))
            if bad.any():
                at, value = np.asarray(eigenvalues)[bad][0], np.asarray(values)[bad][0]
                raise ValueError(
                    f"r must be finite and non-negative on the spectrum, but r({at:.6g}) is "
                    f"{value:.6g}"
                )
        return values


class Rotational(Law):
    r"""Turn the residual, then hand it to a spectral law.

    $\mathcal{B} = r(K)(\alpha P + \Omega C)$ (Eqs. 19, 20).

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> wh.rotational(alpha=1.0, omega=2.0).mixer(K).shape
        (2, 2)
    """

    alpha: Float[Array, ""]
    omega: Float[Array, ""]
    base: SpectralLaw
    skew: Float[Array, "_n _n"] | None

    def mixer(self, response: Response) -> Matrix:
        r"""$T = \alpha P + \Omega C$ in the coordinates of `System.basis` (Eq. 19)."""
        skew = joint_skew(response, self.skew)
        return self.alpha * jnp.eye(skew.shape[0], dtype=skew.dtype) + self.omega * skew

    def matrix(self, response: Response) -> Matrix:
        self.check(response)
        return self.base.matrix(response) @ self.mixer(response)

    def potentials(self, response: Response, *errors: Fields) -> tuple[Fields, ...]:
        self.check(response)
        mixed = (
            self.alpha * error + self.omega * turned(response, self.skew, error) for error in errors
        )
        return self.base.potentials(response, *mixed)

    def parts(self, response: Response, residual: Numbers) -> tuple[Fields, Fields]:
        r"""The reciprocal and the unit rotational potential.

        The law is the first plus $\Omega$ times the second.
        """
        self.check(response)
        error = response.field("residual", residual)
        straight, turning = self.base.potentials(
            response, self.alpha * error, turned(response, self.skew, error)
        )
        return straight, turning

    def check(self, response: Response) -> None:
        self.base.check(response)
        # Through a pseudo-inverse that skips a direction the loop would not be the one the law
        # promises.
        if not (isinstance(self.base, Repair) and _check.known(response)):
            return
        sizes = np.linalg.svd(np.asarray(response.reduced()), compute_uv=False)
        tol = response.resolved(self.base.tol)
        rank = int(np.sum(sizes > tol * sizes[0])) if sizes.size and sizes[0] > 0 else 0
        if rank < sizes.size:
            raise ValueError(
                f"the rotational law must act through a response of full rank {sizes.size} on the "
                f"{'zero-sum ' if zero_sum(response.system.basis()) else ''}fields, "
                f"but its rank is {rank} at tolerance {tol:g}: select one sample, or turn through "
                "base=leaky(...)"
            )


BOUNDARY = "a boundary law such as direct() or leaky(0.1)"
LEAK = Field(
    "leak",
    0.1,
    1e-6,
    1e6,
    argument="mu",
    label="Leak μ",
    help="0: the exact repair",
    slider=(0.0, 1.0, 0.01),
)
ALPHA = Field(
    "alpha",
    1.0,
    0.01,
    100.0,
    label="Relaxing α",
    help="how fast the error falls",
    slider=(0.1, 4.0, 0.1),
    per_pair=False,
)
OMEGA = Field(
    "omega",
    1.0,
    0.0,
    1000.0,
    label="Turning Ω",
    help="how fast the error turns",
    slider=(0.0, 8.0, 0.1),
)


@laws.register()
def direct() -> SpectralLaw:
    """The law that applies the error itself, v = e.

    Examples:
        >>> K, e = wh.response(net, x), wh.residual(net, x, y)
        >>> bool(np.allclose(wh.direct()(K, e), e))
        True
    """
    return Direct()


# No sweep: a pseudo-inverse is LAPACK's, which does not return from some compiled loops.
@laws.register(where=("explorer", "estimator"))
def repair(*, tol: float = 1e-10) -> SpectralLaw:
    """The law that undoes the response on its range, by the Moore-Penrose inverse.

    Modes below `tol` times the largest are left.

    So are modes below the round-off of the response, `response.resolved(tol)`: no inverse of
    round-off is ever applied.

    Args:
        tol: Modes below this share of the largest are left.

    Returns:
        The law.

    Examples:
        >>> K, e = wh.response(net, x, selected=0), wh.residual(net, x, y)[:1]
        >>> bool(np.allclose(K @ wh.repair()(K, e), e))
        True
    """
    return Repair(_check.number("tol", tol, least=0.0, below=1.0))


@laws.register(help="The law that undoes the response up to a leak.", parameters=(LEAK,))
def leaky(mu: Numbers) -> SpectralLaw:
    r"""The law that undoes the response up to a leak, $v = (K + \mu I)^{-1} e$, with `mu` > 0.

    Args:
        mu: The leak, above 0, in the units of the response; in `train_many` one number per pair.

    Returns:
        The law.

    Examples:
        >>> K, e = wh.response(net, x), wh.residual(net, x, y)
        >>> v = wh.leaky(0.1)(K, e)
        >>> bool(np.allclose(K @ v + 0.1 * v, e))
        True
    """
    return Leaky(_check.numbers("mu", mu, above=0.0))


# No name in a design: it takes a function.
@laws.register(help="The law r(K) e for a function r of the eigenvalues.", where=())
def spectral(r: Callable[[Array], ArrayLike]) -> SpectralLaw:
    r"""The law $v = r(K)e$ for a function `r` of the eigenvalues that is finite and non-negative on
    the spectrum.

    Args:
        r: The feedback strength of every mode: a function from eigenvalues `(n,)` to as many
            numbers.

    Returns:
        The law.

    Examples:
        >>> law = wh.spectral(lambda eigenvalues: eigenvalues)
        >>> wh.certify(wh.closed_loop(wh.response(net, x), law)).reciprocal
        True
    """
    if not callable(r):
        raise ValueError(f"r must be a function of the eigenvalues, but it is {_check.shown(r)}")
    return Spectral(r)


# Elsewhere a turn is added to any law: by the policy of a sweep or of the estimator.
@laws.register(parameters=(ALPHA, OMEGA), where=("explorer",))
def rotational(
    alpha: ArrayLike = 1.0,
    omega: ArrayLike = 1.0,
    *,
    base: SpectralLaw | None = None,
    skew: Numbers | None = None,
) -> Rotational:
    r"""The law that turns: relax at rate `alpha` > 0 while rotating at rate `omega`.

    Through `base=repair()`, the default, the closed loop is exactly $\alpha P + \Omega C$; this
    needs a response of full rank on the zero-sum fields. Through `leaky(mu)` it is that up to the
    leak. `skew` is the $C$ to use: `(out, out)` to turn every sample alike (the default is
    `quarter_turn(out)` where outputs conserve mass, else a turn of pairs of directions), or
    `(samples * out, samples * out)` to mix samples as `sample_turn` does.

    Args:
        alpha: Rate at which the residual relaxes, above 0, per unit time.
        omega: Rate at which it turns, per unit time.
        base: The spectral law that the turned residual is handed to; `repair()` if left out.
        skew: The skew matrix C, `(out, out)` or `(samples * out, samples * out)`.

    Returns:
        The law.

    Examples:
        >>> loop = wh.closed_loop(
        ...     wh.response(net, x, selected=0), wh.rotational(alpha=1.0, omega=2.0)
        ... )
        >>> print(np.round(wh.certify(loop).eigenvalues, 9))
        [1.-2.j 1.+2.j]
    """
    base = repair() if base is None else base
    _check.instance("base", base, SpectralLaw, "a spectral law such as repair() or leaky(0.1)")
    matrix = None if skew is None else _check.array("skew", skew, 2)
    return Rotational(
        _check.scalar("alpha", alpha, above=0.0), _check.scalar("omega", omega), base, matrix
    )
