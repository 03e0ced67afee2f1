r"""Coupled learners of any widths, many at once.

The batch axis is last and every product is a sum over one width, so that the compiler sees
elementwise work on contiguous lanes, and a program grows with the width, not with its square or
with depth. Both learners of a pair are one array with a leading axis, the nonreciprocal one first.

- The response is carried forward with the flow, $K_\ell = \mathrm{diag}(P d) + P (K_{\ell-1} -
  \mathrm{diag}(d)) P^\mathsf{T}$ with $d = \rho
  x^2$: two products per layer, and no map from a layer to the outputs.
- The rows of $K$ sum to zero. Only what is off the diagonal is computed, where every term carries
  two weights of one layer and $d$ cannot drown $K$; the diagonal is minus its sum. Digits are kept
  however near a column is to a vertex, and there is no other form to switch to.
- A score is the potential behind a layer times the flow into it, so that $b$ and $r$ are vectors.
- The gate is $e^\mathsf{T}H_V - \lVert G\rVert^2$ from centred moments of the columns; only the
  displacement, of first order in them, needs the error of the mean taken off.

`trajectory` says what is computed; this file only says it faster.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby
from operator import add, mul
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from whorl.fast import exponential
from whorl.fast.fused import keep, on_cpu
from whorl.fast.kept import updated

FEW = 16  # samples that are chosen from by selection
UNROLLED = 256  # entries of all layers of one shape, up to which a device gets no loop over them
NONE = np.int32(0)  # where slices begin; Python's own integers would take longer to trace
Groups = list[Any]  # one entry per run of layers of one shape, its arrays with these layers first


class Rule(NamedTuple):
    """What is done at an update, as far as this file knows it."""

    policy: str  # native, step_matched, adaptive or rollout
    gate: str  # curvature, always or never
    full: bool  # whether every entry of every layer is positive
    reach: float | None  # the largest exponent of a step; None where no polynomial serves
    solve: Callable[[Array | None, Array], Array]  # K and residuals to potentials
    needs_response: bool
    skew: np.ndarray | Array  # C, (out, out)
    alpha: Array
    scale: Array
    omega: Array

    @property
    def turns(self) -> bool:
        """Whether any learner may ever turn."""
        return self.policy != "native" and self.gate != "never"

    @property
    def reserves(self) -> bool:
        """Whether a step may have to leave room for a turn, taken or not."""
        return self.turns or self.policy == "step_matched"


# State, rates, what was measured, the number of the update and its sense, to what is measured
# instead, a step, an amount and a choice.
Chooser = Callable[[Groups, Groups, "Local", Array, Array], tuple["Local", Array, Array, Array]]


class Local(NamedTuple):
    """What learners measure on their sample, layer by layer; potentials have a last entry of 0."""

    flow: Groups  # into a layer, (learners, in, lanes)
    push: Groups  # rate times flow
    b: Groups  # potential behind a layer, (learners, out, lanes)
    r: Groups
    residual: Groups
    native: Array  # the envelope's step of b, (learners, lanes)
    kept: Array  # the step that leaves room for a turn of either sense


class Layer(NamedTuple):
    """One layer of a stack, whose rows and columns are read in place.

    The compiler fuses what is read up to fifteen times: a layer that is taken out first and summed
    over sixteen columns would be copied.
    """

    stack: Array  # (layers, learners, out, in, lanes)
    number: Any  # which; traced in a loop
    learner: int | None = None  # all of them where None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the layer, whose axis of learners is missing where one is chosen."""
        return self.stack.shape[1 if self.learner is None else 2 :]

    def cut(self, axis: int | None = None, index: int = 0) -> Array:
        """The layer, or one slice of it."""
        chosen: dict[int, Any] = {0: self.number}
        if self.learner is not None:
            chosen[1] = np.int32(self.learner)
        if axis is not None:
            chosen[self.stack.ndim + axis] = np.int32(index)
        sizes = [1 if i in chosen else size for i, size in enumerate(self.stack.shape)]
        starts = [chosen.get(i, NONE) for i in range(len(sizes))]
        return jax.lax.squeeze(jax.lax.dynamic_slice(self.stack, starts, sizes), list(chosen))


def at(array: Array | Layer, index: int, axis: int) -> Array:
    """One slice; axes count from the end, since learners may or may not come first."""
    if isinstance(array, Layer):
        return array.cut(axis, index)
    return jax.lax.index_in_dim(array, index, array.ndim + axis, keepdims=False)


