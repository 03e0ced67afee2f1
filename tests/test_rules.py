"""The rules of the field: their loops against closed forms, their limits, and what they refuse."""

from fractions import Fraction
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from test_circuit import drawn
from whorl import registry, rules

INPUTS = jnp.ones((1, 1))
ERROR = jnp.array([[0.1, -0.2, 0.15]])


def circuit(seed=3, **options):
    edges, sizes = drawn(seed)
    given = {"sources": [0], "outputs": [9, 10, 11], "ground": [1]} | options
    return wh.Circuit(edges, sizes, **given)


def velocity(rule, system, error=ERROR):
    return np.asarray(system.velocities_of(rule.scores(system, INPUTS, error))[0])


def by_hand(system):
    """K and Z of a linear circuit that reads voltages, from its Laplacian."""
    edges, sizes = np.asarray(system.edges), np.asarray(system.conductances)
    drop = np.zeros((len(edges), system.nodes))
    drop[np.arange(len(edges)), edges[:, 0]] += 1
    drop[np.arange(len(edges)), edges[:, 1]] -= 1
    whole = drop.T @ (sizes[:, None] * drop)
    free, sinks = list(system.free), list(system.sinks)
    inverse = np.zeros_like(whole)
    inverse[np.ix_(free, free)] = np.linalg.inv(whole[np.ix_(free, free)])
    voltages = -inverse @ whole[:, 0]
    voltages[0] = 1.0
    slopes = -(drop @ voltages)[:, None] * (drop @ inverse[:, sinks])
    return slopes.T @ slopes, inverse[np.ix_(sinks, sinks)]


@pytest.mark.slow
def test_equilibrium_propagation_closes_the_response_itself():
    loop = wh.closed_loop(circuit(), INPUTS, wh.equilibrium_propagation())
    np.testing.assert_allclose(loop.reduced, by_hand(circuit())[0], rtol=1e-12, atol=1e-16)
    assert wh.certify(loop).reciprocal


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "rule",
    [wh.coupled_learning(), wh.contrastive_learning(), wh.adjoint_coupled_learning()],
    ids=["coupled", "contrastive", "adjoint"],
)
def test_held_outputs_close_k_times_the_inverse_impedance(rule):
    loop = wh.closed_loop(circuit(), INPUTS, rule)
    K, Z = by_hand(circuit())
    np.testing.assert_allclose(loop.reduced, K @ np.linalg.inv(Z), rtol=1e-11, atol=1e-14)
    found = wh.certify(loop)
    assert found.verdict == "gradient in another metric"
    # Of the metrics that make it a gradient, the inverse impedance is one.
    held = np.linalg.inv(Z) @ np.asarray(loop.reduced)
    np.testing.assert_allclose(held, held.T, rtol=0, atol=1e-12 * np.abs(held).max())


@pytest.mark.slow
def test_currents_that_are_conserved_learn_by_the_same_rules():
    system = circuit(drive="currents", read="currents", ground=[], sources=[0])
    K, Z = wh.response(system, INPUTS), system.impedance(INPUTS)[0]
    basis = system.basis()
    loop = wh.closed_loop(system, INPUTS, wh.coupled_learning())
    inside = basis.T @ np.asarray(Z) @ basis
    assert np.linalg.eigvalsh(inside).min() > 0
    np.testing.assert_allclose(loop.reduced, K.reduced() @ np.linalg.inv(inside), rtol=1e-10)
    limit = wh.closed_loop(system, INPUTS, wh.equilibrium_propagation())
    np.testing.assert_allclose(limit.reduced, K.reduced(), rtol=1e-11, atol=1e-15)


@pytest.mark.slow
def test_the_bias_of_a_nudge_is_linear_on_one_side_and_quadratic_centred():
    system = circuit()
    limit = velocity(wh.equilibrium_propagation(), system)
    for centred, power in ((False, 1.0), (True, 2.0)):
        apart = [
            np.linalg.norm(
                velocity(wh.equilibrium_propagation(nudge, centred=centred), system) - limit
            )
            for nudge in (0.02, 0.01)
        ]
        assert np.log2(apart[0] / apart[1]) == pytest.approx(power, abs=0.05)
    small = velocity(wh.coupled_learning(1e-5), system)
    np.testing.assert_allclose(small, velocity(wh.coupled_learning(), system), atol=1e-4)


@pytest.mark.slow
def test_in_a_linear_circuit_hard_clamping_is_adjoint_coupled_learning():
    one, other = (
        velocity(rule, circuit())
        for rule in (wh.contrastive_learning(), wh.adjoint_coupled_learning())
    )
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-15)
    assert np.abs(one - velocity(wh.coupled_learning(), circuit())).max() > 1e-4


