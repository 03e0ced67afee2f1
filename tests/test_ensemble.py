"""Many pairs at once end where each of them ends alone."""

import math
import time
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from whorl.fast import exponential, fused, lanes, programs, small
from whorl.learning import dispatch, schedule
from whorl.learning.ledger import TERMS
from whorl.learning.policy import look


def pairs_of(count, widths=(3, 3), epochs=5, seed=0):
    rng = np.random.default_rng(seed)
    nets = wh.stack(
        [
            wh.Network.random(widths, imbalance=8 * rng.random(), floor=0.1, seed=rng)
            for _ in range(count)
        ]
    )
    tasks = [wh.Task.random(widths[0], widths[-1], seed=rng) for _ in range(count)]
    order = np.stack([schedule.permuted(widths[0] + 3, epochs, rng) for _ in range(count)])
    turns = np.stack([schedule.fair_turns(order.shape[1], rng) for _ in range(count)])
    inputs, targets = (
        np.stack([task.inputs for task in tasks]),
        np.stack([task.targets for task in tasks]),
    )
    targets[1::2] = rng.dirichlet(
        np.ones(widths[-1]), targets[1::2].shape[:2]
    )  # what no linear network can produce
    return nets, {"inputs": inputs, "targets": targets, "schedule": order, "turns": turns}


def many(nets, data, policy, **options):
    return wh.train_many(
        nets,
        data["inputs"],
        data["targets"],
        policy=policy,
        schedule=data["schedule"],
        turns=data["turns"],
        **options,
    )


def alone(nets, data, policy, number):
    net = jax.tree.map(lambda leaf: leaf[number], nets)
    order, turns = data["schedule"][number], data["turns"][number]
    return wh.train(
        net,
        data["inputs"][number],
        data["targets"][number],
        policy=policy,
        schedule=order,
        turns=turns,
    )


def assert_same(result, number, pair):
    for ours, theirs in ((result.nonreciprocal, pair.nonreciprocal), (result.native, pair.native)):
        for layer, other in zip(ours.layers, theirs.layers, strict=True):
            np.testing.assert_allclose(layer[number], other, rtol=1e-12)
    for term in TERMS:
        np.testing.assert_allclose(
            getattr(result.updates.terms, term)[number],
            getattr(pair.updates.terms, term),
            atol=1e-15,
        )
    for ours, theirs in zip(
        jax.tree.leaves(result.updates.outcome), jax.tree.leaves(pair.updates.outcome), strict=True
    ):
        np.testing.assert_allclose(ours[number], theirs, rtol=1e-11)
    assert result.final[0][number] == pytest.approx(float(pair.ledger.nonreciprocal), rel=1e-12)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(wh.step_matched(0.2), marks=pytest.mark.slow),
        wh.adaptive(0.2, omega=0.5),
        pytest.param(wh.adaptive(0.1, gate="always"), marks=pytest.mark.slow),
        pytest.param(wh.native(0.2), marks=pytest.mark.slow),
        pytest.param(wh.step_matched(0.2, gate="never"), marks=pytest.mark.slow),
    ],
    ids=["step-matched", "adaptive", "always", "native", "never"],
)
def test_the_lanes_follow_the_general_loop(policy):
    nets, data = pairs_of(3, (3, 3, 3))
    assert dispatch.lane_kind(nets, policy) is not None
    result = many(nets, data, policy, record=True)
    for number in range(3):
        assert_same(result, number, alone(nets, data, policy, number))
    assert result.closure.max() <= 1e-14


@pytest.mark.slow
@pytest.mark.parametrize(
    "widths", [(3, 3), pytest.param((3, 4, 3), marks=pytest.mark.slow)], ids=["lanes", "general"]
)
def test_every_pair_may_have_numbers_of_its_own(widths):
    nets, data = pairs_of(3, widths)
    scale, omega, leak = [0.05, 0.2, 0.1], [0.0, 1.5, 0.5], [0.3, 0.1, 0.02]
    law = wh.rotational(base=wh.leaky(leak))
    result = many(nets, data, wh.adaptive(scale, omega=omega, gate="always", law=law), record=True)
    assert result.updates is None or result.updates.choice is None
    for number in range(3):
        own = wh.rotational(base=wh.leaky(leak[number]))
        policy = wh.adaptive(scale[number], omega=omega[number], gate="always", law=own)
        assert_same(result, number, alone(nets, data, policy, number))


