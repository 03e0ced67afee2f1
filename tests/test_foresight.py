"""Policies that look ahead choose what plain enumeration chooses, and never regret it when they see
to the end.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import whorl as wh
from whorl.fast import programs
from whorl.learning import dispatch, ensemble, foresight, schedule
from whorl.learning.foresight import TURNS, Action, costate, rollout, steps
from whorl.learning.ledger import TERMS
from whorl.learning.policy import look, reserved
from whorl.learning.trajectory import mean_loss
from whorl_studies.foresight.spoilt import spoilt as spoil

MIXED = (Action(), Action(0.5, 0.7), Action(-2.0), Action(0.0, 0.5))


def problem(widths=(3, 3, 3), epochs=1, seed=0):
    net = wh.Network.random(widths, imbalance=4.0, floor=0.1, seed=seed)
    task = wh.Task.random(widths[0], widths[-1], seed=seed + 1)
    order, turns = (
        schedule.permuted(widths[0] + 3, epochs, seed),
        schedule.fair_turns((widths[0] + 3) * epochs, seed),
    )
    return net, task, order, turns


def trained(policy, *given, **options):
    net, task, order, turns = problem(*given)
    return wh.train(
        net, task.inputs, task.targets, policy=policy, schedule=order, turns=turns, **options
    )


def many(count, depth=2, epochs=3, seed=0):
    rng = np.random.default_rng(seed)
    nets = wh.stack(
        [
            wh.Network.random((3,) * (depth + 1), imbalance=8 * rng.random(), floor=0.1, seed=rng)
            for _ in range(count)
        ]
    )
    tasks = [wh.Task.random(3, 3, seed=rng) for _ in range(count)]
    order = np.stack([schedule.permuted(6, epochs, rng) for _ in range(count)])
    turns = np.stack([schedule.fair_turns(order.shape[1], rng) for _ in range(count)])
    return (
        nets,
        (np.stack([t.inputs for t in tasks]), np.stack([t.targets for t in tasks])),
        {"schedule": order, "turns": turns},
    )


def by_enumeration(
    net, task, order, turns, actions, horizon, scale, omega=1.0, mu=0.1, believed=None
):
    """The second route: try, roll out, compare, in plain NumPy.

    Answers with the choices and the last layers.
    """
    here, rates = oracle.arrays(net)
    inputs, targets = np.asarray(task.inputs), np.asarray(task.targets)
    believed = order if believed is None else believed

    def scores(at, sample):
        skew = wh.quarter_turn(targets.shape[1])
        return oracle.turn_scores(
            at,
            rates,
            inputs,
            targets,
            sample,
            lambda k: np.linalg.inv(k + mu * np.eye(len(k))),
            skew=skew,
        )

    def size(at, score):
        return scale / max(1.0, oracle.score_range(at, score))

    def moved(at, score, step):
        return [oracle.exponential_step(p, s, step) for p, s in zip(at, score, strict=True)]

    def after(at, sample, turn, action):
        b, r = scores(at, sample)
        mix = lambda a: [s + a * t for s, t in zip(b, r, strict=True)]  # noqa: E731
        amount, fraction = omega * action[0], action[1]
        step = fraction * (
            size(at, b) if amount == 0 else min(size(at, mix(amount)), size(at, mix(-amount)))
        )
        return moved(at, mix(turn * amount), step)

    def end(at, update):
        last = len(order) if horizon is None else min(len(order), update + 1 + horizon)
        for sample in believed[update + 1 : last]:
            b, _ = scores(at, sample)
            at = moved(at, b, size(at, b))
        return ((targets - oracle.predict(at, inputs)) ** 2).sum() / (2 * len(inputs))

    choices = []
    for update, (sample, turn) in enumerate(zip(order, turns, strict=True)):
        landings = [after(here, sample, turn, action) for action in actions]
        choices.append(int(np.argmin([end(at, update) for at in landings])))
        here = landings[choices[-1]]
    return choices, here


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("widths", "actions", "horizon", "omega"),
    [
        ((3, 3), TURNS, 0, 1.0),
        ((3, 3), TURNS, 3, 0.5),
        ((3, 3), steps(1.0, 0.5, 0.0), None, 1.0),
        pytest.param((3, 3), MIXED, 3, 1.0, marks=pytest.mark.slow),
        ((3, 3, 3), TURNS, None, 1.0),
        pytest.param((4, 3, 5), TURNS, 2, 1.0, marks=pytest.mark.slow),
    ],
    ids=["greedy", "three ahead", "steps", "mixed", "to the end", "other widths"],
)
def test_a_rollout_chooses_what_enumeration_chooses(widths, actions, horizon, omega):
    net, task, order, turns = problem(widths)
    policy = rollout(0.2, horizon=horizon, actions=actions, omega=omega)
    pair = trained(policy, widths)
    choices, layers = by_enumeration(net, task, order, turns, actions, horizon, 0.2, omega)
    assert pair.updates is not None
    assert np.asarray(pair.updates.choice).tolist() == choices
    for ours, theirs in zip(pair.nonreciprocal.layers, layers, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert pair.ledger.closed


@pytest.mark.slow
def test_a_wrong_schedule_is_believed():
    net, task, order, turns = problem((3, 3))
    believed = schedule.permuted(6, 1, 99)
    pair = trained(spoil(rollout(0.2, horizon=4), foreseen=believed), (3, 3))
    choices, _ = by_enumeration(net, task, order, turns, TURNS, 4, 0.2, believed=believed)
    assert pair.updates is not None
    assert np.asarray(pair.updates.choice).tolist() == choices


@pytest.mark.slow
@pytest.mark.parametrize(
    "actions", [TURNS, steps(1.0, 0.75, 0.25), MIXED[:3]], ids=["turns", "steps", "mixed"]
)
def test_who_sees_to_the_end_never_finishes_behind(actions):
    nets, data, plan = many(24)
    result = wh.train_many(
        nets, *data, policy=rollout(0.2, horizon=None, actions=actions), **plan, record=True
    )
    assert result.gap.max() <= 1e-15
    assert result.gap.min() < -1e-7
    assert result.closure.max() <= 1e-14


@pytest.mark.slow
def test_who_sees_nothing_ahead_takes_the_best_next_loss():
    pair = trained(rollout(0.2, horizon=0), (3, 3, 3), 2)
    assert pair.updates is not None
    outcome = pair.updates.outcome
    assert np.all(np.asarray(outcome.taken) <= np.asarray(outcome.own) + 1e-16)
    assert np.ptp(np.asarray(pair.updates.choice)) > 0


@pytest.mark.slow
def test_a_negative_amount_turns_against_the_schedule():
    policy = rollout(0.2, horizon=None)
    one, other = (
        trained(policy, (3, 3, 3), 2, flip=flip) for flip in (False, True)
    )  # so that one of them turns against it
    assert one.updates is not None
    assert other.updates is not None
    np.testing.assert_allclose(one.updates.amount, -other.updates.amount)
    assert np.any(np.asarray(one.updates.amount) != 0)
    assert float(one.ledger.nonreciprocal) == pytest.approx(
        float(other.ledger.nonreciprocal), rel=1e-13
    )
    assert one.ledger.closed
    assert other.ledger.closed


@pytest.mark.slow
def test_a_reading_in_error_decides():
    errors = np.zeros((6, 3))
    errors[:, 2] = -1.0  # this action is read as a loss of zero
    pair = trained(spoil(rollout(0.2, horizon=2), errors=errors))
    assert pair.updates is not None
    assert np.asarray(pair.updates.choice).tolist() == [2] * 6
    np.testing.assert_allclose(pair.updates.amount, -1.0)


def test_angles_put_another_direction_in_the_place_of_the_turn():
    net, task, order, turns = problem()
    right, none = (
        spoil(rollout(0.2, horizon=0), angles=np.full(6, angle)) for angle in (np.pi / 2, 0.0)
    )
    plan = jnp.asarray(order), jnp.asarray(turns)
    view = look(right.law, net, task.inputs, task.targets, int(order[0]), 1, 0, plan)
    for old, new in zip(view.turning, right.seen(view).turning, strict=True):
        np.testing.assert_allclose(old, new, atol=1e-15)
    for old, new in zip(view.straight, none.seen(view).turning, strict=True):
        np.testing.assert_array_equal(old, new)


def spoilt(count, updates, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "foreseen": np.stack([schedule.permuted(6, updates // 6, rng) for _ in range(count)]),
        "angles": rng.uniform(0, 2 * np.pi, (count, updates)),
        "errors": 0.1 * rng.standard_normal((count, updates, 3)),
    }


def by_the_general_loop(nets, policy, data):
    chunks = functools.partial(programs.in_chunks, workers=2)
    return ensemble._general(nets, policy, data, True, chunks, 64)


@pytest.mark.slow
@pytest.mark.parametrize("tables", [{}, spoilt(3, 18)], ids=["plain", "spoilt"])
@pytest.mark.parametrize("horizon", [3, None])
def test_the_lanes_look_ahead_as_the_general_loop_does(tables, horizon):
    nets, (x, y), plan = many(3)
    # A relative error is one of the whole loss, also of the part that no network can take away.
    data = x, (y + np.random.default_rng(1).dirichlet(np.ones(3), (3, 6))) / 2
    policy = spoil(rollout([0.1, 0.2, 0.15], horizon=horizon), **tables)
    assert dispatch.lane_kind(nets, policy) == ("rollout", "always")
    lanes = wh.train_many(nets, *data, policy=policy, **plan, record=True)
    checked = ensemble._checked_data(nets, *data, plan["schedule"], plan["turns"])
    general = by_the_general_loop(nets, policy, checked)
    np.testing.assert_array_equal(lanes.updates.choice, general.updates.choice)
    for ours, theirs in (
        (lanes.nonreciprocal, general.nonreciprocal),
        (lanes.native, general.native),
    ):
        for layer, other in zip(ours.layers, theirs.layers, strict=True):
            np.testing.assert_allclose(layer, other, rtol=1e-12)
    for term in TERMS:
        np.testing.assert_allclose(
            getattr(lanes.updates.terms, term), getattr(general.updates.terms, term), atol=1e-15
        )
    np.testing.assert_allclose(lanes.final, general.final, rtol=1e-12)
    assert lanes.closure.max() <= 1e-14


@pytest.mark.slow
def test_a_pair_of_an_ensemble_is_the_pair_alone():
    nets, data, plan = many(3)
    tables = spoilt(3, 18)
    together = wh.train_many(
        nets,
        *data,
        policy=spoil(rollout([0.1, 0.2, 0.3], horizon=3), **tables),
        **plan,
        record=True,
    )
    net = jax.tree.map(lambda leaf: leaf[1], nets)
    policy = spoil(rollout(0.2, horizon=3), **{name: table[1] for name, table in tables.items()})
    pair = wh.train(
        net,
        data[0][1],
        data[1][1],
        policy=policy,
        schedule=plan["schedule"][1],
        turns=plan["turns"][1],
    )
    assert pair.updates is not None
    assert together.updates.choice is not None
    np.testing.assert_array_equal(together.updates.choice[1], pair.updates.choice)
    assert together.final[0][1] == pytest.approx(float(pair.ledger.nonreciprocal), rel=1e-12)


@pytest.fixture(scope="module")
def seen():
    net, task, order, turns = problem((3, 3, 3), 2, 5)
    plan = jnp.asarray(order), jnp.asarray(turns)
    return look(
        wh.native(0.2).law,
        net,
        task.inputs,
        task.targets,
        int(order[4]),
        int(turns[4]),
        jnp.asarray(4, dtype=jnp.int32),
        plan,
    )


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [2, None])
def test_the_costate_gives_the_derivatives_of_the_loss_ahead(seen, horizon):
    policy = costate(0.2, horizon=horizon, order=2)
    width = 2e-3

    def ahead(amount):
        forward = rollout(0.2, horizon=horizon, actions=[(amount, 1.0)])
        step = reserved(policy.scale, policy.omega, seen)
        # The step must not depend on the amount here, as it does not in the costate: the landing is
        # made by hand.
        net = seen.system.stepped(seen.combined(seen.turn * amount), step)
        for at in range(5, 12 if horizon is None else min(12, 5 + horizon)):
            net, _ = foresight.native_step(
                forward, net, None, seen.inputs, seen.targets, seen.order[at]
            )
        return float(mean_loss(net, seen.inputs, seen.targets))

    value, slope, bend = (float(part) for part in policy.derivatives(seen))
    below, at, above = (ahead(amount) for amount in (-width, 0.0, width))
    assert value == pytest.approx(at, rel=1e-13)
    assert slope == pytest.approx((above - below) / (2 * width), rel=1e-4)
    assert bend == pytest.approx((above - 2 * at + below) / width**2, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_the_costate_turns_within_its_bounds_and_its_ledger_closes(order):
    pair = trained(costate(0.2, horizon=None, omega=0.5, order=order), (3, 3, 3), 2)
    assert pair.updates is not None
    amounts = np.asarray(pair.updates.amount)
    assert np.all(np.abs(amounts) <= 0.5)
    assert np.any(amounts != 0)
    assert order == 2 or set(np.abs(amounts)) <= {0.0, 0.5}
    assert pair.ledger.closed
    assert float(pair.ledger.gap) < 0


def test_the_costate_takes_the_best_amount_of_its_parabola():
    class Known(foresight.Costate):
        """A loss ahead that is a parabola with its lowest point at an amount of 0.3."""

        def derivatives(self, view):
            one = jnp.ones_like(view.displacement)
            return -1 * one, -0.3 * one, 1.0 * one

    base = costate(0.2, horizon=0, order=2)
    net, task, order, turns = problem()
    view = look(
        base.law,
        net,
        task.inputs,
        task.targets,
        int(order[0]),
        1,
        0,
        (jnp.asarray(order), jnp.asarray(turns)),
    )
    choice = Known(base.scale, base.omega, base.gate, base.law, 0, 2).decide(view)
    assert float(choice.amount) == pytest.approx(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [0, 6, None])
def test_three_hundred_pairs_choose_alike_on_both_roads(horizon):
    nets, data, plan = many(300, depth=4, epochs=5, seed=3)
    policy = rollout(0.1, horizon=horizon)
    lanes = wh.train_many(nets, *data, policy=policy, **plan, record=True)
    checked = ensemble._checked_data(nets, *data, *plan.values())
    general = by_the_general_loop(nets, policy, checked)
    assert lanes.updates.choice is not None
    assert general.updates.choice is not None
    same = (lanes.updates.choice == general.updates.choice).all(
        axis=1
    )  # actions that end alike to the last bits may be told apart by rounding
    assert same.mean() > 0.98
    np.testing.assert_allclose(lanes.final[0], general.final[0], rtol=1e-9)


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: rollout(0.1, horizon=-1),
            r"horizon must be a whole number of at least 0, but it is -1",
        ),
        (lambda: rollout(0.0, horizon=1), r"scale must be greater than 0, but it is 0"),
        (lambda: rollout([0.1, -0.2], horizon=1), r"scale must be greater than 0, but it is -0.2"),
        (
            lambda: rollout(0.1, horizon=1, actions=[]),
            r"actions must be pairs of an amount and a fraction, but they are \[\]",
        ),
        (
            lambda: rollout(0.1, horizon=1, actions=[1.0]),
            r"actions must be pairs of an amount and a fraction",
        ),
        (
            lambda: rollout(0.1, horizon=1, actions=[(0, 2)]),
            r"actions must take a fraction .* but action 0 takes 2",
        ),
        (lambda: costate(0.1, horizon=1, order=3), r"order must be 1 or 2, but it is 3"),
        (lambda: costate(0.1, horizon=None, omega=-1.0), r"omega must be at least 0, but it is -1"),
        (
            lambda: trained(rollout([0.1, 0.2], horizon=1)),
            r"scale must be one number, but its shape is \(2,\)",
        ),
    ],
)
def test_a_bad_foresight_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
