"""The tables of the structural study: ranks, residuals and errors from what was computed."""

from collections.abc import Callable
from typing import Any

import numpy as np

from whorl.study import frames
from whorl.study.frames import Parts, Table, Tables
from whorl.study.kind import Depth
from whorl.study.kinds.structural.compute import EXAMPLES, EXPLICIT
from whorl.study.kinds.structural.parameters import Structural


def tables(p: Structural, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    deep = {depth: parts[Depth(depth)] for depth in p.depths}
    first = deep[p.depths[0]]
    keys = frames.product(family=range(p.families), sample=range(6))
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
    return built | _explicit_tables(p, parts[EXPLICIT])


def _by_depth(deep: dict[int, Any], build: Callable[[Any, int], Table], keys: int) -> Table:
    """One table from all depths.

    Families first, then depths, then the rest as each depth has it.
    """
    table = frames.joined(build(arrays, depth) for depth, arrays in deep.items())
    return frames.ordered(table, *list(table)[:keys])


def _network_rows(p: Structural, depth: int, **more: Any) -> Table:
    return frames.product(
        family=range(p.families),
        depth=[depth],
        **more,
        layer=range(depth),
        row=range(3),
        column=range(3),
    )


def _response_rows(p: Structural, depth: int, d: Any) -> Table:
    keys = frames.product(family=range(p.families), depth=[depth], row=range(18), column=range(18))
    return keys | {name: d[name].ravel() for name in ("layer_sum", "gram")}


def _operators(p: Structural, depth: int, d: Any) -> Table:
    def norm(matrices: np.ndarray) -> np.ndarray:
        return np.sqrt(np.sum(matrices**2, axis=(1, 2)))

    layer_sum, gram = d["layer_sum"], d["gram"]
    rank, condition = frames.modes(d["factor"], p.rank_tol)
    selected_rank, selected_condition = frames.modes(d["selected_factor"], p.rank_tol)
    return frames.product(family=range(p.families), depth=[depth]) | {
        "selected": d["selected"],
        "rank": rank,
        "condition": condition,
        "selected_rank": selected_rank,
        "selected_condition": selected_condition,
        "factorisation": norm(layer_sum - gram) / norm(gram),
        "symmetry": norm(layer_sum - layer_sum.transpose(0, 2, 1)) / norm(layer_sum),
    }


def _modes(p: Structural, depth: int, d: Any) -> Table:
    keys = frames.product(
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


def _states(p: Structural, depth: int, d: Any) -> Table:
    keys = _network_rows(p, depth, update=range(p.updates + 1))
    return keys | {"layer_sum": d["by_sum"].ravel(), "gauss_newton": d["by_newton"].ravel()}


def _trajectories(p: Structural, depth: int, d: Any) -> Table:
    def of_states(values: np.ndarray, reduce: Callable[..., np.ndarray]) -> np.ndarray:
        return reduce(values.reshape(p.families * (p.updates + 1), -1), axis=1)

    return frames.product(family=range(p.families), depth=[depth], update=range(p.updates + 1)) | {
        "loss": d["loss"].ravel(),
        "discrepancy": of_states(np.abs(d["by_sum"] - d["by_newton"]), np.max),
        "column_residual": frames.column_residual(d["by_sum"]).ravel(),
        "smallest": of_states(d["by_sum"], np.min),
    }


def _explicit_tables(p: Structural, d: Any) -> Tables:
    places = {"row": range(3), "column": range(3)}
    weights = [
        frames.product(depth=[n], layer=range(n), **places)
        | {"weight": np.asarray(d[f"weights{n}"]).ravel()}
        for n in p.depths
    ]
    answers = [
        frames.product(depth=[n], **places) | {"response": np.asarray(d[f"response{n}"]).ravel()}
        for n in p.depths
    ]
    ranks = [frames.modes(d[f"factor{n}"][None], p.rank_tol)[0] for n in p.depths]
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
        "control_weights": frames.joined(weights),
        "control_responses": frames.joined(answers),
        "controls": controls,
        "curvature": frames.joined(curves),
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
