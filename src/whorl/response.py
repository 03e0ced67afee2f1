r"""The response $K = J M J^\mathsf{T}$: how the outputs move when a potential acts on them (Eqs. 6, 7, 12, 13).

A potential enters at the outputs, is carried back through the layers, moves each column inside its simplex, and the motion is
carried forward again. `K @ v` applies this without building anything. For small networks and for tests the matrix is built by two
routes that share no code: `dense`, the sum over layers and columns of Eq. 13, and `gram`, the product of Eq. 12 with
$J$ from automatic differentiation.

Matrices act on the flattened fields `(samples, out)`, sample after sample. No potential that is constant over the outputs of a
sample does anything, and no mass ever moves: all that $K$ does happens on the zero-sum fields, whose orthonormal coordinates are
those of `simplex.tangent_basis`, and `reduced` is $K$ there.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from whorl import _check, simplex, wide
from whorl._check import Numbers
from whorl.network import Flows, Layer, Network, downstream, flows, pull_back, push_forward, ravel, selected_rows, unravel

Fields = Float[Array, "samples out"]
Matrix = Float[Array, "n n"]


class Spectrum(eqx.Module):
    """The eigenvalues of a response on the zero-sum fields, largest first, and which of them count.

    A mode counts towards the rank when its eigenvalue exceeds `tol` times the largest.

    Examples:
        >>> print(wh.response(net, x).spectrum())
        rank 6 of 12 at tolerance 1e-10, condition number 81.7
    """

    eigenvalues: Float[Array, "n"]
    modes: Float[Array, "n n"]  # column k is mode k, in zero-sum coordinates
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
        return float(self.eigenvalues[0] / self.eigenvalues[self.rank - 1]) if self.rank else float("inf")

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.eigenvalues.size} at tolerance {self.tol:g}, condition number {self.condition:.3g}"


class Response(eqx.Module):
    """The physical response of a network to potentials at its outputs. Make one with `response`.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> bool(np.allclose(K.dense(), K.gram())), K.by_layer().shape
        (True, (2, 3, 3))
    """

    net: Network
    flows: tuple[Flows, ...]
    adjoint: tuple[Layer, ...]
    matched: bool = eqx.field(static=True)

    @property
    def samples(self) -> int:
        """Number of samples the response acts on."""
        return self.flows[0].shape[0]

    @property
    def outputs(self) -> int:
        """Number of outputs of each sample."""
        return self.net.widths[-1]

    def __matmul__(self, potential: Numbers) -> Fields:
        r"""The velocity $\dot F = Kv$ of every prediction (Eq. 7)."""
        if self.matched and self.samples == 1 and wide.is_wide(self.net):
            return wide.apply_single(self.net, self.flows, self.field("potential", potential))
        return push_forward(self.net, self.flows, self.velocities(potential))

    def scores(self, potential: Numbers) -> tuple[Layer, ...]:
        r"""The score $\rho_a [J^\mathsf{T} v]^a$ of every column."""
        fields = pull_back(self.adjoint, self.field("potential", potential))
        # All samples meet in one product a layer; their flows are what makes the columns of a layer differ.
        return tuple((field.T @ flow) * rate[None, :] for field, flow, rate in zip(fields, self.flows[:-1], self.net.rates, strict=True))

    def velocities(self, potential: Numbers) -> tuple[Layer, ...]:
        r"""The velocity $\dot\theta = M J^\mathsf{T} v$ of every layer."""
        if self.matched and wide.is_wide(self.net):
            return wide.velocities(self.net, self.flows, self.field("potential", potential))
        return tuple(simplex.velocity(p, s) for p, s in zip(self.net.layers, self.scores(potential), strict=True))

    def by_column(self, layer: int) -> Float[Array, "columns n n"]:
        """What each column of one layer contributes to the matrix (Eq. 13)."""
        _need_matched(self, "by_column")
        return _column_blocks(self, _check.index("layer", layer, self.net.depth))

    def by_layer(self) -> Float[Array, "depth n n"]:
        """What each layer contributes to the matrix (Eq. 13)."""
        _need_matched(self, "by_layer")
        return jnp.stack([_column_blocks(self, number).sum(axis=0) for number in range(self.net.depth)])

    def dense(self) -> Matrix:
        """The matrix, by the explicit layer sum (Eq. 13); for wide layers or a mismatched adjoint, column by column from `K @ v`."""
        return self.by_layer().sum(axis=0) if self.matched and not wide.is_wide(self.net) else _by_application(self)

    def gram(self) -> Matrix:
        r"""The matrix as $J M J^\mathsf{T}$ with $J$ from automatic differentiation (Eq. 12)."""
        _need_matched(self, "gram")
        jac = jacobian(self.net, self.flows[0])
        # M annihilates what is constant over a column. Counted from its heaviest entry, the rest of J does not cancel in the product.
        relative = jac - jac[:, _heaviest(self.net)]
        return relative @ mobility(self.net) @ relative.T

    def factor(self) -> Float[Array, "n m"]:
        r"""A $B$ with $K = BB^\mathsf{T}$, one column for every pair of entries of every column of the network.

        Its singular values are the square roots of the eigenvalues of $K$, and keep twice as many digits of the weak ones.
        """
        _need_matched(self, "factor")
        return jnp.concatenate([_factor(self, number) for number in range(self.net.depth)], axis=1)

    def reduced(self) -> Matrix:
        """The matrix on the zero-sum fields, in orthonormal coordinates."""
        return _reduced(self)

    def spectrum(self, tol: float = 1e-10) -> Spectrum:
        """Eigenvalues, rank and condition number on the zero-sum fields."""
        _need_matched(self, "spectrum")
        tol = _check.number("tol", tol, least=0.0)
        if self.outputs == 1:
            raise ValueError("the network must have at least 2 outputs to respond, but it has 1")
        return Spectrum(*_decomposed(self), tol)

    def field(self, name: str, value: Numbers) -> Fields:
        """Check a field over samples and outputs."""
        result = _check.array(name, value, 2, self.net.dtype)
        if result.shape != (self.samples, self.outputs):
            raise ValueError(f"{name} must have shape {(self.samples, self.outputs)}, but its shape is {result.shape}")
        return result

    def coordinates(self, field: Fields) -> Float[Array, "n"]:
        """The zero-sum coordinates of a field; what is constant over a sample's outputs is dropped."""
        return (field @ _basis(self)).ravel()

    def lift(self, coordinates: Float[Array, "n"]) -> Fields:
        """The zero-sum field with these coordinates."""
        return coordinates.reshape(self.samples, self.outputs - 1) @ _basis(self).T


