"""Rock, paper, scissors: one column under a score field that conserves and descends nothing."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
from jax import Array

from whorl.explorer.cache import kept
from whorl.explorer.compute import PLANE
from whorl.explorer.state import State
from whorl.explorer.subject import Subject
from whorl.explorer.system import UPDATES, proportions
from whorl.integrability import circulation, integrability, rock_paper_scissors
from whorl.simplex import velocity

PACE = 0.2  # time between two frames


@dataclass(frozen=True, eq=False)
class Orbit(Subject):
    """The path of the column, and what the library says about its field."""

    state: State
    shares: np.ndarray  # (moments, 3)
    rotation: np.ndarray  # eigenvalues of the motion at the centre
    # the score one-form around the orbit: of this field, and of a gradient
    circulations: dict[str, float]
    verdict: str

    @property
    def clock(self) -> tuple[str, float, str]:
        """What a frame is."""
        return "Time", PACE, ""

    @property
    def made(self) -> int:
        """Frames after the first."""
        return len(self.shares) - 1

    def said(self, _frame: int) -> tuple[list[str], str]:
        """The verdict on the field, and what conservation leaves open."""
        known = "Mass is conserved, the orbit is closed, and no loss falls along it."
        return [self.verdict, known], ""


def orbit(state: State) -> Orbit:
    """The orbit through the start of `state`."""
    return _orbit(state.still())


@kept
def _orbit(state: State) -> Orbit:
    begin = proportions(state.start)
    times = PACE * np.arange(UPDATES + 1)
    solved = scipy.integrate.solve_ivp(
        lambda _, p: np.asarray(_motion(p)),
        (0, times[-1]),
        begin,
        "DOP853",
        times,
        rtol=1e-9,
        atol=1e-12,
    )
    shares = solved.y.T
    loop, target = (jnp.asarray(_once_around(shares)),), jnp.asarray(proportions(state.target))
    circulations = {
        "this field": float(circulation(rock_paper_scissors, loop)),
        "a gradient": float(circulation(lambda at: (target - at[0],), loop)),
    }
    verdict = str(integrability(rock_paper_scissors, (jnp.asarray(begin),)))
    return Orbit(state, shares[: state.updates + 1], _rotation(), circulations, verdict)


@jax.jit
def _motion(shares: Array) -> Array:
    return velocity(shares, rock_paper_scissors((shares,))[0])


def _rotation() -> np.ndarray:
    """Eigenvalues of the motion around the centre, in the zero-sum plane."""
    slopes = np.asarray(jax.jacfwd(_motion)(jnp.full(3, 1 / 3)))
    return np.linalg.eigvals(PLANE.T @ slopes @ PLANE)


def _once_around(shares: np.ndarray) -> np.ndarray:
    """The path up to where it has gone around the centre once."""
    x, y = ((shares - 1 / 3) @ PLANE).T
    gone = np.abs(np.unwrap(np.arctan2(y, x)) - np.arctan2(y[0], x[0]))
    whole = np.flatnonzero(gone >= 2 * np.pi)
    return shares[: max(3, int(whole[0]))] if whole.size else shares
