"""Graphs with loops: what they absorb, what they conserve, and what they refuse."""

import pickle
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whorl as wh
from whorl.systems._nodal import triangles

EPS = np.finfo(float).eps


def ruin(length, up):
    """The gambler's chain: from every inner state up with one share and down with the rest."""
    edges, shares = [], []
    for at in range(1, length):
        edges += [(at, at + 1), (at, at - 1)]
        shares += [up, 1 - up]
    return edges, shares


@pytest.mark.sampled(1)
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("up", "solver"), [(0.5, "dense"), (0.3, "dense"), (0.3, "direct"), (0.8, "krylov")]
)
def test_a_gambler_is_ruined_as_the_textbook_says(up, solver):
    edges, shares = ruin(7, up)
    walk = wh.Graph(edges, shares, sources=range(1, 7), sinks=[0, 7], solver=solver)
    odds = (1 - up) / up
    start = np.arange(1, 7)
    won = start / 7 if up == 0.5 else (1 - odds**start) / (1 - odds**7)
    found = wh.predict(walk, np.eye(6))
    np.testing.assert_allclose(found[:, 1], won, rtol=1e-13)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-13)


def test_absorption_in_a_chain_with_self_loops_is_that_of_the_fundamental_matrix():
    # Canonical form: Q among transient states, R into absorbing ones, B = R (I - Q)^-1.
    rng = np.random.default_rng(0)
    whole = rng.dirichlet(np.ones(8), 5).T  # every state leads everywhere, itself included
    edges = [(tail, head) for tail in range(5) for head in range(8)]
    chain = wh.Graph(edges, whole.T.ravel(), sources=range(5), sinks=range(5, 8))
    expected = whole[5:] @ np.linalg.inv(np.eye(5) - whole[:5])
    np.testing.assert_allclose(wh.predict(chain, np.eye(5)), expected.T, rtol=1e-13)


@pytest.mark.slow
def test_shares_of_an_undirected_graph_are_voltages_of_networkx():
    # A walk that steps in proportion to conductances ends at the upper terminal with the
    # probability that is its voltage, and so the current between terminals is 1 / resistance.
    graph = nx.gnm_random_graph(12, 24, seed=3)
    rng = np.random.default_rng(1)
    for *_, data in graph.edges(data=True):
        data["share"] = float(rng.uniform(0.5, 2.0))
    inner = [node for node in graph if node not in (0, 11)]
    walk = wh.Graph.from_networkx(graph, sources=inner, sinks=[0, 11])
    voltage = np.asarray(wh.predict(walk, np.eye(10)))[:, 1]
    at = dict(zip(inner, voltage, strict=True)) | {0: 0.0, 11: 1.0}
    current = sum(data["share"] * at[other] for _, other, data in graph.edges(0, data=True))
    distance: Any = nx.resistance_distance(graph, 0, 11, weight="share", invert_weight=False)
    assert current == pytest.approx(1 / distance, rel=1e-12)


@pytest.mark.slow
def test_absorption_is_where_a_walk_of_networkx_ends():
    graph = wh.Graph.random(12, 30, inputs=2, outputs=3, seed=2)
    drawn = graph.to_networkx()
    for sink in graph.nodes[-3:]:
        drawn.add_edge(sink, sink, share=1.0)
    matrix = nx.to_numpy_array(drawn, nodelist=graph.nodes, weight="share")
    ends = np.linalg.matrix_power(matrix, 2**14)
    rows = [graph.nodes.index(node) for node in (0, 1)]
    np.testing.assert_allclose(wh.predict(graph, np.eye(2)), ends[rows, -3:], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "widths",
    [(3, 4, 3), *(pytest.param(one, marks=pytest.mark.slow) for one in ((3, 3), (2, 5, 3)))],
)
def test_a_layered_graph_is_its_network(widths):
    net = wh.Network.random(widths, seed=1, floor=0.05, rates=list(np.arange(1.0, len(widths))))
    graph = wh.Graph.from_network(net)
    x = np.random.default_rng(0).dirichlet(np.ones(widths[0]), 4)
    y = np.random.default_rng(1).dirichlet(np.ones(3), 4)
    v = np.random.default_rng(2).standard_normal((4, 3))
    np.testing.assert_allclose(wh.predict(graph, x), wh.predict(net, x), rtol=0, atol=1e-14)
    one, other = wh.response(graph, x), wh.response(net, x)
    np.testing.assert_allclose(one @ v, other @ v, rtol=0, atol=1e-14)
    np.testing.assert_allclose(one.dense(), other.dense(), rtol=0, atol=1e-14)
    law = wh.rotational(base=wh.leaky(0.1))
    curved = [wh.curvature(system, x, y, selected=0, law=law) for system in (graph, net)]
    assert float(curved[0].coefficient) == pytest.approx(float(curved[1].coefficient), rel=1e-12)