def response(net: Network, inputs: Numbers, *, selected: int | None = None, adjoint: Sequence[Numbers] | None = None) -> Response:
    """The response of `net` at `inputs`: joint over all samples, or of the `selected` one.

    `adjoint` gives other layers, of the same shapes, for the way back: a device whose backward transport does not match the forward
    one. They need not conserve anything, and K is then not symmetric in general.

    Examples:
        >>> K = wh.response(net, x, selected=0)
        >>> (K @ [[0.1, -0.1, 0.0]]).shape, K.dense().shape
        ((1, 3), (3, 3))
    """
    _check.instance("net", net, Network)
    rows = selected_rows(_check.compositions("inputs", inputs, net.widths[0], net.dtype), selected)
    if adjoint is None:
        return Response(net, flows(net, rows), net.layers, True)
    back = tuple(_check.array(f"adjoint {number}", layer, 2, net.dtype) for number, layer in enumerate(adjoint))
    shapes, wanted = [layer.shape for layer in back], [layer.shape for layer in net.layers]
    if shapes != wanted:
        raise ValueError(f"adjoint must have the shapes {wanted} of the layers, but it has {shapes}")
    return Response(net, flows(net, rows), back, False)


def jacobian(net: Network, inputs: Flows) -> Float[Array, "n parameters"]:
    r"""The dense Jacobian $J = D_\theta F$ by automatic differentiation, in the order of `network.ravel`.

    Examples:
        >>> from whorl.response import jacobian
        >>> jacobian(net, x).shape
        (18, 18)
    """

    def outputs(theta: Float[Array, "parameters"]) -> Float[Array, "n"]:
        return flows(net.with_layers(unravel(net.layers, theta)), inputs)[-1].ravel()

    return jax.jacrev(outputs)(ravel(net.layers))


