"""The reduced algebra of `whorl.lanes` in NumPy.

How much of the speed is algebra, and how much is the engine.

Rows 0 and 1 of every column, 2x2 maps, rank-one scores, the gate from moments, three rotated
samples in the loss, losses carried over, one reciprocal per column. What is left out are the engine's
parts: fusion, the polynomial exponential (NumPy's own is faster than a polynomial of one NumPy call
a term), and threads.
"""

import numpy as np

from peers.problem import LEAK, SCALE, in_blocks, lanes_last, pairs_first

BLOCK = 4096


def compress(inputs, targets):
    """Three rotated samples with the same sum of squared residuals up to a constant, by
    Householder's reflections.
    """
    columns = [*np.moveaxis(inputs, 1, 0), *np.moveaxis(targets[:, :2], 1, 0)]
    for j in range(3):
        mirror = columns[j][j:].copy()
        mirror[0] += np.copysign(np.sqrt((mirror * mirror).sum(0)), mirror[0])
        factor = 2 / (mirror * mirror).sum(0)
        columns = [
            np.concatenate([c[:j], c[j:] - factor * (mirror * c[j:]).sum(0) * mirror])
            for c in columns
        ]
    columns = [c[:3] * len(inputs) ** -0.5 for c in columns]
    return np.stack(columns[:3], 1), np.stack(columns[3:])


def loss(head, samples):
    """Rows 0 and 1 of the total map on the three rotated samples, whose inputs are triangular."""
    inputs, targets = samples
    total = head[0]
    for layer in head[1:]:
        last = layer[:, 2, None]
        total = last + (layer[:, 0, None] - last) * total[0] + (layer[:, 1, None] - last) * total[1]
    value = 0.0
    for j in range(3):
        e = targets[:, j] - inputs[j, j] * total[:, j]
        for i in range(j + 1, 3):
            e -= inputs[j, i] * total[:, i]
        value = value + (e[0] * (e[0] + e[1]) + e[1] * e[1])
    return value


def downstream(head):
    """R of each layer on zero-sum vectors, in coordinates 0 and 1; None is the identity."""
    maps = [None]
    for layer in head[:0:-1]:
        a, above = layer[:, :2] - layer[:, 2:], maps[0]
        maps.insert(0, a if above is None else above[:, 0, None] * a[0] + above[:, 1, None] * a[1])
    return maps


def response(weights, maps):
    """K* plus the leak, entries 00, 01, 11, with potentials counted from output 2."""
    k00, k01, k11 = LEAK * 2 / 3, -LEAK / 3, LEAK * 2 / 3
    for w00, w01, w11, down in zip(*weights, maps, strict=True):
        if down is None:
            t00, t01, t11 = w00, w01, w11
        else:
            left, right = down[:, 0] * w00 + down[:, 1] * w01, down[:, 0] * w01 + down[:, 1] * w11
            t00, t01 = (
                left[0] * down[0, 0] + right[0] * down[0, 1],
                left[0] * down[1, 0] + right[0] * down[1, 1],
            )
            t11 = left[1] * down[1, 0] + right[1] * down[1, 1]
        k00, k01, k11 = k00 + t00, k01 + t01, k11 + t11
    return k00, k01, k11


def measure(head, tail, x, y, turning):
    """Flows, weights, and the potentials behind every layer.

    Of b, and for a turning learner of r and of the residual.
    """
    flow = [x]
    for rows, last in zip(head, tail, strict=True):
        into = flow[-1]
        upper = rows[:, 0] * into[0] + rows[:, 1] * into[1] + rows[:, 2] * into[2]
        flow.append(np.concatenate([upper, (last * into).sum(0)[None]]))
    e = y - flow.pop()[:2]
    flow = np.stack(flow)
    square = flow * flow
    weighted0, weighted1 = square * head[:, 0], square * head[:, 1]
    q01, q02, q12 = (
        (w * p).sum(1) for w, p in ((weighted0, head[:, 1]), (weighted0, tail), (weighted1, tail))
    )
    weights, maps = (q01 + q02, -q01, q01 + q12), downstream(head)
    k00, k01, k11 = response(weights, maps)
    inverse = 1 / (k00 * k11 - k01 * k01)

    def solved(d0, d1):
        return np.stack([k11 * d0 - k01 * d1, k00 * d1 - k01 * d0]) * inverse

    def at_layers(v):
        return np.stack([v if down is None else down[0] * v[0] + down[1] * v[1] for down in maps])

    b = at_layers(solved(*e))
    if not turning:
        return flow, b
    relative = np.stack([2 * e[0] + e[1], e[0] + 2 * e[1]])
    turned = 3**-0.5 * np.stack([-relative[1], relative[0]])
    r = solved(*turned)
    displacement = turned - LEAK / 3 * np.stack([2 * r[0] - r[1], 2 * r[1] - r[0]])
    return flow, b, at_layers(r), at_layers(relative), weights, displacement


