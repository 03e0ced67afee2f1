"""A circuit under a rule: its currents, and how every small residual moves.

A current of one ampere is fed into node 0 and leaves at three grounded nodes, so that residuals
lie in the zero-sum plane. Near its target the residual follows the loop of the rule at the drawn
conductances.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy.linalg

from whorl.explorer.cache import kept
from whorl.explorer.state import State
from whorl.explorer.subject import Subject
from whorl.explorer.system import UPDATES
from whorl.reciprocity import certify, closed_loop
from whorl.registry import rules
from whorl.systems.circuit import Circuit

NODES, EDGES, RAYS = 8, 13, 12
INPUTS = np.ones((1, 1))
PACE = 0.01  # of a frame, in units of the time in which the slowest residual falls to 1/e


@dataclass(frozen=True, eq=False)
class Wires(Subject):
    """A circuit, its currents, and the paths of small residuals from a ring around none."""

    state: State
    circuit: Circuit
    currents: np.ndarray  # of every edge, from its first node to its second
    places: np.ndarray  # (nodes, 2), on the page
    loop: np.ndarray  # (2, 2)
    paths: np.ndarray  # (moments, rays, 2)
    verdict: str
    colour: str

    @property
    def clock(self) -> tuple[str, float, str]:
        """What a frame is."""
        return "Time", PACE, ""

    @property
    def made(self) -> int:
        """Frames after the first."""
        return len(self.paths) - 1

    @property
    def straight(self) -> np.ndarray:
        """Directions along which a residual falls without leaving its line, one per row."""
        values, vectors = np.linalg.eig(self.loop)
        turning = np.abs(np.imag(values)).max() > 1e-9 * np.abs(values).max()
        return np.zeros((0, 2)) if turning else np.real(vectors).T

    def said(self, _frame: int) -> tuple[list[str], str]:
        """The verdict on the loop, its colour, and what is drawn."""
        known = "Small residuals follow this loop; the circuit itself stays as it is drawn."
        return [self.verdict, known], self.colour


def wires(state: State) -> Wires:
    """The circuit that `state` names."""
    return _wires(state.still())


@kept
def drawn(seed: int) -> Circuit:
    """A random tree and some more edges, with conductances around one siemens."""
    draw = np.random.default_rng(seed)
    edges = [(node, int(draw.integers(node))) for node in range(1, NODES)]
    while len(edges) < EDGES:
        one, other = draw.integers(0, NODES, 2).tolist()
        if one != other:
            edges.append((one, other))
    outputs = [NODES - 3, NODES - 2, NODES - 1]
    sizes = np.exp(draw.standard_normal(EDGES))
    return Circuit(edges, sizes, sources=[0], outputs=outputs, drive="currents", read="currents")


@kept
def _wires(state: State) -> Wires:
    circuit = drawn(state.seed)
    entry = rules.get(state.rule)
    loop = closed_loop(circuit, INPUTS, entry.make(**entry.takes(state.settings)))
    certificate = certify(loop)
    matrix = np.asarray(loop.reduced)
    voltages = np.asarray(circuit.settle(jnp.asarray(INPUTS), jnp.zeros((1, 3))))[0]
    first, second = np.asarray(circuit.edges).T
    pace = PACE / max(float(np.real(np.linalg.eigvals(matrix)).min()), 1e-6)
    step = scipy.linalg.expm(-matrix * pace)
    angles = 2 * np.pi * np.arange(RAYS) / RAYS
    paths = [np.stack([np.cos(angles), np.sin(angles)], axis=1)]
    for _ in range(UPDATES):
        paths.append(paths[-1] @ step.T)
    return Wires(
        state,
        circuit,
        np.asarray(circuit.conductances) * (voltages[first] - voltages[second]),
        _places(circuit, voltages),
        matrix,
        np.array(paths)[: state.updates + 1],
        str(certificate),
        certificate.verdict.colour,
    )


def _places(circuit: Circuit, voltages: np.ndarray) -> np.ndarray:
    """From left to right by voltage, and up by their neighbours; evenly, so that none lie close."""
    first, second = np.asarray(circuit.edges).T
    wired = np.zeros((NODES, NODES))
    np.add.at(wired, (first, second), 1.0)
    wired = wired + wired.T
    fixed = np.array([0, *circuit.sinks])
    places = np.zeros((NODES, 2))
    places[fixed] = [[0, 0.5], [1, 1], [1, 0.5], [1, 0]]
    free = np.setdiff1d(np.arange(NODES), fixed)
    # Every free node hangs half-way between its neighbours.
    inner = np.diag(wired[free].sum(axis=1)) - wired[np.ix_(free, free)]
    height = np.linalg.solve(inner, wired[np.ix_(free, fixed)] @ places[fixed, 1])
    places[free, 0] = np.linspace(0, 1, len(free) + 2)[1:-1][
        np.argsort(np.argsort(-voltages[free]))
    ]
    places[free, 1] = np.linspace(0.06, 0.94, len(free))[np.argsort(np.argsort(height))]
    return places