def entries(array: Array | Layer, axis: int) -> list[Array]:
    """All slices along one axis."""
    return [at(array, index, axis) for index in range(array.shape[axis])]


def whole(array: Array | Layer) -> Array:
    """All of it."""
    return array.cut() if isinstance(array, Layer) else array


def total(array: Array, axis: int, by: Callable[[Array, Array], Array] = add) -> Array:
    """The sum along an axis, as elementwise work: a reduction would not use the lanes."""
    return reduce(by, entries(array, axis))


def summed(make: Callable[..., Array], axis: int, layer: Array | Layer, *fields: Array) -> Array:
    """The sum over an axis of what `make` gives of a layer and fields that are broadcast to it.

    A CPU adds slice to slice, each read where it lies; a device, which would write every slice
    down first, reduces. The first field says how many slices there are.
    """
    size = fields[0].shape[axis]
    if not on_cpu():
        return jnp.sum(make(jax.lax.slice_in_dim(whole(layer), 0, size, axis=axis), *fields), axis)

    def cut(one: Array | Layer, index: int) -> Array:
        if isinstance(one, Layer) or one.shape[axis] > 1:
            return jnp.expand_dims(at(one, index, axis), axis)
        return one

    parts = (make(*(cut(one, index) for one in (layer, *fields))) for index in range(size))
    return jnp.squeeze(reduce(add, parts), axis)


def acted(matrix: Array | Layer, vector: Array) -> Array:
    """Matrices (..., out, in, lanes) on vectors (..., in, lanes)."""
    return summed(mul, -2, matrix, vector[..., None, :, :])


def product(one: Array | Layer, other: Array) -> Array:
    """Matrices (..., a, b, lanes) times matrices (..., b, c, lanes)."""
    if not on_cpu():
        return jnp.sum(whole(one)[..., :, :, None, :] * other[..., None, :, :, :], -3)
    return reduce(
        add,
        (
            column[..., :, None, :] * at(other, j, -3)[..., None, :, :]
            for j, column in enumerate(entries(one, -2))
        ),
    )


def product_transposed(one: Array, other: Array | Layer) -> Array:
    """Matrices (..., a, b, lanes) times transposed matrices (..., c, b, lanes)."""
    if not on_cpu():
        return jnp.sum(one[..., :, None, :, :] * whole(other)[..., None, :, :, :], -2)
    return reduce(
        add,
        (
            column[..., :, None, :] * at(other, j, -2)[..., None, :, :]
            for j, column in enumerate(entries(one, -2))
        ),
    )


def grounded(head: Array) -> Array:
    """Fields counted from their last entry, with it."""
    return jnp.concatenate([head, jnp.zeros_like(head[..., :1, :])], -2)


def groups(arrays: Sequence[Array]) -> list[Array]:
    """Layers stacked where shapes repeat."""
    runs = (list(run) for _, run in groupby(arrays, lambda array: array.shape))
    return [jnp.stack(run) for run in runs]


def ungrouped(stacks: Sequence[Array]) -> list[Array]:
    """Layers one by one."""
    return [layer for stack in stacks for layer in stack]


def unrolled(stack: Array) -> bool:
    """Whether layers of one shape are a longer program and not a loop.

    On a device a loop over small layers costs up to a third of the speed. Large ones are worth a
    seventh, but would compile for half a minute.
    """
    layers, _, out, into, _ = stack.shape
    return not on_cpu() and layers * out * into <= UNROLLED


def swept(
    body: Callable[[Any, Layer, Any], tuple[Any, Any]],
    carry: Any,
    layers: Groups,
    more: Groups,
    reverse: bool = False,
    skipped: int = 0,
) -> tuple[Any, Groups]:
    """`jax.lax.scan` over all layers but the first `skipped`, with `more` beside each layer."""
    made = []
    listed = list(zip(layers, more, [skipped] + [0] * len(layers), strict=False))
    for stack, known, first in listed[::-1] if reverse else listed:
        rest = jax.tree.map(lambda a, first=first: a[first:], known)
        if stack.shape[0] - first > 1:

            def step(carry: Any, now: tuple, stack: Array = stack) -> tuple[Any, Any]:
                return body(carry, Layer(stack, now[0]), now[1])

            numbers = jnp.arange(first, stack.shape[0], dtype=jnp.int32)
            carry, out = jax.lax.scan(
                step, carry, (numbers, rest), reverse=reverse, unroll=unrolled(stack)
            )
        elif stack.shape[0] > first:
            told = jax.tree.map(lambda a: a[0], rest)
            carry, out = body(carry, Layer(stack, np.int32(first)), told)
            out = jax.tree.map(lambda a: a[None], out)
        else:
            continue
        made.append(out)
    return carry, made[::-1] if reverse else made


