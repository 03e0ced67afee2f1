r"""The response that a recorded state should have, if the way back matches the way forward (Eq.
13).

$K = \sum_\ell R^{(\ell)} \bigl(\sum_i x_i^{(\ell)2} Q(p_i^{(\ell)})\bigr) R^{(\ell)\mathsf{T}}$,
with $R^{(\ell)}$ the map from layer $\ell$'s outputs to the network's. A mismatched adjoint
replaces the last factor of every term but the top one, whose signal comes straight from the
boundary.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from whorl import simplex

Matrix = Float[np.ndarray, "n n"]
COLUMN = re.compile(r"column_(\d+)_(\d+)_(\d+)")


@dataclass(frozen=True)
class Matched:
    """The matched response of a recorded state in zero-sum coordinates, and what of it passes
    through a way back.
    """

    response: Matrix
    top: Matrix  # the last layer's share
    ways: tuple[
        Float[np.ndarray, "n h"], ...
    ]  # for every other layer, the factor that does not depend on the way back


def matched(state: Mapping[str, float], outputs: int) -> Matched | None:
    """The matched response of one sample's state.

    None where inputs or columns were not recorded.
    """
    inputs = _inputs(state)
    layers = _layers(state)
    if inputs is None or not layers:
        return None
    widths = [len(inputs), *(layer.shape[0] for layer in layers)]
    shapes = [layer.shape for layer in layers]
    if shapes != list(zip(widths[1:], widths[:-1], strict=True)) or widths[-1] != outputs:
        raise ValueError(
            f"the recorded columns must lead from {len(inputs)} inputs to {outputs} outputs, but "
            f"the layers are {shapes}"
        )
    basis = simplex.tangent_basis(outputs)
    flow, terms, ways = inputs, [], []
    for number, layer in enumerate(layers):
        spread = np.diag(layer @ flow**2) - (layer * flow**2) @ layer.T
        onward = np.linalg.multi_dot([np.eye(outputs), *layers[:number:-1], np.eye(layer.shape[0])])
        ways.append(basis.T @ onward @ spread)
        terms.append(ways[-1] @ onward.T @ basis)
        flow = layer @ flow
    return Matched(np.sum(terms, axis=0), terms[-1], tuple(ways[:-1]))


def _inputs(state: Mapping[str, float]) -> np.ndarray | None:
    values = [
        state[f"input_{number}"]
        for number in range(1, len(state) + 1)
        if f"input_{number}" in state
    ]
    return np.array(values) if values else None


def _layers(state: Mapping[str, float]) -> list[np.ndarray]:
    places = {
        tuple(int(part) for part in match.groups()): value
        for name, value in state.items()
        if (match := COLUMN.fullmatch(name))
    }
    layers = []
    for number in sorted({layer for layer, _, _ in places}):
        own = {
            (column, entry): value
            for (layer, column, entry), value in places.items()
            if layer == number
        }
        width, height = (max(place[axis] for place in own) for axis in (0, 1))
        if len(own) < width * height:
            raise ValueError(
                f"layer {number} must be recorded whole, {width} columns of {height}, but "
                f"{width * height - len(own)} are missing"
            )
        layers.append(
            np.array(
                [
                    [own[column, entry] for column in range(1, width + 1)]
                    for entry in range(1, height + 1)
                ]
            )
        )
    return layers
