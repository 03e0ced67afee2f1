"""Derived columns of the structural kind."""

import numpy as np

from whorl_audit.derived.common import by_network, column_residual, same, score_residual, summed
from whorl_audit.keys import RESPONSE
from whorl_audit.types import Array, Columns, Formulas, Parameters, Tables


def _norm(matrices: Array) -> Array:
    return np.sqrt(np.square(matrices).sum(axis=(1, 2)))


def _operators(tables: Tables, _: Parameters) -> Columns:
    table = tables["responses"]
    by_layer, gram = (table[name].reshape(-1, RESPONSE, RESPONSE) for name in ("layer_sum", "gram"))
    return {
        "factorisation": summed(_norm(by_layer - gram) / _norm(gram)),
        "symmetry": summed(_norm(by_layer - np.swapaxes(by_layer, 1, 2)) / _norm(by_layer)),
    }


def _modes(tables: Tables, p: Parameters) -> Columns:
    table = tables["modes"]
    return {
        "pair_residual": same(
            np.abs(table["real"] + p["alpha"]) + np.abs(table["imag"] - table["omega"])
        ),
        "score_residual": same(score_residual(table)),
        "dissipation_residual": same(np.abs(table["loss_rate"] - table["predicted_rate"])),
    }


def _trajectories(tables: Tables, _: Parameters) -> Columns:
    depths = tables["trajectories"]["depth"]
    by_layer, newton = (
        tables["trajectory_weights"][name] for name in ("layer_sum", "gauss_newton")
    )
    return {
        "discrepancy": same(
            by_network(np.abs(by_layer - newton).reshape(-1, 9), depths, np.maximum)
        ),
        "column_residual": same(column_residual(by_layer, depths)),
        "smallest": same(by_network(by_layer.reshape(-1, 9), depths, np.minimum)),
    }


def _controls(tables: Tables, _: Parameters) -> Columns:
    response = tables["control_responses"]["response"].reshape(-1, 3, 3)
    null = np.abs((response[:, :, 0] + response[:, :, 1]) - 2 * response[:, :, 2])
    return {"null_response": same(((null[:, 0] + null[:, 1]) + null[:, 2]) / np.sqrt(6.0))}


def _curvature(tables: Tables, _: Parameters) -> Columns:
    table = tables["curvature"]
    even = (table["loss_plus"] + table["loss_minus"]) / 2 - table["loss_still"]
    estimate = even / (table["step"] * table["step"])
    return {
        "even_difference": same(even),
        "estimate": same(estimate),
        "relative_error": same(np.abs(estimate / table["coefficient"] - 1)),
    }


DERIVED: Formulas = {
    "operators": _operators,
    "modes": _modes,
    "trajectories": _trajectories,
    "controls": _controls,
    "curvature": _curvature,
}
