"""A row is what `train` says of its case, whatever stands beside it."""

import numpy as np
import pytest

import whorl as wh
from sweep.small import GRID, RANDOM, design
from whorl import sweep
from whorl.sweep import compute
from whorl.sweep.compute import NUMBERS


def first(made, number=0):
    plan = sweep.Plan(made)
    return plan.of(plan.shard(number))


def alone(made, cases, at):
    """The same case through the loop for a single pair."""
    layers, x, y, order, turns = (array[at] for array in compute.problem(made.seed, cases))
    numbers = {name: float(cases.free[name][at]) for name in ("scale", "omega", "leak")}
    law = wh.rotational(cases.shape["alpha"], base=wh.leaky(numbers["leak"]))
    rules = {"step_matched": wh.step_matched, "adaptive": wh.adaptive}
    rule = wh.native(numbers["scale"], law=law)
    if cases.shape["policy"] != "native":
        rule = rules[cases.shape["policy"]](
            numbers["scale"], omega=numbers["omega"], gate=cases.shape["gate"], law=law
        )
    return wh.train(wh.Network(list(layers)), x, y, policy=rule, schedule=order, turns=turns)


ALWAYS = (
    RANDOM.replace("[policy]", '[policy]\npolicy = "step_matched"\ngate = "always"')
    + "[task]\nmixtures = 1\nconcentration = [0.5, 1.0]\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GRID, id="grid"),
        pytest.param(RANDOM, id="random", marks=pytest.mark.slow),
        pytest.param(
            RANDOM.replace("[law]", "[law]\nalpha = 1.5"), id="alpha", marks=pytest.mark.slow
        ),
        pytest.param(
            RANDOM.replace("[network]", "[network]\nwidth = 4\ndepth = 2"),
            id="wide",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            RANDOM.replace("[policy]", '[policy]\npolicy = "native"'),
            id="native",
            marks=pytest.mark.slow,
        ),
        pytest.param(ALWAYS, id="always", marks=pytest.mark.slow),
    ],
)
def test_a_row_is_what_one_pair_alone_does(text):
    made = design(text)
    cases = first(made)
    rows = compute.rows(made.seed, cases, made.chunk)
    assert set(rows["reason"]) == {""}
    for at in (0, 7, len(cases) - 1):
        pair = alone(made, cases, at)
        seen = {
            "gap": pair.ledger.gap,
            "final": pair.ledger.nonreciprocal,
            "native": pair.ledger.native,
            "start": pair.ledger.start,
        }
        seen |= {
            term: getattr(pair.ledger.sums, term)
            for term in ("even", "handedness", "step", "drift")
        }
        for name, value in seen.items():
            assert abs(rows[name][at] - float(value)) < 1e-13
    assert rows["closure"].max() < 1e-13


@pytest.mark.parametrize(
    "text",
    [
        GRID,
        RANDOM,
        pytest.param(RANDOM.replace("[law]", "[law]\nalpha = 1.5"), marks=pytest.mark.slow),
    ],
    ids=["grid", "random", "general"],
)
def test_a_row_does_not_depend_on_the_rows_beside_it(text):
    made = design(text)
    cases = first(made)
    rows = compute.rows(made.seed, cases, made.chunk)
    for places in (np.array([3]), np.array([9, 2, 30]), np.arange(20, 37)):
        few = compute.rows(made.seed, cases.rows(places), made.chunk)
        assert all(np.array_equal(few[name], rows[name][places]) for name in NUMBERS)


def test_a_network_that_cannot_be_is_a_row_with_the_reason():
    text = GRID.replace("imbalance = [0.0, 4.0, 8.0]", "imbalance = [1e4, 4.0]\nfloor = 0.0")
    made = design(text)
    cases = first(made)
    rows = compute.rows(made.seed, cases, made.chunk)
    bad = cases.free["imbalance"] == 1e4
    assert all("must be positive on its support" in words for words in rows["reason"][bad])
    assert set(rows["reason"][~bad]) == {""}
    assert np.isnan(rows["gap"][bad]).all()
    assert np.isfinite(rows["gap"][~bad]).all()


@pytest.mark.slow
def test_a_pair_that_stops_says_when():
    text = RANDOM.replace(
        "imbalance = { from = 0, to = 8 }", "imbalance = 600\nfloor = 0\ndepth = 1"
    ).replace("epochs = 2", "epochs = 40")
    made = design(text, points=64)
    rows = compute.rows(made.seed, first(made), made.chunk)
    words = [reason for reason in rows["reason"] if reason]
    assert words
    assert all("stopped after" in one or "must be positive on its support" in one for one in words)
