"""Fits against other solvers, other people's numbers, and what must hold of any of them."""

import csv
import gzip
import itertools
import os
import pickle
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import whorl as wh
from whorl.learning.baseline import boundary, learn
from whorl.regress import (
    FlowRegressor,
    bootstrap,
    bounds,
    compare,
    contextual,
    inner_cells,
    misallocated,
    permutation,
)
from whorl.regress.descent import _inverse, at_once, by_rows, minimise
from whorl.regress.hidden import Fisher
from whorl.regress.losses import LOSSES

RNG = np.random.default_rng(3)
X = RNG.dirichlet(np.ones(4), size=60)
TEACHER = RNG.dirichlet(np.full(3, 0.4), size=4).T
Y = np.array([RNG.multinomial(80, row) for row in X @ TEACHER.T]) / 80


def data(name):
    """A file of data that other people measured, where it is on this machine."""
    places = [Path(os.environ["WHORL_DATA"])] if "WHORL_DATA" in os.environ else []
    places += [parent / "shared" / "data" for parent in Path(__file__).resolve().parents]
    for place in places:
        if (place / name).exists():
            opened = gzip.open if name.endswith(".gz") else open
            with opened(place / name, "rt") as file:
                return list(csv.DictReader(file))
    pytest.skip(f"{name} is not on this machine; WHORL_DATA may say where")
    raise AssertionError


def columns(rows, names):
    return np.array([[float(row[name]) for name in names] for row in rows])


def random_problem(seed):
    rng = np.random.default_rng(seed)
    d, k, n = rng.integers(2, 7), rng.integers(2, 7), rng.integers(12, 60)
    return rng.dirichlet(np.full(d, 0.7), n), rng.dirichlet(np.full(k, 0.4), n)


def program(x, y):
    """The squared problem as a quadratic program, with both kinds of constraint written out."""
    quadprog = pytest.importorskip("quadprog")
    (n, d), k = x.shape, y.shape[1]
    # quadprog wants a positive definite matrix; these have full rank.
    hessian, linear = np.kron(np.eye(k), x.T @ x / n), (y.T @ x / n).ravel()
    sums = np.tile(np.eye(d), (k, 1))
    found = quadprog.solve_qp(
        hessian, linear, np.hstack([sums, np.eye(k * d)]), np.r_[np.ones(d), np.zeros(k * d)], d
    )[0]
    return found.reshape(k, d)


def squared(p, x, y):
    return 0.5 * np.mean(((y - x @ p.T) ** 2).sum(axis=1))


def divergence(p, x, y):
    q = x @ p.T
    return np.sum(y[y > 0] * np.log(y[y > 0] / q[y > 0])) / len(y)


def agrees_with_a_quadratic_program(x, y):
    found, known = FlowRegressor(tol=1e-14).fit(x, y).layers_[0], program(x, y)
    assert abs(squared(found, x, y) - squared(known, x, y)) <= 1e-12
    # The program's zeros are zero to its round-off, ours exactly.
    np.testing.assert_array_equal(found == 0, known < 1e-10)
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=0, atol=4e-16)
    assert found.min() >= 0


@pytest.mark.slow
def test_the_squared_optimum_is_that_of_a_quadratic_program_in_value_and_zeros():
    for seed in range(200):
        agrees_with_a_quadratic_program(*random_problem(seed))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("elections/senc.csv", ("white", "black", "natam"), ("dem", "rep", "non")),
        ("elections/senc.csv", ("dem", "rep", "non"), ("white", "black", "natam")),
        ("compositions/white_cells.csv", "GLM", "GLM"),
    ],
)
def test_so_is_that_of_measured_tables(name, before, after):
    rows = data(name)
    one = [row for row in rows if row.get("Experiment", "ImageAnalysis") == "ImageAnalysis"]
    other = [row for row in rows if row.get("Experiment", "") != "ImageAnalysis"]
    x, y = columns(one, before), columns(other, after)
    agrees_with_a_quadratic_program(*(table / table.sum(axis=1, keepdims=True) for table in (x, y)))


