"""The estimate of the loop, by two routes, and its agreement with the library's certificate."""

import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from measured.loops import fitted, reciprocal_loop, series, skewed_loop, spiral_loop
from whorl import measured
from whorl.measured import bootstrap, estimate, flips, moments, power, turning
from whorl.measured.intake import Intake, Rows
from whorl.simplex import tangent_basis

LAWS = {
    "direct": wh.direct(),
    "repair": wh.repair(),
    "leaky": wh.leaky(0.1),
    "spectral": wh.spectral(lambda values: 1.0 / (0.3 + values**2)),
    "rotational": wh.rotational(alpha=1.0, omega=0.8),
    "rotational leaky": wh.rotational(alpha=1.0, omega=2.0, base=wh.leaky(0.05)),
}


def whole(finding):
    """The fitted loop over the outputs."""
    fit = finding.leading.fit
    lift = tangent_basis(finding.outputs) @ fit.basis
    return lift @ fit.loop @ lift.T


def test_least_squares_agrees_with_lstsq_and_with_the_normal_equations():
    rng = np.random.default_rng(0)
    applied = rng.standard_normal((40, 4))
    seen = applied @ reciprocal_loop(4, rng).T + rng.standard_normal((40, 4))
    uncertainty = rng.uniform(0.5, 2.0, 40)
    basis, root = tangent_basis(4), 1 / uncertainty[:, None]
    drive, answer = np.c_[applied @ basis, np.ones(40)], seen @ basis
    by_lstsq = np.linalg.lstsq(drive * root, answer * root, rcond=None)[0].T
    weights = np.diag(root[:, 0] ** 2)
    by_normal = np.linalg.inv(drive.T @ weights @ drive) @ drive.T @ weights @ answer
    finding = measured.certify(applied, seen, uncertainty=uncertainty)
    np.testing.assert_allclose(
        whole(finding), basis @ by_lstsq[:, :3] @ basis.T, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        finding.leading.fit.offset, by_lstsq[:, 3] @ finding.leading.fit.basis
    )
    np.testing.assert_allclose(by_normal.T, by_lstsq, rtol=1e-9, atol=1e-12)
    gaps = (answer - drive @ by_lstsq.T) * root
    assert finding.leading.fit.scatter == pytest.approx(
        np.sqrt(np.sum(gaps**2) / ((40 - 4) * 3)), rel=1e-9
    )


@pytest.mark.parametrize("name", LAWS)
def test_an_exact_measurement_of_a_library_network_gives_the_certificate(name):
    net = wh.Network.random((3, 3, 3), imbalance=4.0, floor=0.1, seed=7)
    response = wh.response(net, wh.Task.random(3, 3, seed=1).inputs, selected=0)
    loop = wh.closed_loop(response, LAWS[name])
    certificate = wh.certify(loop)
    applied, runs = series(3, 12)
    finding = measured.certify(applied, applied @ np.asarray(loop.dense()).T, repeat=runs)
    assert finding.turns == (not certificate.reciprocal)
    assert finding.leading.fit.index == pytest.approx(certificate.index, abs=1e-12)
    np.testing.assert_allclose(
        np.sort_complex(finding.leading.fit.eigenvalues),
        np.sort_complex(certificate.eigenvalues),
        atol=1e-10,
    )
    assert finding.leading.mass.exact


