"""The estimator under scikit-learn's own checks, against the library, and what it refuses."""

import pickle
import warnings

import jax
import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import composition_regression
import whorl as wh
from whorl.learning.baseline import boundary, learn
from whorl.regress import bootstrap
from whorl.regress.estimator import LEARNERS, FlowRegressor, _promised
from whorl.regress.tables import Named

# Short fits are all that most of these tests need; those about convergence say so themselves.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(4), size=40)
TEACHER = RNG.dirichlet(np.ones(3), size=4)
Y = X @ TEACHER
SHIFTED = "shifts X to its least value, which leaves a row without mass: it has no proportions"
CANNOT = {
    "check_sample_weights_pandas_series": SHIFTED,
    "check_sample_weights_not_an_array": SHIFTED,
    "check_estimators_dtypes": "truncates X to whole numbers, which leaves a row without mass: it has no proportions",
    "check_regressor_multioutput": "its targets are negative, and a composition is not",
}


class Fraction(FlowRegressor):
    """One column of targets as one of three parts.

    Scikit-learn's checks pass a single column, which alone would always be all.
    """

    def fit(self, X, y, sample_weight=None):
        one = np.asarray(y)
        if one.ndim == 2 and one.shape[1] == 1 and one.dtype.kind in "fi":
            y = np.hstack([one, 1 / (1 + one**2), np.ones_like(one)])
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return super().predict(X)[:, :1]

    def score(self, X, y, sample_weight=None):
        return r2_score(y, self.predict(X), sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        assert tags.regressor_tags is not None
        tags.regressor_tags.poor_score = True
        return tags


@pytest.mark.usefixtures(
    "as_users_call_it"
)  # the checks set parameters to anything, to see that only fit minds
@parametrize_with_checks(
    [FlowRegressor()], expected_failed_checks=lambda _: CANNOT, xfail_strict=True
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_call_it")
@parametrize_with_checks([Fraction()], expected_failed_checks=lambda _: CANNOT, xfail_strict=True)
def test_scikit_learn_finds_nothing_wrong_with_three_parts(estimator, check):
    check(estimator)


def test_it_is_the_library_under_another_name():
    model = FlowRegressor(hidden=(3,), learner="reciprocal", epochs=5, random_state=7).fit(X, Y)
    seeds = np.random.RandomState(7).randint(np.iinfo(np.int32).max, size=2)
    net = wh.Network.random((4, 3, 3), seed=int(seeds[0]), imbalance=0.5, floor=0.1)
    run = learn(
        net,
        X,
        Y,
        rule=boundary(wh.leaky(0.1)),
        scale=0.3,
        epochs=5,
        seed=int(seeds[1]),
        record=False,
    )
    # X is closed again, which may move its last bit.
    for layer, wanted in zip(model.layers_, run.system.layers, strict=True):
        np.testing.assert_allclose(layer, wanted, rtol=0, atol=1e-13)
    np.testing.assert_allclose(model.predict(X), wh.predict(run.system, X), rtol=0, atol=1e-13)
    assert model.loss_ == pytest.approx(float(run.final), rel=1e-9)
    assert model.n_iter_ == 200
    assert model.n_features_in_ == 4


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_finds_the_teacher(learner):
    model = FlowRegressor(learner=learner, epochs=60).fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_the_nonreciprocal_learners_are_their_policies():
    model = FlowRegressor(learner="adaptive", epochs=2, omega=2.0, mu=0.02, imbalance=4.0).fit(X, Y)
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=2)
    net = wh.Network.random((4, 3), seed=int(seeds[0]), imbalance=4.0, floor=0.1)
    policy = wh.adaptive(0.3, omega=2.0, law=wh.rotational(base=wh.leaky(0.02)))
    pair = wh.train(net, X, Y, policy=policy, epochs=2, seed=int(seeds[1]), record=False)
    assert np.abs(np.asarray(pair.native.layers[0]) - model.layers_[0]).max() > 1e-6
    np.testing.assert_allclose(model.layers_[0], pair.nonreciprocal.layers[0], rtol=0, atol=1e-12)


def test_full_batch_recovers_a_noiseless_teacher():
    model = FlowRegressor(learner="reciprocal", epochs=60, full_batch=True, mu=1e-3, scale=1.0).fit(
        X, Y
    )
    np.testing.assert_allclose(model.layers_[0], TEACHER.T, rtol=0, atol=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("learner", ["natural", "exponentiated", "reciprocal"])
def test_a_full_batch_step_does_not_depend_on_the_number_of_rows(learner):
    one = FlowRegressor(learner=learner, full_batch=True, epochs=5).fit(X, Y)
    other = FlowRegressor(learner=learner, full_batch=True, epochs=5).fit(
        np.repeat(X, 3, axis=0), np.repeat(Y, 3, axis=0)
    )
    # Sums of three times as many numbers round otherwise, by some 1e-16 an update.
    np.testing.assert_allclose(one.layers_[0], other.layers_[0], rtol=0, atol=1e-14)


def test_an_epoch_is_one_pass_over_the_rows_in_every_mode():
    assert FlowRegressor(learner="natural", epochs=3, full_batch=True).fit(X, Y).n_iter_ == 3
    assert FlowRegressor(learner="natural", epochs=3).fit(X, Y).n_iter_ == 3 * len(X)
    assert FlowRegressor(epochs=3, learner="adaptive").fit(X, Y).n_iter_ == 3 * len(X)


@pytest.mark.slow
def test_a_fit_that_has_not_converged_says_so_and_one_that_has_does_not():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(4), size=300)
    aims = rows @ rng.dirichlet(np.ones(3), size=4)
    with pytest.warns(
        ConvergenceWarning,
        match=r"not converged after 30 updates: one more gradient step promises .* raise epochs$",
    ):
        FlowRegressor(learner="natural", full_batch=True).fit(rows, aims)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FlowRegressor(learner="natural", full_batch=True, epochs=1000, scale=1.5).fit(
            rows, aims
        )
        same = FlowRegressor(
            learner="reciprocal", full_batch=True, mu=1e-3, scale=1.0, epochs=60
        ).fit(rows, np.tile([0.2, 0.3, 0.5], (300, 1)))
    assert model.score(rows, aims) > 0.99999
    np.testing.assert_allclose(
        same.predict(rows), np.tile([0.2, 0.3, 0.5], (300, 1)), rtol=0, atol=1e-4
    )


def test_one_sample_at_a_time_never_settles_on_noisy_rows_and_says_so():
    noisy = np.random.default_rng(1).dirichlet(np.ones(3), size=len(X))
    with pytest.warns(ConvergenceWarning, match="raise epochs, lower scale or set full_batch=True"):
        FlowRegressor(learner="reciprocal").fit(X, noisy)


def test_what_a_step_promises_is_what_a_short_step_keeps():
    net = wh.Network.random((4, 3), seed=3, floor=0.1)
    driven = wh.response(net, X)
    scores = driven.scores(wh.residual(net, X, Y) / len(X))
    losses = [float(wh.loss(net.stepped(scores, size), X, Y)) for size in (-1e-4, 1e-4)]
    spread = ((Y - Y.mean(axis=0)) ** 2).sum() / (2 * len(Y))
    # A central difference of step 1e-4 is right to 1e-8 times a third derivative of order one.
    assert _promised(net, X, Y) == pytest.approx((losses[0] - losses[1]) / 2e-4 / spread, rel=1e-6)


def test_only_proportions_count():
    one, other = FlowRegressor(epochs=3).fit(X, Y), FlowRegressor(epochs=3).fit(X * 37.0, Y * 5.0)
    np.testing.assert_allclose(one.layers_[0], other.layers_[0], rtol=0, atol=1e-12)
    assert one.score(X, Y) == pytest.approx(other.score(X * 2.0, Y * 3.0), rel=1e-10)
    np.testing.assert_allclose(one.predict(X).sum(axis=1), 1, rtol=0, atol=3e-16)


def test_score_is_the_mean_r_squared_of_the_parts():
    model = FlowRegressor(epochs=3).fit(X, Y)
    noisy = Y + 0.05 * RNG.random(Y.shape)
    closed = noisy / noisy.sum(axis=1, keepdims=True)
    residual, spread = (
        ((closed - model.predict(X)) ** 2).sum(axis=0),
        ((closed - closed.mean(axis=0)) ** 2).sum(axis=0),
    )
    assert model.score(X, noisy) == pytest.approx(np.mean(1 - residual / spread), rel=1e-12)


def test_counts_and_single_precision_are_welcome_and_answers_are_double():
    # What the two checks that cannot pass are after: other types of X, and several columns of
    # targets.
    counts = RNG.integers(1, 50, size=(20, 5))
    for rows in (counts, counts.astype(np.int32), counts.astype(np.float32)):
        prediction = FlowRegressor(epochs=2).fit(rows, counts[:, :3]).predict(rows)
        assert prediction.shape == (20, 3)
        assert prediction.dtype == np.float64


def test_thirty_two_bit_jax_makes_no_difference_and_stays_as_it_was():
    wanted = FlowRegressor(alpha=0.1).fit(X, Y).layers_[0]
    with jax.enable_x64(False):
        model = FlowRegressor(alpha=0.1).fit(X, Y)
        prediction = model.predict(X)
        level = bootstrap(model, X, Y, repeats=2, level=0.9).level
        assert not jax.config.read("jax_enable_x64")
    assert prediction.dtype == np.float64
    assert level == 0.9
    np.testing.assert_array_equal(model.layers_[0], wanted)


def test_the_random_state_decides_everything_random():
    fits = [
        FlowRegressor(learner="reciprocal", epochs=2, random_state=state).fit(X, Y).layers_[0]
        for state in (3, 3, np.random.RandomState(3), 4)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])
    assert np.abs(fits[0] - fits[3]).max() > 1e-6


