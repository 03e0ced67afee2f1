"""Large sparse systems of linear equations, solved on the host from inside any JAX program.

Two kept routes of SciPy, because graphs come in two kinds and each route fails on the other:

- *direct*: SuperLU. What is drawn in a plane or along a line falls apart at small cuts, and its
  factors stay sparse: 10 000 nodes of a lattice factorise in 70 ms and solve in 2 ms.
- *krylov*: BiCGSTAB. What is wired at random has no small cut. The factors of 10 000 random nodes
  are nearly dense (45 s, 70 ms per solve), but the same missing cuts make a walk forget its start
  at once, and some thirty products with the matrix are enough.

`chosen` tries the second and takes the first where it does not arrive. JAX has neither: its sparse
solver is for accelerators, and its BiCGSTAB spends most of its time in scatters.
"""

from typing import Any

import jax
import numpy as np
from jax import Array
from scipy.sparse import csc_matrix, diags_array
from scipy.sparse.linalg import bicgstab, splu

RECENT = 4  # factorisations kept: a coupled pair of learners asks for two states in turn
PROBE, MOST = 100, 1000  # iterations of a Krylov solve: to be chosen, and to be trusted
FINE = 1e-14  # residual of a Krylov solve, relative to its right-hand side
COARSE = 1e-8  # relative error at which a solution is none


class Equations:
    """One matrix at known values, with whatever makes its next solve cheap."""

    def __init__(self, matrix: csc_matrix, route: str, leaks: np.ndarray) -> None:
        self.ahead, self.behind = matrix.tocsr(), matrix.T.tocsr()
        self.scale = 1 / matrix.diagonal()
        whole = diags_array(self.scale)
        self.scaled = self.ahead @ whole, self.behind @ whole
        self._factors: Any = None
        # The columns of the matrix sum to the leaks, so that ones solve the transposed equations
        # for the leaks. What is found instead is what rounded diagonals have forgotten of them.
        try:
            if route == "direct":
                self._factorise()
            self.sound = bool(np.abs(self._solved(leaks, True) - 1).max() < COARSE)
        except RuntimeError:  # SuperLU's word for a matrix that is singular to the last bit
            self.sound = False

    def solve(self, side: np.ndarray, back: bool) -> np.ndarray:
        """The solution for one right-hand side, of the matrix or of its transpose; no numbers where
        it would keep less than eight digits.
        """
        return self._solved(side, back) if self.sound else np.full_like(side, np.nan)

    def _solved(self, side: np.ndarray, back: bool) -> np.ndarray:
        if self._factors is None:
            found, arrived = self.iterated(side, back, MOST)
            if arrived:
                return found
            self._factorise()
        factors: Any = self._factors
        return factors.solve(side, "T" if back else "N")

    def iterated(self, side: np.ndarray, back: bool, most: int) -> tuple[np.ndarray, bool]:
        """A Krylov solution, and whether it arrived."""
        plain = self.behind if back else self.ahead
        if not side.any():
            return np.zeros_like(side), True
        scaled = self.scaled[back]
        # From an even start: that of a single source is orthogonal to its own first products, and
        # the recursion would divide by zero.
        even = np.full_like(side, np.abs(side).mean())
        found, code = bicgstab(scaled, side, x0=even, rtol=FINE, atol=0.0, maxiter=most)
        found = self.scale * found
        # The recursion's residual may leave the true one behind.
        size = np.abs(side).max() + np.abs(found).max()
        arrived = code == 0 and np.abs(plain @ found - side).max() <= 100 * FINE * size
        return found, bool(arrived)

    def _factorise(self) -> None:
        # No pivots: the diagonal is the sum of its column and more. In this order of elimination
        # the factors of a symmetric pattern stay sparsest.
        self._factors = splu(
            self.ahead.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )


class Pattern:
    """A square matrix whose entries are sums of given numbers with given signs.

    The last few sets of numbers stay factorised, so that all solves at one state share one
    factorisation. No result depends on what is kept.
    """

    def __init__(self, size: int, *entries: np.ndarray) -> None:
        self.size, self.entries = size, entries  # row, column, which number, sign
        _, column, which, sign = entries
        # What a node hands to no other node of the matrix leaks.
        lost = ~np.isin(which, which[sign < 0])
        self._leaking = column[lost], which[lost]
        self._key = hash((size, *(part.tobytes() for part in entries)))
        self._recent: tuple[tuple[np.ndarray, str, Equations], ...] = ()

    def __hash__(self) -> int:
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Pattern)
            and (self._key, self.size) == (other._key, other.size)
            and all(map(np.array_equal, self.entries, other.entries))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern, (self.size, *self.entries)

    def matrix(self, numbers: np.ndarray) -> csc_matrix:
        """The matrix of these numbers, in double precision."""
        row, column, which, sign = self.entries
        values = sign * np.asarray(numbers, dtype=float)[which]
        return csc_matrix((values, (row, column)), shape=(self.size, self.size))

    def chosen(self, numbers: np.ndarray, side: np.ndarray) -> str:
        """The route that suits the matrix of these numbers."""
        tried = self.equations(numbers, "krylov")
        ways = (tried.iterated(side, back, PROBE)[1] for back in (False, True))
        return "krylov" if all(ways) else "direct"

    def sound(self, numbers: np.ndarray, route: str) -> bool:
        """Whether solutions by this route keep eight digits."""
        return self.equations(numbers, route).sound

    def _leaks(self, numbers: np.ndarray) -> np.ndarray:
        """The sum of every column of the matrix, which its entries as they are would not give."""
        column, which = self._leaking
        return np.bincount(column, np.asarray(numbers, dtype=float)[which], self.size)

    def equations(self, numbers: np.ndarray, route: str) -> Equations:
        """The matrix ready to be solved with, made anew only where the numbers are new."""
        kept = self._recent
        for known, way, found in kept:
            if way == route and np.array_equal(known, numbers):
                return found
        made = Equations(self.matrix(numbers), route, self._leaks(numbers))
        # One assignment, so that callbacks on several threads see a whole list.
        self._recent = ((numbers.copy(), route, made), *kept)[:RECENT]
        return made

    def solve(self, numbers: Array, sides: Array, *, route: str, back: bool) -> Array:
        """Solve for rows of right-hand sides, `(rows, size)`, in any JAX program.

        No derivative goes through: `jax.lax.custom_linear_solve` gives it.
        """

        def on_host(numbers: Any, sides: Any) -> np.ndarray:
            rows = np.asarray(sides)
            ready = self.equations(np.asarray(numbers), route)
            found = [ready.solve(row, back) for row in rows.astype(float)]
            return np.stack(found).astype(rows.dtype)

        like = jax.ShapeDtypeStruct(sides.shape, sides.dtype)
        return jax.pure_callback(on_host, like, numbers, sides, vmap_method="sequential")
