"""Seeded pairs: what every peer is given, so that all of them do the same work."""

import numpy as np

SCALE, LEAK = 0.2, 0.1
SAMPLES, EPOCHS = 6, 30
UPDATES = SAMPLES * EPOCHS


def problem(pairs, depth, seed=0, epochs=EPOCHS):
    """Random networks (imbalance 0, 4 or 8.

    Floor 0.1), teachers, permuted orders and fair turns.
    """
    rng = np.random.default_rng(seed)
    imbalance = rng.choice([0.0, 4.0, 8.0], size=(pairs, 1, 1, 1))
    weights = np.exp(imbalance * rng.standard_normal((pairs, depth, 3, 3)))
    layers = 0.9 * weights / weights.sum(2, keepdims=True) + 0.1 / 3
    vertices = np.broadcast_to(np.eye(3), (pairs, 3, 3))
    inputs = np.concatenate([vertices, rng.dirichlet(np.ones(3), (pairs, SAMPLES - 3))], axis=1)
    teacher = rng.dirichlet(np.ones(3), (pairs, 3)).swapaxes(1, 2)
    targets = np.einsum("bij,bsj->bsi", teacher, inputs)
    order = np.broadcast_to(np.arange(SAMPLES, dtype=np.int32), (pairs, epochs, SAMPLES))
    schedule = rng.permuted(order, axis=2).reshape(pairs, epochs * SAMPLES)
    turns = rng.choice(np.array([-1, 1], dtype=np.int32), size=schedule.shape)
    return {
        "layers": layers,
        "inputs": inputs,
        "targets": targets,
        "schedule": schedule,
        "turns": turns,
    }


def lanes_last(*arrays):
    """The pairs as the last axis, where elementwise work is contiguous."""
    return [np.ascontiguousarray(np.moveaxis(array, 0, -1)) for array in arrays]


def pairs_first(ledger, *ends):
    """Undo `lanes_last` for a result: ledger (updates, 4, lanes), networks (depth, 3, 3, lanes)."""
    return np.transpose(ledger, (1, 2, 0)), *(np.moveaxis(end, -1, 0) for end in ends)


def in_blocks(train, size, arrays):
    """Call `train` on blocks of pairs that fit the cache, and join what comes back."""
    pairs = arrays[0].shape[-1]
    if pairs <= size:
        return train(*arrays)
    parts = [
        train(*(np.ascontiguousarray(a[..., first : first + size]) for a in arrays))
        for first in range(0, pairs, size)
    ]
    return tuple(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