@pytest.mark.parametrize("seed", range(4))
def test_the_kl_optimum_is_that_of_slsqp_and_of_em(seed):
    x, y = random_problem(seed)
    d, k = x.shape[1], y.shape[1]
    model = FlowRegressor(loss="kl").fit(x, y)
    start = np.full((k, d), 1 / k)
    sums = {"type": "eq", "fun": lambda v: v.reshape(k, d).sum(axis=0) - 1}
    other = minimize(
        lambda v: divergence(v.reshape(k, d) + 1e-12, x, y),
        start.ravel(), bounds=[(0, 1)] * (k * d), constraints=sums, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    for _ in range(3000):
        start = start * ((y / (x @ start.T)).T @ x)
        start = start / start.sum(axis=0)
    best = divergence(model.layers_[0], x, y)
    assert best == pytest.approx(model.loss_, rel=1e-12)
    assert best <= divergence(start, x, y) + 1e-12
    assert best == pytest.approx(other.fun, abs=1e-6)
    assert best == pytest.approx(divergence(start, x, y), abs=1e-4)


def test_the_gap_bounds_the_distance_to_the_optimum():
    best = FlowRegressor(loss="kl", tol=1e-14).fit(X, Y).loss_
    for steps in (1, 2, 3):
        with pytest.warns(UserWarning, match="the fit has not converged after"):
            early = FlowRegressor(loss="kl", max_iter=steps).fit(X, Y)
        assert 0 <= early.loss_ - best <= early.gap_
    done = FlowRegressor(loss="kl").fit(X, Y)
    assert done.gap_ < 1e-10
    exact = FlowRegressor(loss="kl").fit(np.eye(2), np.eye(2))  # a gap of 0 is no negative one
    assert np.copysign(1.0, exact.gap_) == 1.0
    assert (np.diff(done.loss_path_) <= 1e-15).all()
    assert done.loss_path_[-1] == pytest.approx(done.loss_, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared", "kl"])
def test_weights_counts_and_repeated_rows_mean_the_same(loss):
    times = np.arange(60) % 4
    one = FlowRegressor(loss=loss, tol=1e-14).fit(X, Y, sample_weight=times)
    other = FlowRegressor(loss=loss, tol=1e-14).fit(
        X.repeat(times, axis=0), Y.repeat(times, axis=0)
    )
    counted = FlowRegressor(loss=loss, counts=True, tol=1e-14).fit(
        X[times > 0], (Y * times[:, None])[times > 0]
    )
    np.testing.assert_allclose(one.layers_[0], other.layers_[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(one.layers_[0], counted.layers_[0], rtol=0, atol=1e-6)
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared", "kl"])
def test_a_strong_prior_wins_and_a_weak_one_does_not(loss):
    prior = RNG.dirichlet(np.ones(3), size=4).T
    strong = FlowRegressor(loss=loss, alpha=1e9, prior=prior).fit(X, Y)
    np.testing.assert_allclose(strong.layers_[0], prior, rtol=0, atol=1e-6)
    free, weak = (FlowRegressor(loss=loss, alpha=a).fit(X, Y).layers_[0] for a in (0.0, 1e-7))
    np.testing.assert_allclose(weak, free, rtol=0, atol=1e-3)


def test_input_of_every_kind_gives_the_same_answer():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x, y = (X * 1000).round() + 1, (Y * 80).round()
    plain = FlowRegressor(loss="kl").fit(x, y)
    named = FlowRegressor(loss="kl").fit(
        pandas.DataFrame(x, columns=list("abcd")), pandas.DataFrame(y, columns=list("pqr"))
    )
    assert list(named.transitions_.index) == list("pqr")
    np.testing.assert_array_equal(named.transitions_.to_numpy(), plain.transitions_)
    other = FlowRegressor(loss="kl").fit(
        polars.DataFrame(x, schema=list("abcd")), polars.DataFrame(y, schema=list("pqr"))
    )
    assert other.transitions_.columns == ["to", *"abcd"]
    assert other.set_output(transform="pandas").predict(
        polars.DataFrame(x, schema=list("abcd"))
    ).shape == (60, 3)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(pandas.DataFrame(x, columns=list("abce")))
    single = FlowRegressor(loss="kl").fit(x.astype(np.float32), y.astype(np.float32))
    np.testing.assert_allclose(single.layers_[0], plain.layers_[0], rtol=0, atol=1e-12)
    huge = FlowRegressor(loss="kl", counts=True).fit(x * 1e12, y * 1e12)
    assert huge.gap_ < 1e-10


def test_poor_data_are_fitted_and_say_what_is_wrong():
    one = FlowRegressor().fit(X[:1], Y[:1])
    assert "fewer rows (1) than parts" in one.notes_[0]
    same = np.column_stack([X, X[:, 0]])
    assert any("collinear" in note for note in FlowRegressor(loss="kl").fit(same, Y).notes_)
    alike = FlowRegressor(loss="kl").fit(X, np.tile(Y[0], (60, 1)))
    assert any("all targets are alike" in note for note in alike.notes_)
    np.testing.assert_allclose(alike.predict(X), np.tile(Y[0], (60, 1)), rtol=0, atol=1e-5)
    one.r2_ = -1e-17  # nothing explained, to round-off
    assert "R squared 0.0000" in one.summary()
    absent = X * np.array([1.0, 0.0, 1.0, 1.0])
    assert "in the input: x1; nothing is known" in FlowRegressor().fit(absent, Y).notes_[0]
    with pytest.raises(ValueError, match="at least one non-zero"):
        FlowRegressor().fit(X, Y, sample_weight=np.zeros(60))


def test_intervals_of_columns_that_the_rows_cannot_tell_are_all_that_is_possible():
    absent = X * np.array([1.0, 0.0, 1.0, 1.0])
    alike = np.column_stack([X, X[:, 0]])
    for inputs, unknown in ((X, []), (absent, [1]), (alike, [0, 4]), (X[:3], [0, 1, 2, 3])):
        found = bootstrap(FlowRegressor(loss="kl"), inputs, Y[: len(inputs)], repeats=20)
        whole = ((found.low == 0) & (found.high == 1)).all(axis=0)
        assert np.flatnonzero(whole).tolist() == unknown
    prior = bootstrap(FlowRegressor(loss="kl", alpha=1.0), absent, Y, repeats=20)
    assert (prior.high - prior.low).max() < 1  # which tells of every column
    only = bootstrap(FlowRegressor(), np.eye(2)[:1], Y[:1], repeats=20)  # one row has no spread
    assert (only.low == 0).all()
    assert (only.high == 1).all()


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: bootstrap(FlowRegressor(), X, Y, seed=-1), "seed must be a whole number of at le"),
        (
            lambda: permutation(FlowRegressor(), X, Y, seed=-2),
            "seed must be a whole number of at l",
        ),
        (
            lambda: bootstrap(FlowRegressor(), X, Y, groups=[1, 2]),
            r"groups must have one label per row, 60 in all, but their shape is \(2,\)",
        ),
        (lambda: bootstrap(FlowRegressor(), X, Y, groups=3), r"but their shape is \(\)"),
        (
            lambda: bootstrap(FlowRegressor(), X, Y, groups=[*"ab" * 29, 1, None]),
            "groups must have one label per row, but row 59 has none",
        ),
        (lambda: FlowRegressor().matrix, "instance is not fitted yet"),
        (lambda: bounds(X[:0], Y[:0]), "X and y must have one row per unit, but their shapes are"),
        (lambda: bounds(X, Y, share=-1), "share must be at least 0, but it is -1"),
        (lambda: inner_cells(-TEACHER, X, Y), "transitions must hold finite numbers that are not"),
        (lambda: inner_cells(TEACHER * np.nan, X, Y), "not negative, but one is nan"),
        (lambda: contextual(X * 0, Y * 0), "X must have at least one unit with mass, but all sum"),
        (lambda: misallocated([[1.0]], [[0.0]]), "truth must have a positive, finite sum, but it"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(work, message):
    with pytest.raises(ValueError, match=message):
        work()


def test_r_squared_is_that_of_the_parts_that_vary():
    model = FlowRegressor().fit(X, Y)
    more = FlowRegressor().fit(X, np.column_stack([Y, np.zeros(60)]))
    assert more.r2_ == pytest.approx(model.r2_, abs=1e-9)
    heavy = np.linspace(0, 2, 60)
    weighted = FlowRegressor(loss="kl").fit(X, Y, heavy)
    assert weighted.r2_ == pytest.approx(weighted.score(X, Y, heavy), abs=1e-12)
    single = np.where(np.arange(60) == 7, 1.0, 1e-40)  # one row holds all there is
    assert np.isnan(FlowRegressor().fit(X, Y, single).r2_)
    for loss in ("squared", "kl"):
        alike = FlowRegressor(loss=loss).fit(X, np.tile([0.0, 1.0, 0.0], (60, 1)))
        assert np.isnan(alike.r2_)
        assert "R squared is not defined: no part varies" in alike.summary()


@pytest.mark.parametrize("loss", ["squared", "kl"])
def test_huge_totals_and_rows_without_weight_change_nothing(loss):
    model = FlowRegressor(loss=loss, counts=True)
    wanted = clone(model).fit(X, Y * 80).matrix
    np.testing.assert_allclose(clone(model).fit(X, Y * 80e9).matrix, wanted, rtol=0, atol=1e-9)
    weights = (np.arange(60) < 20).astype(float)
    few = clone(model).fit(X[:20], Y[:20]).matrix
    np.testing.assert_allclose(clone(model).fit(X, Y, weights).matrix, few, rtol=0, atol=1e-9)
    assert permutation(model, X, Y * 80e9, repeats=19).p == 1 / 20  # never 0


@pytest.mark.slow
def test_hidden_layers_no_wider_than_needed_lose_nothing_and_narrow_ones_do():
    one = FlowRegressor(loss="kl").fit(X, Y)
    wide = FlowRegressor((3,), loss="kl", n_starts=2).fit(X, Y)
    narrow = FlowRegressor((1,), loss="kl", n_starts=1).fit(X, Y)
    assert wide.loss_ == pytest.approx(one.loss_, abs=1e-8)
    assert narrow.loss_ == pytest.approx(narrow.null_loss_, abs=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("likelihood", [False, True])
def test_the_library_s_loop_reaches_the_optimum_on_a_face(likelihood):
    x, y = X, Y
    loss = LOSSES["kl" if likelihood else "squared"](x, y, np.ones(60))
    best = minimise(loss, np.full((1, 3, 4), 1 / 3), 1e-15)
    assert (best.layer == 0).any()
    rule = Fisher(
        np.float64(1e-3) * wh.simplex.jnp.ones(()), wh.simplex.jnp.ones(60) / 60, likelihood
    )
    net = wh.faced(wh.Network.random((4, 3), seed=0, floor=0.1), 1e-9)
    run = learn(net, x, y, rule=rule, scale=1.0, schedule=np.zeros(300, dtype=int), full_batch=True)
    layer = np.asarray(run.system.layers[0])
    assert run.completed
    np.testing.assert_array_equal(layer == 0, best.layer[0] == 0)
    value = loss.value(layer[None], loss.seen(layer[None]))[0]
    assert abs(value - best.value[0]) < 1e-12
    np.testing.assert_allclose(layer.sum(axis=0), 1, rtol=0, atol=4e-16)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [True, False], ids=["64-bit JAX", "32-bit JAX"])
def test_faces_in_single_precision_have_the_zeros_of_the_optimum(wide):
    best = minimise(LOSSES["squared"](X, Y, np.ones(60)), np.full((1, 3, 4), 1 / 3), 1e-15)
    x, y, start = (one.astype(np.float32) for one in (X, Y, np.full((3, 4), 1 / 3)))
    with jax.enable_x64(wide):
        net = wh.faced(wh.Network([start], rates=np.float32(1 / 60)), 1e-6)
        given = {"scale": 1.0, "schedule": np.zeros(2000, dtype=int), "full_batch": True}
        run = learn(net, x, y, rule=wh.gauss_newton(1e-2), **given)
        pair = wh.train(net, x, y, policy=wh.adaptive(0.5), epochs=5, seed=1)
    layer = np.asarray(run.system.layers[0])
    assert layer.dtype == np.float32
    assert run.completed
    np.testing.assert_array_equal(layer == 0, best.layer[0] == 0)
    np.testing.assert_allclose(layer, best.layer[0], rtol=0, atol=1e-3)
    for end in (layer, np.asarray(pair.nonreciprocal.layers[0])):
        assert np.abs(end.sum(axis=0) - 1).max() < 4 * np.finfo(np.float32).eps
    assert pair.ledger.closed
    with pytest.raises(ValueError, match=r"least must be at least 1.2e-38, which float32 can hold"):
        wh.faced(net, 1e-50)


START = np.array([[0.98, 0.5, 0.1], [0.02, 0.5, 0.0], [0.0, 0.0, 0.9]])


def on_a_face(dtype):
    """A network with weights that have vanished and must return, and what it is to learn."""
    net = wh.faced(wh.Network([START.astype(dtype)], support=[START > 0]), 1e-6)
    inputs = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    aim = np.array([[0.2, 0, 0.5], [0.3, 0, 0.5], [0.5, 1, 0]])
    return net, inputs.astype(dtype), (inputs @ aim.T).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_pair_on_faces_closes_its_account_and_weights_return(dtype):
    net, inputs, targets = on_a_face(dtype)
    pair = wh.train(net, inputs, targets, policy=wh.adaptive(0.5), epochs=30, seed=1)
    assert pair.completed
    assert pair.ledger.closed
    assert pair.ledger.closure <= max(1e-14, np.finfo(dtype).eps / 10)
    end = np.asarray(pair.nonreciprocal.layers[0])
    assert end.dtype == dtype
    assert end[2, 0] > 0.1  # it had vanished at the start
    np.testing.assert_allclose(end.sum(axis=0), 1, rtol=0, atol=2 * np.finfo(dtype).eps)
    with pytest.raises(ValueError, match=r"least must be at most 0.03"):
        wh.faced(net, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "rule",
    [
        wh.exponentiated_gradient(),
        wh.natural_gradient(),
        wh.gauss_newton(0.1),
        boundary(wh.leaky(0.1)),
    ],
    ids=["exponentiated", "natural", "Gauss-Newton", "law"],
)
def test_weights_that_vanished_return_with_every_rule(rule, dtype):
    net, inputs, targets = on_a_face(dtype)
    given = {"schedule": np.zeros(200, dtype=int), "full_batch": True}
    run = learn(net, inputs, targets, rule=rule, scale=0.5, **given)
    end = np.asarray(run.system.layers[0])
    assert run.completed
    np.testing.assert_allclose(end[2], [0.5, 1.0, 0.0], rtol=0, atol=0.02)
    np.testing.assert_allclose(end.sum(axis=0), 1, rtol=0, atol=2 * np.finfo(dtype).eps)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    truth = np.array([[0.7, 0.2, 0.3], [0.2, 0.6, 0.3], [0.1, 0.2, 0.4]])
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.dirichlet(np.ones(3), 80)
        y = np.array([rng.multinomial(60, row) for row in x @ truth.T])
        found = bootstrap(FlowRegressor(loss="kl"), x, y, repeats=200, seed=seed)
        held.append((found.low <= truth) & (truth <= found.high))
    # 40 x 9 intervals of 95 %, of which those of one column depend on each other: five standard
    # errors of 120 independent ones.
    assert abs(np.mean(held) - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 120)


def test_few_rows_widen_intervals_as_student_s_t_does():
    from scipy.stats import norm, t

    few, many = (bootstrap(FlowRegressor(), X[:n], Y[:n], repeats=400) for n in (10, 60))
    groups = np.arange(60) // 6  # ten units of six rows each
    grouped = bootstrap(FlowRegressor(), X, Y, repeats=400, groups=groups)
    for found, n, rows in ((few, 10, 10), (many, 60, 60), (grouped, 10, 60)):
        tail = norm.cdf(t.ppf(0.025, n - 4) * np.sqrt(n / (n - 4)))
        low, high = np.quantile(found.draws, [tail, 1 - tail], axis=0)
        fit = FlowRegressor().fit(X[:rows], Y[:rows]).matrix
        # Of each end and its mirror image in the fit the further one, and within 0 and 1.
        wanted = fit - np.minimum(np.maximum(fit - low, high - fit), fit)
        np.testing.assert_allclose(found.low, wanted, rtol=0, atol=1e-12)
        wanted = fit + np.minimum(np.maximum(fit - low, high - fit), 1 - fit)
        np.testing.assert_allclose(found.high, wanted, rtol=0, atol=1e-12)
        assert (found.high - found.low >= high - low - 1e-12).all()
        assert (found.low <= fit).all()
        assert (fit <= found.high).all()


def test_a_bootstrap_fit_is_a_fit_with_its_weights():
    model = FlowRegressor(loss="kl", alpha=0.5)
    found = bootstrap(model, X, Y, repeats=3, seed=4)
    counts = np.random.default_rng(4).multinomial(60, np.full(60, 1 / 60), size=3)
    one = FlowRegressor(loss="kl", alpha=0.5).fit(X, Y, sample_weight=counts[2])
    np.testing.assert_allclose(found.draws[2], one.layers_[0], rtol=0, atol=1e-4)
    assert "bootstrap fits" in model.summary()
    with pytest.raises(ValueError, match="model must have one layer"):
        bootstrap(FlowRegressor((2,)), X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["kl", "squared"])
def test_compiled_refits_are_those_of_numpy(loss):
    plain, compiled = (
        bootstrap(FlowRegressor(loss=loss), X, Y, repeats=6, device=device)
        for device in ("cpu", "accelerator")
    )
    np.testing.assert_allclose(compiled.draws, plain.draws, rtol=0, atol=1e-4)
    assert compiled.unsettled == 0
    with pytest.raises(ValueError, match="device must be one of cpu, accelerator, but it is 'gpu'"):
        bootstrap(FlowRegressor(), X, Y, device="gpu")


def test_the_equations_of_a_step_have_one_answer_by_rows_and_at_once():
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(1, 3, 5, 4))
    curve = factors.swapaxes(-1, -2) @ factors
    free = np.ones((1, 3, 4), dtype=bool)
    free[0, 1, 2] = free[0, 0, 0] = False
    down, right = np.where(free, 0.0, -0.01), rng.normal(size=(1, 3, 4))
    one, other = (solve(curve, down, free, right, np.zeros(1)) for solve in (by_rows, at_once))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)  # both add 1e-9 to the diagonal
    np.testing.assert_allclose((one + down).sum(axis=1), 0, rtol=0, atol=1e-12)
    assert (one[~free] == 0).all()
    wide = rng.normal(size=(2, 60, 40))
    matrix = np.eye(40) + 0.02 * wide.swapaxes(-1, -2) @ wide
    matrix = matrix[:, :20, :20]
    scale = np.sqrt(np.diagonal(matrix, axis1=1, axis2=2))
    matrix = matrix / (scale[:, :, None] * scale[:, None, :])
    np.testing.assert_allclose(_inverse(matrix), np.linalg.inv(matrix), rtol=0, atol=1e-12)


def test_the_permutation_test_is_uniform_without_an_effect_and_sees_one():
    p = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p.append(
            permutation(
                FlowRegressor(),
                rng.dirichlet(np.ones(3), 12),
                rng.dirichlet(np.ones(3), 12),
                repeats=19,
                seed=seed,
            ).p
        )
    assert np.mean(np.array(p) <= 0.25) == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / 60))
    assert permutation(FlowRegressor(loss="kl"), X, Y, repeats=99).p == 0.01


