"""Learning circuits rebuilt from their published equations, to be measured like devices on a bench.

* A resistor network that learns by *coupled learning*: M. Stern, D. Hexner, J. W. Rocks and A. J.
  Liu, "Supervised learning in physical networks: from machine learning to learning machines",
  Physical Review X 11, 021045 (2021). Outputs, here the voltages between output nodes, are clamped
  a small way towards the target, and every conductance changes by the difference of its squared
  voltage drops in the free and the clamped state.
* The same network nudged by currents in proportion to the error, as in *equilibrium propagation*:
  B. Scellier and Y. Bengio, Frontiers in Computational Neuroscience 11, 24 (2017); for resistors J.
  Kendall et al., arXiv:2006.01981 (2020).
* An ideal *gyrator*, i1 = g v2 and i2 = -g v1: B. D. H. Tellegen, Philips Research Reports 3, 81
  (1948). It is the passive element without reciprocity; built from transistors it is active.

Outputs are voltages relative to their mean, because only differences of voltages mean anything;
they sum to zero.
"""

from dataclasses import dataclass

import numpy as np

from whorl.simplex import tangent_basis


@dataclass(frozen=True)
class Circuit:
    """Nodes joined by conductances.

    The first two nodes are held at one and zero volts, the last ones are outputs.
    """

    nodes: int
    outputs: int
    edges: np.ndarray  # (edges, 2)
    conductances: np.ndarray
    gyration: float = 0.0  # of a gyrator between two inner nodes

    def matrix(self, conductances):
        """Currents into the nodes for given voltages."""
        drop = np.zeros((len(self.edges), self.nodes))
        drop[np.arange(len(self.edges)), self.edges[:, 0]] = 1.0
        drop[np.arange(len(self.edges)), self.edges[:, 1]] = -1.0
        whole = drop.T @ (conductances[:, None] * drop)
        whole[2, 3] += self.gyration
        whole[3, 2] -= self.gyration
        return whole

    def voltages(self, conductances, injected=None):
        """Kirchhoff's laws, with currents fed into the outputs."""
        values, currents = np.zeros(self.nodes), np.zeros(self.nodes)
        values[0] = 1.0
        if injected is not None:
            currents[-self.outputs :] = injected
        whole = self.matrix(conductances)
        values[2:] = np.linalg.solve(whole[2:, 2:], (currents - whole[:, :2] @ values[:2])[2:])
        return values

    def clamping(self, residual):
        """The currents of a floating supply that shifts the voltages between outputs by the
        residual.
        """
        basis = tangent_basis(self.outputs)
        impedance = np.linalg.inv(self.matrix(self.conductances)[2:, 2:])[
            -self.outputs :, -self.outputs :
        ]
        return basis @ np.linalg.solve(basis.T @ impedance @ basis, basis.T @ residual)

    def learned(self, residual, *, clamp, nudge=1e-4):
        """The rate of change of the conductances, and the currents that nudged the outputs, for a
        nudge of one.
        """
        drawn = self.clamping(residual) if clamp else residual
        free, nudged = (
            self.voltages(self.conductances),
            self.voltages(self.conductances, nudge * drawn),
        )
        drops = [state[self.edges[:, 0]] - state[self.edges[:, 1]] for state in (free, nudged)]
        return (drops[0] ** 2 - drops[1] ** 2) / (2 * nudge), drawn

    def measured(self, residuals, *, clamp, time=1e-5):
        """For every residual: the velocity of the outputs, and the currents that acted on them."""
        start = self._seen(self.conductances)
        velocities, currents = [], []
        for residual in residuals:
            rate, drawn = self.learned(residual, clamp=clamp)
            velocities.append((self._seen(self.conductances + time * rate) - start) / time)
            currents.append(drawn)
        return np.array(velocities), np.array(currents)

    def _seen(self, conductances):
        seen = self.voltages(conductances)[-self.outputs :]
        return seen - seen.mean()


def circuit(*, outputs=3, inner=5, gyration=0.0, seed=0):
    """A random circuit in which every node is joined to every other."""
    nodes = 2 + inner + outputs
    edges = np.array([(a, b) for a in range(nodes) for b in range(a)])
    conductances = np.exp(0.7 * np.random.default_rng(seed).standard_normal(len(edges)))
    return Circuit(nodes, outputs, edges, conductances, gyration)


def star(*, outputs=3):
    """A circuit whose outputs cannot be told apart by what they draw.

    Each hangs on the two sources alone, at its own divider.
    """
    nodes = 4 + outputs
    edges = np.array([(node, source) for node in range(2, nodes) for source in (0, 1)])
    upper = np.linspace(0.3, 0.7, nodes - 2)
    return Circuit(nodes, outputs, edges, np.stack([upper, 1 - upper], axis=1).ravel())