def rewritten(
    body: Callable[[Any, Layer, Any], tuple[Any, tuple[Array, ...]]],
    carry: Any,
    layers: Groups,
    more: Groups,
) -> tuple[Any, Groups]:
    """`swept` with a new layer for every learner, each written where the old one stood."""
    made = []
    for stack, known in zip(layers, more, strict=True):

        def step(carry: tuple, now: tuple) -> tuple[tuple, None]:
            (carry, stack), (number, told) = carry, now
            carry, after = body(carry, Layer(stack, number), told)
            for learner, layer in enumerate(after):
                where = (number, np.int32(learner), *[NONE] * layer.ndim)
                stack = jax.lax.dynamic_update_slice(stack, layer[None, None], where)
            return (carry, stack), None

        if stack.shape[0] == 1:  # widths in and out may differ, which no loop takes
            (carry, stack), _ = step((carry, stack), (NONE, jax.tree.map(lambda a: a[0], known)))
        else:
            numbers = jnp.arange(stack.shape[0], dtype=jnp.int32)
            (carry, stack), _ = jax.lax.scan(
                step, (carry, stack), (numbers, known), unroll=unrolled(stack)
            )
        made.append(stack)
    return carry, made


def apart(layer: Layer, inner: Array) -> tuple[Array, Array]:
    """P times `inner` without its diagonal, and what its rows sum to."""
    itself = np.eye(layer.shape[-3], dtype=bool)[:, :, None]
    off = keep(jnp.where(itself, 0.0, product(layer, inner)))
    return off, keep(total(off, -2))


def forward(
    layers: Groups, rates: Groups, x: Array, needed: bool
) -> tuple[Array, Array | None, Groups]:
    """Predictions, the response K, and per layer the flow into it and its rate times flow."""

    def body(carry: tuple, p: Layer, rate: Array | None) -> tuple[tuple, tuple]:
        flow, k = carry
        push = flow if rate is None else rate * flow
        if needed:
            weight = push * flow
            # The diagonal of K is minus the sum of its row, and meets that of diag(d) here.
            inner = (weight if k is None else k[1] + weight)[..., :, None, :]
            inner = -inner * jnp.swapaxes(p.cut(), -3, -2)
            if k is not None:
                inner = inner + product_transposed(k[0], p)
            k = apart(p, keep(inner))
        return (keep(acted(p, flow)), k), (flow, push)

    # No response reaches the first layer, so that it stands before the loop.
    given = jax.tree.map(lambda rate: rate[0], rates[0])
    carry, alone = body((x, None), Layer(layers[0], NONE), given)
    (flow, k), seen = swept(body, carry, layers, rates, skipped=1)
    alone = jax.tree.map(lambda a: a[None], alone)
    if layers[0].shape[0] > 1:
        alone = jax.tree.map(lambda *parts: jnp.concatenate(parts), alone, seen.pop(0))
    if k is not None:
        itself = np.eye(k[0].shape[-2], dtype=bool)[:-1, :-1, None]
        k = jnp.where(itself, -k[1][..., :-1, None, :], k[0][..., :-1, :-1, :])
    return flow, k, [alone, *seen]


def width_of(fields: Array, push: Array, layer: Layer, full: bool) -> Array:
    """The largest range of a score within a column."""
    if full:
        extent = total(fields, -2, jnp.maximum) - total(fields, -2, jnp.minimum)
        return extent * total(push, -2, jnp.maximum)
    inside = layer.cut() > 0
    top = total(jnp.where(inside, fields[..., :, None, :], -jnp.inf), -3, jnp.maximum)
    low = total(jnp.where(inside, fields[..., :, None, :], jnp.inf), -3, jnp.minimum)
    return keep(total(push * (top - low), -2, jnp.maximum))


