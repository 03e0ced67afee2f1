"""Every system.

What it overrides is what automatic differentiation gives, and a user's own system is one class.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from whorl import geometry
from whorl.geometry import Flat, Positive, Simplex, block
from whorl.system import System, ravel, unravel

EPS = np.finfo(float).eps


class Ladder(System):
    """Two resistors in a row, driven by a current, beside a bias.

    Positive and flat parameters in one system.
    """

    conductances: jax.Array = block(Positive())
    bias: jax.Array = block(Flat())

    @property
    def sizes(self) -> tuple[int, int]:
        return 1, 2

    def outputs(self, inputs):
        drops = inputs / self.conductances[None, :]
        return jnp.cumsum(drops, axis=1) + self.bias[None, :]


class Mixed(System):
    """A composition that an unknown gain sharpens: columns on a simplex and one positive number."""

    shares: jax.Array = block(Simplex())
    gain: jax.Array = block(Positive(geometry.proportional))

    @property
    def sizes(self):
        return 2, 3

    def basis(self):
        return np.asarray(wh.Network([np.full((3, 1), 1 / 3)]).basis())

    def outputs(self, inputs):
        sharpened = (inputs @ self.shares.T) ** self.gain
        return sharpened / jnp.sum(sharpened, axis=1, keepdims=True)


def test_a_block_of_columns_that_lack_mass_is_refused():
    sentence = "^columns of shares must sum to 1, but column 1 sums to 0.7$"
    with pytest.raises(ValueError, match=sentence):
        Mixed(jnp.array([[0.5, 0.4], [0.3, 0.2], [0.2, 0.1]]), jnp.array([1.0]))
    with pytest.raises(ValueError, match=r"^gain must be positive, but entry 0 is -1$"):
        Mixed(jnp.full((3, 2), 1 / 3), jnp.array([-1.0]))


def network(widths, samples, seed=0, **options):
    net = wh.Network.random(widths, seed=seed, floor=0.1, **options)
    return net, jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(widths[0]), samples))


def partly_supported():
    masks = [
        np.array([[True, False, True], [True, True, False], [False, True, True]]),
        np.ones((3, 3), dtype=bool),
    ]
    net, inputs = network((3, 3, 3), 2, support=masks, rates=[2.0, 0.5])
    return net, inputs


def circuit(**options):
    """A bridge with a second loop; two nodes driven, two read."""
    edges = [[0, 2], [2, 1], [0, 3], [3, 1], [2, 3], [3, 4], [4, 1], [2, 5], [5, 4]]
    sizes = np.exp(np.random.default_rng(5).standard_normal(len(edges)))
    given = {"sources": [0, 5], "outputs": [3, 4], "ground": [1]} | options
    return wh.Circuit(edges, sizes, **given), jnp.array([[1.0, 0.4], [0.3, -0.2]])


ELEMENTS = {2: wh.Diode(0.2), 4: jnp.sinh}


def looped(seed=0, **options):
    graph = wh.Graph.random(9, 20, inputs=2, outputs=3, seed=seed, **options)
    return graph, jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(2), 2))


def between(unit):
    net, inputs = network((3, 4, 3), 2)
    return wh.Transport(net, unit), inputs


# Three readings of four outputs of which one is always the sum of the others.
READOUT = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 1.0, -1.0, 0.0], [1.0, 0.0, -1.0, 0.0]])

SYSTEMS = {
    "circuit": circuit(rates=np.linspace(0, 2, 9)),
    "circuit of currents": circuit(
        drive="currents", read="currents", ground=[], mobility="logarithmic"
    ),
    "circuit of both": circuit(drive=["voltages", "currents"], read="currents"),
    "circuit with diodes": circuit(elements=ELEMENTS, drive=["voltages", "currents"]),
    "diodes between currents": circuit(
        elements=ELEMENTS, drive="currents", read="currents", ground=[]
    ),
    "network": network((3, 4, 3), 3, rates=[np.array([0.5, 1.0, 2.0]), 3.0]),
    "one layer": network((2, 3), 1),
    "partly supported": partly_supported(),
    "wide": network((130, 3), 1),
    "wide, several samples": network((130, 3), 2),
    "graph": looped(rates=np.linspace(0.5, 2.0, 6)),
    "graph, direct": looped(solver="direct"),
    "graph, krylov": looped(solver="krylov"),
    "transport": between(wh.competition(1.7)),
    "transport, saturating": between(wh.saturating(0.2)),
    "signed": (wh.Signed(network((3, 3, 4), 2)[0]), network((3, 3, 4), 2)[1]),
    "signed, one way lost": (wh.Signed(network((3, 3, 4), 2)[0], READOUT), jnp.eye(3)[:2]),
    "imperfect, frozen": (
        wh.Imperfect(network((3, 4, 3), 2)[0], frozen=0.5, quantum=0.1, key=3),
        jnp.eye(3)[:2],
    ),
    "ladder": (Ladder(jnp.array([0.5, 2.0]), jnp.array([0.1, -0.2])), jnp.array([[1.0], [0.3]])),
    "mixed": (
        Mixed(jnp.array([[0.5, 0.2], [0.3, 0.2], [0.2, 0.6]]), jnp.array(1.5)),
        jnp.array([[0.3, 0.7], [0.9, 0.1]]),
    ),
}
QUICK = ("network", "circuit", "mixed")  # the second command tries all systems everywhere
VARIANTS = (
    "circuit of currents",
    "circuit of both",
    "circuit with diodes",
    "diodes between currents",
    "graph, direct",
    "graph, krylov",
    "transport, saturating",
    "signed, one way lost",
    "imperfect, frozen",
    "wide, several samples",
    "partly supported",
)


def each(quick):
    return pytest.mark.parametrize(
        "name",
        [name if quick(name) else pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS],
    )


each_system = each(lambda name: name in QUICK)
each_override = each(lambda name: name not in VARIANTS)


def problem(name):
    system, inputs = SYSTEMS[name]
    rng = np.random.default_rng(1)
    potential = jnp.asarray(rng.standard_normal((inputs.shape[0], system.sizes[1])))
    scores = tuple(jnp.asarray(rng.standard_normal(point.shape)) for point in system.blocks)
    return system, inputs, potential, scores


def maps(of, system, inputs, potential, scores):
    """Every map that a system may override, by its own class or by another."""
    trace, velocities = system.trace(inputs), system.velocities_of(scores)
    return {
        "outputs": of.trace(system, inputs)[-1],
        "forward": of.forward(system, trace, velocities),
        "back": of.back(system, trace, potential),
        "velocities": of.velocities(system, trace, potential),
        "answer": of.answer(system, trace, potential),
        "jet": of.jet(system, inputs, scores),
        "driven_jet": of.driven_jet(system, inputs, trace, potential),
        "dense": of.dense(system, trace),
        "contributions": of.contributions(system, trace),
        "roots": tuple(root @ root.T for root in of.roots(system, trace)),
    }


@eqx.filter_jit
def both(of, *given):
    """The overrides and the automatic maps, compiled as one program."""
    return maps(of, *given), maps(System, *given)


def check_overrides(given):
    own, automatic = both(type(given[0]), *given)
    for name, found in own.items():
        for one, other in zip(
            jax.tree.leaves(found), jax.tree.leaves(automatic[name]), strict=True
        ):
            size = max(float(jnp.abs(other).max()), 1e-300)
            slack = 64 * EPS * size * max(given[1].shape)
            np.testing.assert_allclose(one, other, rtol=0, atol=slack, err_msg=name)


@each_override
def test_an_override_is_the_automatic_map(name):
    check_overrides(problem(name))


def test_a_wrong_override_is_found():
    class Wrong(Ladder):
        def back(self, trace, potential):
            return jax.tree.map(lambda slope: 1.001 * slope, super().back(trace, potential))

    given = problem("ladder")
    check_overrides(given)
    with pytest.raises(AssertionError, match="back"):
        check_overrides((Wrong(*given[0].blocks), *given[1:]))


@each_system
def test_the_response_of_a_system_is_reached_by_three_routes(name):
    system, inputs, potential, _ = problem(name)

    @eqx.filter_jit
    def routes(system, inputs, potential):
        K = wh.response(system, inputs)
        return (
            K.dense(),
            (K @ potential).ravel(),
            (K.gram(), K.by_block().sum(axis=0), K.factor() @ K.factor().T),
        )

    dense, answer, others = routes(system, inputs, potential)
    slack = 256 * EPS * float(jnp.abs(dense).max())
    for other in others:
        np.testing.assert_allclose(dense, other, rtol=0, atol=slack)
    np.testing.assert_allclose(answer, dense @ potential.ravel(), rtol=0, atol=slack)


@each_system
def test_the_way_forward_and_the_way_back_are_transposes(name):
    system, inputs, potential, scores = problem(name)
    trace, moved = system.trace(inputs), system.velocities_of(scores)
    ahead = jnp.sum(potential * system.forward(trace, moved))
    behind = sum(
        jnp.sum(slope * part)
        for slope, part in zip(system.back(trace, potential), moved, strict=True)
    )
    assert float(ahead) == pytest.approx(float(behind), rel=1e-12, abs=1e-14)


@each_system
def test_a_geometry_moves_as_its_step_begins(name):
    system, _, _, scores = problem(name)
    for kind, point, score in zip(system.geometries, system.blocks, scores, strict=True):

        def first(size, kind=kind, point=point, score=score):
            return jax.jvp(lambda at: kind.step(point, score, at), (size,), (1.0,))[1]

        bend = jax.jvp(first, (0.0,), (1.0,))[1]
        np.testing.assert_allclose(
            kind.velocity(point, score),
            first(0.0),
            rtol=0,
            atol=1e-14 * float(jnp.abs(score).max()),
        )
        np.testing.assert_allclose(
            kind.acceleration(point, score),
            bend,
            rtol=0,
            atol=1e-13 * float(jnp.abs(score).max()) ** 2,
        )


@pytest.mark.slow
@each_system
def test_a_square_root_of_the_mobility_is_one_by_both_routes(name):
    system, *_ = problem(name)
    for kind, point, rate in zip(system.geometries, system.blocks, system.block_rates, strict=True):
        identity = jnp.eye(point.size)
        root = kind.rooted(point, rate, identity)
        applied = jax.vmap(
            lambda unit, k=kind, p=point, r=rate: k.ravel(k.root(p, r, k.unravel(p, unit))),
            out_axes=1,
        )(identity)
        np.testing.assert_allclose(root @ root.T, kind.mobility(point, rate), rtol=0, atol=1e-14)
        np.testing.assert_allclose(root, applied, rtol=0, atol=1e-15)


@each_system
def test_a_chart_has_no_boundary_and_leads_back(name):
    system, _, _, scores = problem(name)
    for kind, point, score in zip(system.geometries, system.blocks, scores, strict=True):
        np.testing.assert_allclose(kind.point(point, kind.chart(point)), point, rtol=1e-14)
        moved = kind.point(point, kind.chart(point) + 1e-6 * kind.drift(point, score))
        np.testing.assert_allclose(
            (moved - point) / 1e-6, kind.velocity(point, score), rtol=0, atol=1e-4
        )
        assert bool(kind.kept(point, moved))


@each_system
def test_parameters_become_one_vector_and_come_back(name):
    system, *_ = problem(name)
    again = unravel(system.geometries, system.blocks, ravel(system.geometries, system.blocks))
    for one, other in zip(again, system.blocks, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        ravel(system.geometries, system.with_blocks(again).blocks), ravel(system.geometries, again)
    )


@pytest.mark.parametrize(
    "kind",
    [Simplex(), Positive(), Positive(geometry.proportional), Positive(geometry.uniform), Flat()],
)
def test_a_geodesic_starts_along_the_velocity_and_keeps_its_speed(kind):
    point, score = jnp.array([0.5, 0.3, 0.2]), jnp.array([0.4, -0.3, 0.1])

    def speed(size):
        there, moved = jax.jvp(lambda at: kind.geodesic(point, score, at), (size,), (1.0,))
        slope = kind.unscore(there, moved)
        # The squared length of a velocity M g in the metric of the mobility is g . M g.
        if isinstance(kind, Positive):
            return jnp.sum(moved**2 / kind.law(there))
        return jnp.sum(slope * moved)

    near = jax.jvp(lambda at: kind.geodesic(point, score, at), (1e-9,), (1.0,))[1]
    np.testing.assert_allclose(near, kind.velocity(point, score), atol=1e-9)
    assert float(speed(0.5)) == pytest.approx(float(speed(1e-9)), rel=1e-9)


@pytest.mark.slow
def test_a_system_of_ones_own_is_certified_trained_and_accounted_for():
    system, inputs = SYSTEMS["mixed"]
    targets = jnp.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
    K = wh.response(system, inputs)
    assert wh.certify(wh.closed_loop(K, wh.leaky(0.1))).reciprocal
    one = wh.response(system, inputs, selected=0)
    assert not wh.certify(
        wh.closed_loop(one, wh.rotational(1.0, 2.0, base=wh.leaky(0.1)))
    ).reciprocal
    pair = wh.train(
        system, inputs, targets, policy=wh.adaptive(0.2, gate="always"), epochs=20, seed=0
    )
    assert pair.completed
    assert pair.ledger.closed
    assert float(pair.ledger.native) < float(pair.ledger.start)
    np.testing.assert_allclose(pair.native.shares.sum(axis=0), 1.0, rtol=1e-14)
    path = wh.flow(system, inputs, targets, wh.leaky(0.1), [0.0, 1.0])
    assert float(path.total_loss[1]) < float(path.total_loss[0])
    run = wh.learn(
        system, inputs, targets, rule=wh.gauss_newton(0.1), scale=0.5, epochs=20, full_batch=True
    )
    assert float(run.final) < float(run.start)


@pytest.mark.slow
def test_gauss_newton_is_the_leaky_law_for_every_geometry():
    system, inputs = SYSTEMS["ladder"]
    targets = jnp.array([[1.0, 2.0], [0.5, 0.8]])
    error = wh.residual(system, inputs, targets)
    K = wh.response(system, inputs)
    by_law = system.velocities_of(K.scores(wh.leaky(0.1)(K, error)))
    by_newton = system.velocities_of(wh.gauss_newton(0.1).scores(system, inputs, error))
    for one, other in zip(by_law, by_newton, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.slow
def test_the_coefficient_of_a_mixed_system_is_the_limit_of_finite_steps():
    system, inputs = SYSTEMS["mixed"]
    targets = jnp.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
    law = wh.rotational(base=wh.leaky(0.1))
    found = wh.curvature(system, inputs, targets, selected=0, law=law)
    sizes = (1e-2, 5e-3)
    seen = [
        float(wh.even_difference(system, inputs, targets, selected=0, step=size, law=law)) / size**2
        for size in sizes
    ]
    # Twice the finer less the coarser takes out what is linear in the size.
    assert 2 * seen[1] - seen[0] == pytest.approx(float(found.coefficient), rel=2e-2)


class Untrue(Ladder):
    @property
    def sizes(self):
        return 1, 3


class Bare(eqx.Module):
    weights: jax.Array


class Leaving(Flat):
    """Steps, and flows, straight through the boundary that its check draws."""

    def check(self, name, point):
        Positive().check(name, point)

    def kept(self, before, after):
        return Positive().kept(before, after)


class Lossy(wh.System):
    gain: jax.Array = block(Leaving())

    @property
    def sizes(self):
        return 1, 1

    def outputs(self, inputs):
        return inputs * self.gain[None, :]


def test_a_learner_whose_geometry_lets_it_out_stops_and_says_so():
    lossy = Lossy(jnp.array([0.5]))
    pair = wh.train(lossy, [[1.0]], [[-3.0]], policy=wh.native(1.0), epochs=40, seed=0)
    assert not pair.completed
    assert pair.status == (
        f"stopped before update {pair.made}: a learner would have left the interior there"
    )
    assert float(pair.native.gain[0]) > 0
    reached = wh.learn(
        lossy, [[1.0]], [[-3.0]], rule=wh.boundary(wh.direct()), scale=1.0, epochs=40, seed=0
    )
    assert "would have left the interior there" in reached.status


class Nothing(System):
    @property
    def sizes(self):
        return 1, 1

    def outputs(self, inputs):
        return inputs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wh.response(Untrue(jnp.array([0.5, 2.0]), jnp.zeros(2)), [[1.0]]),
            r"outputs of Untrue must have the declared shape \(1, 3\), but their shape is \(1, 2\)",
        ),
        (
            lambda: wh.train(
                Untrue(jnp.array([0.5, 2.0]), jnp.zeros(2)),
                [[1.0]],
                [[1.0, 2.0, 3.0]],
                policy=wh.native(0.1),
                epochs=1,
                seed=0,
            ),
            r"outputs of Untrue must have the declared shape \(1, 3\), but their shape is \(1, 2\)",
        ),
        (
            lambda: wh.flow(Lossy(jnp.array([0.5])), [[1.0]], [[-3.0]], wh.direct(), [0.0, 5.0]),
            r"block 0 at time 5 must be positive, but entry 0 is -2.9",
        ),
        (
            lambda: wh.response(Bare(jnp.ones(2)), [[1.0]]),
            r"system must be a System, but it is Bare",
        ),
        (
            lambda: wh.response(Nothing(), [[1.0]]),
            r"Nothing must declare parameters with block\(...\), but it has none",
        ),
        (
            lambda: wh.response(SYSTEMS["ladder"][0], [[1.0, 2.0]]),
            r"inputs must have shape \(samples, 1\)",
        ),
        (
            lambda: block("simplex"),
            r"geometry must be one of Simplex\(\), Positive\(\), Flat\(\) or your own Geometry, but",
        ),
        (
            lambda: Positive().check("conductances", jnp.array([1.0, -2.0])),
            r"conductances must be positive, but entry 1 is -2",
        ),
        (
            lambda: Simplex().check("shares", jnp.array([0.5, 0.4])),
            r"columns of shares must sum to 1, but its column sums to 0.9",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_bad_input_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


class OneRow(wh.System):
    """A system whose author thought of a single row."""

    weights: jax.Array = block(Flat())

    @property
    def sizes(self):
        return 2, 3

    def outputs(self, inputs):
        return jax.nn.softmax(self.weights @ inputs)


class NoBasis(OneRow):
    """Outputs that sum to one, and no word about it."""

    def outputs(self, inputs):
        return jax.nn.softmax(inputs @ self.weights.T)


ROWS = np.array([[0.3, 0.7], [0.1, 0.4], [0.5, 0.2], [0.9, 0.3], [0.2, 0.2]])
AIMS = np.full((5, 3), 1 / 3)
ASKED = {
    "predict": lambda system: wh.predict(system, ROWS),
    "residual": lambda system: wh.residual(system, ROWS, AIMS),
    "response": lambda system: wh.closed_loop(wh.response(system, ROWS), wh.direct()),
    "learn": lambda system: wh.learn(
        system, ROWS, AIMS, rule=wh.exponentiated_gradient(), scale=0.1, schedule=[0]
    ),
    "train": lambda system: wh.train(
        system, ROWS, AIMS, policy=wh.native(0.1), schedule=[0], turns=[1]
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_outputs_of_one_row_only_are_refused_in_one_sentence(name):
    weights = jnp.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])
    with pytest.raises(ValueError, match="outputs of OneRow must take rows of inputs") as refused:
        ASKED[name](OneRow(weights))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["response", "learn", "train"])
def test_outputs_that_conserve_their_sum_without_a_basis_are_refused(name):
    weights = jnp.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])
    with pytest.raises(ValueError, match=r"basis of NoBasis must be the zero-sum directions"):
        ASKED[name](NoBasis(weights))