@pytest.mark.slow
def test_voltages_do_not_know_the_scale_of_conductances_and_so_two_rules_keep_their_squares():
    # Outputs do not change when all conductances grow together: g . J = 0 (Euler). What follows J
    # keeps the sum of squares; what follows the held energy, of degree one, loses twice that energy.
    system, Z = circuit(), by_hand(circuit())[1]
    sizes = np.asarray(system.conductances)
    for rule in (wh.equilibrium_propagation(), wh.coupled_learning()):
        moved = velocity(rule, system)
        assert abs(sizes @ moved) < 1e-14 * np.abs(sizes * moved).sum()
    energy = float(ERROR[0] @ np.linalg.inv(Z) @ ERROR[0]) / 2
    assert sizes @ velocity(wh.adjoint_coupled_learning(), system) == pytest.approx(-energy)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [wh.coupled_learning(), wh.adjoint_coupled_learning()])
def test_the_derivative_of_a_loop_is_that_of_its_differences(rule):
    system = circuit()

    @jax.jit
    def loop(sizes):
        return wh.closed_loop(system.with_blocks((sizes,)), INPUTS, rule, residual=ERROR).reduced

    sizes, step = system.conductances, 1e-5
    way = jnp.asarray(np.random.default_rng(0).standard_normal(len(sizes)))
    slope = jax.jvp(loop, (sizes,), (way,))[1]
    seen = (loop(sizes + step * way) - loop(sizes - step * way)) / (2 * step)
    np.testing.assert_allclose(slope, seen, rtol=0, atol=1e-7 * float(jnp.abs(seen).max()))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_circuit_with_diodes_is_certified_like_a_linear_one():
    system = circuit(elements={5: wh.Diode(0.3), 20: jnp.sinh})
    limit = wh.closed_loop(system, INPUTS, wh.equilibrium_propagation())
    K, Z = wh.response(system, INPUTS).reduced(), system.impedance(INPUTS)[0]
    np.testing.assert_allclose(limit.reduced, K, rtol=0, atol=1e-11 * float(jnp.abs(K).max()))
    assert wh.certify(limit, tol=1e-9).reciprocal
    coupled = wh.closed_loop(system, INPUTS, wh.coupled_learning())
    np.testing.assert_allclose(coupled.reduced, K @ jnp.linalg.inv(Z), rtol=1e-8, atol=1e-12)
    near = velocity(wh.equilibrium_propagation(1e-4, centred=True), system)
    np.testing.assert_allclose(near, velocity(wh.equilibrium_propagation(), system), atol=1e-6)
    held = system.settle(INPUTS, system.holding(INPUTS, ERROR))
    np.testing.assert_allclose(
        system.read(held), system.outputs(INPUTS) + ERROR, rtol=0, atol=1e-11
    )


@pytest.mark.slow
def test_a_finite_nudge_on_a_diode_circuit_is_found_in_single_precision():
    edges = [[0, 1], [1, 2], [2, 3], [3, 4], [1, 3], [0, 3]]
    # Weak edges make the forces small: no tolerance may depend on their unit.
    sizes = 1e-4 * np.array([1.0, 2.0, 0.5, 1.0, 0.7, 0.3])
    roles = {"sources": [0], "outputs": [1, 2], "ground": [4], "elements": {3: wh.Diode(0.1)}}

    def scores(dtype):
        system = wh.Circuit(edges, sizes.astype(dtype), **roles)
        error = jnp.array([[0.1, -0.05]], dtype=dtype)
        return wh.coupled_learning(0.1).scores(system, INPUTS.astype(dtype), error)[0]

    single, double = scores(np.float32), scores(np.float64)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-6 * float(jnp.abs(double).max()))


def kite(tilt=0.0):
    """Two dividers of the same drive, and two outputs that join them, with a bridge between these.

    Where the dividers are alike, no current flows in the kite of the four inner nodes, and forces
    that push the outputs apart cause drops nowhere else: no conductance can move their difference.
    After McGinnis, Li and Mori, arXiv:2606.15443 (2026).
    """
    edges = [[0, 2], [2, 1], [0, 3], [3, 1], [2, 4], [4, 3], [2, 5], [5, 3], [4, 5]]
    sizes = np.array([1.0, 2.0 + tilt, 1.0, 2.0, 0.7, 0.7, 0.7, 0.7, 0.5])
    return wh.Circuit(edges, sizes, sources=[0], outputs=[4, 5], ground=[1])


