"""The horizon study against explicit loops in plain NumPy, and its account."""

import math

import numpy as np
import pytest

import oracle
from study.every_kind import EveryKind
from study.small import made, rows, small, statistics
from whorl.study import draws
from whorl.study.kinds import horizon


class TestHorizon(EveryKind):
    """The horizon study, as one of its kind."""

    kind = "horizon"


@pytest.fixture(scope="module")
def p():
    return made("horizon")[0]


@pytest.fixture(scope="module")
def t():
    return made("horizon")[1]


def task(t, trial):
    here = t["tasks"]["trial"] == trial
    return (np.stack([t["tasks"][f"{side}_{i}"][here] for i in range(3)], axis=1) for side in "xy")


def test_trajectories_are_those_of_explicit_loops(t, p):
    updates = t["updates"]
    for row in rows(t["trajectories"]):
        if row["trial"] == 0:
            x, y = task(t, 0)
            w = t["weights"]
            layers = list(
                w["weight"][
                    (w["trial"] == 0) & (w["depth"] == row["depth"]) & (w["beta"] == row["beta"])
                ].reshape(-1, 3, 3)
            )
            s = t["schedule"]
            order, turns = (s[name][s["trial"] == 0] for name in ("sample", "turn"))
            policy = row["policy"].replace("_", "-")
            sign = -1 if row["flip"] else 1
            here, there, terms = oracle.coupled(
                layers,
                [np.ones(3)] * len(layers),
                x,
                y,
                order,
                sign * turns,
                policy,
                row["scale"],
                p.omega,
                p.leak,
            )
            mine = updates["trajectory"] == row["trajectory"]
            np.testing.assert_allclose(
                np.stack(
                    [updates[n][mine] for n in ("even", "handedness", "step", "drift")], axis=1
                ),
                terms,
                atol=1e-14,
            )
            final = t["final_weights"]
            ends = final["trajectory"] == row["trajectory"]
            np.testing.assert_allclose(final["nonreciprocal"][ends], np.ravel(here), atol=1e-13)
            np.testing.assert_allclose(final["native"][ends], np.ravel(there), atol=1e-13)
            assert row["start"] == pytest.approx(
                ((y - oracle.predict(layers, x)) ** 2).sum() / 12, rel=1e-13
            )
            assert row["final"] == pytest.approx(
                ((y - oracle.predict(here, x)) ** 2).sum() / 12, rel=1e-12
            )


def test_gates_open_in_some_updates_and_stay_shut_in_others(t, p):
    assert set(t["updates"]["amount"].tolist()) == {0.0, p.omega}


def test_terms_of_an_update_are_the_differences_of_the_page(t):
    before = {}
    starts = dict(
        zip(
            t["trajectories"]["trajectory"].tolist(),
            t["trajectories"]["start"].tolist(),
            strict=True,
        )
    )
    for row in rows(t["updates"]):
        was, native_was = before.get(row["trajectory"], (starts[row["trajectory"]],) * 2)
        a, o, z, w = (row[name] - was for name in ("taken", "opposite", "still", "own"))
        n, m = row["native"] - native_was, (a + o) / 2
        assert [row[name] for name in ("even", "handedness", "step", "drift")] == [
            m - z,
            a - m,
            z - w,
            w - n,
        ]
        before[row["trajectory"]] = row["taken"], row["native"]


def test_sums_of_a_trajectory_follow_from_its_updates(t):
    updates, final = t["updates"], t["final_weights"]
    for row in rows(t["trajectories"]):
        mine, ends = (
            updates["trajectory"] == row["trajectory"],
            final["trajectory"] == row["trajectory"],
        )
        for name in ("even", "handedness", "step", "drift"):
            assert row[name] == math.fsum(updates[name][mine])
        assert (row["final"], row["native"]) == (
            updates["taken"][mine][-1],
            updates["native"][mine][-1],
        )
        assert row["gap"] == row["final"] - row["native"]
        assert row["closure"] == abs(
            (((row["even"] + row["handedness"]) + row["step"]) + row["drift"]) - row["gap"]
        )
        assert row["opened"] == (updates["amount"][mine] > 0).sum()
        assert row["smallest"] == min(
            final["nonreciprocal"][ends].min(), final["native"][ends].min()
        )


def test_means_of_trials_and_conditions_are_plain_means(t, p):
    trajectories = rows(t["trajectories"])
    for row in rows(t["trials"]):
        mine = [
            one
            for one in trajectories
            if (one["trial"], one["policy"]) == (row["trial"], row["policy"])
        ]
        for name in ("gap", "even", "handedness", "step", "drift"):
            assert row[name] == math.fsum(one[name] for one in mine) / len(mine)
    drawn = np.random.default_rng(np.random.SeedSequence(p.bootstrap_seed)).integers(
        0, p.trials, (p.resamples, p.trials)
    )
    for row in rows(t["conditions"]):
        mine = [
            one
            for one in trajectories
            if all(one[key] == row[key] for key in ("depth", "beta", "scale"))
        ]
        gaps = {
            policy: [one["gap"] for one in mine if one["policy"] == policy]
            for policy in ("step_matched", "adaptive")
        }
        for policy, values in gaps.items():
            assert row[f"gap_{policy}"] == math.fsum(values) / len(values)
        assert row["gain"] == row["gap_step_matched"] - row["gap_adaptive"]
        one, other = (
            np.reshape(gaps[policy], (p.trials, 2)).mean(axis=1)
            for policy in ("step_matched", "adaptive")
        )
        ends = np.quantile((one - other)[drawn].mean(axis=1), [0.025, 0.975])
        np.testing.assert_allclose([row["lower"], row["upper"]], ends, atol=1e-16)


