r"""The closed loop $\mathcal{R} = K\mathcal{B}$ and the certificate that it is reciprocal, or that it turns (Eqs. 15, 21).

$\dot e = -\mathcal{R}e$. Learning is called reciprocal when $\mathcal{R}$ is symmetric on the identifiable fields: the range of $K$
inside the zero-sum fields. What is skew there is rotation, whether it came from the boundary law or from a backward transport that
does not match the forward one.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from whorl import _check, simplex
from whorl._check import Numbers
from whorl.feedback import Law
from whorl.response import Matrix, Response


class ClosedLoop(eqx.Module):
    """From residual to velocity, in zero-sum coordinates. Make one with `closed_loop`.

    Under `jax.jit`, `vmap` or a derivative the rank of K, and with it the identifiable fields, cannot be known; the loop itself is.

    Examples:
        >>> wh.closed_loop(wh.response(net, x, selected=0), wh.direct()).restricted().shape
        (2, 2)
    """

    response: Response
    reduced: Matrix
    identifiable: Float[Array, "n rank"] | None  # orthonormal basis of the range of K; None where the loop was traced
    roundoff: float = eqx.field(static=True)  # relative size of what the product K B may have got wrong

    def dense(self) -> Matrix:
        """The loop as a matrix on the flattened fields `(samples, out)`."""
        basis = np.kron(np.eye(self.response.samples), simplex.tangent_basis(self.response.outputs))
        lift = jnp.asarray(basis, dtype=self.reduced.dtype)
        return lift @ self.reduced @ lift.T

    def restricted(self) -> Float[Array, "rank rank"]:
        """The loop on the identifiable fields."""
        if self.identifiable is None:
            raise ValueError("the loop must be made outside jit, vmap and derivatives to know its rank, but it was traced: use reduced")
        return self.identifiable.T @ self.reduced @ self.identifiable


class Dissipation(eqx.Module):
    """How fast the loss falls, mode by mode (Eq. 15)."""

    rates: Float[Array, "n"]  # eigenvalues of the symmetric part of the loop: lambda r(lambda) for a spectral law
    shares: Float[Array, "n"]  # squared size of the residual along each mode

    @property
    def by_mode(self) -> Float[Array, "n"]:
        """What each mode takes from the loss per unit time."""
        return self.rates * self.shares

    @property
    def total(self) -> Float[Array, ""]:
        r"""$-\dot{\mathcal L}$, the whole."""
        return jnp.sum(self.by_mode)


class Certificate(eqx.Module):
    """Whether a closed loop is reciprocal, with the numbers behind the verdict. Print it.

    Examples:
        >>> certificate = wh.certify(wh.closed_loop(wh.response(net, x), wh.leaky(0.1)))
        >>> certificate.reciprocal, certificate.dissipative, round(certificate.index, 9)
        (True, True, 1.0)
    """

    symmetric: Float[Array, "rank rank"]
    skew: Float[Array, "rank rank"]
    eigenvalues: Complex[Array, "rank"]
    tol: float = eqx.field(static=True)

    @property
    def rank(self) -> int:
        """Number of identifiable directions."""
        return self.skew.shape[0]

    @property
    def index(self) -> float:
        """The symmetric share of the loop's squared size: 1 for a reciprocal loop, 0 for one that only turns."""
        whole = _square(self.symmetric) + _square(self.skew)
        return _square(self.symmetric) / whole if whole else 1.0

    @property
    def skewness(self) -> float:
        """Size of the skew part over the size of the loop, the number the verdict compares with `tol`."""
        whole = _square(self.symmetric) + _square(self.skew)
        return float(np.sqrt(_square(self.skew) / whole)) if whole else 0.0

    @property
    def reciprocal(self) -> bool:
        """Whether the skew part is no larger than the tolerance."""
        return self.skewness <= self.tol

    @property
    def dissipative(self) -> bool:
        """Whether the symmetric part is positive semidefinite, so that no residual can grow at any instant."""
        values = np.linalg.eigvalsh(np.asarray(self.symmetric))
        return bool(values.min() >= -self.tol * max(np.sqrt(_square(self.symmetric) + _square(self.skew)), np.finfo(float).tiny))

    def __str__(self) -> str:
        verdict = "reciprocal: it follows a gradient" if self.reciprocal else "not reciprocal: it turns"
        comparison = "within" if self.reciprocal else "above"
        decay = "every residual decays" if self.dissipative else "some residual grows"
        decay_rates, turn_rates = np.real(self.eigenvalues), np.imag(self.eigenvalues)
        return "\n".join(
            (
                f"This loop is {verdict}.",
                f"  skew part   {self.skewness:.3g} of the loop, {comparison} the tolerance {self.tol:.3g}",
                f"  index       {self.index:.6g} (1 reciprocal, 0 pure rotation)",
                f"  decay       {decay_rates.min():.6g} to {decay_rates.max():.6g}; {decay} at every instant",
                f"  rotation    {np.abs(turn_rates).max():.6g} rad per unit time at most",
                f"  directions  {self.rank} identifiable",
            )
        )


