r"""Coupled learners of width three, many at once.

One update of both and its ledger in few elementwise passes.

The batch axis is last and every product is an explicit sum, so that the compiler sees nothing but
elementwise work on contiguous lanes. Four facts remove most of that work:

- columns and residuals conserve their sum: rows 0 and 1 tell all, every solve is 2x2, and
  potentials are counted from output 2;
- a score is the potential behind a layer times the flow into it, so that $b$ and $r$ are never
  matrices and row 2 needs no exponential;
- $G = K_\star v = Ce - \mu v$, and $e^\mathsf{T}H_V$ is a sum over columns of moments, so that the
  gate needs no second forward pass;
- samples enter the loss only through a sum of squares, which three rotated samples carry
  (`compress`).

`trajectory` says what is computed; this file only says it faster, for full supports, equal rates
and the leaky rotational law.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from whorl.fast import exponential
from whorl.fast.fused import keep
from whorl.fast.kept import updated


class Columns(NamedTuple):
    """All layers.

    Rows 0 and 1 as `head` (depth, 2, 3, lanes), row 2 as `tail` (depth, 3, lanes).
    """

    head: Array
    tail: Array


class Local(NamedTuple):
    """What a learner measures on its sample.

    Potentials are (depth, 2, lanes): of the residual, of b, of r.
    """

    flow: Array  # into every layer, (depth, 3, lanes)
    weights: Any  # sum over columns of x_i^2 Q(p_i), entries 00, 01, 11, each (depth, lanes)
    residual: Array
    b: Array
    r: Array
    displacement: Array  # G, (2, lanes)


class Learner(NamedTuple):
    """What the next update needs of a learner."""

    columns: Columns
    loss: Array


class Knobs(NamedTuple):
    """A policy, as far as this file knows policies."""

    scale: Array
    omega: Array
    leak: Array
    policy: str  # native, step_matched or adaptive
    gate: str  # curvature, always or never


def dot(a: Any, b: Any) -> Array:
    """Sum of products over two short lists or leading axes."""
    return functools.reduce(
        lambda total, pair: total + pair[0] * pair[1], zip(a[1:], b[1:], strict=True), a[0] * b[0]
    )


def axis(array: Array, at: int) -> list[Array]:
    """The slices along one axis, as a list."""
    return [jax.lax.index_in_dim(array, i, at, keepdims=False) for i in range(array.shape[at])]


def compress(inputs: Array, targets: Array) -> tuple[tuple[Array, Array], Array]:
    """Three rotated samples with the same sum of squared residuals, and the part of the loss that
    no network changes.

    Householder reflections along the sample axis. Inputs become (3 samples, 3, lanes), targets (2,
    3 samples, lanes).
    """
    padding = max(0, 3 - len(inputs))
    columns = [
        jnp.pad(c, ((0, padding), (0, 0))) for c in (*axis(inputs, 1), *axis(targets[:, :2], 1))
    ]
    for j in range(3):
        pivot = columns[j][j:]
        mirror = pivot.at[0].add(jnp.copysign(jnp.sqrt((pivot * pivot).sum(0)), pivot[0]))
        square = (mirror * mirror).sum(0)
        factor = jnp.where(square > 0, 2 / jnp.where(square > 0, square, 1.0), 0.0)
        columns = [
            c.at[j:].add(-(factor * (mirror * c[j:]).sum(0))[None] * mirror) for c in columns
        ]
    columns = [c * len(inputs) ** -0.5 for c in columns]
    y0, y1 = (c[3:] for c in columns[3:])
    rest = (y0 * (y0 + y1) + y1 * y1).sum(0)
    return (
        jnp.stack([c[:3] for c in columns[:3]], 1),
        jnp.stack([c[:3] for c in columns[3:]]),
    ), rest


def loss(head: Array, samples: tuple[Array, Array]) -> Array:
    """Mean loss of a network, less the constant that `compress` left over.

    Rows 0 and 1 of the total map on three samples.
    """
    inputs, targets = samples
    total = head[0]
    for layer in head[1:]:
        last = layer[:, 2]
        total = keep(
            last[:, None]
            + (layer[:, 0] - last)[:, None] * total[0][None]
            + (layer[:, 1] - last)[:, None] * total[1][None]
        )
    value = jnp.zeros_like(head[0, 0, 0])
    for j in range(3):  # the rotated inputs are triangular
        e0, e1 = (
            targets[a, j] - dot(axis(inputs[j], 0)[j:], axis(total[a], 0)[j:]) for a in (0, 1)
        )
        value = value + (e0 * (e0 + e1) + e1 * e1)
    return value


def downstream(head: Array) -> list[Array | None]:
    """R of each layer on zero-sum vectors in coordinates 0 and 1, (2, 2, lanes).

    None stands for the identity at the top.
    """
    maps: list[Array | None] = [None]
    for layer in head[:0:-1]:
        a, above = layer[:, :2] - layer[:, 2:], maps[0]
        maps.insert(
            0, keep(a if above is None else above[:, :1] * a[0][None] + above[:, 1:] * a[1][None])
        )
    return maps


def measure(columns: Columns, x: Array, y: Array, leak: Array) -> Local:
    """Forward, the response K*, and the 2x2 solves for both scores."""
    flow = [x]
    for head, tail in zip(*columns, strict=True):
        flow.append(
            keep(
                jnp.concatenate(
                    [dot(axis(head, 1), axis(flow[-1][:, None], 0)), dot(tail, flow[-1])[None]]
                )
            )
        )
    e = keep(y - flow.pop()[:2])
    inflow = keep(jnp.stack(flow))
    p0, p1, p2 = columns.head[:, 0], columns.head[:, 1], columns.tail
    q01, q02, q12 = (
        dot(axis(inflow * inflow * p, 1), axis(q, 1)) for p, q in ((p0, p1), (p0, p2), (p1, p2))
    )
    weights = keep((q01 + q02, -q01, q01 + q12))
    maps = downstream(columns.head)
    k00, k01, k11 = response(weights, maps, leak)
    inverse = 1.0 / (k00 * k11 - k01 * k01)
    relative = jnp.stack([2 * e[0] + e[1], e[0] + 2 * e[1]])
    turned = jnp.stack([-relative[1], relative[0]]) * 3**-0.5  # C e
    b, r = (
        keep(jnp.stack([k11 * d[0] - k01 * d[1], k00 * d[1] - k01 * d[0]]) * inverse[None])
        for d in (e, turned)
    )

    def at_layers(v: Array) -> Array:
        return keep(
            jnp.stack(
                [
                    v if down is None else down[0] * v[0][None] + down[1] * v[1][None]
                    for down in maps
                ]
            )
        )

    displacement = turned - (leak / 3)[None] * jnp.stack([2 * r[0] - r[1], 2 * r[1] - r[0]])
    return Local(inflow, weights, at_layers(relative), at_layers(b), at_layers(r), displacement)


def response(weights: Any, maps: list[Array | None], leak: Array) -> tuple[Array, Array, Array]:
    """K* plus the leak, entries 00, 01 and 11, with potentials counted from output 2."""
    k00, k01, k11 = leak * 2 / 3, -leak / 3, leak * 2 / 3
    for w00, w01, w11, down in zip(*weights, maps, strict=True):
        if down is None:
            t00, t01, t11 = w00, w01, w11
        else:
            (a, b), (c, d) = down
            left = down[:, 0] * w00[None] + down[:, 1] * w01[None]
            right = down[:, 0] * w01[None] + down[:, 1] * w11[None]
            left, right = keep((left, right))
            t00, t01, t11 = (
                left[0] * a + right[0] * b,
                left[0] * c + right[0] * d,
                left[1] * c + right[1] * d,
            )
        k00, k01, k11 = keep((k00 + t00, k01 + t01, k11 + t11))
    return k00, k01, k11


def bending(columns: Columns, local: Local) -> Array:
    """The bending less the squared displacement of the selected sample, positive where turning pays
    (Eqs. 23, 27, B1, B2).
    """
    q0, q1, f0, f1 = (v[:, a, None] for v in (local.r, local.residual) for a in (0, 1))
    p0, p1, x = columns.head[:, 0], columns.head[:, 1], local.flow
    mean_q, mean_f = keep((p0 * q0 + p1 * q1, p0 * f0 + p1 * f1))
    d0, d1 = q0 - mean_q, q1 - mean_q
    g0, g1 = keep((p0 * d0, p1 * d1))
    bend = keep(x * x * (g0 * (f0 * d0 - mean_f * q0) + g1 * (f1 * d1 - mean_f * q1)))
    tilt = keep(2 * (f0 * g0 + f1 * g1))
    w00, w01, w11 = local.weights
    moved = keep(
        (w00 * local.r[:, 0] + w01 * local.r[:, 1], w01 * local.r[:, 0] + w11 * local.r[:, 1])
    )
    total, first = dot(x[0], bend[0]), (moved[0][0], moved[1][0])
    for number in range(1, len(x)):
        shifted = [
            bend[number, i] + tilt[number, i] * v
            for i, v in enumerate((*first, -first[0] - first[1]))
        ]
        total = keep(total + dot(x[number], shifted))
        a = columns.head[number][:, :2] - columns.head[number][:, 2:]
        first = keep(
            tuple(moved[i][number] + a[i, 0] * first[0] + a[i, 1] * first[1] for i in (0, 1))
        )
    g0, g1 = local.displacement
    return total - 2 * (g0 * (g0 + g1) + g1 * g1)


def span(potential: Array, flow: Array) -> Array:
    """The largest score range within a column, and at least one: the envelope's denominator."""
    v0, v1 = potential[:, 0], potential[:, 1]
    largest = jnp.maximum(jnp.maximum(flow[:, 0], flow[:, 1]), flow[:, 2])
    ranges = largest * (
        jnp.maximum(jnp.maximum(v0, v1), 0.0) - jnp.minimum(jnp.minimum(v0, v1), 0.0)
    )
    return functools.reduce(jnp.maximum, axis(ranges, 0), jnp.ones_like(ranges[0]))