def measure(layers: Groups, rates: Groups, x: Array, y: Array, rule: Rule) -> Local:
    """Flow, response, potentials behind every layer, and the steps that the envelope admits."""
    both = jnp.broadcast_to(x, (layers[0].shape[1], *x.shape))
    out, k, seen = forward(layers, rates, both, rule.needs_response)
    e = keep(y - out)[..., :-1, :]
    last = keep(-total(e, -2))  # residuals sum to zero
    given = [keep(rule.alpha * e)]
    if rule.reserves:
        skew = jnp.asarray(rule.skew, dtype=e.dtype)[:-1]
        listed = enumerate([*entries(e, -2), last])
        parts = (skew[:, j, None] * one[..., None, :] for j, one in listed)
        given.append(keep(reduce(add, parts)))
    found = rule.solve(k, keep(jnp.stack(given)))
    wanted = [found[0]]
    if rule.reserves:
        wanted.append(found[1])
        if rule.gate == "curvature":
            wanted.append(keep(e - last[..., None, :]))
    fields = keep(jnp.stack(wanted))
    one = jnp.ones_like(out[..., 0, :])

    def body(carry: tuple, p: Layer, told: tuple) -> tuple[tuple, Array]:
        (below, native, kept), (_, push) = carry, told
        here = keep(grounded(below))
        b = here[0]
        native = jnp.maximum(native, width_of(b, push, p, rule.full))
        if rule.reserves:
            r = rule.omega * here[1]
            kept = reduce(
                jnp.maximum, (width_of(field, push, p, rule.full) for field in (b + r, b - r)), kept
            )
        # On fields that sum to zero: columns of a layer count from its last one.
        below = summed(
            lambda rows, field: field * (rows[..., :-1, :] - rows[..., -1:, :]),
            -3,
            p,
            below[..., :, None, :],
        )
        return keep((below, native, kept)), here

    (_, native, kept), at_layers = swept(body, (fields, one, one), layers, seen, reverse=True)
    flow, push = ([part[i] for part in seen] for i in (0, 1))
    b, r, residual = ([part[:, min(i, len(wanted) - 1)] for part in at_layers] for i in (0, 1, 2))
    native = keep(rule.scale / native)
    return Local(flow, push, b, r, residual, native, rule.scale / kept if rule.reserves else native)


def bending(layers: Groups, local: Local) -> Array:
    """The bending less the squared displacement of the selected sample, positive where turning pays
    (Eqs. 23, 27, B1, B2), of the first learner.
    """

    def body(carry: tuple, both: Layer, told: tuple) -> tuple[tuple, None]:
        (value, first), (flow, push, q, f) = carry, told
        p = both._replace(learner=0)
        q, f = q[:, None], f[:, None]
        mean, tilt = keep((summed(mul, -3, p, q), summed(mul, -3, p, f)))

        # Not kept: each sum below reads the layer once and makes these anew.
        def moving(p: Array, q: Array) -> Array:
            return p * (q - mean)

        def steep(p: Array, q: Array, f: Array) -> Array:
            return moving(p, q) * (f - tilt)

        def bent(p: Array, q: Array, f: Array) -> Array:
            return moving(p, q) * (q - mean) * (f - tilt)

        value = value + total(flow * (summed(bent, -3, p, q, f) * push * push), -2)
        # What the scores still average to is the error of the average: near a vertex all of it.
        left = keep(summed(moving, -3, p, q) * push * flow)
        share = keep(push * flow)
        along = summed(
            lambda p, mean, share: p * (q - mean) * share, -2, p, mean[None], share[None]
        )
        moved = along - acted(p, left)
        value = value + keep(2 * total(first * (summed(steep, -3, p, q, f) * push), -2))
        if p.shape[1] > 1:
            last = at(p, p.shape[1] - 1, -2)[:, None]
            moved = moved + summed(lambda p, here: (p - last) * here, -2, p, first[None, :-1])
        return keep((value, moved)), None

    stacks = list(zip(local.flow, local.push, local.r, local.residual, strict=True))
    none = jnp.zeros_like(local.native)
    start = (none, jnp.zeros_like(local.flow[0][0]))
    (value, moved), _ = swept(body, start, layers, stacks)
    return value - total(moved * moved, -2)


def growth(push: Array, field: Array, layer: Layer, rule: Rule) -> tuple[Array, Array]:
    """Cosh and sinh of the exponents of a step along a potential that contains its size."""
    apart = field[..., :, None, :]
    if not rule.full:  # the last entry may lie outside the support of a column
        inside = layer.cut() > 0
        top = total(jnp.where(inside, apart, -jnp.inf), -3, jnp.maximum)
        apart = jnp.where(inside, apart - top[..., None, :, :], 0.0)
    exponent = push[..., None, :, :] * apart
    if rule.reach is not None:
        return exponential.parts(exponent, rule.reach)
    up, down = jnp.exp(exponent), jnp.exp(-exponent)
    return (up + down) / 2, (up - down) / 2


