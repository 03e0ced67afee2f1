"""The structural study.

Response identities, ranks, rotational modes, reciprocal trajectories, and the two exact examples.

One stage a depth, and one for what has no families: the disconnected controls and the curvature
examples.
"""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from whorl.baseline import gauss_newton
from whorl.curvature import curvature, turn_scores
from whorl.feedback import leaky, rotational
from whorl.response import Response, response
from whorl.study import _frames, draws
from whorl.study._frames import Parts, Table, Tables
from whorl.system import loss, total_loss
from whorl.systems.layered import Network
from whorl.turn import quarter_turn

FULL = 6  # directions of a connected network with three sources and three outputs
EXAMPLES = ("negative", "positive")
PORTION = 100  # families in one call of an update


def stages(p: SimpleNamespace) -> list[str]:
    """Units of work that are kept when a run is interrupted."""
    return [*(f"depth{depth}" for depth in p.depths), "explicit"]


def compute(p: SimpleNamespace, stage: str) -> dict[str, np.ndarray]:
    """The physics of one stage, as arrays."""
    return _explicit(p) if stage == "explicit" else _depth(p, int(stage.removeprefix("depth")))


def _depth(p: SimpleNamespace, depth: int) -> dict[str, np.ndarray]:
    tasks = [draws.task(p.seed, family, p.concentration) for family in range(p.families)]
    x, y = (np.stack(part) for part in zip(*tasks, strict=True))
    layers = np.stack(
        [
            draws.dirichlet_layers(p.seed, f, depth, p.column_concentration, p.floor)
            for f in range(p.families)
        ]
    )
    selected = draws.largest_residual(layers, x, y)
    rows = np.arange(p.families)
    seen = _measured(depth)(
        layers,
        x,
        x[rows, selected][:, None],
        y[rows, selected][:, None],
        float(p.alpha),
        jnp.asarray(p.omegas),
    )
    states = [(layers, layers)]
    for _ in range(p.updates):
        states.append(_moved(p, depth, states[-1], x, y))
    by_sum, by_newton = (
        np.stack([np.asarray(pair[route]) for pair in states], axis=1) for route in (0, 1)
    )
    losses = np.asarray(_losses(depth)(by_sum, x, y))
    names = (
        "layer_sum",
        "gram",
        "factor",
        "selected_factor",
        "loops",
        "velocity",
        "commanded",
        "loss_rate",
        "predicted_rate",
    )
    found = dict(zip(names, map(np.asarray, seen), strict=True))
    return found | {
        "x": x,
        "y": y,
        "layers": layers,
        "selected": selected,
        "by_sum": by_sum,
        "by_newton": by_newton,
        "loss": losses,
    }


@cache
def _measured(depth: int) -> Callable[..., Any]:
    like, turn = _frames.network(np.full((depth, 3, 3), 1 / 3)), np.asarray(quarter_turn(3))

    def one(layers: Any, x: Any, x_star: Any, y_star: Any, alpha: Any, omegas: Any) -> Any:
        net = like.with_blocks(list(layers))
        joint, driven = response(net, x), response(net, x_star)
        error = y_star - driven.predictions

        def mode(omega: Any) -> Any:
            law = rotational(alpha, omega)
            velocity = driven @ law(driven, error)
            commanded = alpha * error + omega * (error @ turn.T)
            loop = driven.reduced() @ law.matrix(driven)
            return (
                loop,
                velocity[0],
                commanded[0],
                -jnp.sum(error * velocity),
                -alpha * jnp.sum(error**2),
            )

        return joint.dense(), joint.gram(), joint.factor(), driven.factor(), *jax.vmap(mode)(omegas)

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, 0, None, None)))