@pytest.mark.parametrize("level", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("name", LAWS)
def test_the_verdict_on_a_noisy_library_network_is_that_of_the_certificate(name, level):
    net = wh.Network.random((3, 4, 3), imbalance=2.0, floor=0.2, seed=3)
    loop = wh.closed_loop(
        wh.response(net, wh.Task.random(3, 3, seed=1).inputs, selected=0), LAWS[name]
    )
    matrix = np.asarray(loop.dense())
    applied, runs = series(3, 24)
    rng = np.random.default_rng(11)
    seen = applied @ matrix.T + level * np.linalg.norm(matrix) * rng.standard_normal(applied.shape)
    finding = measured.certify(applied, seen, repeat=runs)
    assert finding.turns == (not wh.certify(loop).reciprocal)


def test_a_joint_loop_over_samples_is_estimated_in_the_librarys_order():
    net = wh.Network.random((3, 3), imbalance=1.0, floor=0.1, seed=2)
    response = wh.response(net, wh.Task.random(3, 3, seed=4).inputs[:2])
    turned = wh.rotational(alpha=1.0, omega=1.0, skew=wh.sample_turn(2, 3), base=wh.leaky(0.1))
    loop = wh.closed_loop(response, turned)
    rng = np.random.default_rng(0)
    applied = rng.standard_normal((60, 2, 3))
    seen = np.asarray(jnp.asarray(applied.reshape(60, 6)) @ loop.dense().T).reshape(60, 2, 3)
    finding = measured.certify(applied, seen)
    assert finding.turns
    assert finding.leading.fit.index == pytest.approx(wh.certify(loop).index, abs=1e-10)


def test_two_outputs_cannot_turn_alone_but_can_turn_together():
    rng = np.random.default_rng(1)
    applied = rng.standard_normal((40, 2, 2))
    applied -= applied.mean(axis=-1, keepdims=True)
    across = applied[..., 0]
    moved = across @ np.array([[1.0, 0.6], [-0.6, 1.0]]).T + 0.05 * rng.standard_normal((40, 2))
    seen = np.stack([moved, -moved], axis=-1)
    together, alone = measured.certify(applied, seen), measured.certify(applied[:, 0], seen[:, 0])
    assert together.turns
    assert together.leading.rotation.low < 0.6 < together.leading.rotation.high
    assert not alone.can_turn
    assert str(alone).startswith("This learner cannot turn")


def test_a_direction_that_was_never_excited_is_left_out_and_named():
    rng = np.random.default_rng(2)
    plane = np.linalg.qr(tangent_basis(4) @ rng.standard_normal((3, 3)))[0]
    applied = rng.standard_normal((30, 2)) @ plane[:, :2].T
    finding = measured.certify(
        applied, applied @ reciprocal_loop(4, rng).T + 0.1 * rng.standard_normal((30, 4))
    )
    assert finding.leading.fit.rank == 2
    assert "1 of 3 directions were never excited" in str(finding)
    weak = applied + 0.005 * rng.standard_normal((30, 1)) * plane[:, 2]
    assert "times less than the strongest" in str(
        measured.certify(weak, weak + 0.1 * rng.standard_normal((30, 4)))
    )


def test_a_time_scale_divides_the_rates_and_nothing_else():
    applied, runs = series(3, 12)
    seen = applied @ spiral_loop().T + 0.02 * np.random.default_rng(3).standard_normal(
        applied.shape
    )
    once, slow = (
        measured.certify(applied, seen, repeat=runs, time_scale=scale) for scale in (1.0, 4.0)
    )
    np.testing.assert_allclose(slow.leading.fit.loop, once.leading.fit.loop / 4, rtol=1e-12)
    assert slow.leading.rotation.estimate == pytest.approx(once.leading.rotation.estimate / 4)
    assert (slow.p, slow.leading.fit.index) == (once.p, pytest.approx(once.leading.fit.index))


def test_a_leak_is_told_from_noise():
    applied, runs = series(3, 12)
    rng = np.random.default_rng(4)
    noisy = applied @ spiral_loop().T + 0.05 * rng.standard_normal(applied.shape)
    leaking = noisy + 0.2 * applied[:, :1]
    assert not measured.certify(applied, noisy, repeat=runs).leading.mass.leaks()
    assert measured.certify(applied, leaking, repeat=runs).leading.mass.leaks()
    assert "NOT conserved" in str(measured.certify(applied, leaking, repeat=runs))


def test_digits_that_a_file_cut_off_are_no_leak():
    rng = np.random.default_rng(7)
    applied = rng.standard_normal((36, 3))
    applied -= applied.mean(axis=1, keepdims=True)
    # The worst that cutting can do: what is lost follows what was applied.
    cut = applied @ spiral_loop().T + 2e-4 * applied[:, :1]
    finding = measured.certify(applied, cut)
    assert finding.leading.mass.p < 0.01
    assert not finding.leading.mass.leaks()
    assert "NOT conserved" not in str(finding)


def test_residuals_of_the_other_sign_are_named_and_change_no_verdict():
    applied, runs = series(3, 12)
    seen = applied @ spiral_loop().T + 0.02 * np.random.default_rng(3).standard_normal(
        applied.shape
    )
    right, wrong = (measured.certify(sign * applied, seen, repeat=runs) for sign in (1, -1))
    assert right.verdict == wrong.verdict
    assert "every residual grows" not in str(right)
    assert "they are target minus output" in str(wrong)


def test_the_check_of_mass_keeps_its_level():
    rng = np.random.default_rng(5)
    applied, _ = series(3, 8)
    found = [
        measured.collect(applied, rng.standard_t(3, applied.shape)).records[""].moments
        for _ in range(250)
    ]
    from whorl.measured.conservation import mass

    alarms = np.mean([mass(table, "residual", 3).leaks() for table in found])
    assert 0.02 < alarms < 0.085


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(6)
    applied, runs = series(3, 12)
    loop, hits = spiral_loop(), np.zeros(3)
    for number in range(100):
        seen = applied @ loop.T + 0.15 * rng.standard_normal(applied.shape)
        table = (
            measured.collect(applied, seen, repeat=runs if number % 2 else None).records[""].moments
        )
        spans = bootstrap.intervals(estimate.fit(table, "residual"), replicates=199, seed=number)
        mode = spans.modes[-1]
        truths = ((spans.skewness, 0.8 / np.hypot(1, 0.8)), (mode.rotation, 0.8), (mode.decay, 1.0))
        hits += [span.low <= truth <= span.high for span, truth in truths]
    assert ((hits / 100 > 0.88) & (hits / 100 <= 1.0)).all()


def test_replicates_scatter_as_the_linear_theory_says():
    rng = np.random.default_rng(7)
    applied = rng.standard_normal((400, 3))
    seen = applied @ spiral_loop().T + 0.3 * rng.standard_normal((400, 3))
    fit = estimate.fit(measured.collect(applied, seen).records[""].moments, "residual")
    flipped = bootstrap.signs(400, 4000, 0)
    drawn = fit.loop + np.tensordot(flipped, fit.influence, axes=1)
    wanted = np.sqrt(0.3**2 * np.diag(np.linalg.inv(fit.gram.sum(axis=0))))
    np.testing.assert_allclose(drawn.std(axis=0), np.tile(wanted, (2, 1)), rtol=0.15)


@pytest.mark.parametrize("rows", [1, 3], ids=["rows", "repeats"])
def test_what_a_unit_adds_is_its_leftover_enlarged_by_its_block_of_the_hat_matrix(rows):
    rng = np.random.default_rng(12)
    applied = rng.standard_normal((12 * rows, 4))
    applied -= applied.mean(axis=1, keepdims=True)
    seen = applied @ reciprocal_loop(4, rng).T + 0.3 + rng.standard_normal(applied.shape)
    fit = fitted(applied, seen, np.repeat(np.arange(12), rows))
    basis = tangent_basis(4) @ fit.basis
    design, answer = np.c_[applied @ basis, np.ones(len(applied))], seen @ basis
    hat = design @ np.linalg.pinv(design)
    left = (answer - hat @ answer).reshape(12, rows, 3)
    blocks = np.array([hat[at : at + rows, at : at + rows] for at in range(0, 12 * rows, rows)])
    values, axes = np.linalg.eigh(blocks)
    mean = np.sum(values**2) / np.sum(values)
    for found, power_of in ((fit.influence, 0.5), (fit.wary, values / mean / 2)):
        larger = (1 - values) ** -(power_of * np.ones_like(values))
        noise = (axes * larger[:, None]) @ axes.swapaxes(1, 2) @ left
        added = noise.swapaxes(1, 2) @ np.linalg.pinv(design).T.reshape(12, rows, 4)[:, :, :3]
        np.testing.assert_allclose(found, added, atol=1e-12)


def test_units_see_shares_of_a_step_of_the_loop_that_sum_to_one():
    rng = np.random.default_rng(13)
    applied = rng.standard_normal((30, 4))
    applied -= applied.mean(axis=1, keepdims=True)
    way = rng.standard_normal((3, 3))
    way /= np.linalg.norm(way)
    basis = tangent_basis(4)
    fit = fitted(applied, applied @ basis @ way.T @ basis.T)
    # Without noise every unit's part of the estimate is what it says of the loop.
    parts = basis @ fit.basis @ fit.cross @ np.linalg.inv(fit.gram.sum(axis=0)) @ fit.basis.T
    said = np.sum((parts @ basis.T) * (basis @ way @ basis.T), axis=(1, 2))
    told = fit.told(fit.basis.T @ way @ fit.basis)
    np.testing.assert_allclose(told, said, atol=1e-12)
    assert told.sum() == pytest.approx(1.0)


def test_repeats_keep_together_in_the_bootstrap():
    rng = np.random.default_rng(8)
    once = rng.standard_normal((20, 3))
    applied, runs = np.repeat(once, 10, axis=0), np.repeat(np.arange(20), 10)
    drift = rng.standard_normal((20, 3))[runs]
    seen = applied + drift
    apart, together = (
        measured.certify(applied, seen, repeat=given).leading.intervals.skewness
        for given in (None, runs)
    )
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_the_power_of_one_plane_is_that_of_the_textbook():
    from scipy import stats

    rng = np.random.default_rng(9)
    applied, runs = series(3, 200)
    loop = np.eye(3) - 1 / 3
    seen = applied @ loop.T + 1.0 * rng.standard_normal(applied.shape)
    finding = measured.certify(applied, seen, repeat=runs, skew=0.1)
    fit, reach = finding.leading.fit, finding.leading.power
    size = (
        np.linalg.norm(fit.symmetric) * 0.1 / np.sqrt(1 - 0.01)
    )  # of the whole skew matrix, which holds its one number twice
    values = np.linalg.eigvalsh(fit.gram.sum(axis=0))
    shift = np.sqrt(2) * size / np.sqrt(fit.scatter**2 * np.sum(1 / values))

    def power_of(times):
        moved = shift * np.sqrt(times)
        return stats.norm.sf(1.96 - moved) + stats.norm.cdf(-1.96 - moved)

    assert reach.power == pytest.approx(power_of(1.0), abs=0.06)
    assert power_of(reach.times) == pytest.approx(0.8, abs=0.06)
    assert reach.more(200) == int(np.ceil((reach.times - 1) * 200))


def test_the_promised_repeats_do_show_the_turn():
    rng = np.random.default_rng(10)
    loop, skew = spiral_loop(1.0, 0.2), 0.2 / np.hypot(1, 0.2)

    def experiment(repeats):
        applied, runs = series(3, repeats)
        return fitted(applied, applied @ loop.T + 0.3 * rng.standard_normal(applied.shape), runs)

    promised = [power.power(experiment(8), size=skew).times for _ in range(8)]
    repeats = int(np.ceil(8 * np.median(promised)))
    p = np.array([flips.reciprocal(experiment(repeats)).p for _ in range(60)])
    assert 0.62 <= np.mean(p <= 0.05) <= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [3, 6])
