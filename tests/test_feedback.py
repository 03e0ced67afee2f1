"""The boundary laws against dense algebra on the whole space of fields, and what they refuse."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given

import oracle
import systems
import whorl as wh
from strategies import problems

TASK = wh.Task.random(3, 3, seed=1)
INPUTS, TARGETS = np.asarray(TASK.inputs), np.asarray(TASK.targets)
RATES = {1: 0.5, 2: [np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 0.2])], 4: 1.0}
NETS = {
    depth: wh.Network.random([3] * (depth + 1), seed=2, floor=0.1, rates=rates)
    for depth, rates in RATES.items()
}
PLANE = oracle.zero_sum(1, 3)
TURN = oracle.three_port()


def test_the_direct_law_applies_the_residual_itself():
    error = np.asarray(wh.residual(NETS[2], INPUTS, TARGETS))
    np.testing.assert_allclose(
        wh.direct()(wh.response(NETS[2], INPUTS), error), error, rtol=0, atol=1e-15
    )


def test_a_law_ignores_what_is_constant_over_the_outputs_of_a_sample():
    driven, error = wh.response(NETS[2], INPUTS), np.arange(18.0).reshape(6, 3) ** 2
    whole = wh.leaky(0.1)(driven, error)
    np.testing.assert_allclose(
        wh.leaky(0.1)(driven, error + np.arange(6.0)[:, None]),
        whole,
        rtol=0,
        atol=1e-12 * np.abs(whole).max(),
    )
    np.testing.assert_allclose(np.sum(whole, axis=1), 0, atol=1e-12 * np.abs(whole).max())


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("rows", [slice(None), slice(3, 4)])
def test_repair_is_the_pseudo_inverse(depth, rows):
    net, x, y = NETS[depth], INPUTS[rows], TARGETS[rows]
    matrix = oracle.response(*oracle.arrays(net), x)
    inverse = np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
    potential = wh.repair()(wh.response(net, x), wh.residual(net, x, y))
    wanted = inverse @ (y - oracle.predict(oracle.arrays(net)[0], x)).ravel()
    # An inverse is known to the condition number times the round-off of what it inverts.
    slack = 1e-14 * np.linalg.norm(matrix, 2) * np.linalg.norm(inverse, 2)
    np.testing.assert_allclose(
        np.ravel(potential), wanted, rtol=0, atol=slack * np.abs(wanted).max()
    )


def test_repair_leaves_the_modes_below_its_tolerance():
    matrix = oracle.response(*oracle.arrays(NETS[2]), INPUTS)
    error = np.asarray(wh.residual(NETS[2], INPUTS, TARGETS))
    values, modes = np.linalg.eigh(matrix)
    strong = modes[:, values > 0.2 * values[-1]]
    assert 0 < strong.shape[1] < 6
    answer = matrix @ np.ravel(wh.repair(tol=0.2)(wh.response(NETS[2], INPUTS), error))
    np.testing.assert_allclose(answer, strong @ strong.T @ error.ravel(), rtol=0, atol=1e-14)


def test_repair_of_a_network_that_cannot_move_does_nothing():
    frozen = wh.Network([np.eye(3)], support=[np.eye(3) > 0])
    potential = wh.repair()(wh.response(frozen, INPUTS), wh.residual(frozen, INPUTS, TARGETS))
    np.testing.assert_array_equal(potential, np.zeros((6, 3)))


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("mu", [1e-3, 0.1, 10.0])
def test_leaky_is_the_damped_inverse(depth, mu):
    net = NETS[depth]
    matrix = oracle.response(*oracle.arrays(net), INPUTS)
    error = np.asarray(wh.residual(net, INPUTS, TARGETS))
    wanted = np.linalg.solve(matrix + mu * np.eye(18), error.ravel())
    potential = wh.leaky(mu)(wh.response(net, INPUTS), error)
    np.testing.assert_allclose(
        np.ravel(potential), wanted, rtol=0, atol=1e-12 * np.abs(wanted).max()
    )


@pytest.mark.parametrize(
    ("r", "wanted"),
    [
        (lambda x: jnp.exp(-x), lambda x: np.exp(-x)),
        (lambda x: x / (1 + x), lambda x: x / (1 + x)),
        (lambda x: x**2, lambda x: x**2),
        (lambda x: np.ones(x.shape), lambda x: np.ones(x.shape)),
    ],
)
def test_a_spectral_law_weighs_every_mode_by_its_function(r, wanted):
    matrix = oracle.response(*oracle.arrays(NETS[2]), INPUTS)
    error = np.asarray(wh.residual(NETS[2], INPUTS, TARGETS))
    potential = wh.spectral(r)(wh.response(NETS[2], INPUTS), error)
    np.testing.assert_allclose(
        np.ravel(potential), oracle.spectral(matrix, wanted) @ error.ravel(), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_square_root_of_a_response_is_a_spectral_law(depth):
    net = NETS[depth]
    matrix = oracle.response(*oracle.arrays(net), INPUTS[3:4])
    error = np.asarray(wh.residual(net, INPUTS, TARGETS))[3:4]
    law = wh.spectral(jnp.sqrt)
    twice = law(
        wh.response(net, INPUTS, selected=3), law(wh.response(net, INPUTS, selected=3), error)
    )
    np.testing.assert_allclose(np.ravel(twice), matrix @ error.ravel(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("law", "r"),
    [
        (wh.direct(), lambda x: jnp.ones_like(x)),
        (wh.leaky(0.1), lambda x: 1 / (x + 0.1)),
        (wh.repair(), lambda x: jnp.where(x > 1e-10 * x[0], 1 / x, 0.0)),
    ],
)
def test_direct_leaky_and_repair_are_spectral_laws(law, r):
    driven, error = wh.response(NETS[2], INPUTS), wh.residual(NETS[2], INPUTS, TARGETS)
    potential = law(driven, error)
    np.testing.assert_allclose(
        wh.spectral(r)(driven, error), potential, rtol=0, atol=1e-12 * np.abs(potential).max()
    )
    np.testing.assert_array_equal(
        law.weight(jnp.array([2.0, 0.5, 0.1])), r(jnp.array([2.0, 0.5, 0.1]))
    )


@pytest.mark.slow
@given(problems(sparse=False))
def test_every_spectral_law_is_that_function_of_the_response(problem):
    # Functions with slopes of order one move by no more than the round-off of K, whatever its
    # columns: |K| stays below 100 with rates up to 10, so that 1e-12 is a hundred times that. A
    # leak of 1 bounds the inverse by 1, and its slope too.
    # and its slope too.
    net, x, y = problem
    matrix = oracle.response(*oracle.arrays(net), x)
    error = y - oracle.predict(oracle.arrays(net)[0], x)
    driven = wh.response(net, x)
    for law, r in (
        (wh.direct(), np.ones_like),
        (wh.leaky(1.0), lambda k: 1 / (k + 1)),
        (wh.spectral(lambda k: jnp.exp(-k)), lambda k: np.exp(-k)),
    ):
        wanted = (oracle.spectral(matrix, r) @ error.ravel()).reshape(error.shape)
        np.testing.assert_allclose(law(driven, error), wanted, rtol=0, atol=1e-12)


@given(problems(sparse=False))
def test_repair_undoes_the_strong_part_of_any_response(problem):
    # A mode may be told from a weak one when its eigenvalue clears the tolerance by a factor of two
    # on one side or the other; the kept part is then known to about eps / tol, 1e-12.
    net, x, y = problem
    matrix, tol = oracle.response(*oracle.arrays(net), x), 1e-3
    values, modes = np.linalg.eigh(matrix)
    assume(
        values[-1] > 1e-4
    )  # the oracle forms Q(p) by a subtraction: of a smaller response it knows too few digits
    assume(not ((values > tol / 2 * values[-1]) & (values < 2 * tol * values[-1])).any())
    strong = modes[:, values > tol * values[-1]]
    error = y - oracle.predict(oracle.arrays(net)[0], x)
    answer = matrix @ np.ravel(wh.repair(tol=tol)(wh.response(net, x), error))
    np.testing.assert_allclose(answer, strong @ strong.T @ error.ravel(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize(("alpha", "omega"), [(1.0, 1.0), (0.3, -2.0), (2.0, 0.0)])
def test_the_rotational_law_closes_the_loop_it_promises(depth, alpha, omega):
    net = NETS[depth]
    matrix, driven = (
        oracle.response(*oracle.arrays(net), INPUTS[3:4]),
        wh.response(net, INPUTS, selected=3),
    )
    law = wh.rotational(alpha, omega)
    loop = matrix @ np.array([np.ravel(law(driven, unit[None])) for unit in np.eye(3)]).T
    np.testing.assert_allclose(loop, alpha * PLANE + omega * TURN, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("alpha", "omega"), [(1.0, 1.0), (0.3, -2.0), (2.0, 0.0)])
def test_the_mixer_is_relaxation_plus_a_turn(alpha, omega):
    mixer = np.asarray(wh.rotational(alpha, omega).mixer(wh.response(NETS[1], INPUTS, selected=3)))
    first, second = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    np.testing.assert_allclose(
        mixer, [[alpha, -omega], [omega, alpha]], rtol=0, atol=1e-15
    )  # C sends the first axis to the second
    lifted = np.stack([first, second], axis=1) @ mixer @ np.stack([first, second])
    np.testing.assert_allclose(lifted, alpha * PLANE + omega * TURN, rtol=0, atol=1e-15)


def test_the_rotational_law_through_a_leak_turns_and_leaks():
    matrix, driven = (
        oracle.response(*oracle.arrays(NETS[2]), INPUTS[3:4]),
        wh.response(NETS[2], INPUTS, selected=3),
    )
    law = wh.rotational(0.7, 1.5, base=wh.leaky(0.2))
    loop = matrix @ np.array([np.ravel(law(driven, unit[None])) for unit in np.eye(3)]).T
    wanted = matrix @ np.linalg.inv(matrix + 0.2 * np.eye(3)) @ (0.7 * PLANE + 1.5 * TURN)
    np.testing.assert_allclose(loop, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("outputs", [4, 5])
def test_the_rotational_law_turns_with_more_outputs(outputs):
    net, x = wh.Network.random([3, outputs], seed=4), INPUTS[3:4]
    matrix, law = oracle.response(*oracle.arrays(net), x), wh.rotational(0.5, 2.0)
    loop = (
        matrix
        @ np.array([np.ravel(law(wh.response(net, x), unit[None])) for unit in np.eye(outputs)]).T
    )
    np.testing.assert_allclose(
        loop, 0.5 * oracle.zero_sum(1, outputs) + 2.0 * wh.quarter_turn(outputs), rtol=0, atol=1e-12
    )


def test_the_rotational_law_takes_a_skew_matrix_of_the_users_own():
    net, x = wh.Network.random([3, 4], seed=4), INPUTS[3:4]
    draw = np.random.default_rng(5).standard_normal((4, 4))
    skew = oracle.zero_sum(1, 4) @ (draw - draw.T) @ oracle.zero_sum(1, 4)
    matrix, law = oracle.response(*oracle.arrays(net), x), wh.rotational(0.5, 2.0, skew=skew)
    loop = (
        matrix @ np.array([np.ravel(law(wh.response(net, x), unit[None])) for unit in np.eye(4)]).T
    )
    np.testing.assert_allclose(loop, 0.5 * oracle.zero_sum(1, 4) + 2.0 * skew, rtol=0, atol=1e-12)


def test_two_outputs_turn_across_samples():
    net, x = wh.Network.random([2, 2], seed=4), np.array([[1.0, 0.0], [0.4, 0.6]])
    matrix, law = (
        oracle.response(*oracle.arrays(net), x),
        wh.rotational(0.5, 2.0, skew=wh.sample_turn(2, 2)),
    )
    loop = (
        matrix
        @ np.array([np.ravel(law(wh.response(net, x), unit.reshape(2, 2))) for unit in np.eye(4)]).T
    )
    np.testing.assert_allclose(
        loop, 0.5 * oracle.zero_sum(2, 2) + 2.0 * wh.sample_turn(2, 2), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("base", [wh.repair(), wh.leaky(0.3)])
def test_the_rotational_law_is_its_reciprocal_part_plus_omega_times_its_unit_turn(base):
    driven, error = (
        wh.response(NETS[2], INPUTS, selected=3),
        np.asarray(wh.residual(NETS[2], INPUTS, TARGETS))[3:4],
    )
    law = wh.rotational(0.7, -1.5, base=base)
    straight, turned = law.parts(driven, error)
    np.testing.assert_allclose(straight - 1.5 * turned, law(driven, error), rtol=0, atol=1e-13)
    np.testing.assert_allclose(straight, 0.7 * base(driven, error), rtol=0, atol=1e-13)
    np.testing.assert_allclose(turned, base(driven, error @ TURN.T), rtol=0, atol=1e-13)


EVERY = [
    wh.direct(),
    wh.repair(),
    wh.leaky(0.1),
    wh.spectral(jnp.exp),
    wh.rotational(1.0, 2.0),
    wh.rotational(base=wh.leaky(0.1)),
]


@pytest.mark.parametrize("law", EVERY)
def test_a_law_is_the_same_when_compiled(law):
    net, error = NETS[2], wh.residual(NETS[2], INPUTS, TARGETS)[3:4]
    compiled = jax.jit(
        lambda layers, e: law(wh.response(net.with_blocks(layers), INPUTS, selected=3), e)
    )(net.layers, error)
    np.testing.assert_allclose(
        compiled, law(wh.response(net, INPUTS, selected=3), error), rtol=0, atol=1e-13
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("law", EVERY)
def test_a_law_acts_on_a_stack_of_networks_as_on_each(law):
    nets = [wh.Network.random([3, 3, 3], seed=seed, floor=0.1) for seed in (5, 6)]
    error = wh.residual(NETS[2], INPUTS, TARGETS)[3:4]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    together = jax.vmap(lambda net: law(wh.response(net, INPUTS, selected=3), error))(stack)
    apart = [law(wh.response(net, INPUTS, selected=3), error) for net in nets]
    np.testing.assert_allclose(together, np.stack(apart), rtol=0, atol=1e-12)


@pytest.mark.parametrize("law", [wh.leaky(0.1), wh.rotational(1.0, 2.0)])
def test_a_law_keeps_the_precision_of_its_network(law):
    net = wh.Network.random([3, 3], seed=2, dtype=np.float32)
    error = np.array([[0.1, -0.2, 0.1]])
    potential = law(wh.response(net, INPUTS.astype(np.float32), selected=3), error)
    assert potential.dtype == np.float32
    exact = law(wh.response(wh.Network.random([3, 3], seed=2), INPUTS, selected=3), error)
    np.testing.assert_allclose(potential, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize(
    ("r", "sentence"),
    [
        (
            lambda x: -x,
            r"r must be finite and non-negative on the spectrum, but r\(0\.\d+\) is -0\.\d+$",
        ),
        (lambda x: 1 / x, r"r must be finite and non-negative on the spectrum, but r\(0\) is inf$"),
        (lambda x: x / x, r"r must be finite and non-negative on the spectrum, but r\(0\) is nan$"),
        (
            lambda x: x[:-1],
            r"r must return one number an eigenvalue, \(12,\), but it returned the shape \(11,\)$",
        ),
        (
            lambda x: 1.0,
            r"r must return one number an eigenvalue, \(12,\), but it returned the shape \(\)$",
        ),
    ],
)
def test_a_function_that_is_no_feedback_strength_is_refused(r, sentence):
    with pytest.raises(ValueError, match=sentence):
        wh.spectral(r)(wh.response(NETS[1], INPUTS), wh.residual(NETS[1], INPUTS, TARGETS))


@pytest.mark.parametrize("seed", range(20))
def test_the_plain_inverse_of_a_response_with_one_dead_mode_is_refused(seed):
    apart = np.array([[True, True, False], [True, True, False], [False, False, True]])
    net = wh.Network.random([3, 3], seed=seed, support=[apart])
    with pytest.raises(
        ValueError, match=r"r must be finite and non-negative on the spectrum, but r\(0\) is inf$"
    ):
        wh.spectral(lambda x: 1 / x)(
            wh.response(net, np.array([[0.2, 0.3, 0.5]])), np.array([[0.1, 0.1, -0.2]])
        )


@pytest.mark.parametrize(
    ("law", "sentence"),
    [
        (lambda: wh.leaky(0.0), "mu must be greater than 0, but it is 0$"),
        (lambda: wh.leaky(-0.5), "mu must be greater than 0, but it is -0.5$"),
        (lambda: wh.leaky(np.nan), "mu must be finite, but its value is nan$"),
        (lambda: wh.leaky(np.ones((2, 2))), r"mu must have 1 axes, but its shape is \(2, 2\)$"),
        (lambda: wh.leaky([0.1, -0.2]), "mu must be greater than 0, but it is -0.2$"),
        (lambda: wh.rotational(0.0), "alpha must be greater than 0, but it is 0$"),
        (lambda: wh.rotational(-1.0), "alpha must be greater than 0, but it is -1$"),
        (lambda: wh.rotational(1.0, np.inf), "omega must be finite, but its value is inf$"),
        (
            lambda: wh.rotational(skew=np.zeros(3)),
            r"skew must have 2 axes, but its shape is \(3,\)$",
        ),
        (
            lambda: wh.rotational(skew=np.array([[0, np.nan], [0, 0]])),
            r"skew must be finite, but entry \(0, 1\) is nan$",
        ),
        (lambda: wh.repair(tol=-1e-3), "tol must be at least 0, but it is -0.001$"),
        (lambda: wh.repair(tol=1.0), "tol must be less than 1, but it is 1$"),
        (lambda: wh.repair(tol=np.nan), "tol must be finite, but its value is nan$"),
    ],
)
def test_a_law_with_a_number_that_makes_no_sense_is_refused(law, sentence):
    with pytest.raises(ValueError, match=sentence):
        law()


@pytest.mark.usefixtures("as_users_call_it")
def test_a_base_that_is_no_spectral_law_is_refused():
    with pytest.raises(
        ValueError,
        match=r"base must be a spectral law such as repair\(\) or leaky\(0.1\), but it is Rotational",
    ):
        wh.rotational(base=cast(Any, wh.rotational()))


@pytest.mark.usefixtures("as_users_call_it")
def test_a_strength_that_is_no_function_is_refused():
    with pytest.raises(
        ValueError, match=r"r must be a function of the eigenvalues, but it is 0.5$"
    ):
        wh.spectral(cast(Any, 0.5))


@pytest.mark.parametrize(
    ("system", "rank", "full"), [(systems.shared_column(), 2, 4), (systems.disconnected(), 1, 2)]
)
def test_the_rotational_law_refuses_a_response_that_lacks_a_direction(system, rank, full):
    driven = wh.response(system.net, system.inputs)
    error = np.tile([[0.1, 0.1, -0.2]], (driven.samples, 1))
    for act in (wh.rotational(), wh.rotational().parts):
        with pytest.raises(
            ValueError,
            match=f"a response of full rank {full} on the zero-sum fields, but its rank is {rank} at tolerance",
        ):
            act(driven, error)


def test_the_rotational_law_refuses_a_response_weaker_than_its_tolerance():
    driven = wh.response(NETS[4], INPUTS, selected=3)
    with pytest.raises(
        ValueError,
        match=r"full rank 2 on the zero-sum fields, but its rank is 1 at tolerance 0\.9: select one sample",
    ):
        wh.rotational(base=wh.repair(tol=0.9))(driven, np.array([[0.1, 0.1, -0.2]]))


def test_the_rotational_law_refuses_two_outputs_with_one_sample():
    with pytest.raises(ValueError, match="at least 3 outputs to turn one sample, but there are 2"):
        wh.rotational()(
            wh.response(wh.Network.random([2, 2], seed=0), np.array([[0.5, 0.5]])),
            np.array([[0.1, -0.1]]),
        )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (np.zeros((5, 3)), r"residual must have shape \(6, 3\), but its shape is \(5, 3\)$"),
        (np.zeros(18), r"residual must have 2 axes, but its shape is \(18,\)$"),
        (np.full((6, 3), np.nan), r"residual must be finite, but entry \(0, 0\) is nan$"),
    ],
)
def test_a_residual_that_does_not_fit_is_refused(error, sentence):
    with pytest.raises(ValueError, match=sentence):
        wh.direct()(wh.response(NETS[1], INPUTS), error)


SINGLE = wh.Network.random((3, 3, 3), seed=0, floor=0.1, dtype=np.float32)


@pytest.mark.parametrize(
    "net", [SINGLE, wh.Network.random((3, 3, 3), seed=0, floor=0.1)], ids=["float32", "float64"]
)
@pytest.mark.parametrize("base", [None, wh.repair(tol=0.0), wh.repair(tol=1e-30)])
def test_a_turn_through_round_off_is_refused_in_every_precision(net, base):
    with pytest.raises(
        ValueError,
        match=r"must act through a response of full rank 12 .* but its rank is 6 at tolerance",
    ):
        wh.rotational(1.0, 2.0, base=base).matrix(wh.response(net, INPUTS))


@pytest.mark.parametrize("tol", [1e-10, 0.0])
def test_repair_leaves_an_unreachable_residual_unanswered_in_single_precision(tol):
    driven = wh.response(SINGLE, INPUTS)
    _, _, right = np.linalg.svd(oracle.response(*oracle.arrays(SINGLE), INPUTS.astype(float)))
    unreachable = (0.1 * right[6:] @ np.eye(18)).sum(axis=0).reshape(6, 3)
    unreachable -= unreachable.mean(axis=1, keepdims=True)
    assert np.abs(wh.repair(tol=tol)(driven, unreachable)).max() < 1e-3


def test_a_leak_below_the_round_off_of_the_response_is_refused():
    sentence = r"mu must exceed the round-off of a response with modes that answer nothing, 2.06e-06 in float32, but it is 1e-09$"
    for law in (wh.leaky(1e-9), wh.rotational(base=wh.leaky(1e-9))):
        with pytest.raises(ValueError, match=sentence):
            law.matrix(wh.response(SINGLE, INPUTS))
    alone = wh.response(
        SINGLE, INPUTS, selected=3
    )  # of full rank, where so small a leak changes nothing
    np.testing.assert_allclose(wh.leaky(1e-9).matrix(alone), wh.repair().matrix(alone), rtol=1e-4)