def test_draws_are_means_over_resampled_trials(t, p):
    drawn = np.random.default_rng(np.random.SeedSequence(p.bootstrap_seed)).integers(
        0, p.trials, (p.resamples, p.trials)
    )
    gap = {
        policy: t["trials"]["gap"][t["trials"]["policy"] == policy]
        for policy in ("step_matched", "adaptive")
    }
    for policy, values in gap.items():
        np.testing.assert_allclose(
            t["draws"][f"gap_{policy}"], [values[row].mean() for row in drawn], rtol=1e-13
        )
    np.testing.assert_array_equal(
        t["draws"]["gain"], t["draws"]["gap_step_matched"] - t["draws"]["gap_adaptive"]
    )


def test_statistics_are_those_of_the_tables(t, p):
    found, trials = statistics(t), t["trials"]
    for policy in ("step_matched", "adaptive"):
        mine = {
            name: trials[name][trials["policy"] == policy].mean()
            for name in ("gap", "even", "handedness", "step", "drift")
        }
        assert [found[f"{name}.{policy}"] for name in ("gap", "step", "drift")] == [
            mine["gap"],
            mine["step"],
            mine["drift"],
        ]
        assert found[f"turning.{policy}"] == mine["even"] + mine["handedness"]
        ends = [found[f"gap.{policy}.{end}"] for end in ("lower", "upper")]
        assert ends == np.quantile(t["draws"][f"gap_{policy}"], [0.025, 0.975]).tolist()
    assert found["gain"] == found["gap.step_matched"] - found["gap.adaptive"]
    assert [found["gain.lower"], found["gain.upper"]] == np.quantile(
        t["draws"]["gain"], [0.025, 0.975]
    ).tolist()
    assert found["conditions.adaptive_better"] == (t["conditions"]["gain"] > 0).sum()
    assert found["step.recovered"] == found["step.step_matched"] - found["step.adaptive"]
    assert (
        found["drift.offset"]
        == (found["drift.adaptive"] - found["drift.step_matched"]) / found["step.recovered"]
    )
    assert (
        found["weight.min"]
        == min(t["final_weights"][name].min() for name in ("nonreciprocal", "native"))
        > 0
    )
    columns = np.concatenate(
        [t["final_weights"][name].reshape(-1, 3, 3) for name in ("nonreciprocal", "native")]
    )
    assert (
        found["column_residual.max"]
        == max(abs(math.fsum(layer[:, column]) - 1) for layer in columns for column in range(3))
        < 1e-12
    )


def test_accounts_close_at_round_off(t, p):
    found, trajectories, updates = statistics(t), rows(t["trajectories"]), rows(t["updates"])
    length, largest = 6 * p.epochs, 0.0
    for number, row in enumerate(updates):
        first = number % length == 0
        was = trajectories[row["trajectory"]]["start"] if first else updates[number - 1]["taken"]
        native_was = (
            trajectories[row["trajectory"]]["start"] if first else updates[number - 1]["native"]
        )
        change = (row["taken"] - was) - (row["native"] - native_was)
        largest = max(
            largest,
            abs((((row["even"] + row["handedness"]) + row["step"]) + row["drift"]) - change),
        )
    assert found["closure.step.max"] == largest < 1e-15
    assert found["closure.trajectory.max"] == max(row["closure"] for row in trajectories) < 1e-14

    def total(row):
        return ((row["even"] + row["handedness"]) + row["step"]) + row["drift"]

    pairs = [
        (one, trajectories[number + 2])
        for number, one in enumerate(trajectories)
        if one["policy"] == "step_matched"
    ]
    assert all(
        other["policy"] == "adaptive" and other["flip"] == one["flip"] for one, other in pairs
    )
    assert (
        found["closure.paired.max"]
        == max(abs((total(a) - total(b)) - (a["gap"] - b["gap"])) for a, b in pairs)
        < 1e-14
    )


def test_the_native_learner_is_the_same_for_all_who_share_a_condition(t, p):
    assert statistics(t)["native.difference"] == 0
    native = t["updates"]["native"].copy()
    native[-1] += 1e-9
    found = horizon.KIND.statistics(p, t | {"updates": t["updates"] | {"native": native}})
    assert found["native.difference"] == pytest.approx(1e-9, rel=1e-6)
    assert found["closure.step.max"] == pytest.approx(1e-9, rel=1e-6)


def test_a_share_of_nothing_is_no_statistic(t, p):
    trials = t["trials"] | {"step": np.ones(2 * p.trials)}
    found = horizon.KIND.statistics(p, t | {"trials": trials})
    assert found["step.recovered"] == 0
    assert "drift.offset" not in found


def test_stages_of_scales_that_look_alike_are_kept_apart():
    values = small("horizon", scales=[0.1, 0.10000000001], depths=[1, 4]).values()
    assert len(set(horizon.KIND.stages(values))) == 8


def test_the_stored_schedule_is_the_documented_stream():
    p, tables = made("horizon")
    for trial in range(p.trials):
        here = tables["schedule"]["trial"] == trial
        np.testing.assert_array_equal(
            tables["schedule"]["sample"][here], draws.order(p.seed, trial, p.epochs)
        )
        np.testing.assert_array_equal(
            tables["schedule"]["turn"][here], draws.turns(p.seed, trial, 6 * p.epochs)
        )
