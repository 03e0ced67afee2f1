"""Cluster bootstraps: whole families, or whole trials, are drawn with replacement."""

import numpy as np
from scipy.stats import rankdata

BATCH = 500  # resamples that are held in memory together


def resampled(seed: int, clusters: int, resamples: int) -> np.ndarray:
    """Cluster numbers, one row a resample."""
    return np.random.default_rng(np.random.SeedSequence(seed)).integers(0, clusters, size=(resamples, clusters))


def multiplicities(rows: np.ndarray, clusters: int) -> np.ndarray:
    """How often each cluster was drawn in each resample."""
    offsets = clusters * np.arange(len(rows))[:, None]
    return np.bincount((rows + offsets).ravel(), minlength=clusters * len(rows)).reshape(len(rows), clusters)


def interval(values: np.ndarray) -> tuple[float, float]:
    """The central 95 % of bootstrap values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def auc(score: np.ndarray, positive: np.ndarray) -> float | None:
    """The area under the ROC curve: how often a positive has the higher score, ties counting half. None without both kinds of row."""
    if positive.all() or not positive.any():
        return None
    ranks, many = rankdata(score), int(positive.sum())
    wins = ranks[positive].sum() - many * (many + 1) / 2
    return float(wins / (many * (len(score) - many)))


def weighted_auc(score: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same for many weightings of the rows at once, (resamples, rows); one half where a resample has no pair to compare."""
    levels, level = np.unique(score, return_inverse=True)
    order = np.argsort(level, kind="stable")
    edges = np.searchsorted(level[order], np.arange(levels.size))
    found = np.empty(len(weights))
    for first in range(0, len(weights), BATCH):
        part = weights[first : first + BATCH, order].astype(float)
        above, below = (np.add.reduceat(part * mask[order], edges, axis=1) for mask in (positive, ~positive))
        beaten = np.cumsum(below, axis=1) - below / 2
        pairs = above.sum(axis=1) * below.sum(axis=1)
        found[first : first + BATCH] = np.where(pairs > 0, (above * beaten).sum(axis=1) / np.where(pairs > 0, pairs, 1), 0.5)
    return found
