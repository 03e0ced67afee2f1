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


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """The area under the ROC curve: how often a positive has the higher score, ties counting half."""
    ranks, many = rankdata(score), int(positive.sum())
    wins = ranks[positive].sum() - many * (many + 1) / 2
    return float(wins / (many * (len(score) - many)))


def weighted_auc(score: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same for many weightings of the rows at once, (resamples, rows)."""
    levels, level = np.unique(score, return_inverse=True)
    order = np.argsort(level, kind="stable")
    edges = np.searchsorted(level[order], np.arange(levels.size))
    found = np.empty(len(weights))
    for first in range(0, len(weights), BATCH):
        part = weights[first : first + BATCH, order].astype(float)
        above, below = (np.add.reduceat(part * mask[order], edges, axis=1) for mask in (positive, ~positive))
        beaten = np.cumsum(below, axis=1) - below / 2
        found[first : first + BATCH] = (above * beaten).sum(axis=1) / (above.sum(axis=1) * below.sum(axis=1))
    return found
