r"""The closed loop $\mathcal{R} = K\mathcal{B}$ and the certificate that it is reciprocal, or that
it turns (Eqs. 15, 21).

$\dot e = -\mathcal{R}e$. Learning is called reciprocal when $\mathcal{R}$ is symmetric on the
identifiable fields: the range of $K$ inside the zero-sum fields. What is skew there is rotation,
whether it came from the boundary law or from a backward transport that does not match the forward
one.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from whorl import _check, _precision
from whorl._check import Numbers
from whorl.feedback import Law
from whorl.response import Response, need_directions
from whorl.system import Matrix

# What a loop can be found to be, and how it is said. Where round-off hides the skew part, the word
# is that it cannot be told.
RECIPROCAL, TURNS, CANNOT_TELL = "reciprocal", "turns", _precision.CANNOT_TELL
SENTENCES = {
    RECIPROCAL: "This loop is reciprocal: it follows a gradient.",
    TURNS: "This loop is not reciprocal: it turns.",
    CANNOT_TELL: "Whether this loop is reciprocal cannot be told in this precision: its round-off hides its skew part.",
}


class ClosedLoop(eqx.Module):
    """From residual to velocity, in zero-sum coordinates. Make one with `closed_loop`.

    Under `jax.jit`, `vmap` or a derivative the rank of K, and with it the identifiable fields,
    cannot be known; the loop itself is.

    Examples:
        >>> wh.closed_loop(wh.response(net, x, selected=0), wh.direct()).restricted().shape
        (2, 2)
    """

    response: Response
    reduced: Matrix
    identifiable: (
        Float[Array, "n rank"] | None
    )  # orthonormal basis of the range of K; None where the loop was traced
    roundoff: float = eqx.field(
        static=True
    )  # relative size of what the product K B may have got wrong

    def dense(self) -> Matrix:
        """The loop as a matrix on the flattened fields `(samples, out)`."""
        basis = np.kron(np.eye(self.response.samples), self.response.system.basis())
        lift = jnp.asarray(basis, dtype=self.reduced.dtype)
        return lift @ self.reduced @ lift.T

    def restricted(self) -> Float[Array, "rank rank"]:
        """The loop on the identifiable fields."""
        if self.identifiable is None:
            raise ValueError(
                "the loop must be made outside jit, vmap and derivatives to know its rank, but it "
                "was traced: use reduced"
            )
        return self.identifiable.T @ self.reduced @ self.identifiable


class Dissipation(eqx.Module):
    """How fast the total loss falls, mode by mode (Eq. 15).

    Examples:
        >>> K, e = wh.response(net, x), wh.residual(net, x, y)
        >>> lost = wh.dissipation(wh.closed_loop(K, wh.direct()), e)
        >>> lost.rates.shape == lost.shares.shape == lost.by_mode.shape
        True
    """

    rates: Float[
        Array, "n"
    ]  # eigenvalues of the symmetric part of the loop: lambda r(lambda) for a spectral law
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

    `verdict` is the finding in a word: "reciprocal", "turns", or "cannot tell" where the round-off
    of the loop is as large as what decides. `reciprocal` is True for the first word only; False
    does not say that the loop turns.

    Examples:
        >>> certificate = wh.certify(wh.closed_loop(wh.response(net, x), wh.leaky(0.1)))
        >>> certificate.verdict, certificate.dissipative, round(certificate.index, 9)
        ('reciprocal', True, 1.0)
    """

    symmetric: Float[Array, "rank rank"]
    skew: Float[Array, "rank rank"]
    eigenvalues: Complex[Array, "rank"]
    tol: float = eqx.field(static=True)
    roundoff: float = eqx.field(
        static=True, default=0.0
    )  # what of the loop may be wrong, as a share of its size

    @property
    def rank(self) -> int:
        """Number of identifiable directions."""
        return self.skew.shape[0]

    @property
    def index(self) -> float:
        """The symmetric share of the loop's squared size.

        1 for a reciprocal loop, 0 for one that only turns.
        """
        whole = _square(self.symmetric) + _square(self.skew)
        return _square(self.symmetric) / whole if whole else 1.0

    @property
    def skewness(self) -> float:
        """Size of the skew part over the size of the loop, the number the verdict compares with
        `tol`.
        """
        whole = _square(self.symmetric) + _square(self.skew)
        return float(np.sqrt(_square(self.skew) / whole)) if whole else 0.0

    @property
    def verdict(self) -> str:
        """The finding in a word: "reciprocal", "turns" or "cannot tell"."""
        return _precision.judged(self.skewness, self.tol, self.roundoff, RECIPROCAL, TURNS)

    @property
    def reciprocal(self) -> bool:
        """Whether the loop is certified reciprocal.

        Its skew part is no larger than the tolerance, and the precision can tell.
        """
        return self.verdict == RECIPROCAL

    @property
    def dissipative(self) -> bool:
        """Whether the symmetric part is certified positive semidefinite, so that no residual can
        grow at any instant.
        """
        slowest, slack = self._slowest()
        return slowest >= (-slack if self.roundoff <= self.tol else slack)

    def _slowest(self) -> tuple[float, float]:
        """The slowest decay of any residual at any instant, and what of it may be round-off."""
        size = max(np.sqrt(_square(self.symmetric) + _square(self.skew)), np.finfo(float).tiny)
        slowest = np.linalg.eigvalsh(np.asarray(self.symmetric)).min()
        return float(slowest), float(max(self.tol, self.roundoff) * size)

    def _decay(self) -> str:
        slowest, slack = self._slowest()
        if self.dissipative:
            surely = min(slowest, float(np.real(self.eigenvalues).min())) > 0
            return (
                "every residual decays at every instant"
                if surely
                else "no residual grows, up to round-off"
            )
        return (
            "some residual grows" if slowest < -slack else "whether a residual grows cannot be told"
        )

    def __str__(self) -> str:
        share = f"{self.skewness:.3g} of the loop"
        compared = {
            RECIPROCAL: f"within the tolerance {self.tol:.3g}",
            CANNOT_TELL: f"and its round-off up to {self.roundoff:.3g}",
        }
        decay_rates, turn_rates = np.real(self.eigenvalues), np.imag(self.eigenvalues)
        return "\n".join(
            (
                SENTENCES[self.verdict],
                (
                    f"  skew part   {share}, "
                    f"{compared.get(self.verdict, f'above the tolerance {self.tol:.3g}')}"
                ),
                f"  index       {self.index:.6g} (1 reciprocal, 0 pure rotation)",
                (
                    f"  decay       {decay_rates.min():.6g} to {decay_rates.max():.6g}; "
                    f"{self._decay()}"
                ),
                f"  rotation    {np.abs(turn_rates).max():.6g} rad per unit time at most",
                f"  directions  {self.rank} identifiable",
            )
        )


