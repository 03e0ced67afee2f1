"""Which cases there are: each once, whoever asks, and the same in a longer sweep."""

import numpy as np
import pytest

from sweep.small import GRID, RANDOM, design
from whorl import sweep
from whorl.sweep import draws


def every(made):
    plan = sweep.Plan(made)
    return plan, [plan.of(plan.shard(number)) for number in range(plan.shards)]


def joined(parts, name):
    return np.concatenate([getattr(part, name) for part in parts])


def test_a_grid_has_every_combination_once():
    plan, parts = every(design())
    rows = [
        (
            part.shape["policy"],
            float(part.free["imbalance"][i]),
            float(part.free["scale"][i]),
            int(part.trial[i]),
            int(part.flip[i]),
        )
        for part in parts
        for i in range(len(part))
    ]
    assert len(set(rows)) == len(rows) == plan.cases == 2 * 3 * 2 * 5 * 2
    assert joined(parts, "number").tolist() == list(range(plan.cases))
    assert [len(part) for part in parts] == [50, 10, 50, 10]
    assert all(np.array_equal(part.draw, part.trial) for part in parts)


def test_a_shard_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="shard must be a number from 0 to 3, but it is 4"):
        sweep.Plan(design()).shard(4)


def test_a_huge_plan_costs_nothing():
    made = design(trials=10**9 // 24)
    plan = sweep.Plan(made)
    last = plan.of(plan.shard(plan.shards - 1))
    assert plan.cases > 9e8
    assert last.number[-1] == plan.cases - 1


def test_a_random_design_stays_in_its_ranges_and_fills_them():
    plan, parts = every(design(RANDOM, points=4000))
    leak, imbalance, scale = (
        np.concatenate([part.free[name] for part in parts])
        for name in ("leak", "imbalance", "scale")
    )
    assert plan.cases == len(set(joined(parts, "draw").tolist())) == 4000
    assert (leak.min() >= 0.01) & (leak.max() <= 1)
    assert abs(np.mean(np.log10(leak)) + 1) < 0.05
    assert abs(imbalance.mean() - 4) < 0.2
    assert set(scale.tolist()) == {0.1, 0.2}
    assert abs((scale == 0.1).mean() - 0.5) < 0.05


def test_shapes_share_the_points_of_a_random_design():
    plan, parts = every(design(RANDOM + "order = ['permuted', 'fixed']\n", points=41))
    assert plan.counts.tolist() == [21, 20]
    assert len(set(joined(parts, "draw").tolist())) == 41


def test_a_longer_sweep_begins_like_a_shorter_one():
    short, long = every(design(RANDOM))[1][0], every(design(RANDOM, points=400))[1][0]
    assert all(np.array_equal(short.free[name], long.free[name][:40]) for name in short.free)
    shape = dict(short.shape)
    few, many = (draws.of(6, shape, np.arange(count))[0] for count in (3, 300))
    assert all(np.array_equal(one[:3], other[:3]) for one, other in zip(few, many, strict=True))
    later = draws.of(6, shape | {"epochs": 5}, np.arange(3))[0]
    assert np.array_equal(later.order[:, :12], few.order)
    assert np.array_equal(later.turns[:, :12], few.turns)


def test_draws_are_what_they_should_be():
    shape = {"width": 4, "depth": 2, "mixtures": 2, "epochs": 3, "order": "permuted"}
    drawn, at = draws.of(1, shape, np.array([130, 5, 5]))
    assert drawn.logits[at].shape == (3, 2, 4, 4)
    assert np.array_equal(drawn.logits[at[1]], drawn.logits[at[2]])
    assert np.array_equal(
        np.sort(drawn.order.reshape(-1, 6)), np.tile(np.arange(6), (len(drawn.order) * 3, 1))
    )
    assert set(np.unique(drawn.turns)) == {-1, 1}
    fixed = draws.of(1, shape | {"order": "fixed"}, np.array([0]))[0]
    assert fixed.order[0].tolist() == [*range(6)] * 3


@pytest.mark.parametrize("concentration", [0.3, 1.0, 5.0])
def test_a_teacher_is_dirichlet(concentration):
    shares = np.random.default_rng(0).random((20000, 3, 3))
    rows = draws.teacher(shares, np.full(20000, concentration))
    assert np.allclose(rows.sum(axis=2), 1)
    assert abs(rows.mean() - 1 / 3) < 0.01
    assert (
        abs(rows[:, 0, 0].var() - (2 / 9) / (3 * concentration + 1)) < 0.004
    )  # the variance of Dirichlet(a, a, a)


def test_a_teacher_does_not_depend_on_its_neighbours():
    shares = np.random.default_rng(1).random((4, 3, 3))
    mixed = draws.teacher(shares, np.array([1.0, 2.0, 1.0, 0.5]))
    for at, concentration in enumerate([1.0, 2.0, 1.0, 0.5]):
        assert np.array_equal(
            mixed[at], draws.teacher(shares[at : at + 1], np.array([concentration]))[0]
        )


def test_the_estimate_counts_and_grows():
    about, more = (sweep.Plan(design(trials=trials)).estimate() for trials in (5, 500_000))
    assert (about["cases"], about["shapes"], about["shards"], about["updates"]) == (
        120,
        2,
        4,
        120 * 12,
    )
    assert more["seconds"] > about["seconds"]
    assert more["bytes"] > 1e4 * about["bytes"] / 10
    assert sweep.Plan(design(GRID, trials=500_000)).estimate(2)["seconds"] < more["seconds"]
