r"""The exact likelihood of a linear stochastic loop that is measured with noise at any times.

$$ \mathrm{d}x = (b - Rx)\,\mathrm{d}t + Q^{1/2}\,\mathrm{d}W, \qquad y_k = x(t_k) + e_k, \qquad
e_k \sim N(0, S), $$

with S diagonal, or, where the state is a part of what is measured (`dependence`), the part of a
diagonal matrix that falls on it. Over a gap $\Delta$ the state is taken by $\Phi = e^{-R\Delta}$ and gains the
covariance $\int_0^\Delta e^{-Rt}Qe^{-R^\mathsf{T}t}\,\mathrm{d}t$, both from the eigenvectors of R,
so that uneven gaps cost no more than even ones. Kalman's filter goes through each stretch and hands
out the innovations: what each sample adds to what all samples before it predicted. The first sample
of a stretch starts it, with nothing known of the state before. A relaxation is the case Q = 0, in
which this is least squares; a stationary run has both.

The scores of the innovations are uncorrelated from step to step whatever the noise of each, so
their own scatter, and not only the model's, tells how far the estimate may be off.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy import optimize

STEP = 1e-5  # of central differences, with states and times of size one
FLOOR = 1e-12  # variance that any measurement has, so that exact data have a likelihood
STEPS = 100  # of a long run that are filtered in one piece; pieces go side by side
MOST = 200  # steps of the optimiser
CLOSE = 1e-4  # of the top, in the logarithm of the likelihood: far below what noise decides
FAINT = 1e-2  # information on the logarithm of any noise: it is known to a factor of e^10
LOGS = (-14.0, 6.0)  # of the sizes of noise
NEVER = 1e30  # minus the log density of an impossible loop
UNLIKELY = (
    "the samples must follow one linear loop, but no loop is likely for them: sample more often, or "
    "with less noise"
)


@dataclass(frozen=True)
class Paths:
    """Stretches side by side, the short ones filled up."""

    state: Float[np.ndarray, "stretches samples n"]
    gap: Float[np.ndarray, "stretches steps"]
    there: Bool[np.ndarray, "stretches steps"]
    mix: Float[np.ndarray, "n m"]  # from what is measured, each with noise of its own, to the state


@dataclass(frozen=True)
class Model:
    """Numbers of one loop, or of many with a leading axis."""

    loop: Float[np.ndarray, "*many n n"]
    push: Float[np.ndarray, "*many n"]  # b, the velocity at zero
    drive: Float[np.ndarray, "*many n n"]  # Q
    noise: Float[np.ndarray, "*many m"]  # the variances of what is measured


@dataclass(frozen=True)
class Fitted:
    """The most likely numbers, and what each step says about them."""

    numbers: Float[np.ndarray, "p"]
    scores: Float[np.ndarray, "p stretches steps"]
    information: Float[np.ndarray, "p p"]
    left: Float[np.ndarray, "stretches steps n"]  # the innovations, each in units of its scatter


def paths(
    states: Sequence[np.ndarray], times: Sequence[np.ndarray], mix: np.ndarray | None = None
) -> Paths:
    """Put stretches side by side; each has at least two samples."""
    most, size = max(map(len, states)), states[0].shape[1]
    state = np.zeros((len(states), most, size))
    gap, there = np.ones((len(states), most - 1)), np.zeros((len(states), most - 1), dtype=bool)
    for at, (own, when) in enumerate(zip(states, times, strict=True)):
        state[at, : len(own)] = own
        gap[at, : len(own) - 1], there[at, : len(own) - 1] = np.diff(when), True
    return Paths(state, gap, there, np.eye(size) if mix is None else mix)


def innovations(model: Model, given: Paths) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What each step brings, and its covariance: `(many, stretches, n)`, `(..., n, n)`."""
    values, right = np.linalg.eig(model.loop)
    left = np.linalg.inv(right)
    driven = left @ model.drive @ left.swapaxes(-1, -2)
    pairs = values[:, :, None] + values[:, None, :]
    pushed = (left @ model.push[:, :, None])[..., 0]
    noise = ((given.mix * model.noise[:, None]) @ given.mix.T)[:, None]

    def over(gap: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Over some gaps: the propagator, and what the state and its covariance gain."""
        part = gap[None, :, None]
        decay = np.exp(-values[:, None] * part)
        taken = np.real((right[:, None] * decay[:, :, None]) @ left[:, None])
        ahead = (right[:, None] @ (pushed[:, None] * _lasting(values[:, None], part))[..., None])[
            ..., 0
        ]
        inner = driven[:, None] * _lasting(pairs[:, None], part[..., None])
        gained = right[:, None] @ inner @ right[:, None].swapaxes(-1, -2)
        return taken, np.real(ahead), np.real(gained)

    even = bool(np.ptp(given.gap[given.there]) <= 1e-12 * given.gap[given.there].max())
    moved = over(given.gap[:1, 0]) if even else None
    state = np.broadcast_to(given.state[:, 0], (len(values), *given.state[:, 0].shape))
    cover = noise
    for step in range(given.gap.shape[1]):
        taken, far, gained = moved or over(given.gap[:, step])
        ahead = taken @ cover @ taken.swapaxes(-1, -2) + gained
        whole = ahead + noise
        seen = given.state[:, step + 1]
        new = seen - far - (taken @ state[..., None])[..., 0]
        yield new, whole
        inverse = np.linalg.inv(whole)
        # What is known now, without a difference of large numbers.
        state = seen - (noise @ (inverse @ new[..., None]))[..., 0]
        cover = noise @ (inverse @ ahead)
        cover = (cover + cover.swapaxes(-1, -2)) / 2


def _lasting(rate: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """The integral of exp(-rate t) over a gap, also where the rate is zero."""
    near = np.abs(rate * gap) < 1e-8
    return np.where(near, gap, -np.expm1(-rate * gap) / np.where(near, 1.0, rate))


def log_density(model: Model, given: Paths) -> Float[np.ndarray, "many"]:
    """The logarithm of the density of all samples but the first of each stretch."""
    total = np.zeros(len(model.loop))
    for step, (new, whole) in enumerate(innovations(model, given)):
        total += np.sum(_densities(new, whole) * given.there[:, step], axis=1)
    return total


def _densities(new: np.ndarray, whole: np.ndarray) -> Float[np.ndarray, "many stretches"]:
    far = np.einsum("...i,...i", new, np.linalg.solve(whole, new[..., None])[..., 0])
    return -(far + np.linalg.slogdet(2 * np.pi * whole)[1]) / 2


def unpacked(numbers: Float[np.ndarray, "many p"], size: int) -> Model:
    """Loop, push, logarithm of Q and logarithms of S, one after the other."""
    parts = np.split(numbers, np.cumsum([size**2, size, size * (size + 1) // 2]), axis=1)
    one, other = np.tril_indices(size)
    logs = np.zeros((len(numbers), size, size))
    logs[:, one, other] = logs[:, other, one] = parts[2]
    values, vectors = np.linalg.eigh(logs)
    # Far from a solution the exponentials must not overflow.
    sizes = np.exp(np.clip(values, 2 * LOGS[0], LOGS[1]))
    drive = (vectors * sizes[:, None]) @ vectors.swapaxes(1, 2)
    loop = np.clip(parts[0], -50, 50).reshape(-1, size, size)
    return Model(loop, parts[1], drive, FLOOR + np.exp(2 * np.clip(parts[3], *LOGS)))


def fitted(given: Paths, starts: Sequence[np.ndarray]) -> Fitted:
    """The most likely numbers, from the best of some starts that leads to any.

    Raises:
        ValueError: Where nothing is more likely than its neighbours.
    """
    size = given.state.shape[2]

    @lru_cache(maxsize=2)
    def at(place: bytes) -> tuple[float, np.ndarray, np.ndarray]:
        return _at(np.frombuffer(place), given)

    def far(numbers: np.ndarray) -> float:
        """How much more likely the top may be, by the slope and the information here."""
        _, slope, information = at(numbers.tobytes())
        return float(slope @ inverse(information, size) @ slope)

    def close(numbers: np.ndarray) -> None:
        if far(numbers) < CLOSE:
            raise StopIteration

    for start in sorted(starts, key=lambda one: _unlikely(one, given)):
        answer: Any = optimize.minimize(
            lambda numbers: at(numbers.tobytes())[0],
            start,
            jac=lambda numbers: at(numbers.tobytes())[1],
            hess=lambda numbers: at(numbers.tobytes())[2],
            method="trust-exact",
            callback=close,
            options={"gtol": 0.0, "maxiter": MOST},
        )
        if answer.fun < NEVER and far(answer.x) <= 100 * CLOSE:
            _, scores, information, left = _slopes(answer.x, given)
            return Fitted(answer.x, scores, information, left)
    raise ValueError(UNLIKELY)


def _unlikely(numbers: np.ndarray, given: Paths) -> float:
    """Minus the log density; NEVER for an impossible loop."""
    try:
        model = unpacked(numbers[None], given.state.shape[2])
        return float(np.nan_to_num(-log_density(model, given)[0], nan=NEVER))
    except np.linalg.LinAlgError:
        return NEVER


def _at(numbers: np.ndarray, given: Paths) -> tuple[float, np.ndarray, np.ndarray]:
    """Minus the log density, its slope and the information; NEVER where the loop is singular."""
    try:
        value, scores, information, _ = _slopes(numbers, given)
    except np.linalg.LinAlgError:  # a place far from the solution
        return NEVER, np.zeros(len(numbers)), np.zeros((len(numbers), len(numbers)))
    return value, -scores.sum(axis=(1, 2)), information


def inverse(information: Float[np.ndarray, "p p"], size: int) -> Float[np.ndarray, "p p"]:
    """The inverse, with a little that is known beforehand about the sizes of noise.

    A noise of zero has a logarithm that may be anything below some number. A loop of which nothing
    is known is another thing, and its part of the inverse is very large.
    """
    known = information + np.diag(FAINT * (np.arange(len(information)) >= size * (size + 1)))
    scale = np.sqrt(np.maximum(np.diag(known), 1e-12 * known.max()))
    values, vectors = np.linalg.eigh(known / np.outer(scale, scale))
    turned = vectors / scale[:, None]
    return (turned / np.maximum(values, 1e-12)) @ turned.T


def shares(
    numbers: np.ndarray,
    given: Paths,
    onto: Float[np.ndarray, "q p"],
    unit: np.ndarray,
) -> Float[np.ndarray, "units q q"]:
    """The information on some combinations of the numbers that each unit of steps brings.

    `unit` has the number of the unit of every step that is there, stretch after stretch.
    """
    at = np.zeros(given.there.shape, dtype=int)
    at[given.there] = unit
    total = np.zeros((int(unit.max()) + 1, len(onto), len(onto)))
    for step, (_, _, moved) in enumerate(_steps(numbers, given)):
        seen = np.tensordot(onto, moved, axes=1).swapaxes(0, 1)
        here = given.there[:, step]
        np.add.at(total, at[here, step], (seen @ seen.swapaxes(1, 2))[here])
    return total


def _slopes(numbers: np.ndarray, given: Paths) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Minus the log density, the scores of all steps, the information, and the innovations."""
    count = len(numbers)
    information = np.zeros((count, count))
    each, left = [], []
    for density, new, moved in _steps(numbers, given):
        each.append(density)
        left.append(new)
        flat = moved.reshape(count, -1)
        information += flat @ flat.T
    density = np.stack(each, axis=-1)
    scores = (density[1 : count + 1] - density[count + 1 :]) / (2 * STEP)
    value = float(np.nan_to_num(-density[0].sum(), nan=NEVER, posinf=NEVER))
    return value, np.nan_to_num(scores), np.nan_to_num(information), np.stack(left, axis=1)


def _steps(
    numbers: np.ndarray, given: Paths
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of every step: densities here and beside `(1 + 2p, stretches)`, the innovation in units of its
    scatter `(stretches, n)`, and what each number moves, squares of which are information
    `(p, stretches, n + n^2)`.
    """
    count, size = len(numbers), given.state.shape[2]
    beside = STEP * np.eye(count)
    model = unpacked(numbers + np.concatenate([np.zeros((1, count)), beside, -beside]), size)
    for step, (new, whole) in enumerate(innovations(model, given)):
        there = given.there[:, step]
        root = np.linalg.inv(np.linalg.cholesky(whole[0])) * there[:, None, None]
        # What a number moves: the innovation, and its covariance.
        first = (new[1 : count + 1] - new[count + 1 :]) / (2 * STEP)
        second = (whole[1 : count + 1] - whole[count + 1 :]) / (2 * STEP)
        shifted = (root @ first[..., None])[..., 0]
        spread = (root @ second @ root.swapaxes(-1, -2)).reshape(count, -1, size**2)
        spread = np.broadcast_to(spread, (count, len(there), size**2)) / np.sqrt(2)
        moved = np.concatenate([shifted, spread], axis=2)
        yield _densities(new, whole) * there, (root @ new[0][..., None])[..., 0], moved
