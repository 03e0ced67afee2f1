r"""Learning in continuous time.

$\dot\theta = M J^\mathsf{T} v$ under any boundary law (Eqs. 3, 7, 21).

Integrated in coordinates without boundary. For columns and positive numbers these are logarithms,
where the motion is $\dot z = s$ and the exponential step is one step of Euler's method: positivity
and unit mass hold exactly at every accuracy, and a support stays what it is. The solver is
diffrax's.
"""

import functools
from collections.abc import Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl import _check, _progress
from whorl._check import Count, Numbers
from whorl._show import Shown, plural
from whorl.feedback import BOUNDARY, Law
from whorl.response import response
from whorl.system import Block, System, checked_data, selected_rows


class Flow(Shown, eqx.Module):
    """A system's path through continuous time, at the times asked for.

    Examples:
        >>> path = wh.flow(net, x, y, wh.repair(), [0.0, 1.0], selected=0)
        >>> path.residual.shape, path.at(1).widths
        ((2, 1, 3), (3, 3, 3))
    """

    times: Float[Array, "times"]
    system: Any  # what learned; every array has a leading axis: the times
    residual: Float[Array, "times samples out"]  # of the samples that drive the learning
    steps: Count  # steps the solver took

    @property
    def total_loss(self) -> Float[Array, "times"]:
        """Half the squared residual, summed over the driving samples, at every time."""
        return jnp.sum(self.residual**2, axis=(1, 2)) / 2

    def __str__(self) -> str:
        first, last = float(self.times[0]), float(self.times[-1])
        losses = self.total_loss
        return (
            f"from time {first:g} to {last:g} in {plural(self.steps, 'step')}, "
            f"{plural(self.times.size, 'time')} kept; "
            f"total loss {float(losses[0]):.6e} -> {float(losses[-1]):.6e}"
        )

    def at(self, number: int) -> Any:
        """The system at time number `number`."""
        chosen = _check.index("number", number, self.times.shape[0])
        return jax.tree.map(lambda leaf: leaf[chosen], self.system)


def flow(
    system: System,
    inputs: Numbers,
    targets: Numbers,
    law: Law,
    times: Numbers,
    *,
    selected: int | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    max_steps: int = 100_000,
    progress: bool = False,
) -> Flow:
    """Let `system` learn under `law` and return its state at `times`, the first of which is the
    start.

    The residuals of all samples drive the learning, or that of the `selected` one. `rtol` and
    `atol` bound the error of each step in the coordinates of the blocks, which are logarithms for
    columns and positive numbers. A path that cannot arrive is an error, also inside `jax.jit`;
    derivatives of both modes go through the steps that the solver took.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.
        law: The boundary law, such as `repair()` or `rotational(...)`.
        times: Increasing times, `(times,)`; the first is the start.
        selected: The sample whose residual drives; None, the default, lets all of them.
        rtol: Relative error of a step of the solver.
        atol: Absolute error of a step of the solver.
        max_steps: The most steps that the solver may take.
        progress: Whether to show a bar, on the error stream.

    Returns:
        The system and its residuals at every time.

    Raises:
        ValueError: Where the data do not fit the system, the law cannot act through a response on
            the way, or `max_steps` do not reach the last time.

    Examples:
        >>> path = wh.flow(net, x, y, wh.repair(), [0.0, 1.0], selected=0)
        >>> round(float(path.total_loss[1] / path.total_loss[0]), 6) == round(float(np.exp(-2)), 6)
        True
    """
    inputs, targets = checked_data(system, inputs, targets)
    inputs, targets = selected_rows(inputs, selected), selected_rows(targets, selected)
    _check.instance("law", law, Law, BOUNDARY)
    instants = _checked_times(times, system.dtype)
    law.check(response(system, inputs))
    given = (system, inputs, targets, law, instants, rtol, atol, max_steps)
    with _progress.bar("flow", progress) as bar:
        if _check.known(given):
            # Not by `filter_jit`, which waits where Python hears no interrupt.
            numbers, rest = eqx.partition((*given, bar is not None), eqx.is_array)
            leaves, shape = jax.tree.flatten(rest)
            charts, steps, reached = _progress.waited(_begun(numbers, tuple(leaves), shape))
        else:
            charts, steps, reached = _solve(*given)
    why = "the motion is too stiff for the tolerances, or it runs into a boundary"
    if not _check.known(reached):
        charts = eqx.error_if(
            charts,
            ~reached,
            f"max_steps must be enough to reach the last time, but {max_steps} steps were not: "
            f"{why}",
        )
    elif not reached:
        last = float(instants[-1])
        raise ValueError(
            f"max_steps must be enough to reach time {last:g}, but {int(steps)} steps were not: "
            f"{why}"
        )
    path = jax.vmap(lambda z: _at(system, z))(charts)
    residual = jax.vmap(lambda one: targets - one.outputs(inputs))(path)
    _check.finite("the flow", path, residual)
    result = Flow(instants, path, residual, _check.counted(steps))
    known = _check.known(path, instants)
    for number in range(instants.shape[0]):
        if known:
            _check_inside(result.at(number), f"at time {float(instants[number]):g}")
        law.check(response(result.at(number), inputs))
    return result


