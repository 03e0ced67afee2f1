r"""Ecological inference: from the margins of every unit to its inner cells.

A unit (a precinct, a polling place) has a total $N_u$ and two margins, how many are in each group
before, $X_{uj}$, and after, $Y_{ui}$. Wanted is the table $T_{uij}$ inside. The margins bound it,

$$ \max(0, X_{uj} + Y_{ui} - N_u) \le T_{uij} \le \min(X_{uj}, Y_{ui}), $$

and a transition matrix makes a guess $P_{ij} X_{uj}$ that factors for rows and columns move until it
has both margins: the table with these margins that is closest to the guess in Kullback-Leibler
divergence. Iterative proportional fitting alone finds these factors slowly where a cell that the
matrix rules out must be filled; with Newton's method for the factors of the rows it takes few
rounds, and the margins are met to round-off.

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
    tol: float = 1e-13,
    max_iter: int = 1000,
) -> Cells:
    """The inner cells of every unit that have both margins and are closest to a transition matrix.

    Args:
        transitions: `(parts of y, parts of X)`, or one such matrix per unit.
        X: counts before, one row per unit.
        y: counts after.
        share: by how much the two totals of a unit may differ.
        tol: the margins are met to this share of the total.
        max_iter: rounds of Newton's method and proportional fitting; about ten are needed.

    Returns:
        `(units, parts of y, parts of X)`, in the units of X.

    Raises:
        ValueError: for values that are refused, and where the margins of a unit are not met.

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
    guess = np.log(np.maximum(matrices, 1e-12))
    tol, most = _check.number("tol", tol, above=0.0), _check.count("max_iter", max_iter)
    totals, cells = before.sum(axis=1), np.zeros((len(before), *wanted))
    left = np.flatnonzero(totals > 0)
    factors, sums = np.zeros_like(after), np.divide(1.0, totals, out=totals * 0, where=totals > 0)
    off = totals * 0
    for _ in range(most):
        rows, columns = (one[left] * sums[left, None] for one in (after, before))
        logs = guess[left] if guess.ndim == 3 else guess
        factors[left], found, off[left] = _closer(logs, factors[left], rows, columns)
        cells[left] = found * totals[left, None, None]
        left = left[off[left] > tol]
        if not left.size:
            return cells
    worst = int(np.argmax(off))
    raise ValueError(
        f"cells must meet the margins to {tol:g} of the total with max_iter = {most}, but those "
        f"of unit {worst} are off by {off[worst] * totals[worst]:.2g} of {totals[worst]:g}"
    )


def _closer(logs: Any, factors: Units, rows: Units, columns: Units) -> tuple[Units, Cells, Any]:
    """The best of four steps of the logarithmic factors of rows, its tables, and how far they are
    off.

    Columns are met by every table. Proportional fitting never moves away from the rows; Newton's
    step is exact near the end, and cut to what an exponential allows far from it.
    """
    table = _table(logs, factors, rows, columns)
    reached = table.sum(axis=2)
    newton = _newton(table, columns, rows - reached)
    size = np.maximum(np.ptp(newton, axis=1), 1e-300)[:, None]
    ratio = np.where(rows > 0, rows, 1.0) / np.where(rows > 0, np.maximum(reached, 1e-300), 1.0)
    tried = [np.log(ratio), *(newton * np.minimum(1.0, most / size) for most in (32.0, 6.0, 1.0))]
    moved = [factors + one for one in tried]
    tables = [_table(logs, one, rows, columns) for one in moved]
    offs = np.stack([np.abs(one.sum(axis=2) - rows).sum(axis=1) for one in tables])
    best, every = offs.argmin(axis=0), np.arange(len(rows))
    return np.stack(moved)[best, every], np.stack(tables)[best, every], offs[best, every]


def _table(logs: Any, factors: Units, rows: Units, columns: Units) -> Cells:
    """The guess with factors for its rows, and for its columns those that meet them."""
    raised = logs + np.where(rows > 0, factors, -np.inf)[:, :, None]
    raised = np.exp(raised - raised.max(axis=1, keepdims=True))
    return columns[:, None, :] * raised / raised.sum(axis=1, keepdims=True)


def _newton(table: Cells, columns: Units, wanted: Units) -> Units:
    r"""The change of the factors that moves the sums of rows by `wanted`, to first order.

    With weights $W_{ik} = \sum_j T_{ij} T_{kj} / X_j$ it solves a circuit, $\sum_k W_{ik} (d_i -
    d_k) = b_i$. Elimination without a difference (Grassmann, Taksar and Heyman 1985) keeps the
    digits of parts that are tied to the others by weights of 1e-12 only.
    """
    weights = table @ np.swapaxes(_ratio(table, columns[:, None, :]), 1, 2)
    given, step = wanted.copy(), np.zeros_like(wanted)
    for k in range(given.shape[1] - 1, 0, -1):
        share = _ratio(weights[:, :k, k], weights[:, :k, k].sum(axis=1, keepdims=True))
        weights[:, :k, :k] += share[:, :, None] * weights[:, None, k, :k]
        given[:, :k] += share * given[:, k, None]
    for k in range(1, given.shape[1]):
        near = weights[:, k, :k]
        step[:, k] = _ratio(given[:, k] + (near * step[:, :k]).sum(axis=1), near.sum(axis=1))
    return step


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
    """The quotient, and 0 where it would be infinite."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 1e-290)