@pytest.mark.slow
def test_a_layered_graph_learns_as_its_network_does():
    net = wh.Network.random((3, 3, 3), seed=1, floor=0.1)
    task = wh.Task.random(3, 3, seed=0)
    given = {"policy": wh.adaptive(0.2, gate="always"), "epochs": 3, "seed": 1}
    pairs = [
        wh.train(system, task.inputs, task.targets, **given)
        for system in (wh.Graph.from_network(net), net)
    ]
    assert pairs[0].ledger.closed
    for one, other in zip(pairs[0].final, pairs[1].final, strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-11)


@pytest.mark.slow  # every example compiles anew
@given(
    st.integers(2, 14),
    st.integers(0, 30),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2**32),
    st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=25, deadline=None)
def test_mass_is_conserved_to_round_off(inner, more, inputs, outputs, seed, dtype):
    nodes = max(inner, inputs) + outputs
    graph = wh.Graph.random(
        nodes, 2 * nodes + more, inputs=inputs, outputs=outputs, seed=seed, dtype=dtype
    )
    x = np.random.default_rng(seed).dirichlet(np.ones(inputs), 2).astype(dtype)
    x = x / x.sum(axis=1, keepdims=True)
    found = np.asarray(wh.predict(graph, x))
    assert found.dtype == dtype
    assert (found >= 0).all()
    slack = 8 * nodes * np.finfo(dtype).eps
    np.testing.assert_allclose(found.sum(axis=1), x.sum(axis=1), rtol=0, atol=slack)


@pytest.mark.parametrize("exit_share", [1e-3, 1e-9, 1e-15])
def test_a_loop_that_is_rarely_left_keeps_its_digits(exit_share):
    # Two nodes that hand everything to each other but for tiny shares: what is absorbed where is
    # decided by their ratio alone, and by whoever has the flow first.
    edges = [("a", "b"), ("b", "a"), ("a", "left"), ("b", "right")]
    shares = [1 - exit_share, 1 - 3 * exit_share, exit_share, 3 * exit_share]
    graph = wh.Graph(edges, shares, sources=["a"], sinks=["left", "right"])
    out = exit_share, 3 * exit_share
    left = out[0] / (out[0] + (1 - out[0]) * out[1])
    found = np.asarray(wh.predict(graph, [[1.0]]))[0]
    np.testing.assert_allclose(found, [left, 1 - left], rtol=1e-14)


@pytest.mark.parametrize("leak", [1.0, 1e-12])
def test_triangles_solve_the_equations_of_numpy_and_the_transposed_ones(leak):
    rng = np.random.default_rng(0)
    columns = rng.dirichlet(np.ones(6), 5).T
    among, leaving = columns[:5], leak * columns[5]
    np.fill_diagonal(among, 0)
    matrix = np.diag(among.sum(axis=0) + leaving) - among
    found = triangles(jnp.asarray(among), jnp.asarray(leaving))
    side = rng.standard_normal((5, 2))
    for back, whole in ((False, matrix), (True, matrix.T)):
        seen = found.solved(jnp.asarray(side), back)
        np.testing.assert_allclose(whole @ seen, side, atol=1e-15 * float(jnp.abs(seen).max()))
    assert (np.asarray(found.order) == np.arange(5)).all()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["direct", "dense", "krylov"])
