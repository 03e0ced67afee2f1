r"""A scikit-learn estimator: compositions in, compositions out.

A composition is a row of parts that are not negative, of which only the proportions count: soil
fractions, vote shares, market shares. `FlowRegressor` predicts one composition from another by a
flow network, $\hat y = P^{(L-1)} \cdots P^{(0)} x$ with column-stochastic layers: column $j$ says
where the share of part $j$ goes. Rows are closed to unit mass on the way in, unless told that they
are already.

`score` is the coefficient of determination $R^2$ between closed targets and predictions, averaged
over the parts.

Everything is computed in double precision, whatever JAX is set to: `fit` asks for 64 bits inside
itself only, and `predict` is NumPy. This file alone knows scikit-learn.
"""

import warnings
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from whorl import _check, simplex
from whorl.baseline import (
    Rule,
    Run,
    boundary,
    exponentiated_gradient,
    gauss_newton,
    learn,
    natural_gradient,
)
from whorl.feedback import SpectralLaw, rotational
from whorl.policy import Policy
from whorl.registry import laws, policies
from whorl.system import loss
from whorl.systems.layered import Network
from whorl.trajectory import Pair, train

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

Rows = Float[np.ndarray, "samples _parts"]
# of R squared: what one more gradient step may still promise after a fit that has converged
ENOUGH = 1e-5
LEARNERS = ("reciprocal", "exponentiated", "natural")


class FlowRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Composition-to-composition regression by a flow network.

    Args:
        hidden: widths of the layers between input and output, none by default.
        learner: "reciprocal" (the law, by default damped metric Gauss-Newton), "exponentiated" or
            "natural" (gradients), or a nonreciprocal policy by name, "adaptive", "step_matched" or
            one that another package registers, which needs at least three output parts; or a rule
            or a policy itself.
        law: the spectral law of the learners that solve: its name, or a law itself.
        scale: the step scale s of the envelope.
        epochs: passes over the rows, each of which makes one update per row, or a single one with
            `full_batch`.
        mu: the leak of the leaky law.
        omega: the amount of turning of the nonreciprocal ones.
        full_batch: whether the mean over all samples drives every update; not for the nonreciprocal
            learners.
        imbalance: spread of the random initial columns.
        floor: share of every initial column that is spread evenly.
        normalise: close rows to unit mass; if not, they must have it.
        random_state: seed of the initial columns, the order of the samples and the turns.

    After `fit`: `layers_`, the matrices from input to output; `n_iter_`, the number of updates;
    `loss_`, the mean loss at the end; `n_features_in_`, and `feature_names_in_` where the inputs
    had names.

    Warns with scikit-learn's ConvergenceWarning where the fit stops early, or where one natural
    gradient step of unit size would still raise the R squared of the fitted rows by more than 1e-5.
    One sample at a time never settles on noisy rows: a smaller `scale` or `full_batch` does.

    Examples:
        >>> from whorl.estimator import FlowRegressor
        >>> model = FlowRegressor(full_batch=True, mu=1e-3, scale=1.0).fit(np.asarray(x), np.asarray(y))
        >>> round(float(model.predict([[2.0, 1.0, 1.0]]).sum()), 12)
        1.0
    """

    layers_: list[np.ndarray]
    n_iter_: int
    loss_: float

    def __init__(
        self,
        hidden: tuple[int, ...] = (),
        *,
        learner: str | Rule | Policy = "reciprocal",
        law: str | SpectralLaw = "leaky",
        scale: float = 0.3,
        epochs: int = 30,
        mu: float = 0.1,
        omega: float = 1.0,
        full_batch: bool = False,
        imbalance: float = 0.5,
        floor: float = 0.1,
        normalise: bool = True,
        random_state: Any = 0,
    ) -> None:
        # Nothing is checked here: scikit-learn sets parameters at will, and `fit` looks at them.
        self.hidden = hidden
        self.learner = learner
        self.law = law
        self.scale = scale
        self.epochs = epochs
        self.mu = mu
        self.omega = omega
        self.full_batch = full_batch
        self.imbalance = imbalance
        self.floor = floor
        self.normalise = normalise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "FlowRegressor":
        """Learn to turn the rows of `X` into those of `y`."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        if X.shape[1] < 2:
            raise ValueError(
                "X must have at least 2 parts for their proportions to say anything, but "
                "n_features = 1"
            )
        inputs, targets = self._closed("X", X), self._closed("y", y)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=2)
        with jax.enable_x64(True):
            net = self._network(inputs, targets, int(seeds[0]))
            result = self._learned(net, inputs, targets, int(seeds[1]))
            final = result.system if isinstance(result, Run) else result.nonreciprocal
            # Plain arrays can be pickled, and read without JAX.
            self.layers_ = [np.asarray(layer) for layer in final.layers]
            promised = _promised(final, inputs, targets)
        if not result.completed:
            warnings.warn(result.status, ConvergenceWarning, stacklevel=2)
        elif promised > ENOUGH:
            advice = (
                "raise epochs"
                if self.full_batch
                else "raise epochs, lower scale or set full_batch=True"
            )
            told = f"the fit has not converged after {result.made} updates: one more gradient step promises {promised:.1e} of R squared"
            warnings.warn(f"{told}; {advice}", ConvergenceWarning, stacklevel=2)
        self.n_iter_ = int(result.made)
        self.loss_ = float(np.sum((targets - self._flow(inputs)) ** 2) / (2 * len(inputs)))
        return self

    def predict(self, X: Any) -> Rows:
        """The compositions that `X` flows into, rows of unit mass."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._flow(self._closed("X", X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared of the predicted proportions, averaged over the parts.

        1 is perfect, 0 no better than the mean composition.
        """
        y = check_array(y, ensure_2d=False, input_name="y")
        return super().score(X, self._closed("y", y), sample_weight)

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
        # In scikit-learn's own words, by which its checks know the reason.
        check_non_negative(rows, f"FlowRegressor as {name}")
        sums = rows.sum(axis=1, keepdims=True)
        if self.normalise:
            if (sums == 0).any():
                raise ValueError(
                    f"{name} must have rows with mass, but row {int(np.argmin(sums))} sums to 0"
                )
            rows = rows / sums
        with jax.enable_x64(True):
            return np.asarray(_check.compositions(name, rows, rows.shape[1], np.float64))

    def _network(self, inputs: Rows, targets: Rows, seed: int) -> Network:
        try:
            widths = (inputs.shape[1], *self.hidden, targets.shape[1])
        except TypeError as single:
            raise ValueError(
                f"hidden must be a row of widths, but it is {self.hidden!r}"
            ) from single
        # Rates divide the sum over all samples into a mean, and stiffen the damping likewise: no
        # step depends on the number of rows.
        rates = 1 / len(inputs) if self.full_batch else 1.0
        return Network.random(
            widths, seed=seed, imbalance=self.imbalance, floor=self.floor, rates=rates
        )

    def _learned(self, net: Network, inputs: Rows, targets: Rows, seed: int) -> Run | Pair:
        learner = self._learner()
        if isinstance(learner, Policy):
            if self.full_batch:
                raise ValueError(
                    f"full_batch must be False for the learner {_check.shown(self.learner)}, which turns one "
                    "sample, but it is True"
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
                joint = self.full_batch and self.law == "leaky"
                return gauss_newton(self.mu) if joint else boundary(self._law())
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
        given = chosen.takes({"scale": self.scale, "omega": self.omega})
        return chosen.make(**given, law=rotational(base=self._law()))

    def _law(self) -> SpectralLaw:
        """The law by name or as it is."""
        if isinstance(self.law, SpectralLaw):
            return self.law
        chosen = laws.get(self.law, where="estimator", also=" or a spectral law")
        return chosen.make(**chosen.takes({"leak": self.mu}))


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
