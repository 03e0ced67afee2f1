r"""Systems: blocks of parameters on their geometries, and outputs that depend on them.

A system is a class with arrays for parameters and one function, `outputs`. From these every system
gets, by automatic differentiation, the three maps that all the rest of the library is written on:

- the way forward $J\dot\theta$: how the outputs move when the parameters do (`forward`),
- the way back $J^\mathsf{T}v$: the slope that a potential at the outputs gives every parameter
  (`back`),
- the second-order jet: outputs and their first two derivatives along the path of a score (`jet`).

A system may override any of them with something faster, as `Network` does; one test tries every
override of every system against the automatic one. Both ways may share work: `trace` computes it
once, from its first entry, the inputs, to its last, the outputs.

To write a system of your own, subclass `System`: declare its parameters with `block`, give
`outputs` and `sizes`, and `basis` if not every direction of its outputs can be reached.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from whorl import _check
from whorl._check import Numbers
from whorl._show import Shown, plural
from whorl.geometry import Block, Geometry

Blocks = Sequence[Block]
Fields = Float[Array, "samples _out"]
Matrix = Float[Array, "n n"]
Same = TypeVar("Same", bound="System")
# trace[0] are the inputs and trace[-1] the outputs; between them is whatever the system wants to
# keep
Trace = Any


class System(Shown, eqx.Module):
    """Something that learns.

    Examples:
        >>> from whorl.geometry import Flat, block
        >>> class Linear(wh.System):
        ...     weights: jax.Array = block(Flat())
        ...
        ...     @property
        ...     def sizes(self):
        ...         return self.weights.shape[1], self.weights.shape[0]
        ...
        ...     def outputs(self, inputs):
        ...         return inputs @ self.weights.T
        >>> print(wh.response(Linear(jnp.eye(2)), [[3.0, 4.0]]).dense())
        [[25.  0.]
         [ 0. 25.]]
    """

    def __check_init__(self) -> None:
        for field in fields(self):
            if "geometry" in field.metadata:
                for path, part in jax.tree_util.tree_leaves_with_path(getattr(self, field.name)):
                    if isinstance(part, jax.Array | np.ndarray) and part.dtype.kind == "f":
                        name = f"{field.name}{jax.tree_util.keystr(path)}"
                        field.metadata["geometry"].check(name, part)

    @abstractmethod
    def outputs(self, inputs: Array) -> Array:
        """What comes out, `(samples, out)`, for inputs `(samples, in)`."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Number of inputs and number of outputs."""

    def __str__(self) -> str:
        inputs, outputs = self.sizes
        count = sum(block.size for block in self.blocks)
        lines = [
            (
                f"{type(self).__name__}: {plural(inputs, 'input')}, {plural(outputs, 'output')},"
                f" {plural(count, 'number')} in"
                f" {self.dtype}"
            )
        ]
        for number, (block, kind) in enumerate(zip(self.blocks, self.geometries, strict=True)):
            size, name = " x ".join(map(str, block.shape)), type(kind).__name__.lower()
            span = f"{float(block.min()):.3g} to {float(block.max()):.3g}"
            lines.append(f"  block {number}   {name}   {size}   {span}")
        return "\n".join(lines)

    # What it is made of.

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The arrays of parameters, in the order in which their fields are declared."""
        return tuple(
            leaf for name, _ in _declared(self) for leaf in jax.tree.leaves(getattr(self, name))
        )

    @property
    def geometries(self) -> tuple[Geometry, ...]:
        """The geometry of every block."""
        declared = _declared(self)
        return tuple(kind for name, kind in declared for _ in jax.tree.leaves(getattr(self, name)))

    @property
    def block_rates(self) -> tuple[ArrayLike, ...]:
        """How fast each block may move: one number, or an array that multiplies its slopes."""
        return (1.0,) * len(self.blocks)

    @property
    def dtype(self) -> Any:
        """The floating type everything about this system is computed in."""
        return self.blocks[0].dtype

    def with_blocks(self: Same, blocks: Blocks) -> Same:
        """The same system at another state.

        Not checked again: the blocks come from a step or a flow.
        """
        moved, names = iter(blocks), [name for name, _ in _declared(self)]
        new = [jax.tree.map(lambda _: next(moved), getattr(self, name)) for name in names]
        return eqx.tree_at(lambda system: [getattr(system, name) for name in names], self, new)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the sums behind an output, one after the other.

        What round-off grows with.
        """
        return self.sizes

    @property
    def matched(self) -> bool:
        """Whether the way back is the transpose of the way forward, so that the response is
        symmetric by construction.
        """
        return True

    # What it takes and gives.

    def basis(self) -> Float[np.ndarray, "out e"]:
        """Orthonormal directions of the outputs of one sample that learning can tell apart.

        All of them, unless the system says less.
        """
        return np.eye(self.sizes[1])

    def checked_inputs(self, inputs: Numbers) -> Float[Array, "samples in"]:
        """Inputs that fit the system."""
        return _rows("inputs", inputs, self.sizes[0], self.dtype)

    def checked_targets(self, targets: Numbers) -> Fields:
        """Targets that fit the system."""
        return _rows("targets", targets, self.sizes[1], self.dtype)

    def blur(self, trace: Trace) -> float:
        """The size of a response that is nothing but round-off at this trace."""
        del trace
        return 0.0

    # How it moves. Each of these is derived from `outputs` alone.

    def trace(self, inputs: Array) -> Trace:
        """What the ways forward and back share at these inputs."""
        return inputs, self.outputs(inputs)

    def sample(self, trace: Trace, number: Array) -> Trace | None:
        """The trace of one sample, from that of all; None where it has to be made anew."""
        del trace, number

    def check_trace(self, trace: Trace) -> None:
        """Refuse a state at which the response cannot be computed; most systems have none."""

    def forward(self, trace: Trace, velocities: Blocks) -> Fields:
        r"""How the outputs move when the blocks do: $J\dot\theta$ (Eq. 7)."""
        return jax.jvp(_outputs_at(self, trace[0]), (self.blocks,), (tuple(velocities),))[1]

    def back(self, trace: Trace, potential: Fields) -> tuple[Block, ...]:
        r"""The slope $J^\mathsf{T}v$ that a potential gives every block."""
        return jax.vjp(_outputs_at(self, trace[0]), self.blocks)[1](potential)[0]

    def scores(self, trace: Trace, potential: Fields) -> tuple[Block, ...]:
        """The score of every block, rates included."""
        return self.scores_of(self.back(trace, potential))

    def velocities(self, trace: Trace, potential: Fields) -> tuple[Block, ...]:
        r"""The velocity $\dot\theta = M J^\mathsf{T} v$ of every block."""
        return self.velocities_of(self.scores(trace, potential))

    def answer(self, trace: Trace, potential: Fields) -> Fields:
        r"""The velocity $\dot F = J M J^\mathsf{T} v$ of every output."""
        return self.forward(trace, self.velocities(trace, potential))

    def jet(self, inputs: Array, scores: Blocks) -> tuple[Fields, Fields, Fields]:
        """Outputs and their first two derivatives along the path of a score (Eq. 23)."""
        zero, one = jnp.zeros((), dtype=self.dtype), jnp.ones((), dtype=self.dtype)

        def first(size: Array) -> tuple[Array, Array]:
            return jax.jvp(lambda at: self.stepped(scores, at).outputs(inputs), (size,), (one,))

        (outputs, moved), (_, bent) = jax.jvp(first, (zero,), (one,))
        return outputs, moved, bent

    def driven_jet(
        self, inputs: Array, trace: Trace, potential: Array
    ) -> tuple[Fields, Fields, Fields]:
        """`jet` at all inputs along the score that a potential drives at those of the trace."""
        return self.jet(inputs, self.scores(trace, potential))

    def dense(self, trace: Trace) -> Matrix:
        """The response as a matrix on the flattened fields, column by column from `answer`."""
        return applied(lambda unit: self.answer(trace, unit), trace[-1])

    def contributions(self, trace: Trace) -> Float[Array, "blocks n n"]:
        """What each block contributes to the response matrix."""
        return jnp.stack([root @ root.T for root in self.roots(trace)])

    def roots(self, trace: Trace) -> tuple[Float[Array, "n _size"], ...]:
        r"""For every block a $B$ whose $BB^\mathsf{T}$ it contributes to the response."""
        slopes = self.jacobians(trace)
        parts = zip(self.geometries, self.blocks, slopes, self.block_rates, strict=True)
        return tuple(_rooted(*part) for part in parts)

    def jacobians(self, trace: Trace) -> tuple[Array, ...]:
        """How the outputs move with every number of each block, `(samples, out, *block)`."""
        return jax.jacrev(_outputs_at(self, trace[0]))(self.blocks)

    # What a learner does with it.

    def scores_of(self, slopes: Blocks) -> tuple[Block, ...]:
        """The score that answers the slope of every block, rates included."""
        parts = zip(self.geometries, self.blocks, slopes, self.block_rates, strict=True)
        return tuple(kind.score(point, slope * rate) for kind, point, slope, rate in parts)

    def velocities_of(self, scores: Blocks) -> tuple[Block, ...]:
        """The velocity of every block along its score."""
        return self._each(lambda kind, point, score: kind.velocity(point, score), scores)

    def stepped(self: Same, scores: Blocks, step: ArrayLike) -> Same:
        """The system one step along `scores` away (Eq. 4)."""
        return self.with_blocks(
            self._each(lambda kind, point, score: kind.step(point, score, step), scores)
        )

    @property
    def unitless(self) -> bool:
        """Whether all blocks are columns, whose scores are pure numbers."""
        return all(kind.unitless for kind in self.geometries)

    def spread(self, scores: Blocks) -> Float[Array, ""]:
        """The fastest relative change of a parameter along a score, over all blocks."""
        return jnp.max(
            jnp.stack(self._each(lambda kind, point, score: kind.spread(point, score), scores))
        )

    def kept(self, after: "System") -> Bool[Array, ""]:
        """Whether the system `after` a step is still inside, block by block."""
        kept = self._each(lambda kind, before, now: kind.kept(before, now), after.blocks)
        return jnp.all(jnp.stack(kept))

    def _each(
        self, act: Callable[[Geometry, Block, Block], Any], values: Blocks
    ) -> tuple[Any, ...]:
        parts = zip(self.geometries, self.blocks, values, strict=True)
        return tuple(act(kind, point, value) for kind, point, value in parts)