def _moved(p: SimpleNamespace, depth: int, state: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """One update of all families, some at a time.

    The two routes call LAPACK, and above some hundred of them wait for each other.
    """
    update = _updated(depth)
    if p.families <= PORTION:
        return update(state, x, y, float(p.leak), float(p.step))
    parts = []
    for first in range(0, p.families, PORTION):
        here = slice(first, first + PORTION)
        parts.append(
            jax.block_until_ready(
                update(
                    tuple(one[here] for one in state),
                    x[here],
                    y[here],
                    float(p.leak),
                    float(p.step),
                )
            )
        )
    return tuple(np.concatenate(sides) for sides in zip(*parts, strict=True))


@cache
def _updated(depth: int) -> Callable[..., Any]:
    """One reciprocal update by both routes: solved among the outputs, and among the parameters."""
    like = _frames.network(np.full((depth, 3, 3), 1 / 3))

    def one(state: Any, x: Any, y: Any, leak: Any, step: Any) -> Any:
        first, second = (like.with_blocks(list(layers)) for layers in state)
        joint = response(first, x)
        by_sum = first.stepped(joint.scores(leaky(leak)(joint, y - joint.predictions)), step)
        by_newton = second.stepped(
            gauss_newton(leak).scores(second, x, y - second.outputs(x)), step
        )
        return jnp.stack(by_sum.layers), jnp.stack(by_newton.layers)

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, None, None)))


@cache
def _losses(depth: int) -> Callable[..., Any]:
    like = _frames.network(np.full((depth, 3, 3), 1 / 3))

    def one(layers: Any, x: Any, y: Any) -> Any:
        return total_loss(like.with_blocks(list(layers)), x, y)

    return jax.jit(jax.vmap(jax.vmap(one, in_axes=(0, None, None))))


def _explicit(p: SimpleNamespace) -> dict[str, np.ndarray]:
    found = {}
    even = np.full((1, 3), 1 / 3)
    for depth in p.depths:
        layers = draws.control_layers(p.seed, depth, p.column_concentration, p.floor)
        driven = response(Network(list(layers), support=list(layers > 0)), even)
        matrix, factor = _matrix_and_factor(driven)
        found |= {
            f"weights{depth}": layers,
            f"response{depth}": np.asarray(matrix),
            f"factor{depth}": np.asarray(factor),
        }
    for name in EXAMPLES:
        start, target = getattr(p, f"{name}_start"), getattr(p, f"{name}_target")
        found[f"coefficient_{name}"], found[f"losses_{name}"] = map(
            np.asarray, _example(start, target, jnp.asarray(p.steps))
        )
    return found


@jax.jit
def _matrix_and_factor(driven: Response) -> Any:
    return driven.dense(), driven.factor()


@jax.jit
def _example(start: Any, target: Any, steps: Any) -> Any:
    """The coefficient of a one-layer network, and its losses after a turn, the opposite turn and no
    turn.
    """
    net = Network([jnp.asarray(start)[:, None]])
    x, y = jnp.ones((1, 1)), jnp.asarray(target)[None]
    straight, turning = turn_scores(net, x, y, selected=0)

    def after(step: Any, amount: Any) -> Any:
        return loss(
            net.stepped([b + amount * r for b, r in zip(straight, turning, strict=True)], step),
            x,
            y,
        )

    losses = jax.vmap(
        lambda step: jnp.stack([after(step, 1.0), after(step, -1.0), after(step, 0.0)])
    )(steps)
    return curvature(net, x, y, selected=0).coefficient, losses


