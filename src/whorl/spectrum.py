r"""What the flow $\dot e = -Re$ of a square matrix does: whether it turns, and what it descends.

*Real and diagonalisable* is the same as *symmetric in another metric*: with $R = V\Lambda V^{-1}$,
every $G = V^{-\mathsf T}PV^{-1}$ with $P > 0$ that commutes with $\Lambda$ makes $GR$ symmetric,
and the flow descends $\frac12 e^\mathsf{T}GRe$ in the metric $G$. These $G$ form a flat or at least
totally geodesic piece of the cone of positive definite matrices, so the one whose affine-invariant
distance $\lVert\log G\rVert_F$ from the identity is least exists, is unique, and is found by
descent.

*How much may be believed.* Each eigenvalue is known up to its condition number times the error of
the matrix. Eigenvalues whose discs overlap are judged together, on their invariant subspace: a
multiple of the identity there is a repeated eigenvalue, anything else is defective as far as can be
told.

*What surely turns.* Where $\sigma_{\min}(R - z)$ exceeds the error, $z$ is an eigenvalue of no
matrix within the error, so that none crosses a closed curve of such points. A curve of them around
a mode, which does not cross the real axis, proves that every matrix within the error turns
(Trefethen and Embree, Spectra and Pseudospectra, 2005). As $\sigma_{\min}$ changes no faster than
$z$, finitely many points prove it for a whole curve.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Complex, Float
from scipy import linalg, optimize

from whorl.verdict import Verdict

Matrix = Float[np.ndarray, "n n"]
TIMES = 120  # instants at which the growth of a flow is first looked at
STEPS = 500
HALVINGS = 12  # how often a piece of a curve is halved


@dataclass(frozen=True)
class Dynamics:
    r"""What $\dot e=-Re$ does, for a matrix that is known up to `error`.

    Args:
        matrix: R, `(n, n)`.
        error: how far R may be from it, as a share of its Frobenius norm.

    Examples:
        >>> wh.Dynamics(np.array([[2.0, 1.0], [0.0, 1.0]]), 1e-12).verdict.value
        'gradient in another metric'
    """

    matrix: Matrix
    error: float

    @cached_property
    def size(self) -> float:
        """The Frobenius norm."""
        return float(np.linalg.norm(self.matrix))

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues, their condition numbers and the right eigenvectors."""
        scale = self.size or 1.0  # very large and very small entries spoil LAPACK's balancing
        decomposed: Any = linalg.eig(self.matrix / scale, left=True, right=True)
        values, left, right = decomposed
        overlap = np.abs(np.sum(np.conj(left) * right, axis=0))
        return scale * values, 1.0 / np.maximum(overlap, 1e-300), right

    @property
    def values(self) -> Complex[np.ndarray, "n"]:
        """The eigenvalues: slowest decay first, and of a pair the negative rotation first."""
        values = self._eigen[0].astype(complex)
        return values[np.lexsort((np.imag(values), np.real(values)))]

    @cached_property
    def radii(self) -> Float[np.ndarray, "n"]:
        """How far each eigenvalue may lie from where it was found."""
        # A real matrix moves two conjugate eigenvalues at once, which takes the root of two more.
        # Elsner's bound holds where eigenvectors are parallel and the first order says nothing.
        farthest = 2.0 * (self.error / 2.0) ** (1.0 / max(len(self.matrix), 1))
        return np.minimum(self._eigen[1] * self.error / np.sqrt(2.0), farthest) * self.size

    @cached_property
    def clusters(self) -> list[np.ndarray]:
        """Eigenvalues that cannot be told apart, by their places."""
        values, radii = self._eigen[0], self.radii
        apart = np.abs(values[:, None] - values[None, :])
        near = apart <= radii[:, None] + radii[None, :]
        groups: list[set[int]] = []
        for row in near:
            mine = {int(at) for at in np.flatnonzero(row)}
            mine = mine.union(*(group for group in groups if group & mine))
            groups = [group for group in groups if not group & mine] + [mine]
        return [np.array(sorted(group)) for group in groups]

    def turning(self, cluster: np.ndarray) -> bool:
        """Whether the eigenvalues of a cluster are not real, as far as the first order says."""
        reach = np.imag(self._eigen[0][cluster])
        radii = self.radii[cluster]
        return bool((reach > radii).all() or (reach < -radii).all())

    def surely_turning(self, cluster: np.ndarray) -> bool:
        """Whether an eigenvalue near one of a cluster is not real for any matrix within the error.

        This is a proof: curves that do not cross the real axis are tried, from the real axis itself
        to circles around a mode.
        """
        if not self.turning(cluster) or self.size == 0:
            return False
        for mode in self._eigen[0][cluster] / self.size:
            place, height = np.real(mode), abs(np.imag(mode))
            curves = [_half_disc(place, reach * height) for reach in (1.5, 4.0, 16.0)]
            curves += [_disc(complex(place, height), part * height) for part in (0.9, 0.5, 0.2)]
            if any(map(self._walled, [_half_disc(place, 4.0), *curves])):
                return True
        return False

    def _walled(self, curve: np.ndarray) -> bool:
        """Whether no matrix within the error has an eigenvalue on a closed curve of straight pieces,
        given in units of `size`.
        """
        matrix = self.matrix / self.size
        starts, ends = curve, np.roll(curve, -1)
        for _ in range(HALVINGS):
            middles, halves = (starts + ends) / 2, np.abs(ends - starts) / 2
            shifted = matrix[None] - middles[:, None, None] * np.eye(len(matrix))
            least = np.linalg.svd(shifted, compute_uv=False)[:, -1]
            if (least <= self.error).any():
                return False
            # A whole piece is no nearer to an eigenvalue than its middle less half its length.
            open_ = least - halves <= self.error
            if not open_.any():
                return True
            starts, middles, ends = starts[open_], middles[open_], ends[open_]
            starts, ends = np.concatenate([starts, middles]), np.concatenate([middles, ends])
        return False

    @cached_property
    def verdict(self) -> Verdict:
        """Gradient in another metric, turns, or borderline; symmetric or not is not asked here."""
        turning = [cluster for cluster in self.clusters if self.turning(cluster)]
        if any(map(self.surely_turning, turning)):
            return Verdict.TURNS
        if turning:
            return Verdict.BORDERLINE
        # Near a defective matrix an error moves eigenvalues by its root, and with it the frame.
        sound = self.frame is not None and np.linalg.cond(self.frame[0]) ** 2 * self.error < 1.0
        return Verdict.GRADIENT if sound else Verdict.BORDERLINE

    @cached_property
    def frame(self) -> tuple[Matrix, list[np.ndarray]] | None:
        """A real basis in which the matrix is diagonal, and which of its columns share a value.

        None if no such basis is found.
        """
        if any(self.turning(cluster) for cluster in self.clusters):
            return None  # real parts of complex eigenvectors are no basis, or a nearly singular one
        columns, shared, start = [], [], 0
        for cluster in self.clusters:
            basis = self._real_basis(cluster)
            if basis is None:
                return None
            columns.append(basis)
            shared.append(np.arange(start, start + basis.shape[1]))
            start += basis.shape[1]
        return np.concatenate(columns, axis=1), shared

    def _real_basis(self, cluster: np.ndarray) -> np.ndarray | None:
        values, _conditions, right = self._eigen
        if len(cluster) == 1:
            vector = right[:, cluster[0]]
            turned = vector * np.conj(vector[np.argmax(np.abs(vector))])
            return (np.real(turned) / np.linalg.norm(np.real(turned)))[:, None]
        centre = complex(np.mean(values[cluster]))
        if len(cluster) == len(values):
            basis, block = np.eye(len(values)), self.matrix
        else:
            chosen = values[cluster]
            ordered: Any = linalg.schur(
                self.matrix.astype(complex),
                output="complex",
                sort=lambda value: bool(np.min(np.abs(chosen - value)) <= self._gap(cluster)),
            )
            _, basis, count = ordered
            if count != len(cluster):
                return None
            # Of a real subspace, the projector is real.
            projector = np.real(basis[:, :count] @ np.conj(basis[:, :count].T))
            basis = np.linalg.eigh(projector)[1][:, -count:]
            block = basis.T @ self.matrix @ basis
        slack = self.error * self.size * self._subspace(basis)
        scalar = np.linalg.norm(block - centre.real * np.eye(len(block))) <= slack
        return basis if scalar else None

    def _gap(self, cluster: np.ndarray) -> float:
        values = self._eigen[0]
        others = np.delete(values, cluster)
        return float(np.abs(values[cluster][:, None] - others[None, :]).min()) / 2

    def _subspace(self, basis: np.ndarray) -> float:
        """The condition number of an invariant subspace."""
        if basis.shape[1] == len(basis):
            return 1.0
        whole = np.linalg.qr(basis, mode="complete")[0]
        inner = whole.T @ self.matrix @ whole
        count = basis.shape[1]
        # The projector along the other invariant subspace is [1, X] with A X - X B = C.
        coupling = linalg.solve_sylvester(
            inner[:count, :count], -inner[count:, count:], inner[:count, count:]
        )
        return float(np.sqrt(1.0 + np.linalg.norm(coupling, 2) ** 2))

    @cached_property
    def metric(self) -> Matrix | None:
        """Of all G > 0 that make G R symmetric, the closest to the identity; None without any.

        Closest in the affine-invariant distance, the Frobenius norm of the logarithm of G.
        """
        return None if self.frame is None else closest_metric(*self.frame)

    @property
    def rotations(self) -> list[tuple[float, float, Float[np.ndarray, "n 2"]]]:
        """Decay, rotation rate and plane of every pair that turns, the fastest rotation first."""
        values, _, right = self._eigen
        turning = [
            at for at in np.flatnonzero(np.imag(values) > 0) if np.imag(values[at]) > self.radii[at]
        ]
        return [
            (
                float(np.real(values[at])),
                float(np.imag(values[at])),
                np.linalg.qr(np.stack([np.real(right[:, at]), np.imag(right[:, at])], axis=1))[0],
            )
            for at in sorted(turning, key=lambda at: -np.imag(values[at]))
        ]

    @cached_property
    def growth(self) -> "Growth":
        """What errors can do before they decay."""
        return _growth(self.matrix, self.values)