def checked_data(system: System, inputs: Numbers, targets: Numbers) -> tuple[Array, Array]:
    """Inputs and targets that fit the system and each other."""
    _check.instance("system", system, System)
    inputs, targets = system.checked_inputs(inputs), system.checked_targets(targets)
    _check.same_samples(inputs, targets)
    seen = _of_rows(system, lambda rows: jax.eval_shape(system.outputs, rows), inputs)
    _as_declared(system, inputs, seen)
    return inputs, targets


def predict(system: System, inputs: Numbers) -> Float[Array, "samples out"]:
    """What comes out at each output, for each sample.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.

    Returns:
        One row per sample, `(samples, out)`.

    Raises:
        ValueError: Where the inputs do not fit the system.

    Examples:
        >>> print(wh.predict(wh.Network([[[0.7, 0.2], [0.3, 0.8]]]), [[1.0, 0.0], [0.5, 0.5]]))
        [[0.7  0.3 ]
         [0.45 0.55]]
    """
    _check.instance("system", system, System)
    return observed(system, system.checked_inputs(inputs))


def residual(system: System, inputs: Numbers, targets: Numbers) -> Float[Array, "samples out"]:
    """Target minus prediction (Eq. 5). Of a system that conserves mass, every row sums to zero.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.

    Returns:
        One row per sample, `(samples, out)`.

    Raises:
        ValueError: Where the data do not fit the system or each other.

    Examples:
        >>> bool(np.allclose(wh.residual(net, x, y).sum(axis=1), 0))
        True
    """
    inputs, targets = checked_data(system, inputs, targets)
    return targets - observed(system, inputs)