def test_models_are_compared_on_rows_that_were_held_back():
    found = compare(
        X, Y, {"fit": FlowRegressor(), "mean": FlowRegressor(alpha=1e9, prior="mean")}, cv=4
    )
    assert found["fit"][0] > 0.3 > found["mean"][0]


def test_a_fitted_model_and_its_intervals_travel():
    model = FlowRegressor(loss="kl")
    bootstrap(model, X, Y, repeats=5)
    again = pickle.loads(pickle.dumps(model))
    assert b"jax" not in pickle.dumps(model)
    assert again.summary() == model.summary()


def test_inner_cells_have_both_margins_and_lie_within_the_bounds():
    rng = np.random.default_rng(0)
    cells = rng.poisson(20, size=(30, 3, 4)).astype(float)
    cells[0, :, 1] = 0
    before, after = cells.sum(axis=1), cells.sum(axis=2)
    low, high = bounds(before, after)
    assert (low <= cells).all()
    assert (cells <= high).all()
    found = inner_cells(FlowRegressor(loss="kl").fit(before, after).layers_[0], before, after)
    np.testing.assert_allclose(found.sum(axis=1), before, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.sum(axis=2), after, rtol=0, atol=1e-6)
    assert (found >= low - 1e-6).all()
    assert (found <= high + 1e-6).all()
    with pytest.raises(
        ValueError, match=r"same total in every unit to within 0.01, but unit 0 has"
    ):
        bounds(before * 2, after)


