r"""Outputs of either sign, read from a system that conserves mass.

Nothing that flows is negative, but a difference may be. A readout $R$ takes the inner system's
outputs $F$ to $RF$; the usual one has two rails, $RF = F^+ - F^-$, the first half of the outputs
less the second. Blocks, geometries and rates are those of the inner system. The directions that
learning can tell apart are the range of $R$ on the inner system's own: two rails of a conservative
system reach all of them, so that residuals need not sum to zero any more.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl import _check
from whorl._check import Numbers
from whorl.registry import systems
from whorl.system import Blocks, Fields, System, Trace
from whorl.systems._wrapped import Wrapped


@systems.register("signed")
class Signed(Wrapped):
    """A signed linear readout of a system.

    `readout` is `(out, inner outputs)`; left out, there are two rails, and the second half of the
    inner outputs is taken from the first.

    Raises:
        ValueError: Where the inner outputs have no two halves, or the readout sees none of their
            directions.

    Examples:
        >>> rails = wh.Signed(wh.Network.random((3, 3, 4), seed=0))
        >>> rails.sizes, rails.basis().shape
        ((3, 2), (2, 2))
        >>> bool(np.all(np.abs(wh.predict(rails, x)) <= 1))
        True
    """

    rows: tuple[tuple[float, ...], ...] = eqx.field(static=True)

    def __init__(self, system: System, readout: Numbers | None = None) -> None:
        _check.instance("system", system, System)
        self.system = system
        inner = system.sizes[1]
        if readout is None:
            if inner % 2:
                raise ValueError(
                    f"system must have an even number of outputs for two rails, but it has {inner}"
                )
            readout = np.hstack([np.eye(inner // 2), -np.eye(inner // 2)])
        _check.need_known("readout", "give it as a constant", readout)
        matrix = np.asarray(_check.array("readout", readout, 2), dtype=float)
        if matrix.shape[1] != inner or not len(matrix):
            raise ValueError(
                f"readout must have shape (out, {inner}), but its shape is {matrix.shape}"
            )
        self.rows = tuple(map(tuple, matrix.tolist()))
        if not self.basis().shape[1]:
            raise ValueError(
                "readout must tell some outputs of the system apart, but all that it reads is "
                "conserved"
            )

    @property
    def readout(self) -> Float[np.ndarray, "out inner"]:
        """What is added to each output of each inner one."""
        return np.array(self.rows)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of inputs and number of signed outputs."""
        return self.system.sizes[0], len(self.rows)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sums of the inner system, and the readout."""
        return *self.system.lengths, self.system.sizes[1]

    def basis(self) -> Float[np.ndarray, "out e"]:
        """What the readout makes of the directions of the inner system."""
        seen = self.readout @ self.system.basis()
        left, sizes, _ = np.linalg.svd(seen, full_matrices=False)
        fine = (
            max(seen.shape, default=0) * np.finfo(float).eps * np.abs(self.readout).max(initial=0)
        )
        rank = int(np.sum(sizes > fine))
        # Where nothing is lost the outputs themselves are the plainest directions.
        return np.eye(len(seen)) if rank == len(seen) else left[:, :rank]

    def trace(self, inputs: Array) -> Trace:
        """The inner trace, and what is read."""
        inner = self.system.trace(inputs)
        return inputs, inner, self._read(inner[-1])

    def forward(self, trace: Trace, velocities: Blocks) -> Fields:
        r"""How the signed outputs move: $R J\dot\theta$."""
        return self._read(self.system.forward(trace[1], velocities))

    def back(self, trace: Trace, potential: Fields) -> tuple[Array, ...]:
        r"""The slopes that $R^\mathsf{T}v$ gives at the rails."""
        return self.system.back(trace[1], potential @ jnp.asarray(self.readout, dtype=self.dtype))

    def jet(self, inputs: Array, scores: Blocks) -> tuple[Fields, Fields, Fields]:
        outputs, first, second = self.system.jet(inputs, scores)
        return self._read(outputs), self._read(first), self._read(second)

    def _read(self, outputs: Fields) -> Fields:
        return outputs @ jnp.asarray(self.readout.T, dtype=self.dtype)
