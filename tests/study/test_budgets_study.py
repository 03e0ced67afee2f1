"""The budgets study on a small design: frozen measures against 50 digits, learners against the
library, and an audit that finds what is spoilt.
"""

import dataclasses
import shutil

import jax.numpy as jnp
import mpmath
import numpy as np
import pyarrow.parquet as pq
import pytest

import whorl as wh
import whorl_audit
import whorl_audit.folder
from study.small import quickly
from whorl.ground import store
from whorl.study import design, draws, kinds
from whorl_audit import keys
from whorl_studies.budgets import arms, chart, figure, frozen
from whorl_studies.budgets import audit as auditor

KIND = "budgets"
SMALL = {
    "seed": 61,
    "bootstrap_seed": 62,
    "trials": 3,
    "depths": [1],
    "betas": [4.0],
    "frozen_depths": [6],
    "gains": [1.0],
    "updates": [6, 18],
    "joint_updates": [6, 18],
    "robust_depths": [1],
    "robust_updates": [6, 12],
    "errors": [0.1],
    "delays": [2],
    "noises": [0.001],
    "flips": [0.1],
    "resamples": 50,
    "chunk": 64,
}
# Of the second, the norm of E bends sharply for a moment under the geometric law.
SPECTRA = {
    "gentle": [0.41, 0.23, 0.13, 0.07, 0.04, 0.01],
    "bent": [0.753, 0.553, 6.01e-8, 9.40e-9, 3.71e-9, 7.34e-11],
    "odd": [0.27, 0.096, 0.043, 0.015, 9.5e-7],
    "1e12": [0.745, 0.663, 2.3e-6, 6.1e-7, 8.6e-8, 8e-13],
}
EVERY = pytest.mark.parametrize(
    "values",
    [
        pytest.param(one, id=name, marks=[pytest.mark.slow] if name != "odd" else [])
        for name, one in SPECTRA.items()
    ],
)


@pytest.fixture(scope="module")
def tables(folder):
    return {path.stem: read(path) for path in (folder / "tables").glob("*.parquet")}


def read(path):
    return {name: np.array(one) for name, one in pq.read_table(path).to_pydict().items()}


def refused(place):
    """The claims on one study that do not hold."""
    findings = whorl_audit.check_study(whorl_audit.folder.read(place))
    return [one.claim for one in findings if not one.passed]


def rows_where(table, **keys):
    return np.all([table[name] == value for name, value in keys.items()], axis=0)


def measured(law, values, least=0.3):
    """The measures of a law by the study and by the auditor."""
    rows = np.array([values])
    left, right, _ = (np.asarray(one) for one in frozen.decomposed(rows, rows > 0))
    ours = frozen.measures(frozen.made(law, rows, least, left, right))[:, 0]
    theirs = auditor._measures(auditor._loop(law, rows, least))
    return dict(zip(frozen.MEASURED, ours, strict=True)), {n: x[0] for n, x in theirs.items()}


