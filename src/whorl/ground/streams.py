"""Streams of random numbers, keyed by what they are for: no draw depends on another."""

import numpy as np


def stream(seed: int, *key: int) -> np.random.Generator:
    """The stream of one purpose."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
