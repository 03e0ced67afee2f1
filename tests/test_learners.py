"""Stacks of any system: the same bits as one learner alone, and every way to get one wrong."""

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