def grown(push: Array, field: Array, layer: Layer, rule: Rule) -> Array:
    """A layer after a step, its columns not yet divided by their sums."""
    even, odd = growth(push, field, layer, rule)
    return keep(layer.cut() * (even + odd))


def carried(layer: Array, inverse: Array, samples: Array) -> Array:
    """Samples (..., samples, in, lanes) through a layer whose columns are not yet divided."""
    scaled = keep(samples * inverse[..., None, :, :])
    return keep(product_transposed(scaled, layer))


def missed(samples: Array, targets: Array) -> Array:
    """The loss of samples that have gone through, less what no network changes."""
    apart = targets - samples
    if not on_cpu():  # written out, this sum alone would take longer to compile than all the rest
        return jnp.sum(apart * apart, (-3, -2)) / 2
    return total(total(apart * apart, -2), -2) / 2


def loss(layers: Groups, data: tuple[Array, Array]) -> Array:
    """Half the mean squared residual of a network, less what no network changes."""

    def body(samples: Array, layer: Layer, _: None) -> tuple[Array, None]:
        return keep(product_transposed(samples, layer)), None

    inputs = jnp.broadcast_to(data[0], (*layers[0].shape[1:-3], *data[0].shape))
    return missed(swept(body, inputs, layers, [None] * len(layers))[0], data[1])


def act(
    layers: Groups,
    local: Local,
    data: tuple[Array, Array],
    step: Array,
    amount: Array,
    turn: Array,
    rule: Rule,
) -> tuple[Groups, list[Array]]:
    """Both learners after their update; losses taken, opposite, straight, own and native."""
    push_by = keep(amount * turn * step)
    kinds = 3 if rule.turns else 1

    def body(carry: tuple, both: Layer, told: tuple) -> tuple[tuple, tuple[Array, Array]]:
        (own, tried), (push, b, r) = carry, told
        native = grown(push, local.native[:, None] * b, both, rule)
        first, flow = both._replace(learner=0), push[0]
        still = grown(flow, step * b[0], first, rule)
        ends = [still]
        if rule.turns:
            even, odd = keep(growth(flow, push_by * r[0], first, rule))
            ends = [*keep((still * (even + odd), still * (even - odd))), still]
        under, above = keep((1.0 / total(native, -3), [1.0 / total(end, -3) for end in ends]))
        after = (ends[0] * above[0], native[1] * under[1])
        tried = [carried(*parts) for parts in zip(ends, above, tried, strict=True)]
        return (carried(native, under, own), tried), after

    stacks = list(zip(local.push, local.b, local.r, strict=True))
    start = (jnp.broadcast_to(data[0], (2, *data[0].shape)), [data[0]] * kinds)
    (own, tried), after = rewritten(body, start, layers, stacks)
    self_native, native = keep(missed(own, data[1]))
    losses = keep([missed(samples, data[1]) for samples in tried])
    return after, [losses[0], losses[min(1, kinds - 1)], losses[kinds - 1], self_native, native]


def decide(layers: Groups, local: Local, rule: Rule) -> tuple[Array, Array]:
    """Step and amount of the nonreciprocal learner, as `policy` has them."""
    native, kept = local.native[0], local.kept[0]
    none = jnp.zeros_like(native)
    if rule.policy == "native":
        return native, none
    if rule.gate == "always":
        return kept, rule.omega + none
    if rule.gate == "never":
        return (kept if rule.policy == "step_matched" else native), none
    own = ([part[:, 0] for part in parts] for parts in local[:5])
    is_open = bending(layers, Local._make([*own, native, kept])) > 0
    step = kept if rule.policy == "step_matched" else jnp.where(is_open, kept, native)
    return step, jnp.where(is_open, rule.omega, none)


def native_step(state: Groups, rates: Groups, x: Array, y: Array, rule: Rule) -> Groups:
    """Learners after one update without a turn."""
    local = measure(state, rates, x, y, rule._replace(policy="native"))

    def body(carry: None, p: Layer, told: tuple) -> tuple[None, Array]:
        push, b = told
        raw = grown(push, local.native[:, None] * b, p, rule)
        return carry, raw / keep(total(raw, -3))[..., None, :, :]

    return swept(body, None, state, list(zip(local.push, local.b, strict=True)))[1]