def closed_loop(response: Response, law: Law, *, tol: float = 1e-10) -> ClosedLoop:
    """The loop that `law` closes around `response`. Directions below `tol` times the strongest response are not identifiable.

    Examples:
        >>> loop = wh.closed_loop(wh.response(net, x, selected=0), wh.repair())
        >>> bool(np.allclose(loop.restricted(), np.eye(2)))
        True
    """
    _check.instance("response", response, Response)
    if not isinstance(law, Law):
        raise ValueError(f"law must be a boundary law such as direct() or leaky(0.1), but it is {_check.shown(law)}")
    tol = _check.number("tol", tol, least=0.0)
    if response.outputs == 1:
        raise ValueError("the network must have at least 2 outputs to respond, but it has 1")
    physical, boundary = response.reduced(), law.matrix(response)
    loop = physical @ boundary
    _check.finite("the closed loop", loop)
    if not _check.known(physical, boundary):
        return ClosedLoop(response, loop, None, 0.0)
    left, sizes, _ = np.linalg.svd(np.asarray(physical))
    rank = int(np.sum(sizes > tol * sizes[0])) if sizes[0] > 0 else 0
    if rank == 0:
        raise ValueError("the response must have an identifiable direction, but it is zero: every column is frozen or starved")
    # Each entry of a product of two matrices is known to about n eps times the product of their sizes.
    slack = len(sizes) * float(jnp.finfo(loop.dtype).eps) * np.linalg.norm(physical) * np.linalg.norm(boundary)
    size = float(np.linalg.norm(loop))
    return ClosedLoop(response, loop, jnp.asarray(left[:, :rank]), float(slack / size) if size else 0.0)


def certify(loop: ClosedLoop, *, tol: float | None = None) -> Certificate:
    """Certify that a closed loop is reciprocal, or find how it turns.

    The loop counts as reciprocal when its skew part is at most `tol` of its size. Left out, `tol` is 1e-12, or the round-off of the
    product K B where that is more, as it is for the inverse of an ill-conditioned response.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> wh.certify(wh.closed_loop(K, wh.direct())).reciprocal
        True
        >>> wh.certify(wh.closed_loop(K, wh.rotational())).reciprocal
        False
    """
    _check.instance("loop", loop, ClosedLoop)
    _check.need_known("the loop to certify", "certify it outside, or use the skew part of closed_loop(...).reduced", loop)
    matrix = loop.restricted()
    limit = max(1e-12, loop.roundoff) if tol is None else _check.number("tol", tol, least=0.0)
    values = np.linalg.eigvals(np.asarray(matrix)).astype(complex)
    order = np.lexsort((np.imag(values), np.real(values)))
    return Certificate((matrix + matrix.T) / 2, (matrix - matrix.T) / 2, jnp.asarray(values[order]), limit)


def dissipation(loop: ClosedLoop, residual: Numbers) -> Dissipation:
    r"""Split $-\dot{\mathcal L} = e^\mathsf{T}\mathcal{R}e$ over the modes of the symmetric part of the loop (Eq. 15).

    Examples:
        >>> K, e = wh.response(net, x), wh.residual(net, x, y)
        >>> lost = wh.dissipation(wh.closed_loop(K, wh.direct()), e)
        >>> bool(np.isclose(lost.total, np.sum(e * (K @ e))))
        True
    """
    _check.instance("loop", loop, ClosedLoop)
    error = loop.response.coordinates(loop.response.field("residual", residual))
    rates, modes = jnp.linalg.eigh((loop.reduced + loop.reduced.T) / 2)
    return Dissipation(rates[::-1], ((modes.T @ error) ** 2)[::-1])


def _square(matrix: Array) -> float:
    return float(np.sum(np.asarray(matrix) ** 2))
