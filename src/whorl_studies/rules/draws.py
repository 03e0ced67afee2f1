"""The random numbers of the study of rules."""

import numpy as np

from whorl.study.draws import softmax_layers, stream, task

CIRCUIT, WAY = 9, 10  # what a stream is for, after those of the other studies


def circuit(seed: int, number: int, nodes: int, spread: float) -> dict[str, np.ndarray]:
    """Edges, conductances, those of the way back, and targets of one circuit.

    A ring through all nodes in random order, so that current reaches every one of them; then edges
    between different nodes until there are twice as many as nodes, and one more.
    """
    draw = stream(seed, number, CIRCUIT, nodes)
    ring = draw.permutation(nodes).tolist()
    edges = list(zip(ring, [*ring[1:], ring[0]], strict=True))
    while len(edges) < 2 * nodes + 1:
        one, other = draw.integers(0, nodes, 2).tolist()
        if one != other:
            edges.append((one, other))
    conductances, way = np.exp(spread * draw.standard_normal((2, len(edges))))
    return {
        "edges": np.array(edges),
        "conductances": conductances,
        "way": way,
        "targets": draw.uniform(0, 1, 3),
    }


def network(seed: int, family: int, depth: int, beta: float, floor: float) -> dict[str, np.ndarray]:
    """Layers, those of the way back, and the input of one network."""
    other = stream(seed, family, WAY).integers(0, 2**63)
    return {
        "layers": softmax_layers(seed, family, depth, beta, floor),
        "way": softmax_layers(int(other), family, depth, beta, floor),
        "inputs": task(seed, family, 1.0)[0][3],
    }
