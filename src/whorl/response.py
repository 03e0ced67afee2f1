r"""The response $K = J M J^\mathsf{T}$.

How the outputs move when a potential acts on them (Eqs. 6, 7, 12, 13).

A potential enters at the outputs, is carried back to every block of parameters, moves it on its
geometry, and the motion is carried forward again. `K @ v` applies this without building anything.
For small systems and for tests the matrix is built by two routes that share no code: `dense`, which
for layered networks is the sum over layers and columns of Eq. 13, and `gram`, the product of Eq. 12
with $J$ from automatic differentiation.

Matrices act on the flattened fields `(samples, out)`, sample after sample. All that $K$ does
happens on the fields that a system can reach, whose orthonormal coordinates over the outputs of one
sample are those of `System.basis`, and `reduced` is $K$ there. For systems that conserve mass these
are the zero-sum fields: no potential that is constant over the outputs of a sample does anything.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl import _check, _precision
from whorl._check import Numbers
from whorl._show import Shown, plural
from whorl.system import Block, Fields, Matrix, System, Trace, applied, selected_rows, traced
from whorl.system import ravel as _ravel
from whorl.system import unravel as _unravel


class Spectrum(Shown, eqx.Module):
    """The eigenvalues of a response on the fields that can be reached, largest first, and which of
    them count.

    A mode counts towards the rank when its eigenvalue exceeds `tol` times the largest; no `tol` is
    finer than the round-off.

    Examples:
        >>> print(wh.response(net, x).spectrum())
        rank 6 of 12 at tolerance 1e-10, condition number 81.7
    """

    eigenvalues: Float[Array, "n"]
    modes: Float[Array, "n n"]  # column k is mode k, in the coordinates of `Response.reduced`
    tol: float = eqx.field(static=True)

    @property
    def kept(self) -> Float[Array, "n"]:
        """One where a mode counts towards the rank, zero elsewhere."""
        return (self.eigenvalues > self.tol * self.eigenvalues[0]).astype(self.eigenvalues.dtype)

    @property
    def rank(self) -> int:
        """The number of modes that can be told from zero."""
        _check.need_known("the spectrum", "ask for the rank outside, or use kept", self.eigenvalues)
        return int(np.sum(np.asarray(self.kept)))

    @property
    def condition(self) -> float:
        """Strongest over weakest mode among those that count; infinite if none does."""
        return (
            float(self.eigenvalues[0] / self.eigenvalues[self.rank - 1])
            if self.rank
            else float("inf")
        )

    def __str__(self) -> str:
        return (
            f"rank {self.rank} of {self.eigenvalues.size} at tolerance {self.tol:g}, condition"
            f" number {self.condition:.3g}"
        )


class Response(Shown, eqx.Module):
    """The physical response of a system to potentials at its outputs. Make one with `response`.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> bool(np.allclose(K.dense(), K.gram())), K.by_block().shape
        (True, (2, 3, 3))
    """

    system: System
    trace: Trace  # of the samples it acts on: inputs first, outputs last
    adjoint: System  # what carries a potential back: the system itself, where the ways match
    matched: bool = eqx.field(static=True)

    def __str__(self) -> str:
        ways = "" if self.matched else ", the way back another than the way forward"
        return (
            f"the response of {plural(self.samples, 'sample')} with "
            f"{plural(self.outputs, 'output')}, {plural(self.directions, 'direction')}{ways}"
        )

    @property
    def samples(self) -> int:
        """Number of samples the response acts on."""
        return self.trace[0].shape[0]

    @property
    def outputs(self) -> int:
        """Number of outputs of each sample."""
        return self.system.sizes[1]

    @property
    def directions(self) -> int:
        """Number of coordinates of a field.

        Samples times the directions of one sample's outputs.
        """
        return self.samples * self.system.basis().shape[1]

    @property
    def predictions(self) -> Fields:
        """What the system puts out at the samples it acts on."""
        return self.trace[-1]

    def __matmul__(self, potential: Numbers) -> Fields:
        r"""The velocity $\dot F = Kv$ of every prediction (Eq. 7)."""
        field = self.field("potential", potential)
        if self.matched:
            return self.system.answer(self.trace, field)
        return self.system.forward(self.trace, self.velocities(field))

    def scores(self, potential: Numbers) -> tuple[Block, ...]:
        r"""The score of every block, $\rho_a [J^\mathsf{T} v]^a$ for a column on its simplex."""
        field = self.field("potential", potential)
        if self.matched:
            return self.system.scores(self.trace, field)
        return self.system.scores_of(self.adjoint.back(self.trace, field))

    def velocities(self, potential: Numbers) -> tuple[Block, ...]:
        r"""The velocity $\dot\theta = M J^\mathsf{T} v$ of every block."""
        if self.matched:
            return self.system.velocities(self.trace, self.field("potential", potential))
        return self.system.velocities_of(self.scores(potential))

    def by_block(self) -> Float[Array, "blocks n n"]:
        """What each block contributes to the matrix: each layer of a network (Eq. 13)."""
        need_matched(self, "by_block")
        return self.system.contributions(self.trace)

    def dense(self) -> Matrix:
        """The matrix.

        For layered networks the explicit sum of Eq. 13, for a mismatched adjoint column by column
        from `K @ v`.
        """
        if self.matched:
            return self.system.dense(self.trace)
        return applied(self.__matmul__, self.predictions)

    def gram(self) -> Matrix:
        r"""The matrix as $J M J^\mathsf{T}$ with $J$ from automatic differentiation (Eq. 12)."""
        need_matched(self, "gram")
        jac = jacobian(self.system, self.trace[0])
        # M annihilates what is constant over a column. Counted from its heaviest entry, the rest of
        # J does not cancel in the product.
        relative = jax.vmap(lambda row: _gauged(self.system, row))(jac)
        return relative @ mobility(self.system) @ relative.T

    def factor(self) -> Float[Array, "n m"]:
        r"""A $B$ with $K = BB^\mathsf{T}$.

        For a network, one column for every pair of entries of every column.

        Its singular values are the square roots of the eigenvalues of $K$, and keep twice as many
        digits of the weak ones.
        """
        need_matched(self, "factor")
        return jnp.concatenate(self.system.roots(self.trace), axis=1)

    def reduced(self) -> Matrix:
        """The matrix in the coordinates of the fields that can be reached."""
        return _reduced(self)

    def spectrum(self, *, tol: float = 1e-10) -> Spectrum:
        """Eigenvalues, rank and condition number on the fields that can be reached."""
        need_matched(self, "spectrum")
        tol = _check.number("tol", tol, least=0.0)
        need_directions(self)
        return Spectrum(*_decomposed(self), self.resolved(tol))

    def resolved(self, tol: float = 0.0) -> float:
        """A tolerance relative to the strongest mode, or the round-off of the matrix where that is
        coarser: below it no mode can be told from zero.
        """
        return max(tol, _precision.noise(self.system.dtype, self.directions, *self.system.lengths))

    def field(self, name: str, value: Numbers) -> Fields:
        """Check a field over samples and outputs."""
        result = _check.array(name, value, 2, self.system.dtype)
        if result.shape != (self.samples, self.outputs):
            raise ValueError(
                f"{name} must have shape {(self.samples, self.outputs)}, but its shape is "
                f"{result.shape}"
            )
        return result

    def coordinates(self, field: Fields) -> Float[Array, "n"]:
        """The coordinates of a field; what no motion of the outputs can reach is dropped."""
        return (field @ _basis(self)).ravel()

    def lift(self, coordinates: Float[Array, "n"]) -> Fields:
        """The field with these coordinates."""
        basis = _basis(self)
        return coordinates.reshape(self.samples, basis.shape[1]) @ basis.T


def response(
    system: System,
    inputs: Numbers,
    *,
    selected: int | None = None,
    adjoint: Sequence[Numbers] | None = None,
) -> Response:
    """The response of `system` at `inputs`: joint over all samples, or of the `selected` one.

    `adjoint` gives other blocks, of the same shapes, for the way back: a device whose backward
    transport does not match the forward one. They need not conserve anything, and K is then not
    symmetric in general.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        selected: One sample by its number; None, the default, takes all of them together.
        adjoint: Other blocks for the way back, of the same shapes.

    Returns:
        The response; `K @ v` applies it without building anything.

    Raises:
        ValueError: Where the inputs do not fit, or the response would underflow.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> (K @ [[0.1, -0.1, 0.0]]).shape, K.dense().shape
        ((1, 3), (3, 3))
    """
    _check.instance("system", system, System)
    trace = traced(system, selected_rows(system.checked_inputs(inputs), selected))
    if _check.known(system, trace):
        system.check_trace(trace)
    if adjoint is None:
        return Response(system, trace, system, system.matched)
    given = enumerate(adjoint)
    back = tuple(
        _check.array(f"adjoint {k}", part, _check.axes("adjoint", part), system.dtype)
        for k, part in given
    )
    shapes, wanted = [part.shape for part in back], [part.shape for part in system.blocks]
    if shapes != wanted:
        raise ValueError(
            f"adjoint must have the shapes {wanted} of the blocks, but it has {shapes}"
        )
    return Response(system, trace, system.with_blocks(back), False)


def jacobian(system: System, inputs: Array) -> Float[Array, "n parameters"]:
    r"""The dense Jacobian $J = D_\theta F$ by automatic differentiation, in the order of
    `system.ravel`.

    Examples:
        >>> from whorl.response import jacobian
        >>> jacobian(net, x).shape
        (18, 18)
    """

    def outputs(theta: Float[Array, "parameters"]) -> Float[Array, "n"]:
        blocks = _unravel(system.geometries, system.blocks, theta)
        return system.with_blocks(blocks).outputs(inputs).ravel()

    return jax.jacrev(outputs)(_ravel(system.geometries, system.blocks))


def mobility(system: System) -> Float[Array, "parameters parameters"]:
    r"""The dense mobility $M$, for a network $\mathrm{blkdiag}_a(\rho_a Q(p^a))$ (Eq. 6), in the
    order of `system.ravel`.

    Examples:
        >>> from whorl.response import mobility
        >>> mobility(net).shape
        (18, 18)
    """
    parts = zip(system.geometries, system.blocks, system.block_rates, strict=True)
    return jax.scipy.linalg.block_diag(*(kind.mobility(point, rate) for kind, point, rate in parts))


def need_directions(response: Response) -> None:
    """Refuse a response that has nothing to act on."""
    if response.directions == 0:
        raise ValueError(
            f"the system must have at least 2 outputs to respond, but it has {response.outputs}"
        )


# Compiled, because laws, certificates and flows ask for these again and again at states of one
# shape.
@eqx.filter_jit
def _reduced(response: Response) -> Matrix:
    basis = _basis(response)
    blocks = response.dense().reshape(
        response.samples, response.outputs, response.samples, response.outputs
    )
    size = response.directions
    return jnp.einsum("ap,rasb,bq->rpsq", basis, blocks, basis).reshape(size, size)


@eqx.filter_jit
def _decomposed(response: Response) -> tuple[Float[Array, "n"], Matrix]:
    matrix = _reduced(response)
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    return values[::-1], vectors[:, ::-1]


def _gauged(system: System, row: Float[Array, "parameters"]) -> Float[Array, "parameters"]:
    """A row of J up to what the mobility annihilates."""
    parts = _unravel(system.geometries, system.blocks, row)
    kept = [
        kind.gauge(*pair)
        for kind, *pair in zip(system.geometries, system.blocks, parts, strict=True)
    ]
    return _ravel(system.geometries, kept)


def _basis(response: Response) -> Float[Array, "out e"]:
    return jnp.asarray(response.system.basis(), dtype=response.system.dtype)


def need_matched(response: Response, what: str) -> None:
    """Refuse a response that is not symmetric by construction."""
    if not response.matched:
        raise ValueError(
            f"{what} must be asked of a response with matched adjoint, but its backward layers "
            "were given"
        )
