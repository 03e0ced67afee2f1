"""Coupled learners follow the paper's update to round-off, and their ledger closes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import whorl as wh
from whorl.learning.foresight import steps
from whorl.learning.ledger import TERMS, Ledger, Terms, terms
from whorl.learning.trajectory import added, begin, run, update

POLICIES = {"step-matched": wh.step_matched, "adaptive": wh.adaptive}


def problem(depth, seed, imbalance=8.0):
    return wh.Network.random(
        (3,) * (depth + 1), imbalance=imbalance, floor=0.1, seed=seed
    ), wh.Task.random(3, 3, seed=seed + 100)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("depth", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", POLICIES)
def test_a_pair_follows_the_plain_numpy_learner(name, depth):
    net, task = problem(depth, 3)
    pair = wh.train(net, task.inputs, task.targets, policy=POLICIES[name](0.2), epochs=4, seed=1)
    layers, rates = [np.asarray(p) for p in net.layers], [np.asarray(r) for r in net.rates]
    here, there, rows = oracle.coupled(
        layers,
        rates,
        np.asarray(task.inputs),
        np.asarray(task.targets),
        pair.schedule,
        pair.turns,
        name,
        0.2,
    )
    assert pair.updates is not None
    assert bool(jnp.any(pair.updates.amount > 0)), (
        "an example in which no turn is taken tests nothing"
    )
    for ours, theirs in zip(
        (*pair.nonreciprocal.layers, *pair.native.layers), (*here, *there), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    for number, term in enumerate(TERMS):
        np.testing.assert_allclose(getattr(pair.updates.terms, term), rows[:, number], atol=1e-15)


@pytest.fixture(scope="module")
def replayed():
    """A recorded pair, and every update of it once more in plain NumPy from the states that were
    kept.
    """
    net, task = problem(1, 3)
    pair = wh.train(
        net, task.inputs, task.targets, policy=wh.adaptive(0.2), epochs=4, seed=1, stride=1
    )
    assert pair.states is not None
    (ours, theirs), x, y = pair.states, np.asarray(task.inputs), np.asarray(task.targets)
    rows = []
    for number, (sample, turn) in enumerate(
        zip(pair.schedule.tolist(), pair.turns.tolist(), strict=True)
    ):
        here, there = (
            [np.asarray(layer[number]) for layer in side.layers] for side in (ours, theirs)
        )
        rows.append(one_update(here, there, x, y, sample) | {"turn": turn})
    states = [
        [[np.asarray(layer[n]) for layer in side.layers] for n in range(len(rows) + 1)]
        for side in (ours, theirs)
    ]
    losses = np.array([[oracle_loss(state, x, y) for state in side] for side in states])
    rows = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    rows["taken"], rows["opposite"] = (
        np.where(sign * rows["turn"] > 0, rows["plus"], rows["minus"]) for sign in (1, -1)
    )
    return pair, rows, losses


def entry_of(rows):
    """What the library makes of the oracle's increments."""
    return terms(
        *(jnp.asarray(rows[name]) for name in ("plus", "minus", "taken", "zero", "own", "native"))
    )


def oracle_loss(layers, inputs, targets):
    return ((targets - oracle.predict(layers, inputs)) ** 2).sum() / (2 * len(inputs))


def one_update(here, there, inputs, targets, sample, scale=0.2):
    """Increments of Eq.

    C1 at both states, with the steps of Eq. C2, for the amount 1 and for the step of the adaptive
    policy.
    """

    def scores(layers):
        return oracle.turn_scores(
            layers,
            [np.ones(3)] * len(layers),
            inputs,
            targets,
            sample,
            lambda k: np.linalg.inv(k + 0.1 * np.eye(3)),
        )

    def reach(layers, score):
        return scale / max(1, oracle.score_range(layers, score))

    def increment(layers, score, size):
        moved = [oracle.exponential_step(p, s, size) for p, s in zip(layers, score, strict=True)]
        return oracle_loss(moved, inputs, targets) - oracle_loss(layers, inputs, targets)

    b, r = scores(here)
    g, h = oracle.path_derivatives(here, inputs[sample : sample + 1], r)
    amount = float(
        ((targets[sample] - oracle.predict(here, inputs[sample : sample + 1])[0]) * h[0]).sum()
        > (g**2).sum()
    )
    plus, minus = ([s + sign * amount * t for s, t in zip(b, r, strict=True)] for sign in (1, -1))
    nu, other = min(reach(here, plus), reach(here, minus)), scores(there)[0]
    return {
        "amount": amount,
        "nu": nu,
        "own_step": reach(here, b),
        "native_step": reach(there, other),
        "plus": increment(here, plus, nu),
        "minus": increment(here, minus, nu),
        "zero": increment(here, b, nu),
        "own": increment(here, b, reach(here, b)),
        "native": increment(there, other, reach(there, other)),
    }


