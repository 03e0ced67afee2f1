r"""Nodal equations of a linear circuit, solved as fast as its conductances allow.

The matrix is $A = \mathrm{diag}(d) - W$: what flows between free nodes is $W \ge 0$, and $d$ is
all that leaves a node, to free and to held nodes. A Cholesky factor costs little but subtracts on
the diagonal, where a weak way out of a strongly connected part can drown. How much is lost is
bounded before anything is believed. With backward error $|E| \le c\,\epsilon\,\mathrm{diag}(d)$ on
the diagonal, a solution $x \ge 0$ of $Ax = b \ge 0$ has the relative error

$$ \max_i \frac{(A^{-1}|E|x)_i}{x_i} \le c\,\epsilon \sum_j (A^{-1})_{jj}\,d_j
   \le c\,\epsilon \sum_j z_j, \qquad A z = d, $$

because a node is never less than its share of any other: $x_i \ge x_j (A^{-1})_{ij} /
(A^{-1})_{jj}$. The sum counts how often currents pass nodes before they leave. While the bound is
below the square root of the precision, one step of iterative refinement restores every digit: its
residual is summed over edges, each with its own drop, and so is that of a circuit whose
conductances are off by single roundings, which moves each voltage by single roundings. Where the
bound is larger, the factor is made by an elimination without a subtraction (Grassmann, Taksar and
Heyman, Operations Research 33, 1985), in blocks that are products of matrices.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

BLOCK = 32  # columns that are eliminated one by one before the rest is updated by one product
Columns = Float[Array, "n columns"]
Lower = Float[Array, "n n"]


class Circuit(NamedTuple):
    """Conductances between free nodes, which have places 0 to n - 1, and to held ones, at place n."""

    first: Int[Array, "edges"]
    second: Int[Array, "edges"]
    conductances: Float[Array, "edges"]
    free: int

    def carried(self, voltages: Columns) -> Columns:
        """The product with A: the currents that leave free nodes, each edge with its own drop."""
        whole = jnp.pad(voltages, ((0, 1), (0, 0)))  # held nodes are at zero volts
        currents = self.conductances[:, None] * (whole[self.first] - whole[self.second])
        return (
            jnp.zeros_like(whole).at[self.first].add(currents).at[self.second].add(-currents)[:-1]
        )

    def leaving(self) -> Float[Array, "n"]:
        """The diagonal of A: all that leaves each free node."""
        nothing = jnp.zeros(self.free + 1, dtype=self.conductances.dtype)
        return (
            nothing.at[self.first]
            .add(self.conductances)
            .at[self.second]
            .add(self.conductances)[:-1]
        )

    def joined(self, size: int) -> Float[Array, "size size"]:
        """What joins each two of the first places."""
        empty = jnp.zeros((size, size), dtype=self.conductances.dtype)
        one, other = (self.first, self.second), (self.second, self.first)
        return (
            empty.at[one]
            .add(self.conductances, mode="drop")
            .at[other]
            .add(self.conductances, mode="drop")
        )


def solver(circuit: Circuit, coarse: float | None = None) -> Callable[[Columns], Columns]:
    """What solves $Ax = b$ to the last digits.

    Args:
        circuit: Edges and conductances; none joins a free node to itself.
        coarse: The largest relative error of a solution that is accepted; one that may have more
            is not a number. Left out, it is found by an accurate factor instead.

    Returns:
        A function of right-hand sides, `(n, columns)`. They share a factor.
    """
    whole, places = circuit.leaving(), jnp.arange(circuit.free)
    matrix = (-circuit.joined(circuit.free)).at[places, places].set(whole)
    quick = jnp.linalg.cholesky(matrix, symmetrize_input=False)
    eps = jnp.finfo(whole.dtype).eps
    enough = eps / 4 if coarse is None else coarse

    def solve(right: Columns) -> Columns:
        both = substituted(quick, jnp.concatenate([right, whole[:, None]], axis=1))
        found, lost = both[:, :-1], eps * jnp.sum(both[:, -1])
        kept = lost**2 <= enough  # what refinement leaves of it
        if coarse is not None:
            return jnp.where(kept, refined(quick, found, right), jnp.nan)
        # A loop that runs at most once: unlike a conditional it stays one where circuits are
        # stacked, and costs nothing while no circuit of the stack needs it.
        lower, found, _ = jax.lax.while_loop(
            lambda state: ~state[2],
            lambda _: (*accurately(right), jnp.ones((), dtype=bool)),
            (quick, found, kept),
        )
        return refined(lower, found, right)

    def accurately(right: Columns) -> tuple[Lower, Columns]:
        joined = circuit.joined(circuit.free + 1)
        lower = without_subtraction(joined[:-1, :-1], joined[:-1, -1])
        return lower, substituted(lower, right)

    def refined(lower: Lower, found: Columns, right: Columns) -> Columns:
        return found + substituted(lower, right - circuit.carried(found))

    return solve


def substituted(lower: Lower, right: Columns) -> Columns:
    """The solution of $LL^T x = b$ by forward and backward substitution."""
    half = jax.lax.linalg.triangular_solve(lower, right, left_side=True, lower=True)
    return jax.lax.linalg.triangular_solve(
        lower, half, left_side=True, lower=True, transpose_a=True
    )


def without_subtraction(among: Float[Array, "n n"], leaving: Float[Array, "n"]) -> Lower:
    """The Cholesky factor of A from sums, products and quotients of positive numbers alone.

    Nodes are taken out one by one. Those that are left inherit their connections and their ways
    out, so that the pivot of a node is the sum of what still leaves it.

    Args:
        among: Conductances between free nodes, `(n, n)`, symmetric, zero on the diagonal.
        leaving: Conductances to held nodes, `(n,)`.

    Returns:
        The factor, `(n, n)`; every entry keeps its relative precision.

    Examples:
        >>> from whorl.systems import _nodal
        >>> L = _nodal.without_subtraction(
        ...     jnp.array([[0.0, 1.0], [1.0, 0.0]]), jnp.array([0, 1e-20])
        ... )
        >>> print(_nodal.substituted(L, jnp.array([[0.0], [1.0]])).T)
        [[1.e+20 1.e+20]]
    """
    size = len(leaving)
    width = min(BLOCK, size)
    padded = -(-size // width) * width
    # Nodes that fill up the last block are joined to nothing and leave at once.
    between = jnp.zeros((padded, padded), dtype=among.dtype).at[:size, :size].set(among)
    out = jnp.ones(padded, dtype=among.dtype).at[:size].set(leaving)
    number = jnp.arange(padded)

    def block(place: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        between, out, lower = carry
        begin = place * width
        panel = jax.lax.dynamic_slice_in_dim(between, begin, width, axis=1)

        def column(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            panel, out = carry
            below = jnp.where(number > begin + k, panel[:, k], 0.0)
            pivot = jnp.sqrt(out[begin + k] + jnp.sum(below))
            share = below / pivot
            here = jax.lax.dynamic_slice_in_dim(share, begin, width)
            out = out + share * (out[begin + k] / pivot)
            # Later columns of the panel inherit now, the column itself becomes one of the factor.
            panel = panel + share[:, None] * here[None, :]
            final = jnp.where(number == begin + k, pivot, -share)
            return panel.at[:, k].set(final), out

        panel, out = jax.lax.fori_loop(0, width, column, (panel, out))
        lower = jax.lax.dynamic_update_slice_in_dim(lower, panel, begin, axis=1)
        shares = jnp.where((number >= begin + width)[:, None], -panel, 0.0)
        return between + shares @ shares.T, out, lower

    start = (between, out, jnp.zeros_like(between))
    return jax.lax.fori_loop(0, padded // width, block, start)[2][:size, :size]
