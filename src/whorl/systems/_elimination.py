r"""Equations of what passes on and leaks, solved without a single subtraction.

Nodes pass something on to each other and lose some of it: walkers on a graph that are absorbed,
currents in a circuit that reach a node of known voltage. The matrix is
$A = \mathrm{diag}(\text{what leaves}) - \text{among}$, where what leaves a node is all that it
passes on and all that it loses. Its diagonal, once rounded, has forgotten a leak far smaller than
what circulates, and with it the answer. So the diagonal is never formed: nodes are taken out one by
one, those that are left inherit their connections and their leaks, and every number is a sum, a
product or a quotient of positive ones (Grassmann, Taksar and Heyman, Operations Research 33, 1985).
Each entry of $A^{-1}$ keeps its relative precision, whatever the ratio of the numbers; a right-hand
side of either sign is answered to within round-off of $A^{-1}|b|$. It needs no LAPACK, and goes
through `jit` and `vmap`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Reduced(NamedTuple):
    """What taking out all nodes, the last first, leaves behind."""

    between: Float[Array, "n n"]  # connections of each node to those before it, when it went
    left: Float[Array, "n"]  # all that left each node then


# Compiled here: a loop that is not is compiled anew at every call.
@jax.jit
def reduce(among: Float[Array, "n n"], leaving: Float[Array, "n"]) -> Reduced:
    """Take out all nodes.

    Args:
        among: What nodes pass on, to and from, `(n, n)`; the diagonal counts for nothing.
        leaving: What each node loses, `(n,)`; from every node some loss must be within reach.

    Returns:
        What `solve` needs.
    """
    size = len(leaving)
    number = jnp.arange(size)

    def without(step: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        between, out, left = carry
        k = size - 1 - step
        down, across = (jnp.where(number < k, line, 0.0) for line in (between[:, k], between[k]))
        whole = out[k] + jnp.sum(down)
        inherited = between + jnp.outer(down / whole, across)
        return inherited, out + out[k] / whole * across, left.at[k].set(whole)

    start = (among, leaving, jnp.ones_like(leaving))
    between, _, left = jax.lax.fori_loop(0, size, without, start)
    return Reduced(between, left)


@jax.jit
def solve(reduced: Reduced, fed: Float[Array, "n _sides"]) -> Float[Array, "n _sides"]:
    """What passes each node, per unit of what leaves it, where this is fed in.

    Examples:
        >>> from whorl.systems import _elimination
        >>> chain = _elimination.reduce(jnp.array([[0.0, 1.0], [1.0, 0.0]]), jnp.array([1e-20, 0]))
        >>> print(_elimination.solve(chain, jnp.array([[0.0], [1.0]])).T)
        [[1.e+20 1.e+20]]
    """
    between, left = reduced
    size = len(left)
    number = jnp.arange(size)

    def onward(step: Array, fed: Array) -> Array:
        k = size - 1 - step
        down = jnp.where(number < k, between[:, k], 0.0)
        return fed + jnp.outer(down / left[k], fed[k])

    fed = jax.lax.fori_loop(0, size, onward, fed)

    def again(k: Array, found: Array) -> Array:
        before = jnp.where(number < k, between[k], 0.0)
        return found.at[k].set((fed[k] + before @ found) / left[k])

    return jax.lax.fori_loop(0, size, again, jnp.zeros_like(fed))


@jax.custom_jvp
def inverse(among: Float[Array, "n n"], leaving: Float[Array, "n"]) -> Float[Array, "n n"]:
    r"""How often each node is passed, column by column, by a unit that starts at each: $A^{-1}$.

    Args:
        among: What nodes pass on, as for `reduce`.
        leaving: What each node loses.

    Returns:
        The inverse, `(n, n)`, with derivatives of any order from
        $\mathrm{d}A^{-1} = -A^{-1}\,\mathrm{d}A\,A^{-1}$.

    Examples:
        >>> from whorl.systems._elimination import inverse
        >>> print(np.round(inverse(jnp.array([[0.0, 0.5], [0.5, 0.0]]), jnp.array([0.5, 0.5])), 6))
        [[1.333333 0.666667]
         [0.666667 1.333333]]
    """
    return solve(reduce(among, leaving), jnp.eye(len(leaving), dtype=among.dtype))


@inverse.defjvp
def _moved_inverse(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> Any:
    found, (among, leaving) = inverse(*primals), tangents
    among = among - jnp.diag(jnp.diag(among))
    return found, found @ (among - jnp.diag(jnp.sum(among, axis=0) + leaving)) @ found
