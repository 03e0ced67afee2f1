r"""Layers of columns with units between them that reshape a flow without changing its amount.

A unit maps the flow $x$ behind a layer, row by row, to another of the same mass before the next:
$\sum_i u_i(x) = \sum_i x_i$. Two are given.

- `competition`: $u_i = S\, x_i^\gamma / \sum_j x_j^\gamma$ with $S = \sum_j x_j$. Above
  $\gamma = 1$ the strong grow at the cost of the weak, below they are evened out, at 1 nothing
  happens.
- `saturating`: a node takes $a(x) = cx/(c + x)$ of what arrives, and never more than its capacity
  $c$; the rest is spread evenly over all nodes, $u_i = a(x_i) + \frac1n \sum_j (x_j - a(x_j))$.

Any function of rows that keeps their mass is a unit; it is tried when the system is made, and again
wherever a response is asked for.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from whorl import _check, _precision, simplex
from whorl._check import Numbers
from whorl.geometry import Simplex, block
from whorl.registry import systems
from whorl.system import Blocks, System, Trace
from whorl.systems.layered import Flows, Layer, Network

TRIED = 16  # random rows on which a unit is tried, besides the corners and the middle


class Unit(eqx.Module):
    """What happens to a flow between two layers.

    Give `__call__`; `forward` and `back` are its derivative and the transpose, for which automatic
    differentiation is taken unless something faster is given.

    Examples:
        >>> print(wh.competition(2.0)(jnp.array([[0.5, 0.25, 0.25]])))
        [[0.66666667 0.16666667 0.16666667]]
    """

    @abstractmethod
    def __call__(self, flow: Flows) -> Flows:
        """The flow behind the unit."""

    def forward(self, flow: Flows, moved: Flows) -> Flows:
        """How the flow behind the unit moves when that before it does."""
        return jax.jvp(self, (flow,), (moved,))[1]

    def back(self, flow: Flows, potential: Flows) -> Flows:
        """The potential before the unit, from that behind it."""
        return jax.vjp(self, flow)[1](potential)[0]


class Competition(Unit):
    """Shares in proportion to a power of the flow."""

    gamma: Float[Array, ""]

    def __call__(self, flow: Flows) -> Flows:
        # Against the largest, so that no power underflows for all nodes at once; what is zero stays
        # zero, also where its power has no slope.
        top = jax.lax.stop_gradient(jnp.max(flow, axis=1, keepdims=True))
        some = flow > 0
        safe = jnp.where(some, flow, 1.0) / jnp.where(top > 0, top, 1.0)
        grown = jnp.where(some, safe ** self.gamma.astype(flow.dtype), 0.0)
        whole = jnp.sum(grown, axis=1, keepdims=True)
        return jnp.sum(flow, axis=1, keepdims=True) * grown / jnp.where(whole > 0, whole, 1.0)

    def forward(self, flow: Flows, moved: Flows) -> Flows:
        out, mass = self(flow), _mass(flow)
        pushed = self._relative(flow, moved)
        rise = jnp.sum(moved, axis=1, keepdims=True) - jnp.sum(out * pushed, axis=1, keepdims=True)
        return out * (pushed + rise / mass)

    def back(self, flow: Flows, potential: Flows) -> Flows:
        out, mass = self(flow), _mass(flow)
        mean = jnp.sum(out * potential, axis=1, keepdims=True) / mass
        return self._relative(flow, out * (potential - mean)) + mean

    def _relative(self, flow: Flows, moved: Flows) -> Flows:
        some = flow > 0
        gain = self.gamma.astype(flow.dtype)
        return jnp.where(some, gain * moved / jnp.where(some, flow, 1.0), 0.0)


class Saturating(Unit):
    """Each node up to its capacity, the rest evenly over all."""

    capacity: Float[Array, ""]

    def __call__(self, flow: Flows) -> Flows:
        limit = self.capacity.astype(flow.dtype)
        over = flow**2 / (limit + flow)
        return flow - over + jnp.mean(over, axis=1, keepdims=True)

    def forward(self, flow: Flows, moved: Flows) -> Flows:
        over = self._slope(flow) * moved
        return moved - over + jnp.mean(over, axis=1, keepdims=True)

    def back(self, flow: Flows, potential: Flows) -> Flows:
        return potential - self._slope(flow) * (
            potential - jnp.mean(potential, axis=1, keepdims=True)
        )

    def _slope(self, flow: Flows) -> Flows:
        limit = self.capacity.astype(flow.dtype)
        return flow * (2 * limit + flow) / (limit + flow) ** 2


class Own(Unit):
    """A user's function."""

    function: Callable[[Array], Any] = eqx.field(static=True)

    def __call__(self, flow: Flows) -> Flows:
        return jnp.asarray(self.function(flow), dtype=flow.dtype)