@pytest.mark.parametrize("rows", [14, 36, 72])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_promised_power_is_that_which_is_seen(outputs, rows, share):
    if outputs == 6 and rows == 14:
        pytest.skip("fewer rows than unknowns")
    rng = np.random.default_rng([outputs, rows, int(10 * share)])
    promised, seen = [], []
    for number in range(1000):
        applied = rng.standard_normal((rows, outputs))
        applied -= applied.mean(axis=1, keepdims=True)
        error = 0.3 * rng.standard_normal(applied.shape)
        fit = fitted(applied, applied @ skewed_loop(outputs, share, rng).T + error)
        seen.append(flips.reciprocal(fit).p <= 0.05)
        if number % 10 == 0:
            promised.append(power.power(fit, size=share).power)
    assert np.mean(promised) == pytest.approx(np.mean(seen), abs=0.05 + 0.03)


def test_a_double_eigenvalue_that_is_on_the_edge_is_called_turning_in_one_of_twenty():
    rng = np.random.default_rng(4)
    basis, alarms = tangent_basis(3), []
    edge = basis @ np.array([[1.0, 1.0], [0.0, 1.0]]) @ basis.T
    for _ in range(150):
        applied = rng.standard_normal((24, 3))
        fit = fitted(applied, applied @ edge.T + 0.1 * rng.standard_normal(applied.shape))
        alarms.append(turning.turning(fit.loop, fit.influence, fit.free).real <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)


