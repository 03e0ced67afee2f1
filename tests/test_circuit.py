"""Circuits against networkx, NumPy and SciPy, closed forms, and every way to get one wrong."""

import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq

import whorl as wh
from whorl.systems import circuit as module


def drawn(seed, nodes=12, extra=13, spread=1.0):
    """Edges and conductances: a random tree and some more."""
    draws = np.random.default_rng(seed)
    edges = [(node, int(draws.integers(node))) for node in range(1, nodes)]
    while len(edges) < nodes - 1 + extra:
        one, other = map(int, draws.integers(nodes, size=2))
        if one != other:
            edges.append((one, other))
    return edges, np.exp(spread * draws.standard_normal(len(edges)))


def laplacian(edges, sizes, nodes):
    matrix = np.zeros((nodes, nodes))
    for (one, other), size in zip(edges, sizes, strict=True):
        matrix[[one, other], [one, other]] += size
        matrix[[one, other], [other, one]] -= size
    return matrix


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(5))
def test_voltages_are_those_of_the_nodal_equations(seed):
    edges, sizes = drawn(seed)
    circuit = wh.Circuit(edges, sizes, sources=[0, 3], outputs=[5, 9, 11], ground=[1])
    inputs = np.random.default_rng(seed).standard_normal((4, 2))
    matrix, held = laplacian(edges, sizes, 12), [0, 3, 1]
    free = [node for node in range(12) if node not in held]
    known = np.concatenate([inputs, np.zeros((4, 1))], axis=1)
    whole = np.zeros((4, 12))
    whole[:, held] = known
    right = -matrix[np.ix_(free, held)] @ known.T
    whole[:, free] = np.linalg.solve(matrix[np.ix_(free, free)], right).T
    np.testing.assert_allclose(
        wh.predict(circuit, inputs), whole[:, [5, 9, 11]], rtol=0, atol=1e-14
    )