def test_a_graph_goes_through_jit_vmap_and_gradients(solver):
    graph = wh.Graph.random(10, 24, inputs=2, outputs=3, seed=4, solver=solver)
    x, y = jnp.eye(2), jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(3), 2))

    def loss(split, graph=graph):
        return wh.loss(eqx.tree_at(lambda one: one.splits[0], graph, split), x, y)

    split = graph.splits[0]
    slope = jax.jit(jax.grad(loss))(split)
    drawn = jnp.asarray(np.random.default_rng(1).standard_normal(split.shape))
    step = jnp.where(split > 0, 1e-6 * drawn, 0.0)
    seen = (loss(split + step) - loss(split - step)) / 2
    assert float(jnp.sum(slope * step)) == pytest.approx(float(seen), rel=1e-7)
    many = jax.vmap(loss)(jnp.stack([split, split + step]))
    np.testing.assert_allclose(many, [loss(split), loss(split + step)], rtol=1e-13)


def motions(graph, x, v, way):
    """What K does to a field, as it is called and compiled, and its slope in both modes."""

    def answered(split, potential):
        moved = eqx.tree_at(lambda one: one.splits[0], graph, split)
        return moved.answer(moved.trace(x), potential)

    @jax.jit
    def slopes(split):
        ahead = jax.jvp(lambda at: answered(at, v), (split,), (way,))[1]
        return ahead, jax.grad(lambda at: jnp.sum(answered(at, v) ** 2))(split)

    split = graph.splits[0]
    return wh.response(graph, x) @ v, jax.jit(answered)(split, v), *slopes(split)


@pytest.mark.slow
def test_the_host_answers_as_the_device_does_and_so_do_its_derivatives():
    rng = np.random.default_rng(0)
    made = {
        solver: wh.Graph.random(40, 120, inputs=4, outputs=5, seed=1, solver=solver)
        for solver in ("dense", "direct", "krylov")
    }
    x, v = jnp.asarray(rng.dirichlet(np.ones(4), 3)), jnp.asarray(rng.standard_normal((3, 5)))
    way = jnp.asarray(rng.standard_normal(made["dense"].splits[0].shape))
    device, *hosts = (motions(graph, x, v, way) for graph in made.values())
    for host in hosts:
        for one, other in zip(host, device, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * float(jnp.abs(other).max()))


@pytest.mark.slow
def test_one_state_is_factorised_once_and_another_anew():
    graph = wh.Graph.random(20, 60, inputs=2, outputs=3, seed=0, solver="direct")
    pattern = graph.wiring.pattern
    K = wh.response(graph, [[0.5, 0.5]])
    numbers, _, ready = pattern._recent[0]
    for _ in range(3):
        _ = K @ np.ones((1, 3))
    assert pattern._recent[0][2] is ready
    score = [jnp.ones_like(split).at[0].set(2.0) for split in graph.splits]
    wh.predict(graph.stepped(score, 0.1), [[0.5, 0.5]])
    assert pattern._recent[0][2] is not ready
    assert not np.array_equal(pattern._recent[0][0], numbers)


def test_a_solver_is_chosen_by_size_and_by_how_well_it_mixes():
    assert wh.Graph.random(50, 200, inputs=2, outputs=3, seed=0).solver == "dense"
    assert wh.Graph.random(2000, 12000, inputs=2, outputs=20, seed=0).solver == "krylov"
    edges, shares = ruin(400, 0.5)
    assert wh.Graph(edges, shares, sources=[200], sinks=[0, 400]).solver == "direct"


def test_a_graph_survives_being_pickled_and_compared():
    graph = wh.Graph.random(10, 24, inputs=2, outputs=3, seed=4)
    again = pickle.loads(pickle.dumps(graph))
    assert again.wiring == graph.wiring
    assert hash(again.wiring) == hash(graph.wiring)
    np.testing.assert_array_equal(again.shares, graph.shares)
    assert graph.wiring != wh.Graph.random(10, 24, inputs=2, outputs=3, seed=5).wiring


