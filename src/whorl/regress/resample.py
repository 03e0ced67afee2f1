r"""Intervals, a test of no effect, and held-back rows for a fit.

Resampled fits share their inputs, so that a thousand of them are one call to `descent`: a bootstrap
differs in the weights of its rows, a permutation in the order of its targets.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from whorl import _check
from whorl._show import Shown
from whorl.fields import choice
from whorl.regress.descent import minimise
from whorl.regress.estimator import FlowRegressor
from whorl.regress.losses import LOSSES
from whorl.regress.words import determined

ROOM = 1 << 22  # numbers in the targets of one call
TOL = 1e-9  # of a resampled fit, far below what resampling itself leaves open


@dataclass(frozen=True, repr=False)
class Intervals(Shown):
    """Bootstrap intervals of every entry of the transition matrix, which hold the fit.

    Args:
        low: `(parts of y, parts of X)`.
        high: the same.
        level: how often such intervals should hold the truth.
        draws: every resampled matrix, `(repeats, parts of y, parts of X)`.
        unsettled: how many of them did not reach the optimum.
    """

    low: Float[np.ndarray, "out in"]
    high: Float[np.ndarray, "out in"]
    level: float
    draws: Float[np.ndarray, "repeats out in"]
    unsettled: int

    def __str__(self) -> str:
        left = f", {self.unsettled} of which did not settle" if self.unsettled else ""
        return f"percentiles of {len(self.draws)} bootstrap fits{left}, and their mirror image"


@dataclass(frozen=True, repr=False)
class Permuted(Shown):
    """A permutation test of "y does not depend on X".

    Args:
        p: the share of orders, the true one included, that fit at least as well.
        loss: of the true order.
        losses: of random orders.
    """

    p: float
    loss: float
    losses: Float[np.ndarray, "repeats"]

    def __str__(self) -> str:
        return f"p = {self.p:.3g}: loss {self.loss:.6g}, among {len(self.losses)} random orders"


def bootstrap(
    model: FlowRegressor,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    repeats: int = 1000,
    level: float = 0.95,
    groups: Any = None,
    seed: int = 0,
    device: str = "cpu",
) -> Intervals:
    """Intervals from rows drawn with replacement, kept in `model.intervals_` for its summary.

    Percentiles of refits, taken a little further out than `level` says, as Student's t is than the
    normal distribution: refits to rows drawn with replacement scatter too little where rows are few
    (Hesterberg 2015). Near the boundary refits scatter to one side, and by how much is not known:
    every end is the percentile, or the other percentile's mirror image in the fit if that is
    further out, within 0 and 1. A column that the rows cannot tell has the interval from 0 to 1.

    Args:
        model: says what is fitted; it need not be fitted yet, and then is.
        X: as for `fit`.
        y: as for `fit`.
        sample_weight: as for `fit`.
        repeats: number of resampled fits.
        level: of the intervals, between 0 and 1.
        groups: one label per row; whole groups are drawn then, as rows of one may be alike.
        seed: of the draws.
        device: "cpu", or "accelerator" to let JAX compute the fits where it computes by default.

    Raises:
        ValueError: for a model with hidden layers or with a learner of the library.

    Examples:
        >>> from whorl.regress import FlowRegressor, bootstrap
        >>> found = bootstrap(FlowRegressor(), np.asarray(x), np.asarray(y), repeats=20)
        >>> bool((found.low <= found.high).all())
        True
    """
    repeats = _check.count("repeats", repeats)
    share = _check.number("level", level, above=0.0, below=1.0)
    _one_layer(model)
    model.fit(X, y, sample_weight)
    inputs, targets, weights = model.problem(X, y, sample_weight)
    real = len(weights) - (inputs.shape[1] if model.alpha else 0)
    labels = _labels(groups, sample_weight, model, y, real)
    counts = np.random.default_rng(_check.count("seed", seed, least=0)).multinomial(
        labels.max() + 1, np.full(labels.max() + 1, 1 / (labels.max() + 1)), size=repeats
    )
    drawn = np.concatenate([counts[:, labels], np.ones((repeats, len(weights) - real))], axis=1)
    drawn = drawn * weights
    draws, unsettled = _refitted(
        model, inputs, lambda part: (targets, drawn[part]), repeats, device
    )
    tail = _tail((1 - share) / 2, int(labels.max()) + 1, inputs.shape[1])
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    twice = 2 * model.matrix
    low, high = (
        np.clip(np.minimum(low, twice - high), 0.0, 1.0),
        np.clip(np.maximum(high, twice - low), 0.0, 1.0),
    )
    # If the rows determine nothing, all draws end where the descent began: any share is possible.
    known = determined(inputs) & (labels.max() > 0)
    low, high = np.where(known, low, 0.0), np.where(known, high, 1.0)
    model.intervals_ = Intervals(low, high, share, draws, unsettled)
    return model.intervals_


def permutation(
    model: FlowRegressor,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    repeats: int = 999,
    seed: int = 0,
) -> Permuted:
    """Test "y does not depend on X" by fits to targets in random order.

    Rows keep their weights with their targets. The answer is exact for rows that could have come
    in any order.

    Examples:
        >>> from whorl.regress import FlowRegressor, permutation
        >>> test = permutation(FlowRegressor(), np.asarray(x), np.asarray(y), repeats=19)
        >>> 0.05 <= test.p <= 1
        True
    """
    repeats = _check.count("repeats", repeats)
    _one_layer(model)
    inputs, targets, weights = model.problem(X, y, sample_weight)
    real = len(weights) - (inputs.shape[1] if model.alpha else 0)
    rng = np.random.default_rng(_check.count("seed", seed, least=0))
    orders = np.tile(np.arange(len(weights)), (repeats + 1, 1))
    orders[1:, :real] = rng.permuted(orders[1:, :real], axis=1)
    losses = np.empty(repeats + 1)
    _refitted(
        model,
        inputs,
        lambda part: (targets[orders[part]], weights[orders[part]]),
        repeats + 1,
        "cpu",
        losses,
    )
    # Ties count: a loss is known to the gap of its fit.
    p = np.mean(losses <= losses[0] + 1e-8 * abs(losses[0]) + 1e-12)
    return Permuted(float(p), float(losses[0]), losses[1:])


def compare(
    X: Any,
    y: Any,
    models: dict[str, FlowRegressor],
    *,
    sample_weight: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
) -> dict[str, tuple[float, float]]:
    """R squared on held-back rows for several models, such as several depths: mean and its error.

    Examples:
        >>> from whorl.regress import FlowRegressor, compare
        >>> found = compare(np.asarray(x), np.asarray(y), {"one layer": FlowRegressor()}, cv=2)
        >>> list(found)
        ['one layer']
    """
    params = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
    found = {}
    for name, model in models.items():
        scores = cross_validate(clone(model), X, y, cv=cv, n_jobs=n_jobs, params=params)[
            "test_score"
        ]
        found[name] = (float(np.mean(scores)), float(np.std(scores, ddof=1) / np.sqrt(len(scores))))
    return found


def _tail(tail: float, units: int, parts: int) -> float:
    r"""The share of draws beyond each end: $\Phi(\sqrt{n/(n - k)}\; t_{n-k})$ for n units, k parts.

    An interval from draws alone is narrow by $\sqrt{(n - k)/n}$, since residuals are smaller than
    errors, and takes their scatter for known.
    """
    if units <= parts:
        return 0.0
    far = student.ppf(tail, units - parts) * np.sqrt(units / (units - parts))
    return float(norm.cdf(far))


def _one_layer(model: FlowRegressor) -> None:
    if model.learner != "exact" or len(model.hidden):
        raise ValueError(
            "model must have one layer and the learner exact for this, but hidden is "
            f"{model.hidden!r} and learner {model.learner!r}"
        )


def _labels(groups: Any, sample_weight: Any, model: FlowRegressor, y: Any, real: int) -> np.ndarray:
    """A number per row that was fitted; rows of no weight are not."""
    if groups is None:
        return np.arange(real)
    given = np.asarray(groups)
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
    if given.shape != (len(y),):
        raise ValueError(
            f"groups must have one label per row, {len(y)} in all, but their shape is {given.shape}"
        )
    lost = [row for row, label in enumerate(given.tolist()) if label is None or label != label]
    if lost:
        raise ValueError(f"groups must have one label per row, but row {lost[0]} has none")
    if model.counts:
        weights = weights * np.asarray(y).sum(axis=1)
    labels = given.astype(str)[weights > 0]
    return np.unique(labels, return_inverse=True)[1]


def _refitted(
    model: FlowRegressor,
    inputs: np.ndarray,
    data: Any,
    repeats: int,
    device: str,
    losses: np.ndarray | None = None,
) -> tuple[np.ndarray, int]:
    """Fits of many problems with these inputs, some at a time; `data` makes those of a slice."""
    choice("device", device, ("cpu", "accelerator"))
    import jax
    import jax.numpy as jnp

    (n, width), found, unsettled = inputs.shape, [], 0
    at_once = max(1, ROOM // (n * data(slice(0, 1))[0].shape[-1])) if device == "cpu" else repeats
    for first in range(0, repeats, at_once):
        targets, weights = data(slice(first, min(first + at_once, repeats)))
        with jax.enable_x64(True):
            arrays = (inputs, targets, weights)
            if device == "accelerator":
                arrays = tuple(jnp.asarray(one) for one in arrays)
            posed = LOSSES[model.loss](*arrays)
            count, out = weights.shape[0], targets.shape[-1]
            start = np.full((count, out, width), 1 / out)
            start = jnp.asarray(start) if device == "accelerator" else start
            fits = minimise(posed, start, TOL, model.max_iter)
        found.append(fits.layer)
        unsettled += int((fits.gap > 10 * TOL).sum())
        if losses is not None:
            losses[first : first + count] = fits.value
    return np.concatenate(found), unsettled
