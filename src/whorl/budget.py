r"""Laws that turn under a budget, and the fastest relaxation that a budget allows.

On the identifiable directions $K$ has the eigenvalues $\lambda_1 \ge \dots \ge \lambda_n > 0$ with
geometric mean $G$ and arithmetic mean $A$. The *rate* of a law is the smallest real part of an
eigenvalue of $K\mathcal{B}$: how fast the slowest error decays in the end.

- *Gain*, $\lVert\mathcal{B}\rVert \le g$: no symmetric law is faster than $g\lambda_n$, which
  `direct` reaches, and no law at all is faster than $gG$, which `geometric` reaches.
- *Dissipation*, the symmetric part $S$ of the loop is given and a skew part is free: no law is
  faster than $\mathrm{tr}\,S/n$, which `gyrating` reaches.

Both are reached by rotating two directions at a time until every one carries the same value (Horn;
Jiang, Hager and Li). Of a pair of modes the rotation takes as much from the strong one as brings it
to the mean, and hands the rest to the weak one. The remainders stay uncoupled, so that $n - 1$
rotations suffice, and since each is computed from logarithms none loses digits, whatever the
condition of $K$. `docs/theory/budgets.md` has the proofs.

The loop of `geometric` has one eigenvalue and one eigenvector. It is the fastest loop and the most
delicate: an error $\epsilon$ of the law moves its eigenvalues by about $\epsilon^{1/n}$.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from whorl import _check
from whorl._check import Numbers
from whorl._show import Shown
from whorl.feedback import Direct, Law, SpectralLaw
from whorl.registry import Field, laws
from whorl.response import Response, need_directions, need_matched
from whorl.system import Matrix
from whorl.turn import joint_skew

Values = Float[Array, "n"]
Kept = Bool[Array, "n"]
Angle = Callable[[Array, Array], tuple[tuple[Array, Array], tuple[Array, Array]]]


class Turning(Law):
    r"""A law of norm $g$: every mode is answered at full gain, in a direction that is turned.

    $\mathcal{B} = g\,V O V^\mathsf{T}$ with the modes $V$ of $K$ and an orthogonal $O$. The other
    sense is the transpose, whose loop has the same eigenvalues. Modes below `tol` times the
    strongest are answered by the error itself.

    Examples:
        >>> isinstance(wh.critical(), wh.Turning), isinstance(wh.rotational(), wh.Turning)
        (True, False)
    """

    gain: Float[Array, ""]
    sense: Float[Array, ""]
    tol: float = eqx.field(static=True)

    @abstractmethod
    def orthogonal(self, eigenvalues: Values, kept: Kept) -> Matrix:
        """The matrix O for eigenvalues, largest first, of which the first ones are kept."""

    def matrix(self, response: Response) -> Matrix:
        need_matched(response, "a law under a gain budget")
        values, kept, modes = resolved_modes(response, self.tol)
        return self._sensed(modes @ self.orthogonal(values, kept) @ modes.T)

    def _sensed(self, orthogonal: Matrix) -> Matrix:
        return self.gain * jnp.where(self.sense > 0, orthogonal, orthogonal.T)


class Geometric(Turning):
    r"""The fastest law of all: $O = PQ^\mathsf{T}$ with $K = QRP^\mathsf{T}$ and $G$ along the
    diagonal of the triangle $R$.
    """

    def orthogonal(self, eigenvalues: Values, kept: Kept) -> Matrix:
        left, right = geometric_factors(eigenvalues, kept)
        return right @ left.T


class Critical(Geometric):
    r"""One sample: the turn at which the two eigenvalues of the loop meet.

    $\cos\varphi = 2\sqrt{\lambda_1\lambda_2}/(\lambda_1 + \lambda_2)$ in two directions, in the
    sense of `quarter_turn`; `geometric` in more.
    """

    def matrix(self, response: Response) -> Matrix:
        self.check(response)
        if response.directions != 2:
            return super().matrix(response)
        need_matched(response, "critical")
        skew = joint_skew(response, None)
        strong, weak = _two(reduced_factor(response))
        # One identifiable direction has no partner to turn into.
        weak = jnp.where(weak > response.resolved(self.tol) * strong, weak, strong)
        cosine, sine = critical_turn(strong, weak)
        return self._sensed(cosine * jnp.eye(2, dtype=skew.dtype) + sine * skew)

    def check(self, response: Response) -> None:
        if response.samples != 1:
            raise ValueError(
                f"critical must act on one sample, but there are {response.samples}: select a "
                "sample, or use geometric or paired for several"
            )
        if response.directions < 2:
            raise ValueError(
                "critical must act on at least 2 directions, but 2 outputs have one, which has no "
                "other to turn into"
            )


class Paired(Turning):
    """Each pair of a strong and a weak mode has its own critical turn.

    The strongest with the weakest, the second with the second weakest; the middle one, where the
    number is odd, stays alone.
    """

    least_cosine: Float[Array, ""]

    def orthogonal(self, eigenvalues: Values, kept: Kept) -> Matrix:
        place, count = jnp.arange(eigenvalues.shape[0]), jnp.sum(kept)
        partner = jnp.where(kept, count - 1 - place, place)
        strong = jnp.maximum(eigenvalues, eigenvalues[partner])
        weak = jnp.where(kept, jnp.minimum(eigenvalues, eigenvalues[partner]), strong)
        cosine, sine = critical_turn(strong, weak)
        short = cosine < self.least_cosine
        cosine = jnp.where(short, self.least_cosine, cosine)
        sine = jnp.where(short, jnp.sqrt((1 - cosine) * (1 + cosine)), sine)
        # The strong mode's column gives its sine to the weak one's row, the weak one's takes it.
        signed = jnp.where(place < partner, sine, jnp.where(place > partner, -sine, 0.0))
        return jnp.diag(cosine).at[partner, place].add(signed)


class Gyrating(Law):
    """The fastest law with a given symmetric part of the loop. Make one with `gyrating`."""

    base: SpectralLaw | Float[Array, "_n _n"]
    tol: float = eqx.field(static=True)

    def matrix(self, response: Response) -> Matrix:
        need_matched(response, "gyrating")
        values, kept, modes = resolved_modes(response, self.tol)
        both = kept[:, None] & kept[None, :]
        if isinstance(self.base, SpectralLaw):
            weights = jnp.where(kept, self.base.weight(values), 0.0)
            symmetric = jnp.diag(values * weights)
        else:
            symmetric = modes.T @ self._given(response) @ modes
        loop = jnp.where(both, symmetric, 0.0)
        loop = loop + jnp.where(both, gyration(loop, kept), 0.0)
        inverse = jnp.where(kept, 1.0 / jnp.where(kept, values, 1.0), 0.0)
        return modes @ (inverse[:, None] * loop) @ modes.T

    def _given(self, response: Response) -> Matrix:
        assert not isinstance(self.base, SpectralLaw)
        size = response.directions
        if self.base.shape != (size, size):
            raise ValueError(
                f"symmetric must have the shape {(size, size)} of the reduced response, but its "
                f"shape is {self.base.shape}"
            )
        return self.base.astype(response.system.dtype)


class RateBounds(Shown, eqx.Module):
    """How fast the slowest error may decay under each budget. Make one with `rate_bounds`.

    Examples:
        >>> bounds = wh.rate_bounds(wh.response(net, x, selected=0), gain=2.0)
        >>> bool(bounds.reciprocal < bounds.turning < bounds.gyrating)
        True
    """

    reciprocal: Float[Array, ""]  # gain budget, symmetric laws: g times the smallest eigenvalue
    turning: Float[Array, ""]  # gain budget, all laws: g times the geometric mean
    gyrating: Float[Array, ""]  # the dissipation of direct feedback: g times the arithmetic mean
    rank: int = eqx.field(static=True)

    @property
    def factor(self) -> Float[Array, ""]:
        """What turning can buy under a gain budget: geometric mean over smallest eigenvalue."""
        return self.turning / self.reciprocal

    def __str__(self) -> str:
        many = "1 direction relaxes" if self.rank == 1 else f"{self.rank} directions relax"
        return (
            f"{many} at a rate of at most {float(self.reciprocal):.4g} under "
            f"a symmetric law, {float(self.turning):.4g} under any law of the same gain "
            f"({float(self.factor):.3g} times as fast), and {float(self.gyrating):.4g} where a "
            "skew part of the loop is free."
        )


def rate_bounds(response: Response, gain: ArrayLike = 1.0, *, tol: float = 1e-10) -> RateBounds:
    r"""The largest rates that budgets allow: $g\lambda_n$, $gG$ and $gA$.

    Args:
        response: What is driven, with a matched adjoint.
        gain: The largest norm g of the law, above 0.
        tol: Modes below this share of the strongest are not identifiable.

    Returns:
        The three rates, per unit time.

    Raises:
        ValueError: Where nothing can be moved, the adjoint is not matched, or what is given is no
            response.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> loop = wh.certify(wh.closed_loop(K, wh.critical()))
        >>> bool(np.isclose(loop.eigenvalues.real.min(), wh.rate_bounds(K).turning, rtol=1e-6))
        True
    """
    _check.instance("response", response, Response)
    need_matched(response, "rate_bounds")
    need_directions(response)
    size = _check.scalar("gain", gain, above=0.0)
    values, kept, _ = resolved_modes(response, _check.number("tol", tol, least=0.0))
    _check.need_known("the response", "ask for the bounds outside", values)
    chosen = values[: int(np.sum(np.asarray(kept)))]
    if not chosen.size:
        raise ValueError("response must move something, but all its eigenvalues are 0")
    return RateBounds(
        size * chosen[-1],
        size * jnp.exp(jnp.mean(jnp.log(chosen))),
        size * jnp.mean(chosen),
        int(chosen.size),
    )


def critical_turn(strong: Array, weak: Array) -> tuple[Array, Array]:
    r"""Cosine and sine of the turn at which the eigenvalues of a pair meet.

    $\cos\varphi = 2\sqrt{xy}/(x + y)$, geometric over arithmetic mean, and
    $\sin\varphi = (x - y)/(x + y)$.

    Examples:
        >>> from whorl.budget import critical_turn
        >>> [round(float(part), 6) for part in critical_turn(jnp.array(0.8), jnp.array(0.2))]
        [0.8, 0.6]
    """
    total = strong + weak
    safe = jnp.where(total > 0, total, 1.0)
    # Roots before the product: that of two weak eigenvalues may underflow.
    cosine = 2 * jnp.sqrt(strong / safe) * jnp.sqrt(weak / safe)
    return jnp.where(total > 0, cosine, 1.0), (strong - weak) / safe


def geometric_factors(eigenvalues: Values, kept: Kept) -> tuple[Matrix, Matrix]:
    r"""Orthogonal Q and P for which $Q^\mathsf{T}\Lambda P$ is a triangle with the geometric mean
    all along its diagonal, up to an order of the directions.

    Args:
        eigenvalues: The diagonal of $\Lambda$, `(n,)`, above 0 where kept.
        kept: Which of them take part; the others stay as they are.

    Returns:
        Q and P, `(n, n)`.

    Examples:
        >>> from whorl.budget import geometric_factors
        >>> Q, P = geometric_factors(jnp.array([0.8, 0.2]), jnp.array([True, True]))
        >>> print(np.round(Q.T @ np.diag([0.8, 0.2]) @ P, 12) + 0.0)
        [[ 0.4 -0.6]
         [ 0.   0.4]]
    """
    logs = jnp.where(kept, jnp.log(jnp.where(kept, eigenvalues, 1.0)), 0.0)
    return _equalised(_centred(logs, kept), kept, _geometric_angle)


def gyration(symmetric: Matrix, kept: Kept) -> Matrix:
    r"""A skew A for which every eigenvalue of S + A has the real part $\mathrm{tr}\,S/n$.

    In a basis in which all diagonal entries of S are equal, $A_{jk} = S_{jk}(j + k)/(j - k)$: then
    $(S + A)D + D(S + A)^\mathsf{T} = 2(\mathrm{tr}\,S/n)D$ with $D = \mathrm{diag}(1, \dots, n)$
    (Lelievre, Nier and Pavliotis). The loop is normal in the metric $D^{-1}$, so that no error
    grows by more than $\sqrt n$.

    Args:
        symmetric: S, `(n, n)`, zero outside of the kept directions.
        kept: Which directions take part.

    Returns:
        A, `(n, n)`.

    Examples:
        >>> from whorl.budget import gyration
        >>> S = jnp.diag(jnp.array([0.7, 0.2]))
        >>> loop = S + gyration(S, jnp.array([True, True]))
        >>> print(np.round(np.linalg.eigvals(loop).real, 12))
        [0.45 0.45]
    """
    values, vectors = jnp.linalg.eigh((symmetric + symmetric.T) / 2)
    # The kept directions are those that the vectors of the others do not reach into.
    inside = jnp.sum(jnp.where(kept[:, None], vectors**2, 0.0), axis=0) > 0.5
    centred = _centred(values, inside)
    basis, _ = _equalised(centred, inside, _arithmetic_angle)
    level = basis.T @ (centred[:, None] * basis)
    place = jnp.arange(1.0, len(values) + 1, dtype=values.dtype)
    apart = place[:, None] - place[None, :]
    ratio = (place[:, None] + place[None, :]) / jnp.where(apart == 0, 1.0, apart)
    skew = jnp.where(apart == 0, 0.0, ratio * (level + level.T) / 2)
    frame = vectors @ basis
    return frame @ skew @ frame.T


def _centred(values: Values, kept: Kept) -> Values:
    """The kept values less their mean, and zero elsewhere."""
    share = kept.astype(values.dtype)
    mean = jnp.sum(share * values) / jnp.maximum(jnp.sum(share), 1.0)
    return jnp.where(kept, values - mean, 0.0)


def _geometric_angle(high: Array, low: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Cosine and sine on the left and on the right, from two logarithms of value over mean."""
    up, down = jnp.expm1(2 * high), -jnp.expm1(2 * low)
    total = up + down
    safe = jnp.where(total > 0, total, 1.0)
    cosine = jnp.where(total > 0, jnp.sqrt(down / safe), 1.0)
    sine = jnp.sqrt(up / safe)
    return (cosine * jnp.exp(high), sine * jnp.exp(low)), (cosine, sine)