def test_shares_and_flows_stand_in_the_order_of_the_edges():
    edges = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "a"), ("a", "a"), ("a", "y")]
    shares = [0.1, 0.6, 0.2, 0.4, 0.3, 0.4]
    graph = wh.Graph(edges, shares, sources=["b"], sinks=["y", "x"])
    assert graph.edges == edges
    np.testing.assert_array_equal(graph.shares, shares)
    # Of what b hands to a, a keeps 0.3 to itself, and passes on the rest after 1 / 0.7 visits.
    visits = 0.4 / 0.7
    np.testing.assert_allclose(
        graph.flows([[1.0]])[0],
        [0.1 * visits, 0.6, 0.2 * visits, 0.4, 0.3 * visits, 0.4 * visits],
        rtol=1e-14,
    )


@pytest.mark.slow
def test_a_graph_is_trained_certified_flowed_and_accounted_for():
    graph = wh.Graph.random(8, 20, inputs=2, outputs=3, seed=3)
    x, y = np.eye(2), np.asarray(wh.Task.of(graph, seed=1, mixtures=0).targets)
    assert wh.certify(wh.closed_loop(wh.response(graph, x), wh.leaky(0.1))).reciprocal
    one = wh.response(graph, x, selected=0)
    turning = wh.certify(wh.closed_loop(one, wh.rotational(1.0, 2.0, base=wh.leaky(0.1))))
    assert turning.verdict == "turns"
    pair = wh.train(graph, x, y, policy=wh.adaptive(0.3, gate="always"), epochs=20, seed=0)
    assert pair.completed
    assert pair.ledger.closed
    assert float(pair.final[0]) < float(pair.start)
    path = wh.flow(graph, x, y, wh.leaky(0.1), [0.0, 1.0])
    assert float(path.total_loss[1]) < float(path.total_loss[0])
    run = wh.learn(graph, x, y, rule=wh.gauss_newton(0.1), scale=0.3, epochs=5, seed=0)
    assert float(run.final) < float(run.start)


@pytest.mark.slow
def test_the_coefficient_of_a_graph_is_the_limit_of_finite_steps():
    graph = wh.Graph.random(8, 20, inputs=2, outputs=3, seed=3)
    x, y = np.eye(2), np.asarray(wh.Task.of(graph, seed=1, mixtures=0).targets)
    law = wh.rotational(base=wh.leaky(0.1))
    found = wh.curvature(graph, x, y, selected=0, law=law)
    seen = [
        float(wh.even_difference(graph, x, y, selected=0, step=size, law=law)) / size**2
        for size in (1e-2, 5e-3)
    ]
    assert 2 * seen[1] - seen[0] == pytest.approx(float(found.coefficient), rel=2e-2)


