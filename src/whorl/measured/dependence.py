r"""Independent states of a series, and equations between the others.

States that obey $w\cdot y = c$ have no velocity along $w$. Conserved outputs, which sum to a
constant, are the usual case; a redundant sensor is another. A loop exists in the remaining
directions only, and is fitted in orthonormal coordinates of them, as that of a table is in zero-sum
coordinates. Leaving out a column instead would change the metric.

*Digits.* Along $w$ nothing but rounding is seen: the states differ by less there than the digits
they were written with can tell. The resolution of a column is the lattice that its values lie on,
or six digits of its scatter.

*Noise.* Along $w$ no sample predicts anything of the next one. For the sum of the outputs that is
the definition of conservation that tables use too (`conservation`); other directions are found by
Bartlett's test of the smallest canonical correlations between a sample and the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from whorl import simplex
from whorl.measured.conservation import BLURRED, Mass

FLAT = 1e-12  # a column that varies by less than this share of its size is constant
DIGITS = 6e-6  # resolution of a column, as a share of its scatter, where its values show none
PREDICTED = 0.01  # p-value of "no sample predicts the next" from which on nothing is predicted
SURE = 0.001  # the same for the sum of the outputs, which is expected to be constant
DIVISORS = 10  # of the smallest difference of two values, which may be several digits


@dataclass(frozen=True)
class Equation:
    """One linear equation between the states, up to digits or noise."""

    weights: Float[np.ndarray, "n"]  # those that are zero within the noise are exactly zero
    constant: float
    conserved: bool = False  # whether it says that all states sum to a constant

    def said(self, names: Sequence[str]) -> str:
        """The equation in words, with the names of the columns."""
        if self.conserved:
            outputs = all(name.startswith("output") for name in names)
            return f"the {'outputs' if outputs else 'states'} sum to {self.constant:.6g}"
        own = np.flatnonzero(self.weights).tolist()
        if len(own) > 1 and (self.weights[own] == 1).all():
            return f"{_listed([names[at] for at in own])} sum to {self.constant:.6g}"
        last = own[-1]
        if len(own) == 1:
            return f"{names[last]} stays at {self.constant:.6g}"
        terms = [(-float(self.weights[at]), f" {names[at]}") for at in own[:-1]]
        terms += [(self.constant, "")] * bool(self.constant)
        text = "".join(
            f" {'-' if value < 0 else '+'} {_factor(abs(value), name)}" for value, name in terms
        )
        return f"{names[last]} ={text[2:] if text.startswith(' +') else text}"


def _factor(value: float, name: str) -> str:
    return name.strip() if name and f"{value:.3g}" == "1" else f"{value:.3g}{name}"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True)
class Span:
    """The directions in which the states move by themselves, and the equations between them."""

    basis: Float[np.ndarray, "n r"]  # orthonormal
    equations: tuple[Equation, ...]
    rest: Float[np.ndarray, "n"]  # what the states are across those directions
    flat: Bool[np.ndarray, "n"]  # the states that do not vary

    @property
    def conserved(self) -> bool:
        """Whether the states sum to a constant."""
        return any(one.conserved for one in self.equations)

    def reduced(self, state: Float[np.ndarray, "rows n"]) -> Float[np.ndarray, "rows r"]:
        """Coordinates along the directions; the states themselves without equations."""
        return state @ self.basis if self.equations else state

    def lifted(self, place: Float[np.ndarray, "r"]) -> Float[np.ndarray, "n"]:
        """The states that belong to some coordinates."""
        return self.rest + self.basis @ place if self.equations else place


def span(now: Float[np.ndarray, "steps n"], after: Float[np.ndarray, "steps n"]) -> Span:
    """Find the equations between states, from all samples and those that follow them.

    Raises:
        ValueError: Where no sample predicts anything of the next one.
    """
    middle, many = now.mean(axis=0), now.shape[1]
    scale = now.std(axis=0)
    flat = scale <= FLAT * np.abs(now).max(axis=0)
    unit = np.maximum([resolution(column) for column in now.T], DIGITS * scale)
    unit = np.where(flat, 1.0, unit)
    total = many > 1 and _conserved(now, after, unit)
    found = [np.ones((int(total), many)), _digits(now - middle, unit, flat)]
    if total:  # among the directions of the digits the sum is found once more
        found[1] = _beside(found[1], unit)
    found[1] /= unit
    basis = _complement(np.concatenate(found), total)
    if basis.shape[1]:
        found.append(_unpredicted(now @ basis, after @ basis).T @ basis.T)
        basis = _complement(np.concatenate(found), total)
    equations = _equations(np.concatenate(found[1:]), now, np.where(flat, 1.0, scale), total)
    if total:
        equations.insert(0, Equation(np.ones(many), _rounded(now, np.ones(many)), conserved=True))
    return Span(basis, tuple(equations), middle - basis @ (basis.T @ middle), flat)


def resolution(values: Float[np.ndarray, "rows"]) -> float:
    """The lattice that all values lie on, such as 1e-4 for four decimals; 0 without one."""
    places = np.unique(values)
    gaps = np.diff(places)
    gaps = gaps[gaps > 8 * np.finfo(float).eps * np.abs(values).max(initial=0.0)]
    if not len(gaps):
        return 0.0
    for part in range(1, DIVISORS + 1):
        steps = (places - places[0]) / (gaps.min() / part)
        if steps[-1] < 1e9 and np.abs(steps - np.round(steps)).max() < 0.05:
            return float(gaps.min() / part)
    return 0.0


def _digits(
    away: Float[np.ndarray, "steps n"], unit: Float[np.ndarray, "n"], flat: np.ndarray
) -> Float[np.ndarray, "k n"]:
    """Directions, in units of the resolution, in which only the digits differ."""
    told = np.where(flat, 0.0, away / unit)
    values, vectors = np.linalg.eigh(told.T @ told / len(told))
    return vectors[:, values <= 0.25].T


def _beside(known: Float[np.ndarray, "k n"], way: np.ndarray) -> Float[np.ndarray, "l n"]:
    """The part of some orthonormal directions that is orthogonal to one of them."""
    turned = known @ way
    if np.linalg.norm(turned) < 0.5 * np.linalg.norm(way):
        return known
    return np.linalg.svd(turned[None] / np.linalg.norm(turned))[2][1:] @ known


def _conserved(now: np.ndarray, after: np.ndarray, unit: np.ndarray) -> bool:
    """Whether the states sum to a constant but for digits or noise, as tables define it."""
    sums, moved = after.sum(axis=1), after - after.mean(axis=0)
    many = now.shape[1]
    lone = sums - sums.mean()
    if not moved.any():
        return False
    share = float(np.sqrt(np.sum(lone**2) / many / np.sum(moved**2)))
    known = now - now.mean(axis=0)
    left = lone - known @ np.linalg.lstsq(known, lone, rcond=1e-10)[0]
    free = len(now) - many - 1
    told = max(np.sum(lone**2) - np.sum(left**2), 0.0) / many / max(np.sum(left**2) / free, 1e-300)
    written = 0.5 * float(np.sqrt(np.sum(unit**2) / many / np.mean(np.sum(moved**2, axis=1))))
    return Mass(share, 0.0, float(stats.f.sf(told, many, free)), written).conserved(SURE)


def _unpredicted(
    now: Float[np.ndarray, "steps r"], after: Float[np.ndarray, "steps r"]
) -> Float[np.ndarray, "r k"]:
    """Directions in which a sample is noise: nothing of the sample before is left in it.

    Of two directions, one that scatters as much as the other is kept: it may be a fast mode.
    """
    count, size = now.shape
    roots, white = [], []
    for part in (now, after):
        axes, values, vectors = np.linalg.svd(part - part.mean(axis=0), full_matrices=False)
        roots.append(vectors.T / np.maximum(values, 1e-300))
        white.append(axes)
    left, shared, right = np.linalg.svd(white[0].T @ white[1])
    logs = np.log1p(-(np.minimum(shared, 1 - 1e-15) ** 2))
    rest = -(count - size - 1.5) * np.cumsum(logs[::-1])[::-1]
    chance = stats.chi2.sf(rest, np.arange(size, 0, -1) ** 2)
    told = int(np.argmax(chance > PREDICTED)) if (chance > PREDICTED).any() else size
    if told == 0:
        raise ValueError(
            "a sample must predict something of the next one, but all that is seen may be noise: "
            "sample more often, or with less noise"
        )
    # The same directions by the samples before and by those after: on average.
    both = [
        np.linalg.qr(root @ own[:, told:])[0]
        for root, own in zip(roots, (left, right.T), strict=True)
    ]
    ways = np.linalg.eigh(sum(own @ own.T for own in both))[1][:, told:]
    alone = np.sqrt(now.var(axis=0) @ ways**2)
    small = bool(((now @ ways).std(axis=0) < BLURRED * alone).all())
    return ways if told > 1 or small else ways[:, :0]


def _complement(rows: Float[np.ndarray, "k n"], total: bool) -> Float[np.ndarray, "n r"]:
    """Orthonormal coordinates across some directions; Helmert's where the first is the sum."""
    many = rows.shape[1]
    basis = simplex.tangent_basis(many) if total else np.eye(many)
    others = rows[int(total) :] @ basis
    if not len(others):
        return basis
    whole = np.linalg.qr((others / np.linalg.norm(others, axis=1)[:, None]).T, mode="complete")[0]
    return basis @ whole[:, len(others) :]


