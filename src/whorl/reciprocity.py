r"""The closed loop $\mathcal{R} = K\mathcal{B}$ and the certificate of what it does (Eqs. 15, 21).

$\dot e = -\mathcal{R}e$. Learning is called reciprocal when $\mathcal{R}$ is symmetric on the
identifiable fields: the range of $K$ inside those that the system can reach, the zero-sum ones
where it conserves mass. A skew part comes from the
boundary law or from a backward transport that does not match the forward one. It makes a loop turn
where eigenvalues are complex; where they are real, the loop is a gradient flow in another metric,
as $K\mathcal{B}$ is for every positive definite $\mathcal{B}$.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.errors import JAXTypeError
from jaxtyping import Array, Complex, Float

from whorl import _check, _precision
from whorl._check import Numbers
from whorl._show import Shown, plural
from whorl.feedback import BOUNDARY, Law
from whorl.response import Response, need_directions
from whorl.response import response as respond
from whorl.spectrum import Dynamics, Growth
from whorl.system import Block, Fields, Matrix, System, check_basis
from whorl.verdict import Verdict

SENTENCES = {
    Verdict.RECIPROCAL: "This loop is reciprocal: it follows a gradient.",
    Verdict.GRADIENT: (
        "This loop is not symmetric but does not turn: it follows a gradient in another metric."
    ),
    Verdict.TURNS: "This loop is not reciprocal: it turns.",
    Verdict.BORDERLINE: (
        "This loop is not reciprocal, and whether it turns is borderline: its modes meet within the"
        " tolerance."
    ),
    Verdict.CANNOT_TELL: (
        "Whether this loop is reciprocal cannot be told in this precision: its round-off hides its"
        " skew part."
    ),
}
SHOWN = 3  # turning pairs on one screen
PROBE = 2.0**-7  # the finite residual by which a function that cannot be traced is probed
Motion = Callable[[System, Array, Array], tuple[Block, ...]]


class ClosedLoop(Shown, eqx.Module):
    """From residual to velocity, in the coordinates of `System.basis`. Make one with `closed_loop`.

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

    def __str__(self) -> str:
        known = "" if self.identifiable is None else f", {self.identifiable.shape[1]} identifiable"
        return (
            f"a closed loop over {plural(self.response.directions, 'direction')}{known}; "
            "certify(loop) says whether it turns"
        )

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


class Dissipation(Shown, eqx.Module):
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

    def __str__(self) -> str:
        return (
            f"the loss falls by {float(self.total):.6g} per unit time, over "
            f"{plural(self.rates.size, 'mode')}"
            f" with rates from {float(self.rates.min()):.3g} to {float(self.rates.max()):.3g}"
        )


