r"""Wide layers: the same response with fewer passes over each layer.

Where a layer no longer fits the cache, reading it is what costs. The average score of a column,
$p_i^\mathsf{T} s_i$, is the scheduled flow times the potential carried through that column, which
the way back has computed already; taking it from there saves a pass. For a single sample the scores
of a layer have rank one, $s_i = \rho_i x_i w$, and its velocity need not be written down at all:
with $d_i = \rho_i x_i^2$ and $m = P^\mathsf{T} w$ the motion behind the layer is $P(\delta - d
\circ m) + w \circ (P d)$.

The price: averages are known to round-off of the scores, not of the score differences. For a column
near a vertex, whose heaviest entry moves by a small difference of large numbers, that is not
enough. `velocities` and `answer` therefore centre twice: what the scores still average to after the
first average is taken off is its error, and one more product finds it. The two routes for a single
sample, which never write a velocity down, cannot do that; they are taken where no entry exceeds 1 -
`NEAR`, and lose two digits at most.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from whorl import _check

Layer = Float[Array, "_out _in"]
Flows = Float[Array, "samples _width"]
Driven = Float[Array, "1 _width"]


@runtime_checkable
class Layered(Protocol):
    """What these kernels read of a network: one matrix and one row of rates per layer."""

    @property
    def layers(self) -> tuple[Array, ...]: ...
    @property
    def rates(self) -> tuple[Array, ...]: ...


WIDE = 128  # from this width on, the layer sum of a response costs more than memory should hold
NEAR = 1e-2  # a column this close to a vertex is centred twice


def is_wide(widths: Sequence[int]) -> bool:
    """Whether any layer is wide enough for the passes to count."""
    return max(widths) >= WIDE


def near_vertex(layers: Sequence[Layer]) -> Bool[Array, ""]:
    """Whether some column lies so close to a vertex that a single sample needs the careful route as
    well.
    """
    return jnp.max(jnp.stack([jnp.max(layer) for layer in layers])) > 1 - NEAR


def either(
    near: Bool[Array, ""] | None,
    careful: Callable[..., Any],
    fast: Callable[..., Any],
    *values: Any,
) -> Any:
    """The careful route near a vertex, the fast one elsewhere.

    Chosen now, or by the compiled program.
    """
    if near is None or not _check.known(near):
        return careful(*values) if near is None else jax.lax.cond(near, careful, fast, *values)
    return (careful if bool(near) else fast)(*values)


def velocities(net: Layered, flows: Sequence[Flows], behind: Sequence[Flows]) -> tuple[Layer, ...]:
    r"""The velocity $M J^\mathsf{T} v$ of every layer, with averages from the fields carried
    back.
    """
    moves = _roughly(net, flows, behind)
    return tuple(
        rough - layer * excess[None, :]
        for layer, (rough, excess) in zip(net.layers, moves, strict=True)
    )


def answer(net: Layered, flows: Sequence[Flows], behind: Sequence[Flows]) -> Flows:
    """K v: the velocities carried forward, their second centring on the way."""
    moved = jnp.zeros_like(flows[0])
    for layer, flow, (rough, excess) in zip(
        net.layers, flows[:-1], _roughly(net, flows, behind), strict=True
    ):
        moved = (moved - flow * excess[None, :]) @ layer.T + flow @ rough.T
    return moved


def _roughly(
    net: Layered, flows: Sequence[Flows], behind: Sequence[Flows]
) -> list[tuple[Layer, Float[Array, "_in"]]]:
    """Velocities centred once, and what each column of them still sums to.

    The error of its average.
    """
    before = (behind[0] @ net.layers[0], *behind[:-1])
    result = []
    for layer, rate, flow, field, carried in zip(
        net.layers, net.rates, flows[:-1], behind, before, strict=True
    ):
        average = rate * jnp.sum(carried * flow, axis=0)
        rough = layer * ((field.T @ flow) * rate[None, :] - average[None, :])
        # As a product, which is several times faster than a sum over columns.
        result.append((rough, jnp.ones(rough.shape[0], dtype=rough.dtype) @ rough))
    return result


def answer_single(net: Layered, flows: Sequence[Flows], behind: Sequence[Flows]) -> Flows:
    """K* v for one sample: two passes over each layer and nothing of a layer's size written."""
    before = (behind[0] @ net.layers[0], *behind[:-1])
    moved = jnp.zeros_like(flows[0])
    for layer, rate, flow, field, carried in zip(
        net.layers, net.rates, flows[:-1], behind, before, strict=True
    ):
        weight = rate[None, :] * flow**2
        both = jnp.concatenate([moved - weight * carried, weight]) @ layer.T
        moved = both[:1] + field * both[1:]
    return moved


def jet_single(
    net: Layered, inputs: Flows, driving: Sequence[Driven], behind: Sequence[Driven]
) -> tuple[Flows, Flows, Flows]:
    r"""`layered.jet` along the exponential path that a potential on one sample drives.

    One product per layer, nothing of its size written.

    With scores $s_i = c_i w$, averages $m_i$ and variances $v_i$, the derivatives of a layer act on
    flows as $Ax = w \circ P(c \circ x) - P(m \circ x)$ and $Bx = w^2 \circ P(c^2 \circ x) - 2w
    \circ P(cm \circ x) + P((m^2 - v) \circ x)$.
    """
    x0, x1, x2 = inputs, jnp.zeros_like(inputs), jnp.zeros_like(inputs)
    for layer, rate, flow, w in zip(net.layers, net.rates, driving[:-1], behind, strict=True):
        c = rate[None, :] * flow
        first, second = jnp.split(jnp.concatenate([w, w**2]) @ layer, 2)
        m, variance = c * first, c**2 * (second - first**2)
        tilted = x1 - m * x0
        parts = [
            x0,
            tilted,
            c * x0,
            x2 - 2 * m * x1 + (m**2 - variance) * x0,
            c * tilted,
            c**2 * x0,
        ]
        y = jnp.split(jnp.concatenate(parts) @ layer.T, 6)
        x0, x1, x2 = y[0], y[1] + w * y[2], y[3] + 2 * w * y[4] + w**2 * y[5]
    return x0, x1, x2
