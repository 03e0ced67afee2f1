"""One pair at a time, matrices as the paper writes them, nothing clever.

The reference that all others are checked against.
"""

import numpy as np

from peers.problem import LEAK, SCALE

C = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
P = np.eye(3) - 1 / 3


def flows(layers, x):
    """The flow into every layer, and the prediction last."""
    result = [x]
    for layer in layers:
        result.append(layer @ result[-1])
    return result


def loss(layers, inputs, targets):
    predictions = np.array([flows(layers, x)[-1] for x in inputs])
    return 0.5 * np.sum((targets - predictions) ** 2) / len(inputs)


def scores(layers, x, y):
    """Reciprocal score b and rotational score r, one matrix per layer."""
    flow = flows(layers, x)
    residual = y - flow[-1]
    downstream = [np.eye(3)]
    for layer in layers[:0:-1]:
        downstream.insert(0, downstream[0] @ layer)
    response = np.zeros((3, 3))
    for layer, into, down in zip(layers, flow, downstream, strict=False):
        for p, amount in zip(layer.T, into, strict=True):
            response += amount**2 * down @ (np.diag(p) - np.outer(p, p)) @ down.T
    potentials = np.linalg.solve(
        response + LEAK * np.eye(3), np.stack([P @ residual, C @ residual], 1)
    )
    return [
        [np.outer(down.T @ v, into) for down, into in zip(downstream, flow, strict=False)]
        for v in potentials.T
    ]


def step(layers, score, eta):
    grown = [layer * np.exp(eta * s) for layer, s in zip(layers, score, strict=True)]
    return [weights / weights.sum(0) for weights in grown]


def envelope(score):
    return SCALE / max(1.0, max(np.max(s.max(0) - s.min(0)) for s in score))


def gate_open(layers, rotational, x, y):
    """Bending against squared displacement on the selected sample."""
    first, second = np.zeros(3), np.zeros(3)
    for layer, s in zip(layers, rotational, strict=True):
        centred = s - (layer * s).sum(0)
        a = layer * centred
        b = layer * (centred**2 - (layer * centred**2).sum(0))
        second = layer @ second + 2 * a @ first + b @ x
        first = layer @ first + a @ x
        x = layer @ x
    return (y - x) @ second > first @ first


def plus(b, amount, r):
    return [u + amount * v for u, v in zip(b, r, strict=True)]


def train(layers, inputs, targets, schedule, turns):
    """One pair: the (updates, 4) ledger and both final networks."""
    turning, native = list(layers), list(layers)

    def delta(net, score, eta):
        return loss(step(net, score, eta), inputs, targets) - loss(net, inputs, targets)

    rows = []
    for k, turn in zip(schedule, turns, strict=True):
        x, y = inputs[k], targets[k]
        b, r = scores(turning, x, y)
        amount = 1.0 if gate_open(turning, r, x, y) else 0.0
        kept = min(envelope(plus(b, 1, r)), envelope(plus(b, -1, r)))
        up, down = (
            delta(turning, plus(b, amount, r), kept),
            delta(turning, plus(b, -amount, r), kept),
        )
        zero, own = delta(turning, b, kept), delta(turning, b, envelope(b))
        b_native, _ = scores(native, x, y)
        mean, taken = (up + down) / 2, up if turn > 0 else down
        rows.append(
            [
                mean - zero,
                taken - mean,
                zero - own,
                own - delta(native, b_native, envelope(b_native)),
            ]
        )
        turning, native = (
            step(turning, plus(b, turn * amount, r), kept),
            step(native, b_native, envelope(b_native)),
        )
    return np.array(rows).T, np.array(turning), np.array(native)


def run(layers, inputs, targets, schedule, turns):
    pairs = [train(*pair) for pair in zip(layers, inputs, targets, schedule, turns, strict=True)]
    ledgers, turning, native = (np.stack(part) for part in zip(*pairs, strict=True))
    return ledgers.swapaxes(0, 1), turning, native