class Certificate(Shown, eqx.Module):
    """What a closed loop does, with the numbers behind the verdict. Print it.

    `verdict` is the finding in a word: "reciprocal", "gradient in another metric", "turns",
    "borderline" where modes meet within the tolerance, or "cannot tell" where the round-off of the
    loop is as large as what decides. `reciprocal` is True for the first word only; False does not
    say that the loop turns.

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

    @cached_property
    def _spectrum(self) -> Dynamics:
        matrix = np.asarray(self.symmetric, dtype=float) + np.asarray(self.skew, dtype=float)
        fine = self.rank * float(jnp.finfo(self.symmetric.dtype).eps)
        return Dynamics(matrix, max(self.tol, self.roundoff, fine))

    @cached_property
    def verdict(self) -> Verdict:
        """The finding in a word."""
        first = _precision.judged(
            self.skewness, self.tol, self.roundoff, Verdict.RECIPROCAL, Verdict.TURNS
        )
        return Verdict(first) if first != Verdict.TURNS else self._spectrum.verdict

    @property
    def reciprocal(self) -> bool:
        """Whether the loop is certified reciprocal.

        Its skew part is no larger than the tolerance, and the precision can tell.
        """
        return self.verdict == Verdict.RECIPROCAL

    @property
    def metric(self) -> Float[np.ndarray, "rank rank"] | None:
        """The G > 0 that makes G R symmetric, in identifiable coordinates; None where there is
        none.

        Of all such G the one closest to the identity, in the affine-invariant distance
        `norm(logm(G))`. For a reciprocal loop it is the identity.
        """
        if self.verdict == Verdict.RECIPROCAL:
            return np.eye(self.rank)
        return self._spectrum.metric if self.verdict == Verdict.GRADIENT else None

    @property
    def growth(self) -> Growth:
        """How much a residual can grow before it decays, how fast at first, and which one."""
        return self._spectrum.growth

    @property
    def rotations(self) -> list[tuple[float, float, Float[np.ndarray, "rank 2"]]]:
        """Decay rate, rotation rate and plane of every pair of modes that turns."""
        return self._spectrum.rotations if self.verdict == Verdict.TURNS else []

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
        if not slowest < -slack:
            return "whether a residual grows cannot be told"
        growth = self.growth
        if not np.isfinite(growth.factor):
            return "some residual grows without bound"
        return f"some residual grows at first, to {growth.factor:.6g} times its size at most"

    def _special(self) -> list[str]:
        """What only this verdict can show."""
        if self.verdict == Verdict.RECIPROCAL:
            curved = np.linalg.eigvalsh(np.asarray(self.symmetric))
            return [
                (
                    "  potential   half of e.Re, with curvatures from "
                    f"{curved.min():.6g} to {curved.max():.6g}"
                )
            ]
        if (metric := self.metric) is not None:
            return [
                (
                    "  metric      G R is symmetric; the G closest to the identity has condition "
                    f"number {np.linalg.cond(metric):.6g}"
                )
            ]
        return [
            f"  rotation    {rate:.6g} rad per unit time, "
            + (f"{rate / decay / (2 * np.pi):.3g} cycles per e-folding" if decay > 0 else "growing")
            for decay, rate, _ in self.rotations[:SHOWN]
        ] + [f"              and {len(self.rotations) - SHOWN} slower ones"] * (
            len(self.rotations) > SHOWN
        )

    def __str__(self) -> str:
        share = f"{self.skewness:.3g} of the loop"
        compared = {
            Verdict.RECIPROCAL: f"within the tolerance {self.tol:.3g}",
            Verdict.CANNOT_TELL: f"and its round-off up to {self.roundoff:.3g}",
        }
        decay_rates = np.real(self.eigenvalues)
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
                *self._special(),
                f"  directions  {self.rank} identifiable",
            )
        )


def closed_loop(
    response: Response | System,
    law: Law | Numbers,
    rule: Any = None,
    *,
    residual: Numbers | None = None,
    tol: float = 1e-10,
    number: int = 0,
    key: Any = None,
) -> ClosedLoop:
    r"""The loop that a law closes around a response, or a rule around a system at some inputs.

    `closed_loop(response, law)` is the product $K\mathcal{B}$. `closed_loop(system, inputs, rule)`
    probes what the rule does: the derivative of the outputs' velocity by the residual, at the given
    residual or at none. A function that JAX cannot trace is probed by finite residuals, and what
    these leave open counts as round-off.

    Directions below `tol` times the strongest response are not identifiable. Nor are those below
    the round-off of the response, `response.resolved(tol)`, however small `tol` is.

    Args:
        response: The response, or the system where a rule is given.
        law: The boundary law, or the inputs, one row per sample, where a rule is given.
        rule: What trains the system: a `Rule` such as `coupled_learning()`, or a function from
            system, inputs and residual to the velocity of every block.
        residual: Where a rule is probed, `(samples, out)`; zero if left out.
        tol: The share of the strongest response below which a direction is not identifiable.
        number: The update at which a rule that changes with time is probed, counted from 0.
        key: Of a rule that draws: the key with which `learn` would draw.

    Returns:
        The loop, to be certified.

    Raises:
        ValueError: Where nothing can be identified, or a rule does not return a velocity.

    Examples:
        >>> loop = wh.closed_loop(wh.response(net, x, selected=0), wh.repair())
        >>> bool(np.allclose(loop.restricted(), np.eye(2)))
        True
        >>> own = lambda system, inputs, residual: wh.response(system, inputs).velocities(residual)
        >>> wh.certify(wh.closed_loop(net, x, own)).verdict
        'reciprocal'
    """
    tol = _check.number("tol", tol, least=0.0)
    if rule is not None:
        return _probed(_driven(response, law), _motion(rule, number, key), residual, tol)
    response = _check.instance("response", response, Response)
    law = _check.instance("law", law, Law, BOUNDARY)
    need_directions(response)
    check_basis(response.system, response.trace[0])
    physical, boundary = response.reduced(), law.matrix(response)
    loop = physical @ boundary
    _check.finite("the closed loop", loop)
    if not _check.known(physical, boundary):
        return ClosedLoop(response, loop, None, 0.0)
    # Each entry of a product of two matrices is known to about n eps times the product of their
    # sizes.
    sizes = np.linalg.norm(physical) * np.linalg.norm(boundary)
    slack = len(physical) * float(jnp.finfo(loop.dtype).eps) * sizes
    return _identified(response, physical, loop, float(slack), tol)


def _identified(
    response: Response, physical: Matrix, loop: Matrix, slack: float, tol: float
) -> ClosedLoop:
    """The loop with what of it can be identified; `slack` of its size is round-off."""
    left, sizes, _ = np.linalg.svd(np.asarray(physical))
    blur = response.system.blur(response.trace)
    rank = int(np.sum(sizes > max(response.resolved(tol) * sizes[0], blur)))
    if rank == 0:
        about = (
            f"it is at most {sizes[0]:.1g}, which is round-off" if sizes[0] > 0 else "it is zero"
        )
        raise ValueError(
            f"the response must have an identifiable direction, but {about}: every parameter is "
            "frozen, or nothing that it carries reaches an output"
        )
    size = float(np.linalg.norm(loop))
    return ClosedLoop(response, loop, jnp.asarray(left[:, :rank]), slack / size if size else 0.0)


def _driven(system: Any, inputs: Any) -> Response:
    _check.instance("system", system, System)
    found = respond(system, inputs)
    need_directions(found)
    check_basis(system, found.trace[0])
    return found


def _motion(rule: Any, number: int, key: Any) -> Motion:
    """From system, inputs and residual to the velocities that a rule gives the blocks."""
    if hasattr(rule, "scores"):
        if hasattr(rule, "during"):
            made = jnp.asarray(_check.count("number", number, 0))
            if rule.draws or key is not None:
                key = jax.random.fold_in(
                    _check.key(key, f"the rule {type(rule).__name__} draws"), made
                )
            rule = rule.during(made, key)
        return lambda system, *given: system.velocities_of(rule.scores(system, *given))
    if not callable(rule) or isinstance(rule, type):
        raise ValueError(
            "rule must be a Rule such as coupled_learning(), or a function of system, inputs and "
            f"residual, but it is {_check.shown(rule)}"
        )

    def own(system: System, inputs: Array, residual: Fields) -> tuple[Block, ...]:
        given = rule(system, inputs, residual)
        parts: tuple[Any, ...] = tuple(given) if isinstance(given, tuple | list) else (given,)
        shapes, wanted = [jnp.shape(part) for part in parts], [one.shape for one in system.blocks]
        if shapes != wanted:
            raise ValueError(
                f"rule must return velocities of the shapes {wanted} of the blocks, but it "
                f"returned {shapes}"
            )
        return tuple(jnp.asarray(part, dtype=system.dtype) for part in parts)

    return own


def _probed(response: Response, motion: Motion, residual: Any, tol: float) -> ClosedLoop:
    """The derivative of the velocity of the outputs by the residual."""
    base = response.predictions * 0 if residual is None else response.field("residual", residual)
    loop, apart = _derivative(response, motion, base)
    _check.finite("the closed loop", loop)
    physical = response.reduced()
    if not _check.known(physical, loop):
        return ClosedLoop(response, loop, None, 0.0)
    # Solves and sums behind a rule are backward stable: their error is what other last digits of
    # the parameters would make.
    signs = np.random.default_rng(0)
    eps = float(jnp.finfo(loop.dtype).eps)
    shaken = response.system.with_blocks(
        [
            one * (1 + eps * signs.choice([-4.0, 4.0], one.shape)).astype(one.dtype)
            for one in response.system.blocks
        ]
    )
    other, _ = _derivative(respond(shaken, response.trace[0]), motion, base)
    slack = apart + len(loop) * (eps * np.linalg.norm(loop) + np.linalg.norm(other - loop))
    return _identified(response, physical, loop, float(slack), tol)


def _derivative(response: Response, motion: Motion, base: Fields) -> tuple[Matrix, float]:
    """In coordinates of the fields that can be reached, and how much of it is open."""
    system, trace = response.system, response.trace

    def moved(coordinates: Float[Array, "n"]) -> Float[Array, "n"]:
        velocity = motion(system, trace[0], base + response.lift(coordinates))
        return response.coordinates(system.forward(trace, velocity))

    still = jnp.zeros(response.directions, dtype=base.dtype)
    units = jnp.eye(response.directions, dtype=base.dtype)
    try:
        either = jax.vmap(lambda unit: jax.jvp(moved, (still,), (unit,)), out_axes=(None, 1))
        value, slopes = either(units)
        _check.finite("the velocity that the rule gives", value)
        return slopes, 0.0
    except JAXTypeError:  # a function that looks at numbers
        pass

    def difference(size: float) -> Matrix:
        rows = [moved(still + size * unit) - moved(still - size * unit) for unit in units]
        return jnp.stack(rows, axis=1) / (2 * size)

    coarse, fine = difference(PROBE), difference(PROBE / 2)
    return (4 * fine - coarse) / 3, float(np.linalg.norm(fine - coarse))


def certify(loop: ClosedLoop, *, tol: float | None = None) -> Certificate:
    """Certify that a closed loop is reciprocal, that it is a gradient flow in another metric, or
    that it turns, or say that this cannot be told.

    The loop counts as reciprocal when its skew part is at most `tol` of its size. Left out, `tol`
    is 1e-12, or the round-off of the product K B where that is more, as it is in single precision
    or for the inverse of an ill-conditioned response. A round-off above 1e-3, above a given `tol`,
    or comparable with the skew part leaves no verdict but "cannot tell". A loop with a larger skew
    part turns when it is proved that a pair of eigenvalues is complex for every loop within `tol` of
    it; it is a gradient flow in another metric when it has real eigenvalues and a basis of eigenvectors; and it
    is "borderline" where its eigenvalues may meet within the tolerance without one, as those of a
    Jordan block do.

    Args:
        loop: A closed loop, made outside `jax.jit`.
        tol: The largest skew part of a reciprocal loop, as a share of the loop.

    Returns:
        The verdict with the numbers behind it. Print it.

    Raises:
        ValueError: Where `loop` is no closed loop, or was traced.

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