def loss(system: System, inputs: Numbers, targets: Numbers) -> Float[Array, ""]:
    r"""Half the squared residual, mean over samples: $\mathcal{L}/N$ of Eq. 5.

    This is the loss of every learner, ledger and coefficient; `total_loss` is the sum.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.

    Returns:
        One number.

    Examples:
        >>> bool(np.isclose(wh.loss(net, x, y) * len(x), wh.total_loss(net, x, y)))
        True
    """
    error = residual(system, inputs, targets)
    return jnp.sum(error**2) / (2 * error.shape[0])


def total_loss(system: System, inputs: Numbers, targets: Numbers) -> Float[Array, ""]:
    r"""Half the squared residual, summed over samples: $\mathcal{L}$ of Eq. 5.

    The loss whose rate `dissipation` splits over modes, and along which a flow descends.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.

    Returns:
        One number.

    Examples:
        >>> e = wh.residual(net, x, y)
        >>> bool(np.isclose(wh.total_loss(net, x, y), np.sum(e**2) / 2))
        True
    """
    return jnp.sum(residual(system, inputs, targets) ** 2) / 2


def observed(system: System, inputs: Array) -> Fields:
    """The outputs at checked inputs, without what only ways forward and back need."""
    outputs = _of_rows(system, system.outputs, inputs)
    _as_declared(system, inputs, outputs)
    return outputs


def traced(system: System, inputs: Array) -> Trace:
    """The trace at checked inputs, after a look at what the system says comes out."""
    trace = _of_rows(system, system.trace, inputs)
    _as_declared(system, inputs, trace[-1])
    return trace


