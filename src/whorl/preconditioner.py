r"""Spectral feedback as a preconditioned gradient flow (Proposition 1; Eqs. 16, 17, A3).

With $\psi(\lambda) = r(\lambda)/\lambda$ (and $\psi(0) = 0$), the law $v = r(K)e$ moves the
parameters by $\dot\theta = -H \nabla\mathcal{L}$, where $H = M J^\mathsf{T} \psi(K) J M$ is
symmetric and positive semidefinite.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from whorl import _check
from whorl._show import Shown
from whorl.feedback import SpectralLaw
from whorl.response import Response, jacobian, mobility
from whorl.system import Block, Matrix


class Preconditioner(Shown, eqx.Module):
    """The operator H of a spectral law at one state. Make one with `preconditioner`.

    Examples:
        >>> H = wh.preconditioner(wh.response(net, x), wh.direct())
        >>> slopes = jax.grad(lambda layers: wh.loss(net.with_blocks(layers), x, y))(net.layers)
        >>> [moved.shape for moved in H @ slopes]
        [(3, 3), (3, 3)]
    """

    response: Response
    psi: Matrix  # in the coordinates of `System.basis`

    def __str__(self) -> str:
        blocks = ", ".join(str(block.shape) for block in self.response.system.blocks)
        return f"a preconditioner of gradients with blocks {blocks}, through {self.response}"

    def __matmul__(self, gradient: Sequence[Block]) -> tuple[Block, ...]:
        """Apply H to a gradient, one array per block, without building H."""
        system = self.response.system
        shapes, wanted = (
            [jnp.shape(slope) for slope in gradient],
            [block.shape for block in system.blocks],
        )
        if shapes != wanted:
            raise ValueError(
                f"gradient must have the shapes {wanted} of the blocks, but it has {shapes}"
            )
        moved = system.velocities_of(system.scores_of([jnp.asarray(slope) for slope in gradient]))
        answer = system.forward(self.response.trace, moved)
        return self.response.velocities(
            self.response.lift(self.psi @ self.response.coordinates(answer))
        )

    def dense(self) -> Float[Array, "parameters parameters"]:
        """The matrix H, in the order of `system.ravel`."""
        response, system = self.response, self.response.system
        half = jacobian(system, response.trace[0]) @ mobility(system)
        size = (response.samples, response.outputs, -1)
        lowered = jnp.einsum("sap,ae->sep", half.reshape(size), system.basis().astype(half.dtype))
        lowered = lowered.reshape(-1, half.shape[1])
        return lowered.T @ self.psi @ lowered


def preconditioner(response: Response, law: SpectralLaw, *, tol: float = 1e-10) -> Preconditioner:
    """The preconditioner H of a spectral law (Eq. 16).

    Modes below `tol` times the largest eigenvalue count as zero.

    Args:
        response: The response that the law acts through.
        law: A spectral law.
        tol: Modes below this share of the largest count as zero.

    Returns:
        The preconditioner, applied or as a matrix.

    Examples:
        >>> H = wh.preconditioner(wh.response(net, x), wh.leaky(0.1))
        >>> bool(np.linalg.eigvalsh(H.dense()).min() > -1e-12)
        True
    """
    _check.instance("response", response, Response)
    why = "a spectral law, since only these are preconditioned gradients"
    _check.instance("law", law, SpectralLaw, why)
    spectrum = response.spectrum(tol=_check.number("tol", tol, least=0.0))
    kept = spectrum.kept > 0
    # Where a mode does not count, r is asked at the largest eigenvalue: it need not be defined off
    # the spectrum.
    safe = jnp.where(kept, spectrum.eigenvalues, spectrum.eigenvalues[0])
    psi = jnp.where(kept, law.weight(safe) / jnp.where(kept, safe, 1.0), 0.0)
    return Preconditioner(response, (spectrum.modes * psi[None, :]) @ spectrum.modes.T)
