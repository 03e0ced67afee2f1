"""A learner takes the same path in every unit, and says when it no longer moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from whorl import geometry
from whorl.geometry import Flat, Positive, Simplex, block

EDGES = [[0, 1], [1, 2], [1, 3], [3, 2], [3, 4]]
SIZES = np.array([1.0, 0.4, 0.7, 2.0, 0.3])
X = np.array([[1.0, 0.5], [0.2, 0.9], [0.7, -0.4]])
Y = np.array([[0.3, 0.45], [0.2, 0.4], [0.1, 0.05]])
RULES = {
    "coupled": wh.coupled_learning(),
    "nudged": wh.coupled_learning(0.5),
    "propagation": wh.equilibrium_propagation(),
    "newton": wh.boundary(wh.repair()),
    "gradient": wh.exponentiated_gradient(),
    "geodesic": wh.natural_gradient(),
}


def circuit(mobility="flat", unit=1.0, time=1.0):
    return wh.Circuit(
        EDGES,
        unit * SIZES,
        sources=[0, 4],
        outputs=[1, 3],
        ground=[2],
        mobility=mobility,
        rates=time,
    )


class Mixed(wh.System):
    """Columns, positive numbers and numbers of any sign, in units of their own."""

    unit: jax.Array
    time: jax.Array
    columns: jax.Array = block(Simplex())
    gain: jax.Array = block(Positive(geometry.proportional))
    offset: jax.Array = block(Flat())

    @property
    def sizes(self):
        return 2, 2

    @property
    def block_rates(self):
        return (self.time, self.time, self.time)

    def outputs(self, inputs):
        return self.gain[None, :] * (inputs @ self.columns.T + jnp.tanh(self.offset)[None, :])


def same(one, other, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=rtol, atol=1e-300)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("mobility", ["flat", "proportional", "logarithmic"])
def test_a_circuit_learns_alike_in_every_unit_of_conductance_voltage_and_time(mobility, rule):
    def learned(unit=1.0, volt=1.0, time=1.0, batch=False):
        given = {"rule": RULES[rule], "scale": 0.3, "epochs": 8, "seed": 0, "full_batch": batch}
        return wh.learn(circuit(mobility, unit, time), volt * X, volt * Y, **given)

    for batch in (False, True) if rule == "coupled" else (False,):
        plain = learned(batch=batch)
        for unit, volt, time in [(1e3, 1, 1), (1, 1e-3, 1), (1e-6, 40, 7)]:
            other = learned(unit, volt, time, batch)
            same(plain.system.conductances * unit, other.system.conductances, 1e-7)
            same(plain.losses * volt**2, other.losses, 1e-6)


@pytest.mark.parametrize("mobility", ["flat", "logarithmic"])
@pytest.mark.parametrize(
    "policy",
    [
        lambda law: wh.native(0.3, law=law),
        lambda law: wh.step_matched(0.3, law=law),
        lambda law: wh.adaptive(0.3, gate="always", law=law),
        lambda law: wh.rollout(0.3, horizon=3, law=law),
        lambda law: wh.costate(0.3, horizon=3, law=law),
    ],
    ids=["native", "step_matched", "adaptive", "rollout", "costate"],
)
def test_a_pair_of_circuits_learns_alike_in_every_unit(mobility, policy):
    def trained(unit=1.0, volt=1.0, time=1.0):
        law = wh.rotational(base=wh.repair())
        given = {"policy": policy(law), "epochs": 3, "seed": 0}
        return wh.train(circuit(mobility, unit, time), volt * X, volt * Y, **given)

    plain = trained()
    for unit, volt, time in [(1e-6, 40, 7)]:
        other = trained(unit, volt, time)
        for one, two in zip(plain.losses, other.losses, strict=True):
            same(one * volt**2, two, 1e-6)


@pytest.mark.parametrize("size", [None, 2.0])
def test_numbers_of_any_sign_learn_alike_in_every_unit_of_time_and_of_their_own(size):
    class Line(wh.System):
        weights: jax.Array = block(Flat(size=size))
        unit: float = 1.0

        @property
        def sizes(self):
            return 2, 2

        @property
        def block_rates(self):
            return (jnp.asarray(self.unit**2),)

        def outputs(self, inputs):
            return inputs @ jnp.tanh(self.weights / self.unit).T

    start = np.array([[0.3, -0.2], [0.0, 0.5]])
    given = {"rule": wh.exponentiated_gradient(), "scale": 0.3, "epochs": 9, "seed": 0}
    plain = wh.learn(Line(jnp.asarray(start)), X, Y, **given)
    assert plain.final < plain.start / 3
    if size is None:
        other = wh.learn(Line(jnp.asarray(start * 1e4), 1e4), X, Y, **given)
        same(plain.losses, other.losses)


def test_a_system_of_columns_and_positive_and_other_numbers_learns_alike_in_every_unit():
    def learned(volt=1.0, time=1.0):
        one = jnp.asarray(1.0)
        columns = jnp.array([[0.6, 0.3], [0.4, 0.7]])
        system = Mixed(one, one * time, columns, volt * jnp.ones(2), jnp.zeros(2))
        rule = wh.boundary(wh.repair())
        return wh.learn(system, X, volt * Y, rule=rule, scale=0.2, epochs=10, seed=0)

    plain = learned()
    assert plain.final < plain.start
    same(plain.losses, learned(time=1e5).losses, 1e-7)


def test_one_update_never_changes_a_conductance_by_more_than_its_scale():
    run = wh.learn(circuit(unit=1e-3), X, Y, rule=RULES["coupled"], scale=0.5, epochs=1, seed=0)
    moved = np.log(np.asarray(run.system.conductances) / (1e-3 * SIZES))
    assert np.abs(moved).max() <= 0.5 * run.made * (1 + 1e-12)


def test_a_start_near_the_optimum_is_not_left():
    targets = np.asarray(wh.predict(circuit(), X)) * (1 + 1e-9)
    for rule in RULES.values():
        run = wh.learn(circuit(), X, targets, rule=rule, scale=0.3, epochs=20, seed=0)
        assert run.final <= run.start


def test_a_learner_that_no_longer_moves_stops_and_says_so():
    sizes = [1e-3, 1 / 3e3, 5e-4, 1e-3, 2e-4]
    edges = [[0, 1], [1, 2], [1, 3], [4, 3], [3, 2]]
    bridge = wh.Circuit(edges, sizes, sources=[0, 4], outputs=[1, 3], ground=[2])
    given = {"rule": wh.coupled_learning(), "scale": 0.5, "schedule": [0] * 500}
    run = wh.learn(bridge, [[1.0, 0.5]], [[0.3, 0.45]], **given)
    assert run.made < 200
    assert bool(run.stalled)
    assert not run.completed
    assert f"stopped at update {run.made}: the step fell below" in str(run)
    assert "stopped at update" in repr(run)
    assert len(run.losses) == len(run.steps) == run.made
    # No conductance runs away meanwhile.
    assert np.asarray(run.system.conductances).min() > 1e-30
    pair = wh.train(
        bridge,
        [[1.0, 0.5]],
        [[0.3, 0.45]],
        policy=wh.native(0.5, law=wh.rotational(base=wh.direct())),
        schedule=[0] * 500,
        turns=[1] * 500,
    )
    assert bool(pair.stalled) == (not pair.completed)
    assert ("the step fell below" in str(pair)) == (not pair.completed)
