"""Many systems of one structure as one system whose arrays have a leading axis.

`train_many` and `learn_many` take such stacks. Layered networks under the library's own policies
have kernels; the loops of all other systems run one system after the other inside a chunk, and
chunks run on every core. A system alone then makes the same operations as in a stack, so that no
bit of a result depends on how many systems share a chunk or how many threads there are.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from whorl import _check
from whorl._check import Numbers
from whorl.fast import fused
from whorl.learning.schedule import checked_order
from whorl.system import System, checked_data
from whorl.systems.layered import Network


def stack(systems: Sequence[System]) -> System:
    """Systems of one structure as one system, as `train_many` and `learn_many` take them.

    Args:
        systems: Systems of one kind that share their type, the shapes of all their arrays, and all
            that is no array: roles of nodes, geometries, wirings.

    Returns:
        One system whose arrays have a leading axis.

    Raises:
        ValueError: Where one of them differs in structure from the first, with its number.

    Examples:
        >>> wh.stack([net, net]).layers[0].shape
        (2, 3, 3)
        >>> circuits = [
        ...     wh.Circuit([[0, 1], [1, 2]], sizes, sources=[0], outputs=[1], ground=[2])
        ...     for sizes in ([1.0, 2.0], [3.0, 4.0])
        ... ]
        >>> wh.stack(circuits).conductances.tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    listed = _check.listed("systems", systems)
    if not listed:
        raise ValueError("systems must hold at least one system, but it is empty")
    for number, system in enumerate(listed):
        _check.instance(f"system {number}", system, System)
        if (why := _differs(listed[0], system)) is not None:
            raise ValueError(f"systems must share one structure, but system {number} {why}")
    if not _check.known(listed):
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *listed)
    return jax.tree.map(
        lambda *leaves: jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves])), *listed
    )


def _differs(first: System, other: System) -> str | None:
    """How a system differs in structure from the first, or None."""
    if type(other) is not type(first):
        return f"is a {type(other).__name__}, and system 0 a {type(first).__name__}"
    shapes = [[(part.shape, part.dtype) for part in one.blocks] for one in (first, other)]
    for (wanted, kind), (shape, own) in zip(*shapes, strict=False):
        if shape != wanted or own != kind:
            return f"has a block of shape {shape} and type {own}, and system 0 {wanted} and {kind}"
    same = jax.tree.structure(first) == jax.tree.structure(other)
    if not same or [jnp.shape(part) for part in jax.tree.leaves(first)] != [
        jnp.shape(part) for part in jax.tree.leaves(other)
    ]:
        return "has other nodes, roles or settings than system 0"
    return None


def first(systems: Any) -> Any:
    """The first system of a stack, to be looked at."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), fused.at_hand(systems))


def checked_stack(
    systems: System, inputs: Numbers, targets: Numbers, order: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets and order of a stack, each with one row per system.

    Raises:
        ValueError: Where they do not fit the stack or each other.
    """
    _check.instance("systems", systems, System)
    one, count = _unstacked(systems)
    if isinstance(systems, Network):
        widths = systems.layers[0].shape[2], systems.layers[-1].shape[1]
        x = _check.compositions("inputs", inputs, widths[0], systems.dtype, pairs=count)
        y = _check.compositions("targets", targets, widths[1], systems.dtype, pairs=count)
    else:
        x, y = (
            _check.array(*given, 3, one.dtype)
            for given in (("inputs", inputs), ("targets", targets))
        )
        for name, table, width in zip(("inputs", "targets"), (x, y), one.sizes, strict=True):
            if table.shape[0] != count or table.shape[2] != width or table.shape[1] == 0:
                raise ValueError(
                    f"{name} must have shape ({count}, samples, {width}) with at least one sample, "
                    f"but its shape is {table.shape}"
                )
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"targets must have one row per input, but there are {y.shape[1]} targets and "
            f"{x.shape[1]} inputs"
        )
    if not isinstance(systems, Network):
        flat = (table.reshape(-1, table.shape[2]) for table in (x, y))
        checked_data(one, *flat)
    rows = checked_rows("schedule", order, count)
    return np.asarray(x), np.asarray(y), checked_order(rows.ravel(), x.shape[1]).reshape(rows.shape)


def checked_rows(name: str, given: Numbers, count: int) -> np.ndarray:
    """A table with one row per system."""
    table = _check.numpy(name, given)
    if table.ndim != 2 or table.shape[0] != count:
        raise ValueError(
            f"{name} must have shape ({count}, updates), but its shape is {table.shape}"
        )
    return table


def _unstacked(systems: System) -> tuple[System, int]:
    """The first system of a stack, and how many there are."""
    sizes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(systems) if eqx.is_array(leaf)}
    if len(sizes) == 1 and () not in sizes:
        with suppress(Exception):  # whatever a system makes of arrays that lost an axis of its own
            one = first(systems)
            like = jax.ShapeDtypeStruct((1, one.sizes[0]), one.dtype)
            if jax.eval_shape(one.outputs, like).shape == (1, one.sizes[1]):
                return one, sizes.pop()[0]
    shapes = [part.shape for part in systems.blocks]
    raise ValueError(
        f"systems must be a stack, made by stack([...]), but the blocks have the shapes {shapes}"
    )


def mapped(one: Callable[..., Any], side_by_side: bool) -> Callable[..., Any]:
    """A function of one system as a function of a chunk of them.

    Args:
        one: Takes arrays without the leading axis.
        side_by_side: Whether operations of all systems become one. Elsewhere, on a CPU, systems go
            one after the other: solves in a loop over a batch are slow there.

    Returns:
        A function of arrays with the leading axis.
    """
    if side_by_side or not fused.on_cpu():
        return jax.vmap(one)
    return lambda *given: jax.lax.map(lambda each: one(*each), given)
