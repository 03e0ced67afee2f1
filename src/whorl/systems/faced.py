"""A layered network whose weights may vanish and return.

The paper keeps the support of a network fixed. Here every weight may reach zero and leave it again:
the layers are `Network`'s, on the geometry `Faces` instead of `Simplex`. All learning loops take
it, and their accounts close, because losses are those of the states that were reached.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from whorl import _check
from whorl.geometry import Faces, Geometry
from whorl.systems.layered import Network


class Faced(Network):
    """A network of the same layers and rates, on the closed simplex.

    Examples:
        >>> wh.Faced(net, 1e-9).widths
        (3, 3, 3)
    """

    least: Float[Array, ""] = eqx.field(kw_only=True)

    def __init__(self, net: Network, least: float) -> None:
        self.layers, self.rates = net.layers, net.rates
        self.least = _check.scalar("least", least, above=0.0).astype(net.dtype)

    @property
    def geometries(self) -> tuple[Geometry, ...]:
        """Faces of the simplex, one per layer."""
        return (Faces(self.least),) * self.depth


def faced(net: Network, least: float = 1e-9) -> Faced:
    """The same network with weights that may vanish and return.

    Args:
        net: any layered network. Its zeros may return too: a support of its own is given up.
        least: the size below which a falling weight becomes exactly zero, at most a tenth of an
            even share.

    Returns:
        A network that `train`, `learn` and everything else takes.

    Raises:
        ValueError: where `least` is not between 0 and a tenth of an even share of a column.

    Examples:
        >>> run = wh.learn(
        ...     wh.faced(net), x, y, rule=wh.exponentiated_gradient(), scale=0.5, epochs=2, seed=0
        ... )
        >>> bool(np.allclose(run.system.layers[0].sum(axis=0), 1, rtol=0, atol=1e-15))
        True
    """
    _check.instance("net", net, Network)
    least = _check.number("least", least, above=0.0, most=0.1 / max(net.widths))
    if least < (tiny := float(jnp.finfo(net.dtype).tiny)):
        raise ValueError(
            f"least must be at least {tiny:.2g}, which {net.dtype} can hold, but it is {least:g}"
        )
    return Faced(net, least)
