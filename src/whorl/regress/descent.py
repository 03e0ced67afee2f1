r"""The optimum of a convex loss over columns on the simplex, with a certificate.

A projected Newton method (Bertsekas 1982). Slopes $g$ are counted from the mean slope of their
column, $g_{ij} - \sum_k P_{kj} g_{kj}$, since the mass of a column cannot change. Entries near zero
that the slope pushes further down are held and set to exactly zero; all others take a Newton step
together. A held entry returns as soon as its slope no longer pushes: that is the optimality
condition, so that weights vanish and return.

The second derivative couples no two rows of the layer, only the columns' sums do. With $H_i$ the
matrix of row $i$ and $\nu$ one multiplier per column, the step solves

$$ H_i d_i = \nu - g_i, \qquad \sum_i d_i = 0, $$

which is one small matrix per row and one for $\nu$ (`by_rows`). A single small problem is solved as
it is written, in one call (`at_once`): there NumPy's calls cost the time, not its arithmetic.

A step is taken where the slope along it has fallen enough (Hager and Zhang 2005): differences of
slopes keep their digits where those of losses have none left, and need no logarithm. A step that is
refused is tried again shorter and with more damping; damping falls with every step that is taken,
so that the last steps are Newton's.

The certificate is the Frank-Wolfe gap $\sum_{ij} P_{ij} (g_{ij} - \min_k g_{kj})$, which bounds the
distance to the optimum in value from above wherever the loss is convex.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import get_lapack_funcs

from whorl.regress.losses import Curves, Divergence, Layers, Loss, space

SOLVE: Any = get_lapack_funcs("gesv", dtype=np.float64)
NEAR = 1e-3  # entries below this may be held at zero
ENOUGH = 0.5  # a step may end going up again by this share of the slope that it began with
ROUND = 1e-11  # below this a gap that does not fall any more is round-off
TINY = 1e-300
FLAT = 1e-9  # the least damping: half the digits of a singular matrix
SMALL = 36  # entries of a single layer whose equations are solved in one call
PIVOTS = 4  # times that the set of held entries is looked at in one step
SWEPT = 32  # parts of the input up to which matrices are inverted without LAPACK


class Point(NamedTuple):
    """Where the descent is, for every problem."""

    layer: Layers
    seen: Any
    push: Layers  # the slope, counted from the mean of its column
    curve: Curves
    size: Float[Any, "b"]  # 4 times the share of a step to try next; up to 1 no entry may vanish
    damping: Float[Any, "b"]
    least: Float[Any, "b"]  # of the damping


@dataclass(frozen=True)
class Found:
    """The optimum of every problem.

    Args:
        layer: `(b, out, in)`, columns sum to one, zeros are exact.
        value: the loss.
        gap: how far above the optimum it is at most.
        steps: Newton steps tried.
        trail: the layers of a single problem, before every step and after the last.
    """

    layer: Float[np.ndarray, "b out in"]
    value: Float[np.ndarray, "b"]
    gap: Float[np.ndarray, "b"]
    steps: Int[np.ndarray, "b"]
    trail: list[Float[np.ndarray, "1 out in"]]


def minimise(loss: Loss, start: Layers, tol: float = 1e-12, max_iter: int = 200) -> Found:
    """Descend from columns inside the simplex until every gap is at most `tol`.

    Ends after `max_iter` steps, or where round-off keeps a gap from falling any further.
    """
    xp = space(start)
    if isinstance(loss, Divergence) and loss.sample is not None:
        # Most steps are spent far from the optimum, where some of the rows are as good as all.
        start = inside(xp.asarray(minimise(loss.thinned(), start, 1e-5, max_iter).layer), 1e-6)
    begin, onward = (_begin, step) if xp is np else (_begin_compiled, _step_compiled)
    point, left, trail = begin(loss, start), np.arange(start.shape[0]), []
    layer, (value, gaps) = np.empty(start.shape), np.empty((2, left.size))
    steps, since, least = np.zeros(left.size, int), np.zeros(left.size), np.full(left.size, np.inf)
    for number in range(max_iter + 1):
        now = np.abs(np.asarray(point.push).min(axis=1)).sum(axis=1)  # the gap
        if len(layer) == 1:
            trail.append(point.layer)
        if now.min() <= max(tol, ROUND) or number == max_iter:
            since, least = np.where(now < least / 2, number, since), np.minimum(now, least)
            done = (now <= tol) | ((number > since + 3) & (now < ROUND)) | (number == max_iter)
            if done.all() or (done.any() and xp is np):  # a compiled step is made for one shape
                out, at = left[done], np.asarray(loss.value(point.layer, point.seen))
                layer[out], value[out] = np.asarray(point.layer)[done], at[done]
                gaps[out], steps[out] = now[done], number
                if done.all():
                    break
                left, least, since = left[~done], least[~done], since[~done]
                loss, point = loss.only(~done), _only(point, ~done)
        with np.errstate(all="ignore"):  # what is not a number is refused
            point = onward(loss, point)
    return Found(layer, value, gaps, steps, trail)


def step(loss: Loss, point: Point) -> Point:
    """One step of every problem, or more damping where the slope along it has not fallen enough."""
    xp, to = space(point.layer), _moved(point)
    there = _at(loss, to, point.size, point.damping, point.least)
    by = (to - point.layer).reshape(to.shape[0], -1)
    before, after = (xp.vecdot(one.push.reshape(by.shape), by) for one in (point, there))
    taken = after <= -ENOUGH * before
    if xp is np and taken.all():
        grown = np.maximum(point.damping * np.where(point.size > 1, 0.1, 1.0), point.least)
        whole = np.full(len(by), 4.0)
        return there._replace(size=whole, damping=grown)
    # Every refusal is a sign of many optima: from then on the nearest is asked for more firmly.
    least = xp.where(taken, point.least, xp.minimum(2 * point.least, 1e-2))
    factor = xp.where(taken, xp.where(point.size > 1, 0.1, 1.0), 4.0)
    damping = xp.clip(point.damping * factor, least, 1e6)
    size = xp.where(taken, 4.0, point.size / 2)
    layer, seen, push, curve = (
        xp.where(taken.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        for new, old in zip(there[:4], point[:4], strict=True)
    )
    return Point(layer, seen, push, curve, size, damping, least)


def inside(layer: Layers, share: float) -> Layers:
    """Columns moved towards their middle by a share, so that no entry is zero."""
    return (1 - share) * layer + share / layer.shape[1]


def by_rows(curve: Curves, down: Layers, free: Any, right: Layers, damping: Any) -> Layers:
    r"""The step of the free entries, $H_i d_i = \nu + r_i$, with a sum that makes up for `down`."""
    xp, eye = space(right), np.eye(right.shape[2], dtype=bool)[None, None]
    bend = xp.diagonal(curve, axis1=-2, axis2=-1)
    most = bend.reshape(len(bend), -1).max(axis=1)[:, None, None]
    scale = xp.where(free, 1 / xp.sqrt(bend + (1e-9 * most + TINY)), 0.0)
    scales = scale[..., :, None] * scale[..., None, :]
    damped = (1 + damping)[:, None, None, None]
    inverse = _inverse(xp.where(eye, damped, curve * scales)) * scales
    alone = (inverse @ right[..., None])[..., 0]
    shared = inverse.sum(axis=1)
    scale = 1 / xp.sqrt(xp.diagonal(shared, axis1=-2, axis2=-1))
    scales = scale[..., :, None] * scale[..., None, :]
    wanted = (alone + down).sum(axis=1)[..., None]
    multiplier = (_inverse(shared * scales) * scales) @ wanted
    return alone - (inverse @ multiplier[:, None])[..., 0]


def at_once(curve: Curves, down: Layers, free: Any, right: Layers, damping: Any) -> Layers:
    """The same for a single problem, with all its equations in one matrix."""
    _, out, width = right.shape
    frame, places = _frame(out, width)
    matrix, size = frame.copy(), out * width
    flat, held = matrix.reshape(-1), (~free).reshape(-1).nonzero()[0]
    flat[places] = (curve if curve.shape[1] == out else curve.repeat(out, axis=1)).reshape(-1)
    diagonal = flat[: size * len(matrix) : len(matrix) + 1]
    diagonal += diagonal * damping[0] + (1e-9 * diagonal.max() + TINY)
    given = np.concatenate([right.reshape(-1), -down[0].sum(axis=0)])
    if held.size:
        matrix[held], given[held], diagonal[held] = 0.0, 0.0, 1.0
    return SOLVE(matrix, given)[2][:size].reshape(right.shape)


@cache
def _frame(out: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The equations of a layer with nothing in the blocks of its rows, and where those are."""
    size = out * width
    sums = np.tile(np.eye(width), (1, out))
    matrix = np.block([[np.zeros((size, size)), -sums.T], [sums, np.zeros((width, width))]])
    entry = np.arange(size).reshape(out, width)
    places = entry[:, :, None] * len(matrix) + entry[:, None, :]
    return matrix, places.reshape(-1)


