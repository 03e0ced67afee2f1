"""Stacks of any system: the same bits as one learner alone, and every way to get one wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh

CIRCUITS = [
    wh.Circuit(
        [[0, 1], [1, 2], [2, 3], [0, 2], [1, 3]],
        np.random.default_rng(seed).uniform(0.5, 2.0, 5),
        sources=[0],
        outputs=[1, 2],
        ground=[3],
    )
    for seed in range(5)
]
EDGES = [("a", "b"), ("b", "c"), ("c", "b"), ("a", "c"), ("b", "s"), ("c", "t"), ("c", "u")]
GRAPHS = [
    wh.Graph(EDGES, shares, sources=["a"], sinks=["s", "t", "u"])
    for shares in ([0.5, 0.4, 0.3, 0.5, 0.6, 0.5, 0.2], [0.7, 0.9, 0.1, 0.3, 0.1, 0.6, 0.3])
]
ORDER = np.random.default_rng(9).integers(2, size=(5, 12))


def data(system, count, seed=0):
    draws = np.random.default_rng(seed)
    ins, outs = system.sizes
    if isinstance(system, wh.Circuit):
        return draws.uniform(0, 1, (count, 2, ins)), draws.uniform(0, 0.5, (count, 2, outs))
    return draws.dirichlet(np.ones(ins), (count, 2)), draws.dirichlet(np.ones(outs), (count, 2))


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("rule", [wh.coupled_learning(0.1), wh.natural_gradient()])
def test_each_of_many_circuits_learns_as_it_does_alone(rule, record):
    x, y = data(CIRCUITS[0], 5)
    given = {"rule": rule, "scale": 0.1, "record": record}
    many = wh.learn_many(wh.stack(CIRCUITS), x, y, schedule=ORDER, chunk=2, **given)
    assert many.completed.all()
    assert "5 of 5 runs completed 12 updates" in str(many)
    for k, circuit in enumerate(CIRCUITS):
        alone = wh.learn(circuit, x[k], y[k], schedule=ORDER[k], **given)
        assert np.array_equal(many.system.conductances[k], alone.system.conductances)
        np.testing.assert_allclose(many.final[k], alone.final, rtol=1e-14)
        if record:
            assert many.losses is not None
            assert alone.losses is not None
            np.testing.assert_allclose(many.losses[k], alone.losses, rtol=1e-14)


def test_neither_threads_nor_chunks_change_a_bit():
    x, y = data(CIRCUITS[0], 5)
    ends = [
        wh.learn_many(
            wh.stack(CIRCUITS), x, y, rule=wh.coupled_learning(), scale=0.1, schedule=ORDER, **cut
        ).system.conductances
        for cut in ({"workers": 1}, {"workers": 3, "chunk": 1}, {"chunk": 4})
    ]
    assert all(np.array_equal(ends[0], other) for other in ends[1:])


def test_pairs_of_circuits_and_graphs_train_in_stacks():
    for systems in (CIRCUITS, GRAPHS):
        count = len(systems)
        x, y = data(systems[0], count)
        turns = np.ones((count, 12), dtype=int)
        given = {"schedule": ORDER[:count], "turns": turns, "policy": wh.adaptive(0.1)}
        many = wh.train_many(wh.stack(systems), x, y, **given)
        for k, system in enumerate(systems):
            alone = wh.train(
                system, x[k], y[k], policy=given["policy"], schedule=ORDER[k], turns=turns[k]
            )
            np.testing.assert_allclose(many.gap[k], alone.gap, rtol=0, atol=1e-15)
            assert many.made[k] == alone.made


def test_networks_learn_in_stacks_too():
    nets = [wh.Network.random((3, 3, 3), seed=seed) for seed in range(3)]
    x, y = data(nets[0], 3)
    many = wh.learn_many(
        wh.stack(nets), x, y, rule=wh.natural_gradient(), scale=[0.1, 0.2, 0.3], schedule=ORDER[:3]
    )
    for k, net in enumerate(nets):
        alone = wh.learn(
            net, x[k], y[k], rule=wh.natural_gradient(), scale=0.1 * (k + 1), schedule=ORDER[k]
        )
        np.testing.assert_allclose(many.final[k], alone.final, rtol=1e-12)


@pytest.mark.parametrize(
    ("systems", "words"),
    [
        ([], "systems must hold at least one system, but it is empty"),
        ([CIRCUITS[0], GRAPHS[0]], "system 1 is a Graph, and system 0 a Circuit"),
        (
            [
                CIRCUITS[0],
                wh.Circuit([[0, 1], [1, 2]], [1.0, 1.0], sources=[0], outputs=[1], ground=[2]),
            ],
            r"system 1 has a block of shape \(2,\)",
        ),
        (
            [
                CIRCUITS[0],
                wh.Circuit(
                    [[0, 1], [1, 2], [2, 3], [0, 2], [1, 3]],
                    np.ones(5),
                    sources=[0],
                    outputs=[2, 1],
                    ground=[3],
                ),
            ],
            "system 1 has other nodes, roles or settings than system 0",
        ),
    ],
)
def test_systems_of_different_structure_are_refused_by_number(systems, words):
    with pytest.raises(ValueError, match=words):
        wh.stack(systems)


def test_what_is_no_stack_and_data_that_do_not_fit_are_refused():
    x, y = data(CIRCUITS[0], 5)
    given = {"rule": wh.coupled_learning(), "scale": 0.1, "schedule": ORDER}
    with pytest.raises(ValueError, match=r"inputs must have shape \(5, samples, 1\)"):
        wh.learn_many(wh.stack(CIRCUITS), x[:3], y, **given)
    with pytest.raises(ValueError, match=r"schedule must have shape \(5, updates\)"):
        wh.learn_many(wh.stack(CIRCUITS), x, y, **given | {"schedule": ORDER[:2]})
    with pytest.raises(ValueError, match="scale must be one number or one per learner, 5"):
        wh.learn_many(wh.stack(CIRCUITS), x, y, **given | {"scale": jnp.ones(3)})
    with pytest.raises(ValueError, match="systems must be a stack, made by stack"):
        wh.learn_many(CIRCUITS[0], x, y, **given)


class Noisy(wh.Rule):
    """The gradient with noise of its own at every update, weaker with time."""

    number: jax.Array | None = None
    key: jax.Array | None = None
    draws = True

    def during(self, number, key):
        return Noisy(number, key)

    def scores(self, system, inputs, residual):
        weaker = 1 + self.number.astype(residual.dtype)
        noise = jax.random.normal(self.key, residual.shape) / weaker
        return wh.response(system, inputs).scores(residual + noise)


def test_a_rule_receives_the_number_of_the_update_and_a_key_of_its_own():
    system, order = CIRCUITS[0], ORDER[0]
    (x,), (y,) = data(system, 1)
    given = {"rule": Noisy(), "scale": 0.1, "schedule": order}
    run = wh.learn(system, x, y, key=3, **given)
    seen = []
    state = system
    for number, sample in enumerate(order):
        key = jax.random.fold_in(jax.random.PRNGKey(3), number)
        error = y[sample][None] - wh.predict(state, x[sample][None])
        seen.append(Noisy(jnp.asarray(number), key).scores(state, x[sample][None], error))
        state = wh.learn(system, x, y, key=3, **given | {"schedule": order[: number + 1]}).system
    assert np.array_equal(state.conductances, run.system.conductances)
    # The first update moves along the score of the first key: logarithms change in its proportion.
    first = wh.learn(system, x, y, key=3, **given | {"schedule": order[:1]}).system
    moved = jnp.log(first.conductances / system.conductances)
    np.testing.assert_allclose(
        moved / jnp.abs(moved).max(), seen[0][0] / jnp.abs(seen[0][0]).max(), atol=1e-9
    )
    again = wh.learn(system, x, y, key=jax.random.key(3), **given)
    assert np.array_equal(again.system.conductances, run.system.conductances)
    other = wh.learn(system, x, y, key=4, **given)
    assert not np.array_equal(other.system.conductances, run.system.conductances)


def test_each_of_many_learners_draws_by_its_own_key():
    x, y = data(CIRCUITS[0], 5)
    given = {"rule": Noisy(), "scale": 0.1}
    many = wh.learn_many(wh.stack(CIRCUITS), x, y, schedule=ORDER, key=3, chunk=2, **given)
    for k, circuit in enumerate(CIRCUITS):
        key = jax.random.fold_in(jax.random.key(3), k)
        alone = wh.learn(circuit, x[k], y[k], schedule=ORDER[k], key=key, **given)
        assert np.array_equal(many.system.conductances[k], alone.system.conductances)


def test_a_rule_that_draws_is_probed_at_one_update():
    system, (x, *_) = CIRCUITS[0], data(CIRCUITS[0], 1)[0]
    loop = wh.closed_loop(system, x[:1], Noisy(), number=2, key=3)
    plain = wh.closed_loop(wh.response(system, x[:1]), wh.direct())
    np.testing.assert_allclose(loop.reduced, plain.reduced, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: wh.learn(CIRCUITS[0], x[0], y[0], rule=Noisy(), scale=0.1, schedule=[0]),
        lambda x, y: wh.learn_many(
            wh.stack(CIRCUITS), x, y, rule=Noisy(), scale=0.1, schedule=ORDER
        ),
        lambda x, y: wh.closed_loop(CIRCUITS[0], x[0][:1], Noisy()),
    ],
)
def test_a_rule_that_draws_asks_for_a_key(call):
    sentence = "^key must be given where the rule Noisy draws, as a whole number or a key of jax"
    with pytest.raises(ValueError, match=sentence):
        call(*data(CIRCUITS[0], 5))