def test_a_stream_of_portions_says_the_same_as_one_table(monkeypatch):
    rng = np.random.default_rng(11)
    applied = rng.standard_normal((3000, 1, 4))
    seen = applied @ reciprocal_loop(4, rng).T + rng.standard_normal((3000, 1, 4))
    monkeypatch.setattr(moments, "ROOM", 10_000)
    fits = []
    for cuts in ([], [1, 5, 700, 2999]):
        intake = Intake(1, 4, ("residual",), 1.0)
        for rows in np.split(np.arange(3000), cuts):
            intake.add(Rows(seen[rows], {"residual": applied[rows]}), int(rows[0]))
        record = intake.finish("").records[""]
        assert record.moments.units == moments.BINS
        fits.append((estimate.fit(record.moments, "residual"), record))
    np.testing.assert_allclose(
        fits[0][1].moments.second, fits[1][1].moments.second, rtol=1e-9, atol=1e-9
    )
    drive = np.c_[applied[:, 0] @ tangent_basis(4), np.ones(3000)]
    direct = np.linalg.lstsq(drive, seen[:, 0] @ tangent_basis(4), rcond=None)[0].T[:, :3]
    lift = fits[0][0].basis
    np.testing.assert_allclose(lift @ fits[0][0].loop @ lift.T, direct, rtol=1e-8, atol=1e-10)


