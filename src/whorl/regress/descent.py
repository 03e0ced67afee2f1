r"""The optimum of a convex loss over columns on the simplex, with a certificate.

A projected Newton method (Bertsekas 1982). In every column the largest entry is what the others
give to and take from; the rest are bounded below by zero. Entries near zero that the slope pushes
further down are held and set to exactly zero; all others take a Newton step together. A held entry
returns as soon as its slope no longer pushes: that is the optimality condition, so that weights
vanish and return.

The second derivative couples no two rows of the layer, only the columns' sums do. With $H_i$ the
matrix of row $i$ and $\nu$ one multiplier per column, the step solves

$$ H_i d_i = \nu - g_i, \qquad \sum_i d_i = 0, $$

which is one small matrix per row and one for $\nu$. A step that does not lower the loss as promised
is tried again with more damping; damping falls with the gap, so that the last steps are Newton's.

The certificate is the Frank-Wolfe gap $\sum_{ij} P_{ij} (g_{ij} - \min_k g_{kj})$, which bounds the
distance to the optimum in value from above wherever the loss is convex.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from whorl.regress.losses import Divergence, Layers, Loss, space

NEAR = 1e-3  # entries below this may be held at zero
ENOUGH = 1e-4  # of the promised fall must be kept
ROUND = 1e-11  # below this a gap that does not fall any more is round-off
TINY = 1e-300
MASS = 2.0**-52
FLAT = 1e-9  # the least damping: half the digits of a singular matrix


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Point:
    """Where the descent is, for every problem."""

    layer: Layers
    seen: Any
    slope: Layers
    curve: Any
    size: Float[Any, "b"]  # the share of the Newton step to try next; 2: all, and zeros are allowed
    damping: Float[Any, "b"]
    least: Float[Any, "b"]  # of the damping
    fallen: Float[Any, "b"]  # how much the last step lowered the loss; 0 if it was not taken


@dataclass(frozen=True)
class Found:
    """The optimum of every problem.

    Args:
        layer: `(b, out, in)`, columns sum to one, zeros are exact.
        value: the loss.
        gap: how far above the optimum it is at most.
        steps: Newton steps tried.
        path: the loss of the first problem before every step and after the last.
    """

    layer: Float[np.ndarray, "b out in"]
    value: Float[np.ndarray, "b"]
    gap: Float[np.ndarray, "b"]
    steps: Int[np.ndarray, "b"]
    path: Float[np.ndarray, "_steps"]


def gap(layer: Layers, slope: Layers) -> Float[Any, "b"]:
    """The Frank-Wolfe gap."""
    return (layer * (slope - slope.min(axis=1, keepdims=True))).sum(axis=(1, 2))


def minimise(loss: Loss, start: Layers, tol: float = 1e-12, max_iter: int = 200) -> Found:
    """Descend from columns inside the simplex until every gap is at most `tol`.

    Ends after `max_iter` steps, or where round-off keeps a gap from falling any further.
    """
    xp = space(start)
    if isinstance(loss, Divergence) and loss.sample is not None:
        # Most steps are spent far from the optimum, where some of the rows are as good as all.
        start = inside(xp.asarray(minimise(loss.thinned(), start, 1e-5, max_iter).layer), 1e-6)
    point, left, falls = _begin(loss, start), np.arange(start.shape[0]), []
    layer, (value, gaps) = np.empty(start.shape), np.empty((2, left.size))
    steps, idle, least = np.zeros(left.size, dtype=int), np.zeros(left.size), np.inf
    for number in range(max_iter + 1):
        now = np.asarray(gap(point.layer, point.slope))
        idle, least = np.where(now < least / 2, 0, idle + 1), np.minimum(now, least)
        done = (now <= tol) | ((idle > 3) & (now < ROUND)) | (number == max_iter)
        if done.all() or (done.any() and xp is np):  # a compiled step is made for one shape
            out, at = left[done], np.asarray(loss.value(point.layer, point.seen))
            layer[out], value[out] = np.asarray(point.layer)[done], at[done]
            gaps[out], steps[out] = now[done], number
            if done.all():
                break
            left, least, idle = left[~done], least[~done], idle[~done]
            loss, point = loss.only(~done), _only(point, ~done)
        point = step(loss, point) if xp is np else _compiled(loss, point)
        falls.append(float(point.fallen[0]))
    path = value[0] + np.cumsum([0.0, *falls[::-1]])[::-1]
    return Found(layer, value, gaps, steps, path)


def step(loss: Loss, point: Point) -> Point:
    """One step of every problem, or more damping where it would not lower the loss enough."""
    xp = space(point.layer)
    to, promised = _moved(point)
    with np.errstate(divide="ignore", invalid="ignore"):
        change, noise = loss.change(point.seen, to - point.layer)
    # Columns sum to one up to round-off, and that alone moves the loss.
    noise = noise + MASS * abs(point.slope).max(axis=1).sum(axis=1)
    taken = change <= ENOUGH * promised + noise
    size = xp.where(taken, 4.0, point.size / 2)
    factor = xp.where(taken, xp.where(point.size >= 1, 0.1, 1.0), 4.0)
    # Every refusal is a sign of many optima: from then on the nearest is asked for more firmly.
    least = xp.minimum(point.least * xp.where(taken, 1.0, 2.0), 1e-2)
    damping = xp.clip(point.damping * factor, least, 1e6)
    if xp is np and not taken.any():
        none = np.zeros_like(change)
        return replace(point, size=size, damping=damping, least=least, fallen=none)
    to = xp.where(taken[:, None, None], to, point.layer)
    there = loss.seen(to)
    return Point(
        to, there, *loss.slopes(there), size, damping, least, xp.where(taken, -change, 0.0)
    )


_compiled = jax.jit(step)


def inside(layer: Layers, share: float) -> Layers:
    """Columns moved towards their middle by a share, so that no entry is zero."""
    return (1 - share) * layer + share / layer.shape[1]


def _begin(loss: Loss, layer: Layers) -> Point:
    seen = loss.seen(layer)
    none = space(layer).zeros(layer.shape[0])
    return Point(layer, seen, *loss.slopes(seen), none + 4, none + FLAT, none + FLAT, none)


def _moved(point: Point) -> tuple[Layers, Float[Any, "b"]]:
    """The columns after the step, and the change of the loss that its slope promises."""
    xp = space(point.layer)
    layer, slope, curve = point.layer, point.slope, point.curve
    out, width = layer.shape[1:]
    base = np.arange(out)[:, None] == layer.argmax(axis=1)[:, None, :]
    push = slope - (slope * base).sum(axis=1, keepdims=True)
    bend = xp.diagonal(curve, axis1=-2, axis2=-1)
    scale = bend.mean(axis=(1, 2))[:, None, None] + TINY
    # An entry is held at zero where the slope alone would take it there.
    fall = push / (bend + 1e-6 * scale)
    held = (layer <= xp.minimum(fall, NEAR)) & (push > 0)
    reach = xp.minimum(abs(xp.minimum(layer, fall)).max(axis=(1, 2)), 1.0)[:, None, None]
    free = ~held
    both = free[..., :, None] & free[..., None, :]
    # Of the damping, a part falls with the gap: where the loss is flat it chooses the nearest
    # of many optima, and does not slow the last steps.
    damping = point.damping[:, None, None] + reach * 1e-7
    added = held * scale + damping * (bend + 1e-3 * scale)
    filled = xp.where(both, curve, 0.0) + added[..., None] * np.eye(width)
    inverse = xp.where(both, xp.linalg.inv(filled), 0.0)
    size = point.size[:, None, None]
    # What held entries give up is shared by all at first. After a refusal it goes to the base,
    # whose slope they were compared with: that can only lower the loss.
    down = -layer * held
    felt = down * (size > 1)
    alone = -(inverse @ (push[..., None] + curve @ felt[..., None]))[..., 0]
    shared = xp.linalg.solve(inverse.sum(axis=1), -(alone + felt).sum(axis=1)[..., None])
    along = down + alone + (inverse @ shared[:, None])[..., 0]
    least = xp.where(size > 1, 0.0, layer / 10)
    to = xp.maximum(layer + xp.where(size > 1, size / 4, size) * along, least)
    over = 1 - to.sum(axis=1, keepdims=True)
    given = to + over * base
    # Where the base cannot pay for all that was cut off, everybody does.
    to = xp.where((given * base).sum(axis=1, keepdims=True) > 0, given, to / (1 - over))
    return to, (push * (to - layer)).sum(axis=(1, 2))


def _only(point: Point, keep: Bool[np.ndarray, "b"]) -> Point:
    return Point(*(getattr(point, field.name)[keep] for field in fields(point)))