def test_it_works_in_the_tools_of_scikit_learn():
    assert cross_val_score(FlowRegressor(), X, Y, cv=3).min() > 0.8
    search = GridSearchCV(FlowRegressor(), {"alpha": [0.0, 100.0]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"alpha": 0.0}
    assert clone(search.best_estimator_).get_params()["alpha"] == 0.0


FLOAT = X.astype(np.float32), (100 * Y).astype(np.float32)


@pytest.mark.parametrize("loss", ["squared", "kl"])
@pytest.mark.parametrize("width", [pytest.param((), id="one"), pytest.param((2,), id="two")])
def test_single_precision_is_fitted_as_the_same_numbers_in_double(loss, width):
    weights = np.linspace(0.5, 2, 40, dtype=np.float32)
    prior = np.full((3, 4), 1 / 3, dtype=np.float32)
    model = FlowRegressor(width, loss=loss, alpha=0.5, prior=prior, counts=True, n_starts=1)
    single = clone(model).fit(*FLOAT, weights)
    double = clone(model).fit(*(one.astype(np.float64) for one in (*FLOAT, weights)))
    assert single.matrix.dtype == np.float64
    np.testing.assert_array_equal(single.matrix, double.matrix)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker stopped")  # what joblib says on a busy machine
def test_single_precision_and_several_processes_are_fine_in_scikit_learn_s_tools():
    grid = {"loss": ["squared", "kl"], "alpha": [0.0, 1.0], "hidden": [(), (2,)]}
    search = GridSearchCV(FlowRegressor(), grid, cv=3, n_jobs=2, error_score="raise").fit(*FLOAT)
    assert search.best_params_["hidden"] == ()
    scores = cross_val_score(FlowRegressor(), *FLOAT, n_jobs=2, error_score="raise")
    np.testing.assert_array_equal(scores, cross_val_score(FlowRegressor(), *FLOAT))
    pipe = make_pipeline(FunctionTransformer(np.sqrt), FlowRegressor(loss="kl"))
    assert pipe.fit(*FLOAT).predict(FLOAT[0]).shape == (40, 3)


def test_what_is_predicted_comes_as_asked_for_also_from_a_clone():
    x = pandas.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(40)])
    y = pandas.DataFrame(Y, columns=list("pqr"))
    model = FlowRegressor().set_output(transform="pandas")
    for fitted in (model.fit(x, y), clone(model).fit(x, y), pickle.loads(pickle.dumps(model))):
        made = fitted.predict(x)
        assert list(made.columns) == ["p", "q", "r"] == list(fitted.get_feature_names_out())
        assert list(made.index) == list(x.index)
    assert model.set_output(transform="polars").predict(x).columns == ["p", "q", "r"]
    assert isinstance(model.set_output(transform="default").predict(x), np.ndarray)


