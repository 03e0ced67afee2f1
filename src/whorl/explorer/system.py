"""From a state to the objects of the library: network, task, schedule, turns, law.

`recipe` writes down as Python what this file does.

Every member of a family has a seed of its own, the first one the seed of the state; from it four
independent streams are spawned, so that the task stays the same while the depth moves, and a
schedule while the imbalance does.
"""

import inspect

import numpy as np

from whorl._construct import columns
from whorl.explorer.cache import kept
from whorl.explorer.state import MAX_EPOCHS, SAMPLES, Shares, State
from whorl.feedback import Law
from whorl.learning.schedule import fair_turns, fixed, permuted
from whorl.registry import Entry, laws
from whorl.systems.graph import Graph
from whorl.systems.layered import Network
from whorl.task import Task

UPDATES = SAMPLES * MAX_EPOCHS
Draws = tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def draws(seed: int, widths: tuple[int, ...]) -> Draws:
    """Logits of every layer, inputs, targets, order of the samples and fair turns."""
    columns, data, order, turns = np.random.default_rng(seed).spawn(4)
    logits = tuple(
        columns.standard_normal(shape) for shape in zip(widths[1:], widths[:-1], strict=True)
    )
    task = Task.random(3, 3, seed=data)
    sequence, senses = permuted(SAMPLES, MAX_EPOCHS, order), fair_turns(UPDATES, turns)
    return logits, np.asarray(task.inputs), np.asarray(task.targets), sequence, senses


@kept
def family(seed: int, widths: tuple[int, ...], members: int) -> list[Draws]:
    """The draws of members with consecutive seeds."""
    return [draws(seed + number, widths) for number in range(members)]


def widths(state: State) -> tuple[int, ...]:
    """Nodes from input to output; three at both ends."""
    if state.system == "graph":
        return (3, state.hidden, 3)
    layered = state.system in ("family", "held")
    return (3, *[state.hidden] * (state.depth - 1), 3) if layered else (3, 3)


def proportions(parts: Shares) -> np.ndarray:
    """Three parts as shares of one."""
    return np.array(parts) / sum(parts)


def network(state: State) -> Network | Graph:
    """The network, or the graph, at its start."""
    if state.system == "graph":
        return looped(state)
    if state.system in ("family", "held"):
        logits = draws(state.seed, widths(state))[0]
        return Network.random(
            widths(state), imbalance=state.imbalance, floor=state.floor, logits=logits
        )
    # One column that all the flow enters. Its two neighbours carry nothing, and what carries
    # nothing never moves.
    return Network([np.column_stack([proportions(state.start), np.full((3, 2), 1 / 3)])])


def looped(state: State) -> Graph:
    """A ring that can be gone round both ways.

    Three sources lead to two nodes of it each, and every node of it to both of its neighbours and
    to one of three sinks.
    """
    ring = state.hidden
    drawn = draws(state.seed, widths(state))[0]
    logits = state.imbalance * drawn[0][:2], state.imbalance * drawn[1]
    edges = [(f"in {k + 1}", (k + side) % ring) for k in range(3) for side in (0, 1)]
    for node in range(ring):
        ahead, behind = (node + 1) % ring, (node - 1) % ring
        edges += [(node, ahead), (node, behind), (node, f"out {node % 3 + 1}")]
    shares = [columns(z, np.ones(z.shape, dtype=bool), state.floor).T.ravel() for z in logits]
    ends = [[f"{end} {k + 1}" for k in range(3)] for end in ("in", "out")]
    return Graph(edges, np.concatenate(shares), sources=ends[0], sinks=ends[1])


def data(state: State) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets, six of each."""
    if state.system in ("family", "graph", "held"):
        return draws(state.seed, widths(state))[1:3]
    return np.tile([1.0, 0.0, 0.0], (SAMPLES, 1)), np.tile(proportions(state.target), (SAMPLES, 1))


def order(state: State, drawn: np.ndarray) -> np.ndarray:
    """Which sample each update learns from, as long as the longest run."""
    return drawn if state.shown == "all" else np.full(UPDATES, state.sample - 1, dtype=np.int32)


def senses(state: State, drawn: np.ndarray) -> np.ndarray:
    """Which way each update may turn, as long as the longest run."""
    if state.turn == "fair":
        return drawn
    if state.turn == "alternating":
        return (1 - 2 * (fixed(2, UPDATES // 2))).astype(np.int32)
    return np.full(UPDATES, 1 if state.turn == "plus" else -1, dtype=np.int32)


def turns_through(entry: Entry) -> bool:
    """Whether a law hands what it turned to another law, its base."""
    return "base" in inspect.signature(entry.factory).parameters


def acting(state: State) -> str:
    """The name of the spectral law that acts.

    A leak of zero is the exact repair, for the leaky law and for one that turns through it.
    """
    entry = laws.get(state.law)
    if turns_through(entry):
        return "leaky" if state.leak > 0 else "repair"
    return "repair" if "leak" in entry.defaults and state.leak == 0 else entry.name


def law(state: State) -> Law:
    """The boundary law."""
    chosen, acts = laws.get(state.law), laws.get(acting(state))
    base = acts.make(**acts.takes(state.settings))
    if not turns_through(chosen):
        return base
    return chosen.make(**chosen.takes(state.settings), base=base)