def growth(flow: Array, potential: Array, step: Array) -> tuple[Array, Array]:
    """Cosh and sinh of the exponents of a step."""
    return exponential.parts(flow[:, None] * (step[None, None] * potential)[:, :, None])


def stepped(columns: Columns, grown: Array) -> Columns:
    """Columns from unnormalised rows 0 and 1: one reciprocal per column."""
    inverse = 1.0 / (grown[:, 0] + grown[:, 1] + columns.tail)
    return Columns(keep(grown * inverse[:, None]), columns.tail * inverse)


def update_native(
    state: Learner, samples: Any, x: Array, y: Array, rule: Knobs
) -> tuple[Learner, Array]:
    """One update of the native learner, and its increment of the loss."""
    columns, before = state
    local = measure(columns, x, y, rule.leak)
    native = keep(rule.scale / span(local.b, local.flow))
    even, odd = growth(local.flow, local.b, native)
    columns = stepped(columns, keep(columns.head * (even + odd)))
    after = keep(loss(columns.head, samples))
    return Learner(columns, after), after - before


def update_turning(
    state: Learner, samples: Any, x: Array, y: Array, turn: Array, rule: Knobs
) -> tuple[Learner, tuple[Array, ...], list[Array]]:
    """One update of the nonreciprocal learner.

    Even, handedness, step, and the increment of its own native step; then all its losses.
    """
    local = measure(state.columns, x, y, rule.leak)
    native = keep(rule.scale / span(local.b, local.flow))
    return act(state, samples, local, native, *decide(state.columns, local, native, rule), turn)


