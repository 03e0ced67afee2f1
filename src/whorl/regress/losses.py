r"""The losses of a one-layer fit, with their first two derivatives.

The layer is $P$, of shape `(parts out, parts in)`, with columns on the simplex, and the prediction
of a row is $q = Px$. Both losses are means over rows with weights $w$ that sum to one:

- *squared*: $\frac12 \sum_r w_r |y_r - Px_r|^2$. It needs the data once, for the moments $A =
  \sum_r w_r x_r x_r^\mathsf{T}$ and $B = \sum_r w_r y_r x_r^\mathsf{T}$; after that no cost depends
  on the number of rows.
- *Kullback-Leibler*: $\sum_r w_r \sum_i y_{ri} \log (y_{ri} / q_{ri})$, the mean deviance of a
  multinomial up to a factor of two.

Both are convex, and both have a second derivative that couples the parts in but never the parts
out: one matrix $H_i$ per row of $P$. That is what makes a Newton step cheap (`descent`).

All arrays have a leading axis of problems that share their inputs (`b`), so that a bootstrap is one
call. They may be NumPy's, or JAX's to run on an accelerator.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

SAMPLE = 1 << 15  # rows
BLOCK = 1 << 17  # numbers in a block of products of two inputs: what a cache holds
LEAST = 1e-150  # a prediction that vanished; its square is still a number
ROUNDS = 8  # of EM, each of which costs a sixth of a Newton step
Layers = Float[Any, "b out in"]
Curves = Float[Any, "b _out in in"]


def space(array: Any) -> Any:
    """The namespace that an array belongs to, NumPy's or JAX's."""
    return jnp if isinstance(array, jax.Array) else np


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Squared:
    """Half the weighted mean of the squared residual, from its moments."""

    second: Float[Any, "b in in"]  # A
    cross: Float[Any, "b out in"]  # B
    constant: Float[Any, "b"]  # half the mean square of the targets

    def seen(self, layer: Layers) -> Layers:
        """What the other members share at a layer: its product with the second moment."""
        return layer @ self.second

    def slopes(self, seen: Layers) -> tuple[Layers, Curves]:
        """First and second derivative."""
        return seen - self.cross, self.second[:, None]

    def begun(self, layer: Layers) -> Layers:
        """Where a descent may as well begin: here, since a quadratic loss is one step away."""
        return layer

    def value(self, layer: Layers, seen: Layers) -> Float[Any, "b"]:
        """The loss."""
        return self.constant + (layer * (seen / 2 - self.cross)).sum(axis=(1, 2))

    def only(self, which: np.ndarray) -> "Squared":
        """Some of the problems."""
        return Squared(self.second[which], self.cross[which], self.constant[which])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Divergence:
    """The weighted mean of the Kullback-Leibler divergence of the prediction from the target."""

    inputs: Float[Any, "in n"]
    targets: Float[Any, "b out n"]  # times the weights of their rows
    constant: Float[Any, "b"]  # the entropy term
    pairs: Float[Any, "n _pairs"] | None = None  # products of two inputs, where they are few
    sample: Int[Any, "_few"] | None = None  # rows that the second derivative is estimated from

    def seen(self, layer: Layers) -> Float[Any, "b out n"]:
        """What the other members share at a layer: the predictions."""
        b, out, width = layer.shape
        made = (layer.reshape(b * out, width) @ self.inputs).reshape(b, out, -1)
        return space(made).maximum(made, LEAST)

    def slopes(self, seen: Float[Any, "b out n"]) -> tuple[Layers, Curves]:
        """First and second derivative."""
        ratio = self.targets / seen
        (b, out, n), width = ratio.shape, self.inputs.shape[0]
        first = -(ratio.reshape(b * out, n) @ self.inputs.T).reshape(b, out, width)
        if self.sample is None:
            second = _gram(self.inputs, (ratio / seen).reshape(b * out, n), self.pairs)
        else:
            few = (ratio[..., self.sample] / seen[..., self.sample]).reshape(b * out, -1)
            second = _gram(self.inputs[:, self.sample], few * (n / self.sample.size))
        return first, second.reshape(b, out, width, width)

    def begun(self, layer: Layers) -> Layers:
        """Where a descent may as well begin: after some rounds of EM, which cannot go wrong."""
        for _ in range(ROUNDS):
            b, out, n = self.targets.shape
            ratio = (self.targets / self.seen(layer)).reshape(b * out, n)
            layer = layer * ((ratio @ self.inputs.T).reshape(layer.shape) + LEAST)
            layer = layer / layer.sum(axis=1, keepdims=True)
        return layer

    def value(self, layer: Layers, seen: Float[Any, "b out n"]) -> Float[Any, "b"]:
        """The loss."""
        del layer
        return self.constant - (self.targets * space(seen).log(seen)).sum(axis=(1, 2))

    def only(self, which: np.ndarray) -> "Divergence":
        """Some of the problems."""
        return replace(self, targets=self.targets[which], constant=self.constant[which])

    def thinned(self) -> "Divergence":
        """The same loss on some of its rows, for a first guess."""
        assert self.sample is not None
        few = self.sample[: max(self.sample.size // 8, 1)]
        grown = self.targets[..., few] * (self.targets.shape[2] / few.size)
        return replace(self, inputs=self.inputs[:, few], targets=grown, pairs=None, sample=None)


Loss = Squared | Divergence


def squared(
    inputs: Float[Any, "n in"], targets: Float[Any, "... n out"], weights: Float[Any, "... n"]
) -> Squared:
    """The squared loss of rows.

    Targets, weights or both may have a leading axis of problems; weights are made to sum to one.
    """
    targets, shares = _batched(targets, weights)
    n, width = inputs.shape
    second = _gram(inputs.T, shares).reshape(-1, width, width)
    mass = (shares[:, :, None] * targets).swapaxes(1, 2)
    cross = (mass.reshape(-1, n) @ inputs).reshape(mass.shape[0], mass.shape[1], width)
    return Squared(second, cross, (mass.swapaxes(1, 2) * targets).sum(axis=(1, 2)) / 2)


def divergence(
    inputs: Float[Any, "n in"], targets: Float[Any, "... n out"], weights: Float[Any, "... n"]
) -> Divergence:
    """The Kullback-Leibler loss of rows, with arguments as in `squared`."""
    targets, shares = _batched(targets, weights)
    xp, n = space(shares), inputs.shape[0]
    mass = (shares[:, :, None] * targets).swapaxes(1, 2)
    logs = xp.log(xp.where(targets > 0, targets, 1.0)).swapaxes(1, 2)
    # A second derivative need not be exact for the optimum to be: of many rows some are enough.
    few = None if n <= 2 * SAMPLE else np.random.default_rng(0).permutation(n)[:SAMPLE]
    rows = inputs.T
    if xp is np:
        rows, mass = np.ascontiguousarray(rows), np.ascontiguousarray(mass)
    pairs = _pairs(rows).T if rows.shape[0] * rows.size <= BLOCK else None
    return Divergence(rows, mass, (mass * logs).sum(axis=(1, 2)), pairs, few)


LOSSES = {"squared": squared, "kl": divergence}


def _batched(targets: Any, weights: Any) -> tuple[Any, Any]:
    targets = targets if targets.ndim == 3 else targets[None]
    weights = weights if weights.ndim == 2 else weights[None]
    return targets, weights / weights.sum(axis=1, keepdims=True)


def _gram(
    inputs: Float[Any, "in n"], weights: Float[Any, "m n"], pairs: Any = None
) -> Float[Any, "m _pairs"]:
    """Weighted second moments of the inputs, for many rows of weights at once.

    Each is a product with the products of two inputs. Where those are not at hand they are made
    block by block: they never fill more than a cache, and one pass over them serves all weights.
    """
    if pairs is not None:
        return weights @ pairs
    if len(weights) == 1:
        return ((inputs * weights) @ inputs.T).reshape(1, -1)
    width, n = inputs.shape
    length = max(BLOCK // width**2, 1)
    total = space(inputs).zeros((weights.shape[0], width * width))
    for start in range(0, n, length):
        rows = inputs[:, start : start + length]
        total = total + weights[:, start : start + length] @ _pairs(rows).T
    return total


def _pairs(rows: Float[Any, "in n"]) -> Float[Any, "_pairs n"]:
    return (rows[:, None] * rows[None]).reshape(len(rows) ** 2, -1)
