"""Which score fields are gradients.

Rock-paper-scissors by hand, potentials, blocks that mix, and the laws of the network.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import oracle
import whorl as wh
from whorl.simplex import velocity

RNG = np.random.default_rng(0)
POINT = (np.array([0.5, 0.2, 0.3]), np.array([0.1, 0.2, 0.3, 0.4]))
FIRST, SECOND = jnp.asarray(RNG.standard_normal((3, 4))), jnp.asarray(RNG.standard_normal((4, 3)))
CURVED = RNG.standard_normal((7, 7))
TASK = wh.Task.random(3, 3, seed=1)
RATES = [np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 0.2])]


def polynomial(point):
    """A field without symmetry over both blocks, for JAX and for complex NumPy alike."""
    mixed = CURVED @ (point[0][:, None] @ point[1][None, :]).reshape(12)[:7]
    return mixed[:3] * point[0] ** 2, mixed[3:] + point[1] ** 3


def potential(point):
    """A smooth function of both blocks."""
    return (
        jnp.sin(point[0] @ (FIRST @ point[1]))
        + jnp.sum(jnp.exp(point[0] * point[0][::-1]))
        + jnp.sum(jnp.log(point[1]) * point[1] ** 2)
    )


def descent(net, law, selected):
    """The scores that a law gives to every layer, as a field over layers."""

    def field(layers):
        driven = wh.response(net.with_blocks(layers), TASK.inputs, selected=selected)
        wanted = TASK.targets if selected is None else TASK.targets[selected : selected + 1]
        return driven.scores(law(driven, wanted - driven.predictions))

    return field


@pytest.mark.parametrize("p", [[1 / 3, 1 / 3, 1 / 3], [0.5, 0.2, 0.3], [0.01, 0.98, 0.01]])
def test_rock_paper_scissors_has_the_one_form_found_by_hand(p):
    found = wh.integrability(wh.rock_paper_scissors, [np.array(p)])
    np.testing.assert_allclose(
        wh.one_form(wh.rock_paper_scissors, [np.array(p)]),
        [1 - 3 * p[1], 3 * p[0] - 1],
        rtol=0,
        atol=1e-15,
    )
    np.testing.assert_array_equal(
        wh.exterior_derivative(wh.rock_paper_scissors, [np.array(p)]), [[0, 6], [-6, 0]]
    )
    np.testing.assert_allclose(found.rotation, 1, rtol=1e-15)
    assert not found.closed


def test_the_one_form_of_several_blocks_is_the_differences_of_their_scores():
    first, second = polynomial([p.astype(complex) for p in POINT])  # in plain NumPy
    wanted = [*(first[:-1] - first[-1]).real, *(second[:-1] - second[-1]).real]
    np.testing.assert_allclose(wh.one_form(polynomial, POINT), wanted, rtol=0, atol=1e-15)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("corners", [3, 5, 8])
def test_rock_paper_scissors_circulates_six_times_the_area_it_goes_around(corners):
    angles = 2 * np.pi * np.arange(corners) / corners
    x, y = 0.3 + 0.2 * np.cos(angles), 0.35 + 0.1 * np.sin(angles)
    area = (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    loop = np.stack([x, y, 1 - x - y], axis=1)
    np.testing.assert_allclose(wh.circulation(wh.rock_paper_scissors, [loop]), 6 * area, rtol=1e-13)
    np.testing.assert_allclose(
        wh.circulation(wh.rock_paper_scissors, [loop[::-1]]), -6 * area, rtol=1e-13
    )
    layer = np.stack(
        [loop, loop[::-1], loop], axis=-1
    )  # three columns, of which the second goes the other way round
    np.testing.assert_allclose(
        wh.circulation(wh.rock_paper_scissors, [layer]), 6 * area, rtol=1e-13
    )


def test_rock_paper_scissors_goes_around_and_keeps_its_invariant():
    start = np.array([0.5, 0.2, 0.3])
    motion = jax.jit(lambda p: velocity(p, wh.rock_paper_scissors((p,))[0]))

    path = solve_ivp(
        lambda _, p: np.asarray(motion(p)),
        (0, 30),
        start,
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
        events=lambda _, p: p[0] - start[0],
    )
    np.testing.assert_allclose(np.prod(path.y, axis=0), np.prod(start), rtol=1e-9)
    returns = [
        p
        for t, p in zip(path.t_events[0], path.y_events[0], strict=True)
        if t > 1 and np.abs(p - start).max() < 0.01
    ]
    assert len(returns) >= 2
    np.testing.assert_allclose(returns, np.tile(start, (len(returns), 1)), rtol=0, atol=1e-7)
    assert np.ptp(path.y[0]) > 0.2


@pytest.mark.slow
def test_the_gradient_of_a_potential_is_closed_over_all_blocks():
    found = wh.integrability(jax.grad(potential), POINT)
    assert found.closed
    np.testing.assert_allclose(found.exterior, np.zeros((5, 5)), atol=1e-13)
    assert str(found).startswith(
        "This field can be a gradient here: the rotational share of its derivative is "
    )


@pytest.mark.slow
def test_the_gradient_of_a_potential_does_not_circulate():
    steps = np.random.default_rng(1)
    loop = [steps.dirichlet(np.full(d, 5.0), size=6) for d in (3, 4)]

    def cubic(point):
        return jnp.sum(point[0] ** 3) + (point[0] @ (FIRST @ point[1])) ** 2 + jnp.prod(point[1])

    np.testing.assert_allclose(wh.circulation(jax.grad(cubic), loop), 0, atol=1e-14)
    assert abs(wh.circulation(polynomial, loop)) > 1e-3


@pytest.mark.slow
def test_scores_that_answer_each_other_alike_are_closed():
    alike = wh.integrability(lambda p: (FIRST @ p[1], FIRST.T @ p[0]), POINT)
    assert alike.closed
    shifted = FIRST.T + np.arange(4.0)[:, None] + np.arange(3.0)[None, :]
    assert wh.integrability(lambda p: (FIRST @ p[1], shifted @ p[0]), POINT).closed


@pytest.mark.slow
def test_a_turn_between_two_blocks_is_found_although_neither_turns_alone():
    found = wh.integrability(lambda p: (FIRST @ p[1], SECOND @ p[0]), POINT)
    exterior = np.asarray(found.exterior)
    assert not found.closed
    np.testing.assert_array_equal(exterior[:2, :2], 0)
    np.testing.assert_array_equal(exterior[2:, 2:], 0)
    three, four = np.eye(2, 3) - np.eye(3)[-1], np.eye(3, 4) - np.eye(4)[-1]
    slopes, backs = three @ FIRST @ four.T, four @ SECOND @ three.T
    np.testing.assert_allclose(exterior[2:, :2], slopes.T - backs, rtol=0, atol=1e-14)
    assert str(found).startswith("This field is not a gradient here")


@pytest.mark.slow
def test_two_blocks_that_chase_each_other_only_turn():
    found = wh.integrability(lambda p: (FIRST @ p[1], -FIRST.T @ p[0]), POINT)
    np.testing.assert_allclose(found.rotation, 1, rtol=1e-14)


def test_the_exterior_derivative_agrees_with_a_complex_step():
    slopes = np.zeros((5, 5))
    for column, (block, entry) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]):
        moved = [p.astype(complex) for p in POINT]
        moved[block][entry] += 1j * oracle.H
        moved[block][-1] -= 1j * oracle.H
        first, second = polynomial(moved)
        slopes[:, column] = (
            np.imag(np.concatenate([(first - first[-1])[:-1], (second - second[-1])[:-1]]))
            / oracle.H
        )
    np.testing.assert_allclose(
        wh.exterior_derivative(polynomial, POINT), slopes.T - slopes, rtol=0, atol=1e-14
    )


def test_the_rotational_share_is_measured_in_the_metric_of_the_simplex():
    found, frames = wh.integrability(lambda p: (FIRST @ p[1], SECOND @ p[0]), POINT), []
    for p in POINT:
        # Zero-sum vectors over the root of p are those orthogonal to it, and orthonormal ones there
        # are orthonormal in the metric.
        spare = np.linalg.svd(np.sqrt(p)[None])[2][1:].T
        frames.append(np.sqrt(p)[:, None] * spare)
    upper, lower = frames[0].T @ FIRST @ frames[1], frames[1].T @ SECOND @ frames[0]
    skew, whole = (
        np.linalg.norm(upper - lower.T) / np.sqrt(2),
        np.hypot(np.linalg.norm(upper), np.linalg.norm(lower)),
    )
    np.testing.assert_allclose(found.rotation, skew / whole, rtol=1e-13)


@pytest.mark.parametrize("order", [[1, 2, 0], [2, 0, 1], [0, 2, 1]])
def test_the_rotational_share_is_the_same_whichever_entry_comes_last(order):
    order, back = np.array(order), np.argsort(order)

    def relabelled(point):
        first, second = polynomial((point[0][back], point[1]))
        return first[order], second

    whole = wh.integrability(polynomial, POINT).rotation
    assert 0 < whole < 1
    np.testing.assert_allclose(
        wh.integrability(relabelled, (POINT[0][order], POINT[1])).rotation, whole, rtol=1e-12
    )


def test_a_score_common_to_all_entries_of_a_block_changes_nothing():
    def raised(point):
        first, second = polynomial(point)
        return first + jnp.sum(point[1] ** 2), second - 5 * jnp.prod(point[0])

    plain, lifted = wh.integrability(polynomial, POINT), wh.integrability(raised, POINT)
    np.testing.assert_allclose(lifted.one_form, plain.one_form, rtol=0, atol=1e-14)
    np.testing.assert_allclose(lifted.exterior, plain.exterior, rtol=0, atol=1e-14)
    np.testing.assert_allclose(lifted.rotation, plain.rotation, rtol=1e-13)


def test_the_direct_law_with_equal_rates_follows_minus_the_gradient_of_the_loss():
    net = wh.Network.random([3, 3, 3], seed=2, floor=0.1)
    slopes = oracle.gradient(
        oracle.arrays(net)[0], np.asarray(TASK.inputs), np.asarray(TASK.targets)
    )
    found = wh.integrability(descent(net, wh.direct(), None), net.layers)
    assert found.closed
    wanted = np.concatenate([(slope[-1:] - slope)[:-1].T.ravel() for slope in slopes])
    np.testing.assert_allclose(found.one_form, wanted, rtol=0, atol=1e-14)


def test_unequal_rates_turn_the_direct_law_across_columns_but_in_none():
    net = wh.Network.random([3, 3, 3], seed=2, floor=0.1, rates=RATES)
    plain = wh.Network.random([3, 3, 3], seed=2, floor=0.1)
    found = wh.integrability(descent(net, wh.direct(), None), net.layers)
    assert not found.closed
    # The one-form is rho_a times minus the slope, so that two columns disagree by the difference of
    # their rates.
    rates = np.repeat(np.concatenate(RATES), 2)
    curvature = np.asarray(jax.jacfwd(lambda shift: _shifted(plain, shift))(jnp.zeros(12)))
    np.testing.assert_allclose(
        found.exterior, curvature * (rates[None, :] - rates[:, None]), rtol=0, atol=1e-13
    )
    for block in range(0, 12, 2):
        np.testing.assert_allclose(
            found.exterior[block : block + 2, block : block + 2], 0, atol=1e-15
        )


def _shifted(net, shift):
    """The one-form of the direct law with the free entries of all columns moved by `shift`."""
    moves = [
        jnp.concatenate([part, -part.sum(axis=0, keepdims=True)])
        for part in jnp.swapaxes(shift.reshape(2, 3, 2), 1, 2)
    ]
    scores = descent(net, wh.direct(), None)(
        [layer + move for layer, move in zip(net.layers, moves, strict=True)]
    )
    return jnp.concatenate([(score - score[-1:])[:-1].T.ravel() for score in scores])


@pytest.mark.slow
def test_the_rotational_law_is_no_gradient_and_turns_more_than_repair():
    net = wh.Network.random([3, 3, 3], seed=2, floor=0.1)
    turning = wh.integrability(descent(net, wh.rotational(1.0, 2.0), 3), net.layers)
    straight = wh.integrability(descent(net, wh.repair(), 3), net.layers)
    assert not turning.closed
    assert turning.rotation > straight.rotation + 0.1


@pytest.mark.slow
def test_entries_off_the_support_do_not_count():
    layer = np.array([[0.5, 0.2, 0.0], [0.0, 0.3, 1.0], [0.5, 0.5, 0.0]])
    net = wh.Network([layer, layer], support=[layer > 0] * 2)
    task = wh.Task.random(3, 3, seed=2)

    def direct(point):
        driven = wh.response(net.with_blocks(point), task.inputs)
        return driven.scores(task.targets - driven.predictions)

    found = wh.integrability(direct, net.layers)
    assert found.one_form.shape == (6,)
    assert float(found.rotation) < 1e-14
    (s,) = wh.rock_paper_scissors((jnp.array([0.25, 0.0, 0.75]),))
    np.testing.assert_allclose(
        wh.one_form(wh.rock_paper_scissors, [np.array([0.25, 0.0, 0.75])]),
        [s[0] - s[2]],
        atol=1e-15,
    )


def test_a_constant_field_is_closed():
    found = wh.integrability(lambda p: tuple(jnp.arange(float(len(block))) for block in p), POINT)
    assert found.closed
    assert found.rotation == 0


def test_a_given_tolerance_decides_the_verdict():
    def nearly(point):
        return FIRST @ point[1], (FIRST.T + 1e-6 * SECOND) @ point[0]

    assert not wh.integrability(nearly, POINT).closed
    assert wh.integrability(nearly, POINT, tol=1e-4).closed


@pytest.mark.parametrize("ask", [wh.one_form, wh.exterior_derivative, wh.integrability])
@pytest.mark.parametrize(
    ("point", "sentence"),
    [
        ([], "point must hold at least one block, but it is empty$"),
        (
            [np.array([0.0, 1.0, 0.0])],
            "point must have a block that can move, but every column has a single positive entry$",
        ),
        ([np.array([0.7, 0.5, -0.2])], r"block 0 must be non-negative, but entry 2 is -0\.2$"),
        (
            [np.array([0.5, 0.25, 0.3])],
            r"columns of block 0 must sum to 1, but its column sums to 1\.05$",
        ),
        ([POINT[0], np.array([np.nan, 0.5])], "block 1 must be finite, but entry 0 is nan$"),
        (
            [np.ones((1, 3))],
            r"block 0 must be a column or a layer of at least 2 rows, but its shape is \(1, 3\)$",
        ),
        (
            [np.full((2, 2, 2), 0.5)],
            (
                r"block 0 must be a column or a layer of at least 2 rows, but its shape is \(2, 2, "
                r"2\)$"
            ),
        ),
        ([np.array(0.5)], "block 0 must have 1 axes"),
    ],
)
def test_a_point_outside_the_simplices_is_refused(ask, point, sentence):
    with pytest.raises(ValueError, match=sentence):
        ask(wh.rock_paper_scissors, point)


@pytest.mark.parametrize("ask", [wh.one_form, wh.exterior_derivative, wh.integrability])
def test_a_field_with_scores_of_another_shape_is_refused(ask):
    with pytest.raises(
        ValueError,
        match=r"field must return one score per entry, shapes \[\(3,\), \(4,\)\], but it returned \[\(3,\)\]",
    ):
        ask(lambda point: (point[0],), POINT)


@pytest.mark.parametrize("ask", [wh.one_form, wh.exterior_derivative, wh.integrability])
def test_a_field_whose_scores_overflow_is_refused(ask):
    with pytest.raises(ValueError, match="must be finite"):
        ask(lambda point: (point[0] * np.inf,), POINT[:1])


@pytest.mark.parametrize("ask", [wh.one_form, wh.integrability])
def test_a_field_that_is_undefined_everywhere_is_refused(ask):
    with pytest.raises(ValueError, match="must be finite"):
        ask(lambda point: (jnp.array([0.0, np.nan, 1.0]),), POINT[:1])


def test_a_negative_tolerance_is_refused():
    with pytest.raises(ValueError, match=r"tol must be at least 0, but it is -1$"):
        wh.integrability(wh.rock_paper_scissors, POINT[:1], tol=-1.0)


@pytest.mark.parametrize(
    ("loop", "sentence"),
    [
        ([], r"loop must hold at least 3 points for each block alike, but its shapes are \[\]$"),
        (
            [np.tile(POINT[0], (2, 1))],
            r"loop must hold at least 3 points .* shapes are \[\(2, 3\)\]$",
        ),
        (
            [np.tile(POINT[0], (3, 1)), np.tile(POINT[1], (4, 1))],
            r"loop must hold at least 3 points .* \[\(3, 3\), \(4, 4\)\]$",
        ),
        ([POINT[0]], r"loop must hold at least 3 points .* \[\(3,\)\]$"),
        (
            [np.array([[0.5, 0.2, 0.3], [0.6, 0.5, -0.1], [0.2, 0.3, 0.5]])],
            "block 0 must be non-negative",
        ),
    ],
)
def test_a_loop_that_is_none_is_refused(loop, sentence):
    with pytest.raises(ValueError, match=sentence):
        wh.circulation(wh.rock_paper_scissors, loop)


def test_a_circulation_that_is_undefined_is_refused():
    with pytest.raises(ValueError, match="the circulation must be finite"):
        wh.circulation(
            lambda point: (point[0] * np.inf,),
            [np.random.default_rng(0).dirichlet(np.ones(3), size=4)],
        )


MIDDLE = np.array([0.5, 0.3, 0.2])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    "column", [MIDDLE, np.array([0.98, 0.01, 0.01]), np.array([0.01, 0.01, 0.98])]
)
def test_a_gradient_is_closed_and_a_circulation_is_not_in_either_precision(kind, column):
    point = (column.astype(kind),)
    assert wh.integrability(lambda at: (jnp.log(at[0]),), point).verdict == "closed"
    assert wh.integrability(wh.rock_paper_scissors, point).verdict == "turns"


def test_a_field_whose_derivative_is_all_round_off_gets_no_verdict():
    def constant(point):  # over the entries, so that no score differs from another but by round-off
        return (1e6 * jnp.sum(jnp.sin(point[0])) * jnp.array([1.0, 1 + 1e-15, 1 - 1e-15]),)

    found = wh.integrability(constant, (MIDDLE,))
    assert (found.verdict, found.closed) == ("cannot tell", False)
    assert str(found).startswith("Whether this field is a gradient here cannot be told: ")


def test_integrability_is_compiled():
    found = jax.jit(lambda p: wh.integrability(lambda at: (jnp.log(at[0]),), (p,)))(MIDDLE)
    assert found.closed
    assert found.tol == 1e-10