@pytest.mark.parametrize("flow", [np.eye(3), [[0.9, 0, 0], [0.1, 1, 0], [0, 0, 1]]])
def test_inner_cells_meet_both_margins_to_round_off_where_the_matrix_rules_cells_out(flow):
    after, before = [[50, 50, 40], [60, 40, 40]], [[60, 40, 40], [60, 40, 40]]
    found = inner_cells(flow, before, after)
    np.testing.assert_allclose(found.sum(axis=1), before, rtol=0, atol=2e-11)
    np.testing.assert_allclose(found.sum(axis=2), after, rtol=0, atol=2e-11)
    # The closest table differs from the guess by factors of rows and columns, which leave cross
    # ratios as they are.
    guess = np.maximum(flow, 1e-12)
    for first, second in itertools.combinations(range(3), 2):
        part = np.ix_([first, second], [first, second])
        for one in found:
            ratios = [(t[0, 1] * t[1, 0]) / (t[0, 0] * t[1, 1]) for t in (one[part], guess[part])]
            assert ratios[0] == pytest.approx(ratios[1], rel=1e-6, abs=1e-300)


def test_inner_cells_that_miss_their_margins_are_refused_with_the_number():
    with pytest.raises(ValueError, match=r"with max_iter = 1, but those of unit 1 are off by"):
        inner_cells(np.eye(2), [[50, 50], [60, 40]], [[50, 50], [70, 30]], max_iter=1)