def test_names_that_are_not_those_of_the_fit_are_refused():
    x, y = pandas.DataFrame(X, columns=list("abcd")), pandas.DataFrame(Y, columns=list("pqr"))
    model = FlowRegressor().fit(x, y)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict(x[list("bacd")])
    with pytest.raises(ValueError, match="y must have the parts of the fit, p, q, r, but it has q"):
        model.score(x, y[list("qpr")])
    named = FlowRegressor().fit(Named(X, list("abcd")), Y)
    with pytest.raises(
        ValueError, match="X must have the parts of the fit, a, b, c, d, but it has"
    ):
        named.predict(Named(X, list("abdc")))
    assert named.score(Named(X, list("abcd")), y) > 0.9  # the fit had no names of targets


def test_a_fitted_model_travels_without_jax_arrays():
    model = FlowRegressor(epochs=2).fit(X, Y)
    assert b"jax" not in pickle.dumps(model)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_a_run_that_stops_early_says_so():
    with pytest.warns(
        ConvergenceWarning,
        match="stopped before update 0: a learner would have left the interior there",
    ):
        model = FlowRegressor(learner="natural", scale=1e4, epochs=2).fit(X, Y)
    assert model.n_iter_ == 0


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("params", "x", "y", "message"),
    [
        ({}, X, Y[:, 0], r"y must have shape \(samples, parts\), but its shape is \(40,\)"),
        ({}, X, -Y, "Negative values in data passed to FlowRegressor as y"),
        ({}, -X, Y, "Negative values in data passed to FlowRegressor as X"),
        (
            {},
            X * (np.arange(40) != 7)[:, None],
            Y,
            "X must have rows with mass, but row 7 sums to 0",
        ),
        (
            {},
            X[:, :1],
            Y,
            (
                "X must have at least 2 parts for their proportions to say anything, but n_features = "
                "1"
            ),
        ),
        ({"normalise": False}, 2 * X, Y, "X must have rows of unit mass, but row 0 sums to 2"),
        ({}, np.full((40, 4), 1e308), Y, "X must have rows with a finite sum, but row 0 has none"),
        ({"hidden": 3}, X, Y, "hidden must be a row of widths, but it is 3"),
        (
            {"hidden": (0,), "learner": "natural"},
            X,
            Y,
            "widths must be positive whole numbers, but one is 0",
        ),
        (
            {"learner": "adam"},
            X,
            Y,
            (
                "learner must be one of exact, reciprocal, exponentiated, natural, step_matched, adaptive, "
                "but it is 'adam'"
            ),
        ),
        (
            {"learner": "adaptive", "full_batch": True},
            X,
            Y,
            "full_batch must be False for the learner 'adaptive'",
        ),
        (
            {"learner": "adaptive"},
            X,
            Y[:, :2],
            "a policy that turns must have at least 3 outputs to turn one sample, but there are 2",
        ),
        ({"learner": "natural", "scale": -1.0}, X, Y, "scale must be greater than 0, but it is -1"),
        (
            {"learner": "natural", "epochs": 0},
            X,
            Y,
            "epochs must be a whole number of at least 1, but it is 0",
        ),
        ({"learner": "natural", "floor": 2.0}, X, Y, "floor must be at most 1, but it is 2"),
        ({"loss": "l1"}, X, Y, "loss must be one of squared, kl, but it is 'l1'"),
        ({"loss": ["kl"]}, X, Y, r"loss must be one of squared, kl, but it is \[\'kl\'\]"),
        ({}, Named(X, list("abca")), Y, "names of parts must be unique, but 'a' is there twice"),
        ({}, X, Named(Y, list("pqp")), "names of parts must be unique, but 'p' is there twice"),
        (
            {"learner": "natural", "loss": "kl"},
            X,
            Y,
            "learner must be exact for the loss 'kl', but it is 'natural'",
        ),
        ({"learner": "natural", "alpha": 1.0}, X, Y, r"exact for a prior \(alpha = 1.0\), but"),
        ({"learner": "natural", "counts": True}, X, 9 * Y * X[:, :1], "rows of different weights"),
        ({"alpha": -1.0}, X, Y, "alpha must be at least 0, but it is -1"),
        ({"alpha": 1.0, "prior": "flat"}, X, Y, 'prior must be "even", "mean" or a matrix'),
        ({"alpha": 1.0, "prior": np.eye(3)}, X, Y, r"prior must have shape \(3, 4\)"),
        (
            {"alpha": 1.0, "prior": np.ones((3, 4))},
            X,
            Y,
            "columns that sum to 1, but one sums to 3",
        ),
        ({"tol": 0.0}, X, Y, "tol must be greater than 0, but it is 0"),
        ({"max_iter": 0}, X, Y, "max_iter must be a whole number of at least 1, but it is 0"),
        ({"hidden": (2,), "n_starts": 0}, X, Y, "n_starts must be a whole number"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(params, x, y, message):
    with pytest.raises(ValueError, match=message):
        FlowRegressor(**params).fit(x, y)


@pytest.mark.slow
def test_the_example_compares_on_equal_terms(capsys):
    rows = {
        (name, driven): (residuals, loss)
        for name, driven, residuals, loss, _ in composition_regression.main()
    }
    printed = capsys.readouterr().out
    assert "held-back loss" in printed
    assert "R^2 = 0.9" in printed
    assert rows["metric Gauss-Newton", "one"] == pytest.approx(
        rows["leaky law (physical)", "one"], rel=1e-9
    )
    assert rows["metric Gauss-Newton", "one"][1] < rows["exponentiated gradient", "one"][1]
    assert {residuals for (_, driven), (residuals, _) in rows.items() if driven == "all"} == {60}


@pytest.fixture
def soft(monkeypatch):
    """A law with a number of its own, as another package would register it."""
    known = wh.registry.laws
    monkeypatch.setattr(known, "_known", dict(known._known))
    knee = wh.registry.Field("knee", 0.5, 0.1, 2.0, argument="bend")
    known.register("soft", parameters=(knee,))(lambda bend: wh.leaky(bend))


@pytest.mark.usefixtures("soft")
@pytest.mark.parametrize("learner", ["reciprocal", "adaptive"])
def test_the_parameter_of_a_law_of_another_package_can_be_set(learner):
    how = {"learner": learner, "epochs": 2}
    given = FlowRegressor(law="soft", parameters={"knee": 0.25}, **how).fit(X, Y)
    same = FlowRegressor(law="leaky", mu=0.25, **how).fit(X, Y)
    usual = FlowRegressor(law="soft", **how).fit(X, Y)
    assert np.array_equal(given.matrix, same.matrix)
    assert not np.array_equal(given.matrix, usual.matrix)
    assert clone(given).parameters == {"knee": 0.25}


@pytest.mark.usefixtures("soft", "as_users_call_it")
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"law": "soft", "parameters": {"knee": 9}}, r"^knee must be a number from 0\.1 to 2, but"),
        (
            {"law": "soft", "parameters": {"heel": 1}},
            "^parameters must be knee for this law and learner, but 'heel' was given$",
        ),
        ({"parameters": {"leak": 1}}, "^parameters must be left out for this law and learner, but"),
        ({"parameters": 3}, "^parameters must be a dict, but it is 3$"),
        (
            {"law": "soft", "learner": "adaptive", "parameters": {"gate": "often"}},
            "^gate must be one of curvature, always, never, but it is 'often'",
        ),
    ],
)
def test_a_parameter_that_no_one_takes_is_refused(how, sentence):
    with pytest.raises(ValueError, match=sentence):
        FlowRegressor(**{"learner": "reciprocal", "epochs": 2} | how).fit(X, Y)
