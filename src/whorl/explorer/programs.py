"""Few compiled programs for many settings, so that no control has to wait for a compiler.

Three things would make a program each: the depth, the law behind the turn, and the policy with its
gate. Here all three are data. A shallower network is filled up to `MAX_DEPTH` with layers that pass
every flow on and cannot move: columns with a single entry. A law and a policy are chosen by a
number among those that whorl registers. What is left is one program per width, and one more for
each law, policy or gate of another package.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from whorl.curvature import Curvature, curvature
from whorl.explorer import system
from whorl.explorer.state import MAX_DEPTH, State
from whorl.feedback import Rotational, SpectralLaw, rotational
from whorl.learning.ledger import Terms
from whorl.learning.policy import Decision, Policy, View, native
from whorl.learning.trajectory import begin, run
from whorl.registry import Entry, gates, laws, policies
from whorl.response import Matrix, Response, response
from whorl.system import System
from whorl.systems.graph import Graph
from whorl.systems.layered import Network


class AnyLaw(SpectralLaw):
    """One of several spectral laws, by number."""

    number: Int[Array, ""]
    choices: tuple[SpectralLaw, ...]

    def weight(self, eigenvalues: Float[Array, "n"]) -> Float[Array, "n"]:
        return jnp.stack([law.weight(eigenvalues) for law in self.choices])[self.number]

    def matrix(self, response: Response) -> Matrix:
        return jnp.stack([law.matrix(response) for law in self.choices])[self.number]


class AnyPolicy(Policy):
    """One of several policies, by number."""

    number: Int[Array, ""]
    choices: tuple[Policy, ...]

    def decide(self, view: View) -> Decision:
        made = [policy.decide(view) for policy in self.choices]
        return Decision(
            jnp.stack([one.step for one in made])[self.number],
            jnp.stack([one.amount for one in made])[self.number],
        )


def _ours(entry: Entry) -> bool:
    """Whether an entry is compiled into the program that all settings share."""
    return entry.source.startswith("whorl.")


def law(state: State) -> Rotational:
    """The law of `state`, with whorl's own spectral laws as data.

    A spectral law is shown as one that turns by nothing.
    """
    whole, name = system.law(state), system.acting(state)
    if isinstance(whole, SpectralLaw):
        whole = rotational(1.0, 0.0, base=whole)
    if not isinstance(whole, Rotational):
        raise ValueError(
            f"law must be spectral or rotational to be shown here, but it is {type(whole).__name__}"
        )
    if not _ours(laws.get(name)):
        return whole
    given = state.settings | {"leak": state.leak or 1.0}
    made = {
        entry.name: entry.make(**entry.takes(given))
        for entry in laws.entries(where="explorer")
        if _ours(entry) and not system.turns_through(entry)
    }
    made = {key: one for key, one in made.items() if isinstance(one, SpectralLaw)}
    number = jnp.asarray(list(made).index(name))
    return eqx.tree_at(lambda one: one.base, whole, AnyLaw(number, tuple(made.values())))


def turning(state: State) -> tuple[str, ...]:
    """The policies whose losses are shown beside the native one."""
    return tuple(dict.fromkeys(["step_matched", "adaptive", state.policy, "native"]))[:-1]


def policy(state: State) -> tuple[AnyPolicy, list[int]]:
    """A policy with the settings of `state`, and the number in it of each that is shown."""
    behind = law(state)
    settings = state.settings | {"omega": state.omega if state.turns else 0.0}
    every = [
        (one.name, gate.name)
        for one in policies.entries(where="explorer")
        for gate in gates.entries(where="explorer")
        if _ours(one) and _ours(gate) and "gate" in one.defaults
    ]
    shown = [(name, state.gate) for name in turning(state)]
    every = list(dict.fromkeys([*every, *shown]))
    choices = []
    for name, gate in every:
        entry = policies.get(name)
        choices.append(entry.make(**entry.takes(settings | {"gate": gate}), law=behind))
    still = native(state.scale, law=behind)
    made = AnyPolicy(still.scale, still.omega, still.gate, behind, jnp.asarray(0), tuple(choices))
    return made, [every.index(one) for one in shown]


def own(state: State) -> bool:
    """Whether something of another package has a say, which makes a program of its own."""
    chosen = (laws.get(state.law), policies.get(state.policy), gates.get(state.gate))
    return not all(map(_ours, chosen))


class Given(eqx.Module):
    """What a run starts from, and the sample that is watched."""

    net: System
    inputs: Float[Array, "samples 3"]
    targets: Float[Array, "samples 3"]
    order: Int[Array, "updates"]
    turns: Int[Array, "updates"]
    watched: Float[Array, "one 3"]


def padded(net: Network | Graph) -> Network | Graph:
    """The same network with `MAX_DEPTH` layers; a graph as it is."""
    if isinstance(net, Graph):
        return net
    wide = net.widths[1] if net.depth > 1 else 3
    idle = [np.eye(wide)] * (MAX_DEPTH - net.depth)
    first = [] if net.depth == 1 else [net.layers[0]]
    layers = [*first, *idle, *net.layers[len(first) :]]
    return Network(layers, support=[np.asarray(layer) > 0 for layer in layers])


def unpadded(layers: Any, depth: int) -> list[np.ndarray]:
    """The layers that are there, with whatever axes stand before theirs."""
    arrays = [np.asarray(layer) for layer in layers]
    return arrays[MAX_DEPTH - 1 :] if depth == 1 else [arrays[0], *arrays[1 + MAX_DEPTH - depth :]]


class Paths(eqx.Module):
    """Runs of several policies from one start, and the path of the one that is looked at."""

    made: Int[Array, "runs"]
    start: Float[Array, ""]
    losses: tuple[Float[Array, "runs updates"], ...]  # of the guided and of the native learner
    terms: Terms
    amount: Float[Array, "updates"]
    layers: tuple[Float[Array, "moments _rows _columns"], ...]
    flows: tuple[Float[Array, "moments one _width"], ...]  # of the watched sample
    loops: Float[Array, "moments n n"]
    native: Float[Array, "moments one 3"]  # what the native learner makes of it


@eqx.filter_jit
def paths(
    given: Given,
    rule: AnyPolicy,
    numbers: Int[Array, "runs"],
    which: Int[Array, ""],
    straight: Bool[Array, ""],
) -> Paths:
    """All that a picture needs, in one program.

    `which` run is looked at, and whether its `straight` learner is, are data.
    """
    first = begin(given.net, given.inputs, given.targets)

    def one(number: Array) -> Any:
        mine = eqx.tree_at(lambda any_policy: any_policy.number, rule, number)
        return run(mine, given.inputs, given.targets, first, given.order, given.turns, True, 1)

    final, _, infos, states = jax.vmap(one)(numbers)
    guided, native = jax.tree.map(lambda leaf: _stayed(leaf[which], final.number[which]), states)
    learner = jax.tree.map(lambda own, other: jnp.where(straight, other, own), guided, native)
    stream, loops = jax.vmap(lambda net: _seen(net, given.watched, rule.law))(learner)
    other = jax.vmap(lambda net: net.outputs(given.watched))(native)
    entry, amount = jax.tree.map(
        lambda leaf: jnp.where(straight, 0.0, leaf[which]), (infos.terms, infos.amount)
    )
    return Paths(
        final.number,
        first.losses[0],
        infos.losses,
        entry,
        amount,
        learner.blocks,
        stream,
        loops,
        other,
    )


def _stayed(frames: Array, made: Array) -> Array:
    """A path that ended early stays at its end."""
    return frames[jnp.minimum(jnp.arange(len(frames), dtype=made.dtype), made)]


def _seen(
    net: Network | Graph, inputs: Array, behind: Rotational
) -> tuple[tuple[Array, ...], Array]:
    """The flows of one sample, by layer or by edge, and the loop in zero-sum coordinates."""
    seen = response(net, inputs)
    flows = (
        (inputs, net.flows(inputs), seen.predictions)
        if isinstance(net, Graph)
        else net.trace(inputs).flows
    )
    return flows, seen.reduced() @ behind.matrix(seen)


@eqx.filter_jit
def curved(net: System, inputs: Array, targets: Array, behind: Rotational) -> Curvature:
    """The curvature of a turn that the first sample drives."""
    return curvature(net, inputs, targets, selected=0, law=behind)


@eqx.filter_jit
def coefficients(
    net: System, inputs: Array, targets: Array, behind: Rotational, column: Array, points: Array
) -> Float[Array, "points"]:
    """The coefficient Q of a turn that the first sample drives, with a column at each point."""
    *others, last = net.blocks

    def one(point: Array) -> Array:
        moved = net.with_blocks([*others, last.at[:3, column].set(point)])
        return curvature(moved, inputs, targets, selected=0, law=behind).coefficient

    return jax.vmap(one)(points)