def test_the_increments_of_an_update_are_those_of_exponential_steps(replayed):
    pair, rows, losses = replayed
    seen, before, native_before = pair.updates.outcome, losses[0][:-1], losses[1][:-1]
    assert 0 < rows["amount"].sum() < len(rows["amount"])
    np.testing.assert_allclose(pair.updates.amount, rows["amount"], rtol=0)
    for name, increment, start in (
        ("taken", rows["taken"], before),
        ("opposite", rows["opposite"], before),
        ("still", rows["zero"], before),
        ("own", rows["own"], before),
        ("native", rows["native"], native_before),
    ):
        np.testing.assert_allclose(getattr(seen, name) - start, increment, rtol=0, atol=1e-15)


def test_one_update_alone_makes_the_increments_of_its_start(replayed):
    pair, rows, losses = replayed
    (net, task), plan = problem(1, 3), (jnp.asarray(pair.schedule), jnp.asarray(pair.turns))
    start = begin(net, task.inputs, task.targets)
    after, info = eqx.filter_jit(update)(
        wh.adaptive(0.2), task.inputs, task.targets, start, plan[0][0], plan[1][0], plan
    )
    wanted = [rows["taken"][0], rows["native"][0]]
    np.testing.assert_allclose(
        [after.losses[0] - losses[0][0], after.losses[1] - losses[1][0]], wanted, rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(
        [info.outcome.still, info.outcome.own] - losses[0][0],
        [rows["zero"][0], rows["own"][0]],
        rtol=0,
        atol=1e-15,
    )


def test_the_native_steps_are_the_envelopes_at_the_two_states(replayed):
    pair, rows, _ = replayed
    np.testing.assert_allclose(pair.updates.own_step, rows["own_step"], rtol=1e-13)
    np.testing.assert_allclose(pair.updates.native_step, rows["native_step"], rtol=1e-13)
    np.testing.assert_allclose(pair.updates.step, rows["nu"], rtol=1e-13)
    assert np.abs(rows["own_step"] - rows["native_step"]).max() > 1e-3, (
        "where both learners take one step nothing is told apart"
    )
    assert rows["own_step"].min() < rows["own_step"].max() == 0.2, "both branches of the envelope"


def test_the_four_terms_are_differences_of_the_increments(replayed):
    pair, rows, _ = replayed
    mean = (rows["plus"] + rows["minus"]) / 2
    wanted = {
        "even": mean - rows["zero"],
        "handedness": rows["taken"] - mean,
        "step": rows["zero"] - rows["own"],
        "drift": rows["own"] - rows["native"],
    }
    alone = entry_of(rows)
    for term, values in wanted.items():
        assert np.abs(values).max() > 1e-6
        np.testing.assert_allclose(getattr(alone, term), values, rtol=0, atol=1e-17)
        np.testing.assert_allclose(getattr(pair.updates.terms, term), values, rtol=0, atol=1e-15)


def test_the_handedness_of_one_update_is_half_the_difference_of_its_senses(replayed):
    pair, rows, _ = replayed
    half = (rows["plus"] - rows["minus"]) / 2
    np.testing.assert_allclose(
        pair.updates.terms.handedness, rows["turn"] * half, rtol=0, atol=1e-15
    )
    six = jnp.array([-3.0, -1.0, -3.0, -2.5, -2.0, -4.0])
    one, other = (
        terms(*six),
        terms(*six.at[2].set(-1.0)),
    )  # the other sense is taken, and nothing else changes
    assert float(one.handedness) == -float(other.handedness) == -1.0
    assert (one.even, one.step, one.drift) == (other.even, other.step, other.drift)


def test_the_terms_of_every_update_telescope(replayed):
    pair, rows, losses = replayed
    gaps = losses[0] - losses[1]  # of the states that were visited, from the oracle
    assert gaps[0] == 0
    total = np.sum([getattr(pair.updates.terms, term) for term in TERMS], axis=0)
    np.testing.assert_allclose(total, np.diff(gaps), rtol=0, atol=1e-15)
    np.testing.assert_allclose(pair.updates.terms.total, np.diff(gaps), rtol=0, atol=1e-15)
    np.testing.assert_allclose(entry_of(rows).total, np.diff(gaps), rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.cumsum(total), gaps[1:], rtol=0, atol=1e-15)
    assert np.abs(gaps[-1]) > 1e-4
    np.testing.assert_allclose(float(pair.ledger.sums.total), gaps[-1], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(wh.native(0.2), marks=pytest.mark.slow),
        pytest.param(wh.step_matched(0.2), marks=pytest.mark.slow),
        wh.adaptive(0.2),
        pytest.param(wh.adaptive(0.2, gate="always", omega=2.0), marks=pytest.mark.slow),
    ],
)
def test_the_ledger_of_every_policy_closes(policy):
    net, task = problem(4, 3)
    pair = wh.train(net, task.inputs, task.targets, policy=policy, epochs=30, seed=2)
    assert pair.ledger.closure <= 1e-14
    assert pair.ledger.closed
    x, y = np.asarray(task.inputs), np.asarray(task.targets)
    ours, theirs = (
        oracle_loss(oracle.arrays(end)[0], x, y) for end in (pair.nonreciprocal, pair.native)
    )
    assert sum(float(getattr(pair.ledger.sums, term)) for term in TERMS) == pytest.approx(
        ours - theirs, abs=1e-15
    )
    losses = (oracle_loss(oracle.arrays(net)[0], x, y), ours, theirs)
    assert Ledger(
        pair.ledger.sums, None, *map(jnp.asarray, losses)
    ).closed  # with losses of the oracle's too


