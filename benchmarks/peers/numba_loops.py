"""Scalar loops compiled by Numba, pairs spread over threads."""

import numpy as np
from numba import njit, prange

from peers.problem import LEAK, SCALE


@njit(fastmath=True, inline="always")
def loss(net, inputs, targets):
    total = 0.0
    for s in range(inputs.shape[0]):
        a, b, c = inputs[s, 0], inputs[s, 1], inputs[s, 2]
        for p in net:
            a, b, c = (
                p[0, 0] * a + p[0, 1] * b + p[0, 2] * c,
                p[1, 0] * a + p[1, 1] * b + p[1, 2] * c,
                p[2, 0] * a + p[2, 1] * b + p[2, 2] * c,
            )
        total += (targets[s, 0] - a) ** 2 + (targets[s, 1] - b) ** 2 + (targets[s, 2] - c) ** 2
    return 0.5 * total / inputs.shape[0]


@njit(fastmath=True, inline="always")
def forward(net, x, y, flow, e):
    """Fills the flow into every layer, and the residual."""
    depth = net.shape[0]
    flow[0] = x
    for n in range(depth):
        for i in range(3):
            flow[n + 1, i] = (
                net[n, i, 0] * flow[n, 0] + net[n, i, 1] * flow[n, 1] + net[n, i, 2] * flow[n, 2]
            )
    for i in range(3):
        e[i] = y[i] - flow[depth, i]


@njit(fastmath=True, inline="always")
def downstream(net, down):
    """Fills the map behind every layer."""
    last = net.shape[0] - 1
    for i in range(3):
        for j in range(3):
            down[last, i, j] = 1.0 if i == j else 0.0
    for n in range(last - 1, -1, -1):
        above, p = down[n + 1], net[n + 1]
        for i in range(3):
            for j in range(3):
                down[n, i, j] = (
                    above[i, 0] * p[0, j] + above[i, 1] * p[1, j] + above[i, 2] * p[2, j]
                )


@njit(fastmath=True, inline="always")
def response(net, flow, down):
    """K* plus the leak, entries 00, 01, 11, with potentials counted from the third output."""
    k00, k01, k11 = 2 * LEAK / 3, -LEAK / 3, 2 * LEAK / 3
    for n in range(net.shape[0]):
        (a0, a1, a2), (b0, b1, b2) = down[n, 0], down[n, 1]
        for c in range(3):
            p0, p1, p2 = net[n, 0, c], net[n, 1, c], net[n, 2, c]
            w = flow[n, c] ** 2
            m0, m1 = a0 * p0 + a1 * p1 + a2 * p2, b0 * p0 + b1 * p1 + b2 * p2
            k00 += w * (a0 * a0 * p0 + a1 * a1 * p1 + a2 * a2 * p2 - m0 * m0)
            k11 += w * (b0 * b0 * p0 + b1 * b1 * p1 + b2 * b2 * p2 - m1 * m1)
            k01 += w * (a0 * b0 * p0 + a1 * b1 * p1 + a2 * b2 * p2 - m0 * m1)
    return k00, k01, k11


@njit(fastmath=True)
def scores(net, x, y, flow, down, b, r, e):
    """Fills the flows, the residual, and the potentials b and r behind every layer."""
    forward(net, x, y, flow, e)
    downstream(net, down)
    k00, k01, k11 = response(net, flow, down)
    inverse, root = 1 / (k00 * k11 - k01 * k01), 1 / np.sqrt(3.0)
    mean = (e[0] + e[1] + e[2]) / 3
    d0, d1, c0, c1 = e[0] - mean, e[1] - mean, (e[2] - e[1]) * root, (e[0] - e[2]) * root
    b0, b1 = inverse * (k11 * d0 - k01 * d1), inverse * (k00 * d1 - k01 * d0)
    r0, r1 = inverse * (k11 * c0 - k01 * c1), inverse * (k00 * c1 - k01 * c0)
    for n in range(net.shape[0]):
        for i in range(3):
            b[n, i] = down[n, 0, i] * b0 + down[n, 1, i] * b1
            r[n, i] = down[n, 0, i] * r0 + down[n, 1, i] * r1


@njit(fastmath=True)
def envelope(b, amount, r, flow):
    widest = 1.0
    for n in range(b.shape[0]):
        v0, v1, v2 = (
            b[n, 0] + amount * r[n, 0],
            b[n, 1] + amount * r[n, 1],
            b[n, 2] + amount * r[n, 2],
        )
        top = max(flow[n, 0], flow[n, 1], flow[n, 2])
        widest = max(widest, top * (max(v0, v1, v2) - min(v0, v1, v2)))
    return SCALE / widest