def matrix_of(law, values, least):
    """B along the modes, in exact arithmetic."""
    size = len(values)
    if law == "geometric":
        return geometric(values)
    found = mpmath.eye(size)
    for i in range(size // 2):
        j = size - 1 - i
        x, y = values[i], values[j]
        cosine = max(2 * mpmath.sqrt(x * y) / (x + y), mpmath.mpf(least))
        sine = mpmath.sqrt(1 - cosine**2)
        found[i, i] = found[j, j] = cosine
        found[j, i], found[i, j] = sine, -sine
    return found


def geometric(values):
    """The geometric law from ratios of values."""
    values, size = list(values), len(values)
    middle, pool = mpmath.root(mpmath.fprod(values), size), list(range(size))
    left, right = mpmath.eye(size), mpmath.eye(size)
    while len(pool) > 1:
        high, low = max(pool, key=values.__getitem__), min(pool, key=values.__getitem__)
        x, y = values[high], values[low]
        c, s = (mpmath.sqrt(a / (x**2 - y**2)) for a in (middle**2 - y**2, x**2 - middle**2))
        for basis, cos, sin in ((left, c * x / middle, s * y / middle), (right, c, s)):
            for row in range(size):
                a, b = basis[row, high], basis[row, low]
                basis[row, high], basis[row, low] = cos * a + sin * b, cos * b - sin * a
        values[low] = x * y / middle
        pool.remove(high)
    return right * left.T


def exactly(law, values, least=0.3):
    """Noise and work by linear systems for the covariances, with 50 digits."""
    with mpmath.workdps(50):
        values = [mpmath.mpf(float(one)) for one in values]
        size, given = len(values), matrix_of(law, values, least if law == "kept" else 0.0)
        loop = mpmath.diag(values) * given
        eye = mpmath.eye(size)

        def trace(a, right):
            """Of X in A X + X A^T = P."""
            system = mpmath.matrix(size**2)
            for i, j, k in np.ndindex(size, size, size):
                system[i * size + j, k * size + j] += a[i, k]
                system[i * size + j, i * size + k] += a[j, k]
            flat = mpmath.matrix([right[i, j] for i in range(size) for j in range(size)])
            found = mpmath.lu_solve(system, flat)
            return mpmath.fsum(found[i * size + i] for i in range(size))

        work = trace(loop.T, given.T * mpmath.diag(values) * given) / size
        assert mpmath.norm(given * given.T - eye) < 1e-40
        return {"noise": float(trace(loop, loop * loop.T)), "work": float(work)}


def exact_impulse(values, fine):
    """That of the geometric law: E is a polynomial of t times an exponential."""
    with mpmath.workdps(30):
        values = [mpmath.mpf(float(one)) for one in values]
        size, middle = len(values), mpmath.root(mpmath.fprod(values), len(values))
        rest = middle * mpmath.eye(size) - mpmath.diag(values) * geometric(values)
        powers = [mpmath.eye(size)]
        for k in range(1, size):
            powers.append(powers[-1] * rest / k)
        squares = [mpmath.mpf(0)] * (2 * size - 1)
        for (j, one), (k, two) in ((a, b) for a in enumerate(powers) for b in enumerate(powers)):
            squares[j + k] += mpmath.fsum(x * y for x, y in zip(one, two, strict=True))

        def part(u):
            t = mpmath.exp(u)
            square = mpmath.fsum(one * t**k for k, one in enumerate(squares))
            return t * mpmath.exp(-middle * t) * mpmath.sqrt(square)

        step, first = mpmath.mpf(1) / fine, mpmath.log(1e-17 / values[0])
        count = int((mpmath.log(200 / middle) - first) / step)
        return float(step * mpmath.fsum(part(first + step * k) for k in range(count)) / size**0.5)


@pytest.mark.sampled(1)
@EVERY
@pytest.mark.parametrize("law", ["paired", "kept", "geometric"])
def test_noise_and_work_have_their_digits_at_every_condition(law, values):
    wanted = exactly(law, values)
    for side in measured(law, values):
        for name, value in wanted.items():
            assert side[name] == pytest.approx(value, rel=1e-13), name


@EVERY
def test_an_impulse_has_its_digits_where_the_norm_bends(values):
    wanted = exact_impulse(values, 160 if values[-1] < 1e-9 else 10)
    for side in measured("geometric", values):
        assert side["impulse"] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
def test_the_first_sum_of_an_impulse_is_not_good_enough(monkeypatch):
    good = measured("geometric", SPECTRA["bent"])[0]["impulse"]
    monkeypatch.setattr(frozen, "SETTLED", np.inf)
    bad = measured("geometric", SPECTRA["bent"])[0]["impulse"]
    assert 1e-9 < abs(bad / good - 1) < 1e-2


@EVERY
@pytest.mark.parametrize("law", frozen.LAWS)
def test_study_and_auditor_measure_the_same_at_one_tolerance(law, values):
    ours, theirs = measured(law, values)
    for name in frozen.MEASURED:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-12), name


