r"""A response that stands still, and a law of gain one that turns every error by an angle.

The loop of one sample is $K R_\varphi$ with the rotation $R_\varphi$ of its zero-sum plane. Its
trace is $(\lambda_1 + \lambda_2)\cos\varphi$ and its determinant $\lambda_1\lambda_2$, whatever the
angle: two real eigenvalues approach each other, meet where $\cos\varphi =
2\sqrt{\lambda_1\lambda_2}/(\lambda_1 + \lambda_2)$, and part as a conjugate pair. Frames are angles
here, from none to a quarter of a turn.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy.linalg

from whorl.budget import RateBounds, rate_bounds
from whorl.explorer import system
from whorl.explorer.cache import kept
from whorl.explorer.state import State
from whorl.explorer.subject import Subject
from whorl.feedback import direct, rotational
from whorl.reciprocity import certify, closed_loop
from whorl.response import Response, response
from whorl.systems.layered import Network

MOMENTS = 121  # of the time in which errors are followed


@dataclass(frozen=True, eq=False)
class Held(Subject):
    """The loop at every angle: its eigenvalues, and what is left of the worst error in time."""

    state: State
    network: Network
    flows: list[np.ndarray]  # of the watched sample, from input to output
    response: Response
    bounds: RateBounds
    angles: np.ndarray  # (frames,), in radians
    eigenvalues: np.ndarray  # (frames, 2), the slower one first
    times: np.ndarray
    left: np.ndarray  # (frames, times): the largest error that an error of one becomes

    @property
    def made(self) -> int:
        """Frames after the first."""
        return len(self.angles) - 1

    @property
    def clock(self) -> tuple[str, float, str]:
        """What a frame is."""
        return "Angle", 90 / self.made, "°"

    @property
    def rates(self) -> np.ndarray:
        """The smallest real part at every angle."""
        return np.real(self.eigenvalues).min(axis=1)

    @property
    def critical(self) -> float:
        """The angle at which the eigenvalues meet: geometric over arithmetic mean."""
        return float(np.arccos(min(float(self.bounds.turning / self.bounds.gyrating), 1.0)))

    def said(self, frame: int) -> tuple[list[str], str]:
        """The verdict on the loop at an angle, its colour, and what the gain allows."""
        angle = self.angles[self.moment(frame)]
        law = rotational(float(np.cos(angle)), float(np.sin(angle)), base=direct())
        found = certify(closed_loop(self.response, law))
        return [str(found), str(self.bounds)], found.verdict.colour


def held(state: State) -> Held:
    """The response that `state` names, at the start of its network."""
    return _held(state.still())


@kept
def _held(state: State) -> Held:
    net, inputs = system.network(state), system.data(state)[0]
    assert isinstance(net, Network)
    seen = response(net, inputs, selected=state.sample - 1)
    bounds, angles = rate_bounds(seen), np.linspace(0, np.pi / 2, state.updates + 1)
    cosine, sine = np.cos(angles), np.sin(angles)
    turned = np.array([[cosine, -sine], [sine, cosine]]).transpose(2, 0, 1)
    loops = np.asarray(seen.reduced()) @ turned
    # Seven times as long as the slowest error of the fastest law needs to fall to 1/e.
    times = np.linspace(0, 7 / float(bounds.turning), MOMENTS)
    flows = net.trace(jnp.asarray(inputs[state.sample - 1 : state.sample])).flows
    return Held(
        state,
        net,
        [np.asarray(flow) for flow in flows],
        seen,
        bounds,
        angles,
        np.sort_complex(np.linalg.eigvals(loops)),
        times,
        _left(loops, float(times[1])),
    )


def _left(loops: np.ndarray, pace: float) -> np.ndarray:
    step = scipy.linalg.expm(-loops * pace)
    flow = [np.broadcast_to(np.eye(2), step.shape)]
    for _ in range(MOMENTS - 1):
        flow.append(flow[-1] @ step)
    return np.linalg.norm(np.stack(flow, axis=1), ord=2, axis=(2, 3))