def act(
    state: Learner,
    samples: Any,
    local: Local,
    native: Array,
    step: Array,
    amount: Array,
    turn: Array,
) -> tuple[Learner, tuple[Array, ...], list[Array]]:
    """The same, with step and amount decided."""
    columns, before = state
    step, push = keep((step, amount * turn * step))
    still = keep(columns.head * sum(growth(local.flow, local.b, step)))
    even, odd = keep(growth(local.flow, local.r, push))
    taken = stepped(columns, keep(still * (even + odd)))
    others = (
        keep(still * (even - odd)),
        still,
        keep(columns.head * sum(growth(local.flow, local.b, native))),
    )
    after = keep(loss(taken.head, samples))
    increment = after - before
    losses = [keep(loss(stepped(columns, grown).head, samples)) for grown in others]
    opposite, zero, own = (keep(one - before) for one in losses)
    mean = (increment + opposite) / 2
    return (
        Learner(taken, after),
        (mean - zero, increment - mean, zero - own, own),
        [after, *losses, step, amount],
    )


def decide(columns: Columns, local: Local, native: Array, rule: Knobs) -> tuple[Array, Array]:
    """Step and amount, as `policy` has them."""
    none = jnp.zeros_like(native)
    if rule.policy == "native":
        return native, none
    turned = rule.omega[None, None] * local.r
    kept = rule.scale / jnp.maximum(
        span(local.b + turned, local.flow), span(local.b - turned, local.flow)
    )
    if rule.gate == "always":
        return kept, rule.omega + none
    is_open = none > 1 if rule.gate == "never" else bending(columns, local) > 0
    return kept if rule.policy == "step_matched" else jnp.where(is_open, kept, native), jnp.where(
        is_open, rule.omega, none
    )


def choose(values: Array, k: Array) -> Array:
    """The values of sample k for each lane, by selection.

    A gather is slow on a CPU and does not fuse.
    """
    return functools.reduce(
        lambda old, s: jnp.where((k == s)[None], values[s], old), range(1, len(values)), values[0]
    )


def train(
    layers: Array,
    inputs: Array,
    targets: Array,
    samples: Any,
    order: Array,
    turns: Array,
    rule: Knobs,
    record: bool,
) -> Any:
    """Pairs from start to end.

    Sums (4, lanes), account (4) and outcome (7) of every update, (lanes, updates) each, both ends.
    """
    columns = Columns(layers[:, :2], layers[:, 2])
    start = Learner(columns, keep(loss(columns.head, samples)))

    def body(carry: tuple, now: tuple[Array, Array]) -> tuple[tuple, Any]:
        turning, native, sums = carry
        x, y = keep((choose(inputs, now[0]), choose(targets, now[0])))
        turning, (even, handedness, step, own), seen = update_turning(
            turning, samples, x, y, now[1].astype(layers.dtype), rule
        )
        native, other = update_native(native, samples, x, y, rule)
        row = [even, handedness, step, own - other]
        return (turning, native, sums + jnp.stack(row)), (row, [*seen, native.loss])

    sums = jnp.zeros((4, layers.shape[-1]), dtype=layers.dtype)
    (turning, native, sums), rows = updated(
        body, (start, start, sums), (order, turns), layers, record
    )
    ends = (
        jnp.concatenate([c.head, c.tail[:, None]], 1) for c in (turning.columns, native.columns)
    )
    return sums, rows, *ends, start.loss, turning.loss, native.loss