@dataclass(frozen=True)
class Growth:
    """How much an error can grow before it decays, and which.

    Attributes:
        rate: of the fastest growing error at the first instant; negative where none grows.
        first: that error, of size one, `(n,)`.
        factor: the largest size that an error of size one ever has; infinite without a bound.
        time: when it has it.
        largest: the error of size one that becomes the largest, `(n,)`.

    Examples:
        >>> wh.certify(wh.closed_loop(wh.response(net, x), wh.direct())).growth.factor
        1.0
    """

    rate: float
    first: Float[np.ndarray, "n"]
    factor: float
    time: float
    largest: Float[np.ndarray, "n"]


def closest_metric(frame: Matrix, shared: list[np.ndarray]) -> Matrix:
    r"""Of all $V^{-\mathsf T}PV^{-1}$ with positive blocks P, the closest to the identity.

    Args:
        frame: V, a basis as columns `(n, n)`.
        shared: for every block of P, the columns it belongs to.

    Examples:
        >>> from whorl.spectrum import closest_metric
        >>> turned = np.array([[0.6, -0.8], [0.8, 0.6]])
        >>> bool(
        ...     np.allclose(
        ...         closest_metric(turned * [2.0, 5.0], [np.array([0]), np.array([1])]), np.eye(2)
        ...     )
        ... )
        True
    """
    inverse = np.linalg.inv(frame)
    inner, scale = inverse @ inverse.T, np.eye(len(frame))
    kept = np.zeros(inner.shape, dtype=bool)
    for columns in shared:
        kept[np.ix_(columns, columns)] = True
    scale = np.diag(1.0 / np.sqrt(np.diag(inner)))
    logs, distance = _logarithm(scale.T @ inner @ scale)
    step = 1.0
    for _ in range(STEPS):
        # The gradient of half the squared distance is the logarithm's blocks; at the closest they
        # vanish.
        slope = np.where(kept, logs, 0.0)
        if np.linalg.norm(slope) <= 1e-10 * max(np.sqrt(distance), 1.0):
            break
        values, vectors = np.linalg.eigh(slope)
        tried = scale @ (vectors * np.exp(-0.5 * step * values)) @ vectors.T
        tried_logs, tried_distance = _logarithm(tried.T @ inner @ tried)
        if tried_distance > distance - 1e-4 * step * np.sum(slope**2):
            step /= 2
            if step < 1e-9:
                break
            continue
        scale, logs, distance, step = tried, tried_logs, tried_distance, min(2 * step, 1.0)
    whole = inverse.T @ scale @ scale.T @ inverse
    return (whole + whole.T) / 2


