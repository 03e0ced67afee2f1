r"""Layers of columns: a network that redistributes a fixed amount of flow (Eqs. 1, 11, 5).

Layer $P^{(\ell)}$ has shape `(out, in)` and columns that sum to one. Inputs are rows of unit mass, `(samples, in)`; so are targets.
Motion is carried forward by `push_forward` and a potential at the outputs is carried back by `pull_back`: between them they are the
Jacobian $J$ and its transpose, and no other file needs to know what a layer is made of.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from whorl import _check, _construct, simplex
from whorl._check import Numbers

Layer = Float[Array, "_out _in"]
Flows = Float[Array, "samples _width"]


class Network(eqx.Module):
    """A layered flow network: positive columns that sum to one, each with a rate at which it may move.

    `layers` go from input to output, each of shape `(out, in)`. `rates` is one number, one number a layer, or one array `(in,)` a
    layer (one number a column). Entries outside `support` (one boolean array a layer; everything, if left out) are zero for ever.

    Examples:
        >>> net = wh.Network([[[0.7, 0.2], [0.3, 0.8]]])
        >>> net.widths
        (2, 2)
    """

    layers: tuple[Layer, ...]
    rates: tuple[Float[Array, "_in"], ...]

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
        r"""Columns $(1 - f)\,\mathrm{softmax}(\beta z) + f/d$, with standard normal (or given) logits $z$.

        `widths` lists the number of nodes from input to output, `imbalance` is $\beta$ and `floor` is $f$: the share of every
        column that is spread evenly over its support.
        """
        widths, dtype = _construct.widths(widths), _construct.floating(dtype)
        beta = _check.number("imbalance", imbalance)
        share = _check.number("floor", floor, least=0.0)
        if share > 1:
            raise ValueError(f"floor must be at most 1, but it is {share:g}")
        shapes = list(zip(widths[1:], widths[:-1], strict=True))
        draws = _construct.logits(shapes, seed, logits)
        masks = _construct.masks(shapes, support)
        layers = [_construct.columns(beta * z, mask, share).astype(dtype) for z, mask in zip(draws, masks, strict=True)]
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
        """Where each layer may carry flow. Steps keep zeros zero, so the layers themselves remember it."""
        return tuple(layer > 0 for layer in self.layers)

    @property
    def dtype(self) -> Any:
        """The floating type everything about this network is computed in."""
        return self.layers[0].dtype

    def with_layers(self, layers: Sequence[Array]) -> "Network":
        """The same network, or stack of networks, at another state. Not checked again: the layers come from a step or a flow."""
        return eqx.tree_at(lambda net: net.layers, self, tuple(layers))

    def stepped(self, scores: Sequence[Layer], size: ArrayLike) -> "Network":
        """The network one exponential step along `scores` away (Eq. 4)."""
        return self.with_layers([simplex.step(p, s, size) for p, s in zip(self.layers, scores, strict=True)])


def checked_data(net: Network, inputs: Numbers, targets: Numbers) -> tuple[Array, Array]:
    """Inputs and targets that fit the network and each other."""
    _check.instance("net", net, Network)
    inputs = _check.compositions("inputs", inputs, net.widths[0], net.dtype)
    targets = _check.compositions("targets", targets, net.widths[-1], net.dtype)
    _check.same_samples(inputs, targets)
    return inputs, targets


def flows(net: Network, inputs: Flows) -> tuple[Flows, ...]:
    """The flow that enters each layer, and last the predictions (Eq. 11).

    Examples:
        >>> from whorl import network
        >>> [flow.shape for flow in network.flows(net, x)]
        [(6, 3), (6, 3), (6, 3)]
    """
    result = [inputs]
    for layer in net.layers:
        result.append(result[-1] @ layer.T)
    return tuple(result)


def predict(net: Network, inputs: Numbers) -> Float[Array, "samples out"]:
    """What flows out at each output, for each sample.

    Examples:
        >>> print(wh.predict(wh.Network([[[0.7, 0.2], [0.3, 0.8]]]), [[1.0, 0.0], [0.5, 0.5]]))
        [[0.7  0.3 ]
         [0.45 0.55]]
    """
    _check.instance("net", net, Network)
    return flows(net, _check.compositions("inputs", inputs, net.widths[0], net.dtype))[-1]


def residual(net: Network, inputs: Numbers, targets: Numbers) -> Float[Array, "samples out"]:
    """Target minus prediction (Eq. 5): rows that sum to zero.

    Examples:
        >>> bool(np.allclose(wh.residual(net, x, y).sum(axis=1), 0))
        True
    """
    inputs, targets = checked_data(net, inputs, targets)
    return targets - flows(net, inputs)[-1]


def loss(net: Network, inputs: Numbers, targets: Numbers, *, mean: bool = False) -> Float[Array, ""]:
    """Half the squared residual, summed over samples (Eq. 5), or its mean over samples.

    Examples:
        >>> float(wh.loss(net, x, y)) > float(wh.loss(net, x, y, mean=True))
        True
    """
    error = residual(net, inputs, targets)
    return jnp.sum(error**2) / (2 * error.shape[0] if mean else 2)


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


def push_forward(net: Network, flows: Sequence[Flows], velocities: Sequence[Layer]) -> Flows:
    r"""How the predictions move when the layers do: $J\dot\theta$ (Eqs. 7, A2).

    Examples:
        >>> from whorl import network
        >>> still = [jnp.zeros_like(layer) for layer in net.layers]
        >>> float(network.push_forward(net, network.flows(net, x), still).max())
        0.0
    """
    moved = flows[0] @ velocities[0].T
    for layer, flow, velocity in zip(net.layers[1:], flows[1:-1], velocities[1:], strict=True):
        moved = moved @ layer.T + flow @ velocity.T
    return moved


def jet(net: Network, inputs: Flows, first: Sequence[Layer], second: Sequence[Layer]) -> tuple[Flows, Flows, Flows]:
    r"""Predictions and their first two derivatives along a path of layers with derivatives `first` and `second` (Eq. 23).

    Truncated Taylor arithmetic, one layer after the other: no Hessian and no second sweep.

    Examples:
        >>> from whorl import network
        >>> still = [jnp.zeros_like(layer) for layer in net.layers]
        >>> outputs, first, second = network.jet(net, x, still, still)
        >>> bool(np.allclose(outputs, wh.predict(net, x))), float(first.max())
        (True, 0.0)
    """
    x0, x1, x2 = inputs, jnp.zeros_like(inputs), jnp.zeros_like(inputs)
    for p, a, b in zip(net.layers, first, second, strict=True):
        x0, x1, x2 = x0 @ p.T, x1 @ p.T + x0 @ a.T, x2 @ p.T + 2 * (x1 @ a.T) + x0 @ b.T
    return x0, x1, x2


def score_jet(net: Network, inputs: Flows, scores: Sequence[Layer]) -> tuple[Flows, Flows, Flows]:
    """`jet` along the exponential path of a score."""
    first = [simplex.velocity(p, s) for p, s in zip(net.layers, scores, strict=True)]
    second = [simplex.acceleration(p, s) for p, s in zip(net.layers, scores, strict=True)]
    return jet(net, inputs, first, second)


def ravel(layers: Sequence[Array]) -> Float[Array, "parameters"]:
    r"""One vector $\theta$: the columns of the first layer, then of the next (Eq. 1)."""
    return jnp.concatenate([layer.T.ravel() for layer in layers])


def unravel(like: Sequence[Array], vector: Float[Array, "parameters"]) -> tuple[Array, ...]:
    """Undo `ravel`, with the shapes of `like`."""
    sizes = np.cumsum([layer.size for layer in like])[:-1]
    parts = jnp.split(vector, sizes)
    return tuple(part.reshape(layer.T.shape).T for part, layer in zip(parts, like, strict=True))


def selected_rows(values: Array, selected: int | None, name: str = "selected") -> Array:
    """All samples, or the chosen one as a batch of one."""
    if selected is None:
        return values
    chosen = _check.index(name, selected, values.shape[0])
    return jax.lax.slice_in_dim(values, chosen, chosen + 1, axis=0)
