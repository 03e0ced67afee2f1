"""The same work at any widths, and what all peers of `widths.py` are given.

Layers are lists, `(pairs, out, in)` each; everything else is as in `problem`.
"""

from dataclasses import dataclass

import numpy as np

LEAK, SAMPLES = 0.1, 6


@dataclass(frozen=True)
class Case:
    """One row of the table: networks, how many, and what they follow."""

    widths: tuple
    pairs: int
    policy: str = "adaptive"
    gate: str = "curvature"
    law: str = "leaky"
    scale: float = 0.1
    rated: bool = False
    full: bool = True
    epochs: int = 30

    @property
    def updates(self):
        return SAMPLES * self.epochs

    def __str__(self):
        same = len(set(self.widths)) == 1
        shape = (
            f"width {self.widths[0]}, depth {len(self.widths) - 1}"
            if same
            else f"widths {'-'.join(map(str, self.widths))}"
        )
        kind = [self.policy, self.gate] if self.policy != "native" else [self.policy]
        more = [*kind, self.law, *["rates"] * self.rated, *["partial support"] * (not self.full)]
        return f"{shape}, {self.pairs} pairs, {', '.join(more)}"


def problem(case, seed=0):
    """Random networks (imbalance 4, floor 0.1), teachers, permuted orders and fair turns."""
    rng, pairs = np.random.default_rng(seed), case.pairs
    layers, rates = [], []
    for width, out in zip(case.widths[:-1], case.widths[1:], strict=True):
        weights = np.exp(4.0 * rng.standard_normal((pairs, out, width)))
        mask = np.ones((out, width), dtype=bool)
        if not case.full:  # every column keeps at least two entries
            mask[np.arange(width) % out, np.arange(width)] = out < 3
        weights = np.where(mask, 0.9 * weights / weights.sum(1, keepdims=True) + 0.1 / out, 0.0)
        layers.append(weights / weights.sum(1, keepdims=True))
        rates.append(
            rng.uniform(0.5, 2.0, (pairs, width)) if case.rated else np.ones((pairs, width))
        )
    inputs = rng.dirichlet(np.ones(case.widths[0]), (pairs, SAMPLES))
    teacher = rng.dirichlet(np.ones(case.widths[-1]), (pairs, case.widths[0]))
    order = np.broadcast_to(np.arange(SAMPLES, dtype=np.int32), (pairs, case.epochs, SAMPLES))
    schedule = rng.permuted(order, axis=2).reshape(pairs, case.updates)
    turns = rng.choice(np.array([-1, 1], dtype=np.int32), size=schedule.shape)
    return {
        "case": case,
        "layers": layers,
        "rates": rates,
        "inputs": inputs,
        "targets": inputs @ teacher,
        "schedule": schedule,
        "turns": turns,
    }
