"""The closed loop against dense algebra, and a certificate that finds every turn and invents
none.
"""

from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import whorl as wh
from whorl.turn import joint_skew

TASK = wh.Task.random(3, 3, seed=1)
INPUTS, TARGETS = np.asarray(TASK.inputs), np.asarray(TASK.targets)
NET = wh.Network.random(
    [3, 3, 3], seed=2, floor=0.1, rates=[np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 0.2])]
)
OTHER = wh.Network.random([3, 3, 3], seed=9, floor=0.1)
LAWS = {
    "direct": (wh.direct(), lambda x: np.ones_like(x)),
    "repair": (wh.repair(), lambda x: np.where(x > 1e-10 * x.max(), 1 / np.where(x > 0, x, 1), 0)),
    "leaky": (wh.leaky(0.1), lambda x: 1 / (x + 0.1)),
    "root": (wh.spectral(jnp.sqrt), np.sqrt),
    "fading": (wh.spectral(lambda x: jnp.exp(-5 * x)), lambda x: np.exp(-5 * x)),
}


class Planted(wh.Law):
    """Repair with a small turn on top, planted where the response is joint and ill-conditioned."""

    omega: float

    def matrix(self, response):
        skew = joint_skew(response, None)
        return wh.repair().matrix(response) @ (jnp.eye(skew.shape[0]) + self.omega * skew)


@pytest.mark.parametrize("name", LAWS)
def test_the_loop_is_the_response_times_the_law(name):
    law, r = LAWS[name]
    matrix = oracle.response(*oracle.arrays(NET), INPUTS)
    wanted = matrix @ oracle.spectral(matrix, r)
    np.testing.assert_allclose(
        wh.closed_loop(wh.response(NET, INPUTS), law).dense(), wanted, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", LAWS)
def test_a_spectral_loop_is_symmetric_and_dissipative(name):
    certificate = wh.certify(wh.closed_loop(wh.response(NET, INPUTS), LAWS[name][0]))
    assert certificate.reciprocal
    assert certificate.dissipative
    assert certificate.rank == 6
    assert certificate.index == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", LAWS)
def test_a_spectral_loop_is_a_positive_semidefinite_preconditioned_gradient(name):
    law, r = LAWS[name]
    driven, error = wh.response(NET, INPUTS), np.asarray(wh.residual(NET, INPUTS, TARGETS))
    matrix = np.asarray(wh.closed_loop(driven, law).dense())
    size = np.linalg.norm(matrix)
    assert np.abs(matrix - matrix.T).max() <= 1e-12 * size
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2).min() >= -1e-12 * size
    layers, rates = oracle.arrays(NET)
    motion = [np.asarray(moving) for moving in driven.velocities(law(driven, error))]
    moved = [layer + 1j * oracle.H * moving for layer, moving in zip(layers, motion, strict=True)]
    slope = np.sum((TARGETS - oracle.predict(moved, INPUTS)) ** 2 / 2).imag / oracle.H
    assert slope == pytest.approx(-error.ravel() @ matrix @ error.ravel(), rel=1e-10)
    assert slope < 0
    # H = M J^T psi(K) J M with psi(0) = 0 and psi = r / lambda elsewhere, which is as definite as
    # psi is.
    values, modes = np.linalg.eigh(oracle.response(layers, rates, INPUTS))
    kept = values > 1e-10 * values[-1]
    psi = r(values[kept]) / values[kept]
    assert (psi >= 0).all()
    half = modes[:, kept].T @ oracle.jacobian(layers, INPUTS) @ oracle.mobility(layers, rates)
    gradient = np.concatenate([part.T.ravel() for part in oracle.gradient(layers, INPUTS, TARGETS)])
    downhill = -half.T @ (psi * (half @ gradient))
    flat = np.concatenate([moving.T.ravel() for moving in motion])
    np.testing.assert_allclose(flat, downhill, rtol=0, atol=1e-10 * np.abs(downhill).max())


