"""One moment of a run: the map of Q for one column, the certificate of the loop, the curvature."""

import functools
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from whorl.explorer import programs, system
from whorl.explorer.cache import kept
from whorl.explorer.compute import run
from whorl.explorer.state import State
from whorl.explorer.subject import Subject
from whorl.reciprocity import certify, closed_loop
from whorl.response import response
from whorl.system import System

HEIGHT = np.sqrt(3) / 2
ACROSS: np.ndarray = np.linspace(0, 1, 49)
UP: np.ndarray = np.linspace(0, HEIGHT, 43)
# the outermost points of the map lie this far inside: on the edge a column is frozen and no turn is
# defined
CLIP = 0.012


@dataclass(frozen=True, eq=False)
class Moment(Subject):
    """What is computed at the moment that is looked at, and not along the run."""

    grid: np.ndarray  # Q with the column at each point of the triangle's bounding box
    column: np.ndarray  # where the column is
    path: np.ndarray  # where it goes over the run, (moments, 3)
    foot: str  # which it is, in words
    certificate: str
    colour: str  # of the verdict on the loop
    curvature: str

    def said(self, _frame: int) -> tuple[list[str], str]:
        """Both verdicts, and the colour of the first."""
        return [self.certificate, self.curvature], self.colour


def corners(shares: np.ndarray) -> np.ndarray:
    """Shares as points of the plane: the first on top, then bottom left and bottom right."""
    return shares @ np.array([[0.5, HEIGHT], [0.0, 0.0], [1.0, 0.0]])


@functools.cache
def points() -> np.ndarray:
    """The shares at every point of the bounding box, those outside moved onto the nearest edge."""
    x, y = np.meshgrid(ACROSS, UP)
    first = y / HEIGHT
    third = x - first / 2
    shares = np.clip(
        np.stack([first, 1 - first - third, third], axis=-1).reshape(-1, 3), CLIP, None
    )
    return shares / shares.sum(axis=1, keepdims=True)


@kept
def moment(state: State) -> Moment:
    """The moment that `state` names."""
    seen = run(state)
    at = seen.moment(state.frame)
    inputs, targets = system.data(state)
    first = np.roll(np.arange(len(inputs)), 1 - state.sample)  # the watched sample comes first
    inputs, targets = inputs[first], targets[first]
    net = programs.padded(seen.network(at))
    values = programs.coefficients(
        net,
        jnp.asarray(inputs),
        jnp.asarray(targets),
        programs.law(state),
        jnp.asarray(seen.column),
        jnp.asarray(points()),
    )
    grid = np.asarray(values).reshape(len(UP), len(ACROSS))
    return Moment(
        grid,
        np.asarray(net.blocks[-1])[:3, seen.column],
        seen.layers[-1][:, :3, seen.column],
        {
            "family": f"Q with column {seen.column + 1} of the last layer anywhere",
            "graph": f"Q with the shares of node {seen.column} anywhere",
        }.get(state.system, "Q with the column anywhere"),
        *_verdicts(state, net, inputs, targets),
    )


def _verdicts(
    state: State, net: System, inputs: np.ndarray, targets: np.ndarray
) -> tuple[str, str, str]:
    try:
        law = system.law(state)
        certificate = certify(closed_loop(response(net, inputs, selected=0), law))
        turn = programs.curved(net, jnp.asarray(inputs), jnp.asarray(targets), programs.law(state))
    except ValueError as refusal:  # such as a response that the repair cannot act through
        return str(refusal), "", ""
    named = eqx.tree_at(lambda one: one.law, turn, law)  # the compiled law has no name of its own
    return str(certificate), certificate.verdict.colour, str(named)