def _begin(loss: Loss, start: Layers) -> Point:
    none = space(start).zeros(start.shape[0])
    return _at(loss, loss.begun(start), none + 4, none + FLAT, none + FLAT)


def _at(loss: Loss, layer: Layers, size: Any, damping: Any, least: Any) -> Point:
    seen = loss.seen(layer)
    slope, curve = loss.slopes(seen)
    push = slope - (layer * slope).sum(axis=1, keepdims=True)
    return Point(layer, seen, push, curve, size, damping, least)


_begin_compiled, _step_compiled = jax.jit(_begin), jax.jit(step)


def _moved(point: Point) -> Layers:
    """The columns after the step."""
    xp = space(point.layer)
    layer, push, curve = point.layer, point.push, point.curve
    # An entry is held at zero where the slope alone would take it there.
    bend = xp.diagonal(curve, axis1=-2, axis2=-1)
    free = (layer * bend > push) | (layer > NEAR)
    single = xp is np and layer.shape[0] == 1 and layer.size <= SMALL
    solve, along = at_once if single else by_rows, layer
    if xp is np and point.size.min() > 1 and point.least.max() == FLAT:  # nothing was refused yet
        down = np.where(free, 0.0, -layer)
        right = -push - (curve @ down[..., None])[..., 0]
        to = np.maximum(layer + down + solve(curve, down, free, right, point.damping), 0.0)
        return to / to.sum(axis=1, keepdims=True)
    size, whole = point.size[:, None, None], (point.size > 1)[:, None, None]
    for _ in range(PIVOTS):
        down = xp.where(free, 0.0, -layer)
        # What held entries give up is shared by all at first. After a refusal it goes to the column
        # as it is, whose mean slope they were compared with: that can only lower the loss.
        right = -push - (curve @ xp.where(whole, down, 0.0)[..., None])[..., 0]
        down = down - xp.where(whole, 0.0, layer * down.sum(axis=1, keepdims=True))
        along = down + solve(curve, down, free, right, point.damping)
        # Once a step was refused, entries that the next would take below zero are held, too.
        tried = (point.least > FLAT)[:, None, None]
        falls = tried & free & (layer + along < 0) & (layer < layer.max(axis=1, keepdims=True))
        if xp is np and not falls.any():
            break
        free = free & ~falls
    share, least = xp.where(whole, size / 4, size), xp.where(whole, 0.0, layer / 10)
    to = xp.maximum(layer + share * along, least)
    return to / to.sum(axis=1, keepdims=True)