@pytest.mark.parametrize("name", LAWS)
def test_the_eigenvalues_of_a_spectral_loop_are_those_of_its_modes(name):
    law, r = LAWS[name]
    values = np.linalg.eigvalsh(oracle.response(*oracle.arrays(NET), INPUTS))
    kept = values[values > 1e-10 * values[-1]]
    certificate = wh.certify(wh.closed_loop(wh.response(NET, INPUTS), law))
    np.testing.assert_allclose(
        np.real(certificate.eigenvalues), np.sort(kept * r(kept)), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(np.imag(certificate.eigenvalues), 0, atol=1e-12)


@pytest.mark.parametrize(("alpha", "omega"), [(1.0, 1.0), (0.5, -3.0), (2.0, 0.1)])
def test_a_rotational_loop_is_certified_with_its_rates(alpha, omega):
    loop = wh.closed_loop(wh.response(NET, INPUTS, selected=3), wh.rotational(alpha, omega))
    certificate = wh.certify(loop)
    np.testing.assert_allclose(
        loop.dense(),
        alpha * oracle.zero_sum(1, 3) + omega * oracle.three_port(),
        rtol=0,
        atol=1e-13,
    )
    assert not certificate.reciprocal
    assert certificate.dissipative
    assert certificate.index == pytest.approx(alpha**2 / (alpha**2 + omega**2), rel=1e-12)
    assert certificate.skewness == pytest.approx(abs(omega) / np.hypot(alpha, omega), rel=1e-12)
    np.testing.assert_allclose(
        certificate.eigenvalues,
        [alpha - 1j * abs(omega), alpha + 1j * abs(omega)],
        rtol=0,
        atol=1e-12,
    )
    np.testing.assert_allclose(
        np.linalg.norm(certificate.skew), np.sqrt(2) * abs(omega), rtol=1e-12
    )
    np.testing.assert_allclose(certificate.symmetric, alpha * np.eye(2), rtol=0, atol=1e-12)


def test_three_ports_turn_as_no_gradient_flow_does():
    alpha, omega = 0.7, 2.0
    loop = wh.closed_loop(wh.response(NET, INPUTS, selected=3), wh.rotational(alpha, omega))
    matrix, error = np.asarray(loop.dense()), np.asarray(wh.residual(NET, INPUTS, TARGETS))[3]
    np.testing.assert_allclose(matrix.sum(axis=0), 0, atol=1e-13)  # output mass is kept
    assert error @ matrix @ error == pytest.approx(alpha * error @ error, rel=1e-12)
    pair = wh.certify(loop).eigenvalues
    np.testing.assert_allclose(np.abs(np.imag(pair)), omega, rtol=1e-12)
    # A gradient flow linearises to G^-1 A with G positive definite and A symmetric: its spectrum is
    # real, whatever they are.
    rng = np.random.default_rng(0)
    for draw, half in rng.standard_normal((50, 2, 2, 2)):
        flow = np.linalg.solve(half @ half.T + 1e-2 * np.eye(2), draw + draw.T)
        np.testing.assert_allclose(np.imag(np.linalg.eigvals(flow)), 0, atol=1e-12)


class Anything(wh.Law):
    """A boundary law that is any matrix at all."""

    given: jnp.ndarray

    def matrix(self, response):
        return self.given


@pytest.mark.parametrize("seed", range(3))
def test_two_outputs_and_one_sample_cannot_turn_under_any_law(seed):
    rng = np.random.default_rng(seed)
    net, x = wh.Network.random([3, 3, 2], seed=seed, floor=0.1), INPUTS[3:4]
    driven = wh.response(net, x)
    found = wh.certify(wh.closed_loop(driven, Anything(jnp.asarray(rng.standard_normal((1, 1))))))
    assert found.reciprocal
    assert (found.rank, found.skewness) == (1, 0)
    np.testing.assert_array_equal(np.imag(found.eigenvalues), 0)
    # By hand: whatever the law, its loop maps the line of zero-sum residuals to itself, and a line
    # has no room to turn.
    matrix, line = oracle.response(*oracle.arrays(net), x), np.array([1.0, -1.0]) / np.sqrt(2)
    for law in rng.standard_normal((20, 2, 2)):
        values = np.linalg.eigvals(matrix @ law @ oracle.zero_sum(1, 2))
        np.testing.assert_array_equal(np.imag(values), 0)
        np.testing.assert_allclose(
            sorted(np.abs(values)), [0, abs(line @ matrix @ law @ line)], rtol=0, atol=1e-15
        )
    with pytest.raises(ValueError, match="at least 3 outputs to turn one sample, but there are 2"):
        wh.closed_loop(driven, wh.rotational(1.0, 2.0))


def test_a_rotational_law_that_does_not_turn_is_certified_reciprocal():
    assert wh.certify(
        wh.closed_loop(wh.response(NET, INPUTS, selected=3), wh.rotational(1.0, 0.0))
    ).reciprocal


@pytest.mark.parametrize("law", [wh.direct(), wh.leaky(0.1)])
@pytest.mark.parametrize("selected", [None, 3])
def test_a_mismatched_adjoint_shows_up_as_a_skew_part(law, selected):
    certificate = wh.certify(
        wh.closed_loop(wh.response(NET, INPUTS, selected=selected, adjoint=OTHER.layers), law)
    )
    assert not certificate.reciprocal
    assert 1e-3 < certificate.skewness < 1


def test_a_mismatched_loop_is_the_product_of_its_three_transports():
    layers, rates = oracle.arrays(NET)
    forward, mobility = oracle.jacobian(layers, INPUTS), oracle.mobility(layers, rates)
    # The flow that reaches a column is that of the forward layers; only the way back from the
    # outputs is another.
    back = np.concatenate([np.kron(INPUTS, np.asarray(OTHER.layers[1])), forward[:, 9:]], axis=1)
    wanted = forward @ mobility @ back.T
    loop = wh.closed_loop(wh.response(NET, INPUTS, adjoint=OTHER.layers), wh.direct())
    np.testing.assert_allclose(loop.dense(), wanted @ oracle.zero_sum(6, 3), rtol=0, atol=1e-14)


def test_repair_undoes_even_a_mismatched_response():
    certificate = wh.certify(
        wh.closed_loop(wh.response(NET, INPUTS, adjoint=OTHER.layers), wh.repair())
    )
    assert certificate.reciprocal
    np.testing.assert_allclose(certificate.symmetric, np.eye(certificate.rank), rtol=0, atol=1e-9)


@pytest.mark.parametrize("law", [wh.direct(), wh.leaky(0.1), wh.repair()])
def test_an_adjoint_equal_to_the_layers_turns_nothing(law):
    loop = wh.closed_loop(wh.response(NET, INPUTS, adjoint=NET.layers), law)
    np.testing.assert_allclose(
        loop.dense(), wh.closed_loop(wh.response(NET, INPUTS), law).dense(), rtol=0, atol=1e-11
    )
    assert wh.certify(loop).reciprocal


@pytest.mark.parametrize("seed", range(12))
def test_an_ill_conditioned_repair_is_certified_and_a_planted_turn_in_it_is_found(seed):
    rng = np.random.default_rng(seed)
    net = wh.Network([0.8 * rng.dirichlet([4, 4, 4], size=3).T + 0.2 / 3 for _ in range(6)])
    inputs = np.concatenate([np.eye(3), rng.dirichlet(np.ones(3), size=3)])
    driven = wh.response(net, inputs)
    assert wh.certify(wh.closed_loop(driven, wh.repair())).reciprocal
    assert not wh.certify(wh.closed_loop(driven, Planted(0.01))).reciprocal


def test_the_tolerance_is_that_of_the_product_where_this_is_coarse_and_else_a_fixed_one():
    smooth = wh.closed_loop(wh.response(NET, INPUTS, selected=3), wh.direct())
    rough = wh.closed_loop(
        wh.response(wh.Network.random([3] * 5, seed=2, floor=0.1), INPUTS), wh.repair()
    )
    assert wh.certify(smooth).tol == 1e-12
    assert 1e-12 < wh.certify(rough).tol == rough.roundoff < 1e-6


def test_a_given_tolerance_decides_the_verdict():
    loop = wh.closed_loop(wh.response(NET, INPUTS, selected=3), wh.rotational(1.0, 1e-3))
    assert wh.certify(loop, tol=1.01e-3).reciprocal
    assert not wh.certify(loop, tol=0.99e-3).reciprocal
    assert wh.certify(loop, tol=0.5).tol == 0.5


def test_a_weak_direction_is_not_identifiable_under_a_coarse_tolerance():
    values = np.linalg.eigvalsh(oracle.response(*oracle.arrays(NET), INPUTS))
    loop = wh.closed_loop(wh.response(NET, INPUTS), wh.direct(), tol=0.2)
    kept = values[values > 0.2 * values[-1]]
    assert wh.certify(loop).rank == len(kept) < 6
    np.testing.assert_allclose(np.real(wh.certify(loop).eigenvalues), kept, rtol=1e-12)


def test_round_off_of_a_large_turn_is_no_growth():
    turn = jnp.array([[0.0, -10.0], [10.0, 0.0]])
    for growth, dissipative in (
        (5e-12, True),
        (5e-11, False),
    ):  # the loop's size is 14.2, its tolerance 1e-12 of that
        certificate = wh.Certificate(
            jnp.diag(jnp.array([1.0, -growth])), turn, jnp.zeros(2, dtype=complex), 1e-12
        )
        assert certificate.dissipative is dissipative


def test_a_loop_that_pushes_a_residual_away_is_not_dissipative():
    backwards = [np.asarray(NET.layers[0]), -50 * np.asarray(NET.layers[1])]
    certificate = wh.certify(
        wh.closed_loop(wh.response(NET, INPUTS[:1], adjoint=backwards), wh.direct())
    )
    assert not certificate.dissipative
    assert "some residual grows" in str(certificate)


SINGLE = wh.Network.random((3, 3, 3), seed=0, floor=0.1, dtype=np.float32)


class Noisy(wh.Law):
    """A law so ill-conditioned that the loop is what round-off left of it."""

    def matrix(self, response):
        values, modes = jnp.linalg.eigh(response.reduced())
        return (modes / jnp.where(jnp.abs(values) > 0, values, 1.0)[None, :]) @ modes.T


@pytest.mark.parametrize("net", [SINGLE, NET], ids=["float32", "float64"])
def test_a_loop_of_round_off_gets_no_verdict(net):
    certificate = wh.certify(wh.closed_loop(wh.response(net, INPUTS), Noisy()))
    assert certificate.roundoff > 1
    assert certificate.tol <= 1e-3
    assert (certificate.verdict, certificate.reciprocal, certificate.dissipative) == (
        "cannot tell",
        False,
        False,
    )
    assert str(certificate).startswith(
        "Whether this loop is reciprocal cannot be told in this precision"
    )
    assert "whether a residual grows cannot be told" in str(certificate)


def test_single_precision_finds_the_rank_that_double_precision_finds():
    driven = wh.response(SINGLE, INPUTS)
    assert driven.spectrum().rank == wh.certify(wh.closed_loop(driven, wh.direct())).rank == 6
    assert driven.spectrum(tol=0.0).rank == 6
    assert wh.response(NET, INPUTS).spectrum(tol=0.0).rank == 6


@pytest.mark.parametrize("law", [wh.direct(), wh.repair(), wh.leaky(0.1), wh.spectral(jnp.sqrt)])
def test_a_spectral_loop_in_single_precision_is_certified_with_a_small_tolerance(law):
    certificate = wh.certify(wh.closed_loop(wh.response(SINGLE, INPUTS), law))
    assert certificate.verdict == "reciprocal"
    assert certificate.tol < 1e-4
    assert "every residual decays" in str(certificate)


# A skew part of 1.1e-6 is more than the round-off, but half of it leaves real eigenvalues: one entry
# set to zero is a change of 1.1e-6 / sqrt(2) of the loop, less than the tolerance.
@pytest.mark.parametrize(
    ("share", "verdict"),
    [(1e-8, "reciprocal"), (9e-7, "cannot tell"), (1.1e-6, "borderline"), (2e-6, "turns")],
)
def test_a_skew_part_comparable_with_its_round_off_is_no_evidence(share, verdict):
    turn = jnp.array([[0.0, -share], [share, 0.0]])
    assert (
        wh.Certificate(jnp.eye(2), turn, jnp.ones(2, dtype=complex), 1e-6, 1e-6).verdict == verdict
    )


@pytest.mark.parametrize(
    ("slowest", "words"),
    [
        (1.0, "every residual decays at every instant"),
        (-1e-14, "no residual grows, up to round-off"),
        (-1e-3, "some residual grows"),
    ],
)
def test_a_decay_below_zero_never_stands_beside_every_residual_decays(slowest, words):
    symmetric = jnp.diag(jnp.array([1.0, slowest]))
    shown = str(
        wh.Certificate(
            symmetric, jnp.zeros((2, 2)), jnp.array([slowest, 1.0], dtype=complex), 1e-12
        )
    )
    assert f"decay       {slowest:.6g} to 1; {words}" in shown


@pytest.mark.parametrize("law", [wh.direct(), wh.leaky(0.1), wh.rotational(0.7, 2.0), wh.repair()])
@pytest.mark.parametrize("adjoint", [None, OTHER.layers], ids=["matched", "mismatched"])
def test_the_dissipation_is_how_fast_the_loss_falls_along_the_motion(law, adjoint):
    driven = wh.response(NET, INPUTS, selected=3, adjoint=adjoint)
    error = np.asarray(wh.residual(NET, INPUTS, TARGETS))[3:4]
    motion = driven.velocities(law(driven, error))
    moved = [
        layer + 1j * oracle.H * np.asarray(v)
        for layer, v in zip(oracle.arrays(NET)[0], motion, strict=True)
    ]
    slope = np.sum((TARGETS[3:4] - oracle.predict(moved, INPUTS[3:4])) ** 2 / 2).imag / oracle.H
    loop = wh.closed_loop(driven, law)
    np.testing.assert_allclose(wh.dissipation(loop, error).total, -slope, rtol=1e-12)
    np.testing.assert_allclose(error.ravel() @ loop.dense() @ error.ravel(), -slope, rtol=1e-12)


@pytest.mark.parametrize("name", ["direct", "leaky", "root", "fading"])
def test_every_mode_of_a_spectral_law_dissipates_its_share(name):
    law, r = LAWS[name]
    error = np.asarray(wh.residual(NET, INPUTS, TARGETS))
    values, modes = np.linalg.eigh(oracle.response(*oracle.arrays(NET), INPUTS))
    values, modes = values[-6:], modes[:, -6:]
    order = np.argsort(-values * r(values))
    lost = wh.dissipation(wh.closed_loop(wh.response(NET, INPUTS), law), error)
    np.testing.assert_allclose(lost.rates[:6], (values * r(values))[order], rtol=1e-10)
    np.testing.assert_allclose(
        lost.by_mode[:6], (values * r(values) * (modes.T @ error.ravel()) ** 2)[order], rtol=1e-9
    )
    np.testing.assert_allclose(lost.by_mode[6:], 0, atol=1e-15)


def test_a_rotational_law_dissipates_as_if_it_did_not_turn():
    error = np.asarray(wh.residual(NET, INPUTS, TARGETS))[3:4]
    loop = wh.closed_loop(wh.response(NET, INPUTS, selected=3), wh.rotational(0.7, 3.0))
    np.testing.assert_allclose(
        wh.dissipation(loop, error).total, 0.7 * np.sum(error**2), rtol=1e-12
    )


def test_a_certificate_reads_as_a_verdict():
    turning = str(
        wh.certify(wh.closed_loop(wh.response(NET, INPUTS, selected=3), wh.rotational(0.5, 2.0)))
    )
    assert turning.startswith("This loop is not reciprocal: it turns.")
    assert "0.97 of the loop, above the tolerance 1e-12" in turning
    assert "index       0.0588235 (1 reciprocal, 0 pure rotation)" in turning
    assert "decay       0.5 to 0.5; every residual decays at every instant" in turning
    assert "rotation    2 rad per unit time, 0.637 cycles per e-folding" in turning
    assert "directions  2 identifiable" in turning


def test_a_reciprocal_certificate_reads_as_a_verdict():
    straight = str(wh.certify(wh.closed_loop(wh.response(NET, INPUTS), wh.direct())))
    assert straight.startswith("This loop is reciprocal: it follows a gradient.")
    assert "within the tolerance 1e-12" in straight
    assert "index       1 (" in straight
    assert "directions  6 identifiable" in straight


def test_a_network_that_cannot_move_is_refused():
    frozen = wh.Network([np.eye(3)], support=[np.eye(3) > 0])
    with pytest.raises(
        ValueError, match="the response must have an identifiable direction, but it is zero"
    ):
        wh.closed_loop(wh.response(frozen, INPUTS), wh.direct())


def test_a_network_with_one_output_is_refused():
    with pytest.raises(
        ValueError, match=r"the system must have at least 2 outputs to respond, but it has 1$"
    ):
        wh.closed_loop(wh.response(wh.Network([np.ones((1, 3))]), INPUTS), wh.direct())


@pytest.mark.usefixtures("as_users_call_it")
def test_something_that_is_no_law_is_refused():
    with pytest.raises(
        ValueError,
        match=r"law must be a boundary law such as direct\(\) or leaky\(0.1\), but it is 'direct'$",
    ):
        wh.closed_loop(wh.response(NET, INPUTS), cast(Any, "direct"))


@pytest.mark.parametrize(
    ("tol", "sentence"),
    [(-1.0, "tol must be at least 0, but it is -1"), (np.nan, "tol must be finite, but")],
)
def test_a_tolerance_that_makes_no_sense_is_refused(tol, sentence):
    loop = wh.closed_loop(wh.response(NET, INPUTS), wh.direct())
    with pytest.raises(ValueError, match=sentence):
        wh.certify(loop, tol=tol)
    with pytest.raises(ValueError, match=sentence):
        wh.closed_loop(wh.response(NET, INPUTS), wh.direct(), tol=tol)


def test_a_residual_that_does_not_fit_the_loop_is_refused():
    loop = wh.closed_loop(wh.response(NET, INPUTS), wh.direct())
    with pytest.raises(
        ValueError, match=r"residual must have shape \(6, 3\), but its shape is \(1, 3\)$"
    ):
        wh.dissipation(loop, np.zeros((1, 3)))
