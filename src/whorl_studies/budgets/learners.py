r"""Many learners under boundary laws of a given gain, side by side, the batch axis last.

Every product is an explicit sum over short axes, so that a compiler sees elementwise work alone.
The samples that are shown together have the response

$$ K_{(s,a),(t,b)} = \sum_{l,c} x^l_{sc} x^l_{tc}\,[U_l Q(p^{lc}) U_l^\mathsf{T}]_{ab}, $$

$x^l$ being the flows into layer $l$, $p^{lc}$ its columns and $U_l$ the map behind it, in zero-sum
coordinates. Its modes come from Jacobi's rotations, since LAPACK does not return from some compiled
loops. A turn is applied rotation by rotation and never built.
"""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from whorl import quarter_turn
from whorl.study.compute import fused, keep, tangent_basis

SWEEPS = 6  # of Jacobi's rotations: they leave nothing but round-off of a matrix of size six
CYCLE = 8  # Chebyshev steps
TOL = 1e-10  # modes below this share of the strongest are not turned
LINEAR = ("scalar", "leaky", "random", "critical")  # how a law acts, without modes
MODES = ("paired", "geometric")  # and with


class Lanes(NamedTuple):
    """What belongs to every learner, the batch axis last: arrays of NumPy or of JAX."""

    scale: Any  # (B,)
    act: Any  # which of LINEAR or MODES, (B,)
    gain: Any  # (B,)
    cycle: Any  # factors of the gain, one after the other, (CYCLE, B)
    momentum: Any  # of heavy ball, (B,)
    ahead: Any  # 1: Nesterov's, (B,)
    leak: Any  # (B,)
    cosine: Any  # least cosine of a turn, (B,)
    orthogonal: Any  # of the random law, (n, n, B)
    error: Any  # of the response as it is known, (n, n, B)
    noise: Any  # of the residual as it is read, (B,)
    delay: Any  # updates by which the known response is late, (B,)


class Shape(NamedTuple):
    """What a compiled program is for."""

    together: int  # samples that are shown together
    acts: tuple[str, ...]
    stale: int  # the longest delay
    noisy: bool
    spent: int  # efforts at which the loss is kept


class Learner(NamedTuple):
    """What the next update needs."""

    layers: Array  # (depth, w, w, B)
    velocity: Array  # of heavy ball, likewise
    effort: Array  # (B,)
    kept: Array  # losses at the first update with a given effort, (spent, B)
    ring: Array  # late layers, (stale, depth, w, w, B)


def total(terms: Any) -> Any:
    """The sum of a few arrays, one after the other."""
    return functools.reduce(operator.add, terms)


def highest(terms: Any) -> Array:
    """The largest of a few arrays, entry by entry."""
    return functools.reduce(jnp.maximum, terms)


def times(a: Any, b: Any) -> Any:
    """Matrices (i, k, B) and (k, j, B)."""
    return total(a[:, k, None] * b[None, k] for k in range(a.shape[1]))


def _numpy(array: Any) -> Any:
    """NumPy for its own arrays, which nothing compiles, and JAX's for all others."""
    return np if isinstance(array, np.ndarray) else jnp


def flows(layers: Any, inputs: Any) -> list[Any]:
    """What flows into every layer and out of the last, each (samples, w, B)."""
    found = [inputs]
    for layer in layers:
        now = found[-1]
        out = total(layer[None, :, c] * now[:, c, None] for c in range(layer.shape[1]))
        found.append(keep(out))
    return found


def behind(layers: Any) -> list[Any]:
    """The map from behind every layer to the outputs in zero-sum coordinates, (n, w, B)."""
    width, batch = layers.shape[1], layers.shape[-1]
    basis, numpy = np.asarray(tangent_basis(width)).T, _numpy(layers)
    found = [numpy.broadcast_to(numpy.asarray(basis)[:, :, None], (*basis.shape, batch))]
    for layer in layers[:0:-1]:
        found.insert(0, keep(times(found[0], layer)))
    return found


def response(layers: Any, shown: Any) -> Any:
    """K of the samples that are shown together, (n, n, B)."""
    samples, numpy = shown.shape[0], _numpy(layers)
    size = layers.shape[1] - 1
    blocks: dict[tuple[int, int], list[Array]] = {}
    for layer, flow, carried in zip(layers, flows(layers, shown), behind(layers), strict=False):
        for c in range(layer.shape[1]):
            column = layer[:, c]
            moved = keep(total(carried[:, i] * column[i] for i in range(len(column))))
            # Deviations from their mean: the difference of two products would lose digits.
            apart = [carried[:, i] - moved for i in range(len(column))]
            spread = keep(
                total(column[i] * apart[i][:, None] * apart[i][None] for i in range(len(column)))
            )
            for s in range(samples):
                for t in range(s, samples):
                    part = flow[s, c] * flow[t, c] * spread
                    blocks.setdefault((s, t), []).append(part)
    done = {at: total(parts) for at, parts in blocks.items()}
    rows = [
        numpy.concatenate([done[min(s, t), max(s, t)] for t in range(samples)], axis=1)
        for s in range(samples)
    ]
    return numpy.concatenate(rows, axis=0).reshape(samples * size, samples * size, -1)