@pytest.mark.slow
def test_a_policy_that_chooses_says_what_it_chose():
    nets, data = pairs_of(2, (3, 3), epochs=2)
    policy = wh.costate(0.2, horizon=2)
    result = many(nets, data, policy, record=True)
    assert result.updates.choice is not None
    for number in range(2):
        np.testing.assert_array_equal(
            result.updates.choice[number], alone(nets, data, policy, number).updates.choice
        )


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (wh.adaptive([0.1, 0.2]), "scale"),
        (wh.adaptive(0.1, omega=[1.0, 0.5]), "omega"),
        (wh.adaptive(0.1, law=wh.rotational(base=wh.leaky([0.1, 0.2]))), "mu"),
    ],
)
def test_numbers_of_other_pairs_are_refused_in_one_sentence(policy, name):
    nets, data = pairs_of(3)
    with pytest.raises(
        ValueError,
        match=rf"^{name} must be one number, or one for each of 3 pairs, but its shape is \(2,\)$",
    ):
        many(nets, data, policy)
    with pytest.raises(ValueError, match=rf"^{name} must be one number, but its shape is \(2,\)$"):
        alone(nets, data, policy, 0)


def test_a_row_of_leaks_is_for_ensembles_alone():
    net, task = wh.Network.random((3, 3), seed=0, floor=0.1), wh.Task.random(3, 3, seed=1)
    with pytest.raises(
        ValueError, match=r"^mu must be one number, except in train_many, but its shape is \(2,\)$"
    ):
        wh.leaky([0.1, 0.2])(
            wh.response(net, task.inputs), wh.residual(net, task.inputs, task.targets)
        )


@pytest.mark.parametrize("depth", [1, 3])
def test_the_lanes_see_what_a_policy_sees(depth):
    nets, data = pairs_of(6, (3,) * (depth + 1))
    law = wh.rotational(base=wh.leaky(0.1))
    layers = jnp.stack([jnp.moveaxis(layer, 0, -1) for layer in nets.layers])
    columns = lanes.Columns(layers[:, :2], layers[:, 2])
    x, y = jnp.asarray(data["inputs"][:, 4].T), jnp.asarray(data["targets"][:, 4].T)
    local = jax.jit(lanes.measure)(columns, x, y[:2], jnp.full(6, 0.1))
    excess, widest = jax.jit(lanes.bending)(columns, local), lanes.span(local.b, local.flow)
    for number in range(6):
        net = jax.tree.map(lambda leaf, at=number: leaf[at], nets)
        view = look(
            law,
            net,
            jnp.asarray(data["inputs"][number]),
            jnp.asarray(data["targets"][number]),
            4,
            1,
            0,
        )
        assert float(excess[number]) == pytest.approx(
            float(view.bending - view.displacement), rel=1e-12
        )
        assert float(widest[number]) == pytest.approx(
            max(1.0, float(net.spread(view.straight))), rel=1e-13
        )


@pytest.mark.slow
def test_another_leak_goes_through_the_lanes_too():
    nets, data = pairs_of(2)
    policy = wh.adaptive(0.2, law=wh.rotational(base=wh.leaky(0.03)))
    assert_same(many(nets, data, policy, record=True), 1, alone(nets, data, policy, 1))