@pytest.mark.slow
def test_a_long_ledger_closes_as_well_as_a_short_one():
    net, task = problem(1, 3)
    pair = wh.train(
        net,
        task.inputs,
        task.targets,
        policy=wh.adaptive(0.05, gate="always"),
        epochs=4000,
        seed=2,
        record=False,
    )
    assert pair.ledger.closure <= 1e-14


def test_small_terms_are_not_lost_against_large_sums():
    """A thousand terms of half a unit in the last place of the sum, which plain addition would drop
    one by one.
    """
    terms = Terms(*jnp.full((4, 1000), 1.1e-16).at[:, 0].set(1.0))
    zero = Terms(*jnp.zeros(4))

    def body(carry, term):
        sums, lost = carry
        return added(sums, lost, term), None

    (sums, lost), _ = jax.lax.scan(body, (zero, zero), terms)
    assert float(sums.drift) == 1.0
    assert float(sums.drift + lost.drift) == pytest.approx(1.0 + 999 * 1.1e-16, rel=3e-16)


def test_kept_updates_add_up_to_the_sums():
    net, task = problem(2, 3)
    pair = wh.train(net, task.inputs, task.targets, policy=wh.adaptive(0.2), epochs=10, seed=2)
    assert pair.ledger.updates is not None
    for term in TERMS:
        np.testing.assert_allclose(
            np.sum(getattr(pair.ledger.updates, term)), getattr(pair.ledger.sums, term), atol=1e-15
        )


def test_the_native_policy_has_an_empty_account():
    net, task = problem(2, 3)
    pair = wh.train(net, task.inputs, task.targets, policy=wh.native(0.2), epochs=3, seed=2)
    assert [float(getattr(pair.ledger.sums, term)) for term in TERMS] == [0.0] * 4
    assert float(pair.ledger.gap) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [wh.native(0.2), wh.rollout(0.2, horizon=1, actions=steps(1.0, 0.5))],
    ids=["native", "steps"],
)
@pytest.mark.parametrize("outputs", [2, 1])
def test_a_policy_that_never_turns_trains_outputs_that_cannot_turn(policy, outputs):
    net, task = (
        wh.Network.random((3, outputs), seed=4, floor=0.1),
        wh.Task.random(3, outputs, seed=5),
    )
    pair = wh.train(net, task.inputs, task.targets, policy=policy, epochs=2, seed=1)
    learner = wh.learn(
        net, task.inputs, task.targets, rule=wh.boundary(wh.leaky(0.1)), scale=0.2, epochs=2, seed=1
    )
    # The native learner by another road: 12 updates that each round at 1e-16.
    np.testing.assert_allclose(pair.native.layers[0], learner.system.layers[0], rtol=0, atol=1e-14)
    assert pair.completed
    assert pair.ledger.closed
    assert float(pair.ledger.sums.even) == float(pair.ledger.sums.handedness) == 0
    if outputs == 2:
        assert float(pair.ledger.native) < float(pair.ledger.start)


