r"""Real or complex spectrum: does a loop that is not symmetric turn?

Two eigenvalues of a real matrix become complex only after they have met. Close to where a pair
meets, the matrix acts on the plane of the pair as

$$ m + \begin{pmatrix} p & q - w \\ q + w & -p \end{pmatrix}, \qquad
\tfrac14(\lambda_1-\lambda_2)^2 = p^2 + q^2 - w^2, $$

so that the pair turns inside the cone $w^2 > p^2 + q^2$ and decays straight outside it. The estimate
of $(p, q, w)$ is linear in the noise, whose scatter the units tell. The test is the distance of
the estimate from the cone, in units of that scatter, against Student's t: it does not depend on the
coordinates chosen in the plane, it reaches its level where the truth lies on the cone, and inside
either region it errs on the safe side.

That a loop turns is found when one pair is inside its cone; that it is a gradient flow in another
metric when every pair is outside; between, nothing is said.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from whorl.measured.estimate import Matrix, Stack

FORM = np.diag([1.0, 1.0, -1.0])  # of the cone
PAIRS = 66  # tried one by one; beyond, only neighbours


@dataclass(frozen=True)
class Turning:
    """Two p-values, one per boundary claim."""

    real: float  # that every eigenvalue is real: small where the loop surely turns
    complex: float  # that some pair turns: small where the loop surely does not


def turning(loop: Matrix, influence: Stack, free: float) -> Turning:
    """Test whether the spectrum of an estimated loop is real.

    Args:
        loop: the estimate `(n, n)`.
        influence: what each independent unit's noise has added to it `(units, n, n)`.
        free: degrees of freedom of the scatter.
    """
    values, right = np.linalg.eig(loop)
    left = np.linalg.pinv(right)
    pairs = [at for at in range(len(values)) if values[at].imag > 0]
    if pairs:
        away = [_inside(loop, influence, right, left, at) for at in pairs]
        # The smallest of several p-values needs Sidak's price.
        smallest = float(stats.t.sf(max(away), free))
        return Turning(float(-np.expm1(len(pairs) * np.log1p(-smallest))), 1.0)
    order = np.argsort(np.real(values))
    tried = (
        itertools.combinations(order, 2)
        if len(order) * (len(order) - 1) / 2 <= PAIRS
        else itertools.pairwise(order)
    )
    away = []
    for one, other in tried:
        frame = np.real(right[:, [one, other]])
        away.append(_distance(loop, influence, frame, np.real(left[[one, other]])))
    return Turning(1.0, float(stats.t.sf(min(away), free)) if away else 1.0)


def _inside(loop: Matrix, influence: Stack, right: np.ndarray, left: np.ndarray, at: int) -> float:
    frame = np.stack([np.real(right[:, at]), np.imag(right[:, at])], axis=1)
    dual = np.stack([np.real(left[at]), np.imag(left[at])])
    return _distance(loop, influence, frame, np.linalg.solve(dual @ frame, dual))


def _distance(
    loop: Matrix,
    influence: Stack,
    frame: Float[np.ndarray, "n 2"],
    dual: Float[np.ndarray, "2 n"],
) -> float:
    """How far a pair lies from its cone, in units of its scatter."""
    place = _cone(dual @ loop @ frame)
    moved = _cone(dual @ influence @ frame)
    scatter = moved.T @ moved
    # A direction without scatter is known exactly, up to round-off.
    size = np.trace(scatter) + 1e-24 * np.sum(place**2)
    if not size:
        return 0.0
    values, vectors = np.linalg.eigh(scatter + 1e-12 * size * np.eye(3))
    root = (vectors * np.sqrt(values)) @ vectors.T
    bent, axes = np.linalg.eigh(root @ FORM @ root)
    return from_cone(axes.T @ np.linalg.solve(root, place), bent)


def from_cone(place: Float[np.ndarray, "3"], bent: Float[np.ndarray, "3"]) -> float:
    """The distance of a point from the cone sum bent y^2 = 0, in coordinates along its axes."""
    inside = float(np.sum(bent * place**2)) < 0
    # The closest point is y / (1 + mu bent), with mu where the sum vanishes.
    low, high = (-1.0 / bent[-1], 0.0) if inside else (0.0, -1.0 / bent[0])
    for _ in range(80):
        middle = (low + high) / 2
        positive = np.sum(bent * (place / (1 + middle * bent)) ** 2) > 0
        low, high = (middle, high) if positive else (low, middle)
    closest = place / (1 + (low + high) / 2 * bent)
    return float(np.linalg.norm(place - closest))


def _cone(blocks: Float[np.ndarray, "*many 2 2"]) -> Float[np.ndarray, "*many 3"]:
    first, second, third, last = (
        blocks[..., row, column] for row, column in ((0, 0), (0, 1), (1, 0), (1, 1))
    )
    return np.stack([(first - last) / 2, (second + third) / 2, (third - second) / 2], axis=-1)
