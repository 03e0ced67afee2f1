r"""Systems that settle: a state that balances forces, and what pushing at the outputs does to it.

A circuit, an elastic network or a network of flows finds its state $x$ by itself, where an energy
$E(x; \theta)$ is stationary. Its outputs $y$ are read from that state, and each has a force $f$
that pushes it: $F(f) = \mathrm{stat}_x\,[E - f\cdot y]$ has the slope $\partial F/\partial f = -y$.
Two things follow for every such system, and the rules of `whorl.rules` rest on both:

- pushing with $f$ changes the slope $-\partial_\theta E$ that every parameter sees by
  $J^\mathsf{T}f$, to first order: the state carries the force back by itself;
- the outputs move by $Zf$, and the output impedance $Z = \partial y/\partial f$ is symmetric.

To write a settling system of your own, subclass `Settling` and give `settle`, `read` and `energy`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from whorl import _check
from whorl.fast import small
from whorl.system import Block, Fields, System, Trace

States = Float[Array, "samples _states"]
Influence = Float[Array, "rows out _states"]  # per unit of force; one row, or one per sample
STEPS = 1024  # of a root finder, before it gives up
Whole = TypeVar("Whole")


def widened(whole: Whole) -> Whole:
    """The same with all its numbers in the widest precision that is at hand."""
    wide = jnp.zeros(()).dtype
    return jax.tree.map(
        lambda part: part.astype(wide) if eqx.is_inexact_array(part) else part, whole
    )


class Settling(System):
    """A system whose outputs are read from a state that settles.

    Examples:
        >>> bridge = wh.Circuit([[0, 1], [1, 2]], [1.0, 3.0], sources=[0], outputs=[1], ground=[2])
        >>> isinstance(bridge, wh.Settling), bridge.impedance(jnp.array([[1.0]])).tolist()
        (True, [[[0.25]]])
    """

    @abstractmethod
    def settle(self, inputs: Array, force: Fields) -> States:
        """The state of every sample under forces at its outputs, `(samples, states)`."""

    @abstractmethod
    def read(self, states: States) -> Fields:
        """The outputs that a state shows."""

    @abstractmethod
    def energy(self, states: States) -> Float[Array, "samples"]:
        r"""What is stationary, as a function of state and parameters.

        Terms without parameters may be left out, as those of drives and forces may.
        """

    @property
    def linear(self) -> bool:
        """Whether states, and what is read from them, are linear in inputs and forces."""
        return False

    def outputs(self, inputs: Array) -> Fields:
        """What is read where nothing pushes."""
        return self.read(self.settle(inputs, self.no_force(inputs)))

    def trace(self, inputs: Array) -> Trace:
        """Inputs, states and outputs."""
        states = self.settle(inputs, self.no_force(inputs))
        return inputs, states, self.read(states)

    def no_force(self, inputs: Array) -> Fields:
        """Zeros for every sample and output."""
        return jnp.zeros((inputs.shape[0], self.sizes[1]), dtype=self.dtype)

    def slopes(self, states: States) -> tuple[Block, ...]:
        r"""What every parameter sees of a state: $-\partial_\theta E$, summed over samples."""

        def energy(blocks: tuple[Block, ...]) -> Float[Array, ""]:
            return -jnp.sum(self.with_blocks(blocks).energy(states))

        return jax.grad(energy)(self.blocks)

    def reach(self, inputs: Array) -> tuple[States, Influence]:
        """States where nothing pushes, and how unit forces at each output move them.

        Override it where both come from one solve.

        Args:
            inputs: One row per sample, `(samples, in)`.

        Returns:
            States, `(samples, states)`, and their derivatives by the forces, `(samples, out,
            states)`; one row where forces move all samples alike.
        """
        still = jnp.zeros(self.sizes[1], dtype=self.dtype)

        def state(row: Array, force: Array) -> Array:
            return self.settle(row[None, :], force[None, :])[0]

        influence = jax.vmap(lambda row: jax.jacfwd(lambda force: state(row, force))(still).T)
        return self.settle(inputs, self.no_force(inputs)), influence(inputs)

    def reached(self, trace: Trace) -> tuple[States, Influence]:
        """What `reach` found when the trace was made, or finds now."""
        return self.reach(trace[0])

    def impedance(self, inputs: Array) -> Float[Array, "samples out out"]:
        r"""How the outputs of each sample move under forces, $Z = \partial y/\partial f$."""
        return self.impedance_at(*self.reach(inputs))

    def impedance_at(self, states: States, influence: Influence) -> Float[Array, "samples out out"]:
        """The output impedance at states that `reach` found."""

        def moved(push: Array) -> Fields:
            return jax.jvp(self.read, (states,), (jnp.broadcast_to(push, states.shape),))[1]

        return jax.vmap(moved, in_axes=1, out_axes=2)(influence)

    def holding(self, inputs: Array, moved: Fields) -> Fields:
        """The forces that move the outputs by this much from where they are."""
        if self.linear:
            return self.forces(self.impedance(inputs), moved)
        return self._balanced(inputs, moved, lambda _force, seen, aim: seen - aim)

    def sprung(self, inputs: Array, moved: Fields, stiffness: ArrayLike) -> Fields:
        """The forces of springs that pull the outputs towards places this far away."""
        if self.linear:
            return self.forces(self.impedance(inputs), moved, stiffness)
        return self._balanced(
            inputs, moved, lambda force, seen, aim: force - stiffness * (aim - seen)
        )

    def forces(
        self,
        impedance: Float[Array, "samples out out"],
        moved: Fields,
        stiffness: ArrayLike | None = None,
    ) -> Fields:
        """Forces that move the outputs of a linear system by this much, or springs towards there.

        Args:
            impedance: How the outputs move under forces.
            moved: Where to, from where they are, `(samples, out)`.
            stiffness: Force of the springs per length; left out, nothing gives way.

        Returns:
            One force per sample and output.
        """
        # In the coordinates of the basis: a system that conserves cannot be pushed every way.
        basis = jnp.asarray(self.basis(), dtype=moved.dtype)
        inside = basis.T @ impedance @ basis
        aim = moved @ basis
        if stiffness is not None:
            inside = jnp.eye(basis.shape[1], dtype=moved.dtype) + stiffness * inside
            aim = stiffness * aim
        found = jnp.einsum("sij,sj->si", jax.vmap(small.inverse)(inside), aim)
        return found @ basis.T

    def _pushed(self, row: Float[Array, "in"]) -> Callable[[Array], Array]:
        """The outputs of one sample as a function of its forces."""
        return lambda force: self.read(self.settle(row[None, :], force[None, :]))[0]

    def _balanced(
        self, inputs: Array, moved: Fields, missing: Callable[[Array, Array, Array], Array]
    ) -> Fields:
        """The forces at which nothing is missing, sample by sample."""
        whole, inputs, moved = widened((self, inputs, moved))
        # In the coordinates of the basis: a system that conserves cannot be pushed every way.
        basis = jnp.asarray(self.basis(), dtype=whole.dtype)
        fine = 64 * float(jnp.finfo(whole.dtype).eps)

        def one(row: Float[Array, "in"], aim: Float[Array, "out"]) -> Float[Array, "out"]:
            pushed = whole._pushed(row)
            still = jnp.zeros(basis.shape[1], dtype=whole.dtype)
            start = pushed(jnp.zeros_like(aim))

            def amiss(force: Array) -> Array:
                return missing(force, basis.T @ (pushed(basis @ force) - start), basis.T @ aim)

            slope = jax.jacfwd(amiss)(still)
            force = -jnp.linalg.solve(slope, amiss(still))
            # In shares of what is read, so that no tolerance depends on the units of anything.
            size = jnp.max(jnp.abs(start)) + jnp.max(jnp.abs(aim))

            def further(share: Array) -> Array:
                return force + size * jnp.linalg.solve(slope, share)

            found = optx.root_find(
                lambda share, _: amiss(further(share)) / size,
                optx.Newton(rtol=fine, atol=fine),
                still,
                max_steps=STEPS,
                throw=False,
            )
            settled = found.result == optx.RESULTS.successful
            return jnp.where(settled, basis @ further(found.value), jnp.nan)

        forces = jax.vmap(one)(inputs, moved).astype(self.dtype)
        if _check.known(forces) and not np.isfinite(forces).all():
            sample = int(np.argmin(np.isfinite(forces).all(axis=1)))
            raise ValueError(
                f"outputs must be within reach of forces, but none was found in {STEPS} steps that "
                f"moves those of sample {sample} as far as asked; give a smaller nudge"
            )
        return forces
