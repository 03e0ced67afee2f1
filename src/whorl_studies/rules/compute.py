"""The physics of the study of rules: one compiled program for all circuits of one size, and one for
all networks of one depth.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from whorl import Circuit, Network, closed_loop, coupled_learning, equilibrium_propagation, response
from whorl.study.kind import Arrays
from whorl.study.parameters import Parameters
from whorl_studies.rules import draws

LOOPS = ("response", "impedance", "propagation", "coupled", "alignment")


class Piece(NamedTuple):
    """All circuits with so many nodes, or all networks with so many layers."""

    what: str
    size: int

    @property
    def name(self) -> str:
        """As in `nodes12` and `depth4`."""
        return f"{self.what}{self.size}"


def stages(p: Parameters) -> list[Piece]:
    """Units of work that are kept when a run is interrupted."""
    circuits = [Piece("nodes", size) for size in p.sizes]
    return [*circuits, *(Piece("depth", depth) for depth in p.depths)]


def compute(p: Parameters, stage: Piece) -> Arrays:
    """The loops of one piece, as arrays over circuits or networks."""
    if stage.what == "nodes":
        drawn = _stacked(
            draws.circuit(p.seed, number, stage.size, p.spread) for number in range(p.circuits)
        )
        call, names = _circuits(stage.size, tuple(map(float, p.nudges))), (*LOOPS, "bias")
    else:
        at = [(family, beta) for family in range(p.families) for beta in p.betas]
        drawn = _stacked(
            draws.network(p.seed, family, stage.size, beta, p.floor) for family, beta in at
        )
        call, names = _networks(stage.size), ("response", "alignment")
    seen = call(*drawn.values())
    return drawn | dict(zip(names, map(np.asarray, seen), strict=True))


def _stacked(drawn: Any) -> Arrays:
    each = list(drawn)
    return {name: np.stack([one[name] for one in each]) for name in each[0]}


@cache
def _circuits(nodes: int, nudges: tuple[float, ...]) -> Callable[..., Any]:
    """Node 0 is held at one volt and node 1 at zero; the last three nodes are read."""
    path = [(node, node + 1) for node in range(nodes - 1)] + [(0, 1)] * (nodes + 2)
    like = Circuit(
        path,
        np.ones(len(path)),
        sources=[0],
        outputs=[nodes - 3, nodes - 2, nodes - 1],
        ground=[1],
    )

    def one(edges: Any, conductances: Any, way: Any, targets: Any) -> Any:
        parts = (edges.astype(like.edges.dtype), conductances)
        circuit = eqx.tree_at(lambda made: (made.edges, made.conductances), like, parts)
        inputs = jnp.ones((1, 1))
        impedance = circuit.impedance(inputs)[0]
        loops = (
            response(circuit, inputs).dense(),
            impedance,
            closed_loop(circuit, inputs, equilibrium_propagation()).reduced,
            closed_loop(circuit, inputs, coupled_learning()).reduced,
            response(circuit, inputs, adjoint=[way]).dense(),
        )
        error = targets[None, :] - circuit.outputs(inputs)

        def velocity(rule: Any) -> Any:
            return circuit.velocities_of(rule.scores(circuit, inputs, error))[0]

        limit = velocity(equilibrium_propagation())

        def bias(nudge: float, centred: bool) -> Any:
            rule = equilibrium_propagation(nudge / jnp.trace(impedance), centred=centred)
            return jnp.linalg.norm(velocity(rule) - limit) / jnp.linalg.norm(limit)

        biases = [[bias(nudge, centred) for nudge in nudges] for centred in (False, True)]
        return *loops, jnp.asarray(biases)

    program = jax.jit(one)

    # One after the other: a batch of LAPACK's factors does not always return.
    def each(*drawn: np.ndarray) -> list[np.ndarray]:
        seen = [jax.device_get(program(*parts)) for parts in zip(*drawn, strict=True)]
        return [np.stack(part) for part in zip(*seen, strict=True)]

    return each


@cache
def _networks(depth: int) -> Callable[..., Any]:
    like = Network([np.full((3, 3), 1 / 3)] * depth)
    plane = jnp.eye(3) - 1 / 3

    def one(layers: Any, way: Any, inputs: Any) -> Any:
        net, rows = like.with_blocks(list(layers)), inputs[None, :]
        back = response(net, rows, adjoint=list(way)).dense()
        return response(net, rows).dense(), plane @ back @ plane

    return jax.jit(jax.vmap(one))
