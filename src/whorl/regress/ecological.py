r"""Ecological inference: from the margins of every unit to its inner cells.

A unit (a precinct, a polling place) has a total $N_u$ and two margins, how many are in each group
before, $X_{uj}$, and after, $Y_{ui}$. Wanted is the table $T_{uij}$ inside. The margins bound it,

$$ \max(0, X_{uj} + Y_{ui} - N_u) \le T_{uij} \le \min(X_{uj}, Y_{ui}), $$

and a transition matrix makes a guess $P_{ij} X_{uj}$ that iterative proportional fitting moves, by
factors for rows and columns, until it has both margins: the table with these margins that is
closest to the guess in Kullback-Leibler divergence.

`inner_cells` takes one matrix for all units, or one per unit. `contextual` makes one per unit: what
a group does may depend on who lives around it. With $x_{uc}$ the share of group $c$ in a unit,

$$ P^{(u)}_{ij} = \sum_c x_{uc} M_{ijc}, \qquad q_u = P^{(u)} x_u = \sum_{jc} M_{ijc} \, x_{uj} x_{uc}, $$

which is a one-layer fit again, with products of two shares for inputs, and a prior that draws every
$M_{\cdot jc}$ to column $j$ of the common matrix. Its weight was chosen on 212 precincts whose
inner cells are known (docs/tutorials/composition.md says what came of it elsewhere).

The field's measure of error is the share of the mass that is in the wrong cell (`misallocated`).
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from whorl import _check
from whorl.regress.estimator import FlowRegressor

Units = Float[np.ndarray, "units _parts"]
Cells = Float[np.ndarray, "units out in"]


def margins(X: Any, y: Any, share: float = 0.01) -> tuple[Units, Units]:
    """Both margins of every unit, with one total.

    Units whose two totals differ by at most `share` (votes that count on one side only) are given
    the total of the first margin.

    Raises:
        ValueError: for negative entries, shapes that do not fit, or totals further apart.
    """
    before, after = (np.asarray(one, dtype=np.float64) for one in (X, y))
    if before.ndim != 2 or after.ndim != 2 or len(before) != len(after) or not len(before):
        raise ValueError(
            "X and y must have one row per unit, but their shapes are "
            f"{before.shape} and {after.shape}"
        )
    if (
        not (np.isfinite(before).all() and np.isfinite(after).all())
        or min(before.min(), after.min()) < 0
    ):
        raise ValueError("X and y must hold finite numbers that are not negative, but one is not")
    totals, others = before.sum(axis=1), after.sum(axis=1)
    apart = np.abs(others - totals) > _check.number("share", share, least=0.0) * np.maximum(
        totals, others
    )
    if apart.any():
        where = int(np.argmax(apart))
        raise ValueError(
            f"X and y must have the same total in every unit to within {share:g}, but unit {where} "
            f"has {totals[where]:g} and {others[where]:g}"
        )
    return (
        before,
        after * np.divide(totals, others, out=np.zeros_like(totals), where=others > 0)[:, None],
    )


def bounds(X: Any, y: Any, share: float = 0.01) -> tuple[Cells, Cells]:
    """The least and the largest value that every inner cell can have, given the margins.

    Examples:
        >>> from whorl.regress import bounds
        >>> low, high = bounds([[60, 40]], [[70, 30]])
        >>> low[0].tolist(), high[0].tolist()
        ([[30.0, 10.0], [0.0, 0.0]], [[60.0, 40.0], [30.0, 30.0]])
    """
    before, after = margins(X, y, share)
    totals = before.sum(axis=1)[:, None, None]
    low = np.maximum(0.0, before[:, None, :] + after[:, :, None] - totals)
    return low, np.minimum(before[:, None, :], after[:, :, None])


def inner_cells(
    transitions: Any,
    X: Any,
    y: Any,
    *,
    share: float = 0.01,
    tol: float = 1e-10,
    max_iter: int = 10_000,
) -> Cells:
    """The inner cells of every unit that have both margins and are closest to a transition matrix.

    Args:
        transitions: `(parts of y, parts of X)`, or one such matrix per unit.
        X: counts before, one row per unit.
        y: counts after.
        share: by how much the two totals of a unit may differ.
        tol: the margins are met to this share of the total.
        max_iter: rounds of proportional fitting.

    Returns:
        `(units, parts of y, parts of X)`, in the units of X.

    Examples:
        >>> from whorl.regress import inner_cells
        >>> cells = inner_cells([[0.9, 0.2], [0.1, 0.8]], [[60, 40]], [[70, 30]])
        >>> cells.sum(axis=1).round(6).tolist(), cells.sum(axis=2).round(6).tolist()
        ([[60.0, 40.0]], [[70.0, 30.0]])
    """
    before, after = margins(X, y, share)
    matrices = np.asarray(transitions, dtype=np.float64)
    wanted = (after.shape[1], before.shape[1])
    if matrices.shape not in (wanted, (len(before), *wanted)):
        raise ValueError(
            f"transitions must have shape {wanted}, but their shape is {matrices.shape}"
        )
    if not (np.isfinite(matrices).all() and (matrices >= 0).all()):
        raise ValueError(
            "transitions must hold finite numbers that are not negative, but one is "
            f"{matrices[~((matrices >= 0) & np.isfinite(matrices))][0]:g}"
        )
    # A cell that the matrix rules out may be needed to meet the margins: it gets next to nothing,
    # and keeps that unless it is needed.
    cells = np.maximum(matrices, 1e-12) * before[:, None, :]
    totals = np.maximum(before.sum(axis=1), 1e-300)
    left = np.arange(len(cells))
    for _ in range(_check.count("max_iter", max_iter)):
        part = cells[left]
        part *= _ratio(after[left], part.sum(axis=2))[:, :, None]
        part *= _ratio(before[left], part.sum(axis=1))[:, None, :]
        cells[left] = part
        off = np.abs(part.sum(axis=2) - after[left]).max(axis=1) > tol * totals[left]
        left = left[off]
        if not left.size:
            break
    return cells


def contextual(
    X: Any,
    y: Any,
    *,
    alpha: float = 0.1,
    least: float = 0.05,
    loss: str = "kl",
    share: float = 0.01,
) -> Cells:
    """A transition matrix per unit, which depends on the composition of the unit.

    Args:
        X: counts before, one row per unit.
        y: counts after.
        alpha: weight of the prior, in rows per pair of parts.
        least: parts of X that hold at least this share of everything are contexts of their own; the
            rest together are one.
        loss: as for `FlowRegressor`.
        share: by how much the two totals of a unit may differ.

    Returns:
        `(units, parts of y, parts of X)`, for `inner_cells`.

    Examples:
        >>> from whorl.regress import contextual
        >>> contextual([[60, 40], [20, 80], [50, 50]], [[70, 30], [30, 70], [55, 45]]).shape
        (3, 2, 2)
    """
    before, after = margins(X, y, share)
    full = before.sum(axis=1) > 0
    if not full.any():
        raise ValueError("X must have at least one unit with mass, but all sum to 0")
    shares = before[full] / before[full].sum(axis=1, keepdims=True)
    large = before.sum(axis=0) >= least * before.sum()
    around = np.column_stack([shares[:, large], shares[:, ~large].sum(axis=1)])
    around = around[:, around.any(axis=0)]
    common = FlowRegressor(loss=loss).fit(shares, after[full]).layers_[0]
    pairs = (shares[:, :, None] * around[:, None, :]).reshape(len(shares), -1)
    prior = np.repeat(common, around.shape[1], axis=1)
    model = FlowRegressor(loss=loss, alpha=alpha, prior=prior).fit(pairs, after[full])
    by_context = model.layers_[0].reshape(*common.shape, -1)
    found = np.tile(common, (len(before), 1, 1))
    found[full] = np.einsum("ijc,uc->uij", by_context, around)
    return found


def misallocated(cells: Any, truth: Any) -> float:
    """The share of the mass that is in the wrong cell: half the sum of differences over the total.

    Tables of all units together (`(out, in)`) or of every unit (`(units, out, in)`).

    Examples:
        >>> from whorl.regress import misallocated
        >>> misallocated([[50.0, 0.0], [0.0, 50.0]], [[45.0, 5.0], [5.0, 45.0]])
        0.1
    """
    found, known = np.asarray(cells, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if found.shape != known.shape:
        raise ValueError(
            f"cells and truth must have one shape, but theirs are {found.shape} and {known.shape}"
        )
    if not 0 < known.sum() < np.inf:
        raise ValueError(f"truth must have a positive, finite sum, but it is {known.sum():g}")
    return float(np.abs(found - known).sum() / (2 * known.sum()))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