class _Meter(diffrax.AbstractProgressMeter):
    """Tells the open bar how much of the time has passed, in hundredths."""

    def init(self) -> Array:
        return jnp.zeros((), dtype=jnp.int32)

    def step(self, state: Array, progress: Any) -> Array:
        here = jnp.floor(_progress.PARTS * jnp.asarray(progress)).astype(jnp.int32)
        jax.lax.cond(here > state, lambda: _progress.told(here, _progress.PARTS), lambda: None)
        return here

    def close(self, state: Array) -> None: ...


@eqx.filter_jit
def _solve(
    system: System,
    inputs: Array,
    targets: Array,
    law: Law,
    times: Array,
    rtol: float,
    atol: float,
    max_steps: int,
    told: bool = False,
) -> tuple[tuple[Block, ...], Array, Array]:
    def drive(_time: Any, charts: tuple[Block, ...], _args: Any) -> tuple[Block, ...]:
        driven = response(_at(system, charts), inputs)
        scores = driven.scores(law(driven, targets - driven.predictions))
        parts = zip(system.geometries, driven.system.blocks, scores, strict=True)
        return tuple(kind.drift(point, score) for kind, point, score in parts)

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(drive),
        diffrax.Dopri8(),
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=tuple(
            kind.chart(point) for kind, point in zip(system.geometries, system.blocks, strict=True)
        ),
        saveat=diffrax.SaveAt(ts=times),
        # The solver lands on every time asked for: its interpolation between steps is less exact
        # than the steps are.
        stepsize_controller=diffrax.ClipStepSizeController(
            diffrax.PIDController(rtol=rtol, atol=atol), step_ts=times
        ),
        max_steps=max_steps,
        throw=False,
        # The one adjoint through which derivatives of both modes pass; a plain call costs the same
        # with any.
        adjoint=diffrax.DirectAdjoint(),
        progress_meter=_Meter() if told else diffrax.NoProgressMeter(),
    )
    assert solution.ys is not None
    return solution.ys, solution.stats["num_steps"], diffrax.is_successful(solution.result)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _begun(numbers: Any, leaves: tuple[Any, ...], shape: Any) -> Any:
    """`_solve`, but for a caller who goes on while it is at work."""
    return _solve(*eqx.combine(numbers, jax.tree.unflatten(shape, leaves)))


def _check_inside(system: System, when: str) -> None:
    """Refuse a state that a geometry let out of its interior, in the geometry's own words."""
    for number, (kind, point) in enumerate(zip(system.geometries, system.blocks, strict=True)):
        kind.check(f"block {number} {when}", point)


def _at(system: System, charts: Sequence[Block]) -> System:
    """The system whose blocks have these coordinates, on the support of `system`."""
    parts = zip(system.geometries, system.blocks, charts, strict=True)
    return system.with_blocks([kind.point(like, chart) for kind, like, chart in parts])


def _checked_times(times: Numbers, dtype: Any) -> Float[Array, "times"]:
    instants = _check.array("times", times, 1, dtype)
    if instants.shape[0] < 2:
        raise ValueError(
            f"times must name at least a start and an end, but it holds {instants.shape[0]}"
        )
    gaps = np.diff(np.asarray(instants)) if _check.known(instants) else np.ones(1)
    if (gaps <= 0).any():
        where = int(np.argmax(gaps <= 0))
        raise ValueError(
            f"times must increase, but time {where + 1} is {float(instants[where + 1]):g} after "
            f"{float(instants[where]):g}"
        )
    return instants