@njit(fastmath=True)
def step(net, b, amount, r, flow, eta, out):
    for n in range(net.shape[0]):
        v0, v1, v2 = (
            eta * (b[n, 0] + amount * r[n, 0]),
            eta * (b[n, 1] + amount * r[n, 1]),
            eta * (b[n, 2] + amount * r[n, 2]),
        )
        for c in range(3):
            x = flow[n, c]
            w0, w1, w2 = (
                net[n, 0, c] * np.exp(x * v0),
                net[n, 1, c] * np.exp(x * v1),
                net[n, 2, c] * np.exp(x * v2),
            )
            inverse = 1 / (w0 + w1 + w2)
            out[n, 0, c], out[n, 1, c], out[n, 2, c] = w0 * inverse, w1 * inverse, w2 * inverse


@njit(fastmath=True)
def gate_open(net, r, flow, e):
    first, second, new1, new2 = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    for n in range(net.shape[0]):
        for i in range(3):
            new1[i] = net[n, i, 0] * first[0] + net[n, i, 1] * first[1] + net[n, i, 2] * first[2]
            new2[i] = net[n, i, 0] * second[0] + net[n, i, 1] * second[1] + net[n, i, 2] * second[2]
        for c in range(3):
            x = flow[n, c]
            mean = x * (net[n, 0, c] * r[n, 0] + net[n, 1, c] * r[n, 1] + net[n, 2, c] * r[n, 2])
            spread = 0.0
            for i in range(3):
                spread += net[n, i, c] * (x * r[n, i] - mean) ** 2
            for i in range(3):
                d = x * r[n, i] - mean
                a = net[n, i, c] * d
                new1[i] += a * x
                new2[i] += 2 * a * first[c] + net[n, i, c] * (d * d - spread) * x
        first[:], second[:] = new1, new2
    return (
        e[0] * second[0] + e[1] * second[1] + e[2] * second[2]
        > first[0] ** 2 + first[1] ** 2 + first[2] ** 2
    )


@njit(fastmath=True)
def train(net, inputs, targets, schedule, turns, ledger, turning, native):
    depth = net.shape[0]
    trial, taken = np.empty_like(net), np.empty_like(net)
    flow, down, e = np.empty((depth + 1, 3)), np.empty((depth, 3, 3)), np.empty(3)
    b, r = np.empty((depth, 3)), np.empty((depth, 3))
    turning[:], native[:] = net, net
    before = before_native = loss(net, inputs, targets)
    for t in range(len(schedule)):
        x, y = inputs[schedule[t]], targets[schedule[t]]
        scores(turning, x, y, flow, down, b, r, e)
        push = turns[t] * (1.0 if gate_open(turning, r, flow, e) else 0.0)
        own, kept = (
            envelope(b, 0.0, r, flow),
            min(envelope(b, 1.0, r, flow), envelope(b, -1.0, r, flow)),
        )
        step(turning, b, push, r, flow, kept, taken)
        d_taken = loss(taken, inputs, targets) - before
        step(turning, b, -push, r, flow, kept, trial)
        d_opposite = loss(trial, inputs, targets) - before
        step(turning, b, 0.0, r, flow, kept, trial)
        d_zero = loss(trial, inputs, targets) - before
        step(turning, b, 0.0, r, flow, own, trial)
        d_own = loss(trial, inputs, targets) - before
        scores(native, x, y, flow, down, b, r, e)
        step(native, b, 0.0, r, flow, envelope(b, 0.0, r, flow), trial)
        after = loss(trial, inputs, targets)
        mean = (d_taken + d_opposite) / 2
        ledger[t] = mean - d_zero, d_taken - mean, d_zero - d_own, d_own - (after - before_native)
        turning[:], native[:] = taken, trial
        before, before_native = before + d_taken, after


@njit(parallel=True, fastmath=True)
def train_all(layers, inputs, targets, schedule, turns, ledger, turning, native):
    for i in prange(layers.shape[0]):
        train(
            layers[i],
            inputs[i],
            targets[i],
            schedule[i],
            turns[i],
            ledger[i],
            turning[i],
            native[i],
        )


def run(layers, inputs, targets, schedule, turns):
    ledger = np.empty((*schedule.shape, 4))
    turning, native = np.empty_like(layers), np.empty_like(layers)
    train_all(layers, inputs, targets, schedule, turns, ledger, turning, native)
    return np.moveaxis(ledger, -1, 0), turning, native
