"""A system around another, with the same parameters on the same geometries."""

from typing import Any, TypeVar

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from whorl._check import Numbers
from whorl.geometry import Block, Geometry
from whorl.system import Blocks, Fields, System, Trace

Same = TypeVar("Same", bound="Wrapped")


class Wrapped(System):
    """Everything that the inner system says, until a subclass says otherwise.

    The trace is that of the inner system between inputs and outputs.
    """

    system: System

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The parameters of the inner system."""
        return self.system.blocks

    @property
    def geometries(self) -> tuple[Geometry, ...]:
        """Their geometries."""
        return self.system.geometries

    @property
    def block_rates(self) -> tuple[ArrayLike, ...]:
        """Their rates."""
        return self.system.block_rates

    @property
    def dtype(self) -> Any:
        """The floating type of the inner system."""
        return self.system.dtype

    def with_blocks(self: Same, blocks: Blocks) -> Same:
        """The same wrapping around the inner system at another state."""
        return eqx.tree_at(lambda whole: whole.system, self, self.system.with_blocks(blocks))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sums of the inner system."""
        return self.system.lengths

    @property
    def matched(self) -> bool:
        """Whether the ways of the inner system match."""
        return self.system.matched

    def checked_inputs(self, inputs: Numbers) -> Float[Array, "samples in"]:
        """Inputs that fit the inner system."""
        return self.system.checked_inputs(inputs)

    def outputs(self, inputs: Array) -> Fields:
        """What comes out."""
        return self.trace(inputs)[-1]

    def check_trace(self, trace: Trace) -> None:
        """What the inner system refuses."""
        self.system.check_trace(trace[1])
