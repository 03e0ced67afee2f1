"""Would a turn help one step.

The coefficient, its parts and its forecast, against printed values, the oracle and finite steps.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import systems
import whorl as wh

STEPS = np.array([1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4])
INPUTS = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])
TARGETS = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1]])
ONE = np.ones((1, 1))
EXACT = {
    "below": ((0.1, 0.1, 0.8), (0.3, 0.4, 0.3)),
    "above": ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.3, 0.2)),
}
LAWS = {"repair": wh.rotational(), "leaky": wh.rotational(base=wh.leaky(0.1))}
INVERSES = {"repair": np.linalg.pinv, "leaky": lambda k: np.linalg.inv(k + 0.1 * np.eye(len(k)))}
# Compiled, because a new shape then costs one compilation and not one for every operation.
curved = eqx.filter_jit(wh.curvature)
evened = eqx.filter_jit(wh.even_difference)
scored = eqx.filter_jit(wh.turn_scores)


def exact(name):
    p, y = EXACT[name]
    return wh.Network([np.array(p)[:, None]]), ONE, np.array([y])


def network(depth, seed=0):
    """Columns that are all of moderate weight, each with its own rate."""
    rng = np.random.default_rng(seed)
    return wh.Network.random(
        (3,) * (depth + 1), seed=rng, floor=0.2, rates=list(rng.uniform(0.5, 2.0, size=(depth, 3)))
    )


@pytest.mark.parametrize(("name", "value"), [("below", -0.9271875), ("above", 2 / 75)])
def test_the_coefficient_is_the_one_the_paper_prints(name, value):
    np.testing.assert_allclose(
        curved(*exact(name), selected=0, law=LAWS["repair"]).coefficient, value, rtol=1e-14
    )


@pytest.mark.parametrize(
    ("name", "slope", "error"),
    [("below", "1.999921", "2.94e-06"), ("above", "1.999405", "3.1e-05")],
)
def test_the_even_difference_scales_as_the_paper_prints(name, slope, error):
    differences = np.array(
        [
            evened(*exact(name), selected=0, law=LAWS["repair"], step=jnp.asarray(size))
            for size in STEPS
        ]
    )
    coefficient = float(curved(*exact(name), selected=0, law=LAWS["repair"]).coefficient)
    digits = len(error.split("e")[0]) - 2
    assert f"{np.polyfit(np.log(STEPS), np.log(np.abs(differences)), 1)[0]:.6f}" == slope
    assert f"{abs(differences[-1] / STEPS[-1] ** 2 / coefficient - 1):.{digits}e}" == error


@pytest.mark.parametrize("base", LAWS)
def test_turn_scores_are_those_of_the_three_port_controller(base):
    net = network(3)
    law = wh.rotational(1.5, 0.7, base=LAWS[base].base)
    expected = oracle.turn_scores(
        *oracle.arrays(net), INPUTS, TARGETS, 1, INVERSES[base], alpha=1.5
    )
    for scores, known in zip(
        scored(net, INPUTS, TARGETS, selected=1, law=law), expected, strict=True
    ):
        for score, layer in zip(scores, known, strict=True):
            np.testing.assert_allclose(score, layer, rtol=0, atol=1e-10 * np.abs(layer).max())


@pytest.mark.parametrize("base", LAWS)
def test_turn_velocities_are_the_mobility_times_the_potential_carried_back(base):
    net, alpha = network(3), 1.5
    layers, rates = oracle.arrays(net)
    x, error = INPUTS[1:2], (TARGETS - oracle.predict(layers, INPUTS))[1]
    gain, carry = (
        INVERSES[base](oracle.response(layers, rates, x)),
        oracle.mobility(layers, rates) @ oracle.jacobian(layers, x).T,
    )
    wanted = carry @ gain @ (alpha * error), carry @ gain @ (oracle.three_port() @ error)
    found = wh.turn_velocities(
        net, INPUTS, TARGETS, selected=1, law=wh.rotational(alpha, 0.7, base=LAWS[base].base)
    )
    for moving, theta in zip(found, wanted, strict=True):
        flat = np.concatenate([np.asarray(layer).T.ravel() for layer in moving])
        np.testing.assert_allclose(flat, theta, rtol=0, atol=1e-11 * np.abs(theta).max())
        np.testing.assert_allclose(
            flat.reshape(-1, 3).sum(axis=1), 0, atol=1e-14 * np.abs(theta).max()
        )
    # Along V the outputs leave with the displacement G of Eq. 23.
    moved = [
        layer + 1j * oracle.H * np.asarray(v) for layer, v in zip(layers, found[1], strict=True)
    ]
    displacement = wh.curvature(net, INPUTS, TARGETS, selected=1, law=LAWS[base]).displacement
    np.testing.assert_allclose(
        np.imag(oracle.predict(moved, INPUTS)) / oracle.H, displacement, rtol=0, atol=1e-11
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("base", LAWS)
@pytest.mark.parametrize("depth", range(1, 7))
def test_displacement_bending_and_coefficient_are_those_of_the_oracle(depth, base):
    net = network(depth)
    layers, rates = oracle.arrays(net)
    _, turning = oracle.turn_scores(layers, rates, INPUTS, TARGETS, 1, INVERSES[base])
    displacement, bending = oracle.path_derivatives(layers, INPUTS, turning)
    found = curved(net, INPUTS, TARGETS, selected=1, law=LAWS[base])
    np.testing.assert_allclose(
        found.displacement, displacement, rtol=0, atol=1e-11 * np.abs(displacement).max()
    )
    np.testing.assert_allclose(found.bending, bending, rtol=0, atol=1e-11 * np.abs(bending).max())
    np.testing.assert_allclose(
        found.coefficient, oracle.coefficient(layers, INPUTS, TARGETS, turning), rtol=1e-10
    )


@pytest.mark.parametrize("base", LAWS)
def test_the_ratio_weighs_bending_against_displacement_on_the_driving_sample(base):
    net = network(2)
    layers, rates = oracle.arrays(net)
    _, turning = oracle.turn_scores(layers, rates, INPUTS, TARGETS, 1, INVERSES[base])
    displacement, bending = oracle.path_derivatives(layers, INPUTS, turning)
    error = TARGETS - oracle.predict(layers, INPUTS)
    expected = error[1] @ bending[1] / (displacement[1] @ displacement[1])
    np.testing.assert_allclose(
        curved(net, INPUTS, TARGETS, selected=1, law=LAWS[base]).ratio, expected, rtol=1e-11
    )


def test_the_even_difference_tends_to_the_coefficient():
    net, law = network(2), wh.rotational(1.5, 0.7)
    layers, rates = oracle.arrays(net)
    _, turning = oracle.turn_scores(layers, rates, INPUTS, TARGETS, 1, np.linalg.pinv)
    coefficient = oracle.coefficient(layers, INPUTS, TARGETS, turning)
    np.testing.assert_allclose(
        curved(net, INPUTS, TARGETS, selected=1, law=law).coefficient, coefficient, rtol=1e-11
    )
    sizes = [1e-1, 1e-2, 1e-3]
    found = np.array(
        [
            evened(net, INPUTS, TARGETS, selected=1, law=law, step=jnp.asarray(size))
            / (size * 0.7) ** 2
            for size in sizes
        ]
    )
    errors = np.abs(found / coefficient - 1)
    assert errors[0] > 5 * errors[1] > 25 * errors[2]
    assert errors[2] < 1e-2


@pytest.mark.parametrize("base", LAWS)
def test_the_even_difference_is_that_of_three_exponential_steps(base):
    net, size, alpha, omega = network(2), 0.3, 1.5, 0.7
    layers, rates = oracle.arrays(net)
    straight, turning = oracle.turn_scores(
        layers, rates, INPUTS, TARGETS, 1, INVERSES[base], alpha=alpha
    )
    losses = []
    for amount in (omega, -omega, 0.0):
        scores = [s0 + amount * s1 for s0, s1 in zip(straight, turning, strict=True)]
        stepped = [oracle.exponential_step(p, s, size) for p, s in zip(layers, scores, strict=True)]
        losses.append(((TARGETS - oracle.predict(stepped, INPUTS)) ** 2).sum() / 6)
    law = wh.rotational(alpha, omega, base=LAWS[base].base)
    found = evened(net, INPUTS, TARGETS, selected=1, law=law, step=jnp.asarray(size))
    np.testing.assert_allclose(found, (losses[0] + losses[1]) / 2 - losses[2], rtol=1e-10)


def test_the_coefficient_does_not_depend_on_how_much_is_turned_or_relaxed():
    net = network(2)
    plain, other = (
        curved(net, INPUTS, TARGETS, selected=1, law=law)
        for law in (wh.rotational(), wh.rotational(3.0, -2.0))
    )
    np.testing.assert_allclose(other.coefficient, plain.coefficient, rtol=1e-14)
    np.testing.assert_allclose(other.ratio, plain.ratio, rtol=1e-14)


def test_with_one_sample_the_ratio_exceeds_one_exactly_where_the_coefficient_is_negative():
    signs = []
    for seed in range(40):
        net = wh.Network.random((3, 3), seed=seed, imbalance=2.0)
        found = curved(net, INPUTS[1:2], TARGETS[1:2], selected=0, law=LAWS["repair"])
        assert found.predicted == found.favourable
        signs.append(found.favourable)
    assert 5 < sum(signs) < 35


def test_all_samples_may_drive_the_turn_of_two_outputs():
    net = wh.Network(
        [np.array([[0.3, 0.6], [0.7, 0.4]]), np.array([[0.9, 0.2], [0.1, 0.8]])], rates=[1.0, 2.0]
    )
    inputs, targets = np.eye(2), np.array([[0.5, 0.5], [0.1, 0.9]])
    layers, rates = oracle.arrays(net)
    error = targets - oracle.predict(layers, inputs)
    turn = np.kron([[0.0, -1.0], [1.0, 0.0]], oracle.zero_sum(1, 2))
    potential = np.linalg.pinv(oracle.response(layers, rates, inputs)) @ turn @ error.ravel()
    turning = oracle.scores(layers, rates, inputs, potential)
    displacement, bending = oracle.path_derivatives(layers, inputs, turning)
    found = curved(
        net, inputs, targets, selected=None, law=wh.rotational(skew=wh.sample_turn(2, 2))
    )
    np.testing.assert_allclose(
        found.displacement, (turn @ error.ravel()).reshape(2, 2), rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(found.bending, bending, rtol=0, atol=1e-12 * np.abs(bending).max())
    np.testing.assert_allclose(
        found.coefficient, oracle.coefficient(layers, inputs, targets, turning), rtol=1e-11
    )
    np.testing.assert_allclose(
        found.ratio, (error * bending).sum() / (displacement**2).sum(), rtol=1e-11
    )


@pytest.mark.parametrize("base", LAWS)
def test_a_solved_task_has_no_curvature(base):
    # All in quarters, so that predictions are exact and the targets can be met to the last bit.
    layer, inputs = (
        0.25 * (np.ones((3, 3)) + np.eye(3)),
        np.array([[1.0, 0.0, 0.0], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]),
    )
    net, targets = wh.Network([layer]), inputs @ layer.T
    found = curved(net, inputs, targets, selected=1, law=LAWS[base])
    for value in (found.displacement, found.bending, found.coefficient, found.ratio):
        np.testing.assert_array_equal(value, 0.0)
    assert evened(net, inputs, targets, selected=1, law=LAWS[base], step=jnp.asarray(0.1)) == 0


@pytest.mark.parametrize(
    ("name", "favourable", "words"),
    [("below", True, "lowers"), ("above", False, "raises")],
)
def test_a_curvature_says_what_it_means(name, favourable, words):
    found = wh.curvature(*exact(name), selected=0)
    assert (found.favourable, found.predicted) == (favourable, favourable)
    effect, forecast = str(found).split("\n")
    assert effect.startswith(f"A small turn through repair {words} the mean loss: coefficient ")
    assert forecast.startswith("The ratio of the driving sample predicts the same: ")
    assert forecast.endswith(" > 1." if favourable else " <= 1.")


def test_a_curvature_may_be_compiled_with_the_default_law():
    compiled, plain = (ask(*exact("below"), selected=0) for ask in (curved, wh.curvature))
    np.testing.assert_allclose(compiled.coefficient, plain.coefficient, rtol=1e-14)


def test_an_overflow_is_refused_rather_than_returned():
    with pytest.raises(
        ValueError,
        match=r"the curvature must be finite, but it overflowed or is undefined at this state",
    ):
        wh.curvature(
            *exact("below"), selected=0, law=wh.rotational(skew=1e200 * oracle.three_port())
        )


@pytest.mark.parametrize(
    "ask",
    [wh.curvature, wh.turn_scores, lambda *data, **how: wh.even_difference(*data, **how, step=0.1)],
)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"selected": 1}, r"selected must be 0, but it is 1"),
        ({"selected": -1}, r"selected must be 0, but it is -1"),
        (
            {"inputs": np.ones((1, 2)) / 2},
            r"inputs must have shape \(samples, 1\) .*, but its shape is \(1, 2\)",
        ),
        ({"inputs": np.array([[np.nan]])}, r"inputs must be finite, but entry \(0, 0\) is nan"),
        (
            {"targets": np.array([[0.3, 0.4, 0.4]])},
            r"targets must have rows of unit mass, but row 0 sums to 1.1",
        ),
        (
            {"targets": np.array([[0.3, 0.8, -0.1]])},
            r"targets must be non-negative, but entry \(0, 2\) is -0.1",
        ),
        (
            {"targets": np.full((2, 3), 1 / 3)},
            r"targets must have one row per input, but there are 2 targets and 1 inputs",
        ),
        (
            {"net": systems.two_outputs().net, "targets": np.array([[0.5, 0.5]])},
            r"must have at least 3 outputs to turn one sample, .* are 2",
        ),
        (
            {"law": wh.rotational(skew=np.eye(3))},
            r"skew must be antisymmetric, but it differs from minus its transpose by 2",
        ),
        (
            {"net": systems.disconnected().net, "inputs": systems.disconnected().inputs},
            (
                r"must act through a response of full rank 2 on the zero-sum fields, but its rank is 1 "
                r"at tolerance 1e-10"
            ),
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(ask, change, message):
    net, inputs, targets = exact("below")
    given = {"net": net, "inputs": inputs, "targets": targets, "selected": 0} | change
    with pytest.raises(ValueError, match=message) as refusal:
        ask(given.pop("net"), given.pop("inputs"), given.pop("targets"), **given)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0.0, r"step must be greater than 0, but it is 0"),
        (-1.0, r"step must be greater than 0, but it is -1"),
        (np.nan, r"step must be finite, but its value is nan"),
        (np.ones(2), r"step must be a real number, but it is array"),
    ],
)
def test_a_step_must_have_a_positive_size(size, message):
    with pytest.raises(ValueError, match=message):
        wh.even_difference(*exact("below"), selected=0, step=size)


@pytest.mark.usefixtures("as_users_call_it")
def test_a_law_that_does_not_turn_is_refused():
    with pytest.raises(
        ValueError,
        match=r"law must be rotational\(...\), since it has to name a turn, but it is Direct",
    ):
        wh.curvature(*exact("below"), selected=0, law=wh.direct())


def test_a_coefficient_of_zero_is_said_to_be_zero():
    settled = wh.Network([np.array([[0.2], [0.3], [0.5]])])
    found = wh.curvature(settled, ONE, [[0.2, 0.3, 0.5]], selected=0)
    assert (float(found.coefficient), found.neutral, found.favourable) == (0.0, True, False)
    assert str(found) == (
        "A small turn through repair does not change the mean loss to second order: "
        "coefficient 0, within its round-off 0.\n"
        "The ratio of the driving sample is 0."
    )


def test_a_coefficient_within_its_round_off_is_neither_favourable_nor_not():
    def at(
        share,
        # between a target whose turn lowers the loss and one whose turn raises it, where the two
        # terms cancel
    ):
        return wh.curvature(
            wh.Network([np.array([[0.1], [0.1], [0.8]])]),
            ONE,
            [[0.1 + 0.4 * share, 0.1 + 0.1 * share, 0.8 - 0.5 * share]],
            selected=0,
        )

    low, high = 1e-3, 1.0
    assert float(at(low).coefficient) * float(at(high).coefficient) < 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if float(at(low).coefficient) * float(at(middle).coefficient) < 0
            else (middle, high)
        )
    found = at(low)
    assert 0 < abs(float(found.coefficient)) <= float(found.roundoff) < 1e-14
    assert found.neutral
    assert not found.favourable
    assert "does not change" in str(found)
    assert not at(0.9 * low).neutral
    assert not at(1.1 * low).neutral
