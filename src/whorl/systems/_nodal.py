r"""Solve the nodal equations of a linear circuit accurately and fast.

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
Upper = Float[Array, "n n"]


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
        lower, upper = without_subtraction(joined[:-1, :-1], joined[:-1, -1])
        lower = lower * jnp.sqrt(jnp.diag(upper))[None, :]
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


class Triangles(NamedTuple):
    """The factors of a matrix that need not be symmetric: $A[order] = LU$, both in one array."""

    packed: Float[Array, "n n"]
    order: Int[Array, "n"]

    def solved(self, right: Columns, back: bool) -> Columns:
        """The solution of $Ax = b$, or of $A^T x = b$."""
        if not back:
            half = self._substituted(right[self.order], lower=True, back=False)
            return self._substituted(half, lower=False, back=False)
        half = self._substituted(right, lower=False, back=True)
        last = self._substituted(half, lower=True, back=True)
        return jnp.zeros_like(last).at[self.order].set(last)

    def _substituted(self, right: Columns, *, lower: bool, back: bool) -> Columns:
        return jax.lax.linalg.triangular_solve(
            self.packed,
            right,
            left_side=True,
            lower=lower,
            transpose_a=back,
            unit_diagonal=lower,
        )


def triangles(among: Float[Array, "n n"], leaving: Float[Array, "n"]) -> Triangles:
    r"""Factors that keep the digits of what nodes pass on, as fast as these allow.

    A solution needs one step of refinement, with a residual summed over edges.

    Args:
        among: What node j passes on to node i, `(n, n)`, zero on the diagonal.
        leaving: What leaves each node for good, `(n,)`.

    Returns:
        The factors of $A = \mathrm{diag}(d) - W$.
    """
    whole = leaving + jnp.sum(among, axis=0)
    packed, _, order = jax.lax.linalg.lu(jnp.diag(whole) - among)
    quick = Triangles(packed, order)
    eps = jnp.finfo(among.dtype).eps
    lost = eps * jnp.sum(quick.solved(whole[:, None], back=False))

    def accurately(_: tuple[Triangles, Array]) -> tuple[Triangles, Array]:
        lower, upper = without_subtraction(among, leaving)
        same = jnp.arange(len(leaving), dtype=order.dtype)
        return Triangles(jnp.tril(lower, -1) + upper, same), jnp.ones((), dtype=bool)

    start = (quick, lost**2 <= eps / 4)
    return jax.lax.while_loop(lambda state: ~state[1], accurately, start)[0]


def without_subtraction(
    among: Float[Array, "n n"], leaving: Float[Array, "n"]
) -> tuple[Lower, Upper]:
    """Triangles L and U with $A = LU$ from sums, products and quotients of positive numbers alone.

    Nodes are taken out one by one. Those that are left inherit their connections and their ways
    out, so that the pivot of a node is the sum of what still leaves it. Blocks of nodes are taken
    out together, and the rest inherits by products of matrices.

    Args:
        among: What node j passes on to node i, `(n, n)`, zero on the diagonal.
        leaving: What leaves each node for good, `(n,)`.

    Returns:
        The factors, `(n, n)` each; the diagonal of L is one, and every entry of both keeps its
        relative precision.

    Examples:
        >>> from whorl.systems import _nodal
        >>> L, U = _nodal.without_subtraction(
        ...     jnp.array([[0.0, 1.0], [1.0, 0.0]]), jnp.array([0, 1e-20])
        ... )
        >>> print(jnp.diag(U))
        [1.e+00 1.e-20]
    """
    size = len(leaving)
    width = min(BLOCK, size)
    padded = -(-size // width) * width
    # Nodes that fill up the last block are joined to nothing and leave at once.
    among = jnp.zeros((padded, padded), dtype=among.dtype).at[:size, :size].set(among)
    leaving = jnp.ones(padded, dtype=among.dtype).at[:size].set(leaving)
    number, inside = jnp.arange(padded), jnp.arange(width)

    def block(place: Array, carry: tuple[Array, Array, Lower, Upper]) -> tuple[Array, ...]:
        among, leaving, lower, upper = carry
        begin = place * width
        mine = jax.lax.dynamic_slice_in_dim(leaving, begin, width)

        def node(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            panel, mine = carry
            below = jnp.where(number > begin + k, panel[:, k], 0.0)
            pivot = mine[k] + jnp.sum(below)
            given = jnp.where(inside > k, panel[begin + k], 0.0)  # by later nodes of this block
            panel = panel + (below / pivot)[:, None] * given[None, :]
            shares = jnp.where(number > begin + k, below / pivot, panel[:, k])
            panel = panel.at[:, k].set(jnp.where(number == begin + k, pivot, shares))
            return panel, mine + mine[k] / pivot * given

        panel = jax.lax.dynamic_slice_in_dim(among, begin, width, axis=1)
        panel, mine = jax.lax.fori_loop(0, width, node, (panel, mine))
        here = jax.lax.dynamic_slice_in_dim(panel, begin, width)
        rows = jnp.where(
            number[None, :] >= begin + width,
            jax.lax.linalg.triangular_solve(
                -jnp.tril(here, -1),
                jax.lax.dynamic_slice_in_dim(among, begin, width),
                left_side=True,
                lower=True,
                unit_diagonal=True,
            ),
            0.0,
        )
        pivots = jnp.diag(here)
        shares = jnp.where((number >= begin + width)[:, None], panel, 0.0)
        behind = jnp.where((number > begin + width - 1)[:, None], -panel, 0.0)
        local = jax.lax.dynamic_update_slice_in_dim(behind, -jnp.tril(here, -1), begin, axis=0)
        above = jax.lax.dynamic_update_slice_in_dim(
            -rows, jnp.diag(pivots) - jnp.triu(here, 1), begin, axis=1
        )
        return (
            among + shares @ rows,
            leaving + (mine / pivots) @ rows,
            jax.lax.dynamic_update_slice_in_dim(lower, local, begin, axis=1),
            jax.lax.dynamic_update_slice_in_dim(upper, above, begin, axis=0),
        )

    empty = jnp.zeros_like(among)
    start = (among, leaving, empty, empty)
    _, _, lower, upper = jax.lax.fori_loop(0, padded // width, block, start)
    return lower[:size, :size] + jnp.eye(size, dtype=among.dtype), upper[:size, :size]