OPEN = [("a", "b"), ("b", "c"), ("b", "d")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wh.Graph(OPEN, sources=["a"], sinks=["c"]),
            r"node 'd' must have an outgoing edge or be a sink, but it is neither",
        ),
        (
            lambda: wh.Graph([*OPEN, ("e", "f")], sources=["a"], sinks=["c", "d", "f"]),
            r"sink 'f' must be reachable from a source, but no path leads there",
        ),
        (
            lambda: wh.Graph(
                [*OPEN, ("b", "p"), ("p", "q"), ("q", "p")], sources=["a"], sinks=["c", "d"]
            ),
            r"node 'p' must lead to a sink, but every way from it ends in a closed loop without",
        ),
        (
            lambda: wh.Graph([*OPEN, ("c", "a")], sources=["a"], sinks=["c", "d"]),
            r"sink 'c' must have no outgoing edge, but it has one",
        ),
        (
            lambda: wh.Graph(OPEN, sources=["a", "c"], sinks=["c", "d"]),
            r"source 'c' must not be a sink, but it is one",
        ),
        (
            lambda: wh.Graph(OPEN, sources=["z"], sinks=["c", "d"]),
            r"sources must be nodes of the graph, but 'z' is on no edge",
        ),
        (
            lambda: wh.Graph(OPEN, sources=["a", "a"], sinks=["c", "d"]),
            r"sources must name each node once, but 'a' comes twice",
        ),
        (
            lambda: wh.Graph(OPEN, sources=[], sinks=["c", "d"]),
            r"sources must name at least one node, but it is empty",
        ),
        (lambda: wh.Graph([], sources=["a"], sinks=["c"]), r"edges must hold at least one edge"),
        (
            lambda: wh.Graph([("a", "b", 0.5)], sources=["a"], sinks=["b"]),
            r"edge 0 must be a pair of nodes, from and to, but it is",
        ),
        (
            lambda: wh.Graph([(["a"], "b")], sources=["a"], sinks=["b"]),
            r"edge 0 must join nodes that can be hashed and compared, but one is",
        ),
        (
            lambda: wh.Graph(OPEN, [1.0, 0.5, 0.4], sources=["a"], sinks=["c", "d"]),
            r"shares must sum to 1 at every node, but those of 'b' sum to 0.9",
        ),
        (
            lambda: wh.Graph(OPEN, [1.0, 1.5, -0.5], sources=["a"], sinks=["c", "d"]),
            r"shares must be positive, but that from 'b' to 'd' is -0.5",
        ),
        (
            lambda: wh.Graph(OPEN, [1.0, 1.0], sources=["a"], sinks=["c", "d"]),
            r"shares must hold one number per edge, 3, but it holds 2",
        ),
        (
            lambda: wh.Graph(OPEN, sources=["a"], sinks=["c", "d"], solver="magic"),
            r"solver must be one of dense, direct, krylov, but it is 'magic'",
        ),
        (
            lambda: wh.Graph(OPEN, sources=["a"], sinks=["c", "d"], rates=[1.0, 2.0, 3.0]),
            r"rates must be one number or one per splitting node, 2, but the shape is \(3,\)",
        ),
        (
            lambda: wh.Graph.random(5, 3, inputs=1, outputs=2, seed=0),
            r"edges must be a whole number of at least 7, but it is 3",
        ),
        (
            lambda: wh.Graph.from_networkx([1], sources=[0], sinks=[1]),
            r"graph must be one of networkx, but it is",
        ),
        (
            lambda: wh.Graph.from_networkx(nx.empty_graph(2), sources=[0], sinks=[1]),
            r"node 0 must have an edge, but it has none",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_what_no_graph_can_be_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def chain_into_a_loop(length, leak, **options):
    """Nodes in a row that end in a loop of two, which is left with a small probability."""
    edges = [(at, at + 1) for at in range(length)]
    edges += [(length, length + 1), (length, "one"), (length + 1, length), (length + 1, "other")]
    shares = [1.0] * length + [1 - leak, leak] * 2
    return wh.Graph(edges, np.array(shares), sources=[0], sinks=["one", "other"], **options)


@pytest.mark.parametrize("leak", [1e-12, 1e-15])
def test_a_large_graph_with_a_loop_that_is_rarely_left_keeps_its_mass(leak):
    graph = chain_into_a_loop(140, leak)
    wanted = [[1 / (2 - leak), (1 - leak) / (2 - leak)]]
    np.testing.assert_allclose(wh.predict(graph, [[1.0]]), wanted, rtol=1e-13)


@pytest.mark.parametrize("solver", ["direct", "krylov"])
@pytest.mark.parametrize("length", [0, 140])
@pytest.mark.parametrize("leak", [1e-14, 1e-17])
def test_a_solver_that_would_lose_mass_is_refused_in_one_sentence(solver, length, leak):
    graph = chain_into_a_loop(length, leak, solver=solver)
    for ask in (wh.predict, wh.response):
        with pytest.raises(ValueError, match="often enough for eight digits by solver") as refused:
            ask(graph, [[1.0]])
        assert "solver='dense'" in str(refused.value)
    compiled = jax.jit(lambda shares: graph.with_blocks(shares).outputs(jnp.ones((1, 1))))
    assert not np.isfinite(compiled(graph.splits)).any()


def test_a_solver_on_the_host_says_the_same_as_the_dense_one_where_it_answers():
    for leak in (1e-2, 1e-5, 1e-7):
        exact = wh.response(chain_into_a_loop(20, leak, solver="dense"), [[1.0]]).dense()
        for solver in ("direct", "krylov"):
            seen = wh.response(chain_into_a_loop(20, leak, solver=solver), [[1.0]]).dense()
            np.testing.assert_allclose(seen, exact, rtol=1e-8)