def test_paired_turns_are_those_of_the_library():
    values = np.array([SPECTRA["odd"]])
    for law, least in (("paired", 0.0), ("kept", 0.3)):
        made = frozen.made(law, values, 0.3, values, values)
        wanted = np.asarray(
            wh.paired(least_cosine=least).orthogonal(
                jnp.asarray(values[0]), jnp.ones(5, dtype=bool)
            )
        )
        for pair, at in enumerate([[0, 4], [1, 3]]):
            np.testing.assert_allclose(made.law[0, pair], wanted[np.ix_(at, at)], rtol=1e-14)
        assert made.law[0, 2, 0, 0] == pytest.approx(wanted[2, 2], rel=1e-15)


def test_the_registered_design_has_its_seeds_and_at_least_200_trials(study):
    p = study.values()
    assert (p.seed, p.bootstrap_seed, p.trials) == (20261117, 20261118, 200)
    assert (p.updates[0], p.updates[-1]) == (60, 10_000)
    assert "budgets" not in kinds.paper()
    bounds = {gate.statistic: gate.bound for gate in study.gates}
    assert bounds["rows.bounds"] == 2 * 200 * len(p.frozen_depths) * len(frozen.populations(p))
    rows = kinds.get("budgets").work(p).rows
    assert rows["learners"] == bounds["rows.learners"]


def test_what_a_run_asks_for_is_counted_by_arithmetic(study):
    kind = kinds.get("budgets")
    work = kind.work(dataclasses.replace(study.values(), trials=100_000))
    assert work.rows["spectra"] == 8 * 24 * 100_000
    assert list(work.rows) == [name for name in kind.columns if name != "statistics"]


@pytest.mark.slow
def test_a_learner_is_what_the_library_makes_of_its_keys(tables):
    x, y = draws.task(61, 1, 1.0)
    net = wh.Network(list(draws.softmax_layers(61, 1, 1, 4.0, 0.1)))
    order = draws.order(61, 1, 3)[:18]
    for name, law in (("direct", wh.direct()), ("critical", wh.critical())):
        learned = wh.learn(net, x, y, rule=wh.boundary(law), scale=0.2, schedule=order)
        here = rows_where(tables["learners"], setting="selected", law=name, updates=18, trial=1)
        assert tables["learners"]["loss"][here] == pytest.approx(float(learned.final), rel=1e-10)


@pytest.mark.slow
def test_the_auditor_finds_nothing_wrong_and_a_changed_value_in_every_table(folder, tmp_path):
    assert refused(folder) == []
    kind = kinds.get("budgets")
    for table, columns in kind.columns.items():
        for column in (one.name for one in columns if one.role != "key"):
            place = tmp_path / f"{table}-{column}"
            shutil.copytree(folder, place)
            path = place / "tables" / f"{table}.parquet"
            rows = read(path)
            whole = rows[column].dtype.kind == "i"
            rows[column][0] += 1 if whole else 1e-5 * abs(rows[column][0]) + 1e-9
            path.write_bytes(store.parquet(kind.arrow(table, rows)))
            failed = refused(place)
            assert any(column in one or "statistic" in one for one in failed), (table, column)


def test_a_row_may_be_off_by_four_times_as_much_as_its_furthest_twin_and_no_more():
    ours = np.array([[0.5, 0.5, 0.5, np.nan], [0.0, 1e-6, 0.1, np.nan]])  # values, distances

    def refused_rows(*moved):
        stored = 0.5 + np.array(moved)
        judge = auditor._close(stored, [ours])
        return np.flatnonzero(judge.errors(stored) > judge.tolerance).tolist()

    assert refused_rows(4e-12, 3.6e-6, 0.3, 0.3) == []
    assert refused_rows(2e-11, 4.4e-6, 0.3, 0.3) == [0, 1]
    # What nobody can judge, or nobody follows, must be possible.
    assert refused_rows(0.0, 0.0, 0.6, -0.6) == [2, 3]