def _arithmetic_angle(high: Array, low: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The same cosine and sine on both sides, from two values less their mean."""
    total = high - low
    safe = jnp.where(total > 0, total, 1.0)
    turn = jnp.where(total > 0, jnp.sqrt(-low / safe), 1.0), jnp.sqrt(high / safe)
    return turn, turn


# Compiled once for every number of directions: laws ask for it at every state.
@eqx.filter_jit
def _equalised(centred: Values, alive: Kept, angle: Angle) -> tuple[Matrix, Matrix]:
    """Rotate the highest and the lowest direction, left and right, until all are at the mean.

    The highest is then done, and the lowest holds what is left of both.
    """
    size = centred.shape[0]

    def turn(_: Array | int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        left, right, values, alive = state
        high = jnp.argmax(jnp.where(alive, values, -jnp.inf))
        low = jnp.argmin(jnp.where(alive, values, jnp.inf))
        # What is above the mean by round-off alone may leave nothing below it.
        top, bottom = jnp.maximum(values[high], 0.0), jnp.minimum(values[low], 0.0)
        both = angle(top, bottom)
        moved = [
            jnp.where(high == low, basis, _rotated(basis, high, low, *pair))
            for basis, pair in zip((left, right), both, strict=True)
        ]
        values = jnp.where(high == low, values, values.at[low].set(top + bottom))
        return *moved, values, alive.at[high].set(alive[high] & (high == low))

    eye = jnp.eye(size, dtype=centred.dtype)
    left, right, *_ = jax.lax.fori_loop(0, size - 1, turn, (eye, eye, centred, alive))
    return left, right


def _rotated(basis: Matrix, one: Array, other: Array, cosine: Array, sine: Array) -> Matrix:
    first, second = basis[:, one], basis[:, other]
    mixed = cosine * first + sine * second, cosine * second - sine * first
    return basis.at[:, one].set(mixed[0]).at[:, other].set(mixed[1])


def resolved_modes(response: Response, tol: float) -> tuple[Values, Kept, Matrix]:
    """Eigenvalues of K, largest first, which of them count, and its modes as columns.

    From singular values of a factor of K, which keep twice as many digits of the weak ones. The
    largest entry of every mode is positive, so that a sense that is given persists.
    """
    factor = reduced_factor(response)
    short = max(0, factor.shape[0] - factor.shape[1])
    modes, roots, _ = jnp.linalg.svd(jnp.pad(factor, ((0, 0), (0, short))), full_matrices=False)
    return roots**2, roots**2 > response.resolved(tol) * roots[0] ** 2, signed(modes)


def signed(modes: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """The same modes, as columns, with their largest entries positive."""
    largest = jnp.take_along_axis(modes, jnp.argmax(jnp.abs(modes), axis=0)[None], axis=0)
    return modes * jnp.where(largest < 0, -1.0, 1.0)


def reduced_factor(response: Response) -> Float[Array, "n m"]:
    """A factor of K in zero-sum coordinates."""
    basis = jnp.asarray(response.system.basis(), dtype=response.system.dtype)
    rows = response.factor().reshape(response.samples, response.outputs, -1)
    return jnp.einsum("ap,sam->spm", basis, rows).reshape(response.directions, -1)


def _two(factor: Float[Array, "2 m"]) -> tuple[Array, Array]:
    """The eigenvalues of a 2 x 2 response from a factor, without LAPACK, which loops may not call.

    The product of both comes from the part of one row that is orthogonal to the other, taken off
    twice: their difference would lose its digits.
    """
    size = jnp.sum(factor**2, axis=1)
    heavy = jnp.where(size[0] >= size[1], factor[0], factor[1])
    light = jnp.where(size[0] >= size[1], factor[1], factor[0])
    square = jnp.sum(heavy**2)
    safe = jnp.where(square > 0, square, 1.0)
    for _ in range(2):
        light = light - heavy * (jnp.sum(heavy * light) / safe)
    product = square * jnp.sum(light**2)
    apart = jnp.hypot(size[0] - size[1], 2 * jnp.sum(factor[0] * factor[1]))
    strong = (size[0] + size[1] + apart) / 2
    return strong, product / jnp.where(strong > 0, strong, 1.0)


GAIN = Field("gain", 1.0, 1e-6, 1e6, label="Gain g", help="norm of the law", slider=(0.1, 4.0, 0.1))
COSINE = Field(
    "least_cosine", 0.0, 0.0, 1.0, label="Least cosine", help="0: every turn is critical"
)


def _checked(gain: ArrayLike, sense: ArrayLike, tol: float) -> tuple[Array, Array, float]:
    size, way = _check.scalar("gain", gain, above=0.0), _check.scalar("sense", sense)
    if _check.known(way) and abs(float(way)) != 1:
        raise ValueError(f"sense must be 1 or -1, but it is {float(way):g}")
    return size, way, _check.number("tol", tol, least=0.0, below=1.0)


# No sweep and no estimator: there a law is spectral, and a policy adds the turn.
@laws.register(parameters=(GAIN,), where=())
def critical(gain: ArrayLike = 1.0, sense: ArrayLike = 1, *, tol: float = 1e-10) -> Turning:
    r"""The critical turn of one sample: the fastest relaxation at a given gain.

    With three outputs $\mathcal{B} = g(\cos\varphi\,P + \sin\varphi\,C)$ with $\cos\varphi =
    2\sqrt{\lambda_1\lambda_2}/(\lambda_1 + \lambda_2)$, geometric over arithmetic mean; with more
    outputs `geometric`. The sense has to persist: a fair coin at every update leaves
    $g\cos\varphi$ on average, which is slower than `direct` at the same gain.

    Args:
        gain: The norm g of the law, above 0.
        sense: 1 or -1, which way to turn.
        tol: Modes below this share of the strongest are answered by the error itself.

    Returns:
        The law.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> loop = wh.closed_loop(K, wh.critical(gain=2.0))
        >>> print(
        ...     np.round(
        ...         np.linalg.eigvals(loop.restricted()).real / wh.rate_bounds(K, 2.0).turning, 5
        ...     )
        ... )
        [1. 1.]
    """
    return Critical(*_checked(gain, sense, tol))


@laws.register(parameters=(GAIN,), where=())
def geometric(gain: ArrayLike = 1.0, sense: ArrayLike = 1, *, tol: float = 1e-10) -> Turning:
    r"""The fastest law of norm $g$: every eigenvalue of its loop is $g$ times the geometric mean.

    Its loop is far from normal where the condition of K is large: errors may grow much before they
    decay, and the eigenvalues are sensitive to errors. `paired` is less extreme.

    Args:
        gain: The norm g of the law, above 0.
        sense: 1 or -1, which way to turn; the law of one is the transpose of the other's.
        tol: Modes below this share of the strongest are answered by the error itself.

    Returns:
        The law.

    Examples:
        >>> K = wh.response(net, x[:3])
        >>> B = wh.geometric(gain=0.5).matrix(K)
        >>> bool(np.allclose(B @ B.T, 0.25 * np.eye(6)))
        True
    """
    return Geometric(*_checked(gain, sense, tol))


@laws.register(parameters=(GAIN, COSINE), where=())
def paired(
    gain: ArrayLike = 1.0,
    least_cosine: ArrayLike = 0.0,
    sense: ArrayLike = 1,
    *,
    tol: float = 1e-10,
) -> Turning:
    """The critical turn of every pair of a strong and a weak mode.

    Its rate is g times the smallest geometric mean of a pair.

    Args:
        gain: The norm g of the law, above 0.
        least_cosine: No pair is turned further than to this cosine, from 0 to 1: gentler, slower.
        sense: 1 or -1, which way to turn.
        tol: Modes below this share of the strongest are answered by the error itself.

    Returns:
        The law.

    Examples:
        >>> K = wh.response(net, x[:3])
        >>> bool(np.allclose(wh.paired(least_cosine=1.0).matrix(K), np.eye(6)))
        True
    """
    least = _check.scalar("least_cosine", least_cosine, least=0.0, most=1.0)
    return Paired(*_checked(gain, sense, tol), least)


@laws.register(where=())
def gyrating(symmetric: Law | Numbers | None = None, *, tol: float = 1e-10) -> Law:
    r"""The fastest law whose loop has a given symmetric part: a skew part is added to it.

    All eigenvalues of the loop have the real part $\mathrm{tr}\,S/n$, where a symmetric loop $S$
    has its smallest eigenvalue. A law that may change $S$ at the same trace does as well without
    turning, and the norm of this one is not bounded: it needs the inverse of K.

    Args:
        symmetric: The spectral law whose loop is S, `direct()` if left out; or S itself, in
            zero-sum coordinates `(n, n)`, which must vanish on what is not identifiable.
        tol: Modes below this share of the strongest are not identifiable.

    Returns:
        The law.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> rate = wh.certify(wh.closed_loop(K, wh.gyrating())).eigenvalues.real.min()
        >>> bool(np.isclose(rate, wh.rate_bounds(K).gyrating))
        True
    """
    _, _, tol = _checked(1.0, 1.0, tol)
    if symmetric is None or isinstance(symmetric, SpectralLaw):
        return Gyrating(Direct() if symmetric is None else symmetric, tol)
    if isinstance(symmetric, Law):
        raise ValueError(
            "symmetric must be a spectral law such as direct(), or a symmetric matrix, but it is "
            f"{_check.shown(symmetric)}"
        )
    matrix = _check.array("symmetric", symmetric, 2)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"symmetric must be square, but its shape is {matrix.shape}")
    if _check.known(matrix):
        values = np.asarray(matrix)
        worst = np.abs(values - values.T).max(initial=0.0)
        if worst > 64 * np.finfo(values.dtype).eps * np.abs(values).max(initial=0.0):
            raise ValueError(
                f"symmetric must be symmetric, but it differs from its transpose by {worst:.3g}"
            )
    return Gyrating(matrix, tol)
