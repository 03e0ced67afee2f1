r"""The estimator: compositions in, compositions out.

A composition is a row of parts that are not negative, of which only the proportions count: soil
fractions, vote shares, market shares. `FlowRegressor` predicts one composition from another by a
flow network, $\hat y = P^{(L-1)} \cdots P^{(0)} x$ with column-stochastic layers: column $j$ says
where the share of part $j$ goes. Rows are closed to unit mass on the way in, unless told that they
are already.

One layer is a convex problem, solved exactly (`descent`); hidden layers are not (`hidden`). The
physical learners of the library can be asked for by name, to see what they make of a regression.

`score` is the coefficient of determination $R^2$ between closed targets and predictions, averaged
over the parts.

Everything is computed in double precision, whatever JAX is set to, and `predict` is NumPy: a fitted
model can be pickled and read without JAX. This file alone knows scikit-learn.
"""

import warnings
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from whorl import _check, simplex
from whorl._show import plural
from whorl.feedback import SpectralLaw, rotational
from whorl.fields import choice
from whorl.learning.baseline import (
    Rule,
    Run,
    boundary,
    exponentiated_gradient,
    gauss_newton,
    learn,
    natural_gradient,
)
from whorl.learning.policy import Policy
from whorl.learning.trajectory import Pair, train
from whorl.registry import Entry, laws, policies
from whorl.regress import hidden, tables
from whorl.regress.descent import Found, inside, minimise
from whorl.regress.losses import LOSSES
from whorl.regress.words import labels, notes, summary
from whorl.system import loss
from whorl.systems.layered import Network

