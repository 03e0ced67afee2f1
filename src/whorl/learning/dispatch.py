"""Choose the kernel for a policy on a stack of networks.

Three can: `lanes` for networks of width three with full support, unit rates and the leaky law,
`layers` for every other stack of layered networks under a policy, gate and spectral law of this
library, or none. Then the general loop of `trajectory` is mapped over the stack.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from whorl import _precision
from whorl.fast import fused, layers, modes
from whorl.fast.exponential import REACH
from whorl.feedback import Direct, Repair, Rotational, SpectralLaw
from whorl.learning.policy import Policy, always, can_turn, curvature_gate, never
from whorl.learning.stack import first
from whorl.response import response
from whorl.simplex import tangent_basis
from whorl.systems.layered import Network
from whorl.turn import checked_skew, default_turn

WIDEST = 32  # sums over a width are written out, which a compiler takes long over beyond this
REACHES = (0.25, REACH)  # exponents that a polynomial serves: the shorter, the fewer terms
GATES = {curvature_gate: "curvature", always: "always", never: "never"}


def named(policy: Policy) -> tuple[str, str] | None:
    """The names under which kernels know a policy and its gate, if they do."""
    kernel = vars(type(policy)).get("kernel")  # its own: a subclass may decide otherwise
    gate = GATES.get(policy.gate)  # pyright: ignore[reportArgumentType]
    return None if kernel is None or gate is None else (kernel, gate)


def lane_kind(nets: Any, policy: Policy) -> tuple[str, str] | None:
    """The names of policy and gate, if `lanes` can do the work."""
    law = policy.law
    fits = (
        type(nets) is Network
        and all(layer.shape[1:] == (3, 3) for layer in nets.layers)
        and nets.dtype == np.float64
        and law.base.damping is not None
        and law.skew is None
        and law.alpha.ndim == 0
        and float(law.alpha) == 1.0
        and float(jnp.max(policy.scale)) <= REACH
        and _full(nets)
        and _unit(nets)
    )
    return named(policy) if fits else None


def _full(nets: Network) -> bool:
    return all(bool((layer > 0).all()) for layer in fused.at_hand(nets.layers))


def _unit(nets: Network) -> bool:
    return all(bool((rate == 1).all()) for rate in fused.at_hand(nets.rates))


@dataclasses.dataclass(frozen=True)
class LayerKind:
    """What a program of `layers` is made for; its arrays come when it is called."""

    policy: str
    gate: str
    full: bool
    rated: bool
    decomposed: bool  # whether the law asks for the modes of every response
    reach: float | None
    outputs: int
    noise: float  # relative round-off of the response, below which a mode is zero
    skew: tuple[tuple[float, ...], ...] | None  # None where the law brings its own
    law: Any  # its static part, without arrays

    def __call__(self, shared: Any, own: Any, numbers: Array) -> layers.Rule:
        """The rule of a block of lanes."""
        law = eqx.combine(shared, self.law)
        skew = jnp.asarray(self.skew, numbers.dtype) if self.skew is not None else law.skew
        alpha = jnp.broadcast_to(eqx.combine(own, law).alpha, numbers.shape[-1:])
        return layers.Rule(
            policy=self.policy,
            gate=self.gate,
            full=self.full,
            reach=self.reach,
            solve=lambda k, given: self.solve(law.base, own.base, k, given),
            needs_response=not isinstance(law.base, Direct),
            skew=skew.astype(numbers.dtype),
            alpha=alpha.astype(numbers.dtype),
            scale=numbers[0],
            omega=numbers[1],
        )

    def solve(self, law: SpectralLaw, own: Any, k: Array | None, given: Array) -> Array:
        """Potentials counted from the last output, from fields without theirs."""
        if isinstance(law, Direct):
            return given + layers.total(given, -2)[..., None, :]
        assert k is not None
        size = self.outputs - 1
        if (leak := eqx.combine(own, law).damping) is not None:
            leak = leak.astype(k.dtype)
            centre = jnp.asarray(np.eye(size) - 1 / self.outputs, k.dtype)
            return modes.solved(fused.keep(k + centre[:, :, None] * leak), given)
        # Zero-sum coordinates: a field without its last entry becomes G times it.
        basis = tangent_basis(self.outputs)
        g = jnp.asarray((basis[:-1] - basis[-1:]).T, k.dtype)[:, :, None]
        square = fused.keep(layers.product_transposed(fused.keep(layers.product(g, k)), g))

        def weight(values: Array) -> Array:
            if isinstance(law, Repair):
                kept = values > max(law.tol, self.noise) * values[:1]
                return jnp.where(kept, 1.0 / jnp.where(kept, values, 1.0), 0.0)
            one = lambda own, column: eqx.combine(own, law).weight(column)  # noqa: E731
            return jax.vmap(jax.vmap(one, (0, 1), 1), (None, 1), 1)(own, values)

        found = modes.weighed(square, fused.keep(layers.acted(g, given)), weight, self.noise)
        return fused.keep(layers.acted(jnp.swapaxes(g, 0, 1), found))


def layer_kind(nets: Any, policy: Policy) -> LayerKind | None:
    """What `layers` needs to know, if it can do the work."""
    law, names = policy.law, named(policy)
    fits = (
        type(nets) is Network
        and names is not None
        and max(nets.layers[0].shape[2], *(layer.shape[1] for layer in nets.layers)) <= WIDEST
        and all(layer.shape[1] > 1 for layer in nets.layers)
        and type(law) is Rotational
        and (type(law.base) in (Direct, Repair) or _by_weight(law.base))
    )
    if not fits or names is None:
        return None
    one = first(nets)
    outputs, directions = one.basis().shape
    skew = None
    if law.skew is not None:  # believed, once it fits what it acts on
        even = np.full((1, one.widths[0]), 1 / one.widths[0])
        checked_skew(response(jax.tree.map(jnp.asarray, one), even), law.skew)
    else:
        turn = default_turn(one) if can_turn(law, one) else np.zeros((outputs, outputs))
        skew = tuple(map(tuple, turn.astype(nets.dtype).tolist()))
    _, shared = eqx.partition(policy, policy.per_pair())
    return LayerKind(
        *names,
        full=_full(nets),
        rated=not _unit(nets),
        decomposed=law.base.damping is None and not isinstance(law.base, Direct),
        reach=next((one for one in REACHES if float(jnp.max(policy.scale)) <= one), None),
        outputs=outputs,
        noise=_precision.noise(nets.dtype, directions, *one.lengths),
        skew=skew,
        law=eqx.partition(shared.law, eqx.is_array)[1],
    )


def _by_weight(law: SpectralLaw) -> bool:
    """Whether a law is all told by its damping or its weight."""
    if law.damping is not None:
        return True
    return type(law).matrix is SpectralLaw.matrix and type(law).potentials is SpectralLaw.potentials
