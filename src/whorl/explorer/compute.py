"""One run: what the native and the turning learner did, update by update, as arrays for the views. Cached by state."""

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from whorl.explorer import programs, system
from whorl.explorer.state import State
from whorl.ledger import TERMS
from whorl.network import Network
from whorl.simplex import tangent_basis
from whorl.trajectory import Pair, train

TURNING: tuple[str, ...] = ("step_matched", "adaptive")
PLANE = tangent_basis(3)  # orthonormal coordinates of the zero-sum plane


@dataclass(frozen=True, eq=False)
class Run:
    """A run of `made` updates; every array has the moments, from the start to the last update, as its first axis."""

    state: State
    layers: list[np.ndarray]  # of the learner that the policy guides
    flows: list[np.ndarray]  # of the watched sample through them, from input to output
    native: np.ndarray  # prediction of the watched sample by the native learner
    target: np.ndarray
    losses: dict[str, np.ndarray]  # mean over samples: native, step_matched, adaptive
    entries: np.ndarray  # (made, 4): the ledger of each update
    amounts: np.ndarray  # (made,): how much was turned
    loops: np.ndarray  # (moments, 2, 2): the closed loop around the watched sample
    made: int
    note: str  # empty, or why the run ended early

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
        """The column of the last layer that carries most of the watched sample's flow at the start."""
        return int(np.argmax(self.flows[-2][0]))

    def residual(self, who: str) -> np.ndarray:
        """The residual of the watched sample in zero-sum coordinates."""
        return (self.target - (self.native if who == "native" else self.learner)) @ PLANE

    def accounts(self) -> np.ndarray:
        """The four terms summed up to every moment."""
        return np.concatenate([np.zeros((1, len(TERMS))), np.cumsum(self.entries, axis=0)])

    def network(self, moment: int) -> Network:
        """The guided learner's network at one moment."""
        return Network([layer[moment] for layer in self.layers])

    def moment(self, frame: int) -> int:
        """The moment a frame shows; a run that ended early stays at its end."""
        return min(frame, self.made)


def run(state: State) -> Run:
    """The run that `state` names, whatever its frame."""
    return _run(state.still())


@functools.lru_cache(maxsize=128)
def _run(state: State) -> Run:
    net, (inputs, targets) = system.network(state), system.data(state)
    drawn = system.draws(state.seed, system.widths(state))[3:]
    order, turns = system.order(state, drawn[0]), system.senses(state, drawn[1])
    full = programs.padded(net)

    def pair(kind: str) -> Pair:
        rule = programs.policy(state, kind)
        return train(full, inputs, targets, policy=rule, schedule=order, turns=turns, stride=1)

    # The compiled loop lets go of the interpreter, so that two threads are two cores.
    with ThreadPoolExecutor(2) as pool:
        pairs: dict[str, Pair] = dict(zip(TURNING, pool.map(pair, TURNING), strict=True))
    return _gathered(state, pairs, inputs, targets)


def _gathered(state: State, pairs: dict[str, Pair], inputs: np.ndarray, targets: np.ndarray) -> Run:
    made = min(state.updates, *(one.made for one in pairs.values()))
    guide = pairs["step_matched" if state.policy == "step_matched" else "adaptive"]
    assert guide.states is not None
    assert guide.updates is not None
    whole = guide.made + 1
    watched = jnp.asarray(inputs[state.sample - 1 : state.sample])
    law = programs.law(state)
    learner, native = guide.states if state.policy != "native" else (guide.states[1], guide.states[1])
    flows, loops = programs.along(_filled(learner, whole), watched, law)
    others, _ = programs.along(_filled(native, whole), watched, law)
    depth = len(system.widths(state)) - 1
    streams = [np.asarray(flow)[: made + 1, 0] for flow in flows]
    losses = {
        name: np.array([float(one.ledger.start), *np.asarray(one.updates.losses[0])[:made]]) for name, one in pairs.items() if one.updates
    }
    losses["native"] = np.array([float(guide.ledger.start), *np.asarray(guide.updates.losses[1])[:made]])
    terms = np.stack([np.asarray(getattr(guide.updates.entry, term))[:made] for term in TERMS], axis=1)
    amounts = np.asarray(guide.updates.amount)[:made]
    if state.policy == "native":
        terms, amounts = np.zeros_like(terms), np.zeros_like(amounts)
    note = "" if made == state.updates else f"Stopped after update {made}: a learner would have left the interior of a simplex."
    return Run(
        state,
        [layer[: made + 1] for layer in programs.unpadded(learner.layers, depth)],
        _streams(streams, depth),
        np.asarray(others[-1])[: made + 1, 0],
        targets[state.sample - 1],
        losses,
        terms,
        amounts,
        np.asarray(loops)[: made + 1],
        made,
        note,
    )


def _streams(streams: list[np.ndarray], depth: int) -> list[np.ndarray]:
    """The flows between the layers that are there."""
    idle = len(streams) - 1 - depth
    return [streams[0], *streams[1 + idle :]] if depth > 1 else [streams[idle], streams[-1]]


def _filled(path: Network, whole: int) -> Network:
    """A path as long as the longest one, so that it meets a compiled program; a shorter one waits at its end."""
    length = system.UPDATES + 1
    if whole == length:
        return path
    return path.with_layers([_last_repeated(layer, length) for layer in path.layers])


def _last_repeated(layer: object, length: int) -> jnp.ndarray:
    array = np.asarray(layer)
    return jnp.asarray(np.concatenate([array, np.repeat(array[-1:], length - len(array), axis=0)]))
