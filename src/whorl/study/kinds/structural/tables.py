"""The tables and statistics of the structural study."""

from collections.abc import Callable
from typing import Any

import numpy as np

from whorl.study import frames
from whorl.study.frames import Parts, Table, Tables
from whorl.study.kind import Depth
from whorl.study.kinds.structural.compute import EXAMPLES, EXPLICIT
from whorl.study.kinds.structural.parameters import Structural

FULL = 6  # directions of a connected network with three sources and three outputs


def tables(p: Structural, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    deep = {depth: parts[Depth(depth)] for depth in p.depths}
    first, families = deep[p.depths[0]], range(p.families)
    built = {
        "tasks": frames.tasks(first["x"], first["y"], family=families),
        "weights": frames.weights({n: d["layers"] for n, d in deep.items()}, family=families),
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
    omegas = frames.floats(p.omegas)
    keys = frames.product(family=range(p.families), depth=[depth], omega=omegas)
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
    rates = {
        "loss_rate": rate,
        "predicted_rate": predicted,
        "pair_residual": np.abs(real + p.alpha) + np.abs(imag - keys["omega"]),
        "score_residual": (apart[:, 0] + apart[:, 1]) + apart[:, 2],
        "dissipation_residual": np.abs(rate - predicted),
    }
    return keys | {"real": real, "imag": imag} | sides | rates


def _states(p: Structural, depth: int, d: Any) -> Table:
    updates = range(p.updates + 1)
    keys = frames.product(
        family=range(p.families), depth=[depth], update=updates, **frames.places(depth)
    )
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
    weights = [
        frames.product(depth=[n], **frames.places(n)) | {"weight": d[f"weights{n}"].ravel()}
        for n in p.depths
    ]
    answers = [
        frames.product(depth=[n], row=range(3), column=range(3))
        | {"response": d[f"response{n}"].ravel()}
        for n in p.depths
    ]
    ranks = [frames.modes(d[f"factor{n}"][None], p.rank_tol)[0] for n in p.depths]
    controls = {"depth": np.asarray(p.depths), "rank": np.concatenate(ranks)}
    each = [d[f"response{n}"] for n in p.depths]
    null = [np.abs((k[:, 0] + k[:, 1]) - 2 * k[:, 2]) for k in each]
    controls["null_response"] = np.array([((n[0] + n[1]) + n[2]) / np.sqrt(6.0) for n in null])
    steps = frames.floats(p.steps)
    curves = [
        _curve(name, steps, float(d[f"coefficient_{name}"]), d[f"losses_{name}"])
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
    return {
        "example": np.full(steps.size, name),
        "step": steps,
        "coefficient": np.full(steps.size, coefficient),
        "loss_plus": plus,
        "loss_minus": minus,
        "loss_still": still,
        "even_difference": even,
        "estimate": estimate,
        "relative_error": np.abs(estimate / coefficient - 1),
    }


def statistics(p: Structural, t: Tables) -> dict[str, Any]:
    """Every number that a gate, the comparison or the report speaks of."""
    operators, states = t["operators"], t["trajectory_weights"]
    found = frames.counts(t, "operators", "modes", "trajectories", "controls", "curvature")
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
        ends = {"min": deficient.min(), "max": deficient.max()}
        found |= {f"condition.deficient.{end}": value for end, value in ends.items()}
    found |= {
        "control.rank.min": t["controls"]["rank"].min(),
        "control.rank.max": t["controls"]["rank"].max(),
        "control.null.max": t["controls"]["null_response"].max(),
    }
    for example in EXAMPLES:
        found |= _fit(t["curvature"], example)
    return found


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
