"""Laws under budgets: their bounds against laws that try to beat them, and how they are reached.

Exact arithmetic (mpmath) builds the geometric law once more, from ratios instead of logarithms.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import linalg, optimize

import whorl as wh
from whorl.budget import critical_turn, geometric_factors, gyration, resolved_modes
from whorl.learning import schedule

TASK = wh.Task.random(3, 3, seed=4)
INPUTS, TARGETS = np.asarray(TASK.inputs), np.asarray(TASK.targets)
NET = wh.Network.random((3, 3, 3), seed=5, floor=0.1)
ONE, JOINT = wh.response(NET, INPUTS, selected=1), wh.response(NET, INPUTS)
LONE = wh.response(wh.Network.random((3, 2), seed=0), INPUTS[:1])
SPECTRA = {
    "pair": [0.22, 0.05],
    "table": [0.41, 0.23, 0.13, 0.07, 0.04, 0.01],
    "steep": [0.53, 0.18, 0.063, 0.018, 0.0027, 3e-6],
    "flat": [0.3] * 5,
    "steps": [1.0, 1.0, 1e-6, 1e-6],
    "1e12": [1.0, 1e-12],
}


def spectrum(size, condition, seed):
    """Random eigenvalues with the given ends, largest first."""
    inner = np.random.default_rng(seed).uniform(0, np.log(condition), size - 2)
    return np.exp(-np.sort(np.concatenate([[0.0], inner, [np.log(condition)]])))


def triangle(values):
    """Q^T K P of the geometric law, its columns in an order that makes it a triangle."""
    left, right = (
        np.asarray(part) for part in geometric_factors(jnp.asarray(values), kept(values))
    )
    return left, right, left.T @ np.diag(values) @ right


def kept(values):
    return jnp.ones(len(values), dtype=bool)


def rate(values, law):
    return np.linalg.eigvals(np.diag(values) @ law).real.min()


def mean(values):
    return np.exp(np.mean(np.log(values)))


def exactly_geometric(values, digits=60):
    """The geometric law in exact arithmetic, from the ratios that Jiang, Hager and Li give."""
    with mpmath.workdps(digits):
        values = [mpmath.mpf(float(one)) for one in values]
        size = len(values)
        middle = mpmath.root(mpmath.fprod(values), size)
        left, right = mpmath.eye(size), mpmath.eye(size)
        pool = list(range(size))
        while len(pool) > 1:
            high, low = max(pool, key=values.__getitem__), min(pool, key=values.__getitem__)
            x, y = values[high], values[low]
            if high != low and x > y:
                c = mpmath.sqrt((middle**2 - y**2) / (x**2 - y**2))
                s = mpmath.sqrt((x**2 - middle**2) / (x**2 - y**2))
                for basis, cos, sin in ((left, c * x / middle, s * y / middle), (right, c, s)):
                    for row in range(size):
                        a, b = basis[row, high], basis[row, low]
                        basis[row, high], basis[row, low] = cos * a + sin * b, cos * b - sin * a
                values[low] = x * y / middle
            pool.remove(high if high != low else pool[0])
        return right * left.T, middle


@pytest.mark.sampled(2)
@pytest.mark.parametrize("values", SPECTRA.values(), ids=SPECTRA)
def test_the_geometric_law_is_that_of_exact_arithmetic(values):
    left, right = geometric_factors(jnp.asarray(values), kept(values))
    exact, _ = exactly_geometric(values)
    wanted = np.array(exact.tolist(), dtype=float)
    np.testing.assert_allclose(right @ left.T, wanted, rtol=0, atol=1e-13)


def reached(size, condition, seed):
    """How far the construction is from a triangle with the mean on its diagonal, all relative."""
    values = spectrum(size, condition, seed)
    left, right, product = triangle(values)
    eye = np.eye(size)
    assert max(np.abs(part.T @ part - eye).max() for part in (left, right)) < 1e-13
    # Exact products of what floating point made: no other error than the construction's own.
    with mpmath.workdps(50):
        exact = (
            mpmath.matrix(left.tolist()).T
            * mpmath.diag([float(one) for one in values])
            * mpmath.matrix(right.tolist())
        )
        product = np.array(exact.tolist(), dtype=float)
    # Rows that are done early reach into all others: the number of entries gives the order.
    order = np.argsort(-(np.abs(product) > 1e-13).sum(axis=1), kind="stable")
    ordered = product[np.ix_(order, order)]
    off = np.abs(np.diag(ordered) / mean(values) - 1).max()
    return off, np.abs(np.tril(ordered, -1)).max()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [2, 3, 6, 13, 30])
@pytest.mark.parametrize("condition", [10.0, 1e6, 1e12])
def test_the_diagonal_of_the_triangle_is_the_geometric_mean(size, condition):
    off, below = reached(size, condition, seed=size)
    assert off < 1e-12
    assert below < 1e-12 * mean(spectrum(size, condition, size))


@pytest.mark.slow
def test_every_size_from_2_to_30_reaches_the_geometric_mean_at_every_condition():
    for size in range(2, 31):
        for condition in (10.0, 1e3, 1e6, 1e9, 1e12):
            off, below = reached(size, condition, seed=1000 + size)
            assert off < 1e-12
            assert below < 1e-12 * mean(spectrum(size, condition, 1000 + size))


def adversary(values, seed, symmetric=False):
    """The largest rate that an optimiser finds among laws of norm one, from a random start."""
    size = len(values)

    def law(x):
        matrix = x.reshape(size, size)
        matrix = (matrix + matrix.T) / 2 if symmetric else matrix
        return matrix / np.linalg.norm(matrix, 2)

    start = np.random.default_rng(seed).standard_normal(size**2)
    found = optimize.minimize(
        lambda x: -rate(values, law(x)), start, method="Nelder-Mead", options={"maxfev": 400}
    )
    return -found.fun


def beaten(starts, symmetric):
    """How far an optimiser gets towards the bound, at best, over conditions and sizes."""
    best = 0.0
    for seed in range(starts):
        values = spectrum(2 + seed % 3, 10.0 ** (1 + seed % 4), seed)
        bound = values[-1] if symmetric else mean(values)
        best = max(best, adversary(values, seed, symmetric) / bound)
    return best


@pytest.mark.parametrize("symmetric", [True, False])
def test_no_optimiser_beats_the_bound_from_a_few_starts(symmetric):
    assert 0.5 < beaten(12, symmetric) <= 1 + 1e-12


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("symmetric", [True, False])
def test_no_optimiser_beats_the_bound_from_a_thousand_starts(symmetric):
    assert 0.95 < beaten(1000, symmetric) <= 1 + 1e-12


def test_no_random_law_beats_the_bound():
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(2, 31))
        values = spectrum(size, 10 ** rng.uniform(0, 12), rng)
        law = linalg.qr(rng.standard_normal((size, size)))[0] * rng.uniform(0, 1, size)
        assert rate(values, law) <= mean(values) * (1 + 1e-9)
        assert rate(values, law @ law.T) <= values[-1] * (1 + 1e-3)


def skew_adversary(symmetric, seed):
    """The largest rate that an optimiser finds by adding a skew part."""
    size = len(symmetric)
    upper = np.triu_indices(size, 1)

    def least(x):
        skew = np.zeros((size, size))
        skew[upper] = x
        return -np.linalg.eigvals(symmetric + skew - skew.T).real.min()

    start = np.random.default_rng(seed).standard_normal(len(upper[0]))
    found = optimize.minimize(least, start, method="Nelder-Mead", options={"maxfev": 400})
    return -found.fun


@pytest.mark.parametrize("starts", [10, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_skew_part_beats_the_arithmetic_mean(starts):
    best = 0.0
    for seed in range(starts):
        values = spectrum(2 + seed % 3, 10.0 ** (1 + seed % 4), seed)
        best = max(best, skew_adversary(np.diag(values), seed) / values.mean())
    assert 0.9 < best <= 1 + 1e-12


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [2, 3, 7, 30])
@pytest.mark.parametrize("condition", [1.5, 1e12])
def test_a_gyration_brings_every_real_part_to_the_arithmetic_mean(size, condition):
    values = spectrum(size, condition, seed=size)
    turned = linalg.qr(np.random.default_rng(size).standard_normal((size, size)))[0]
    symmetric = turned @ np.diag(values) @ turned.T
    skew = np.asarray(gyration(jnp.asarray(symmetric), kept(values)))
    assert np.abs(skew + skew.T).max() < 1e-13
    found = np.linalg.eigvals(symmetric + skew).real
    np.testing.assert_allclose(found, values.mean(), rtol=1e-10)


def test_the_critical_turn_lets_two_eigenvalues_meet():
    values = np.array([0.22, 0.05])
    cosine, sine = critical_turn(*jnp.asarray(values))
    assert float(cosine) == pytest.approx(2 * np.sqrt(0.22 * 0.05) / 0.27, rel=1e-15)
    turn = np.array([[cosine, -sine], [sine, cosine]])
    trace, determinant = np.trace(np.diag(values) @ turn), np.prod(values)
    assert (trace / 2) ** 2 == pytest.approx(determinant, rel=1e-14)
    wider = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert rate(values, wider) < trace / 2
    assert rate(values, np.eye(2)) < trace / 2


@pytest.mark.parametrize("sense", [1, -1])
def test_the_critical_law_is_the_geometric_law_of_one_sample(sense):
    loop = wh.closed_loop(ONE, wh.critical(2.0, sense)).restricted()
    bound = float(wh.rate_bounds(ONE, 2.0).turning)
    assert np.trace(loop) / 2 == pytest.approx(bound, rel=1e-13)
    assert np.linalg.det(loop) == pytest.approx(bound**2, rel=1e-13)
    turned = np.asarray(wh.critical(2.0, sense).matrix(ONE))
    alike = [np.asarray(wh.geometric(2.0, way).matrix(ONE)) for way in (1, -1)]
    assert min(np.abs(turned - one).max() for one in alike) < 1e-13
    other = np.asarray(wh.critical(2.0, -sense).matrix(ONE))
    np.testing.assert_allclose(turned, other.T, rtol=0, atol=1e-15)


@pytest.mark.parametrize("law", [wh.geometric, wh.paired, lambda g: wh.paired(g, 0.3)])
def test_a_law_keeps_to_its_gain_and_to_the_identifiable_directions(law):
    matrix = np.asarray(law(0.7).matrix(JOINT))
    np.testing.assert_allclose(matrix @ matrix.T, 0.49 * np.eye(12), rtol=0, atol=1e-13)
    silent = np.asarray(JOINT.spectrum().modes)[:, 6:]
    np.testing.assert_allclose(matrix @ silent, 0.7 * silent, rtol=0, atol=1e-6)
    assert not wh.certify(wh.closed_loop(JOINT, law(0.7))).reciprocal


def test_paired_turns_relax_at_the_smallest_geometric_mean_of_a_pair():
    values = np.asarray(JOINT.spectrum().eigenvalues)[:6]
    pairs = np.sqrt(values[:3] * values[:2:-1])
    found = np.linalg.eigvals(wh.closed_loop(JOINT, wh.paired()).restricted())
    assert found.real.min() == pytest.approx(pairs.min(), rel=1e-6)
    gentle = np.linalg.eigvals(wh.closed_loop(JOINT, wh.paired(least_cosine=0.9)).restricted())
    assert values[5] < gentle.real.min() < pairs.min()


def test_an_odd_number_of_modes_leaves_the_middle_one_alone():
    law = np.asarray(wh.paired().orthogonal(jnp.array([0.5, 0.2, 0.1]), kept([1] * 3)))
    np.testing.assert_allclose(law[1], [0.0, 1.0, 0.0], rtol=0, atol=1e-15)
    assert law[0, 2] < 0 < law[2, 0]


def test_bounds_are_the_means_of_the_eigenvalues():
    values = np.asarray(JOINT.spectrum().eigenvalues)[:6]
    bounds = wh.rate_bounds(JOINT, 3.0)
    assert bounds.rank == 6
    wanted = [3 * values[-1], 3 * mean(values), 3 * values.mean()]
    found = [float(one) for one in (bounds.reciprocal, bounds.turning, bounds.gyrating)]
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    assert "6 directions" in str(bounds)


def test_a_gyrating_law_keeps_the_symmetric_part_of_the_loop():
    values, _, modes = resolved_modes(JOINT, 1e-10)
    for base, wanted in [
        (wh.direct(), values[:6]),
        (wh.leaky(0.1), values[:6] / (values[:6] + 0.1)),
    ]:
        loop = wh.closed_loop(JOINT, wh.gyrating(base)).restricted()
        found = np.linalg.eigvalsh((loop + loop.T) / 2)[::-1]
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
        np.testing.assert_allclose(np.linalg.eigvals(loop).real, np.mean(wanted), rtol=1e-9)
    given = modes @ jnp.diag(jnp.asarray([3.0, 1, 1, 1, 1, 1] + [0.0] * 6)) @ modes.T
    loop = wh.closed_loop(JOINT, wh.gyrating(given)).restricted()
    np.testing.assert_allclose(np.linalg.eigvals(loop).real, 8 / 6, rtol=1e-9)


def test_a_deadbeat_step_ends_within_as_many_updates_as_there_are_directions():
    values = np.array([0.41, 0.23, 0.13, 0.07])
    left, right = (
        np.asarray(part) for part in geometric_factors(jnp.asarray(values), kept(values))
    )
    step = np.eye(4) - np.diag(values) @ right @ left.T / mean(values)
    assert np.abs(np.linalg.matrix_power(step, 4)).max() < 1e-13
    assert np.abs(step).max() > 0.1


def test_a_fair_random_sense_is_slower_than_direct_feedback():
    law = np.asarray(wh.critical().matrix(ONE)), np.asarray(wh.critical(sense=-1).matrix(ONE))
    average = (law[0] + law[1]) / 2
    np.testing.assert_allclose(average, average[0, 0] * np.eye(2), rtol=0, atol=1e-14)
    assert average[0, 0] < 1


def test_no_law_spends_less_impulse_than_repair():
    values = np.array([0.4, 0.1, 0.02])
    error = np.array([0.3, -0.2, 0.5])
    least = np.linalg.norm(error / values)
    times = np.linspace(0, 1200, 60001)
    left, right = (
        np.asarray(part) for part in geometric_factors(jnp.asarray(values), kept(values))
    )
    for law in (np.eye(3), right @ left.T, np.diag(1 / (values + 0.1))):
        flow = linalg.expm(-np.diag(values) @ law * times[1])
        path = [error]
        for _ in times[1:]:
            path.append(flow @ path[-1])
        spent = np.trapezoid(np.linalg.norm(np.array(path) @ law.T, axis=1), times)
        assert spent > least * (1 - 1e-4)
    assert np.trapezoid(np.exp(-times) * least, times) == pytest.approx(least, rel=1e-3)


@pytest.mark.slow
def test_the_krylov_law_of_a_budget_is_the_dense_one_where_it_sees_all_directions():
    three = wh.response(NET, INPUTS[:3])
    error = np.asarray(wh.residual(NET, INPUTS[:3], TARGETS[:3]))
    for law in (wh.geometric(0.5), wh.paired(0.5, sense=-1)):
        wanted = law(three, error)
        np.testing.assert_allclose(wh.krylov(law)(three, error), wanted, rtol=0, atol=1e-9)
        few = np.asarray(wh.krylov(law, most=2)(three, error))
        assert np.linalg.norm(few) == pytest.approx(0.5 * np.linalg.norm(error), rel=1e-12)
        assert np.abs(few - wanted).max() > 1e-3


def test_curvature_takes_a_law_under_a_budget():
    law = wh.critical()
    found = wh.curvature(NET, INPUTS, TARGETS, selected=1, law=law)
    matrix = np.asarray(law.matrix(ONE))
    same = wh.rotational(matrix[0, 0], 1.0, base=wh.direct())
    unit = wh.curvature(NET, INPUTS, TARGETS, selected=1, law=same)
    assert float(found.coefficient) == pytest.approx(
        float(unit.coefficient) * matrix[1, 0] ** 2, rel=1e-10
    )
    even = wh.even_difference(NET, INPUTS, TARGETS, selected=1, step=1e-3, law=law)
    assert float(even) / 1e-6 == pytest.approx(float(found.coefficient), rel=1e-2)
    assert "through critical" in str(found)


@pytest.mark.slow
def test_laws_under_budgets_learn_and_are_made_under_jit():
    rule = wh.boundary(wh.critical())
    run = wh.learn(NET, INPUTS, TARGETS, rule=rule, scale=0.2, epochs=3, seed=0)
    assert float(run.final) < float(run.start)
    for law in (wh.critical(), wh.geometric(), wh.paired(), wh.gyrating()):
        inside = jax.jit(lambda made=law: made.matrix(ONE))()
        np.testing.assert_allclose(inside, law.matrix(ONE), rtol=1e-9, atol=1e-12)


def test_one_direction_is_not_turned():
    np.testing.assert_allclose(wh.geometric().matrix(LONE), [[1.0]])
    assert str(wh.rate_bounds(LONE)).startswith("1 direction relaxes at a rate of at most")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wh.critical(0.0), "gain must be greater than 0, but it is 0"),
        (lambda: wh.geometric(sense=0), "sense must be 1 or -1, but it is 0"),
        (lambda: wh.paired(least_cosine=1.5), "least_cosine must be at most 1, but it is 1.5"),
        (lambda: wh.paired(tol=1.0), "tol must be less than 1, but it is 1"),
        (lambda: wh.gyrating([[0.0, 1.0], [0.0, 0.0]]), "symmetric must be symmetric"),
        (lambda: wh.gyrating(np.ones((2, 3))), "symmetric must be square"),
        (lambda: wh.gyrating(wh.rotational()), "symmetric must be a spectral law"),
        (lambda: wh.gyrating(np.eye(3)).matrix(ONE), r"shape \(2, 2\) of the reduced response"),
        (lambda: wh.critical().matrix(JOINT), "critical must act on one sample, but there are"),
        (lambda: wh.critical().matrix(LONE), "at least 2 directions, but 2 outputs have one"),
        (lambda: wh.rate_bounds(ONE, -1.0), "gain must be greater than 0, but it is -1"),
        (lambda: schedule.flipping_turns(3, 1.5, 0), "frequency must be at most 1, but it is 1.5"),
        (lambda: schedule.constant_turns(3, 2), r"turn must be \+1 or -1, but it is 2"),
        (lambda: wh.curvature(NET, INPUTS, TARGETS, law=wh.direct()), "has to name a turn"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_flips_come_with_the_frequency_that_is_asked_for():
    turns = schedule.flipping_turns(20_000, 0.1, seed=1)
    flips = np.mean([one != other for one, other in pairwise(turns.tolist())])
    assert abs(flips - 0.1) < 0.01
    assert set(schedule.constant_turns(50).tolist()) == {1}
