"""The page on transformations, row by row.

What it says works agrees with the plain call and with differences; the rest is refused.
"""

import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh

PAGE = Path(__file__).parent.parent / "docs" / "howto" / "transform.md"
MODES = ("jit", "vmap", "forward", "reverse")
LINES = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| `")
]
NAMES = [re.findall(r"`([\w.]+)` \(", line[0]) for line in LINES]
ROWS = {
    name: dict.fromkeys(MODES, {"all": "yes", "none": "no"}[line[1]])
    for names, line in zip(NAMES, LINES, strict=True)
    for name in names
}
UNTRIED = {
    "block",  # declares, and computes nothing
    "from_netlist",  # text
    "to_netlist",
    "gyrating",  # the page says nothing of these yet
    "feedback_alignment",
    "adjoint_coupled_learning",
}
PUBLIC = [
    name for name, value in vars(wh).items() if inspect.isfunction(value) and name not in UNTRIED
]
QUICK = (
    "predict",
    "closed_loop",
    "certify",
    "learn",
    "repair",
    "stack",
    "learn_many",
    "train_many",
    "Network.random",
    "Task.random",
    "quarter_turn",
)

TASK = wh.Task.random(3, 3, seed=1)
X, Y = TASK.inputs[3:5], TASK.targets[3:5]  # two mixtures: every column is moved
NET = wh.Network.random((3, 3), seed=0, floor=0.1)
ERROR = wh.residual(NET, X, Y)
POINT = (jnp.array([0.5, 0.3, 0.2]),)
LOOP = (jnp.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]),)
STILL = jnp.array([0.01, -0.03, 0.02])  # moves no mass


def field(point):
    return (jnp.roll(jnp.log(point[0]), 1) ** 2,)


def driven(layers, selected=0):
    return wh.response(NET.with_blocks(layers), X, selected=selected)


def trained(policy):
    return wh.train(NET, X, Y, policy=policy, epochs=2, seed=0).nonreciprocal.layers


def learned(rule, layers=NET.layers, scale=0.2, **given):
    run = wh.learn(NET.with_blocks(layers), X, Y, rule=rule, scale=scale, epochs=2, seed=0, **given)
    return run.system.layers, run.final


class Case(NamedTuple):
    """A function of one tree of arrays, where it is tried, and a direction in which the tree may
    move.
    """

    call: Any
    at: Any
    along: Any


def over_layers(call):
    """Layers move without moving mass."""
    along = tuple(jnp.outer(STILL, jnp.array([1.0, 2.0, -1.5])) for p in NET.layers)
    return Case(call, NET.layers, along)


def over_number(call, at=0.2):
    return Case(call, jnp.asarray(at), jnp.asarray(0.1))


def over_point(call):
    return Case(call, POINT, (STILL,))


def law(make):
    return over_layers(
        lambda layers: make(driven(layers), wh.residual(NET.with_blocks(layers), X, Y)[:1])
    )


def over_circuit(rule):
    """Conductances move; the loop that a rule makes with a bridge."""
    edges = [[0, 2], [2, 1], [0, 3], [3, 1], [2, 3]]
    sizes = jnp.array([1.0, 0.7, 0.4, 1.5, 0.9])
    bridge = wh.Circuit(edges, sizes, sources=[0], outputs=[2, 3], ground=[1])

    def call(sizes):
        return wh.closed_loop(bridge.with_blocks((sizes,)), jnp.ones((1, 1)), rule).reduced

    return Case(call, sizes, jnp.linspace(-0.1, 0.2, 5))


def through(unit):
    net = wh.Network.random((3, 3, 3), seed=0, floor=0.1)
    return over_number(lambda number: wh.predict(wh.Transport(net, unit(number)), X), 1.5)


def account(layers):
    return wh.train(
        NET.with_blocks(layers), X, Y, policy=wh.adaptive(0.1), epochs=2, seed=0
    ).ledger.sums.total


def pairs_trained(layers):
    nets = wh.stack([NET.with_blocks(layers)] * 2)
    data = (jnp.stack([X, X]), jnp.stack([Y, Y]))
    return wh.train_many(
        nets, *data, policy=wh.native(0.1), schedule=[[0, 1]] * 2, turns=[[1, 1]] * 2
    ).final


def learners_trained(layers):
    nets = wh.stack([NET.with_blocks(layers)] * 2)
    data = (jnp.stack([X, X]), jnp.stack([Y, Y]))
    rule = wh.exponentiated_gradient()
    return wh.learn_many(nets, *data, rule=rule, scale=0.1, schedule=[[0, 1]] * 2).final


CASES = {
    "Network": over_layers(lambda layers: wh.predict(wh.Network(layers), X)),
    "Network.random": over_number(
        lambda beta: wh.Network.random((3, 3), seed=0, imbalance=beta).layers
    ),
    "Task.random": over_number(
        lambda spread: wh.Task.random(3, 3, seed=0, concentration=spread).targets
    ),
    "adaptive": over_number(lambda scale: trained(wh.adaptive(scale, omega=5 * scale))),
    "boundary": over_number(lambda mu: learned(wh.boundary(wh.leaky(mu)))),
    "certify": over_layers(
        lambda layers: wh.certify(wh.closed_loop(driven(layers), wh.leaky(0.1))).skew
    ),
    "circulation": Case(
        lambda loop: wh.circulation(field, loop),
        LOOP,
        (jnp.outer(jnp.array([1.0, -0.5, 0.2]), STILL),),
    ),
    "closed_loop": over_layers(
        lambda layers: (
            wh.closed_loop(driven(layers), wh.rotational(1.0, 2.0, base=wh.leaky(0.1))).reduced
        )
    ),
    "competition": through(wh.competition),
    "contrastive_learning": over_circuit(wh.contrastive_learning()),
    "coupled_learning": over_circuit(wh.coupled_learning()),
    "critical": law(wh.critical()),
    "equilibrium_propagation": over_circuit(wh.equilibrium_propagation()),
    "geometric": law(wh.geometric()),
    "paired": law(wh.paired()),
    "rate_bounds": over_layers(lambda layers: wh.rate_bounds(driven(layers)).reciprocal),
    "saturating": through(wh.saturating),
    "costate": over_number(lambda scale: trained(wh.costate(scale, horizon=1, order=2))),
    "curvature": over_layers(
        lambda layers: wh.curvature(NET.with_blocks(layers), X, Y, selected=0).coefficient
    ),
    "direct": law(wh.direct()),
    "dissipation": over_layers(
        lambda layers: (
            wh.dissipation(wh.closed_loop(driven(layers, None), wh.leaky(0.1)), ERROR).total
        )
    ),
    "even_difference": over_number(
        lambda size: wh.even_difference(NET, X, Y, selected=0, step=size)
    ),
    "exponentiated_gradient": over_layers(
        lambda layers: learned(wh.exponentiated_gradient(), layers)
    ),
    "exterior_derivative": over_point(lambda point: wh.exterior_derivative(field, point)),
    "flow": over_layers(
        lambda layers: wh.flow(NET.with_blocks(layers), X, Y, wh.leaky(0.1), [0.0, 0.5]).residual
    ),
    "gauss_newton": over_number(lambda mu: learned(wh.gauss_newton(mu))),
    "integrability": over_point(lambda point: wh.integrability(field, point).rotation),
    "krylov": law(wh.krylov(wh.leaky(0.1))),
    "learn_many": over_layers(learners_trained),
    "leaky": over_number(lambda mu: wh.leaky(mu)(driven(NET.layers), ERROR[:1])),
    "learn": over_layers(lambda layers: learned(wh.natural_gradient(), layers)),
    "loss": over_layers(lambda layers: wh.loss(NET.with_blocks(layers), X, Y)),
    "total_loss": over_layers(lambda layers: wh.total_loss(NET.with_blocks(layers), X, Y)),
    "faced": over_layers(lambda layers: wh.predict(wh.faced(NET.with_blocks(layers)), X)),
    "native": over_number(lambda scale: trained(wh.native(scale))),
    "natural_gradient": over_number(
        lambda scale: learned(wh.natural_gradient(), scale=scale, full_batch=True)
    ),
    "one_form": over_point(lambda point: wh.one_form(field, point)),
    "preconditioner": over_layers(
        lambda layers: wh.preconditioner(driven(layers), wh.leaky(0.1)) @ NET.layers
    ),
    "predict": over_layers(lambda layers: wh.predict(NET.with_blocks(layers), X)),
    "quarter_turn": over_number(wh.quarter_turn, 3.0),
    "repair": law(wh.repair()),
    "residual": over_layers(lambda layers: wh.residual(NET.with_blocks(layers), X, Y)),
    "response": over_layers(lambda layers: driven(layers, None) @ ERROR),
    "rock_paper_scissors": over_point(wh.rock_paper_scissors),
    "rollout": over_number(
        lambda scale: trained(
            wh.rollout(scale, horizon=2, actions=[(0.0, 1.0), (5 * scale, 1.0), (-1.0, 0.5)])
        )
    ),
    "rotational": over_number(
        lambda omega: wh.rotational(5 * omega, omega)(driven(NET.layers), ERROR[:1])
    ),
    "sample_turn": over_number(lambda samples: wh.sample_turn(samples, 2), 2.0),
    "spectral": law(wh.spectral(jnp.sqrt)),
    "stack": over_layers(lambda layers: wh.stack([NET, NET.with_blocks(layers)]).layers),
    "step_matched": over_number(lambda scale: trained(wh.step_matched(scale))),
    "train": over_layers(account),
    "train_many": over_layers(pairs_trained),
    "turn_scores": over_layers(
        lambda layers: wh.turn_scores(NET.with_blocks(layers), X, Y, selected=0)
    ),
    "turn_velocities": over_layers(
        lambda layers: wh.turn_velocities(NET.with_blocks(layers), X, Y, selected=0)
    ),
}


def moved(case, size):
    return jax.tree.map(lambda at, along: at + size * along, case.at, case.along)


def close(found, wanted, share=1e-12):
    """Trees of arrays agree to a share of the largest number."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(
            one, other, rtol=0, atol=share * max(1e-3, float(np.abs(other).max()))
        )


def slope(case):
    """A central difference of step 1e-4.

    Right to 1e-8 times a third derivative, and to what a solver's tolerance of 1e-10 leaves.
    """
    return jax.tree.map(
        lambda up, down: (up - down) / 2e-4,
        case.call(moved(case, 1e-4)),
        case.call(moved(case, -1e-4)),
    )


def tried(case, mode):
    """What one mode gives."""
    if mode == "jit":
        return jax.jit(case.call)(case.at)
    if mode == "vmap":
        return jax.vmap(case.call)(
            jax.tree.map(lambda *both: jnp.stack(both), case.at, moved(case, 1.0))
        )
    if mode == "forward":
        return jax.jvp(case.call, (case.at,), (case.along,))[1]
    out, back = jax.vjp(case.call, case.at)
    weights = jax.tree.map(
        lambda leaf: jnp.cos(jnp.arange(leaf.size, dtype=leaf.dtype)).reshape(leaf.shape), out
    )
    return dotted(back(weights)[0], case.along), weights


def dotted(one, other):
    return sum(
        float(jnp.sum(a * b))
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def check(case, mode):
    if mode == "jit":
        close(tried(case, mode), case.call(case.at))
    elif mode == "vmap":
        both = jax.tree.map(
            lambda *parts: jnp.stack(parts), case.call(case.at), case.call(moved(case, 1.0))
        )
        close(tried(case, mode), both)
    elif mode == "forward":
        close(tried(case, mode), slope(case), 1e-6)
    else:
        (found, weights), wanted = tried(case, mode), slope(case)
        largest = max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(wanted))
        assert found == pytest.approx(dotted(weights, wanted), abs=1e-6 * max(1e-3, largest))


def test_the_page_has_a_row_for_every_public_function_and_for_nothing_else():
    assert set(PUBLIC) <= set(ROWS)
    assert set(ROWS) == set(CASES)
    for names in NAMES:
        assert names == sorted(names, key=lambda name: (name[0].islower(), name))
    assert sum(map(len, NAMES)) == len(ROWS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ROWS]
)
@pytest.mark.usefixtures("as_users_call_it")
def test_a_cell_of_the_page_is_true(name, mode):
    if ROWS[name][mode] == "yes":
        check(CASES[name], mode)
        return
    with pytest.raises(ValueError) as caught:
        tried(CASES[name], mode)
    assert caught.type is ValueError  # JAX's own errors are of its own kinds
    assert re.fullmatch(r"[^\n]* must [^\n]*, but [^\n]*", str(caught.value))


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_value_or_derivative_would_be_found(mode):
    @jax.custom_jvp
    def wrong(x):
        return x**2 if not isinstance(x, jax.core.Tracer) else x**2 * (1 + 1e-4)

    wrong.defjvp(lambda primal, tangent: (primal[0] ** 2, 2.001 * primal[0] * tangent[0]))
    with pytest.raises(AssertionError):
        check(over_number(wrong, 1.0), mode)


@pytest.mark.usefixtures("as_users_call_it")
def test_verdicts_of_traced_results_are_refused_in_one_sentence():
    asked = {
        "the spectrum must be known": lambda layers: driven(layers).spectrum().rank,
        "the coefficient must be known": lambda layers: (
            wh.curvature(NET.with_blocks(layers), X, Y, selected=0).favourable
        ),
        "the ratio must be known": lambda layers: (
            wh.curvature(NET.with_blocks(layers), X, Y, selected=0).predicted
        ),
        "the loop must be made outside": lambda layers: wh.closed_loop(
            driven(layers), wh.direct()
        ).restricted(),
    }
    for sentence, call in asked.items():
        with pytest.raises(ValueError, match=re.escape(sentence)):
            jax.eval_shape(call, NET.layers)
    with pytest.raises(ValueError, match="tol must be known"):
        jax.eval_shape(lambda tol: wh.repair(tol=tol)(driven(NET.layers), ERROR[:1]), 0.1)
    with pytest.raises(ValueError, match="the rotation must be known"):
        jax.eval_shape(lambda point: wh.integrability(field, point).closed, POINT)


@pytest.mark.slow
def test_a_natural_gradient_has_derivatives_where_a_vertex_leaves_columns_at_rest():
    def end(layers):
        run = wh.learn(
            NET.with_blocks(layers),
            TASK.inputs,
            TASK.targets,
            rule=wh.natural_gradient(),
            scale=0.2,
            epochs=1,
            seed=0,
        )
        return run.system.layers

    check(over_layers(end), "forward")


@pytest.mark.slow
def test_runs_can_be_mapped_over_schedules_and_turns():
    orders, turns = np.array([[0, 1, 0], [1, 1, 0]]), np.array([[1, -1, 1], [-1, -1, 1]])

    def end(order, senses):
        pair = wh.train(
            NET, X, Y, policy=wh.adaptive(0.2, gate="always"), schedule=order, turns=senses
        )
        return pair.nonreciprocal.layers, pair.made, pair.completed

    layers, made, completed = jax.vmap(end)(orders, turns)
    assert made.tolist() == [3, 3]
    assert completed.tolist() == [True, True]
    for number in range(2):
        close([layer[number] for layer in layers], end(orders[number], turns[number])[0])


@pytest.mark.slow
def test_a_compiled_run_that_stops_early_keeps_empty_rows():
    net = wh.Network([np.full((3, 3), 1 / 3)])

    def run(targets):
        return wh.train(
            net,
            X,
            targets,
            policy=wh.native(2000.0),
            schedule="fixed",
            epochs=2,
            turns=[1] * 4,
            stride=1,
        )

    plain, compiled = run(Y), jax.jit(run)(Y)
    assert int(compiled.made) == plain.made < 4
    assert not compiled.completed
    assert compiled.status == plain.status
    assert not np.any(compiled.updates.step[plain.made :])
    close(compiled.nonreciprocal.layers, plain.nonreciprocal.layers)


@pytest.mark.slow
def test_a_compiled_flow_that_cannot_arrive_says_so():
    call = jax.jit(
        lambda layers: (
            wh.flow(NET.with_blocks(layers), X, Y, wh.leaky(0.1), [0.0, 3.0], max_steps=2).residual
        )
    )
    with pytest.raises(
        RuntimeError, match="max_steps must be enough to reach the last time, but 2 steps were not"
    ):
        call(NET.layers)
