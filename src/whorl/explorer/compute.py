"""One run: what the native and the turning learner did, update by update, as arrays for views."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from whorl.explorer import programs, system
from whorl.explorer.cache import kept
from whorl.explorer.state import State
from whorl.explorer.subject import Subject
from whorl.learning.ledger import TERMS
from whorl.simplex import tangent_basis
from whorl.systems.graph import Graph
from whorl.systems.layered import Network

PLANE = tangent_basis(3)  # orthonormal coordinates of the zero-sum plane


@dataclass(frozen=True, eq=False)
class Played(Subject):
    """A run; the first axis of every array is the moments, from the start to the last update."""

    state: State
    layers: list[np.ndarray]  # of the learner that the policy guides; blocks, of a graph
    # of the watched sample through them, from input to output; of a graph through every edge
    flows: list[np.ndarray]
    native: np.ndarray  # prediction of the watched sample by the native learner
    target: np.ndarray
    losses: dict[str, np.ndarray]  # mean over samples: native, and each policy
    entries: np.ndarray  # (made, 4): the ledger of each update
    amounts: np.ndarray  # (made,): how much was turned
    loops: np.ndarray  # (moments, 2, 2): the closed loop around the watched sample
    note: str = ""

    @property
    def made(self) -> int:
        """Updates."""
        return len(self.entries)

    @property
    def learner(self) -> np.ndarray:
        """Prediction of the watched sample by the guided learner."""
        return self.flows[-1]

    @property
    def eigenvalues(self) -> np.ndarray:
        """Of the closed loop, at every moment."""
        return np.linalg.eigvals(self.loops)

    @property
    def column(self) -> int:
        """The column of the last layer, or node of a ring, with most of the flow at the start."""
        most = self.flows[-2][0]
        return int(np.argmax(most[6:].reshape(-1, 3).sum(axis=1) if self.looped else most))

    @property
    def looped(self) -> bool:
        """Whether this is a graph."""
        return self.state.system == "graph"

    def residual(self, who: str) -> np.ndarray:
        """The residual of the watched sample in zero-sum coordinates."""
        return (self.target - (self.native if who == "native" else self.learner)) @ PLANE

    def accounts(self) -> np.ndarray:
        """The four terms summed up to every moment."""
        return np.concatenate([np.zeros((1, len(TERMS))), np.cumsum(self.entries, axis=0)])

    def network(self, moment: int) -> Network | Graph:
        """The guided learner's network at one moment."""
        blocks = [layer[moment] for layer in self.layers]
        if self.looped:
            return system.looped(self.state).with_blocks(list(map(jnp.asarray, blocks)))
        return Network(blocks)


def run(state: State) -> Played:
    """The run that `state` names, whatever its frame."""
    return _run(state.still())


@kept
def _run(state: State) -> Played:
    inputs, targets = system.data(state)
    watched = slice(state.sample - 1, state.sample)
    drawn = system.draws(state.seed, system.widths(state))[3:]
    arrays = (
        inputs,
        targets,
        system.order(state, drawn[0]),
        system.senses(state, drawn[1]),
        inputs[watched],
    )
    given = programs.Given(_padded(state.opening()), *map(jnp.asarray, arrays))
    policy, numbers = programs.policy(state)
    native = state.policy == "native"
    which = 1 if native else programs.turning(state).index(state.policy)
    seen = programs.paths(
        given, policy, jnp.asarray(numbers), jnp.asarray(which), jnp.asarray(native)
    )
    return _gathered(state, jax.device_get(seen), targets[watched][0])


@kept
def _padded(state: State) -> Network | Graph:
    """The network at its start, on which most settings have no effect."""
    return programs.padded(system.network(state))


def _gathered(state: State, seen: Any, target: np.ndarray) -> Played:
    """A run from `programs.Paths` whose arrays are NumPy's."""
    made = min(state.updates, *(int(one) for one in seen.made))
    looped, depth = state.system == "graph", len(system.widths(state)) - 1
    layers = list(seen.layers) if looped else programs.unpadded(seen.layers, depth)
    flows = [flow[: made + 1, 0] for flow in seen.flows]
    guided, native = (
        [np.concatenate([[seen.start], one[:made]]) for one in side] for side in seen.losses
    )
    losses = dict(zip(programs.turning(state), guided, strict=True)) | {"native": native[0]}
    note = (
        ""
        if made == state.updates
        else f"Stopped after update {made}: a learner would have left the interior of a simplex."
    )
    return Played(
        state,
        [layer[: made + 1] for layer in layers],
        flows if looped else _streams(flows, depth),
        seen.native[: made + 1, 0],
        target,
        losses,
        np.stack([getattr(seen.terms, term)[:made] for term in TERMS], axis=1),
        seen.amount[:made],
        seen.loops[: made + 1],
        note,
    )


def _streams(streams: list[np.ndarray], depth: int) -> list[np.ndarray]:
    """The flows between the layers that are there."""
    idle = len(streams) - 1 - depth
    return [streams[0], *streams[1 + idle :]] if depth > 1 else [streams[idle], streams[-1]]
