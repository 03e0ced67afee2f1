r"""Does a skew part come from the device or from its boundary?

*Potentials recorded.* Then $\mathcal{R} = K\mathcal{B}$ with both factors measured. The response
$K$ is tested like a loop. Its parts $K = K_+ + K_-$ split the skew part of the loop exactly: what
$K_-\mathcal{B}$ contributes is the way back that does not match the way forward, what
$K_+\mathcal{B}$ contributes comes from the boundary law.

*Inputs and columns recorded.* Then the matched $K$ is known, and two explanations of $\mathcal{R}$
compete, by their misfit and the number of their parameters (Schwarz's criterion): a boundary term,
$\mathcal{R} = D(1 + A)$ with $D$ diagonal in the eigenbasis of $K$ and $A$ skew, which is the
paper's turn ahead of a spectral law; and a mismatched adjoint, $\mathcal{R} = g\,K_\text{top} +
\sum_\ell W_\ell X_\ell$ with free $X_\ell$ for the ways back.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import optimize

from whorl.measured import bootstrap, flips
from whorl.measured.bootstrap import Interval
from whorl.measured.estimate import Fit, Matrix, about, fit, influence
from whorl.measured.moments import Moments
from whorl.measured.state import Matched

CLEAR = 6.0  # a difference in Schwarz's criterion that counts as strong


@dataclass(frozen=True)
class Response:
    """The physical response, measured through its potentials, and what it has to do with the skew
    part of the loop.
    """

    p: float
    skewness: float
    # share of the loop's skew part that comes from the response's own skew part; the boundary has
    # the rest
    adjoint: Interval


@dataclass(frozen=True)
class Explanation:
    """One way to read the loop through the recorded state."""

    parameters: int
    misfit: float  # share of the loop's size that it leaves unexplained
    criterion: float  # Schwarz's; smaller is better


@dataclass(frozen=True)
class Diagnosis:
    """What can be said about the origin of the skew part."""

    response: Response | None
    boundary: Explanation | None
    adjoint: Explanation | None  # also None for a network of one layer, which has no way back

    @property
    def favoured(self) -> str | None:
        """The better explanation from the recorded state, where one is clearly better."""
        if self.boundary is None or self.adjoint is None:
            return None
        lead = self.adjoint.criterion - self.boundary.criterion
        return None if abs(lead) < CLEAR else "boundary" if lead > 0 else "adjoint"


def diagnose(
    loop: Fit, moments: Moments, state: Matched | None, *, tol: float, seed: int = 0
) -> Diagnosis | None:
    """Say where the skew part of a loop comes from, as far as the recorded columns allow.

    None where they do not.
    """
    response = (
        _response(moments, tol, seed) if {"residual", "potential"} <= set(moments.parts) else None
    )
    boundary = adjoint = None
    if state is not None and loop.rank == len(loop.basis):
        boundary = _boundary(loop, state)
        adjoint = _adjoint(loop, state) if state.ways else None
    return None if response is None and boundary is None else Diagnosis(response, boundary, adjoint)


def _response(moments: Moments, tol: float, seed: int) -> Response | None:
    physical = fit(moments, "potential", tol=tol)
    if physical.rank < 2:
        return None
    weight = moments.between("one", "one")[:, 0, 0]
    first, second = (moments.between(part, "one")[:, :, 0] for part in ("residual", "potential"))
    mean, level = first.sum(axis=0) / weight.sum(), second.sum(axis=0) / weight.sum()
    gram = about(moments.between("residual", "residual"), first, first, mean, mean, weight)
    seen = about(moments.between("potential", "residual"), second, first, level, mean, weight)
    values, vectors = np.linalg.eigh(gram.sum(axis=0))
    basis = vectors[:, np.sqrt(np.clip(values, 0, None)) > tol * np.sqrt(values[-1])]
    gram, seen = basis.T @ gram @ basis, seen @ basis
    law = np.linalg.solve(gram.sum(axis=0), seen.sum(axis=0).T).T
    lift = physical.basis
    moved, height = (first - np.outer(weight, mean)) @ basis, second - np.outer(weight, level)
    added = influence(gram, moved, weight, seen - law @ gram, height - moved @ law.T)
    flipped = bootstrap.signs(len(weight), bootstrap.REPLICATES, seed)
    noisy_response, noisy_law = (
        np.tensordot(flipped, each, axes=1) for each in (physical.influence, added)
    )
    shares = [
        _adjoint_share(lift @ (physical.loop + k) @ lift.T, law + b, basis)
        for k, b in zip(noisy_response, noisy_law, strict=True)
    ]
    share = _adjoint_share(lift @ physical.loop @ lift.T, law, basis)
    low, high = np.quantile(shares, [0.025, 0.975])
    return Response(
        flips.reciprocal(physical, seed=seed).p,
        physical.skewness,
        Interval(share, float(low), float(high)),
    )


def _adjoint_share(
    response: Matrix, law: Float[np.ndarray, "n m"], basis: Float[np.ndarray, "n m"]
) -> float:
    whole, own = (
        _skew(basis.T @ factor @ law) for factor in (response, (response - response.T) / 2)
    )
    return float(np.sum(own * whole) / np.sum(whole**2)) if np.any(whole) else 0.0


def _boundary(loop: Fit, state: Matched) -> Explanation:
    modes = np.linalg.eigh(state.response)[1]
    frame = modes.T @ loop.basis
    target, root = (
        frame @ loop.loop @ frame.T,
        np.linalg.cholesky(frame @ loop.gram.sum(axis=0) @ frame.T),
    )
    one, other = np.triu_indices(loop.rank, k=1)

    def model(parameters: np.ndarray) -> np.ndarray:
        turn = np.zeros_like(target)
        turn[one, other], turn[other, one] = parameters[loop.rank :], -parameters[loop.rank :]
        return np.diag(parameters[: loop.rank]) @ (np.eye(loop.rank) + turn)

    rates = np.diag(target).copy()
    safe = np.where(np.abs(rates) > 1e-12, rates, 1.0)
    start = np.concatenate(
        [rates, (target[one, other] / safe[one] - target[other, one] / safe[other]) / 2]
    )
    found = optimize.least_squares(
        lambda parameters: ((model(parameters) - target) @ root).ravel(), start
    )
    return _explained(loop, frame.T @ (model(found.x) - target) @ frame, len(start))


def _adjoint(loop: Fit, state: Matched) -> Explanation:
    root = np.linalg.cholesky(loop.gram.sum(axis=0))
    target = loop.basis @ loop.loop @ loop.basis.T
    size = loop.rank
    pieces = [state.top[None]]
    # X takes any value on the zero-sum fields: one matrix for each column of the way and each
    # direction
    for way in state.ways:
        pieces.append(np.einsum("am,bn->mnab", way, np.eye(size)).reshape(-1, size, size))
    span = np.concatenate(pieces)
    span = span[np.linalg.norm(span, axis=(1, 2)) > 0]
    weigh = loop.basis @ root
    design, wanted = (span @ weigh).reshape(len(span), -1).T, (target @ weigh).ravel()
    answer, _, rank, _ = np.linalg.lstsq(design, wanted, rcond=1e-10)
    gap = np.tensordot(answer, span, axes=1) - target
    return _explained(loop, loop.basis.T @ gap @ loop.basis, int(rank))


def _explained(loop: Fit, gap: Matrix, parameters: int) -> Explanation:
    numbers = loop.rows * loop.rank
    own = max(loop.scatter**2 * (loop.rows - loop.rank) * loop.rank, np.finfo(float).tiny)
    extra = float(np.sum((gap @ loop.gram.sum(axis=0)) * gap))
    criterion = numbers * np.log1p(extra / own) + parameters * np.log(numbers)
    return Explanation(
        parameters, float(np.linalg.norm(gap) / np.linalg.norm(loop.loop)), float(criterion)
    )


def _skew(matrix: Matrix) -> Matrix:
    return (matrix - matrix.T) / 2