def solved(matrix: Array, right: Array) -> Array:
    """The solution of positive definite systems (n, n, B) by elimination without pivots."""
    rows, sides = list(matrix), list(right)
    size = len(sides)
    for k in range(size):
        for i in range(k + 1, size):
            factor = keep(rows[i][k] / rows[k][k])
            rows[i] = keep(rows[i] - factor[None] * rows[k])
            sides[i] = keep(sides[i] - factor * sides[k])
    found: list[Array] = []
    for k in range(size)[::-1]:
        known = [rows[k][size - 1 - j] * found[j] for j in range(len(found))]
        rest = sides[k] - total(known) if known else sides[k]
        found.append(keep(rest / rows[k][k]))
    return jnp.stack(found[::-1])


def modes(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (n, B) and modes as columns (n, n, B), largest entries positive, unordered.

    Jacobi's rotations of n / 2 pairs at a time. Everyone meets everyone in n - 1 rounds, as in a
    tournament: the first keeps its place and the others move on by one.
    """
    size = matrix.shape[0]
    moved = [0, size - 1, *range(1, size - 1)]

    def meet(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        a, v = [list(row) for row in state[0]], list(jnp.swapaxes(state[1], 0, 1))
        turns = [(p, q, *keep(_jacobi(a[p][p], a[q][q], a[p][q]))) for p, q in pairs]
        for p, q, c, s in turns:
            for k in range(size):  # columns, then rows
                a[k][p], a[k][q] = c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]
            v[p], v[q] = c * v[p] - s * v[q], s * v[p] + c * v[q]
        for p, q, c, s in turns:
            for k in range(size):
                a[p][k], a[q][k] = c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]
            a[p][q] = a[q][p] = jnp.zeros_like(c)
        new = jnp.stack([jnp.stack([a[i][j] for j in moved]) for i in moved])
        return new, jnp.stack([v[i] for i in moved], axis=1)

    pairs = [(i, size - 1 - i) for i in range(size // 2)]
    eye = jnp.broadcast_to(jnp.eye(size)[:, :, None], matrix.shape)
    left, found = jax.lax.fori_loop(0, SWEEPS * (size - 1), meet, (matrix, eye))
    high, low = highest(found), -highest(-found)
    values = jnp.stack([left[k, k] for k in range(size)])
    return values, found * jnp.where(high + low < 0, -1.0, 1.0)[None]


def _jacobi(first: Array, second: Array, between: Array) -> tuple[Array, Array]:
    """Cosine and sine of the rotation after which nothing is left between two directions."""
    apart, off = second - first, 2 * between
    safe = jnp.abs(apart) + jnp.sqrt(apart * apart + off * off)
    tangent = jnp.where(apart < 0, -off, off) / jnp.where(safe > 0, safe, 1.0)
    cosine = 1 / jnp.sqrt(1 + tangent * tangent)
    return cosine, tangent * cosine


def turned(values: Array, along: Array, lanes: Lanes, sense: Array) -> Array:
    """A residual along the modes, (n, B), turned by pairs or by the geometric law.

    Modes below the tolerance are left as they are.
    """
    known = keep(jnp.where(values > TOL * highest(values), 1.0, 0.0))
    values = keep(jnp.where(known > 0, values, 1.0))
    logs = known * jnp.log(values)
    centred = known * (logs - total(logs) / jnp.maximum(total(known), 1.0))
    pairs = _paired(values, known, along, lanes.cosine, sense)
    whole = _geometric(keep(centred), known, along, sense)
    return jnp.where(lanes.act == MODES.index("paired"), pairs, whole)


def _paired(values: Array, known: Array, along: Array, least: Array, sense: Array) -> Array:
    size, count = len(values), total(known)

    def before(j: int, i: int) -> Array:
        first = (values[j] > values[i]) | ((values[j] == values[i]) & (j < i))
        return jnp.where(first, known[j], 0.0)

    place = keep([total(before(j, i) for j in range(size)) for i in range(size)])
    found = []
    for i in range(size):
        mine = [known[j] * (place[j] == count - 1 - place[i]) for j in range(size)]
        other, across = (total(m * x[j] for j, m in enumerate(mine)) for x in (values, along))
        sum_ = values[i] + other
        sine = (values[i] - other) / sum_  # above zero for the strong one
        cosine = 2 * jnp.sqrt(values[i] / sum_) * jnp.sqrt(other / sum_)
        short = cosine < least
        sine = jnp.where(short, jnp.sign(sine) * jnp.sqrt(1 - least * least), sine)
        cosine = jnp.where(short, least, cosine)
        bent = cosine * along[i] - sense * sine * across
        found.append(jnp.where(known[i] > 0, bent, along[i]))
    return jnp.stack(found)


def _geometric(centred: Array, alive: Array, along: Array, sense: Array) -> Array:
    done = []
    for _ in range(len(centred) - 1):
        top, high = _extreme(centred, alive, jnp.greater)
        bottom, low = _extreme(centred, alive * (1 - high), jnp.less)
        up, down = jnp.expm1(2 * jnp.maximum(top, 0.0)), -jnp.expm1(2 * jnp.minimum(bottom, 0.0))
        paired = (up + down > 0) & (total(low) > 0)
        safe = jnp.where(paired, up + down, 1.0)
        c, s = (jnp.where(paired, jnp.sqrt(a / safe), b) for a, b in ((down, 1.0), (up, 0.0)))
        high, low, c, s, top, bottom = keep((high, low, c, s, top, bottom))
        sides = ((jnp.where(paired, c * jnp.exp(top), 1.0), s * jnp.exp(bottom)), (c, s))
        first, second = (
            tuple(jnp.where(sense > 0, a, b) for a, b in zip(one, two, strict=True))
            for one, two in (sides, sides[::-1])
        )
        along = keep(_rotate(along, high, low, *first))
        done.append((high, low, keep(second)))
        centred = keep(centred * (1 - low) + low * (top + bottom))
        alive = alive * (1 - high)
    for high, low, (c, s) in done[::-1]:
        along = keep(_rotate(along, high, low, c, -s))
    return along


def _extreme(values: Array, alive: Array, better: Any) -> tuple[Array, Array]:
    """The largest or smallest of the living values, and its place as ones and zeros."""
    best, place = jnp.zeros_like(values[0]), [jnp.zeros_like(values[0])] * len(values)
    none = jnp.ones(values.shape[1:], dtype=bool)
    for i in range(len(values)):
        wins = (alive[i] > 0) & (none | better(values[i], best))
        best = jnp.where(wins, values[i], best)
        place = [jnp.where(wins, 0.0, one) for one in place]
        place[i] = jnp.where(wins, 1.0, 0.0)
        none = none & ~(alive[i] > 0)
    return best, jnp.stack(place)


def _rotate(along: Array, high: Array, low: Array, c: Array, s: Array) -> Array:
    one, two = total(high * along), total(low * along)
    return along + high * (c * one + s * two - one) + low * (c * two - s * one - two)


def potential(
    shape: Shape, known: Array, error: Array, lanes: Lanes, sense: Array, factor: Array
) -> Array:
    """What the law answers to a residual, (n, B)."""
    size = len(error)
    gain = lanes.gain * factor
    if shape.acts == MODES:
        values, vectors = keep(modes(known))
        along = total(vectors[i] * error[i] for i in range(size))
        answer = keep(turned(values, keep(along), lanes, sense))
        return gain * total(vectors[:, j] * answer[j] for j in range(size))
    eye = jnp.eye(size)[:, :, None]
    leaky = solved(known + lanes.leak * eye, error)
    anyhow = gain * total(lanes.orthogonal[:, j] * error[j] for j in range(size))
    found = jnp.where(lanes.act == 0, gain * error, jnp.where(lanes.act == 1, leaky, anyhow))
    if size != 2:
        return found
    basis = np.asarray(tangent_basis(3))
    skew = float((basis.T @ quarter_turn(3) @ basis)[1, 0])
    sum_, apart = known[0, 0] + known[1, 1], known[0, 0] - known[1, 1]
    sine = jnp.sqrt(apart * apart + 4 * known[0, 1] * known[0, 1]) / sum_
    cosine = 2 * jnp.sqrt(
        jnp.maximum(known[0, 0] * known[1, 1] - known[0, 1] * known[0, 1], 0.0)
    ) / sum_  # fmt: skip
    across = jnp.stack([-error[1], error[0]]) * skew
    return jnp.where(lanes.act == 3, gain * (cosine * error + sense * sine * across), found)


def mean_loss(layers: Array, inputs: Array, targets: Array) -> Array:
    """Half the squared residual, averaged over samples."""
    off = targets - flows(layers, inputs)[-1]
    return total(total(off * off)) / (2 * len(inputs))


def updated(
    shape: Shape, lanes: Lanes, data: tuple[Array, ...], learner: Learner, at: Any
) -> Learner:
    """One update of every learner."""
    inputs, targets, order, senses, noises, thresholds = data
    layers = learner.layers
    if shape.together == 1:
        chosen = [jnp.where(order[at] == s, 1.0, 0.0) for s in range(len(inputs))]
        shown, wanted = (
            total(one * side[s] for s, one in enumerate(chosen))[None] for side in (inputs, targets)
        )
    else:
        shown, wanted = inputs, targets
    reached, carried = flows(layers, shown), behind(layers)
    basis = np.asarray(tangent_basis(layers.shape[1]))
    off = wanted - reached[-1]
    error = jnp.concatenate(
        [jnp.stack([total(off[s, i] * float(basis[i, a]) for i in range(len(basis)))
                    for a in range(basis.shape[1])]) for s in range(len(off))]
    )  # fmt: skip
    if shape.noisy:
        error = error + lanes.noise * noises[at]
    known = keep(response(_late(shape, lanes, learner, at), shown))
    known = keep(times(keep(times(lanes.error, known)), jnp.swapaxes(lanes.error, 0, 1)))
    error = keep(error)
    v = keep(potential(shape, known, error, lanes, senses[at], lanes.cycle[at % CYCLE]))
    parts = v.reshape(len(off), -1, v.shape[-1])
    scores = jnp.stack(
        [
            total(
                total(u[a][:, None] * parts[s, a] for a in range(len(u))) * flow[s][None]
                for s in range(len(off))
            )
            for u, flow in zip(carried, reached, strict=False)
        ]
    )
    scores = keep(scores)
    velocity = lanes.momentum * learner.velocity + scores
    scores = keep(jnp.where(lanes.ahead > 0, scores + lanes.momentum * velocity, velocity))
    rows = [scores[:, i] for i in range(scores.shape[1])]
    top = keep(highest(rows))
    spans = top + highest([-row for row in rows])
    step = lanes.scale / jnp.maximum(1.0, highest(highest(spans)))
    step = keep(step)
    # A column does not see what is common to its scores, and that may be large.
    grown = keep(layers * jnp.exp(step * (scores - top[:, None])))
    moved = grown / total(grown[:, i] for i in range(grown.shape[1]))[:, None]
    effort = learner.effort + step * jnp.sqrt(total(v * v))
    kept, ring = learner.kept, learner.ring
    if shape.spent:
        # The loss after the first update by which the effort is spent, or after the last.
        loss = mean_loss(moved, inputs, targets)
        kept = jnp.where(learner.effort < thresholds, loss, kept)
    if shape.stale:
        ring = jax.lax.dynamic_update_index_in_dim(ring, layers, at % shape.stale, 0)
    return Learner(moved, velocity, effort, kept, ring)


def _late(shape: Shape, lanes: Lanes, learner: Learner, at: Any) -> Array:
    """The layers as they were some updates ago."""
    if not shape.stale:
        return learner.layers
    when = jnp.maximum(at - lanes.delay, 0)
    old = jnp.take_along_axis(learner.ring, (when % shape.stale)[None, None, None, None], axis=0)
    return jnp.where(lanes.delay > 0, old[0], learner.layers)


@functools.cache
def program(shape: Shape) -> Any:
    """A compiled run of one batch: losses and efforts at the marks, and what else is kept."""

    def run(layers: Array, lanes: Lanes, data: tuple[Array, ...], marks: Array) -> Any:
        batch = layers.shape[-1]
        start = Learner(
            layers,
            jnp.zeros_like(layers),
            jnp.zeros(batch),
            jnp.zeros((shape.spent, batch)),
            jnp.broadcast_to(layers, (shape.stale, *layers.shape)),
        )

        def onwards(k: Any, state: tuple[Learner, Array, Array]) -> tuple[Learner, Array, Array]:
            now, losses, efforts = state
            first = jnp.where(k == 0, 0, marks[jnp.maximum(k - 1, 0)])
            now = jax.lax.fori_loop(
                first, marks[k], lambda at, held: updated(shape, lanes, data, held, at), now
            )
            seen = mean_loss(now.layers, *data[:2])
            return now, losses.at[k].set(seen), efforts.at[k].set(now.effort)

        none = jnp.zeros((len(marks), batch))
        now, losses, efforts = jax.lax.fori_loop(0, len(marks), onwards, (start, none, none))
        return losses, efforts, now.kept, -highest(highest(highest(-now.layers)))

    return jax.jit(fused.whole(run), compiler_options=fused.compiler_options())
