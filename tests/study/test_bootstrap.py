"""Areas and intervals against scikit-learn, SciPy and plain counting."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from whorl.study import bootstrap


def ranked(rows, levels, seed):
    """Scores with many ties or few, and labels of both kinds."""
    rng = np.random.default_rng(seed)
    positive = rng.random(rows) < 0.4
    positive[:2] = True, False
    return rng.integers(0, levels, rows) / 7, positive


@given(st.integers(2, 60), st.sampled_from([1, 3, 10**6]), st.integers(0, 2**32))
def test_the_area_is_that_of_scikit_learn_also_with_ties(rows, levels, seed):
    score, positive = ranked(rows, levels, seed)
    assert bootstrap.auc(score, positive) == pytest.approx(
        roc_auc_score(positive, score), abs=1e-14
    )


@given(st.integers(2, 30), st.sampled_from([1, 3, 10**6]), st.integers(0, 2**32))
def test_an_area_of_clusters_is_that_of_repeated_rows(rows, levels, seed):
    score, positive = ranked(rows, levels, seed)
    weights = np.random.default_rng(seed + 1).integers(0, 4, (5, rows))
    weights[:, :2] += 1
    found = bootstrap.clustered_auc(score, positive, np.arange(rows), weights)
    for area, weight in zip(found, weights, strict=True):
        assert area == pytest.approx(
            roc_auc_score(np.repeat(positive, weight), np.repeat(score, weight)), abs=1e-14
        )


def test_weights_of_one_give_the_plain_area():
    score, positive = ranked(40, 5, 0)
    assert bootstrap.clustered_auc(score, positive, np.arange(40), np.ones((1, 40), int))[
        0
    ] == pytest.approx(bootstrap.auc(score, positive), abs=1e-15)


def test_without_both_kinds_of_row_there_is_no_area():
    score = np.arange(4.0)
    assert bootstrap.auc(score, np.ones(4, dtype=bool)) is None
    assert bootstrap.auc(score, np.zeros(4, dtype=bool)) is None
    weights = np.array([[1, 1, 0, 0], [0, 0, 2, 1], [1, 0, 1, 0]])
    assert bootstrap.clustered_auc(
        score, np.array([False, False, True, True]), np.arange(4), weights
    ).tolist() == [0.5, 0.5, 1.0]


@given(st.integers(1, 8), st.integers(1, 30), st.integers(0, 2**32))
def test_a_cluster_counts_as_often_as_it_was_drawn(clusters, resamples, seed):
    drawn = bootstrap.resampled(seed, clusters, resamples)
    counts = bootstrap.multiplicities(drawn, clusters)
    assert counts.shape == drawn.shape == (resamples, clusters)
    assert counts.tolist() == [
        [row.count(cluster) for cluster in range(clusters)] for row in drawn.tolist()
    ]


def test_resamples_follow_from_the_seed_as_the_page_says():
    rng = np.random.default_rng(np.random.SeedSequence(20261022))
    np.testing.assert_array_equal(
        bootstrap.resampled(20261022, 50, 6), rng.integers(0, 50, (6, 50))
    )


def test_the_interval_is_the_central_95_per_cent_by_linear_interpolation():
    values = np.random.default_rng(3).permutation(np.arange(41.0))
    assert bootstrap.interval(values) == (1.0, 39.0)
    assert bootstrap.interval(np.arange(5.0)) == pytest.approx((0.1, 3.9), abs=1e-15)


def test_a_trial_bootstrap_is_the_percentile_bootstrap_of_scipy():
    data = np.random.default_rng(4).normal(size=20)
    ours = bootstrap.interval(data[bootstrap.resampled(5, 20, 4000)].mean(axis=1))
    theirs = stats.bootstrap(
        (data,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(6)
    ).confidence_interval
    np.testing.assert_allclose(ours, theirs, atol=0.03)


@given(st.integers(2, 6), st.integers(0, 2**32))
def test_resampling_clusters_is_repeating_their_rows(clusters, seed):
    score, positive = ranked(3 * clusters, 9, seed)
    family = np.repeat(np.arange(clusters), 3)
    drawn = bootstrap.resampled(seed, clusters, 3)
    counts = bootstrap.multiplicities(drawn, clusters)
    labels = [np.concatenate([positive[family == one] for one in row]) for row in drawn]
    assume(all(0 < one.sum() < one.size for one in labels))
    scores = [np.concatenate([score[family == one] for one in row]) for row in drawn]
    theirs = [roc_auc_score(one, other) for one, other in zip(labels, scores, strict=True)]
    np.testing.assert_allclose(
        bootstrap.clustered_auc(score, positive, family, counts), theirs, atol=1e-14
    )