if TYPE_CHECKING:
    # scikit-learn ships no types: this is what a type checker should know of its base classes.
    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...

    class RegressorMixin:
        """The coefficient of determination."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __sklearn_tags__(self) -> Any: ...

    class MultiOutputMixin:
        """Several targets."""

else:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

Rows = Float[np.ndarray, "_samples _parts"]
# of R squared: what one more gradient step may still promise after a fit that has converged
ENOUGH = 1e-5
FLOOR = 1e-8  # a null loss below this is taken for this: targets that are all alike
CERTAIN = 1e-11  # what round-off leaves of a gap
LEARNERS = ("exact", "reciprocal", "exponentiated", "natural")


class FlowRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Composition-to-composition regression: where did each share go?

    Args:
        hidden: widths of the layers between input and output, none by default. A layer narrower
            than its neighbours limits the rank of the transition matrix; a wider one adds nothing.
        loss: "squared" (constrained least squares) or "kl" (Kullback-Leibler; with `counts` the
            multinomial likelihood).
        counts: whether the rows of y are counts, so that a row weighs as much as its total.
            Otherwise rows are shares and weigh the same. `sample_weight` multiplies either.
        alpha: weight of the prior, in rows per part of the input: a ridge for the squared loss, a
            Dirichlet prior for "kl". 0 switches it off.
        prior: what the columns are drawn to: a matrix `(parts of y, parts of X)`, "mean" (the mean
            composition of y: no effect of X) or "even".
        tol: the fit has converged when its loss is above the optimum by at most this share of the
            loss of the mean composition.
        max_iter: Newton steps at most; updates per start with hidden layers.
        n_starts: random starts with hidden layers, of which the best is kept.
        warm_start: begin where the last fit of this model ended.
        normalise: close rows to unit mass; if not, they must have it to 1e-6.
        learner: "exact", or a learner of the library for the squared loss without weights:
            "reciprocal" (the law, by default damped metric Gauss-Newton), "exponentiated" or
            "natural" (gradients), or a nonreciprocal policy by name, "adaptive", "step_matched" or
            one that another package registers, which needs at least three output parts; or a rule
            or a policy itself. What follows matters for those alone.
        scale: the step scale s of the envelope.
        epochs: passes over the rows, each of which makes one update per row, or a single one with
            `full_batch`.
        law: the spectral law of the learners that solve: its name, or a law itself.
        mu: the leak of the leaky law.
        omega: the amount of turning of the nonreciprocal ones.
        parameters: further numbers of the law and the policy by their names in the registry, such
            as `{"knee": 0.1}`.
        full_batch: whether the mean over all samples drives every update; not for the nonreciprocal
            learners.
        imbalance: spread of the random initial columns.
        floor: share of every initial column that is spread evenly.
        random_state: seed of initial columns, and for the learners of the order of the samples and
            the turns.

    After `fit`: `transitions_`, the matrix `(parts of y, parts of X)`, as a labelled table where
    the data had names; `layers_`, the matrices from input to output; `loss_`, the mean loss;
    `null_loss_`, that of the mean composition; `gap_`, how far the loss is above the optimum at
    most (of one layer; with hidden layers how far a slope is from an optimum); `loss_path_`, the
    loss before every step and after the last; `n_iter_`, the number of steps; `r2_`, R squared
    averaged over the parts of y that vary, NaN where none does; `notes_`, what a
    reader should know; `n_features_in_`, `feature_names_in_` and `target_names_`.

    Warns with scikit-learn's ConvergenceWarning where the fit has not converged.

    Examples:
        >>> from whorl.regress import FlowRegressor
        >>> model = FlowRegressor().fit(np.asarray(x), np.asarray(y))
        >>> bool(model.gap_ < 1e-12)
        True
        >>> round(float(model.predict([[2.0, 1.0, 1.0]]).sum()), 12)
        1.0
    """

    layers_: list[np.ndarray]
    n_features_in_: int
    intervals_: Any
    n_iter_: int
    loss_: float
    null_loss_: float
    gap_: float
    loss_path_: np.ndarray
    notes_: list[str]
    target_names_: np.ndarray
    r2_: float
    weight_: float

    def __init__(
        self,
        hidden: tuple[int, ...] = (),
        *,
        loss: str = "squared",
        counts: bool = False,
        alpha: float = 0.0,
        prior: Any = "even",
        tol: float = 1e-10,
        max_iter: int = 500,
        n_starts: int = 4,
        warm_start: bool = False,
        normalise: bool = True,
        learner: str | Rule | Policy = "exact",
        law: str | SpectralLaw = "leaky",
        scale: float = 0.3,
        epochs: int = 30,
        mu: float = 0.1,
        omega: float = 1.0,
        parameters: dict[str, Any] | None = None,
        full_batch: bool = False,
        imbalance: float = 0.5,
        floor: float = 0.1,
        random_state: Any = 0,
    ) -> None:
        # Nothing is checked here: scikit-learn sets parameters at will, and `fit` looks at them.
        self.hidden = hidden
        self.loss = loss
        self.counts = counts
        self.alpha = alpha
        self.prior = prior
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.warm_start = warm_start
        self.normalise = normalise
        self.learner = learner
        self.law = law
        self.scale = scale
        self.epochs = epochs
        self.mu = mu
        self.omega = omega
        self.parameters = parameters
        self.full_batch = full_batch
        self.imbalance = imbalance
        self.floor = floor
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FlowRegressor":
        """Learn to turn the rows of `X` into those of `y`, weighted by `sample_weight`."""
        kind, (_, names) = tables.kind(X, y), map(tables.names, (X, y))
        rows = self._rows(X, y, sample_weight)
        if not isinstance(self.learner, str) or self.learner != "exact":
            self._learn(*rows)
        elif self._widths(rows)[1:-1]:
            self._search(rows)
        else:
            self._solve(rows)
        self._kind, self._named = kind, names is not None
        width = self.layers_[-1].shape[0]
        self.target_names_ = np.asarray(names or [f"y{i}" for i in range(width)], dtype=object)
        self._describe(*rows)
        return self

    def problem(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows that the loss is made of.

        Returns:
            Inputs and targets of unit mass, and weights. The last rows, as many as X has parts, are
            the prior's: input all at one part, target its prior column, weight `alpha`.
        """
        return self._with_prior(self._rows(X, y, sample_weight))

    @property
    def transitions_(self) -> Any:
        """The transition matrix: column j says where the share of part j goes."""
        matrix = self.matrix
        named = getattr(self, "feature_names_in_", None)
        kind = self._kind if self._frames == "default" else self._frames
        if kind == "numpy" or (named is None and self._frames == "default"):
            return matrix
        width = matrix.shape[1]
        labels = [f"x{j}" for j in range(width)] if named is None else list(named)
        return tables.frame(kind, matrix, list(self.target_names_), labels)

    def set_output(self, *, transform: str | None = None) -> "FlowRegressor":
        """Say what `predict` and `transitions_` come as: "pandas", "polars", "numpy" or "default".

        By default predictions are arrays, and transitions are what the data were.
        """
        if transform is not None:
            choice("transform", transform, ("default", "numpy", "pandas", "polars"))
            # The name by which scikit-learn's `clone` takes it along.
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def _frames(self) -> str:
        return self.__dict__.get("_sklearn_output_config", {}).get("transform", "default")

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the parts that are predicted."""
        del input_features
        check_is_fitted(self)
        return self.target_names_

    def summary(self) -> str:
        """Matrix, intervals where they were asked for, goodness of fit, and what to mind."""
        check_is_fitted(self)
        return summary(self)

    def predict(self, X: Any) -> Any:
        """The compositions that `X` flows into, rows of unit mass."""
        check_is_fitted(self)
        given = getattr(X, "index", None)
        with warnings.catch_warnings():
            if isinstance(X, tables.Named):  # names that scikit-learn does not see
                self._same("X", X.columns, getattr(self, "feature_names_in_", None))
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            rows: Any = X
            X = validate_data(self, rows, dtype=np.float64, reset=False)
        made = self._flow(self._closed("X", X))
        if self._frames in ("default", "numpy"):
            return made
        return tables.frame(self._frames, made, given, list(self.target_names_), corner=None)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared of the predicted proportions, averaged over the parts.

        1 is perfect, 0 no better than the mean composition.
        """
        self._same(
            "y", tables.names(y), self.target_names_ if getattr(self, "_named", False) else None
        )
        y = check_array(y, ensure_2d=False, input_name="y")
        return r2_score(
            self._closed("y", y), np.asarray(self.predict(X)), sample_weight=sample_weight
        )

    def _same(self, name: str, found: list[str] | None, wanted: Any) -> None:
        """Refuse a table whose parts are not those of the fit, in their order."""
        if found is not None and wanted is not None and found != list(wanted):
            raise ValueError(
                f"{name} must have the parts of the fit, {', '.join(map(str, wanted))[:200]}, but "
                f"it has {', '.join(found)[:200]}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.positive_only = True
        tags.target_tags.single_output = False
        return tags

    def _flow(self, rows: Rows) -> Rows:
        for layer in self.layers_:
            rows = rows @ layer.T
        # The layers conserve mass to round-off; this makes it exact, and the only part of one-part
        # targets exactly one.
        return rows / rows.sum(axis=1, keepdims=True)

    def _closed(self, name: str, rows: np.ndarray) -> Rows:
        """Rows of unit mass, from rows of any positive mass where closing is asked for."""
        if rows.ndim != 2:
            raise ValueError(
                f"{name} must have shape (samples, parts), but its shape is {rows.shape}"
            )
        rows = np.asarray(rows, dtype=np.float64)  # of single precision, too, before it is closed
        # In scikit-learn's own words, by which its checks know the reason.
        check_non_negative(rows, f"FlowRegressor as {name}")
        with np.errstate(over="ignore"):
            sums = rows.sum(axis=1, keepdims=True)
        if not np.isfinite(sums).all():
            row = int(np.argmin(np.isfinite(sums)))
            raise ValueError(f"{name} must have rows with a finite sum, but row {row} has none")
        if self.normalise:
            if (sums == 0).any():
                raise ValueError(
                    f"{name} must have rows with mass, but row {int(np.argmin(sums))} sums to 0"
                )
            return rows / sums
        with jax.enable_x64(True):
            return np.asarray(_check.compositions(name, rows, rows.shape[1], np.float64))

    @property
    def matrix(self) -> np.ndarray:
        """The transition matrix as a plain array."""
        check_is_fitted(self)
        matrix = self.layers_[0]
        for layer in self.layers_[1:]:
            matrix = layer @ matrix
        return matrix

    def _rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Closed inputs, closed targets, and weights, all checked."""
        named: Any = X.columns if isinstance(X, tables.Named) else None
        given: Any = X
        X, y = validate_data(self, given, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)  # totals of short floats would be rounded, or overflow
        if named is not None:
            self.feature_names_in_ = np.asarray(named, dtype=object)
        if X.shape[1] < 2:
            raise ValueError(
                "X must have at least 2 parts for their proportions to say anything, but "
                "n_features = 1"
            )
        weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        inputs, targets = self._closed("X", X), self._closed("y", y)
        if self.counts:
            weights = weights * y.sum(axis=1)
        if weights.all():
            return inputs, targets, weights
        return inputs[weights > 0], targets[weights > 0], weights[weights > 0]

    def _prior(self, inputs: Rows, targets: Rows, weights: np.ndarray) -> np.ndarray:
        shape = (targets.shape[1], inputs.shape[1])
        if isinstance(self.prior, str):
            if self.prior == "even":
                return np.full(shape, 1 / shape[0])
            if self.prior == "mean":
                return np.tile((weights @ targets / weights.sum())[:, None], (1, shape[1]))
            raise ValueError(f'prior must be "even", "mean" or a matrix, but it is {self.prior!r}')
        matrix = np.asarray(self.prior, dtype=np.float64)
        if matrix.shape != shape or not (matrix >= 0).all():
            raise ValueError(
                f"prior must have shape {shape} and no negative entries, but its shape is "
                f"{matrix.shape} and its least entry {matrix.min(initial=np.inf):g}"
            )
        if np.abs(matrix.sum(axis=0) - 1).max() > 1e-6:
            raise ValueError(
                "prior must have columns that sum to 1, but one sums to "
                f"{matrix.sum(axis=0)[np.abs(matrix.sum(axis=0) - 1).argmax()]:g}"
            )
        return matrix / matrix.sum(axis=0)

    def _named_loss(self) -> Any:
        return LOSSES[choice("loss", self.loss, LOSSES)]

    def _start(self, targets: Rows, width: int) -> np.ndarray:
        shape = (targets.shape[1], width)
        if self.warm_start and hasattr(self, "layers_") and self.matrix.shape == shape:
            return inside(self.matrix[None], 1e-6)
        return np.full((1, *shape), 1 / shape[0])

    def _solve(self, rows: tuple[Rows, Rows, np.ndarray]) -> None:
        """One layer, exactly."""
        inputs, targets, weights = self._with_prior(rows)
        posed = self._named_loss()(inputs, targets, weights)
        null = self._null(posed, targets, weights)
        tol = _check.number("tol", self.tol, above=0.0) * null
        found: Found = minimise(
            posed,
            self._start(targets, inputs.shape[1]),
            tol,
            _check.count("max_iter", self.max_iter),
        )
        self.layers_, self.gap_ = [found.layer[0]], float(found.gap[0])
        path = [float(posed.value(layer, posed.seen(layer))[0]) for layer in found.trail]
        self.n_iter_, self.loss_path_ = max(int(found.steps[0]), 1), np.array(path)
        self._warn(tol)

    def _search(self, rows: tuple[Rows, Rows, np.ndarray]) -> None:
        """Hidden layers, from several starts."""
        inputs, targets, weights = self._with_prior(rows)
        posed = self._named_loss()(inputs, targets, weights)
        tol = _check.number("tol", self.tol, above=0.0) * self._null(posed, targets, weights)
        starts = _check.count("n_starts", self.n_starts)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=starts)
        self.layers_, self.gap_, self.n_iter_ = hidden.fit(
            self._widths(rows),
            (inputs, targets, weights / weights.sum()),
            self.loss == "kl",
            [int(seed) for seed in seeds],
            tol,
            _check.count("max_iter", self.max_iter),
        )
        self.loss_path_ = np.array([])
        self._warn(tol)

    def _with_prior(self, rows: tuple[Rows, Rows, np.ndarray]) -> tuple[Rows, Rows, np.ndarray]:
        alpha = _check.number("alpha", self.alpha, least=0.0)
        if alpha == 0:
            return rows
        width = rows[0].shape[1]
        more = (np.eye(width), self._prior(*rows).T, np.full(width, alpha))
        inputs, targets, weights = (
            np.concatenate([one, other]) for one, other in zip(rows, more, strict=True)
        )
        return inputs, targets, weights

    def _null(self, posed: Any, targets: Rows, weights: np.ndarray) -> float:
        """The loss of the mean composition, which the gap is measured by."""
        mean = weights @ targets / weights.sum()
        flat = np.tile(mean[None, :, None], (1, 1, self.n_features_in_))
        flat = flat / flat.sum(axis=1, keepdims=True)
        return max(float(posed.value(flat, posed.seen(flat))[0]), FLOOR)

    def _warn(self, tol: float) -> None:
        if self.gap_ > max(tol, CERTAIN):
            told = (
                f"the fit has not converged after {plural(self.n_iter_, 'step')}: its loss may be"
                f" {self.gap_:.1e} above the optimum"
            )
            warnings.warn(f"{told}; raise max_iter or tol", ConvergenceWarning, stacklevel=4)

    def _describe(self, inputs: Rows, targets: Rows, weights: np.ndarray) -> None:
        """What is known of the fit, from the rows without the prior's."""
        posed = LOSSES.get(self.loss, LOSSES["squared"])(inputs, targets, weights)
        matrix = self.matrix[None]
        self.loss_ = float(posed.value(matrix, posed.seen(matrix))[0])
        self.null_loss_ = self._null(posed, targets, weights)
        self.weight_ = float(weights.sum())
        self.r2_ = _explained(targets, self._flow(inputs), weights)
        names = labels(self)[0]
        self.notes_ = notes(inputs, targets, weights, matrix[0], names)

    def _widths(self, rows: tuple[Rows, Rows, np.ndarray]) -> tuple[int, ...]:
        try:
            return (rows[0].shape[1], *self.hidden, rows[1].shape[1])
        except TypeError as single:
            raise ValueError(
                f"hidden must be a row of widths, but it is {self.hidden!r}"
            ) from single

    def _learn(self, inputs: Rows, targets: Rows, weights: np.ndarray) -> None:
        """A learner of the library, as it would do in its own loop."""
        asked = {
            f"the loss {self.loss!r}": self.loss != "squared",
            f"a prior (alpha = {self.alpha!r})": bool(self.alpha),
            "rows of different weights": np.ptp(weights) > 0,
        }
        if any(asked.values()):
            reason = next(words for words, there in asked.items() if there)
            raise ValueError(
                f"learner must be exact for {reason}, but it is {_check.shown(self.learner)}"
            )
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=2)
        with jax.enable_x64(True):
            net = self._network(inputs, targets, int(seeds[0]))
            result = self._learned(net, inputs, targets, int(seeds[1]))
            final = result.system if isinstance(result, Run) else result.nonreciprocal
            # Plain arrays can be pickled, and read without JAX.
            self.layers_ = [np.asarray(layer) for layer in final.layers]
            promised = _promised(final, inputs, targets)
        if not result.completed:
            warnings.warn(result.status, ConvergenceWarning, stacklevel=3)
        elif promised > ENOUGH:
            advice = (
                "raise epochs"
                if self.full_batch
                else "raise epochs, lower scale or set full_batch=True"
            )
            told = (
                f"the fit has not converged after {plural(result.made, 'update')}: one more gradient step"
                f" promises {promised:.1e} of R squared"
            )
            warnings.warn(f"{told}; {advice}", ConvergenceWarning, stacklevel=3)
        self.n_iter_, self.gap_, self.loss_path_ = int(result.made), float("nan"), np.array([])

    def _network(self, inputs: Rows, targets: Rows, seed: int) -> Network:
        # Rates divide the sum over all samples into a mean, and stiffen the damping likewise: no
        # step depends on the number of rows.
        rates = 1 / len(inputs) if self.full_batch else 1.0
        return Network.random(
            self._widths((inputs, targets, inputs)),
            seed=seed,
            imbalance=self.imbalance,
            floor=self.floor,
            rates=rates,
        )

    def _learned(self, net: Network, inputs: Rows, targets: Rows, seed: int) -> Run | Pair:
        learner = self._learner()
        if isinstance(learner, Policy):
            if self.full_batch:
                raise ValueError(
                    f"full_batch must be False for the learner {_check.shown(self.learner)}, which"
                    " turns one sample, but it is True"
                )
            return train(
                net, inputs, targets, policy=learner, epochs=self.epochs, seed=seed, record=False
            )
        shown: dict[str, Any] = {"epochs": self.epochs}
        if (
            self.full_batch
        ):  # one update a pass: the schedule says how many, and whom it names does not matter
            shown = {"schedule": np.zeros(_check.count("epochs", self.epochs), dtype=int)}
        return learn(
            net,
            inputs,
            targets,
            rule=learner,
            scale=self.scale,
            seed=seed,
            full_batch=self.full_batch,
            record=False,
            **shown,
        )

    def _learner(self) -> Rule | Policy:
        """What learns, by name.

        Asked for one by one, so that a parameter is checked only where it matters.
        """
        if isinstance(self.learner, Rule | Policy):
            return self.learner
        match self.learner:
            case "reciprocal":
                # The same direction twice: among the outputs of one sample, or among the
                # parameters, which are fewer than those of all.
                law = self._law()
                if self.full_batch and (leak := law.damping) is not None:
                    return gauss_newton(leak)
                return boundary(law)
            case "exponentiated":
                return exponentiated_gradient()
            case "natural":
                return natural_gradient()
        if not policies.has(self.learner, where="estimator"):
            known = ", ".join([*LEARNERS, *policies.names(where="estimator")])
            raise ValueError(
                f"learner must be one of {known}, but it is {policies.unknown(self.learner)}"
            )
        chosen = policies.get(self.learner)
        law = rotational(base=self._law(chosen))
        return chosen.make(**self._numbers(chosen), law=law)

    def _law(self, *others: Entry) -> SpectralLaw:
        """The law by name or as it is; `parameters` are its own and those of other entries."""
        entries = [*others]
        if not isinstance(self.law, SpectralLaw):
            entries.append(laws.get(self.law, where="estimator", also=" or a spectral law"))
        known = {one.name for entry in entries for one in entry.parameters} - self._ours.keys()
        _check.instance("parameters", self.parameters or {}, dict)
        for name in self.parameters or ():
            if name not in known:
                raise ValueError(
                    f"parameters must be {', '.join(sorted(known)) or 'left out'} for this law "
                    f"and learner, but {_check.shown(name)} was given"
                )
        if isinstance(self.law, SpectralLaw):
            return self.law
        return entries[-1].make(**self._numbers(entries[-1]))

    @property
    def _ours(self) -> dict[str, Any]:
        """The numbers of laws and policies that are parameters of the estimator."""
        return {"leak": self.mu, "scale": self.scale, "omega": self.omega}

    def _numbers(self, chosen: Entry) -> dict[str, Any]:
        """What an entry takes of our numbers and of `parameters`, which keep their ranges."""
        further = chosen.takes(self.parameters or {})
        checked = {
            one.name: one.check(further[one.name])
            for one in chosen.parameters
            if one.name in further
        }
        return chosen.takes(self._ours) | checked


def _explained(targets: Rows, made: Rows, weights: np.ndarray) -> float:
    """R squared, averaged over the parts that vary; NaN where none does.

    As scikit-learn's `r2_score`, whose checks of its arguments take as long as a small fit.
    """
    apart = targets - weights @ targets / weights.sum()
    left, all_ = (weights @ one**2 for one in (targets - made, apart))
    varies = all_ > 1e-24 * weights.sum()
    return float(np.mean(1 - left[varies] / all_[varies])) if varies.any() else float("nan")


def _promised(net: Network, inputs: Rows, targets: Rows) -> float:
    """How much a natural gradient step of unit size would add to R squared, to first order.

    The squared metric norm of the gradient.
    """
    slopes = jax.grad(lambda layers: loss(net.with_blocks(layers), inputs, targets))(net.layers)
    fall = sum(
        float(jnp.sum(slope * simplex.velocity(p, slope)))
        for p, slope in zip(net.layers, slopes, strict=True)
    )
    spread = np.sum((targets - targets.mean(axis=0)) ** 2)
    # Targets that are all alike have no spread, and R squared no meaning: their size takes its
    # place.
    return fall * 2 * len(targets) / float(max(spread, ENOUGH * np.sum(targets**2)))