def one_learner(law, depth, beta, trial):
    """A learner of the registered design, gain 10, all samples, 60 updates, and its twins."""
    p = dict(vars(design.shipped("budgets").values()))
    rows = keys.grid(twin=range(5), arm=[0], beta=[beta], gain=[10.0], trial=[trial])
    return auditor.Crowd(p, "joint", depth, [(law, "", 0.0)], rows)


def test_twins_of_a_learner_whose_weak_modes_are_round_off_part_as_other_programs_do(monkeypatch):
    crowd = one_learner("geometric", 4, 8.0, 136)
    loss, apart = auditor._apart(auditor.follow(crowd, [60])[0][0])
    plain = auditor.response

    def wider(layers, shown):
        """The same response, rounded at the end alone."""
        layers, shown = [one.astype(np.longdouble) for one in layers], shown.astype(np.longdouble)
        return plain(layers, shown).astype(float)

    with monkeypatch.context() as patch:
        patch.setattr(auditor, "response", wider)
        other = auditor.follow(crowd, [60])[0][0, 0]
    assert 1e-7 < abs(other - loss) / loss < apart / loss < 1e-2
    # Nudges of weights alone leave weak modes as they are, and find a fraction of it.
    with monkeypatch.context() as patch:
        plain_waves = auditor.waves
        patch.setattr(
            auditor, "waves", lambda at, place, size: (size != 6) * plain_waves(at, place, size)
        )
        assert auditor._apart(auditor.follow(crowd, [60])[0][0])[1] < apart / 3


def test_a_learner_that_forgets_its_round_off_is_judged_closely():
    for law in ("direct", "heavy", "leaky"):
        loss, apart = auditor._apart(auditor.follow(one_learner(law, 4, 8.0, 136), [60])[0][0])
        assert apart < 1e-11 * loss, law


@pytest.mark.slow
def test_every_learner_of_a_small_run_is_judged_to_nine_digits(folder, tables):
    p = whorl_audit.folder.read(folder).parameters
    for judges in (auditor._learners, auditor._rivals, auditor._troubles):
        for judge in judges(tables, p).values():
            allowed = np.asarray(judge.tolerance) * np.asarray(judge.scale)
            assert np.all(allowed < 1e-9 * np.asarray(judge.values) + 1e-16)


@pytest.mark.slow
def test_a_run_that_is_sealed_around_wrong_numbers_is_refused(study, tmp_path, monkeypatch):
    right = arms.compute

    def wrong(p, stage):
        found = right(p, stage)
        found["loss"] = found["loss"] * (1 + 1e-5)
        return found

    with monkeypatch.context() as spoilt:
        spoilt.setattr(arms, "compute", wrong)
        quickly(study, tmp_path / "losses" / "budgets")
    failed = {one.split()[0] for one in refused(tmp_path / "losses" / "budgets")}
    assert failed == {"learners.loss", "troubled.loss"}
    with monkeypatch.context() as spoilt:
        spoilt.setattr(frozen, "SETTLED", np.inf)
        spoilt.setattr(frozen, "STEP", 1.0)
        quickly(study, tmp_path / "impulses" / "budgets")
    failed = {one.split()[0] for one in refused(tmp_path / "impulses" / "budgets")}
    assert {"frozen.impulse", "frozen.noise", "frozen.work"} <= failed


@pytest.mark.slow
def test_the_figure_and_the_chart_show_the_advantages(tables):
    drawn = figure.draw(tables)
    rows = tables["advantages"]
    here = rows_where(rows, setting="selected", law="critical", rival="direct")
    lines = [one.get_ydata() for axes in drawn.axes for one in axes.get_lines()]
    assert any(np.array_equal(np.asarray(one), rows["advantage"][here]) for one in lines)
    made = chart.chart(
        dict(zip(tables["statistics"]["name"], tables["statistics"]["value"], strict=True)),
        rows,
        "budgets",
    )
    assert made.summary