def closed_loop(response: Response, law: Law, *, tol: float = 1e-10) -> ClosedLoop:
    """The loop that `law` closes around `response`.

    Directions below `tol` times the strongest response are not identifiable.

    Nor are those below the round-off of the response, `response.resolved(tol)`, however small `tol`
    is.

    Examples:
        >>> loop = wh.closed_loop(wh.response(net, x, selected=0), wh.repair())
        >>> bool(np.allclose(loop.restricted(), np.eye(2)))
        True
    """
    _check.instance("response", response, Response)
    if not isinstance(law, Law):
        raise ValueError(
            "law must be a boundary law such as direct() or leaky(0.1), but it is "
            f"{_check.shown(law)}"
        )
    tol = _check.number("tol", tol, least=0.0)
    need_directions(response)
    physical, boundary = response.reduced(), law.matrix(response)
    loop = physical @ boundary
    _check.finite("the closed loop", loop)
    if not _check.known(physical, boundary):
        return ClosedLoop(response, loop, None, 0.0)
    left, sizes, _ = np.linalg.svd(np.asarray(physical))
    rank = int(np.sum(sizes > response.resolved(tol) * sizes[0])) if sizes[0] > 0 else 0
    if rank == 0:
        raise ValueError(
            "the response must have an identifiable direction, but it is zero: every column is "
            "frozen or starved"
        )
    # Each entry of a product of two matrices is known to about n eps times the product of their
    # sizes.
    slack = (
        len(sizes)
        * float(jnp.finfo(loop.dtype).eps)
        * np.linalg.norm(physical)
        * np.linalg.norm(boundary)
    )
    size = float(np.linalg.norm(loop))
    return ClosedLoop(
        response, loop, jnp.asarray(left[:, :rank]), float(slack / size) if size else 0.0
    )


def certify(loop: ClosedLoop, *, tol: float | None = None) -> Certificate:
    """Certify that a closed loop is reciprocal, find how it turns, or say that this precision
    cannot tell.

    The loop counts as reciprocal when its skew part is at most `tol` of its size. Left out, `tol`
    is 1e-12, or the round-off of the product K B where that is more, as it is in single precision
    or for the inverse of an ill-conditioned response. A round-off above 1e-3, above a given `tol`,
    or comparable with the skew part leaves no verdict but "cannot tell".

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> wh.certify(wh.closed_loop(K, wh.direct())).verdict
        'reciprocal'
        >>> wh.certify(wh.closed_loop(K, wh.rotational())).verdict
        'turns'
        >>> wh.certify(wh.closed_loop(K, wh.direct()), tol=1e-20).verdict
        'cannot tell'
    """
    _check.instance("loop", loop, ClosedLoop)
    _check.need_known(
        "the loop to certify",
        "certify it outside, or use the skew part of closed_loop(...).reduced",
        loop,
    )
    matrix = loop.restricted()
    limit = (
        _precision.tolerance(loop.roundoff) if tol is None else _check.number("tol", tol, least=0.0)
    )
    values = np.linalg.eigvals(np.asarray(matrix)).astype(complex)
    order = np.lexsort((np.imag(values), np.real(values)))
    return Certificate(
        (matrix + matrix.T) / 2,
        (matrix - matrix.T) / 2,
        jnp.asarray(values[order]),
        limit,
        loop.roundoff,
    )


def dissipation(loop: ClosedLoop, residual: Numbers) -> Dissipation:
    r"""Split $-\dot{\mathcal L} = e^\mathsf{T}\mathcal{R}e$ over the modes of the symmetric part of
    the loop (Eq. 15).

    Args:
        loop: A closed loop.
        residual: The residuals of the samples that the loop acts on, `(samples, out)`.

    Returns:
        Rates and shares, one per mode.

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
