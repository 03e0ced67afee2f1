r"""The updates as optax transformations, for loops that exist already (Eqs. 4, 18, 20).

Steps are bounded by the envelope of `policy`.

The parameters are any tree of arrays on their geometries. Left out, the geometry is `Simplex()`:
columns, along the first axis, are positive and sum to one, as in the layers of a `Network` or the
mixing matrices inside a larger model. Both transformations return the additive update $p^+ - p$ of
a step of the geometry, so that `optax.apply_updates` lands on $p^+$. Round-off does not add up in
columns, because every step normalises again. A weight stays positive as long as one step does not
shrink it by more than $10^{15}$; under the envelope of scale $s$ that is at most $e^{s}$.

- `descending` follows the gradient it is given, $s = -\rho\nabla\mathcal L$. Behind a gradient of
  half the squared residual it is the direct law.
- `turning` follows a turned residual, which no gradient contains. It asks for the `inputs` and
  `targets` of the samples that drive the update, and reads the user's own `predict(params,
  inputs)`: with $J$ its Jacobian and $K = J M J^\mathsf{T}$, the score is $\rho J^\mathsf{T} (K +
  \mu I)^{-1} (\alpha e + \sigma\Omega C e)$. The step keeps room for a turn of either sense.

$K$ has a row for every output of every sample that drives. It is built column by column from one
linearisation of `predict`, so that memory holds one set of parameters and never their Jacobian.
This file alone knows optax.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PyTree

from whorl import _check
from whorl.geometry import Flat, Geometry, Simplex
from whorl.learning.policy import admitted
from whorl.turn import quarter_turn

if TYPE_CHECKING:
    Parameters = Any  # a tree of arrays, which only the run-time checker can look into
else:
    Parameters = PyTree[Float[Array, "_d *_columns"]]
COLUMNS = Simplex()
Kinds = Any  # a tree of geometries, of the same structure
Predict = Callable[[Any, Any], Array]


class DescendingState(NamedTuple):
    """What the next descending update needs where not all parameters are columns."""

    fastest: Float[Array, ""]  # the largest spread of a score so far


class TurningState(NamedTuple):
    """What the next turning update needs.

    How many were made, which decides the sense where turns alternate, and how fast outputs moved.
    """

    made: Int[Array, ""]
    pace: Float[Array, ""] | None = None  # None for columns


def descending(
    scale: ArrayLike, rates: Any = 1.0, geometry: Any = COLUMNS
) -> optax.GradientTransformation:
    """Exponentiated descent along the gradient, with the step that the envelope of `scale` admits.

    `rates` is one number, or a tree like the parameters that holds, for each array, one number or
    one per column. `geometry` is what all arrays live on, or a tree like the parameters with one
    geometry for each. Where not all are columns, the envelope's 1 is replaced by the largest spread
    so far: the first update changes a parameter by the share `scale`, later ones by less as the
    gradient falls, in whatever units. `Flat` has to declare its `size` for that.

    Examples:
        >>> import optax
        >>> from whorl import optimiser
        >>> params = {"p": jnp.array([0.5, 0.3, 0.2])}
        >>> transformation = optimiser.descending(scale=0.1)
        >>> updates, _ = transformation.update(
        ...     {"p": jnp.array([1.0, 0.0, 0.0])}, transformation.init(params), params
        ... )
        >>> round(float(optax.apply_updates(params, updates)["p"].sum()), 12)
        1.0
    """
    size = _check.scalar("scale", scale, above=0.0)

    def init(params: Any) -> optax.EmptyState | DescendingState:
        points, kinds = _checked(params, geometry)
        _rates(rates, points)
        if _unitless(kinds):
            return optax.EmptyState()
        for kind in jax.tree.leaves(kinds, is_leaf=_is_geometry):
            if isinstance(kind, Flat) and kind.size is None:
                raise ValueError(
                    "geometry must be Flat(size=...) to descend a gradient, which does not say how "
                    "large a change is, but it has no size"
                )
        return DescendingState(_none(points))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Parameters, Any]:
        points, kinds = _checked(params, geometry)
        scores = _each(
            kinds, _score, points, _rates(rates, points), jax.tree.map(jnp.negative, updates)
        )
        if isinstance(state, DescendingState):
            state = DescendingState(jnp.maximum(state.fastest, _spread(kinds, points, scores)))
            return _difference(kinds, points, scores, admitted(size, state.fastest, 0.0)), state
        return _difference(kinds, points, scores, _admitted(size, kinds, points, scores)), state

    return optax.GradientTransformation(init, update)


def turning(
    predict: Predict,
    scale: ArrayLike,
    *,
    alpha: ArrayLike = 1.0,
    omega: ArrayLike = 1.0,
    mu: ArrayLike = 0.1,
    turn: int | None = None,
    rates: Any = 1.0,
    geometry: Any = COLUMNS,
) -> optax.GradientTransformationExtraArgs:
    """Relax at rate `alpha` while turning at rate `omega`, through the leak `mu`.

    `predict(params, inputs)` gives the outputs of one sample, `(out,)`, or of a batch, `(samples,
    out)`, with at least three outputs. Every update asks for `inputs` and `targets`:
    `transformation.update(grads, state, params, inputs=x, targets=y)`. The gradients themselves are
    not used, and may be the parameters again. `turn` is the sense, +1 or -1; left out, senses
    alternate and the first is +1, so that what is odd in the sense cancels over time. An update may
    also be given its own `turn`.

    Examples:
        >>> from whorl import optimiser
        >>> params, inputs, targets = (
        ...     jnp.full((3, 3), 1 / 3),
        ...     jnp.array([0.6, 0.3, 0.1]),
        ...     jnp.array([0.2, 0.3, 0.5]),
        ... )
        >>> transformation = optimiser.turning(lambda layer, flow: layer @ flow, scale=0.1)
        >>> updates, state = transformation.update(
        ...     params, transformation.init(params), params, inputs=inputs, targets=targets
        ... )
        >>> bool(np.allclose(updates.sum(axis=0), 0)), int(state.made)
        (True, 1)
    """
    if not callable(predict):
        raise ValueError(
            "predict must be a function of parameters and inputs, but it is "
            f"{_check.shown(predict)}"
        )
    size, leak = _check.scalar("scale", scale, above=0.0), _check.scalar("mu", mu, above=0.0)
    relax, amount = (
        _check.scalar("alpha", alpha, above=0.0),
        _check.scalar("omega", omega, least=0.0),
    )
    _check_turn(turn)
    fixed = turn

    def init(params: Any) -> Any:
        points, kinds = _checked(params, geometry)
        _rates(rates, points)
        pace = None if _unitless(kinds) else _none(points)
        return TurningState(jnp.zeros((), dtype=jnp.int32), pace)

    def update(
        updates: Any,
        state: Any,
        params: Any = None,
        *,
        inputs: Any = None,
        targets: Any = None,
        turn: Any = None,
        **_: Any,
    ) -> tuple[Any, Any]:
        points, kinds = _checked(params, geometry)
        _check_given(inputs, targets)
        straight, turning, rate = _boundary_scores(
            predict, points, kinds, _rates(rates, points), inputs, targets, relax, leak
        )
        plus, minus = (
            jax.tree.map(lambda b, r, way=way: b + way * amount * r, straight, turning)
            for way in (1.0, -1.0)
        )
        pace = None if state.pace is None else jnp.maximum(state.pace, rate)
        bound = 1.0 if pace is None else pace
        step = jnp.minimum(
            *(_admitted(size, kinds, points, scores, bound) for scores in (plus, minus))
        )
        sense = _sense(fixed if turn is None else turn, state.made)
        scores = jax.tree.map(lambda up, down: jnp.where(sense > 0, up, down), plus, minus)
        return _difference(kinds, points, scores, step), TurningState(state.made + 1, pace)

    return optax.GradientTransformationExtraArgs(init, update)


def _boundary_scores(
    predict: Predict,
    params: Parameters,
    kinds: Kinds,
    rates: Parameters,
    inputs: Any,
    targets: Any,
    alpha: Array,
    mu: Array,
) -> tuple[Parameters, Parameters, Array]:
    """The reciprocal and the unit rotational score, by one linearisation of `predict` and a solve
    over the outputs, and how fast the first moves the outputs, relative to their residual.
    """
    outputs, push = jax.linearize(lambda at: predict(at, inputs), params)
    error = _residual(outputs, targets)
    pull = jax.linear_transpose(push, params)

    def scores(potential: Float[Array, "n"]) -> Parameters:
        return _each(kinds, _score, params, rates, pull(potential.reshape(outputs.shape))[0])

    def respond(potential: Float[Array, "n"]) -> Float[Array, "n"]:
        moved = _each(
            kinds, lambda kind, point, score: kind.velocity(point, score), params, scores(potential)
        )
        return push(moved).ravel()

    identity = jnp.eye(error.size, dtype=error.dtype)
    # One column after the other: all at once would hold the Jacobian.
    damped = jax.lax.map(respond, identity) + mu * identity
    skew = jnp.asarray(quarter_turn(error.shape[-1]), dtype=error.dtype)
    sides = jnp.stack([(alpha * error).ravel(), (error @ skew.T).ravel()], axis=1)
    # K is symmetric and the leak makes it positive, whatever `predict` is.
    potentials = jax.scipy.linalg.solve((damped + damped.T) / 2, sides, assume_a="pos")
    size = jnp.max(jnp.abs(error))
    moved = jnp.max(jnp.abs(respond(potentials[:, 0])))
    rate = jnp.where(size > 0, moved / jnp.where(size > 0, size, 1.0), 0.0)
    return scores(potentials[:, 0]), scores(potentials[:, 1]), rate


def _residual(outputs: Array, targets: Any) -> Float[Array, "samples out"]:
    aims = _check.array("targets", targets, _check.axes("targets", targets), outputs.dtype)
    if outputs.ndim not in (1, 2) or outputs.shape[-1] < 3:
        raise ValueError(
            "predict must return (out,) or (samples, out) with at least 3 outputs, but its shape "
            f"is {outputs.shape}"
        )
    if aims.shape != outputs.shape:
        raise ValueError(
            f"targets must have the shape {outputs.shape} of the predictions, but their shape is "
            f"{aims.shape}"
        )
    return (aims - outputs).reshape(-1, outputs.shape[-1])


def _score(kind: Geometry, point: Array, rate: Array, slope: Array) -> Array:
    return kind.score(point, rate * slope)


def _difference(kinds: Kinds, params: Parameters, scores: Parameters, size: Array) -> Parameters:
    def moved(kind: Geometry, point: Array, score: Array) -> Array:
        return kind.step(point, score, size.astype(point.dtype)) - point

    return _each(kinds, moved, params, scores)


def _sense(turn: ArrayLike | None, made: Array) -> Array:
    """The sense of an update: as given, or alternating from +1."""
    _check_turn(turn)
    return 1 - 2 * (made % 2) if turn is None else jnp.asarray(turn)


def _check_turn(turn: ArrayLike | None) -> None:
    if turn is not None and _check.known(turn) and (np.ndim(turn) or turn not in (1, -1)):
        raise ValueError(
            f"turn must be +1 or -1, or left out to alternate, but it is {_check.shown(turn)}"
        )


def _check_given(inputs: Any, targets: Any) -> None:
    if inputs is None or targets is None:
        raise ValueError(
            f"{'inputs' if inputs is None else 'targets'} must be given to update, but there are "
            "none"
        )


def _rates(rates: Any, columns: Parameters) -> Parameters:
    """One rate per column, with an axis in front that meets every entry of the column."""
    wanted = jax.tree.structure(columns)
    # One number alone is for all arrays; a list of numbers is a tree.
    given = (
        jax.tree.map(lambda _: rates, columns)
        if jax.tree_util.all_leaves([rates]) and np.ndim(rates) == 0
        else rates
    )
    if jax.tree.structure(given) != wanted:
        raise ValueError(
            f"rates must be one number or a tree like the parameters, {wanted}, but they are "
            f"{jax.tree.structure(given)}"
        )
    return jax.tree_util.tree_map_with_path(_rate, columns, given)


def _rate(path: tuple, column: Array, rate: Any) -> Array:
    name = f"rates of params{jax.tree_util.keystr(path)}"
    values = _check.array(name, rate, _check.axes(name, rate), column.dtype)
    if values.shape not in ((), column.shape[1:]):
        raise ValueError(
            f"{name} must be one number or one per column, {column.shape[1:]}, but the shape is "
            f"{values.shape}"
        )
    if _check.known(values) and (np.asarray(values) <= 0).any():
        raise ValueError(
            f"{name} must be positive, but the smallest is {np.asarray(values).min():g}"
        )
    return jnp.broadcast_to(values, column.shape[1:])[None]


def _checked(params: Any, geometry: Any) -> tuple[Parameters, Kinds]:
    """Parameters as arrays inside their geometries, and one geometry for each."""
    if params is None:
        raise ValueError(
            "params must be given to update, because a step depends on its start, but it is None"
        )
    points = jax.tree_util.tree_map_with_path(_checked_array, params)
    kinds = {str(point.dtype) for point in jax.tree.leaves(points)}
    if len(kinds) != 1:
        raise ValueError(
            "params must hold arrays of one floating type, but the types are "
            f"{', '.join(sorted(kinds)) or 'none'}"
        )
    geometries = (
        jax.tree.map(lambda _: geometry, points) if isinstance(geometry, Geometry) else geometry
    )
    wanted, given = jax.tree.structure(points), jax.tree.structure(geometries, is_leaf=_is_geometry)
    if given != wanted:
        raise ValueError(
            f"geometry must be one geometry or a tree like the parameters, {wanted}, but it is "
            f"{given}"
        )
    jax.tree_util.tree_map_with_path(
        lambda path, kind, point: kind.check(_name(path), point),
        geometries,
        points,
        is_leaf=_is_geometry,
    )
    return points, geometries


def _is_geometry(value: Any) -> bool:
    return isinstance(value, Geometry)


def _name(path: tuple) -> str:
    return f"params{jax.tree_util.keystr(path)}"


def _checked_array(path: tuple, value: Any) -> Array:
    return _check.array(_name(path), value, max(_check.axes(_name(path), value), 1))


def _each(geometries: Kinds, act: Callable[..., Any], *trees: Any) -> Any:
    return jax.tree.map(act, geometries, *trees, is_leaf=_is_geometry)


def _admitted(
    scale: Array, geometries: Kinds, points: Parameters, scores: Parameters, pace: ArrayLike = 1.0
) -> Array:
    """The step that the envelope admits for these scores."""
    return admitted(scale, _spread(geometries, points, scores), pace)


def _spread(geometries: Kinds, points: Parameters, scores: Parameters) -> Array:
    spreads = _each(
        geometries, lambda kind, point, score: kind.spread(point, score), points, scores
    )
    return jnp.max(jnp.stack(jax.tree.leaves(spreads)))


def _unitless(geometries: Kinds) -> bool:
    kinds = jax.tree.leaves(geometries, is_leaf=_is_geometry)
    return all(kind.unitless for kind in kinds)


def _none(points: Parameters) -> Array:
    return jnp.zeros((), dtype=jax.tree.leaves(points)[0].dtype)
