r"""Real or complex spectrum: does a loop that is not symmetric turn?

Two eigenvalues of a real matrix become complex only after they have met. Close to where a pair
meets, the matrix acts on the plane of the pair as

$$ m + \begin{pmatrix} p & q - w \\ q + w & -p \end{pmatrix}, \qquad
\tfrac14(\lambda_1-\lambda_2)^2 = p^2 + q^2 - w^2, $$

so that the pair turns inside the cone $w^2 > p^2 + q^2$ and decays straight outside it. The
estimate of $(p, q, w)$ is linear in the noise, whose scatter the units tell. The test is the
distance of the estimate from the cone, in units of that scatter, against Student's t: it does not
depend on the coordinates chosen in the plane, it reaches its level where the truth lies on the
cone, and inside either region it errs on the safe side.

Where a third eigenvalue is so near that the three cannot be told apart, the pair's plane is not
known well enough for that. The three are then judged together: of their block M, freed of its
trace, the coefficients of $\lambda^3 - a\lambda - b$, $a = \frac12\operatorname{tr}M^2$ and
$b = \det M$, are smooth in the noise, and all three are real inside the cusp $27b^2 \le 4a^3$. The
distance from the cusp, as that of two numbers (Fisher's F), errs on the safe side. Four and more
that meet are not covered.

That a loop turns is found when one pair is inside its cone; that it is a gradient flow in another
metric when every pair is outside; between, nothing is said.

The interval of a rotation rate inverts the same test. The matrices whose pair turns at the rate
$\omega$ form the surface $w^2 - p^2 - q^2 = \omega^2$, and the interval holds every rate whose
surface is as near to the estimate as noise leaves it. The cone is the surface of rate zero, so the
interval leaves out zero exactly where the test finds a turn. At zero the whole error lies on the
side of larger estimates, as it does for the test; far from zero both sides share it.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import linalg, stats

from whorl.measured.estimate import Matrix, Stack, crossing, sidak

FORM = np.diag([1.0, 1.0, -1.0])  # of the cone
NEAR = 1e-4  # a p-value of "three meet" above which three are judged together
PAIRS = 66  # tried one by one; beyond, only neighbours


@dataclass(frozen=True)
class Pair:
    """Two complex eigenvalues, and their place beside the cone in units of their scatter."""

    value: np.complex128  # the eigenvalue above the real line
    place: Float[np.ndarray, "3"]
    bent: Float[np.ndarray, "3"]  # of the cone, along its axes
    unit: float  # of rates, in which the cone bends so
    free: float
    p: float  # that the two are real

    def _far(self, rate: float) -> float:
        """How far the pair is from turning at this rate."""
        return from_cone(self.place, self.bent, rate / self.unit)

    def _p(self, rate: float) -> float:
        """The p-value of "the pair turns at this rate"."""
        return float(stats.t.sf(self._far(rate), self.free))

    def rates(self, level: float, tried: int) -> tuple[float, float]:
        """The rotation rates that are not rejected, where `tried` pairs are looked at."""
        limit = sidak(level, 1 / tried)
        whole = self._far(0.0)
        usual = float(stats.t.isf(limit, self.free))

        def lower(rate: float) -> float:
            """The share of the level that lies on the side of larger estimates."""
            side = np.sign(self.value.imag - rate)
            apart = whole - side * self._far(rate)
            seen = (float(stats.t.cdf(apart - usual, self.free)) - limit) / (1 - limit)
            return limit + (level / 2 - limit) * max(seen, 0.0)

        rate = self.value.imag
        low = 0.0
        if sidak(self.p, tried) <= level:
            low = crossing(lambda tried: self._p(tried) > lower(tried), 0.0, rate)
        far = 2 * rate
        while far < 1e6 * rate and self._p(far) > level - lower(far):
            far *= 2
        return float(low), float(
            crossing(lambda tried: self._p(tried) <= level - lower(tried), rate, far)
        )


@dataclass(frozen=True)
class Turning:
    """Two p-values, one per boundary claim, and the pairs that turn in the estimate."""

    real: float  # that every eigenvalue is real: small where the loop surely turns
    complex: float  # that some pair turns: small where the loop surely does not
    pairs: tuple[Pair, ...] = ()

    def rates(self, value: np.complex128, level: float, tried: int = 1) -> tuple[float, float]:
        """The interval of the rotation of the pair at `value`, where `tried` loops are looked at."""
        pair = min(self.pairs, key=lambda one: abs(one.value - value))
        return pair.rates(level, len(self.pairs) * tried)


def turning(loop: Matrix, influence: Stack, free: float) -> Turning:
    """Test whether the spectrum of an estimated loop is real.

    Args:
        loop: the estimate `(n, n)`.
        influence: what each independent unit's noise has added to it `(units, n, n)`.
        free: degrees of freedom of the scatter.
    """
    values, right = np.linalg.eig(loop)
    left = np.linalg.pinv(right)
    pairs = []
    for at in np.flatnonzero(np.imag(values) > 0).tolist():
        place, bent, unit = _inside(loop, influence, right, left, at)
        lone = np.flatnonzero(np.imag(values) == 0).tolist()
        frames = (np.linalg.qr(_frame(right, at, other))[0] for other in lone)
        threes = [_three(loop, influence, frame, free) for frame in frames]
        p = max([float(stats.t.sf(from_cone(place, bent), free)), *threes])
        pairs.append(Pair(values[at], place, bent, unit, free, p))
    if pairs:
        # The smallest of several p-values needs Sidak's price.
        smallest = min(pair.p for pair in pairs)
        return Turning(sidak(smallest, len(pairs)), 1.0, tuple(pairs))
    order = np.argsort(np.real(values))
    tried = (
        itertools.combinations(order, 2)
        if len(order) * (len(order) - 1) / 2 <= PAIRS
        else itertools.pairwise(order)
    )
    away = []
    for one, other in tried:
        frame = np.real(right[:, [one, other]])
        place, bent, _ = _placed(loop, influence, frame, np.real(left[[one, other]]))
        away.append(from_cone(place, bent))
    return Turning(1.0, float(stats.t.sf(min(away), free)) if away else 1.0)


def _inside(
    loop: Matrix, influence: Stack, right: np.ndarray, left: np.ndarray, at: int
) -> tuple[np.ndarray, np.ndarray, float]:
    frame = np.stack([np.real(right[:, at]), np.imag(right[:, at])], axis=1)
    dual = np.stack([np.real(left[at]), np.imag(left[at])])
    return _placed(loop, influence, frame, np.linalg.solve(dual @ frame, dual))


def _placed(
    loop: Matrix,
    influence: Stack,
    frame: Float[np.ndarray, "n 2"],
    dual: Float[np.ndarray, "2 n"],
) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"], float]:
    """Where a pair lies, in units of its scatter along the axes of its cone, and how that bends.

    The last number is the unit of rotation rates on that cone.
    """
    place = _cone(dual @ loop @ frame)
    moved = _cone(dual @ influence @ frame)
    scatter = moved.T @ moved
    # A direction without scatter is known exactly, up to round-off.
    size = np.trace(scatter) + 1e-24 * np.sum(place**2)
    if not size:
        return np.zeros(3), np.sort(np.diag(FORM)), 1.0
    unit = float(np.sqrt(size))
    values, vectors = np.linalg.eigh(scatter / size + 1e-12 * np.eye(3))
    root = (vectors * np.sqrt(values)) @ vectors.T
    bent, axes = np.linalg.eigh(root @ FORM @ root)
    return axes.T @ np.linalg.solve(root, place / unit), bent, unit


def _frame(right: np.ndarray, at: int, other: int) -> Float[np.ndarray, "n 3"]:
    """The directions of a pair and of one more eigenvalue."""
    pair, lone = right[:, at], right[:, other]
    return np.stack([np.real(pair), np.imag(pair), np.real(lone)], axis=1)


def _three(loop: Matrix, influence: Stack, frame: Float[np.ndarray, "n 3"], free: float) -> float:
    """The p-value of "these three are real"; 0 where the third is far from the pair."""
    # Rows that are blind to the other eigenvectors, of which the frame's complement knows nothing.
    dual = _dual(loop, frame)
    block, moved = dual @ loop @ frame, dual @ influence @ frame
    bare = block - np.trace(block) / 3 * np.eye(3)
    square = bare @ bare
    half = np.trace(square) / 2
    place = np.array([half, np.linalg.det(bare)])
    # By Cayley and Hamilton the slope of the determinant is M^2 - a.
    slopes = np.stack([bare, square - half * np.eye(3)])
    slopes[1] -= np.trace(slopes[1]) / 3 * np.eye(3)
    change = np.einsum("kij,uji->uk", slopes, moved)
    scatter = change.T @ change
    size = np.sqrt(np.diag(scatter))
    if not size.all():
        return 0.0
    shared = scatter / np.outer(size, size) + 1e-9 * np.eye(2)
    white = np.linalg.inv(np.linalg.cholesky(shared)) / size

    def p(far: float) -> float:
        return float(stats.f.sf(far * (free - 1) / (2 * free), 2, max(free - 1, 1.0)))

    seen, first, second = white @ place, 3 * white[:, 0], 2 * white[:, 1]
    if p(float(seen @ seen)) < NEAR:
        return 0.0
    # The edge of the cusp is a = 3 s^2, b = 2 s^3; the closest point solves a quintic.
    bends = [
        3 * second @ second,
        5 * first @ second,
        2 * first @ first,
        -3 * seen @ second,
        -2 * seen @ first,
        0.0,
    ]
    tried = np.real(np.roots(bends))[:, None]
    return p(float(np.min(np.sum((seen - tried**2 * first - tried**3 * second) ** 2, axis=1))))


def _dual(loop: Matrix, frame: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "3 n"]:
    """The rows that go with an invariant subspace: one on it, zero on the other one."""
    whole = np.linalg.qr(frame, mode="complete")[0]
    inner = whole.T @ loop @ whole
    rows = np.eye(3, len(loop))
    if len(loop) > 3:
        rows[:, 3:] = -linalg.solve_sylvester(inner[:3, :3], -inner[3:, 3:], -inner[:3, 3:])
    return (whole[:, :3].T @ frame).T @ rows @ whole.T


def from_cone(
    place: Float[np.ndarray, "3"], bent: Float[np.ndarray, "3"], rate: float = 0.0
) -> float:
    """The distance of a point from the surface of one rotation rate, sum bent y^2 = -rate^2.

    It is the cone where the rate is zero. Coordinates are along its axes.
    """
    inside = float(np.sum(bent * place**2)) < -(rate**2)
    # The closest point is y / (1 + mu bent), with mu where the sum has that value. The divisor
    # may be tiny along the axis where it vanishes first, so that axis is treated exactly.
    ratio = bent / bent[-1 if inside else 0]
    place = np.where(place == 0, 1e-20 * np.abs(place).max(), place)
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        above = np.sum(bent * (place / (1 - ratio + middle * ratio)) ** 2) > -(rate**2)
        low, high = (middle, high) if above == inside else (low, middle)
    closest = place / (1 - ratio + (low + high) / 2 * ratio)
    return float(np.linalg.norm(place - closest))


def _cone(blocks: Float[np.ndarray, "*many 2 2"]) -> Float[np.ndarray, "*many 3"]:
    first, second, third, last = (
        blocks[..., row, column] for row, column in ((0, 0), (0, 1), (1, 0), (1, 1))
    )
    return np.stack([(first - last) / 2, (second + third) / 2, (third - second) / 2], axis=-1)