def _of_rows(system: System, act: Callable[[Array], Any], inputs: Array) -> Any:
    """What a user's function makes of rows; one that takes a single row only is refused."""
    try:
        return act(inputs)
    except (TypeError, IndexError, ValueError) as error:
        try:
            shape = jax.eval_shape(system.outputs, inputs[0]).shape
        except Exception:
            raise error from None
        if shape != system.sizes[1:]:
            raise
        raise ValueError(
            f"outputs of {type(system).__name__} must take rows of inputs, of shape "
            f"{inputs.shape}, but takes a single row only: map it with jax.vmap"
        ) from None


def check_basis(system: System, inputs: Array) -> None:
    """Refuse outputs that always have the same sum although `basis` does not say so.

    Laws and certificates would count a direction that no parameter can move.
    """
    count = system.sizes[1]
    own = type(system).basis is System.basis
    if not own or count < 2 or not _check.known(system, inputs):
        return
    trace = traced(system, inputs)
    like = jnp.zeros_like(trace[-1])
    sizes = [
        max(
            float(jnp.max(jnp.abs(score)))
            for score in system.scores(trace, like + potential[None, :])
        )
        for potential in (
            jnp.ones(count, dtype=system.dtype),
            jnp.arange(count, dtype=system.dtype) % 2,
        )
    ]
    if sizes[0] <= 16 * count * float(jnp.finfo(system.dtype).eps) * sizes[1]:
        raise ValueError(
            f"basis of {type(system).__name__} must be the zero-sum directions, tangent_basis("
            f"{count}), since its outputs always have the same sum, but it is all directions"
        )


def _as_declared(system: System, inputs: Array, outputs: Any) -> None:
    wanted, seen = (inputs.shape[0], system.sizes[1]), jnp.shape(outputs)
    if seen != wanted:
        raise ValueError(
            f"outputs of {type(system).__name__} must have the declared shape {wanted}, but their "
            f"shape is {seen}"
        )


def applied(product: Callable[[Fields], Fields], like: Fields) -> Matrix:
    """The matrix of a linear map of fields, from its products with unit fields."""
    units = jnp.eye(like.size, dtype=like.dtype).reshape(like.size, *like.shape)
    return jax.vmap(lambda unit: product(unit).ravel(), out_axes=1)(units)


def selected_rows(values: Array, selected: int | None, name: str = "selected") -> Array:
    """All samples, or the chosen one as a batch of one."""
    if selected is None:
        return values
    chosen = _check.index(name, selected, values.shape[0])
    return jax.lax.slice_in_dim(values, chosen, chosen + 1, axis=0)


def ravel(geometries: Sequence[Geometry], blocks: Blocks) -> Float[Array, "parameters"]:
    r"""One vector $\theta$: block after block, each in the order of its geometry (Eq. 1)."""
    return jnp.concatenate(
        [kind.ravel(part) for kind, part in zip(geometries, blocks, strict=True)]
    )


def unravel(
    geometries: Sequence[Geometry], like: Blocks, vector: Float[Array, "parameters"]
) -> tuple[Block, ...]:
    """Undo `ravel`, with the shapes of `like`."""
    parts = jnp.split(vector, np.cumsum([part.size for part in like])[:-1])
    return tuple(
        kind.unravel(one, part) for kind, one, part in zip(geometries, like, parts, strict=True)
    )


def _declared(system: System) -> list[tuple[str, Geometry]]:
    """The fields that hold parameters, each with its geometry."""
    found = [
        (field.name, field.metadata["geometry"])
        for field in fields(system)
        if "geometry" in field.metadata
    ]
    if not found:
        raise ValueError(
            f"{type(system).__name__} must declare parameters with block(...), but it has none"
        )
    return found


def _rows(name: str, value: Numbers, width: int, dtype: Any) -> Array:
    rows = _check.array(name, value, 2, dtype)
    if rows.shape[1] != width or rows.shape[0] == 0:
        raise ValueError(
            f"{name} must have shape (samples, {width}) with at least one sample, but its shape is "
            f"{rows.shape}"
        )
    return rows


def _outputs_at(system: System, inputs: Array) -> Callable[[Blocks], Array]:
    return lambda blocks: system.with_blocks(blocks).outputs(inputs)


def _rooted(kind: Geometry, point: Block, slopes: Array, rate: ArrayLike) -> Float[Array, "n size"]:
    """The Jacobian with respect to one block times a square root of its mobility."""
    rows = slopes.reshape(-1, *point.shape)
    return kind.rooted(point, rate, jax.vmap(lambda row: kind.ravel(kind.gauge(point, row)))(rows))
