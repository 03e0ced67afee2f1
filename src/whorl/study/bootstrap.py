"""Cluster bootstraps: whole families, or whole trials, are drawn with replacement."""

import numpy as np
from scipy.stats import rankdata


def resampled(seed: int, clusters: int, resamples: int) -> np.ndarray:
    """Cluster numbers, one row per resample."""
    return np.random.default_rng(np.random.SeedSequence(seed)).integers(
        0, clusters, size=(resamples, clusters)
    )


def multiplicities(rows: np.ndarray, clusters: int) -> np.ndarray:
    """How often each cluster was drawn in each resample."""
    offsets = clusters * np.arange(len(rows))[:, None]
    return np.bincount((rows + offsets).ravel(), minlength=clusters * len(rows)).reshape(
        len(rows), clusters
    )


def interval(values: np.ndarray) -> tuple[float, float]:
    """The central 95 % of bootstrap values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def auc(score: np.ndarray, positive: np.ndarray) -> float | None:
    """The area under the ROC curve: how often a positive has the higher score, ties counting half.

    None without both kinds of row.
    """
    if positive.all() or not positive.any():
        return None
    ranks, many = rankdata(score), int(positive.sum())
    wins = ranks[positive].sum() - many * (many + 1) / 2
    return float(wins / (many * (len(score) - many)))


def clustered_auc(
    score: np.ndarray, positive: np.ndarray, cluster: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """The same with whole clusters repeated, `counts` (resamples, clusters).

    One half where a resample has no pair to compare.

    Wins and ties between two clusters are counted once; multiples of one half add up without
    rounding in any order.
    """
    clusters = counts.shape[1]
    others, whose = score[~positive], cluster[~positive]
    wins = np.zeros((clusters, clusters))
    for one in range(clusters):
        mine = score[positive & (cluster == one), None]
        wins[one] = np.bincount(
            whose, ((mine > others) + 0.5 * (mine == others)).sum(axis=0), minlength=clusters
        )
    above, below = (
        counts @ np.bincount(cluster[mask], minlength=clusters) for mask in (positive, ~positive)
    )
    pairs = above * below
    return np.where(
        pairs > 0, ((counts @ wins) * counts).sum(axis=1) / np.where(pairs > 0, pairs, 1), 0.5
    )