def mobility(net: Network) -> Float[Array, "parameters parameters"]:
    r"""The dense mobility $M = \mathrm{blkdiag}_a(\rho_a Q(p^a))$ (Eq. 6), in the order of `network.ravel`.

    Examples:
        >>> from whorl.response import mobility
        >>> mobility(net).shape
        (18, 18)
    """
    blocks = []
    for layer, rates in zip(net.layers, net.rates, strict=True):
        blocks += [rate * simplex.covariance(p) for p, rate in zip(layer.T, rates, strict=True)]
    return jax.scipy.linalg.block_diag(*blocks)


# Compiled, because laws, certificates and flows ask for these again and again at states of one shape.
@eqx.filter_jit
def _reduced(response: Response) -> Matrix:
    basis = _basis(response)
    blocks = response.dense().reshape(response.samples, response.outputs, response.samples, response.outputs)
    size = response.samples * (response.outputs - 1)
    return jnp.einsum("ap,rasb,bq->rpsq", basis, blocks, basis).reshape(size, size)


@eqx.filter_jit
def _decomposed(response: Response) -> tuple[Float[Array, "n"], Matrix]:
    matrix = _reduced(response)
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    return values[::-1], vectors[:, ::-1]


def _column_blocks(response: Response, number: int) -> Float[Array, "columns n n"]:
    layer, flow, rates = response.net.layers[number], response.flows[number], response.net.rates[number]
    onward = downstream(response.net)[number]
    # Q(p) as a sum over pairs of entries, p_j p_k (u_j - u_k)(u_j - u_k)^T: all terms are positive and none cancels.
    one, other = np.triu_indices(layer.shape[0], k=1)
    apart = onward[:, one] - onward[:, other]
    spread = jnp.einsum("aq,qi,bq->iab", apart, layer[one] * layer[other], apart)
    blocks = jnp.einsum("i,ri,si,iab->irasb", rates, flow, flow, spread)
    size = response.samples * response.outputs
    return blocks.reshape(layer.shape[1], size, size)


def _factor(response: Response, number: int) -> Float[Array, "n m"]:
    layer, flow, rates = response.net.layers[number], response.flows[number], response.net.rates[number]
    one, other = np.triu_indices(layer.shape[0], k=1)
    onward = downstream(response.net)[number]
    size = jnp.sqrt(rates[None, :] * layer[one] * layer[other])
    entries = jnp.einsum("si,aq,qi->saqi", flow, onward[:, one] - onward[:, other], size)
    return entries.reshape(response.samples * response.outputs, -1)


def _heaviest(net: Network) -> Int[Array, "parameters"]:
    """For every parameter, in the order of `network.ravel`, where the heaviest entry of its column stands."""
    places, before = [], 0
    for layer in net.layers:
        rows, columns = layer.shape
        places.append(jnp.repeat(before + rows * np.arange(columns) + jnp.argmax(layer, axis=0), rows))
        before += layer.size
    return jnp.concatenate(places)


def _by_application(response: Response) -> Matrix:
    size = response.samples * response.outputs
    units = jnp.eye(size, dtype=response.net.dtype).reshape(size, response.samples, response.outputs)
    return jax.vmap(lambda unit: (response @ unit).ravel(), out_axes=1)(units)


def _basis(response: Response) -> Float[Array, "out e"]:
    return jnp.asarray(simplex.tangent_basis(response.outputs), dtype=response.net.dtype)


def _need_matched(response: Response, what: str) -> None:
    if not response.matched:
        raise ValueError(f"{what} must be asked of a response with matched adjoint, but its backward layers were given")