def _inverse(matrix: Float[Any, "... in in"]) -> Float[Any, "... in in"]:
    r"""Inverses of positive definite matrices with a diagonal of ones.

    Every pivot is swept once. With $u$ its column less one at the pivot $a$, a sweep is $A - uu^
    \mathsf{T}/a$ less two at the pivot, and all sweeps together make $-A^{-1}$. For many small
    matrices that is far less work than calls of LAPACK.
    """
    size = matrix.shape[-1]
    if size > SWEPT:
        return space(matrix).linalg.inv(matrix)
    units, twos = (space(matrix).asarray(one) for one in _units(size, matrix.ndim - 2))

    def sweep(k: Any, matrix: Any) -> Any:
        column = matrix[..., k] - units[k]
        row = column / matrix[..., k, k, None]
        return matrix - column[..., :, None] * row[..., None, :] - twos[k]

    if space(matrix) is not np:
        return -jax.lax.fori_loop(0, size, sweep, matrix)
    for k in range(size):
        matrix = sweep(k, matrix)
    return -matrix


@cache
def _units(size: int, before: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors with some axes before their own, and twice their products with themselves."""
    units = np.eye(size).reshape(size, *[1] * before, size)
    return units, 2 * units[..., :, None] * units[..., None, :]


def _only(point: Point, keep: Bool[np.ndarray, "b"]) -> Point:
    return Point(*(one[keep] for one in point))