@pytest.mark.parametrize(
    "policy",
    [
        wh.adaptive(0.2),
        wh.step_matched(0.2),
        wh.rollout(0.2, horizon=1),
        wh.costate(0.2, horizon=1),
    ],
)
def test_a_policy_that_turns_is_refused_where_no_turn_exists(policy):
    net, task = wh.Network.random((3, 2), seed=4, floor=0.1), wh.Task.random(3, 2, seed=5)
    with pytest.raises(
        ValueError,
        match=r"^a policy that turns must have at least 3 outputs .*, but there are 2: use native\(...\)",
    ):
        wh.train(net, task.inputs, task.targets, policy=policy, epochs=1, seed=1)


@pytest.mark.slow
def test_a_policy_that_cannot_turn_needs_no_third_output():
    net, task = wh.Network.random((3, 2), seed=4, floor=0.1), wh.Task.random(3, 2, seed=5)
    for policy in (wh.adaptive(0.2, gate="never"), wh.step_matched(0.2, omega=0.0)):
        pair = wh.train(net, task.inputs, task.targets, policy=policy, epochs=2, seed=1)
        assert float(pair.ledger.gap) == 0


@pytest.mark.slow
def test_flipping_the_turns_reverses_every_sense():
    net, task = problem(2, 3)
    one = wh.train(
        net, task.inputs, task.targets, policy=wh.adaptive(0.2, gate="always"), epochs=1, seed=2
    )
    two = wh.train(
        net,
        task.inputs,
        task.targets,
        policy=wh.adaptive(0.2, gate="always"),
        epochs=1,
        seed=2,
        flip=True,
    )
    assert (one.turns == -two.turns).all()
    assert (one.schedule == two.schedule).all()
    assert one.updates is not None and two.updates is not None  # noqa: PT018
    np.testing.assert_allclose(
        one.updates.terms.handedness[0], -two.updates.terms.handedness[0], atol=1e-17
    )
    np.testing.assert_allclose(one.native.layers[0], two.native.layers[0], rtol=0)


@pytest.mark.slow
def test_states_are_kept_at_the_stride_asked_for():
    net, task = problem(2, 3)
    policy = wh.adaptive(0.2)
    pair = wh.train(net, task.inputs, task.targets, policy=policy, epochs=2, seed=2, stride=5)
    assert pair.states is not None
    first = wh.train(
        net,
        task.inputs,
        task.targets,
        policy=policy,
        schedule=pair.schedule[:5],
        turns=pair.turns[:5],
    )
    second = wh.train(
        net,
        task.inputs,
        task.targets,
        policy=policy,
        schedule=pair.schedule[:10],
        turns=pair.turns[:10],
    )
    kept = pair.states[0].layers[0]
    assert kept.shape[0] == 3
    for ours, theirs in zip(kept, (net, first.nonreciprocal, second.nonreciprocal), strict=True):
        np.testing.assert_allclose(ours, theirs.layers[0], rtol=1e-14)


@pytest.mark.slow
def test_memory_does_not_grow_with_updates_that_are_not_kept():
    net, task = problem(1, 3)
    start = begin(net, task.inputs, task.targets)
    compiled = jax.jit(
        lambda order, turns: (
            run(wh.adaptive(0.1), task.inputs, task.targets, start, order, turns, False, None)[
                0
            ].losses
        )
    )

    def peak(updates):
        turns = jnp.ones(updates, dtype=jnp.int32)
        sizes = compiled.lower(0 * turns, turns).compile().memory_analysis()
        return sizes.temp_size_in_bytes + sizes.output_size_in_bytes

    assert peak(6000) == peak(60)