def test_white_cells_agree_with_the_numbers_that_codalm_prints():
    rows = data("compositions/white_cells.csv")
    image, microscope = (
        columns([row for row in rows if row["Experiment"] == name], "GLM")
        for name in ("ImageAnalysis", "MicroscopicInspection")
    )
    # Row one of its matrix is where the first part goes: the first column of ours. The microscope
    # is predicted from the image.
    model = FlowRegressor(loss="kl").fit(image, microscope)
    printed = [0.9742582, 0.0229276, 0.0028142]
    np.testing.assert_allclose(model.layers_[0][:, 0], printed, rtol=0, atol=6e-8)
    assert (
        np.abs(FlowRegressor(loss="kl").fit(microscope, image).layers_[0][:, 0] - printed).max()
        > 0.01
    )


def test_precincts_are_misallocated_as_often_as_known_and_less_often_by_context():
    rows = data("elections/senc.csv")
    groups, parties = ("wh", "bl", "natam"), ("dem", "rep", "non")
    before, after = columns(rows, ("white", "black", "natam")), columns(rows, parties)
    truth = np.stack([columns(rows, [g + p for g in groups]) for p in parties], axis=1)
    shares, aims = (m / m.sum(axis=1, keepdims=True) for m in (before, after))
    goodman = np.linalg.lstsq(shares, aims, rcond=None)[0].T
    found = {"goodman": goodman} | {
        loss: FlowRegressor(loss=loss).fit(before, after).layers_[0] for loss in LOSSES
    }
    errors = {
        name: misallocated(p * before.sum(axis=0), truth.sum(axis=0)) for name, p in found.items()
    }
    assert errors == {
        "goodman": pytest.approx(0.0425, abs=5e-5),
        "squared": pytest.approx(0.0337, abs=5e-5),
        "kl": pytest.approx(0.0218, abs=5e-5),
    }
    cells = inner_cells(contextual(before, after), before, after)
    assert misallocated(cells.sum(axis=0), truth.sum(axis=0)) < 0.0183
    # Of every unit by itself: 3.80 % around the common matrix.
    assert misallocated(cells, truth) < 0.0269
    assert misallocated(inner_cells(found["kl"], before, after), truth) == pytest.approx(
        0.038, abs=1e-4
    )


