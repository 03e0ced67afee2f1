"""The foresight study on a small design.

Tables follow from each other, statistics by a second route, bytes are the same twice.
"""

import math
import shutil

import numpy as np
import pytest

import whorl as wh
import whorl_audit
from study import from_the_page
from whorl.ground import store
from whorl.learning.foresight import rollout
from whorl.study import design, draws, kinds
from whorl_studies.foresight import arms, comparators
from whorl_studies.foresight import kind as foresight
from whorl_studies.foresight.spoilt import spoilt

KIND = "foresight"
SMALL = {
    "seed": 71,
    "bootstrap_seed": 72,
    "trials": 3,
    "epochs": 2,
    "depths": [1],
    "betas": [0.0, 8.0],
    "scales": [0.2],
    "horizons": [0, 4, -1],
    "robust_horizons": [-1],
    "noises": [0.1],
    "omegas": [0.5],
    "deep": 2,
    "wide": 4,
    "wide_trials": 2,
    "resamples": 60,
}


@pytest.fixture(scope="module")
def statistics(tables):
    return dict(
        zip(
            tables["statistics"]["name"].tolist(),
            tables["statistics"]["value"].tolist(),
            strict=True,
        )
    )


def where(table, **keys):
    return np.all([table[name] == value for name, value in keys.items()], axis=0)


@pytest.mark.slow
def test_every_table_has_its_documented_columns(tables):
    assert list(tables) == list(foresight.KIND.columns)
    for name, table in tables.items():
        stored = foresight.KIND.arrow(name, table)
        assert stored.num_rows == len(next(iter(table.values())))


def test_the_registered_design_has_its_seeds_conditions_and_horizons(study):
    p = study.values()
    assert (p.seed, p.bootstrap_seed, p.trials) == (20261115, 20261116, 100)
    assert len(p.depths) * len(p.betas) * len(p.scales) == 12
    assert p.horizons == [0, 1, 3, 6, 12, 18, 36, 90, -1]
    assert "foresight" not in kinds.paper()
    rows = sum(len(arm.horizons) * len(arm.depths) * 6 * arm.trials for arm in arms.arms(p))
    assert {gate.statistic: gate.bound for gate in study.gates}["rows.trajectories"] == rows


@pytest.mark.slow
def test_the_drawn_tables_follow_from_the_page_to_the_bit(study, tables):
    redone = from_the_page.DRAWN["foresight"](vars(study.values(quick=True)))
    drawn = {name for name in tables for one in foresight.KIND.columns[name] if one.role == "drawn"}
    assert drawn == set(redone)
    for name, table in redone.items():
        assert list(table) == list(tables[name])
        for column, values in table.items():
            np.testing.assert_array_equal(tables[name][column], values, err_msg=f"{name}.{column}")


@pytest.mark.slow
def test_a_trajectory_is_what_the_library_makes_of_its_keys(tables):
    rows = tables["trajectories"]
    for arm, horizon in (("turns", 4), ("turns", -1), ("halves", -1), ("random", 0)):
        number = int(np.flatnonzero(where(rows, arm=arm, horizon=horizon, trial=1, beta=8.0))[0])
        x, y = draws.task(71, 1, 1.0)
        net = wh.Network(list(draws.softmax_layers(71, 1, 1, 8.0, 0.1)))
        order = draws.order(71, 1, 2)
        actions = {"halves": ((0, 1), (0, 0.5), (0, 0))}.get(arm, ((0, 1), (1, 1), (-1, 1)))
        drawn = {"angles": arms.draws.angles(71, 1, 12)} if arm == "random" else {}
        plain = rollout(0.2, horizon=None if horizon < 0 else horizon, actions=actions)
        policy = spoilt(plain, **drawn)
        pair = wh.train(net, x, y, policy=policy, schedule=order, turns=np.ones(12, dtype=int))
        assert pair.updates is not None
        assert rows["final"][number] == pytest.approx(float(pair.ledger.nonreciprocal), rel=1e-11)
        assert rows["native"][number] == pytest.approx(float(pair.ledger.native), rel=1e-11)
        for term in ("even", "handedness", "step", "drift"):
            assert rows[term][number] == pytest.approx(
                float(getattr(pair.ledger.sums, term)), abs=1e-14
            )
        chosen = tables["choices"]["action"][tables["choices"]["trajectory"] == number]
        np.testing.assert_array_equal(chosen, pair.updates.choice)
        assert rows["departed"][number] == np.count_nonzero(chosen)


