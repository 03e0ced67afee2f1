"""NumPy over all pairs at once, at any widths: the 1.0 of `widths.py`.

Written by someone who knows NumPy: pairs first, so that every product is one `matmul` over a stack
of small matrices, and blocks of pairs that fit the cache. Scores stay vectors, losses are carried
over, the response is the sum over layers of D (diag(P x^2) - P diag(x^2) P^T) D^T gathered on the
way forward, one solve or one `eigh` answers both right sides, exponentials that two steps share
are taken once, and a step that cannot turn is not taken three times.
"""

import numpy as np

from peers.widths import LEAK

BLOCK = 512  # pairs; no slower than 128, 256, 1024 or 2048 at widths 4 to 16 where this was written


def quarter_turn(size):
    """The skew matrix C of the library, as the sum of its modes."""
    lags = np.subtract.outer(np.arange(size), np.arange(size))
    modes = np.arange(1, (size + 1) // 2)
    return 2 / size * np.sin(2 * np.pi / size * lags[..., None] * modes).sum(-1)


def basis(size):
    """Orthonormal coordinates of fields that sum to zero."""
    return np.linalg.qr(np.eye(size)[:, : size - 1] - 1 / size)[0]


def column_times(layer, vector):
    return (layer @ vector[..., None])[..., 0]


def mean_loss(layers, data):
    inputs, targets = data
    for layer in layers:
        inputs = inputs @ layer.swapaxes(-1, -2)
    apart = targets - inputs
    return np.einsum("bsi,bsi->b", apart, apart) / (2 * apart.shape[1])


class Pairs:
    """A block of pairs: what does not change from update to update."""

    def __init__(self, case, rates, data):
        self.case, self.rates, self.data = case, rates, data
        self.skew = quarter_turn(case.widths[-1]).T if case.widths[-1] > 2 else None
        self.basis = basis(case.widths[-1])
        self.turning = case.policy != "native" and case.gate != "never"
        self.reserves = self.turning or case.policy == "step_matched"

    def potentials(self, response, residual):
        """What answers the residual, and the turned residual."""
        wanted = [residual, residual @ self.skew] if self.reserves else [residual]
        if self.case.law == "direct":
            return wanted
        fields = np.stack(wanted, -1)
        if self.case.law == "leaky":
            damped = response + LEAK * np.eye(response.shape[-1])
            found = np.linalg.solve(damped, fields)
        else:
            values, vectors = np.linalg.eigh(self.basis.T @ response @ self.basis)
            if self.case.law == "repair":
                kept = values > 1e-10 * values[:, -1:]
                weights = np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)
            else:  # "spectral"
                weights = 1 / (LEAK + np.sqrt(np.maximum(values, 0.0)))
            lifted = self.basis @ vectors
            found = lifted @ (weights[..., None] * (lifted.swapaxes(-1, -2) @ fields))
        return [found[..., i] for i in range(len(wanted))]

    def measured(self, layers, x, y, turn):
        """Rate times flow into every layer, and potentials behind every layer."""
        flow, pushes, flows, response = x, [], [], None
        for layer, rate in zip(layers, self.rates, strict=True):
            push = rate * flow if self.case.rated else flow
            pushes.append(push)
            flows.append(flow)
            if self.case.law != "direct":
                weighted = layer * (push * flow)[:, None, :]
                inner = -weighted @ layer.swapaxes(-1, -2)
                diagonal = np.einsum("bii->bi", inner)
                diagonal += weighted.sum(-1)
                if response is not None:
                    inner += layer @ response @ layer.swapaxes(-1, -2)
                response = inner
            flow = column_times(layer, flow)
        residual = y - flow
        fields = np.stack([*self.potentials(response, residual), *[residual] * turn], 1)
        behind = [fields]
        for layer in layers[:0:-1]:
            behind.insert(0, behind[0] @ layer)
        return flows, pushes, behind

    def spread(self, layers, pushes, fields):
        """The largest range of a score within a column."""
        largest = np.ones(len(pushes[0]))
        for layer, push, field in zip(layers, pushes, fields, strict=True):
            if self.case.full:
                found = push.max(-1) * (field.max(-1) - field.min(-1))
            else:
                top = np.where(layer > 0, field[..., None], -np.inf).max(1)
                low = np.where(layer > 0, field[..., None], np.inf).min(1)
                found = (push * (top - low)).max(-1)
            np.maximum(largest, found, out=largest)
        return largest

    def is_open(self, layers, flows, pushes, behind):
        """Whether the bending of the scheduled sample exceeds its squared displacement."""
        bent, first = 0.0, None
        for layer, flow, push, fields in zip(layers, flows, pushes, behind, strict=True):
            q, f = (
                field[..., None] - field[:, None] @ layer for field in fields.swapaxes(0, 1)[1:]
            )
            moving = layer * q
            slope = moving * f
            bent = bent + np.einsum("bij,bij,bj->b", slope, q, push * push * flow)
            if first is not None:
                bent = bent + 2 * np.einsum("bij,bj->b", slope, push * first)
            moved = column_times(moving, push * flow)
            first = moved if first is None else moved + column_times(layer, first)
        return bent > np.einsum("bi,bi->b", first, first)

    def growth(self, pushes, fields, size):
        return [
            np.exp((size[:, None] * field)[..., None] * push[:, None])
            for push, field in zip(pushes, fields, strict=True)
        ]

    def stepped(self, layers, *factors):
        result = []
        for layer, *grown in zip(layers, *factors, strict=True):
            weights = layer
            for factor in grown:
                weights = weights * factor
            result.append(weights / weights.sum(1, keepdims=True))
        return result

    def native(self, layers, x, y):
        _, pushes, behind = self.measured_straight(layers, x, y)
        b = [fields[:, 0] for fields in behind]
        step = self.case.scale / self.spread(layers, pushes, b)
        layers = self.stepped(layers, self.growth(pushes, b, step))
        return layers, mean_loss(layers, self.data)

    def measured_straight(self, layers, x, y):
        reserves, self.reserves = self.reserves, False
        found = self.measured(layers, x, y, False)
        self.reserves = reserves
        return found

    def decided(self, layers, flows, pushes, behind, b, r):
        """Native step, step and amount."""
        scale = self.case.scale
        native = scale / self.spread(layers, pushes, b)
        if not self.reserves:
            return native, native, np.zeros_like(native)
        kept = scale / np.maximum(
            self.spread(layers, pushes, [u + v for u, v in zip(b, r, strict=True)]),
            self.spread(layers, pushes, [u - v for u, v in zip(b, r, strict=True)]),
        )
        if self.case.gate == "curvature":
            amount = self.is_open(layers, flows, pushes, behind).astype(float)
        else:
            amount = np.full_like(kept, float(self.turning))
        matched = self.case.policy == "step_matched"
        return native, kept if matched else np.where(amount > 0, kept, native), amount

    def turned(self, layers, x, y, sense):
        """The nonreciprocal learner: its next state; losses taken, opposite, straight and own."""
        curved = self.turning and self.case.gate == "curvature"
        flows, pushes, behind = self.measured(layers, x, y, curved)
        b, r = ([fields[:, min(i, fields.shape[1] - 1)] for fields in behind] for i in (0, 1))
        native, step, amount = self.decided(layers, flows, pushes, behind, b, r)
        own = mean_loss(self.stepped(layers, self.growth(pushes, b, native)), self.data)
        along = self.growth(pushes, b, step)
        straight = self.stepped(layers, along)
        still = mean_loss(straight, self.data)
        if not self.turning:
            return straight, (still, still, still, own)
        across = self.growth(pushes, r, sense * amount * step)
        taken = self.stepped(layers, along, across)
        other = self.stepped(layers, along, [1 / grown for grown in across])
        return taken, (mean_loss(taken, self.data), mean_loss(other, self.data), still, own)


