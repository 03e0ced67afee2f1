"""Random numbers of a sweep, from streams keyed by purpose and by block of 64 draws.

A block is always drawn whole, so that a draw is the same in every shard, on every worker and in
every longer sweep; and it is drawn at once, because a generator for each case would take longer
than the case. More epochs only add to a schedule, and a teacher's columns of all concentrations
come from the same even numbers.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv

from whorl.ground.streams import stream

BLOCK = 64
MIXTURES, TEACHER, LOGITS, ORDER, TURNS, POINTS = range(
    100, 106
)  # apart from the keys of the studies


class Drawn(NamedTuple):
    """What a block of draws, or some cases, start from; the draws are the first axis."""

    inputs: np.ndarray  # (draws, samples, width)
    shares: np.ndarray  # even numbers of the teacher, (draws, width, width)
    logits: np.ndarray  # (draws, depth, width, width)
    order: np.ndarray  # (draws, updates)
    turns: np.ndarray  # (draws, updates)


def of(seed: int, shape: Mapping[str, Any], draws: np.ndarray) -> tuple[Drawn, np.ndarray]:
    """What the blocks of some draws hold, and the place of each draw among them."""
    blocks, inverse = np.unique(draws // BLOCK, return_inverse=True)
    parts = [_block(seed, shape, int(block)) for block in blocks]
    return Drawn(
        *(np.concatenate(part) for part in zip(*parts, strict=True))
    ), inverse * BLOCK + draws % BLOCK


def _block(seed: int, shape: Mapping[str, Any], block: int) -> Drawn:
    width, depth, mixtures, epochs = (
        shape[name] for name in ("width", "depth", "mixtures", "epochs")
    )
    samples = width + mixtures
    mixed = (
        stream(seed, block, MIXTURES, width)
        .dirichlet(np.ones(width), size=(mixtures, BLOCK))
        .reshape(mixtures, BLOCK, width)
    )
    vertices = np.broadcast_to(np.eye(width), (BLOCK, width, width))
    shown = np.broadcast_to(np.arange(samples, dtype=np.int32), (epochs, BLOCK, samples))
    if shape["order"] == "permuted":
        shown = stream(seed, block, ORDER, samples).permuted(shown, axis=2)
    turns = stream(seed, block, TURNS, samples).integers(0, 2, size=(epochs * samples, BLOCK))
    return Drawn(
        np.concatenate([vertices, mixed.swapaxes(0, 1)], axis=1),
        stream(seed, block, TEACHER, width).random((BLOCK, width, width)),
        stream(seed, block, LOGITS, width)
        .standard_normal((depth, BLOCK, width, width))
        .swapaxes(0, 1),
        shown.swapaxes(0, 1).reshape(BLOCK, -1),
        (2 * turns - 1).T.astype(np.int32),
    )


def teacher(shares: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    """Rows of a Dirichlet distribution from even numbers, by the quantiles of gamma variates.

    (cases, in, out).
    """
    grown = -np.log1p(
        -shares
    )  # concentration one, which most tasks have; the quantile of any other takes much longer
    if (other := concentration != 1).any():
        grown[other] = gammaincinv(
            np.broadcast_to(concentration[other, None, None], shares[other].shape), shares[other]
        )
    return grown / grown.sum(axis=2, keepdims=True)


def columns(logits: np.ndarray, imbalance: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Columns softmax(imbalance z) with a uniform share, (cases, depth, out, in)."""
    scaled = imbalance[:, None, None, None] * logits
    grown = np.exp(scaled - scaled.max(axis=2, keepdims=True))
    even = floor[:, None, None, None]
    return (1 - even) * grown / grown.sum(axis=2, keepdims=True) + even / logits.shape[2]