@pytest.mark.slow
def test_new_zealand_is_misallocated_as_the_tutorial_says():
    votes, cells = {}, {}
    for row in data("elections/nz2017_votes.csv.gz"):
        units = votes.setdefault(row["district"], {}).setdefault(row["side"], {})
        units.setdefault(row["unit"], {})[row["name"]] = float(row["votes"])
    for row in data("elections/nz2017_truth.csv"):
        cell = row["party"], row["candidate"]
        cells.setdefault(row["district"], {})[cell] = float(row["value"])
    wrong, mass = [], []
    for district, sides in votes.items():
        before, after = (
            np.array([list(unit.values()) for unit in sides[side].values()])
            for side in ("party", "candidate")
        )
        lists, persons = (list(sides[side]["0"]) for side in ("party", "candidate"))
        truth = np.zeros((len(persons), len(lists)))
        for (party, person), value in cells[district].items():  # some with their party behind
            known = next(n for n in persons if person == n or person.startswith(f"{n} ("))
            truth[persons.index(known), lists.index(party)] += value
        np.testing.assert_array_equal(truth.sum(axis=0), before.sum(axis=0))
        full = before.any(axis=1)
        fitted = FlowRegressor(loss="kl").fit(before[full], after[full]).matrix
        total = before.sum(axis=0)
        even = np.outer(after.sum(axis=0) / after.sum(), total)
        wrong.append([np.abs(guess - truth).sum() / 2 for guess in (fitted * total, even)])
        mass.append(truth.sum())
    assert len(wrong) == 71
    pooled = np.sum(wrong, axis=0) / np.sum(mass)
    by_district = np.mean(wrong / np.array(mass)[:, None], axis=0)
    np.testing.assert_allclose(pooled, [0.110, 0.393], rtol=0, atol=5e-4)
    np.testing.assert_allclose(by_district, [0.109, 0.386], rtol=0, atol=5e-4)