@pytest.mark.parametrize(
    ("widths", "policy"),
    [
        pytest.param((2, 4, 3), wh.adaptive(0.2), id="other widths", marks=pytest.mark.slow),
        pytest.param(
            (3, 3),
            wh.adaptive(0.2, law=wh.rotational(base=wh.leaky(0.1), alpha=2.0)),
            id="another law",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_the_lanes_cannot_do_goes_through_the_layers(widths, policy):
    nets, data = pairs_of(2, widths)
    assert dispatch.lane_kind(nets, policy) is None
    result = many(nets, data, policy, record=True)
    assert_same(result, 1, alone(nets, data, policy, 1))
    assert result.closure.max() <= 1e-14


@pytest.mark.parametrize(
    ("policy", "net"),
    [
        (wh.adaptive(0.2, law=wh.rotational(alpha=2.0, base=wh.leaky(0.1))), {}),
        (wh.adaptive(0.2, law=wh.rotational(base=wh.repair())), {}),
        (wh.adaptive(0.2, law=wh.rotational(base=wh.leaky(0.1), skew=wh.quarter_turn(3))), {}),
        (wh.adaptive(1.5), {}),
        (wh.adaptive(0.2, gate=lambda view: view.number > 3), {}),
        (wh.adaptive(0.2), {"rates": 2.0}),
        (wh.adaptive(0.2), {"dtype": np.float32}),
        (
            wh.adaptive(0.2),
            {"support": [np.array([[True, True, True], [True, True, False], [True, True, True]])]},
        ),
    ],
)
def test_the_lanes_take_nothing_they_do_not_know(policy, net):
    assert dispatch.lane_kind(wh.stack([wh.Network.random((3, 3), seed=0, **net)]), policy) is None


@pytest.mark.slow
def test_pairs_with_two_outputs_train_and_do_not_turn():
    nets, data = pairs_of(2, widths=(3, 2), epochs=2)
    result = many(nets, data, wh.native(0.2), record=True)
    assert_same(result, 1, alone(nets, data, wh.native(0.2), 1))
    assert not np.any(result.ledger.sums.even)
    assert not np.any(result.ledger.sums.handedness)
    with pytest.raises(
        ValueError,
        match="a policy that turns must have at least 3 outputs to turn one sample, but there are 2",
    ):
        many(nets, data, wh.adaptive(0.2))


def test_the_number_of_workers_changes_no_bit():
    nets, data = pairs_of(300)
    one, two = (many(nets, data, wh.adaptive(0.2), workers=workers) for workers in (1, 2))
    for ours, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_every_piece_is_made_once_and_stands_where_it_belongs(workers):
    called, heard = [], []
    given = np.arange(1000.0)

    def doubled(piece):
        called.append(piece[0])
        return (2 * piece,)

    (found,) = programs.in_chunks(doubled, (given,), 64, workers, heard.append)
    np.testing.assert_array_equal(found, 2 * given)
    assert sorted(called) == list(given[::64])
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_after_an_error_what_nobody_has_begun_is_left_alone(workers, error):
    called = []

    def failing(piece):
        called.append(piece[0])
        if piece[0] == 0:
            raise error
        time.sleep(0.02)  # long enough for the other thread to give up
        return (piece,)

    with pytest.raises(error):
        programs.in_chunks(failing, (np.arange(1000.0),), 64, workers)
    assert len(called) < 8  # of 16


@pytest.mark.slow
def test_a_pair_does_not_change_when_others_join_it():
    nets, data = pairs_of(300)
    whole = many(nets, data, wh.adaptive(0.2))
    for some in (slice(0, 3), slice(297, 300)):
        part = many(
            jax.tree.map(lambda leaf, some=some: leaf[some], nets),
            {name: array[some] for name, array in data.items()},
            wh.adaptive(0.2),
        )
        np.testing.assert_array_equal(whole.gap[some], part.gap)


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_eight_thousand_pairs_reach_the_end_on_both_roads():
    nets, data = pairs_of(64, epochs=1)
    copies = jax.tree.map(lambda leaf: jnp.tile(leaf, (128, *[1] * (leaf.ndim - 1))), nets)
    batch = {name: np.tile(array, (128, *[1] * (array.ndim - 1))) for name, array in data.items()}
    by_lanes = many(copies, batch, wh.adaptive(0.2))
    by_loop = many(
        copies,
        batch,
        wh.adaptive(0.2, law=wh.rotational(base=wh.leaky(0.1), skew=wh.quarter_turn(3))),
    )
    assert by_lanes.completed.all()
    assert len(by_lanes.gap) == 8192
    np.testing.assert_allclose(by_lanes.gap, by_loop.gap, atol=1e-15)


@pytest.mark.slow
def test_a_pair_that_stops_does_not_disturb_the_others():
    nets, data = pairs_of(4)
    # Hardly more than the smallest number, in a column that must lose it.
    layers = np.array(nets.layers[0])
    layers[2] = [[2.3e-308, 0.3, 0.3], [2.3e-308, 0.3, 0.3], [1.0, 0.4, 0.4]]
    nets = nets.with_blocks([jnp.asarray(layers)])
    data["inputs"][2], data["targets"][2] = [0.6, 0.2, 0.2], [0.0, 0.0, 1.0]
    result = many(nets, data, wh.adaptive(1.0, gate="always"), record=True)
    pair = alone(nets, data, wh.adaptive(1.0, gate="always"), 2)
    assert result.completed.tolist() == [True, True, False, True]
    assert result.made[2] == pair.made < result.scheduled
    assert np.isfinite(np.asarray(result.final)).all()
    assert_same(result, 0, alone(nets, data, wh.adaptive(1.0, gate="always"), 0))
    assert "3 of 4 runs completed" in str(result)


def test_the_short_exponential_is_good_to_round_off():
    for reach, allowed in ((0.2, 2), (1.0, 6)):
        argument = np.linspace(-reach, reach, 20001)
        even, odd = exponential.parts(jnp.asarray(argument))
        exact = np.exp(argument.astype(np.longdouble))
        error = np.abs(np.asarray(even + odd).astype(np.longdouble) / exact - 1)
        assert float(error.max()) < allowed * np.finfo(float).eps


@pytest.mark.parametrize("reach", [0.2, 1.0])
def test_the_polynomial_behind_it_is_better_than_that_in_exact_arithmetic(reach):
    even, odd = exponential._coefficients(reach)
    for at in range(-50, 51):
        x = Fraction(reach) * Fraction(at, 50)
        found = sum(Fraction(c) * x ** (2 * k) for k, c in enumerate(even)) + sum(
            Fraction(c) * x ** (2 * k + 1) for k, c in enumerate(odd)
        )
        assert (
            abs(found / sum(x**k / math.factorial(k) for k in range(40)) - 1) < Fraction(2) ** -53
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 9])
def test_small_inverses_are_those_of_lapack(size):
    root = np.random.default_rng(size).standard_normal((size, size))
    matrix = root @ root.T + 0.1 * np.eye(size)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(
        small.inverse(jnp.asarray(matrix)), inverse, atol=1e-13 * np.abs(inverse).max()
    )


def test_the_marks_on_a_program_change_no_value():
    value = jnp.arange(5.0)
    np.testing.assert_array_equal(jax.jit(lambda x: fused.keep(x * 2))(value), 2 * value)
    np.testing.assert_array_equal(jax.jit(fused.whole(lambda x: x * 2))(value), 2 * value)


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "workers must be a whole number of at least 1, but it is 0"),
        ({"policy": None}, r"policy must be native\(...\)"),
        (
            {"schedule": np.zeros(30, dtype=int)},
            r"schedule must have shape \(2, updates\), but its shape is \(30,\)",
        ),
        (
            {"schedule": np.full((2, 30), 6)},
            "schedule must name samples from 0 to 5, but entry 0 is 6",
        ),
        ({"turns": np.zeros((2, 30), dtype=int)}, r"turns must be \+1 or -1, but entry 0 is 0"),
        (
            {"inputs": np.full((2, 6, 3), 0.5)},
            r"inputs must have rows of unit mass, but row \(0, 0\) sums to 1.5",
        ),
        (
            {"inputs": np.full((3, 6, 3), 1 / 3)},
            (
                r"inputs must have shape \(2, samples, 3\) with at least one sample, but its shape is "
                r"\(3, 6, 3\)"
            ),
        ),
        (
            {"targets": np.full((2, 5, 3), 1 / 3)},
            "targets must have one row per input, but there are 5 targets and 6 inputs",
        ),
        (
            {"nets": wh.Network.random((3, 3), seed=0)},
            r"systems must be a stack, made by stack\(\[...\]\), but the blocks have the shapes",
        ),
    ],
)
def test_a_bad_ensemble_is_refused_in_one_sentence(change, message):
    nets, data = pairs_of(2)
    given = {"nets": nets, "policy": wh.adaptive(0.1)} | data | change
    with pytest.raises(ValueError, match=message):
        wh.train_many(**given)


@pytest.mark.parametrize(
    ("nets", "message"),
    [
        ([], "systems must hold at least one system, but it is empty"),
        (
            [wh.Network.random((3, 3), seed=0), wh.Network.random((3, 4), seed=0)],
            r"systems must share one structure, but system 1 has a block of shape \(4, 3\)",
        ),
    ],
)
def test_networks_that_do_not_stack_are_refused(nets, message):
    with pytest.raises(ValueError, match=message):
        wh.stack(nets)