@pytest.mark.slow
@pytest.mark.parametrize("rule", [wh.equilibrium_propagation(), wh.coupled_learning()])
def test_the_kite_cannot_learn_what_its_symmetry_hides(rule):
    found = wh.certify(wh.closed_loop(kite(), INPUTS, rule))
    assert found.rank == 1
    still = velocity(rule, kite(), jnp.array([[1.0, -1.0]]))
    np.testing.assert_allclose(still, 0, atol=1e-15)
    tilted = wh.certify(wh.closed_loop(kite(0.1), INPUTS, rule))
    assert tilted.rank == 2
    # Coercivity comes back as the square of what breaks the symmetry.
    rates = [
        np.real(wh.certify(wh.closed_loop(kite(tilt), INPUTS, rule)).eigenvalues).min()
        for tilt in (0.02, 0.01)
    ]
    assert np.log2(rates[0] / rates[1]) == pytest.approx(2.0, abs=0.05)


@pytest.mark.slow
def test_coupled_learning_raises_an_error_on_the_smallest_kite_and_propagation_does_not():
    # Two triangles on one edge: source 0 and ground 1 at the tips, outputs 2 and 3 between them.
    edges, sizes = [[0, 2], [0, 3], [2, 1], [3, 1], [2, 3]], [1, 1000, 10, 10, 1]
    one, other, low, high, across = map(Fraction, sizes)
    # Kirchhoff's laws at both outputs, by Cramer's rule and in rational numbers.
    mine, theirs = one + low + across, other + high + across
    whole = mine * theirs - across**2
    Z = np.array([[theirs, across], [across, mine]], dtype=object) / whole
    v = Z @ np.array([one, other])
    ends = [(1 - v[0], [-1, 0]), (1 - v[1], [0, -1]), (v[0], [1, 0]), (v[1], [0, 1])]
    ends += [(v[0] - v[1], [1, -1])]
    J = np.stack([-drop * (Z @ np.array(ways)) for drop, ways in ends], axis=1)
    loop = J @ J.T @ np.array([[mine, -across], [-across, theirs]], dtype=object)
    even = (loop + loop.T) / 2
    assert even[0, 0] > 0 > even[0, 0] * even[1, 1] - even[0, 1] ** 2  # no coercivity
    assert loop[0, 1] * loop[1, 0] > 0  # and yet real eigenvalues,
    assert loop[0, 0] * loop[1, 1] - loop[0, 1] * loop[1, 0] > 0  # all of them positive

    circuit = wh.Circuit(edges, np.array(sizes, float), sources=[0], outputs=[2, 3], ground=[1])
    found = wh.closed_loop(circuit, INPUTS, wh.coupled_learning()).reduced
    np.testing.assert_allclose(found, loop.astype(float), rtol=1e-12)
    rising = 1e-3 * np.linalg.eigh(even.astype(float))[1][:, 0]
    for rule, rises in ((wh.coupled_learning(), True), (wh.equilibrium_propagation(), False)):
        moved = velocity(rule, circuit, jnp.asarray(rising)[None, :])
        later = wh.Circuit(
            edges, circuit.conductances + 1e-3 * moved, sources=[0], outputs=[2, 3], ground=[1]
        )
        error = rising + (wh.predict(circuit, INPUTS) - wh.predict(later, INPUTS))[0]
        assert (float(error @ error) > float(rising @ rising)) == rises