def gate_open(head, flow, r, f, weights, displacement):
    """Bending above squared displacement, from moments of the columns."""
    q0, q1, f0, f1 = (v[:, a, None] for v in (r, f) for a in (0, 1))
    p0, p1 = head[:, 0], head[:, 1]
    mean_q, mean_f = p0 * q0 + p1 * q1, p0 * f0 + p1 * f1
    d0, d1 = q0 - mean_q, q1 - mean_q
    g0, g1 = p0 * d0, p1 * d1
    bend = flow * flow * (g0 * (f0 * d0 - mean_f * q0) + g1 * (f1 * d1 - mean_f * q1))
    tilt = 2 * (f0 * g0 + f1 * g1)
    w00, w01, w11 = weights
    moved = w00 * r[:, 0] + w01 * r[:, 1], w01 * r[:, 0] + w11 * r[:, 1]
    total, first = (flow[0] * bend[0]).sum(0), (moved[0][0], moved[1][0])
    for n in range(1, len(flow)):
        total += (flow[n] * (bend[n] + tilt[n] * np.stack([*first, -first[0] - first[1]]))).sum(0)
        a = head[n][:, :2] - head[n][:, 2:]
        first = [moved[i][n] + a[i, 0] * first[0] + a[i, 1] * first[1] for i in (0, 1)]
    g0, g1 = displacement
    return total > 2 * (g0 * (g0 + g1) + g1 * g1)


def envelope(potential, flow):
    v0, v1 = potential[:, 0], potential[:, 1]
    ranges = flow.max(1) * (
        np.maximum(np.maximum(v0, v1), 0.0) - np.minimum(np.minimum(v0, v1), 0.0)
    )
    return SCALE / np.maximum(ranges.max(0), 1.0)


def growth(flow, potential, eta):
    return np.exp(flow[:, None] * (eta * potential)[:, :, None])


def stepped(grown, tail):
    inverse = 1 / (grown[:, 0] + grown[:, 1] + tail)
    return grown * inverse[:, None], tail * inverse


def update_turning(head, tail, before, x, y, turn, samples):
    """The nonreciprocal learner.

    Its next state and loss, and its increments taken, opposite, without turn, with its own native
    step.
    """
    flow, b, r, f, weights, displacement = measure(head, tail, x, y, True)
    kept = np.minimum(envelope(b + r, flow), envelope(b - r, flow))
    push = kept * turn * gate_open(head, flow, r, f, weights, displacement)
    still, turned = head * growth(flow, b, kept), growth(flow, r, push)
    taken = stepped(still * turned, tail)
    after = loss(taken[0], samples)
    others = still / turned, still, head * growth(flow, b, envelope(b, flow))
    return (
        taken,
        after,
        (after - before, *(loss(stepped(grown, tail)[0], samples) - before for grown in others)),
    )


def update_native(head, tail, x, y, samples):
    flow, b = measure(head, tail, x, y, False)
    columns = stepped(head * growth(flow, b, envelope(b, flow)), tail)
    return columns, loss(columns[0], samples)


def train(layers, inputs, targets, schedule, turns):
    samples = compress(inputs, targets)
    turning = native = (layers[:, :2], layers[:, 2])
    loss_turning = loss_native = loss(turning[0], samples)
    ledger = np.empty((len(schedule), 4, schedule.shape[1]))
    for row, k, turn in zip(ledger, schedule, turns, strict=True):
        x, y = (
            np.take_along_axis(values, k[None, None], 0)[0] for values in (inputs, targets[:, :2])
        )
        turning, loss_turning, (taken, opposite, zero, own) = update_turning(
            *turning, loss_turning, x, y, turn, samples
        )
        native, after = update_native(*native, x, y, samples)
        mean = (taken + opposite) / 2
        row[:] = mean - zero, taken - mean, zero - own, own - (after - loss_native)
        loss_native = after
    return ledger, *(np.concatenate([head, tail[:, None]], 1) for head, tail in (turning, native))


def run(layers, inputs, targets, schedule, turns):
    return pairs_first(
        *in_blocks(train, BLOCK, lanes_last(layers, inputs, targets, schedule, turns))
    )
