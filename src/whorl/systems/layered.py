r"""Layers of columns: a network that redistributes a fixed amount of flow (Eqs. 1, 11, 5).

Layer $P^{(\ell)}$ has shape `(out, in)` and columns that sum to one. Inputs are rows of unit mass,
`(samples, in)`; so are targets. The trace of a network is its flows: what enters each layer, and
last the predictions. Motion is carried forward layer by layer, and a potential at the outputs is
carried back the same way; between them they are the Jacobian $J$ and its transpose.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from whorl import _check, _construct, _precision, simplex
from whorl._check import Numbers
from whorl.fast import wide
from whorl.geometry import Simplex, block
from whorl.registry import systems
from whorl.system import Blocks, Matrix, System, Trace

Layer = Float[Array, "_out _in"]
Flows = Float[Array, "samples _width"]


class Streams(eqx.Module):
    """The flow that enters each layer of a network, and last the predictions (Eq. 11).

    Examples:
        >>> streams = net.trace(x)
        >>> len(streams), streams[-1].shape
        (3, (6, 3))
    """

    flows: tuple[Flows, ...]
    near: Bool[Array, ""] | None = (
        None  # of one sample of a wide network: whether a column is near a vertex
    )

    def __getitem__(self, at: Any) -> Any:
        return self.flows[at]

    def __len__(self) -> int:
        return len(self.flows)


@systems.register("network")
class Network(System):
    """A layered flow network.

    Positive columns that sum to one, each with a rate at which it may move.

    `layers` go from input to output, each of shape `(out, in)`. `rates` is one number, one number per
    layer, or one array `(in,)` per layer (one number per column). Entries outside `support` (one
    boolean array per layer; everything, if left out) stay zero.

    Examples:
        >>> net = wh.Network([[[0.7, 0.2], [0.3, 0.8]]])
        >>> net.widths
        (2, 2)
    """

    rates: tuple[Float[Array, "_in"], ...]
    layers: tuple[Layer, ...] = block(Simplex())

    def __init__(
        self,
        layers: Sequence[Numbers],
        *,
        rates: Numbers | Sequence[Numbers] = 1.0,
        support: Sequence[Numbers] | None = None,
    ) -> None:
        self.layers = _construct.layers(layers, support)
        self.rates = _construct.rates(rates, self.layers)

    @classmethod
    def random(
        cls,
        widths: Sequence[int],
        *,
        seed: int | np.random.Generator | None = None,
        imbalance: float = 1.0,
        floor: float = 0.0,
        logits: Sequence[Numbers] | None = None,
        rates: Numbers | Sequence[Numbers] = 1.0,
        support: Sequence[Numbers] | None = None,
        dtype: Any = np.float64,
    ) -> "Network":
        r"""Columns $(1 - f)\,\mathrm{softmax}(\beta z) + f/d$, with standard normal (or given)
        logits $z$.

        `widths` lists the number of nodes from input to output, `imbalance` is $\beta$ and `floor`
        is $f$: the share of every column that is spread evenly over its support.
        """
        widths, dtype = _construct.widths(widths), _construct.floating(dtype)
        beta = _check.number("imbalance", imbalance)
        share = _check.number("floor", floor, least=0.0, most=1.0)
        shapes = list(zip(widths[1:], widths[:-1], strict=True))
        draws = _construct.logits(shapes, seed, logits)
        masks = _construct.masks(shapes, support)
        layers = [
            _construct.columns(beta * z, mask, share).astype(dtype)
            for z, mask in zip(draws, masks, strict=True)
        ]
        return cls(layers, rates=rates, support=support)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of nodes from input to output."""
        return (self.layers[0].shape[1], *(layer.shape[0] for layer in self.layers))

    @property
    def depth(self) -> int:
        """Number of trainable layers."""
        return len(self.layers)

    @property
    def support(self) -> tuple[Array, ...]:
        """Where each layer may carry flow.

        Steps keep zeros zero, so the layers themselves remember it.
        """
        return tuple(layer > 0 for layer in self.layers)

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
        """The widths: every layer is a sum over its columns."""
        return self.widths

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
        return self._flows(inputs)[-1]

    def trace(self, inputs: Flows) -> Streams:
        """The flow that enters each layer, and last the predictions (Eq. 11).

        Examples:
            >>> [flow.shape for flow in net.trace(x).flows]
            [(6, 3), (6, 3), (6, 3)]
        """
        single = inputs.shape[0] == 1 and wide.is_wide(self.widths)
        return Streams(self._flows(inputs), wide.near_vertex(self.layers) if single else None)

    def _flows(self, inputs: Flows) -> tuple[Flows, ...]:
        flows = [inputs]
        for layer in self.layers:
            flows.append(flows[-1] @ layer.T)
        return tuple(flows)

    def check_trace(self, trace: Trace) -> None:
        """Refuse flows so small that the response would be rounded to zero."""
        _precision.refuse_underflow(self.layers, self.rates, trace[:-1])

    def forward(self, trace: Trace, velocities: Blocks) -> Flows:
        r"""How the predictions move when the layers do: $J\dot\theta$ (Eqs. 7, A2).

        Examples:
            >>> still = [jnp.zeros_like(layer) for layer in net.layers]
            >>> float(net.forward(net.trace(x), still).max())
            0.0
        """
        moved = trace[0] @ velocities[0].T
        for layer, flow, velocity in zip(self.layers[1:], trace[1:-1], velocities[1:], strict=True):
            moved = moved @ layer.T + flow @ velocity.T
        return moved

    def back(self, trace: Trace, potential: Flows) -> tuple[Layer, ...]:
        r"""The slope of every column.

        The potential behind its layer times the flow that enters it.
        """
        # All samples meet in one product per layer; their flows are what makes the columns of a
        # layer differ.
        fields = pull_back(self.layers, potential)
        return tuple(field.T @ flow for field, flow in zip(fields, trace[:-1], strict=True))

    def velocities(self, trace: Trace, potential: Flows) -> tuple[Layer, ...]:
        if wide.is_wide(self.widths):
            return wide.velocities(self, trace.flows, pull_back(self.layers, potential))
        return super().velocities(trace, potential)

    def answer(self, trace: Trace, potential: Flows) -> Flows:
        if not wide.is_wide(self.widths):
            return super().answer(trace, potential)
        behind = pull_back(self.layers, potential)
        return wide.either(trace.near, wide.answer, wide.answer_single, self, trace.flows, behind)

    def jet(self, inputs: Flows, scores: Blocks) -> tuple[Flows, Flows, Flows]:
        first = [simplex.velocity(p, s) for p, s in zip(self.layers, scores, strict=True)]
        second = [simplex.acceleration(p, s) for p, s in zip(self.layers, scores, strict=True)]
        return jet(self, inputs, first, second)

    def driven_jet(
        self, inputs: Flows, trace: Trace, potential: Array
    ) -> tuple[Flows, Flows, Flows]:
        def careful(drive: Array) -> tuple[Flows, Flows, Flows]:
            return self.jet(inputs, self.scores(trace, drive))

        def fast(drive: Array) -> tuple[Flows, Flows, Flows]:
            return wide.jet_single(self, inputs, trace.flows, pull_back(self.layers, drive))

        return wide.either(trace.near, careful, fast, potential)

    def contributions(self, trace: Trace) -> Float[Array, "depth n n"]:
        """The sum of Eq. 13, layer by layer."""
        parts = [self.by_column(trace, number).sum(axis=0) for number in range(self.depth)]
        return jnp.stack(parts)

    def by_column(self, trace: Trace, layer: int) -> Float[Array, "columns n n"]:
        """What each column of one layer contributes to the response (Eq. 13)."""
        number = _check.index("layer", layer, self.depth)
        columns, flow, rates = self.layers[number], trace[number], self.rates[number]
        # Q(p) as a sum over pairs of entries, p_j p_k (u_j - u_k)(u_j - u_k)^T: all terms are
        # positive and none cancels.
        one, other = _pairs(columns)
        apart = _apart(self, number, one, other)
        spread = jnp.einsum("aq,qi,bq->iab", apart, columns[one] * columns[other], apart)
        blocks = jnp.einsum("i,ri,si,iab->irasb", rates, flow, flow, spread)
        size = trace[-1].size
        return blocks.reshape(columns.shape[1], size, size)

    def roots(self, trace: Trace) -> tuple[Float[Array, "n _m"], ...]:
        """One column for every pair of entries of every column of the layer."""
        return tuple(self._root(trace, number) for number in range(self.depth))

    def _root(self, trace: Trace, number: int) -> Float[Array, "n m"]:
        columns, flow, rates = self.layers[number], trace[number], self.rates[number]
        one, other = _pairs(columns)
        size = jnp.sqrt(rates[None, :] * columns[one] * columns[other])
        entries = jnp.einsum("si,aq,qi->saqi", flow, _apart(self, number, one, other), size)
        return entries.reshape(trace[-1].size, -1)

    def dense(self, trace: Trace) -> Matrix:
        """The layer sum; for wide layers, column by column from `answer`."""
        return (
            super().dense(trace)
            if wide.is_wide(self.widths)
            else self.contributions(trace).sum(axis=0)
        )