@pytest.mark.slow
def test_wide_trajectories_have_their_own_updates(tables):
    rows = tables["trajectories"]
    number = int(np.flatnonzero(where(rows, arm="wide"))[0])
    assert rows["width"][number] == 4
    assert np.count_nonzero(tables["choices"]["trajectory"] == number) == 2 * (4 + 3)


@pytest.mark.slow
def test_the_account_closes_and_foresight_to_the_end_never_loses(statistics):
    assert statistics["closure.max"] < 1e-15
    assert statistics["rollout.worst"] <= 1e-15
    assert statistics["native.difference"] == 0
    assert statistics["weight.min"] > 0


def resampled(values):
    rows = np.random.default_rng(np.random.SeedSequence(72)).integers(
        0, len(values), (60, len(values))
    )
    return np.quantile([math.fsum(values[row]) / len(values) for row in rows], [0.025, 0.975])


@pytest.mark.slow
def test_conditions_by_a_second_route(tables):
    rows, found = tables["trajectories"], tables["conditions"]
    for at in range(len(found["arm"])):
        keys = {
            name: found[name][at] for name in ("arm", "horizon", "width", "depth", "beta", "scale")
        }
        gaps = (rows["final"] - rows["native"])[where(rows, **keys)]
        assert found["gap"][at] == pytest.approx(gaps.mean(), abs=1e-16)
        np.testing.assert_allclose(
            [found["lower"][at], found["upper"][at]], resampled(gaps), atol=1e-16
        )
        assert found["pays"][at] == (found["upper"][at] < 0)
        assert found["behind"][at] == np.sum(gaps > 0)


@pytest.mark.slow
def test_advantages_and_comparisons_by_a_second_route(tables, statistics):
    rows = tables["trajectories"]
    for table, key, other in (
        ("advantages", "control", rows),
        ("comparisons", "learner", tables["comparators"]),
    ):
        found, name = tables[table], {"advantages": "arm", "comparisons": "learner"}[table]
        for at in range(len(found[key])):
            place = {part: found[part][at] for part in ("horizon", "depth", "beta", "scale")}
            theirs = other["final"][where(other, **{name: found[key][at]}, **place)]
            ours = rows["final"][where(rows, arm="turns", **place)]
            assert found["advantage"][at] == pytest.approx(np.mean(theirs - ours), abs=1e-16)
            np.testing.assert_allclose(
                [found["lower"][at], found["upper"][at]], resampled(theirs - ours), atol=1e-16
            )
        for who in np.unique(found[key]):
            here = where(found, **{key: who, "horizon": -1})
            assert statistics[f"against.{who}.end.wins"] == np.sum(found["lower"][here] > 0)
            assert statistics[f"against.{who}.end.loses"] == np.sum(found["upper"][here] < 0)


@pytest.mark.slow
def test_the_first_horizon_that_pays(tables):
    found, conditions = tables["payoff"], tables["conditions"]
    for at in range(len(found["arm"])):
        keys = {name: found[name][at] for name in ("arm", "depth", "beta", "scale")}
        pays = dict(
            zip(
                conditions["horizon"][where(conditions, **keys)],
                conditions["pays"][where(conditions, **keys)],
                strict=True,
            )
        )
        good = [horizon for horizon in SMALL["horizons"] if pays[horizon]]
        lasting = [
            k
            for n, k in enumerate(SMALL["horizons"])
            if all(pays[later] for later in SMALL["horizons"][n:])
        ]
        assert found["first"][at] == (good[0] if good else -2)
        assert found["onward"][at] == (lasting[0] if lasting else -2)