def tables(p: SimpleNamespace, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    deep = {depth: parts[f"depth{depth}"] for depth in p.depths}
    first = deep[p.depths[0]]
    keys = _frames.product(family=range(p.families), sample=range(6))
    tasks = keys | {f"{side}_{i}": first[side][:, :, i].ravel() for side in "xy" for i in range(3)}
    built = {
        "tasks": tasks,
        "weights": _by_depth(
            deep, lambda d, depth: _network_rows(p, depth) | {"weight": d["layers"].ravel()}, 5
        ),
        "responses": _by_depth(deep, lambda d, depth: _response_rows(p, depth, d), 4),
        "operators": _by_depth(deep, lambda d, depth: _operators(p, depth, d), 2),
        "modes": _by_depth(deep, lambda d, depth: _modes(p, depth, d), 3),
        "trajectory_weights": _by_depth(deep, lambda d, depth: _states(p, depth, d), 6),
        "trajectories": _by_depth(deep, lambda d, depth: _trajectories(p, depth, d), 3),
    }
    return built | _explicit_tables(p, parts["explicit"])


def _by_depth(deep: dict[int, Any], build: Callable[[Any, int], Table], keys: int) -> Table:
    """One table from all depths.

    Families first, then depths, then the rest as each depth has it.
    """
    table = _frames.joined(build(arrays, depth) for depth, arrays in deep.items())
    return _frames.ordered(table, *list(table)[:keys])


def _network_rows(p: SimpleNamespace, depth: int, **more: Any) -> Table:
    return _frames.product(
        family=range(p.families),
        depth=[depth],
        **more,
        layer=range(depth),
        row=range(3),
        column=range(3),
    )


def _response_rows(p: SimpleNamespace, depth: int, d: Any) -> Table:
    keys = _frames.product(family=range(p.families), depth=[depth], row=range(18), column=range(18))
    return keys | {name: d[name].ravel() for name in ("layer_sum", "gram")}


def _operators(p: SimpleNamespace, depth: int, d: Any) -> Table:
    def norm(matrices: np.ndarray) -> np.ndarray:
        return np.sqrt(np.sum(matrices**2, axis=(1, 2)))

    layer_sum, gram = d["layer_sum"], d["gram"]
    rank, condition = _frames.modes(d["factor"], p.rank_tol)
    selected_rank, selected_condition = _frames.modes(d["selected_factor"], p.rank_tol)
    return _frames.product(family=range(p.families), depth=[depth]) | {
        "selected": d["selected"],
        "rank": rank,
        "condition": condition,
        "selected_rank": selected_rank,
        "selected_condition": selected_condition,
        "factorisation": norm(layer_sum - gram) / norm(gram),
        "symmetry": norm(layer_sum - layer_sum.transpose(0, 2, 1)) / norm(layer_sum),
    }


def _modes(p: SimpleNamespace, depth: int, d: Any) -> Table:
    keys = _frames.product(
        family=range(p.families), depth=[depth], omega=np.asarray(p.omegas, dtype=float)
    )
    values = np.linalg.eigvals(-d["loops"]).reshape(-1, 2)
    pair = np.take_along_axis(values, np.argmax(np.imag(values), axis=1)[:, None], axis=1)[:, 0]
    real, imag = np.real(pair), np.imag(pair)
    velocity, commanded = (d[name].reshape(-1, 3) for name in ("velocity", "commanded"))
    rate, predicted = d["loss_rate"].ravel(), d["predicted_rate"].ravel()
    apart = np.abs(velocity - commanded)
    sides = {
        f"{name}_{i}": side[:, i]
        for name, side in (("velocity", velocity), ("commanded", commanded))
        for i in range(3)
    }
    residuals = {
        "pair_residual": np.abs(real + p.alpha) + np.abs(imag - keys["omega"]),
        "score_residual": (apart[:, 0] + apart[:, 1]) + apart[:, 2],
        "dissipation_residual": np.abs(rate - predicted),
    }
    return (
        keys
        | {"real": real, "imag": imag}
        | sides
        | {"loss_rate": rate, "predicted_rate": predicted}
        | residuals
    )


def _states(p: SimpleNamespace, depth: int, d: Any) -> Table:
    keys = _network_rows(p, depth, update=range(p.updates + 1))
    return keys | {"layer_sum": d["by_sum"].ravel(), "gauss_newton": d["by_newton"].ravel()}


def _trajectories(p: SimpleNamespace, depth: int, d: Any) -> Table:
    def of_states(values: np.ndarray, reduce: Callable[..., np.ndarray]) -> np.ndarray:
        return reduce(values.reshape(p.families * (p.updates + 1), -1), axis=1)

    return _frames.product(family=range(p.families), depth=[depth], update=range(p.updates + 1)) | {
        "loss": d["loss"].ravel(),
        "discrepancy": of_states(np.abs(d["by_sum"] - d["by_newton"]), np.max),
        "column_residual": _frames.column_residual(d["by_sum"]).ravel(),
        "smallest": of_states(d["by_sum"], np.min),
    }


def _explicit_tables(p: SimpleNamespace, d: Any) -> Tables:
    places = {"row": range(3), "column": range(3)}
    weights = [
        _frames.product(depth=[n], layer=range(n), **places)
        | {"weight": np.asarray(d[f"weights{n}"]).ravel()}
        for n in p.depths
    ]
    answers = [
        _frames.product(depth=[n], **places) | {"response": np.asarray(d[f"response{n}"]).ravel()}
        for n in p.depths
    ]
    ranks = [_frames.modes(d[f"factor{n}"][None], p.rank_tol)[0] for n in p.depths]
    controls = {"depth": np.asarray(p.depths), "rank": np.concatenate(ranks)}
    null = [
        np.abs((k[:, 0] + k[:, 1]) - 2 * k[:, 2]) for k in (d[f"response{n}"] for n in p.depths)
    ]
    controls["null_response"] = np.array([((n[0] + n[1]) + n[2]) / np.sqrt(6.0) for n in null])
    steps = np.asarray(p.steps, dtype=float)
    curves = [
        _curve(name, steps, float(d[f"coefficient_{name}"]), np.asarray(d[f"losses_{name}"]))
        for name in EXAMPLES
    ]
    return {
        "control_weights": _frames.joined(weights),
        "control_responses": _frames.joined(answers),
        "controls": controls,
        "curvature": _frames.joined(curves),
    }


def _curve(name: str, steps: np.ndarray, coefficient: float, losses: np.ndarray) -> Table:
    plus, minus, still = losses.T
    even = (plus + minus) / 2 - still
    estimate = even / steps**2
    sides = {
        "coefficient": np.full(steps.size, coefficient),
        "loss_plus": plus,
        "loss_minus": minus,
        "loss_still": still,
    }
    derived = {
        "even_difference": even,
        "estimate": estimate,
        "relative_error": np.abs(estimate / coefficient - 1),
    }
    return {"example": np.full(steps.size, name), "step": steps} | sides | derived


def statistics(p: SimpleNamespace, t: Tables) -> dict[str, Any]:
    """Every number that a gate, the comparison or the report speaks of."""
    operators, states = t["operators"], t["trajectory_weights"]
    found: dict[str, Any] = {
        f"rows.{name}": len(next(iter(t[name].values())))
        for name in ("operators", "modes", "trajectories", "controls", "curvature")
    }
    for table, names in {
        "operators": ("factorisation", "symmetry"),
        "modes": ("score_residual", "pair_residual", "dissipation_residual"),
        "trajectories": ("discrepancy", "column_residual"),
    }.items():
        found |= {f"{name}.max": t[table][name].max() for name in names}
    found["weight.min"] = min(states["layer_sum"].min(), states["gauss_newton"].min())
    for depth in p.depths:
        here = operators["depth"] == depth
        found |= {
            f"rank.{word}.depth{depth}": np.sum(operators["rank"][here] == rank)
            for word, rank in (("full", FULL), ("five", 5))
        }
        found[f"condition.median.depth{depth}"] = np.median(operators["condition"][here])
    found |= {
        "rank.min": operators["rank"].min(),
        "selected_rank.min": operators["selected_rank"].min(),
    }
    deficient = operators["condition"][operators["rank"] < FULL]
    if deficient.size:
        found |= {
            "condition.deficient.min": deficient.min(),
            "condition.deficient.max": deficient.max(),
        }
    found |= {
        "control.rank.min": t["controls"]["rank"].min(),
        "control.rank.max": t["controls"]["rank"].max(),
    }
    found["control.null.max"] = t["controls"]["null_response"].max()
    return found | {
        name: value for example in EXAMPLES for name, value in _fit(t["curvature"], example).items()
    }


def _fit(t: Table, example: str) -> dict[str, float]:
    rows = t["example"] == example
    steps = t["step"][rows]
    slope = np.polyfit(np.log(steps), np.log(np.abs(t["even_difference"][rows])), 1)[0]
    error = t["relative_error"][rows][np.argmin(steps)]
    return {
        f"coefficient.{example}": t["coefficient"][rows][0],
        f"slope.{example}": slope,
        f"relative_error.{example}": error,
    }
