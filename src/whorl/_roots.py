r"""Square roots of the mobility, $M = S S^\mathsf{T}$, block by block; and a root that can be differentiated where it is zero."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl.network import Network


def safe_root(values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The square root of numbers that are not negative, with the derivative zero where they are zero, instead of infinite."""
    positive = values > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, values, 1.0)), 0.0)


def mobility_roots(net: Network) -> list[Float[Array, "_in _out _out"]]:
    r"""The blocks $S_a$ of a square root of the mobility, $M = S S^\mathsf{T}$, for the columns of every layer."""
    return [jnp.sqrt(rates)[:, None, None] * jax.vmap(_covariance_root)(p.T) for p, rates in zip(net.layers, net.rates, strict=True)]


def through_roots(jac: Float[Array, "n parameters"], roots: Sequence[Array]) -> Float[Array, "n parameters"]:
    """The product J S. The columns of J come in the order of `network.ravel`, a block for every column of every layer."""
    ends = np.cumsum([root[..., 0].size for root in roots])
    parts = zip(jnp.split(jac, ends[:-1], axis=1), roots, strict=True)
    return jnp.concatenate(
        [jnp.einsum("nio,iok->nik", part.reshape(-1, *root.shape[:2]), root).reshape(part.shape) for part, root in parts], axis=1
    )


def _covariance_root(column: Float[Array, "d"]) -> Float[Array, "d d"]:
    """diag(u) (I - u u^T) with u the square root of the column. Its diagonal is a sum, so that no subtraction spoils it."""
    root = safe_root(column)
    itself = jnp.eye(column.shape[0], dtype=bool)
    others = jnp.sum(jnp.where(itself, 0.0, column[None, :]), axis=1)
    return root[:, None] * (jnp.diag(others) - jnp.where(itself, 0.0, jnp.outer(root, root)))