@pytest.mark.slow
def test_costs_count_every_update_that_is_only_foreseen(tables, statistics):
    costs = tables["costs"]
    by_hand = {
        k: sum(3 * (1 + min(12 if k < 0 else k, 11 - t)) for t in range(12))
        for k in SMALL["horizons"]
    }
    assert dict(zip(costs["horizon"].tolist(), costs["foresight"].tolist(), strict=True)) == by_hand
    assert costs["multiple"].tolist() == [1 + math.ceil(by_hand[k] / 12) for k in SMALL["horizons"]]
    assert statistics["cost.end"] == pytest.approx(by_hand[-1] / 12)


@pytest.mark.slow
def test_comparators_are_the_learners_they_are_called(study, tables):
    times = comparators.multiple(study.values(quick=True), 0)
    x, y = draws.task(71, 2, 1.0)
    net = wh.Network(list(draws.softmax_layers(71, 2, 1, 8.0, 0.1)))
    long, order = draws.order(71, 2, 2 * times), draws.order(71, 2, 2)
    rule = wh.boundary(wh.leaky(0.1))
    wanted = {
        "longer": wh.learn(net, x, y, rule=rule, scale=0.2, schedule=long).final,
        "finer": wh.learn(
            net, x, y, rule=rule, scale=0.2 / times, schedule=np.repeat(order, times)
        ).final,
        "full_batch": wh.learn(
            net,
            x,
            y,
            rule=wh.exponentiated_gradient(),
            scale=0.2,
            schedule=[0] * (2 * times),
            full_batch=True,
        ).final,
    }
    rows = tables["comparators"]
    for learner, loss in wanted.items():
        here = where(rows, learner=learner, horizon=0, depth=1, beta=8.0, trial=2)
        assert rows["final"][here][0] == pytest.approx(float(loss), rel=1e-11)


@pytest.mark.slow
def test_two_runs_write_the_same_bytes(tables, folder):
    for name, table in tables.items():
        assert (
            store.parquet(foresight.KIND.arrow(name, table))
            == (folder / "tables" / f"{name}.parquet").read_bytes()
        )


@pytest.mark.slow
def test_the_audit_agrees_with_every_value(folder):
    findings = whorl_audit.audit(folder).findings["foresight"]
    assert [finding for finding in findings if not finding.passed] == []
    claims = " ".join(finding.claim for finding in findings)
    for column in ("choices.action", "trajectories.drift", "comparators.final", "conditions.upper"):
        assert column in claims


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("choices", "action"),
        ("trajectories", "drift"),
        ("comparators", "final"),
        ("readings", "error"),
    ],
)
def test_the_audit_finds_one_changed_value(folder, tables, tmp_path, table, column):
    place = tmp_path / "foresight"
    shutil.copytree(folder, place)
    values = tables[table][column].copy()
    at = int(
        np.argmax(np.abs(values) * (tables[table].get("trial", 1) != 0))
    )  # of comparators, more than the first trial is followed
    values[at] = (values[at] + 1) % 3 if column == "action" else values[at] * (1 + 1e-6)
    store.write(
        place / "tables" / f"{table}.parquet",
        store.parquet(foresight.KIND.arrow(table, tables[table] | {column: values})),
    )
    broken = [
        finding.claim
        for finding in whorl_audit.audit(place).findings["foresight"]
        if not finding.passed
    ]
    named = {"choices": "trajectories.final"}.get(
        table, f"{table}.{column}"
    )  # another action leads elsewhere
    assert any(claim.startswith(f"{named} follows from") for claim in broken)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("value = [0, 1, 3, 6, 12, 18, 36, 90, -1]", "value = [0, -2]"),
            "horizons must be a list of different whole numbers from -1 to 1000000",
        ),
        (
            ("value = [1.0, 0.5, 0.0]", "value = [0.5, 1.0, 0.0]"),
            "halves must be three different numbers from 0 to 1 of which the first is 1",
        ),
        (("deep = { value = 6", "deep = { value = 0"), "deep must be a whole number from 1 to 64"),
    ],
)
def test_a_bad_design_is_refused_by_line(study, change, message):
    with pytest.raises(ValueError, match=rf"line \d+: {message}"):
        design.parse(study.text.decode().replace(*change).encode())