def exactly(edges, sizes, held, fed):
    """Voltages of all nodes by rational arithmetic, from those of held nodes and currents fed in."""
    sizes = [Fraction(float(size)) for size in sizes]
    free = sorted({node for edge in edges for node in edge} - set(held))
    rows = [[Fraction(0)] * len(free) + [Fraction(fed.get(node, 0))] for node in free]
    for edge, size in zip(edges, sizes, strict=True):
        for one, other in (edge, edge[::-1]):
            if one in free:
                row = rows[free.index(one)]
                row[free.index(one)] += size
                row[free.index(other) if other in free else -1] -= (
                    size if other in free else -size * Fraction(held[other])
                )
    for k, pivot in enumerate(rows):
        pivot[:] = [entry / pivot[k] for entry in pivot]
        for row in rows[:k] + rows[k + 1 :]:
            row[:] = [a - row[k] * b for a, b in zip(row, pivot, strict=True)]
    return held | {node: row[-1] for node, row in zip(free, rows, strict=True)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("decades", [0, 6, 12, 15])
def test_voltages_and_currents_keep_every_relative_digit_at_any_ratio(decades, dtype):
    edges, _ = drawn(7, nodes=8, extra=6)
    sizes = 10.0 ** -np.random.default_rng(decades).uniform(0, decades, len(edges))
    sizes = sizes.astype(dtype)
    roles = {"sources": [0, 3], "outputs": [5, 7], "ground": [1]}
    drive, row = ["voltages", "currents"], np.array([[1.5, 0.25]], dtype=dtype)
    for read, grounded in (("voltages", []), ("currents", [5, 7])):
        circuit = wh.Circuit(edges, sizes, **roles, drive=drive, read=read)
        exact = exactly(edges, sizes, {0: 1.5, 1: 0} | dict.fromkeys(grounded, 0), {3: 0.25})
        expected = [exact[5], exact[7]]
        if grounded:
            pairs = list(zip(edges, sizes.tolist(), strict=True))
            expected = [
                sum(
                    Fraction(size) * sum(exact[end] for end in ends)
                    for ends, size in pairs
                    if node in ends
                )
                for node in grounded
            ]
        found = np.asarray(wh.predict(circuit, row), dtype=float)[0]
        # A few roundings of each number, whatever lies between the strongest and the weakest edge.
        np.testing.assert_allclose(found, np.array(expected, float), rtol=8 * np.finfo(dtype).eps)


@pytest.mark.slow
@pytest.mark.parametrize("strong", [1.0, 1e6, 1e12])
def test_a_diode_behind_a_strong_edge_and_weak_ones_keeps_its_digits(strong):
    sizes = [1e-6, strong, 1e-6, 1e-6]
    edges = [[0, 1], [1, 2], [2, 3], [3, 4]]
    circuit = wh.Circuit(
        edges, sizes, sources=[0], outputs=[1, 2, 3], ground=[4], elements={3: wh.Diode(0.025)}
    )
    with mpmath.workdps(40):
        series = sum(1 / mpmath.mpf(size) for size in sizes[:3])

        def missing(voltage):
            bent = mpmath.expm1(voltage / mpmath.mpf(0.025))
            return (1 - voltage) / series - mpmath.mpf(sizes[3]) * mpmath.mpf(0.025) * bent

        last = mpmath.findroot(missing, (0.0, 0.2), solver="anderson")
        current = (1 - last) / series
        first = 1 - current / mpmath.mpf(sizes[0])
        expected = [float(one) for one in (first, first - current / mpmath.mpf(strong), last)]
    np.testing.assert_allclose(wh.predict(circuit, [[1.0]])[0], expected, rtol=1e-14)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_call_it")
def test_a_large_circuit_that_forgets_its_weak_edges_is_refused():
    nodes = module.DENSE + 10
    edges = [[node, node + 1] for node in range(nodes - 1)]

    def chain(weak):
        sizes = np.ones(len(edges))
        sizes[[0, -1]] = weak
        return wh.Circuit(edges, sizes, sources=[0], outputs=[5], ground=[nodes - 1])

    inside = (nodes - 3.0) * 1e-3
    expected = 1 - (1 + 4e-3) / (2 + inside)
    assert float(wh.predict(chain(1e-3), [[1.0]])[0, 0]) == pytest.approx(expected, rel=1e-10)
    with pytest.raises(ValueError, match=r"but they go from 1e-13 to 1 in a circuit of 264 free"):
        wh.predict(chain(1e-13), [[1.0]])


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_unit_current_meets_the_resistance_distance_of_networkx(seed):
    edges, sizes = drawn(seed)
    circuit = wh.Circuit(edges, sizes, sources=[4], outputs=[7], ground=[0], drive="currents")
    graph = circuit.to_networkx()
    apart = nx.resistance_distance(graph, 4, 0, weight="conductance", invert_weight=False)
    states = circuit.settle(jnp.array([[1.0]]), jnp.zeros((1, 1)))
    assert float(states[0, 4]) == pytest.approx(apart, rel=1e-12)
    held = circuit.impedance(jnp.array([[1.0]]))[0, 0, 0]
    assert float(held) == pytest.approx(
        nx.resistance_distance(graph, 7, 0, weight="conductance", invert_weight=False), rel=1e-12
    )


@pytest.mark.slow
def test_the_currents_of_all_pairs_are_the_current_flow_betweenness_of_networkx():
    edges, sizes = drawn(2, nodes=8, extra=8)
    simple = {tuple(sorted(edge)): size for edge, size in zip(edges, sizes, strict=True)}
    graph = nx.Graph()
    for (one, other), size in simple.items():
        graph.add_edge(one, other, conductance=size)
    through = dict.fromkeys(simple, 0.0)
    for source, sink in itertools.combinations(range(8), 2):
        rest = next(node for node in range(8) if node not in (source, sink))
        circuit = wh.Circuit(
            list(simple),
            list(simple.values()),
            sources=[source],
            outputs=[rest],
            ground=[sink],
            drive="currents",
        )
        states = circuit.settle(jnp.array([[1.0]]), jnp.zeros((1, 1)))[0]
        for (one, other), size in simple.items():
            through[one, other] += float(abs(states[one] - states[other]) * size)
    theirs = nx.edge_current_flow_betweenness_centrality(
        graph, normalized=False, weight="conductance"
    )
    # networkx counts half of every current.
    for (one, other), ours in through.items():
        expected = theirs.get((one, other), theirs.get((other, one)))
        assert ours / 2 == pytest.approx(expected, rel=1e-10)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("elements", [{}, {3: wh.Diode(0.3), 8: jnp.sinh}])
def test_what_is_fed_in_comes_out(elements):
    edges, sizes = drawn(3)
    circuit = wh.Circuit(
        edges,
        sizes,
        sources=[0, 1],
        outputs=[7, 9, 11],
        drive="currents",
        read="currents",
        elements=elements,
    )
    inputs = np.random.default_rng(0).uniform(0, 1, (5, 2))
    seen = wh.predict(circuit, inputs)
    np.testing.assert_allclose(seen.sum(axis=1), inputs.sum(axis=1), rtol=1e-12)
    assert circuit.basis().shape == (3, 2)


def test_a_diode_and_a_resistor_meet_where_their_currents_do():
    diode = wh.Circuit(
        [[0, 1], [1, 2]],
        [1e-3, 1e-9 / 0.025],
        sources=[0],
        outputs=[1],
        ground=[2],
        elements={1: wh.Diode(0.025)},
    )
    for drive in (-3.0, 0.1, 0.8, 5.0, 20.0):
        found = float(wh.predict(diode, [[drive]])[0, 0])

        def missing(voltage, drive=drive):
            return (drive - voltage) * 1e-3 - 1e-9 * np.expm1(voltage / 0.025)

        low, high = min(drive, 0.0) - 1e-9, min(max(drive, 0.0), 1.0) + 1e-9
        assert found == pytest.approx(brentq(missing, low, high, xtol=1e-15), rel=1e-11)


@pytest.mark.slow
def test_the_content_of_an_element_is_the_integral_of_its_current():
    diode, drops = wh.Diode(0.1), jnp.linspace(-1.0, 7.5, 18)
    slope = jax.vmap(jax.grad(diode.content))(drops)
    np.testing.assert_allclose(slope, diode.current(drops), rtol=1e-12, atol=1e-13)
    own = module.Characteristic(jnp.sinh)
    drops = jnp.linspace(-3.0, 3.0, 13)
    np.testing.assert_allclose(own.content(drops), jnp.cosh(drops) - 1, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_a_sparse_solve_is_the_dense_one(monkeypatch):
    edges, sizes = drawn(4, nodes=60, extra=70)
    circuit = wh.Circuit(edges, sizes, sources=[0], outputs=[57, 58, 59], ground=[1])
    inputs = np.array([[1.0], [0.5]])

    def seen():
        K = wh.response(circuit, inputs)
        return K.predictions, K.dense(), K.gram()

    dense = seen()
    monkeypatch.setattr(module, "DENSE", 10)
    jax.clear_caches()
    for one, other in zip(dense, seen(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * float(jnp.abs(one).max()))


@pytest.mark.slow
def test_single_precision_stays_single():
    edges, sizes = drawn(1)
    circuit = wh.Circuit(
        edges, sizes.astype(np.float32), sources=[0], outputs=[9, 10, 11], ground=[1]
    )
    double = wh.Circuit(edges, sizes, sources=[0], outputs=[9, 10, 11], ground=[1])
    K = wh.response(circuit, np.ones((1, 1), dtype=np.float32))
    assert K.dense().dtype == jnp.float32
    exact = wh.response(double, [[1.0]]).dense()
    np.testing.assert_allclose(K.dense(), exact, rtol=0, atol=1e-5 * float(jnp.abs(exact).max()))


@pytest.mark.slow
def test_a_circuit_learns_and_its_account_closes():
    edges, sizes = drawn(6)
    circuit = wh.Circuit(
        edges, sizes, sources=[0], outputs=[9, 10, 11], ground=[1], mobility="logarithmic"
    )
    pair = wh.train(
        circuit,
        [[1.0]],
        [[0.5, 0.4, 0.6]],
        policy=wh.adaptive(0.2, gate="always"),
        epochs=20,
        seed=0,
    )
    assert pair.completed
    assert pair.ledger.closed
    assert float(pair.ledger.native) < float(pair.ledger.start)


def test_a_graph_comes_back_from_networkx():
    graph = nx.Graph()
    graph.add_edge("a", "b", conductance=2.0)
    graph.add_edge("b", "c")
    circuit = wh.Circuit.from_networkx(graph, sources=["a"], outputs=["b"], ground=["c"])
    assert float(wh.predict(circuit, [[3.0]])[0, 0]) == pytest.approx(2.0, rel=1e-15)
    assert circuit.to_networkx().edges[0, 1, 0]["conductance"] == 2.0
    with pytest.raises(ValueError, match="ground must be nodes of the graph, but 'd' is not"):
        wh.Circuit.from_networkx(graph, sources=["a"], outputs=["b"], ground=["d"])


@pytest.mark.usefixtures("as_users_call_it")
def test_a_graph_of_networkx_that_is_no_circuit_is_refused_by_its_labels():
    def made(*edges, **changed):
        graph = nx.MultiGraph(edges)
        graph.add_nodes_from(changed.pop("alone", []))
        roles = {"sources": ["a"], "outputs": ["b"], "ground": ["c"]} | changed
        return wh.Circuit.from_networkx(graph, **roles)

    path = [("a", "b"), ("b", "c")]
    assert made(*path, ("a", "b", {"conductance": 2.0})).conductances.tolist() == [1.0, 2.0, 1.0]
    for message, given, changed in (
        ("edges must join two different nodes, but one goes from 'b' to 'b'", [("b", "b")], {}),
        ("node 'z' must have an edge, but it has none", [], {"alone": ["z"]}),
        ("conductance from 'a' to 'c' must be greater than 0, but it is -1", [("a", "c", -1)], {}),
        ("conductance from 'a' to 'c' must be a real number", [("a", "c", "big")], {}),
        ("sources must be nodes of the graph, but ['a'] is not", [], {"sources": [["a"]]}),
        ("sources must be a list, but it is 3", [], {"sources": 3}),
    ):
        more = [(*edge[:2], {"conductance": [*edge[2:], 1.0][0]}) for edge in given]
        with pytest.raises(ValueError) as refusal:
            made(*path, *more, **changed)
        assert str(refusal.value).startswith(message)
    with pytest.raises(ValueError, match="graph must be one of networkx, but it is 'abc'"):
        wh.Circuit.from_networkx("abc", sources="a", outputs="b")


PATH = {"edges": [[0, 1], [1, 2]], "conductances": [1.0, 1.0], "sources": [0], "outputs": [1]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"conductances": [1.0, 0.0]}, "conductances must be positive, but entry 1 is 0"),
        ({"conductances": [1.0, -2.0]}, "conductances must be positive, but entry 1 is -2"),
        ({"conductances": [1.0, np.nan]}, "conductances must be finite, but entry 1 is nan"),
        ({"conductances": [1.0]}, "conductances must have one number per edge, 2"),
        ({"edges": [[0, 1], [2, 2]]}, "edges must join two different nodes, but edge 1 joins 2 to"),
        ({"edges": [[0, 1], [2, 3]]}, "every node must be joined to a node of known voltage"),
        ({"edges": [[0.5, 1], [1, 2]]}, "edges must hold node numbers"),
        ({"edges": [0, 1]}, r"edges must have shape \(edges, 2\)"),
        ({"edges": [[-1, 1], [1, 2]]}, "edges must hold node numbers"),
        ({"sources": [3]}, "each of sources must be a whole number from 0 to 2, but it is 3"),
        ({"sources": []}, "sources must name at least one node, but it is empty"),
        ({"outputs": [0]}, "must be different nodes, but node 0 is there twice"),
        ({"drive": "volts"}, "drive must be one of voltages, currents, but it is 'volts'"),
        ({"drive": ["currents"] * 2}, "drive must be one word or one per source, 1, but it has 2"),
        ({"drive": "currents"}, "every node must be joined to a node of known voltage"),
        ({"read": "power"}, "read must be one of voltages, currents, but it is 'power'"),
        ({"mobility": "steep"}, "mobility must be one of flat, logarithmic, proportional or a"),
        ({"rates": [-1.0, 1.0]}, "rates must be at least 0, but it is -1"),
        ({"rates": [1.0]}, "rates must have one number per edge, 2"),
        ({"elements": {2: jnp.sinh}}, "each edge of elements must be a whole number from 0 to 1"),
        ({"elements": {0: 3.0}}, r"elements must be Diode\(...\) or rising functions"),
        ({"elements": {0: jnp.cos}}, "elements must rise with the drop and be 0 at 0, but that of"),
        ({"elements": {0: jnp.log}}, "elements must give one finite current per drop"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_bad_circuits_are_refused_in_one_sentence(changed, message):
    with pytest.raises(ValueError, match=message) as refusal:
        wh.Circuit(**(PATH | changed))
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("as_users_call_it")
def test_conductances_too_far_apart_to_be_added_are_refused():
    # Three nodes that are joined by strong edges and hang on weak ones.
    edges = [[0, 1], [1, 2], [2, 3], [3, 4], [1, 3]]

    def hanging(weak, strong):
        sizes = [weak, strong, 1.0, weak, 1.0]
        return wh.Circuit(edges, sizes, sources=[0], outputs=[1, 2, 3], ground=[4])

    assert wh.response(hanging(1e-3, 1e3), [[1.0]]).samples == 1
    with pytest.raises(ValueError, match="conductances must lie within float64's digits of each"):
        wh.response(hanging(1e-9, 1e9), [[1.0]])
    with pytest.raises(ValueError, match=r"they go from 1e-12 to 1e\+12"):
        wh.response(hanging(1e-12, 1e12), [[1.0]])


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_call_it")
def test_a_nonlinear_circuit_settles_in_either_precision_or_says_that_it_does_not():
    def driven(law, dtype=np.float64):
        sizes = np.array([1.0, 2.0], dtype=dtype)
        return wh.Circuit([[0, 1], [1, 2]], sizes, **(PATH_ROLES | {"elements": {1: law}}))

    one, other = (
        wh.predict(driven(wh.Diode(0.025), dtype), np.ones((1, 1), dtype=dtype))
        for dtype in (np.float32, np.float64)
    )
    assert one.dtype == jnp.float32
    np.testing.assert_allclose(one, other, rtol=1e-6)
    inside = jax.jit(lambda x: driven(wh.Diode(0.025)).outputs(x))(jnp.ones((1, 1)))
    np.testing.assert_allclose(inside, other, rtol=1e-14)
    falling = driven(lambda drop: jnp.where(jnp.abs(drop) < 2, drop, 4 * jnp.sign(drop) - drop))
    with pytest.raises(ValueError, match="voltages must settle within 1024 steps, but those of"):
        wh.predict(falling, [[9.0]])


PATH_ROLES = {"sources": [0], "outputs": [1], "ground": [2]}


@pytest.mark.usefixtures("as_users_call_it")
def test_a_diode_has_a_positive_thermal_voltage():
    with pytest.raises(ValueError, match="thermal must be greater than 0, but it is 0"):
        wh.Diode(0.0)


@pytest.mark.parametrize("mobility", ["flat", "logarithmic"])
@pytest.mark.parametrize("seed", range(3, 8))
def test_a_circuit_whose_outputs_carry_no_current_has_no_direction(seed, mobility):
    draws = np.random.default_rng(seed)
    # Behind node 0, which is held, hangs a part that no current flows through.
    edges = [[0, 1], [1, 2], [0, 3]]
    edges += [[int(draws.choice([0, *range(3, node)])), node] for node in range(4, 8)]
    edges += [draws.choice(np.arange(3, 8), 2, replace=False).tolist() for _ in range(4)]
    sizes = 10.0 ** draws.uniform(-9, 2, len(edges))
    circuit = wh.Circuit(edges, sizes, sources=[0], outputs=[6, 7], ground=[2], mobility=mobility)
    K = wh.response(circuit, [[1.0]])
    with pytest.raises(ValueError, match="must have an identifiable direction") as refused:
        wh.closed_loop(K, wh.direct())
    assert "round-off" in str(refused.value) or not np.any(K.dense())
    # With a path for a current the same edges count.
    live = wh.Circuit([*edges, [7, 2]], [*sizes, 1e-5], sources=[0], outputs=[6, 7], ground=[2])
    assert wh.certify(wh.closed_loop(wh.response(live, [[1.0]]), wh.direct())).rank >= 1