def test_few_repeats_are_not_resampled_as_a_whole_and_the_reader_is_told():
    applied, runs = series(3, 5)
    finding = measured.certify(
        applied,
        applied + 0.1 * np.random.default_rng(0).standard_normal(applied.shape),
        repeat=runs,
    )
    assert "5 repeats are too few" in str(finding)


def test_loops_of_several_samples_are_judged_together():
    rng = np.random.default_rng(12)
    applied, runs = series(3, 10)
    straight, turning = (
        applied @ loop.T + 0.1 * rng.standard_normal(applied.shape)
        for loop in (spiral_loop(1, 0), spiral_loop())
    )
    both, names = (
        np.concatenate([applied, applied]),
        np.repeat(["straight", "turning"], len(applied)),
    )
    finding = measured.certify(
        both, np.concatenate([straight, turning]), sample=names, repeat=np.concatenate([runs, runs])
    )
    assert finding.turns
    assert finding.leading.sample == "turning"
    single = min(loop.p for loop in finding.loops)
    assert finding.p == pytest.approx(1 - (1 - single) ** 2)


def test_power_needs_nothing_where_there_is_no_noise():
    applied, runs = series(3, 8)
    reach = measured.certify(applied, applied @ spiral_loop(1, 0).T, repeat=runs).leading.power
    assert isinstance(reach, power.Power)
    assert reach.visible < 1e-6


def test_eigenvalues_are_paired_alike_by_trying_every_order_and_by_assignment():
    from scipy import optimize

    rng = np.random.default_rng(13)
    for size in (2, 4, 6):
        matrices = np.diag(np.arange(1.0, size + 1)) + 0.6 * rng.standard_normal((30, size, size))
        values, drawn = np.linalg.eigvals(matrices[0]).astype(complex), np.linalg.eigvals(matrices)
        for paired, row in zip(bootstrap.matched(values, drawn), drawn, strict=True):
            cost = np.abs(values[:, None] - row) ** 2
            assert np.sum(np.abs(values - paired) ** 2) == pytest.approx(
                cost[optimize.linear_sum_assignment(cost)].sum()
            )
            np.testing.assert_allclose(
                np.sort_complex(paired), np.sort_complex(row.astype(complex))
            )
