r"""Data that resemble a loop but are not: an offset, a memory of the row before, a drift.

*Seen.* Each is a regressor beside what was applied. Its coefficients are tested with random signs
of the units, after a fit without it.

*Possible.* If each row holds a share $c$ of the answer to the row before, the fit finds
$\mathcal{R}(1 + cA)$ with $A$ the regression of one row's residual on the next one's, and a
symmetric $\mathcal{R}$ seems to turn unless $A$ is symmetric in its eyes. A drift $g$ within a
repeat adds $ga^\mathsf{T}$, with $a$ the regression of the place in the repeat on the residual.
Where every repeat has the same order, neither can be told from a turn, and the smallest memory and
drift that would explain the skew part are worked out instead. In a balanced order $A$ is close to a
multiple of the identity and $a$ is zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from whorl.measured.estimate import Fit
from whorl.measured.moments import Moments

DRAWS = 999
SLIGHT = 0.1  # a memory or a drift of at most this share is easily overlooked
EXPLAINED = 0.5  # share of the skew part that counts as explained
TESTED = {
    "offset": ("one", ()),
    "memory": ("before", ("one",)),
    "drift": ("time", ("one",)),
    "drift within repeats": ("place", ("one",)),
}


@dataclass(frozen=True)
class Order:
    """What else than a loop is seen, and what else could explain its skew part."""

    p: Mapping[str, float]  # of the hypothesis "no effect", for every effect that can be tested
    memory: float  # share of the row before that would explain the skew part; infinite where none
    drift: float  # drift over one repeat, relative to the velocities, that would explain it

    @property
    def suspect(self) -> bool:
        """Whether a slight effect of the order would explain the skew part."""
        return bool(min(self.memory, self.drift) <= SLIGHT)

    def seen(self, alpha: float) -> list[str]:
        """The effects that are there, at a level shared by all that were tested."""
        return [name for name, p in self.p.items() if p <= alpha / max(len(self.p), 1)]


def order(moments: Moments, drive: str, fit: Fit, *, seed: int = 0) -> Order:
    """Test for offset, memory and drift, and say which of them could explain the skew part."""
    found = {
        name: _p(moments, drive, tested, given, seed)
        for name, (tested, given) in TESTED.items()
        if _there(moments, drive, tested, given)
    }
    return Order(found, *_explanations(moments, drive, fit))


def _explanations(moments: Moments, drive: str, fit: Fit) -> tuple[float, float]:
    """The smallest memory and the smallest drift that would explain the skew part."""
    if fit.rank < 2 or not np.any(fit.skew):
        return np.inf, np.inf
    total = moments.second.sum(axis=0)
    parts = [np.arange(len(total))[moments.parts[name]] for name in (drive, "one")]
    about = np.concatenate(parts)
    inner = np.linalg.pinv(total[np.ix_(about, about)], rcond=1e-10, hermitian=True)
    size = len(parts[0])

    def followed(name: str) -> np.ndarray:
        own = np.arange(len(total))[moments.parts[name]]
        return (total[np.ix_(own, about)] @ inner)[:, :size] @ fit.basis

    before = fit.basis.T @ followed("before")
    fake = fit.symmetric @ before
    memory = _needed(fit.skew, ((fake - fake.T) / 2)[None])
    (place,) = followed("place")
    if not np.any(place):
        return memory, np.inf
    drifts = np.einsum("gi,j->gij", np.eye(fit.rank), place)
    where = np.arange(len(total))[moments.parts["place"]][0]
    one = np.arange(len(total))[moments.parts["one"]][0]
    spread = np.sqrt(
        max(total[where, where] / total[one, one] - (total[where, one] / total[one, one]) ** 2, 0)
    )
    moving = np.sqrt(np.sum(fit.loop * (fit.loop @ fit.gram.sum(axis=0))) / total[one, one])
    over = np.sqrt(12) * spread / moving if moving > 0 else 0.0
    return memory, over * _needed(fit.skew, (drifts - drifts.swapaxes(1, 2)) / 2)


def _needed(skew: np.ndarray, fakes: np.ndarray) -> float:
    """How much of some skew matrices explains another; infinite where they do not."""
    flat = fakes.reshape(len(fakes), -1).T
    if np.linalg.norm(flat) < 1e-9 * np.linalg.norm(skew):
        return np.inf
    amount = np.linalg.lstsq(flat, skew.ravel(), rcond=1e-9)[0]
    explained = float(np.sum((flat @ amount) ** 2) / np.sum(skew**2))
    return float(np.linalg.norm(amount)) if explained >= EXPLAINED else np.inf


def _columns(moments: Moments, *names: str) -> np.ndarray:
    return np.concatenate([np.arange(moments.second.shape[-1])[moments.parts[n]] for n in names])


def _there(moments: Moments, drive: str, tested: str, given: tuple[str, ...]) -> bool:
    """Whether what is tested varies at all beside what is given."""
    total = moments.second.sum(axis=0)
    own, known = _columns(moments, tested), _columns(moments, drive, *given)
    return bool(np.trace(_left(total, own, known)) > 1e-6 * np.trace(total[np.ix_(own, own)]))


def _left(total: np.ndarray, own: np.ndarray, known: np.ndarray) -> np.ndarray:
    inner = np.linalg.pinv(total[np.ix_(known, known)], rcond=1e-10, hermitian=True)
    both = total[np.ix_(own, known)]
    return total[np.ix_(own, own)] - both @ inner @ both.T


def _p(moments: Moments, drive: str, tested: str, given: tuple[str, ...], seed: int) -> float:
    total = moments.second.sum(axis=0)
    own, known = _columns(moments, tested), _columns(moments, drive, *given)
    answer = _columns(moments, "velocity")
    inner = np.linalg.pinv(total[np.ix_(known, known)], rcond=1e-10, hermitian=True)
    fitted, shared = total[np.ix_(answer, known)] @ inner, total[np.ix_(own, known)] @ inner
    units = moments.second

    def sums(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return units[:, left[:, None], right[None, :]]

    scores = (
        sums(answer, own)
        - fitted @ sums(known, own)
        - sums(answer, known) @ shared.T
        + fitted @ sums(known, known) @ shared.T
    )
    values, vectors = np.linalg.eigh(_left(total, own, known))
    held = values > 1e-8 * values[-1]
    noise = _left(total, answer, known)
    sizes, axes = np.linalg.eigh((noise + noise.T) / 2)
    seen = sizes > 1e-12 * sizes[-1]
    white = (
        (axes[:, seen] / np.sqrt(sizes[seen])).T
        @ scores
        @ (vectors[:, held] / np.sqrt(values[held]))
    )
    flat = white.reshape(len(white), -1)
    flips = 2.0 * np.random.default_rng([seed, 5]).integers(0, 2, (DRAWS + 1, len(flat))) - 1.0
    flips[0] = 1.0
    reached = np.sum((flips @ flat) ** 2, axis=1)
    # What the fit leaves over is smaller than the noise behind it.
    rows = float(moments.rows.sum())
    reached[1:] *= rows / max(rows - len(known), 1.0)
    return float(np.mean(reached >= reached[0] * (1 - 1e-9)))
