"""Three hundred networks under the settings of the page, of which the shown one is the first."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from whorl.explorer import programs, system
from whorl.explorer.cache import kept
from whorl.explorer.state import NETWORKS, State
from whorl.explorer.subject import Subject
from whorl.feedback import leaky, rotational
from whorl.learning.ensemble import train_many
from whorl.learning.stack import stack
from whorl.registry import policies
from whorl.systems.layered import Network

LEAST_LEAK = 1e-9  # stands for the repair law, which three hundred networks at once do not have


@dataclass(frozen=True, eq=False)
class Many(Subject):
    """The running gaps of a family; no networks, where there is no family to be seen."""

    gaps: np.ndarray  # (networks, moments)

    @property
    def made(self) -> int:
        """Updates."""
        return max(self.gaps.shape[1] - 1, 0)


def many(state: State) -> Many:
    """The family that `state` names; the frame and what is watched do not matter."""
    return _many(state.still())


def seen(state: State) -> bool:
    """Whether there is a family: networks that turn, of the shape that is fast in hundreds."""
    turns = state.turns and state.omega > 0 and state.policy != "native" and state.gate != "never"
    plain = state.system == "family" and state.hidden == 3 and state.alpha == 1
    return turns and plain and not programs.own(state)


@kept
def _many(state: State) -> Many:
    if not seen(state):
        return Many(np.zeros((0, 0)))
    members = system.family(state.seed, system.widths(state), NETWORKS)
    nets = _networks(state, members)
    inputs, targets = (np.stack([member[place] for member in members]) for place in (1, 2))
    order = np.stack([system.order(state, member[3]) for member in members])
    turns = np.stack([system.senses(state, member[4]) for member in members])
    chosen, law = policies.get(state.policy), rotational(base=leaky(state.leak or LEAST_LEAK))
    rule = chosen.make(**chosen.takes(state.settings), law=law)
    result = train_many(
        nets, inputs, targets, policy=rule, schedule=order, turns=turns, record=True
    )
    assert result.updates is not None
    entries = np.asarray(result.updates.terms.total)[:, : state.updates]
    return Many(np.concatenate([np.zeros((NETWORKS, 1)), np.cumsum(entries, axis=1)], axis=1))


def _networks(state: State, members: list[system.Draws]) -> Network:
    """The stack of networks."""
    layers = []
    # Columns are independent, so that one call makes a layer of all networks.
    for number in range(state.depth):
        logits = np.concatenate([member[0][number] for member in members], axis=1)
        wide = Network.random(
            (logits.shape[1], 3), imbalance=state.imbalance, floor=state.floor, logits=[logits]
        )
        layers.append(
            jnp.asarray(np.asarray(wide.layers[0]).reshape(3, NETWORKS, 3).swapaxes(0, 1))
        )
    return _frame(state.depth).with_blocks(layers)


@kept
def _frame(depth: int) -> Network:
    """A stack of the right shape, whose columns are still to come."""
    whole = stack([Network([np.full((3, 3), 1 / 3)] * depth)] * NETWORKS)
    assert isinstance(whole, Network)
    return whole