@systems.register("transport")
class Transport(System):
    """A layered network with units between its layers.

    `net` gives layers and rates, at least two layers of them; `unit` stands between every two:
    `competition(...)`, `saturating(...)`, your own `Unit`, or a function of rows that keeps their
    mass.

    Raises:
        ValueError: Where the unit does not keep the shape, the sign or the mass of a flow.

    Examples:
        >>> mill = wh.Transport(net, wh.competition(2.0))
        >>> bool(np.allclose(wh.predict(mill, x).sum(axis=1), 1, rtol=0, atol=1e-15))
        True
        >>> wh.Transport(net, lambda flow: 0.9 * flow)
        Traceback (most recent call last):
        ValueError: unit must conserve mass, but behind layer 0 it makes 0.9 of 1
    """

    rates: tuple[Float[Array, "_in"], ...]
    unit: Unit
    layers: tuple[Layer, ...] = block(Simplex())

    def __init__(self, net: Network, unit: Unit | Callable[[Array], Any]) -> None:
        _check.instance("net", net, Network)
        if net.depth < 2:
            raise ValueError("net must have at least 2 layers, with units between, but it has 1")
        if not callable(unit):
            raise ValueError(
                "unit must be competition(...), saturating(...) or a function of rows, but it is "
                f"{_check.shown(unit)}"
            )
        self.layers, self.rates = net.layers, net.rates
        self.unit = unit if isinstance(unit, Unit) else Own(unit)
        if _check.known(self.unit):
            for number, width in enumerate(net.widths[1:-1]):
                self._try(number, _rows(width, self.dtype))

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of nodes from input to output."""
        return (self.layers[0].shape[1], *(layer.shape[0] for layer in self.layers))

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of inputs and number of outputs."""
        return self.widths[0], self.widths[-1]

    @property
    def block_rates(self) -> tuple[Float[Array, "1 _in"], ...]:
        """One rate per column of every layer."""
        return tuple(rate[None, :] for rate in self.rates)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The widths, those with a unit twice."""
        return (*self.widths, *self.widths[1:-1])

    def basis(self) -> Float[np.ndarray, "out e"]:
        """The zero-sum directions: no mass is ever made or lost."""
        return simplex.tangent_basis(self.widths[-1])

    def checked_inputs(self, inputs: Numbers) -> Float[Array, "samples in"]:
        """Rows of unit mass."""
        return _check.compositions("inputs", inputs, self.widths[0], self.dtype)

    def checked_targets(self, targets: Numbers) -> Float[Array, "samples out"]:
        """Rows of unit mass."""
        return _check.compositions("targets", targets, self.widths[-1], self.dtype)

    def outputs(self, inputs: Flows) -> Flows:
        """What flows out at each output, for each sample."""
        return self.trace(inputs)[-1]

    def trace(self, inputs: Flows) -> Trace:
        """Inputs; before and behind the unit of every layer but the last; outputs."""
        flow, between = inputs, []
        for layer in self.layers[:-1]:
            before = flow @ layer.T
            flow = self.unit(before)
            between.append((before, flow))
        return (inputs, *between, flow @ self.layers[-1].T)

    def check_trace(self, trace: Trace) -> None:
        """Refuse flows whose mass the unit changes, and those too small for the precision."""
        for number, (before, _) in enumerate(trace[1:-1]):
            self._try(number, np.asarray(before))
        _precision.refuse_underflow(self.layers, self.rates, _entering(trace))

    def forward(self, trace: Trace, velocities: Blocks) -> Flows:
        r"""How the predictions move when the layers do: $J\dot\theta$."""
        moved = trace[0] @ velocities[0].T
        for at, layer, velocity in zip(trace[1:-1], self.layers[1:], velocities[1:], strict=True):
            moved = self.unit.forward(at[0], moved) @ layer.T + at[1] @ velocity.T
        return moved

    def back(self, trace: Trace, potential: Flows) -> tuple[Layer, ...]:
        """The slope of every column.

        The potential behind its layer times the flow that enters it.
        """
        fields = [potential]
        for at, layer in zip(reversed(trace[1:-1]), reversed(self.layers[1:]), strict=True):
            fields.append(self.unit.back(at[0], fields[-1] @ layer))
        ends = zip(reversed(fields), _entering(trace), strict=True)
        return tuple(field.T @ flow for field, flow in ends)

    def _try(self, number: int, rows: np.ndarray) -> None:
        """Refuse a unit that does not keep the shape, the sign or the mass of these rows."""
        seen = np.asarray(self.unit(jnp.asarray(rows)))
        where = f"behind layer {number}"
        if seen.shape != rows.shape:
            raise ValueError(
                f"unit must keep the shape of a flow, {rows.shape}, but {where} it returns "
                f"{seen.shape}"
            )
        if not np.isfinite(seen).all() or (seen < 0).any():
            bad = seen[~(np.isfinite(seen) & (seen >= 0))][0]
            raise ValueError(f"unit must keep flows non-negative, but {where} it returns {bad:g}")
        made, had = seen.sum(axis=1, dtype=float), rows.sum(axis=1, dtype=float)
        off = np.abs(made - had) > _check.mass_tolerance(rows.dtype)
        if off.any():
            at = int(np.argmax(off))
            raise ValueError(
                f"unit must conserve mass, but {where} it makes {made[at]:.6g} of {had[at]:.6g}"
            )


def competition(gamma: ArrayLike) -> Unit:
    r"""The unit in which nodes compete: $u_i \propto x_i^\gamma$.

    Args:
        gamma: The power, above 0; 1 leaves every flow as it is.

    Returns:
        The unit.

    Examples:
        >>> wh.competition(1.0)(jnp.array([[0.5, 0.25, 0.25]])).tolist()
        [[0.5, 0.25, 0.25]]
    """
    return Competition(_check.scalar("gamma", gamma, above=0.0))


def saturating(capacity: ArrayLike) -> Unit:
    r"""The unit whose nodes saturate: $cx/(c + x)$ goes on, the rest is spread evenly.

    Args:
        capacity: The most that a node takes by itself, above 0, in units of the flow.

    Returns:
        The unit.

    Examples:
        >>> print(np.round(wh.saturating(0.5)(jnp.array([[1.0, 0.0]])), 6))
        [[0.666667 0.333333]]
    """
    return Saturating(_check.scalar("capacity", capacity, above=0.0))


def _entering(trace: Trace) -> tuple[Flows, ...]:
    """The flow that enters every layer."""
    return (trace[0], *(behind for _, behind in trace[1:-1]))


def _mass(flow: Flows) -> Float[Array, "samples 1"]:
    whole = jnp.sum(flow, axis=1, keepdims=True)
    return jnp.where(whole > 0, whole, 1.0)


def _rows(width: int, dtype: Any) -> np.ndarray:
    """Corners, the middle, and random rows of unit mass."""
    drawn = np.random.default_rng(0).dirichlet(np.ones(width), TRIED)
    return np.concatenate([np.eye(width), np.full((1, width), 1 / width), drawn]).astype(dtype)