def train(case, layers, rates, inputs, targets, schedule, turns):
    pairs = Pairs(case, rates, (inputs, targets))
    turning = native = layers
    before = other = mean_loss(layers, pairs.data)
    ledger, rows = np.empty((4, *schedule.shape)), np.arange(len(schedule))
    for number in range(schedule.shape[1]):
        k = schedule[:, number]
        x, y = inputs[rows, k], targets[rows, k]
        turning, losses = pairs.turned(turning, x, y, turns[:, number])
        native, after = pairs.native(native, x, y)
        taken, opposite, still, own = (one - before for one in losses)
        mean = (taken + opposite) / 2
        drift = own - (after - other)
        ledger[:, :, number] = mean - still, taken - mean, still - own, drift
        before, other = losses[0], after
    return ledger.swapaxes(0, 1), *(list(end) for end in (turning, native))


def run(case, **given):
    parts = []
    for first in range(0, case.pairs, BLOCK):
        cut = lambda value, at=slice(first, first + BLOCK): (  # noqa: E731
            [one[at] for one in value] if isinstance(value, list) else value[at]
        )
        parts.append(train(case, **{name: cut(value) for name, value in given.items()}))
    ledger = np.concatenate([part[0] for part in parts])
    ends = (
        [np.concatenate(layers) for layers in zip(*(part[i] for part in parts), strict=True)]
        for i in (1, 2)
    )
    return ledger, *ends