def _equations(
    rows: Float[np.ndarray, "k n"], now: np.ndarray, scale: np.ndarray, total: bool
) -> list[Equation]:
    """The equations that belong to some directions, each solved for its last state."""
    rows = rows - rows[:, -1:] * total  # what is said of the sum is not said twice
    moved = rows * scale  # by how much every term moves
    sizes = np.abs(moved).max(axis=1, initial=1e-300)
    slack = 6 * (now @ rows.T).std(axis=0) / np.sqrt(len(now)) / sizes
    tol = float(np.clip(slack.max(initial=0.0), 1e-4, 0.2))
    first = 0
    for column in range(rows.shape[1])[::-1]:
        if first == len(rows):
            break
        pivot = first + int(np.argmax(np.abs(moved[first:, column])))
        if abs(moved[pivot, column]) > tol * np.abs(moved[pivot]).max():
            moved[[first, pivot]] = moved[[pivot, first]]
            others = np.arange(len(rows)) != first
            ratio = moved[others, column] / moved[first, column]
            moved[others] -= ratio[:, None] * moved[first]
            first += 1
    equations = []
    for row in moved[:first]:
        kept = np.abs(row) > tol * np.abs(row).max()
        weights = np.where(kept, row / scale, 0.0)
        weights /= weights[np.flatnonzero(kept)[-1]]
        weights = np.array([_roundest(float(one), tol * abs(one)) for one in weights])
        equations.append(Equation(weights, _rounded(now, weights)))
    return equations


def _rounded(now: Float[np.ndarray, "steps n"], weights: Float[np.ndarray, "n"]) -> float:
    """What is constant but for noise, as the roundest number within its error."""
    values = now @ weights
    error = np.std(values) / np.sqrt(len(values)) + 1e-9 * np.abs(now * weights).max()
    return _roundest(float(values.mean()), 3 * float(error))


def _roundest(value: float, error: float) -> float:
    """The number with the fewest digits that is as near as the error."""
    if abs(value) <= error:
        return 0.0 if error else value
    tried = (float(f"{value:.{digits}g}") for digits in range(1, 16))
    return next((one for one in tried if abs(one - value) <= error), value)