def compress(inputs: Array, targets: Array) -> tuple[tuple[Array, Array], Array]:
    """At most as many rotated samples as there are inputs, with the same sum of squared residuals,
    and the part of the loss that no network changes.

    Householder reflections along the sample axis, (samples, entries, lanes).
    """
    samples, width = inputs.shape[:2]
    scale = samples**-0.5
    if samples <= width:
        return (scale * inputs, scale * targets), jnp.zeros_like(inputs[0, 0])

    def reflect(j: Array, table: Array) -> Array:
        below = (jnp.arange(samples) >= j)[:, None]
        pivot = jnp.where(below, jax.lax.dynamic_index_in_dim(table, j, 1, keepdims=False), 0.0)
        first = jax.lax.dynamic_index_in_dim(pivot, j, 0, keepdims=False)
        size = jnp.copysign(jnp.sqrt(jnp.sum(pivot * pivot, 0)), first)
        mirror = jnp.where(jnp.arange(samples)[:, None] == j, pivot + size, pivot)
        square = jnp.sum(mirror * mirror, 0)
        factor = jnp.where(square > 0, 2 / jnp.where(square > 0, square, 1.0), 0.0)
        return table - mirror[:, None] * (factor * jnp.sum(mirror[:, None] * table, 0))[None]

    table = scale * jnp.concatenate([inputs, targets], 1)
    table = jax.lax.fori_loop(0, width, reflect, table)
    inputs, targets = table[:width, :width], table[:, width:]
    rest = jnp.sum(targets[width:] ** 2, (0, 1)) / 2
    return (inputs, targets[:width]), rest


def choose(values: Array, k: Array) -> Array:
    """The values of sample k for each lane; among few by selection, since a gather does not fuse."""
    if len(values) > FEW:
        return jnp.take_along_axis(values, k[None, None], 0)[0]
    return reduce(
        lambda old, s: jnp.where((k == s)[None], values[s], old), range(1, len(values)), values[0]
    )


def account(losses: list[Array], before: Array) -> Array:
    """Even, handedness, step and drift of one update, (4, lanes)."""
    taken, opposite, straight, own = (keep(one - before[0]) for one in losses[:4])
    mean = (taken + opposite) / 2
    other = losses[4] - before[1]
    return jnp.stack([mean - straight, taken - mean, straight - own, own - other])


def added(sums: Array, lost: Array, row: Array) -> tuple[Array, Array]:
    """Add, and keep what rounding takes (Neumaier)."""
    whole = keep(sums + row)
    missing = jnp.where(jnp.abs(sums) >= jnp.abs(row), (sums - whole) + row, (row - whole) + sums)
    return whole, lost + missing


def train(
    layers: Sequence[Array],
    rates: Sequence[Array | None],
    task: tuple[Array, Array],
    data: tuple[Array, Array],
    schedule: tuple[Array, Array],
    rule: Rule,
    record: bool,
    chooser: Chooser | None = None,
) -> Any:
    """Pairs from start to end.

    Sums (4, lanes), account (4) and outcome (7 or 8) of every update, (lanes, updates) each, both
    ends, and the losses of the start and of both ends. A chooser, which looks ahead, decides in
    place of the gate.
    """
    state = [jnp.repeat(stack[:, None], 2, axis=1) for stack in groups(layers)]
    speeds = (
        [None] * len(state)
        if rates[0] is None
        else [stack[:, None] for stack in groups([rate for rate in rates if rate is not None])]
    )
    begin = keep(loss(state, data))

    def body(carry: tuple, now: tuple[Array, Array, Array]) -> tuple[tuple, Any]:
        state, before, sums, lost = carry
        number, sample, sense = now
        x, y = keep(tuple(choose(values, sample) for values in task))
        turn = sense.astype(x.dtype)
        local = measure(state, speeds, x, y, rule)
        choice: list[Array] = []
        if chooser is None:
            step, amount = decide(state, local, rule)
        else:
            local, step, amount, *choice = chooser(state, speeds, local, number, turn)
        state, losses = act(state, local, data, step, amount, turn, rule)
        row = account(losses, before)
        sums, lost = added(sums, lost, row)
        after = jnp.stack([losses[0], losses[4]])
        seen = [*losses[:4], step, amount, losses[4], *choice]
        return (state, after, sums, lost), (list(row), seen)

    none = jnp.zeros((4, begin.shape[-1]), dtype=begin.dtype)
    numbers = jnp.arange(schedule[0].shape[0], dtype=jnp.int32)
    begun = (state, begin, none, none)
    chooses = chooser is not None
    (state, end, sums, lost), rows = updated(
        body, begun, (numbers, *schedule), begin, record, chooses
    )
    turning, native = ([layer[i] for layer in ungrouped(state)] for i in (0, 1))
    return sums + lost, rows, turning, native, begin[0], end[0], end[1]