def _pairs(columns: Layer) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of entries of a column."""
    one, other = np.triu_indices(columns.shape[0], k=1)
    return one, other


def _apart(
    net: Network, number: int, one: np.ndarray, other: np.ndarray
) -> Float[Array, "out pairs"]:
    """How differently two entries of a layer's columns reach the outputs."""
    onward = downstream(net)[number]
    return onward[:, one] - onward[:, other]


def downstream(net: Network) -> tuple[Layer, ...]:
    r"""The maps $R^{(\ell)}$ from behind each layer to the outputs; the last is the identity."""
    maps = [jnp.eye(net.widths[-1], dtype=net.dtype)]
    for layer in reversed(net.layers[1:]):
        maps.append(maps[-1] @ layer)
    return tuple(reversed(maps))


def pull_back(layers: Sequence[Layer], potential: Flows) -> tuple[Flows, ...]:
    r"""The potential behind each layer, $R^{(\ell)\mathsf T} v$, for each sample."""
    fields = [potential]
    for layer in reversed(layers[1:]):
        fields.append(fields[-1] @ layer)
    return tuple(reversed(fields))


def jet(
    net: Network, inputs: Flows, first: Sequence[Layer], second: Sequence[Layer]
) -> tuple[Flows, Flows, Flows]:
    r"""Predictions and their first two derivatives along a path of layers with derivatives `first`
    and `second` (Eq. 23).

    Truncated Taylor arithmetic, one layer after the other: no Hessian and no second sweep.

    Examples:
        >>> from whorl.systems import layered
        >>> still = [jnp.zeros_like(layer) for layer in net.layers]
        >>> outputs, first, second = layered.jet(net, x, still, still)
        >>> bool(np.allclose(outputs, wh.predict(net, x))), float(first.max())
        (True, 0.0)
    """
    x0, x1, x2 = inputs, jnp.zeros_like(inputs), jnp.zeros_like(inputs)
    for p, a, b in zip(net.layers, first, second, strict=True):
        x0, x1, x2 = x0 @ p.T, x1 @ p.T + x0 @ a.T, x2 @ p.T + 2 * (x1 @ a.T) + x0 @ b.T
    return x0, x1, x2
