"""A policy sees scores and answers with a step and an amount."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import whorl as wh
from whorl.learning.policy import View, envelope, look


@pytest.fixture(scope="module")
def problem():
    net = wh.Network.random((3, 3, 3), imbalance=4.0, floor=0.1, seed=5)
    task = wh.Task.random(3, 3, seed=6)
    return net, task


@pytest.fixture(scope="module")
def views(problem):
    net, task = problem
    law = wh.adaptive(0.1).law
    return [look(law, net, task.inputs, task.targets, sample, 1, 0) for sample in range(6)]


def test_a_view_holds_the_scores_of_the_leaky_controller(problem, views):
    net, task = problem
    layers, rates = [np.asarray(p) for p in net.layers], [np.asarray(r) for r in net.rates]
    inputs, targets = np.asarray(task.inputs), np.asarray(task.targets)
    for sample, view in enumerate(views):
        b, r = oracle.turn_scores(
            layers, rates, inputs, targets, sample, lambda k: np.linalg.inv(k + 0.1 * np.eye(3))
        )
        for ours, theirs in zip((*view.straight, *view.turning), (*b, *r), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-14)


def test_the_ratio_of_a_view_is_that_of_the_curvature(problem, views):
    net, task = problem
    for sample, view in enumerate(views):
        there = wh.curvature(
            net, task.inputs, task.targets, selected=sample, law=wh.rotational(base=wh.leaky(0.1))
        )
        np.testing.assert_allclose(view.ratio, there.ratio, rtol=1e-12)


def test_the_envelope_bounds_the_range_of_an_applied_score(problem, views):
    net, _ = problem
    for view in views:
        layers, scores = [np.asarray(p) for p in net.layers], [np.asarray(s) for s in view.straight]
        assert float(net.spread(view.straight)) == pytest.approx(
            oracle.score_range(layers, scores), rel=1e-15
        )
        size = envelope(jnp.asarray(0.2), net, [100.0 * s for s in view.straight])
        assert float(size) == pytest.approx(
            0.2 / (100.0 * oracle.score_range(layers, scores)), rel=1e-14
        )


def test_a_small_score_takes_the_whole_scale(problem, views):
    net, _ = problem
    assert float(envelope(jnp.asarray(0.2), net, [1e-3 * s for s in views[0].straight])) == 0.2


def test_scores_off_the_support_do_not_widen_the_range():
    layer = np.array([[0.5, 0.0], [0.5, 1.0], [0.0, 0.0]])
    net = wh.Network([layer], support=[layer > 0])
    scores = [jnp.array([[1.0, 500.0], [3.0, 7.0], [-900.0, 8.0]])]
    assert float(net.spread(scores)) == 2.0


def test_native_takes_the_full_step_and_never_turns(views):
    for view in views:
        choice = wh.native(0.2).decide(view)
        assert float(choice.amount) == 0.0
        assert float(choice.step) == float(envelope(jnp.asarray(0.2), view.system, view.straight))


def test_step_matched_keeps_room_for_both_senses_even_when_the_gate_is_shut(views):
    for view in views:
        shut, wide = (
            wh.step_matched(0.2, gate="never").decide(view),
            wh.step_matched(0.2, gate="always").decide(view),
        )
        widest = max(float(view.system.spread(view.combined(sign))) for sign in (1.0, -1.0))
        assert (
            float(shut.step) == float(wide.step) == pytest.approx(0.2 / max(1.0, widest), rel=1e-15)
        )
        assert (float(shut.amount), float(wide.amount)) == (0.0, 1.0)


def test_adaptive_takes_the_native_step_where_the_gate_is_shut(views):
    for view in views:
        full, kept = wh.native(0.2).decide(view), wh.step_matched(0.2).decide(view)
        assert float(wh.adaptive(0.2, gate="never").decide(view).step) == float(full.step)
        assert float(wh.adaptive(0.2, gate="always").decide(view).step) == float(kept.step)


def test_the_curvature_gate_opens_above_a_ratio_of_one(views):
    opened = [float(wh.adaptive(0.1).decide(view).amount) > 0 for view in views]
    assert opened == [float(view.ratio) > 1 for view in views]


def test_omega_is_the_amount_of_a_turn(views):
    assert float(wh.adaptive(0.1, omega=0.25, gate="always").decide(views[0]).amount) == 0.25


def test_a_gate_may_be_any_function_of_the_view(views):
    def late(view: View):
        return view.number >= 10

    assert float(wh.adaptive(0.1, gate=late).decide(views[0]).amount) == 0.0


def test_a_policy_of_ones_own_is_a_few_lines(problem):
    class Half(wh.Policy):
        """Take half the native step, never turn."""

        def decide(self, view: View) -> wh.Decision:
            step = envelope(self.scale, view.system, view.straight) / 2
            return wh.Decision(step, jnp.zeros_like(step))

    net, task = problem
    base = wh.native(0.2)
    pair = wh.train(
        net,
        task.inputs,
        task.targets,
        policy=Half(base.scale, base.omega, base.gate, base.law),
        epochs=2,
        seed=0,
    )
    assert pair.ledger.closed
    assert float(jnp.abs(pair.ledger.sums.step)) > 0


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wh.native(0.0), r"scale must be greater than 0, but it is 0"),
        (lambda: wh.adaptive(float("nan")), r"scale must be finite, but its value is nan"),
        (lambda: wh.adaptive(0.1, omega=-1.0), r"omega must be at least 0, but it is -1"),
        (
            lambda: wh.step_matched(0.1, gate="sometimes"),
            r"gate must be one of curvature, always, never or a function, but it is 'sometimes'",
        ),
        (lambda: wh.step_matched(0.1, gate=3), r"gate must be one of .* but it is 3"),
        (lambda: wh.adaptive(0.1, law=wh.leaky(0.1)), r"law must be rotational\(...\)"),
    ],
)
def test_a_bad_policy_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_whether_a_policy_turns_is_known_under_jit():
    policies = wh.adaptive(0.2), wh.adaptive(0.2, omega=0.0), wh.native(0.2)
    seen = []
    jax.jit(lambda x: seen.extend(policy.turns for policy in policies) or x)(1.0)
    assert seen == [True, False, False]


def test_a_law_may_hold_a_function_beside_its_numbers():
    law = wh.rotational(base=wh.spectral(lambda values: 1 / (0.1 + values)))
    wh.adaptive(0.2, law=law).check(samples=6, updates=2, pairs=3)
    rows = wh.adaptive([0.1, 0.2], law=law)
    with pytest.raises(ValueError, match=r"scale must be one number, or one for each of 3 pairs"):
        rows.check(samples=6, updates=2, pairs=3)


@pytest.mark.slow
def test_a_policys_own_number_may_differ_from_pair_to_pair(problem):
    class Slow(wh.Policy):
        """Take a share of the native step, never turn."""

        share: jax.Array
        numbers = (*wh.Policy.numbers, "share")

        def decide(self, view: View) -> wh.Decision:
            step = self.share * envelope(self.scale, view.system, view.straight)
            return wh.Decision(step, jnp.zeros_like(step))

    net, task = problem
    base = wh.native(0.2)
    fields = (base.scale, base.omega, base.gate, base.law)
    data = {"inputs": task.inputs, "targets": task.targets}
    plan = {"schedule": np.array([[0, 1], [0, 1]]), "turns": np.ones((2, 2), dtype=int)}
    many = wh.train_many(
        wh.stack([net, net]),
        *(np.stack([rows, rows]) for rows in data.values()),
        policy=Slow(*fields, jnp.array([0.25, 1.0])),
        **plan,
    )
    gaps = [
        wh.train(
            net,
            **data,
            policy=Slow(*fields, jnp.array(share)),
            schedule=plan["schedule"][0],
            turns=plan["turns"][0],
        ).gap
        for share in (0.25, 1.0)
    ]
    np.testing.assert_allclose(many.gap, gaps, rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match=r"share must be one number, or one for each of 2 pairs"):
        Slow(*fields, jnp.ones(3)).check(6, 2, 2)
