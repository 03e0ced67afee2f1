"""The likelihood of a linear loop with noise: against the dense density, and at odd edges."""

import numpy as np
import pytest
from scipy import linalg, stats

from measured.trials import OTHER, STRAIGHT, TURNED, relaxations, stationary
from whorl import measured
from whorl.measured import likelihood, series

LOOP = np.array([[1.0, 0.4], [-0.2, 1.5]])
REST = np.array([0.3, -0.1])
DRIVE = np.array([[0.5, 0.1], [0.1, 0.3]])
NOISE = np.array([0.02, 0.05])


def gained(gap, loop=LOOP):
    """What noise adds to the covariance over a gap, by the exponential of a larger matrix."""
    both = np.block([[-loop, DRIVE], [np.zeros((2, 2)), loop.T]])
    whole = linalg.expm(both * gap)
    return whole[:2, 2:] @ whole[:2, :2].T


def dense(time, state, loop=LOOP):
    """The density of all samples but the first, as one large normal vector."""
    count = len(time) - 1
    mean, cover = np.zeros((count, 2)), np.zeros((count, 2, count, 2))
    for one in range(count):
        first = linalg.expm(-loop * (time[one + 1] - time[0]))
        mean[one] = REST + first @ (state[0] - REST)
        for other in range(one, count):
            then = linalg.expm(-loop * (time[other + 1] - time[one + 1]))
            since = first @ np.diag(NOISE) @ first.T + gained(time[one + 1] - time[0], loop)
            cover[one, :, other] = since @ then.T + (one == other) * np.diag(NOISE)
            cover[other, :, one] = cover[one, :, other].T
    normal = stats.multivariate_normal(mean.ravel(), cover.reshape(2 * count, 2 * count))
    return normal.logpdf(state[1:].ravel())


def filtered(time, state, loop=LOOP, noise=NOISE):
    model = likelihood.Model(loop[None], (loop @ REST)[None], DRIVE[None], noise[None])
    return likelihood.log_density(model, likelihood.paths([state], [time]))[0]


@pytest.mark.parametrize(
    "loop", [LOOP, np.diag([0.0, 1.0]), np.array([[1.0, -2.0], [2.0, 1.0]])], ids=str
)
def test_the_filter_has_the_density_of_one_large_normal_vector(loop):
    rng = np.random.default_rng(0)
    time, state = np.cumsum(rng.uniform(0.05, 0.9, 9)), rng.standard_normal((9, 2))
    assert filtered(time, state, loop) == pytest.approx(dense(time, state, loop), abs=1e-9)
    # Seen to fail: another noise, another loop.
    assert abs(filtered(time, state, loop, 1.01 * NOISE) - dense(time, state, loop)) > 1e-4
    assert abs(filtered(time, state, 1.01 * loop.T) - dense(time, state, loop)) > 1e-4


def test_stretches_of_different_length_add_up():
    rng = np.random.default_rng(1)
    times = [np.cumsum(rng.uniform(0.1, 0.5, count)) for count in (4, 7, 2)]
    states = [rng.standard_normal((len(time), 2)) for time in times]
    model = likelihood.Model(LOOP[None], (LOOP @ REST)[None], DRIVE[None], NOISE[None])
    together = likelihood.log_density(model, likelihood.paths(states, times))[0]
    alone = sum(dense(time, state) for time, state in zip(times, states, strict=True))
    assert together == pytest.approx(alone, abs=1e-9)


def test_the_estimate_is_more_likely_than_its_neighbours_and_finds_both_noises():
    rng = np.random.default_rng(2)
    time, state, _ = stationary(STRAIGHT, rng, steps=600, noise=0.3, uneven=True)
    course = series.follow(series.runs(time, state))
    given = likelihood.paths([state], [time])

    def density(loop):
        model = (loop, loop @ course.rest, course.drive, course.noise**2)
        return likelihood.log_density(likelihood.Model(*(one[None] for one in model)), given)[0]

    top = density(course.loop)
    for place in np.ndindex(2, 2):
        for side in (-0.3, 0.3):
            beside = course.loop.copy()
            beside[place] += side
            assert density(beside) < top
    cover = linalg.solve_continuous_lyapunov(STRAIGHT, np.eye(2))
    np.testing.assert_allclose(course.noise, 0.3 * np.sqrt(np.trace(cover) / 2), rtol=0.3)
    np.testing.assert_allclose(course.drive, np.eye(2), atol=0.4)


@pytest.mark.parametrize("loop", [STRAIGHT, OTHER, TURNED], ids=["straight", "other", "turned"])
def test_exact_series_give_the_loop_and_certainty(loop):
    time, state, run = relaxations(loop, np.random.default_rng(3), runs=6, noise=0.0, uneven=True)
    phase = measured.follow(time, state, run=run).phases[0]
    np.testing.assert_allclose(phase.course.loop, loop, atol=1e-6)
    assert phase.p == (1.0 if loop is STRAIGHT else 0.0)
    assert phase.power.power == 1.0
    assert phase.effects == {}


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("which", ["time", "state"])
def test_units_change_no_verdict(unit, which):
    time, state, run = relaxations(TURNED, np.random.default_rng(4), runs=6, noise=0.02)
    plain = measured.follow(time, state, run=run).phases[0]
    scaled = [time * unit, state] if which == "time" else [time, state * unit]
    other = measured.follow(*scaled, run=run).phases[0]
    assert (other.verdict, other.p) == (plain.verdict, plain.p)
    assert other.course.skewness == pytest.approx(plain.course.skewness, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t, x: (np.floor(t), x), "time must increase within a run, but row 2 has 0 after 0"),
        (lambda t, x: (-t, x), "time must increase within a run"),
        (lambda t, x: (t, np.where(t[:, None] > 1, np.nan, x)), "state must be finite, but entry"),
        (lambda t, x: (t, 0 * x + 3), "state_1 must vary, but it is 3 throughout"),
    ],
)
def test_what_cannot_be_a_series_is_refused(change, sentence):
    time, state, run = relaxations(TURNED, np.random.default_rng(5), runs=3)
    with pytest.raises(ValueError, match=sentence):
        measured.follow(*change(time, state), run=run)


def test_no_rejection_with_little_power_is_inconclusive_for_series_too(tmp_path):
    time, state, _ = stationary(STRAIGHT, np.random.default_rng(1), steps=60)
    found = measured.follow(time, state)
    assert found.verdict == "inconclusive"
    assert str(found).startswith("Inconclusive: these series cannot tell")
    assert found.to_dict()["code"] == 4
    quiet = measured.follow(*relaxations(STRAIGHT, np.random.default_rng(1), noise=0.01)[:2])
    assert quiet.verdict == "reciprocal"
    page = measured.write(found, tmp_path / "p.html").read_text()
    assert "had a chance of" in page
    assert page.count("<figure>") == 5
    assert measured.write(quiet, tmp_path / "p.pdf").read_bytes().startswith(b"%PDF")