def _disc(centre: complex, radius: float) -> np.ndarray:
    """A polygon around a point of the complex plane, inside the circle of this radius."""
    return centre + radius * np.exp(2j * np.pi * np.arange(16) / 16)


def _half_disc(centre: float, radius: float) -> np.ndarray:
    """A polygon that lies on the real axis, and above it within this radius."""
    arc = np.exp(1j * np.pi * np.arange(9) / 8)
    arc[[0, -1]] = np.real(arc[[0, -1]])
    return centre + radius * np.concatenate([arc, np.linspace(-1, 1, 9)[1:-1]])


def _logarithm(matrix: Matrix) -> tuple[Matrix, float]:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    logs = np.log(np.maximum(values, 1e-300))
    return (vectors * logs) @ vectors.T, float(np.sum(logs**2))


def _growth(matrix: Matrix, values: np.ndarray) -> Growth:
    rates, errors = np.linalg.eigh(-(matrix + matrix.T) / 2)
    rate, first = float(rates[-1]), errors[:, -1]
    slow = np.real(values)
    size = float(np.abs(values).max(initial=0.0))
    if rate <= 0 or size == 0:
        return Growth(rate, first, 1.0, 0.0, first)
    if slow.min() < -1e-9 * size:
        return Growth(rate, first, np.inf, np.inf, first)
    # An error that grows at all does so within some times of the slowest decay.
    last = 10.0 / max(float(slow.min()), 1e-3 * size)
    times = np.concatenate([[0.0], np.geomspace(1e-4 / np.linalg.norm(matrix, 2), last, TIMES)])

    def size_at(time: float) -> float:
        return float(np.linalg.norm(linalg.expm(-matrix * time), 2))

    sizes = np.linalg.norm(linalg.expm(-matrix * times[:, None, None]), 2, axis=(1, 2))
    top = int(np.argmax(sizes))
    found: Any = optimize.minimize_scalar(
        lambda time: -size_at(time),
        bounds=(times[max(top - 1, 0)], times[min(top + 1, len(times) - 1)]),
        method="bounded",
        options={"xatol": 1e-7 * times[top]},
    )
    time = float(found.x) if -found.fun > sizes[top] else float(times[top])
    largest = np.linalg.svd(linalg.expm(-matrix * time))[2][0]
    return Growth(rate, first, max(size_at(time), 1.0), time, largest)