@pytest.mark.slow
def test_feedback_alignment_carries_the_residual_back_by_other_parameters(monkeypatch):
    net, rows = wh.Network.random((3, 4, 3), seed=0), np.array([[0.2, 0.3, 0.5]])
    rule = wh.feedback_alignment(seed=4)
    loop = wh.closed_loop(net, rows, rule)
    by_adjoint = wh.response(net, rows, adjoint=rule.way(net))
    np.testing.assert_allclose(loop.reduced, by_adjoint.reduced(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(rule.way(net)[0].sum(axis=0), 1.0, rtol=1e-14)
    assert (rule.way(circuit())[0] > 0).all()
    assert not wh.certify(loop).reciprocal
    same = velocity(wh.feedback_alignment(seed=4), circuit())
    np.testing.assert_array_equal(velocity(wh.feedback_alignment(seed=4), circuit()), same)
    assert np.abs(velocity(wh.feedback_alignment(seed=5), circuit()) - same).max() > 1e-6


def numpy_rule(system, inputs, residual):
    """A rule that JAX cannot trace, with a part that is not linear in the residual."""
    straight = np.asarray(wh.response(system, inputs).velocities(np.asarray(residual))[0])
    return straight * (1 + float(np.sum(np.asarray(residual) ** 2)))


def test_a_function_of_the_users_is_probed_whether_jax_can_trace_it_or_not():
    system = circuit()
    K = by_hand(system)[0]
    loop = wh.closed_loop(system, INPUTS, numpy_rule)
    np.testing.assert_allclose(loop.reduced, K, rtol=1e-9, atol=1e-12)
    assert 1e-8 < loop.roundoff < 1e-3
    traced = wh.closed_loop(
        system,
        INPUTS,
        lambda system, inputs, residual: system.velocities(system.trace(inputs), residual),
    )
    np.testing.assert_allclose(traced.reduced, K, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_a_rule_is_probed_at_the_residual_that_is_given():
    system, rule = circuit(), wh.equilibrium_propagation(0.5)
    at_rest = wh.closed_loop(system, INPUTS, rule)
    away = wh.closed_loop(system, INPUTS, rule, residual=ERROR)
    step = 1e-6
    unit = np.eye(3)[1][None, :]
    ahead, behind = (velocity(rule, system, ERROR + way * step * unit) for way in (1, -1))
    moved = system.forward(system.trace(INPUTS), (jnp.asarray(ahead - behind) / (2 * step),))
    np.testing.assert_allclose(away.reduced[:, 1], moved[0], rtol=1e-6, atol=1e-9)
    K, Z = by_hand(system)
    np.testing.assert_allclose(at_rest.reduced, K @ np.linalg.inv(np.eye(3) + 0.5 * Z), rtol=1e-11)
    assert np.abs(away.reduced - at_rest.reduced).max() > 1e-4


@pytest.mark.slow
def test_in_single_precision_a_gradient_is_not_called_a_turn():
    edges, sizes = drawn(3)
    system = wh.Circuit(
        edges, sizes.astype(np.float32), sources=[0], outputs=[9, 10, 11], ground=[1]
    )
    inputs = np.ones((1, 1), dtype=np.float32)
    found = wh.certify(wh.closed_loop(system, inputs, wh.equilibrium_propagation()))
    assert found.verdict in ("reciprocal", "cannot tell")
    coupled = wh.certify(wh.closed_loop(system, inputs, wh.coupled_learning()))
    assert coupled.verdict == "gradient in another metric"


@pytest.mark.slow
def test_a_circuit_learns_by_every_rule_that_has_a_name():
    target = wh.predict(circuit(), INPUTS) + 0.2 * ERROR
    for entry in registry.rules:
        run = wh.learn(
            circuit(), INPUTS, target, rule=entry.make(), scale=0.1, epochs=20, seed=0, record=False
        )
        assert run.completed
        if entry.name != "feedback_alignment":
            assert float(run.final) < float(run.start), entry.name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wh.coupled_learning(-1.0), "nudge must be at least 0, but it is -1"),
        (lambda: wh.equilibrium_propagation(np.nan), "nudge must be finite"),
        (lambda: wh.equilibrium_propagation(centred=1), "centred must be True or False"),
        (lambda: wh.feedback_alignment(seed=0.5), "seed must be a whole number of at least 0"),
        (lambda: wh.feedback_alignment(spread=-1), "spread must be at least 0, but it is -1"),
        (
            lambda: wh.closed_loop(
                wh.Network.random((3, 3), seed=0), [[0.2, 0.3, 0.5]], wh.coupled_learning()
            ),
            "system must settle, as a Circuit does, to learn by coupled learning, but it is a Net",
        ),
        (lambda: wh.closed_loop(circuit(), INPUTS, "coupled"), "rule must be a Rule such as"),
        (lambda: wh.closed_loop(3, INPUTS, wh.coupled_learning()), "system must be a System"),
        (
            lambda: wh.closed_loop(circuit(), INPUTS, lambda *_: np.zeros(3)),
            r"rule must return velocities of the shapes \[\(24,\)\] of the blocks, but it returned",
        ),
        (
            lambda: wh.closed_loop(circuit(), INPUTS, lambda *_: np.full(24, np.nan)),
            "the velocity that the rule gives must be finite",
        ),
        (
            lambda: wh.closed_loop(circuit(), INPUTS, wh.coupled_learning(), residual=[[1.0]]),
            r"residual must have shape \(1, 3\), but its shape is \(1, 1\)",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_bad_rules_are_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
def test_a_probed_loop_goes_through_jit():
    rule = wh.coupled_learning()
    loop = jax.jit(lambda system: wh.closed_loop(system, INPUTS, rule).reduced)(circuit())
    np.testing.assert_allclose(loop, wh.closed_loop(circuit(), INPUTS, rule).reduced, rtol=1e-12)


def test_a_contrast_without_its_forces_is_refused_when_it_is_made():
    class Half(rules.Contrast):
        def force(self, system, inputs, residual, nudge):
            return residual

    with pytest.raises(TypeError, match="direction"):
        cast(Any, Half)(jnp.array(0.1), False)
