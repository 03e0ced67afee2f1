r"""The pace of a learner: the rate at which it moves its outputs.

The step of the envelope is a time, so what bounds it must be a rate. Where all parameters are
columns, scores are pure numbers and the rate is 1. Elsewhere it is measured (`measured`), and other
units of parameters, outputs or time change no path.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from whorl.geometry import Flat
from whorl.system import Blocks, System, Trace


class Pace(eqx.Module):
    """What the next update needs to know of those before it."""

    rate: Float[Array, ""]  # the fastest motion of the outputs so far, relative to their residual
    longest: Float[Array, ""]  # the longest step so far
    still: Int[Array, ""]  # updates in a row whose step was below the round-off of the longest

    def stepped(self, step: Array) -> "Pace":
        """The pace after an update of this step."""
        step = step.astype(self.longest.dtype)
        longest = jnp.maximum(self.longest, step)
        # A step of zero where nothing has moved yet is a residual of zero.
        short = (step < jnp.finfo(longest.dtype).eps * longest) & (longest > 0)
        return Pace(self.rate, longest, jnp.where(short, self.still + 1, 0))

    def stalled(self, samples: Array | int) -> Bool[Array, ""]:
        """Whether no step of a whole pass over the samples could move anything."""
        return self.still >= samples


def at_rest(system: System) -> Pace | None:
    """The pace before the first update; None where all parameters are columns."""
    if system.unitless:
        return None
    none = jnp.zeros((), dtype=system.dtype)
    return Pace(none, none, jnp.zeros((), dtype=jnp.int32))


def measured(
    pace: Pace | None,
    scale: ArrayLike,
    system: System,
    trace: Trace,
    scores: Blocks,
    error: Array,
    targets: Array,
) -> Pace | None:
    r"""The pace with the motion of the outputs along a score.

    The rate is $\lVert\dot F\rVert / \lVert e\rVert$, each the largest entry, or that of the updates
    before if it is more: a step never grows because a learner slows down, as it does at an optimum
    that leaves a residual. Along `Flat` blocks that declare no `size` the second derivative counts,
    too: there the rate is the $s/\eta$ at which
    $\eta\lVert\dot F\rVert + \frac12\eta^2\lVert\ddot F\rVert = s\lVert e\rVert$. A residual below
    the root of round-off, relative to the targets, counts as no smaller: for a rule that compares
    two states it is round-off.

    Args:
        pace: That of the updates before; None for columns, which need none.
        scale: The step scale s.
        system: What learns.
        trace: Its trace at the inputs that drive the update.
        scores: The score of every block.
        error: The residuals that drive the update, `(samples, out)`.
        targets: Their targets, `(samples, out)`.
    """
    if pace is None:
        return None
    least = float(jnp.finfo(error.dtype).eps) ** 0.5 * jnp.max(jnp.abs(targets))
    size = jnp.maximum(jnp.max(jnp.abs(error)), least)
    known = jnp.where(size > 0, size, 1.0)
    if any(isinstance(kind, Flat) and kind.size is None for kind in system.geometries):
        _, moved, bent = system.jet(trace[0], scores)
        first, second = _largest(moved) / known, _largest(bent) / known
        inside = first**2 + 2 * jnp.asarray(scale).astype(first.dtype) * second
        root = jnp.sqrt(jnp.where(inside > 0, inside, 1.0))
        rate = (first + jnp.where(inside > 0, root, 0.0)) / 2
    else:
        rate = _largest(system.forward(trace, system.velocities_of(scores))) / known
    rate = jnp.where(size > 0, rate, 0.0).astype(pace.rate.dtype)
    rate = jnp.maximum(pace.rate, rate)
    return Pace(rate, pace.longest, pace.still)


def _largest(values: Any) -> Float[Array, ""]:
    return jnp.max(jnp.abs(values))
