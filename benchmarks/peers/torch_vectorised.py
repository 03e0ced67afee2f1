"""The vectorised program in PyTorch.

The same formulas, pairs last, every core through torch's own threads.
"""

import torch

from peers.problem import LEAK, SCALE, lanes_last, pairs_first


def matvec(matrix, vector):
    return matrix[:, 0] * vector[0] + matrix[:, 1] * vector[1] + matrix[:, 2] * vector[2]


def matmul(a, b):
    return a[:, 0, None] * b[0] + a[:, 1, None] * b[1] + a[:, 2, None] * b[2]


def loss(layers, inputs, targets):
    total = layers[0]
    for layer in layers[1:]:
        total = matmul(layer, total)
    residual = targets - (
        inputs[:, 0, None] * total[:, 0]
        + inputs[:, 1, None] * total[:, 1]
        + inputs[:, 2, None] * total[:, 2]
    )
    return 0.5 / len(inputs) * (residual * residual).sum((0, 1))


def response(layers, flow, downstream):
    total = 0.0
    for layer, into, down in zip(layers, flow, downstream, strict=False):
        weighted = layer * into**2
        inner = -matmul(weighted, layer.swapaxes(0, 1))
        for i in range(3):
            inner[i, i] += weighted[i].sum(0)
        total = total + (
            inner if down is None else matmul(matmul(down, inner), down.swapaxes(0, 1))
        )
    return total


def scores(layers, x, y):
    flow = [x]
    for layer in layers:
        flow.append(matvec(layer, flow[-1]))
    residual = y - flow.pop()
    downstream = [None]
    for layer in layers[:0:-1]:
        downstream.insert(0, layer if downstream[0] is None else matmul(downstream[0], layer))
    k = response(layers, flow, downstream)
    k00, k01, k11 = k[0, 0] + LEAK * 2 / 3, k[0, 1] - LEAK / 3, k[1, 1] + LEAK * 2 / 3
    inverse = 1 / (k00 * k11 - k01 * k01)
    centred = residual - residual.mean(0)
    turned = 3**-0.5 * torch.stack([residual[2] - residual[1], residual[0] - residual[2]])
    result = []
    for d in (centred, turned):
        v = torch.zeros_like(residual)
        v[0], v[1] = inverse * (k11 * d[0] - k01 * d[1]), inverse * (k00 * d[1] - k01 * d[0])
        result.append(
            [v if down is None else matvec(down.swapaxes(0, 1), v) for down in downstream]
        )
    return flow, residual, *result


def outer(potentials, flow):
    return [v[:, None] * x for v, x in zip(potentials, flow, strict=True)]


def envelope(potentials, flow):
    ranges = [x.amax(0) * (v.amax(0) - v.amin(0)) for v, x in zip(potentials, flow, strict=True)]
    return SCALE / torch.stack(ranges).amax(0).clamp(min=1.0)


def plus(b, amount, r):
    return [u + amount * v for u, v in zip(b, r, strict=True)]


def step(layers, score, eta):
    grown = [layer * torch.exp(eta * s) for layer, s in zip(layers, score, strict=True)]
    return [weights * (1 / weights.sum(0)) for weights in grown]


def gate_open(layers, rotational, flow, residual):
    first = second = None
    for layer, s, x in zip(layers, rotational, flow, strict=True):
        centred = s - (layer * s).sum(0)
        a = layer * centred
        spread = a * centred
        bx, ax = matvec(spread - layer * spread.sum(0), x), matvec(a, x)
        second = bx if second is None else matvec(layer, second) + 2 * matvec(a, first) + bx
        first = ax if first is None else matvec(layer, first) + ax
    return (residual * second).sum(0) > (first * first).sum(0)


def update_turning(net, before, x, y, turn, data):
    flow, residual, b, r = scores(net, x, y)
    score_b, score_r = outer(b, flow), outer(r, flow)
    push = turn * gate_open(net, score_r, flow, residual)
    kept = torch.minimum(envelope(plus(b, 1, r), flow), envelope(plus(b, -1, r), flow))
    taken = step(net, plus(score_b, push, score_r), kept)
    after = loss(taken, *data)
    others = (
        step(net, plus(score_b, -push, score_r), kept),
        step(net, score_b, kept),
        step(net, score_b, envelope(b, flow)),
    )
    return taken, after, (after - before, *(loss(other, *data) - before for other in others))


def update_native(net, x, y, data):
    flow, _, b, _ = scores(net, x, y)
    net = step(net, outer(b, flow), envelope(b, flow))
    return net, loss(net, *data)


@torch.no_grad()
def train(layers, inputs, targets, schedule, turns):
    turning, native, data = list(layers), list(layers), (inputs, targets)
    loss_turning = loss_native = loss(turning, *data)
    ledger = torch.empty((len(schedule), 4, schedule.shape[1]), dtype=torch.float64)
    for row, k, turn in zip(ledger, schedule.long(), turns, strict=True):
        x, y = (torch.take_along_dim(values, k[None, None], 0)[0] for values in data)
        turning, loss_turning, (taken, opposite, zero, own) = update_turning(
            turning, loss_turning, x, y, turn, data
        )
        native, after = update_native(native, x, y, data)
        mean = (taken + opposite) / 2
        torch.stack([mean - zero, taken - mean, zero - own, own - (after - loss_native)], out=row)
        loss_native = after
    return ledger.numpy(), torch.stack(turning).numpy(), torch.stack(native).numpy()


def run(layers, inputs, targets, schedule, turns):
    return pairs_first(
        *train(*map(torch.from_numpy, lanes_last(layers, inputs, targets, schedule, turns)))
    )
