"""Three things are told apart, and what lies between them is named as such."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, optimize

import whorl as wh
from whorl.spectrum import Dynamics, closest_metric

INPUTS = np.asarray(wh.Task.random(3, 3, seed=1).inputs)
NET = wh.Network.random([3, 3, 3], seed=2, floor=0.1)


def certificate(matrix, *, tol=1e-12, roundoff=0.0, dtype=np.float64):
    matrix = jnp.asarray(matrix, dtype=dtype)
    values = np.linalg.eigvals(np.asarray(matrix)).astype(complex)
    return wh.Certificate(
        (matrix + matrix.T) / 2, (matrix - matrix.T) / 2, jnp.asarray(values), tol, roundoff
    )


def positive(size, rng, spread=1.0):
    turned = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return turned * np.exp(spread * rng.standard_normal(size)) @ turned.T


def jordan(size, value=1.0):
    return value * np.eye(size) + np.eye(size, k=1)


def similar(matrix, rng):
    """The same in a basis that is not orthogonal."""
    frame = np.eye(len(matrix)) + 0.3 * rng.standard_normal(matrix.shape)
    return frame @ matrix @ np.linalg.inv(frame)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(2))
def test_a_product_of_positive_matrices_is_a_gradient_in_another_metric(size, seed):
    rng = np.random.default_rng([size, seed])
    loop = positive(size, rng) @ positive(size, rng)
    found = certificate(loop)
    assert found.verdict == "gradient in another metric"
    assert not found.reciprocal
    metric = np.asarray(found.metric)
    assert np.linalg.eigvalsh(metric).min() > 0
    turned = metric @ loop
    np.testing.assert_allclose(turned, turned.T, rtol=0, atol=1e-9 * np.abs(turned).max())
    assert "gradient in another metric" in str(found)
    assert "rad per unit time" not in str(found)


class Another(wh.Law):
    """A positive definite boundary that has nothing to do with the response."""

    given: jnp.ndarray

    def matrix(self, response):
        return self.given


def test_a_positive_boundary_law_that_does_not_commute_never_turns():
    rng = np.random.default_rng(3)
    for _ in range(5):
        loop = wh.closed_loop(
            wh.response(NET, INPUTS), Another(jnp.asarray(positive(12, rng, 0.5)))
        )
        found = wh.certify(loop)
        assert found.verdict == wh.Verdict.GRADIENT
        assert found.rotations == []


@pytest.mark.parametrize("seed", range(3))
def test_the_metric_is_the_closest_to_the_identity_of_all_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    loop = positive(3, rng) @ positive(3, rng)
    _values, frame = np.linalg.eig(loop)
    inverse = np.linalg.inv(frame)

    def distance(logs):
        metric = inverse.T @ np.diag(np.exp(logs)) @ inverse
        return np.sum(np.log(np.linalg.eigvalsh(metric)) ** 2)

    best = min(
        (
            optimize.minimize(
                distance,
                start,
                method="Nelder-Mead",
                options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000},
            )
            for start in rng.standard_normal((3, 3))
        ),
        key=lambda found: found.fun,
    )
    ours = np.asarray(certificate(loop).metric)
    assert np.sum(np.log(np.linalg.eigvalsh(ours)) ** 2) == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(
        ours, inverse.T @ np.diag(np.exp(best.x)) @ inverse, rtol=1e-3, atol=1e-4
    )


def test_a_repeated_eigenvalue_leaves_more_freedom_and_it_is_used():
    rng = np.random.default_rng(5)
    frame = np.eye(4) + 0.4 * rng.standard_normal((4, 4))
    loop = frame @ np.diag([1.0, 1.0, 1.0, 3.0]) @ np.linalg.inv(frame)
    found = certificate(loop)
    assert found.verdict == "gradient in another metric"
    metric, inverse = np.asarray(found.metric), np.linalg.inv(frame)
    np.testing.assert_allclose(metric @ loop, (metric @ loop).T, atol=1e-9)

    def distance(numbers):
        root = np.zeros((4, 4))
        root[np.tril_indices(3)] = numbers[:6]
        root[3, 3] = numbers[6]
        sizes = np.linalg.eigvalsh(inverse.T @ root @ root.T @ inverse)
        return np.sum(np.log(np.maximum(sizes, 1e-12)) ** 2)

    start = np.linalg.cholesky(frame.T @ frame)
    best = optimize.minimize(
        distance, np.append(start[:3, :3][np.tril_indices(3)], 1.0), method="BFGS"
    ).fun
    assert np.sum(np.log(np.linalg.eigvalsh(metric)) ** 2) <= best * (1 + 1e-6)
    apart = closest_metric(frame, [np.array([at]) for at in range(4)])
    assert np.sum(np.log(np.linalg.eigvalsh(apart)) ** 2) > best * (1 + 1e-3)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(2))
def test_a_jordan_block_is_borderline_in_any_basis(size, dtype, seed):
    rng = np.random.default_rng([size, seed])
    tol = 1e-12 if dtype == np.float64 else 1e-6
    loop = similar(linalg.block_diag(jordan(size), 3.0), rng) if seed else jordan(size)
    found = certificate(loop, tol=tol, dtype=dtype)
    assert found.verdict == "borderline"
    assert found.metric is None
    assert "borderline" in str(found)


def test_a_jordan_block_of_turns_turns():
    turn = np.array([[1.0, -2.0], [2.0, 1.0]])
    loop = np.block([[turn, np.eye(2)], [np.zeros((2, 2)), turn]])
    found = certificate(loop)
    assert found.verdict == "turns"


@pytest.mark.parametrize(
    ("gap", "verdict"),
    [
        (1e-3, "gradient in another metric"),
        (-1e-3, "turns"),
        (1e-16, "borderline"),
        (-1e-16, "borderline"),
        (0.0, "borderline"),
    ],
)
def test_the_sign_of_the_discriminant_decides_for_two_directions(gap, verdict):
    assert certificate(np.array([[1.0, 1.0], [gap, 1.0]])).verdict == verdict


@pytest.mark.parametrize(
    ("matrix", "verdict"),
    [
        ([[2.0]], "reciprocal"),
        ([[0.0]], "reciprocal"),
        (np.zeros((3, 3)), "reciprocal"),
        (np.diag([1e-9, 1.0, 1e9]), "reciprocal"),
        (np.diag([1.0, 1e6]) @ np.array([[1.0, 0.5], [0.5, 1.0]]), "gradient in another metric"),
        (1e-150 * np.array([[1.0, -1.0], [1.0, 1.0]]), "turns"),
        (1e150 * np.array([[1.0, 0.5], [0.1, 2.0]]), "gradient in another metric"),
        (np.array([[0.0, -1.0], [1.0, 0.0]]), "turns"),
    ],
)
def test_edges_get_the_right_word(matrix, verdict):
    found = certificate(np.array(matrix))
    assert found.verdict == verdict
    assert str(found)


@pytest.mark.parametrize("seed", range(2))
def test_single_precision_tells_the_same(seed):
    rng = np.random.default_rng(seed)
    gradient = positive(4, rng, 0.5) @ positive(4, rng, 0.5)
    turning = similar(linalg.block_diag([[1.0, -0.5], [0.5, 1.0]], np.diag([2.0, 3.0])), rng)
    for loop, verdict in ((gradient, "gradient in another metric"), (turning, "turns")):
        assert certificate(loop, tol=1e-6, dtype=np.float32).verdict == verdict


def test_a_turning_loop_shows_rates_decay_and_plane():
    rng = np.random.default_rng(0)
    loop = similar(linalg.block_diag([[0.5, -2.0], [2.0, 0.5]], np.diag([1.0, 3.0])), rng)
    found = certificate(loop)
    ((decay, rate, plane),) = found.rotations
    assert (decay, rate) == (pytest.approx(0.5), pytest.approx(2.0))
    # The plane is invariant: the loop maps it into itself.
    moved = loop @ plane
    np.testing.assert_allclose(moved - plane @ (plane.T @ moved), 0, atol=1e-12)
    assert f"{2.0 / 0.5 / (2 * np.pi):.3g} cycles per e-folding" in str(found)


def test_growth_before_decay_is_that_of_a_fine_search():
    loop = np.array([[1.0, -8.0], [0.0, 2.0]])
    found = certificate(loop)
    growth = found.growth
    times = np.linspace(0, 5, 20001)
    # Upper triangular, so that the exponential is known.
    sizes = [
        np.linalg.norm([[np.exp(-t), 8 * (np.exp(-t) - np.exp(-2 * t))], [0, np.exp(-2 * t)]], 2)
        for t in times
    ]
    assert growth.factor == pytest.approx(max(sizes), rel=1e-7)
    assert growth.time == pytest.approx(times[int(np.argmax(sizes))], abs=5e-4)
    assert growth.rate == pytest.approx(np.linalg.eigvalsh(-(loop + loop.T) / 2).max())
    assert -growth.first @ loop @ growth.first == pytest.approx(growth.rate)
    grown = linalg.expm(-loop * growth.time) @ growth.largest
    assert np.linalg.norm(grown) == pytest.approx(growth.factor)
    assert f"some residual grows at first, to {growth.factor:.6g} times its size" in str(found)
    calm = certificate(np.diag([1.0, 2.0])).growth
    assert (calm.factor, calm.time) == (1.0, 0.0)
    assert certificate(np.array([[-1.0, 3.0], [0.0, 2.0]])).growth.factor == np.inf
    assert "grows without bound" in str(certificate(np.array([[-1.0, 3.0], [0.0, 2.0]])))


def test_a_spectrum_that_is_known_badly_is_borderline():
    loop = np.array([[1.0, 0.3], [-0.01, 1.1]])
    assert [Dynamics(loop, error).verdict for error in (1e-6, 0.15)] == ["turns", "borderline"]
    calm = np.array([[1.0, 0.3], [0.01, 1.4]])
    assert [Dynamics(calm, error).verdict for error in (1e-6, 0.15)] == [
        "gradient in another metric",
        "borderline",
    ]


def test_every_verdict_has_a_word_a_colour_and_a_code_of_its_own():
    verdicts = list(wh.Verdict)
    assert [str(one) for one in verdicts] == [
        "reciprocal",
        "gradient in another metric",
        "turns",
        "borderline",
        "inconclusive",
        "cannot tell",
    ]
    assert len({one.colour for one in verdicts}) == 5  # the last two are answers to one question
    assert [one.code for one in verdicts] == [0, 3, 1, 4, 4, 4]
    assert [one.follows for one in verdicts] == [True, True, False, False, False, False]


def test_no_loop_within_the_tolerance_of_one_that_turns_has_real_eigenvalues():
    draws = np.random.default_rng(7)
    near = np.array([[1.0, 1.0], [-1e-3, 1.0]])
    loops = [near] + [draws.normal(size=(n, n)) for n in (2, 2, 2, 3, 3, 4) for _ in range(8)]
    surely = 0
    for loop in loops:
        for error in (1e-3, 1e-2, 0.1, 0.3):
            if wh.Dynamics(loop, error).verdict != "turns":
                continue
            surely += 1
            size = error * np.linalg.norm(loop)
            for candidate in _pulled_to_the_real_axis(loop, size, draws):
                assert np.linalg.norm(candidate - loop) <= size * (1 + 1e-12)
                assert np.abs(np.imag(np.linalg.eigvals(candidate))).max() > 0
    assert surely > 20
    assert wh.Dynamics(near, 1e-3).verdict == "borderline"
    assert wh.Dynamics(near, 5e-4).verdict == "turns"


def _pulled_to_the_real_axis(loop, size, draws):
    """Loops within `size` whose largest rotation was pushed down by gradient steps."""
    for trial in range(6):
        moved = loop + 0
        for _ in range(60):
            found: Any = linalg.eig(moved, left=True, right=True)
            values, left, right = found
            at = np.argmax(np.abs(np.imag(values)))
            if np.imag(values[at]) == 0:
                break
            overlap = np.conj(left[:, at]) @ right[:, at]
            slope = np.imag(np.outer(np.conj(left[:, at]), right[:, at]) / overlap)
            slope *= np.sign(np.imag(values[at]))
            slope = slope + 0.1 * trial * np.linalg.norm(slope) * draws.normal(size=loop.shape)
            apart = moved - size * slope / np.linalg.norm(slope) / 5 - loop
            moved = loop + apart * min(1.0, size / np.linalg.norm(apart))
        yield moved