@pytest.mark.slow
def test_per_column_rates_and_a_support_are_kept():
    layer = np.array([[0.5, 0.25, 0.0], [0.5, 0.75, 0.2], [0.0, 0.0, 0.8]])
    net = wh.Network([layer, layer], support=[layer > 0] * 2, rates=[[1.0, 2.0, 0.5], 3.0])
    task = wh.Task.random(3, 3, seed=4)
    pair = wh.train(
        net, task.inputs, task.targets, policy=wh.adaptive(0.2, gate="always"), epochs=20, seed=2
    )
    for end in (pair.nonreciprocal, pair.native):
        for p in end.layers:
            assert ((np.asarray(p) == 0) == (layer == 0)).all()
            np.testing.assert_allclose(np.asarray(p).sum(axis=0), 1.0, atol=1e-15)
    assert pair.ledger.closed


def test_a_learner_that_would_leave_the_interior_stops_and_says_where():
    net, task = problem(1, 3)
    pair = wh.train(net, task.inputs, task.targets, policy=wh.native(1e4), epochs=30, seed=2)
    assert not pair.completed
    assert (
        pair.status
        == f"stopped before update {pair.made}: a learner would have left the interior there"
    )
    assert pair.updates is not None
    assert pair.updates.step.shape == (pair.made,)
    assert pair.ledger.closed
    assert all(bool(jnp.all(p > 0)) for p in (*pair.nonreciprocal.layers, *pair.native.layers))


@pytest.mark.slow
def test_a_solved_task_stays_solved():
    net, task = problem(2, 3)
    pair = wh.train(
        net, task.inputs, wh.predict(net, task.inputs), policy=wh.adaptive(0.2), epochs=2, seed=0
    )
    assert float(pair.ledger.native) == float(pair.ledger.nonreciprocal) == 0.0
    assert pair.ledger.closed


def test_a_wrong_term_does_not_close():
    net, task = problem(2, 3)
    good = wh.train(
        net, task.inputs, task.targets, policy=wh.adaptive(0.2), epochs=2, seed=2
    ).ledger
    bad = Ledger(terms(*jnp.full(6, 1e-3)), None, good.start, good.nonreciprocal, good.native)
    assert not bad.closed
    assert "DOES NOT CLOSE" in str(bad)


def test_a_printed_ledger_names_its_terms_and_its_closure():
    net, task = problem(2, 3)
    text = str(wh.train(net, task.inputs, task.targets, policy=wh.adaptive(0.2), epochs=2, seed=2))
    for word in (
        "completed 12 updates",
        "even",
        "handedness",
        "step",
        "drift",
        "gap",
        "closes: residual",
    ):
        assert word in text


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"policy": "adaptive"},
            (
                r"policy must be native\(...\), step_matched\(...\), adaptive\(...\) or your own "
                r"Policy, but it is 'adaptive'"
            ),
        ),
        ({"stride": 0}, "stride must be a whole number of at least 1, but it is 0"),
        ({"epochs": -3}, "epochs must be a whole number of at least 1, but it is -3"),
        (
            {"targets": [[0.5, 0.5, 0.5]] * 6},
            "targets must have rows of unit mass, but row 0 sums to 1.5",
        ),
        (
            {"targets": [[1.0, 0.0, 0.0]] * 5},
            "targets must have one row per input, but there are 5 targets and 6 inputs",
        ),
    ],
)
def test_a_bad_run_is_refused_in_one_sentence(options, message):
    net, task = problem(1, 3)
    given = {
        "inputs": task.inputs,
        "targets": task.targets,
        "policy": wh.adaptive(0.1),
        "epochs": 2,
        "seed": 0,
    } | options
    with pytest.raises(ValueError, match=message):
        wh.train(net, given.pop("inputs"), given.pop("targets"), **given)


def test_a_run_whose_gate_never_opens_says_that_no_update_turned():
    net, data = wh.Network.random((3, 3, 3), floor=0.1, seed=3), wh.Task.random(3, 3, seed=103)
    given = {"epochs": 1, "seed": 0}
    rows = data.inputs, data.targets
    still = wh.train(net, *rows, policy=wh.adaptive(0.1, gate="never"), **given)
    assert "no update turned" in str(still)
    assert "handedness" not in str(still)
    matched = str(wh.train(net, *rows, policy=wh.step_matched(1.0, gate="never"), **given))
    assert "no update turned" in matched
    turned = str(wh.train(net, *rows, policy=wh.adaptive(0.1, gate="always"), **given))
    assert "no update turned" not in turned
