"""Check widths, layers, supports and rates of networks, and draw random columns.

The checks of widths, layers, supports and rates, and the drawing of random columns.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from whorl import _check
from whorl._check import Numbers
from whorl.fields import whole


def widths(given: Sequence[int]) -> tuple[int, ...]:
    """At least an input and an output width, each a positive whole number."""
    sizes = tuple(_check.listed("widths", given))
    if len(sizes) < 2:
        raise ValueError(
            f"widths must name at least an input and an output width, but it is {sizes}"
        )
    for size in sizes:
        if not whole(size) or size < 1:
            raise ValueError(
                f"widths must be positive whole numbers, but one is {_check.shown(size)}"
            )
    return tuple(_check.count("widths", size) for size in sizes)


def layers(given: Sequence[Numbers], support: Sequence[Numbers] | None) -> tuple[Array, ...]:
    """Matrices that fit behind each other, with positive columns of unit sum on their support."""
    arrays = [
        _check.array(f"layer {number}", layer, 2)
        for number, layer in enumerate(_check.listed("layers", given))
    ]
    if not arrays:
        raise ValueError("layers must hold at least one layer, but it is empty")
    for number, layer in enumerate(arrays):
        if 0 in layer.shape:
            raise ValueError(
                f"layer {number} must have at least one row and one column, but its shape is "
                f"{layer.shape}"
            )
        nodes = arrays[number - 1].shape[0]
        if number and layer.shape[1] != nodes:
            raise ValueError(
                f"layer {number} must have {nodes} columns, one per node of layer {number - 1}, but "
                f"its shape is {layer.shape}"
            )
    if len({layer.dtype for layer in arrays}) > 1:
        raise ValueError(
            "layers must share one floating type, but they are "
            f"{', '.join(str(layer.dtype) for layer in arrays)}"
        )
    for number, (layer, mask) in enumerate(
        zip(arrays, masks([layer.shape for layer in arrays], support), strict=True)
    ):
        if _check.known(layer):
            _check_columns(number, np.asarray(layer), mask)
    return tuple(arrays)


def _check_columns(number: int, layer: np.ndarray, mask: np.ndarray) -> None:
    for bad, rule in (
        (layer < 0, "be non-negative"),
        ((layer != 0) & ~mask, "be zero outside its support"),
        # Compiled programs take numbers below the smallest normal one for zero.
        ((layer < np.finfo(layer.dtype).tiny) & mask, "be positive on its support"),
    ):
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"layer {number} must {rule}, but entry ({row}, {column}) is {layer[row, column]:g}"
            )
    _check.columns(f"layer {number}", layer)


def masks(shapes: Sequence[tuple[int, ...]], support: Sequence[Numbers] | None) -> list[np.ndarray]:
    """One boolean array per layer; all true where no support was given."""
    if support is None:
        return [np.ones(shape, dtype=bool) for shape in shapes]
    given = [
        _check.numpy(f"support {number}", mask)
        for number, mask in enumerate(_check.listed("support", support))
    ]
    if len(given) != len(shapes):
        raise ValueError(
            f"support must hold one array per layer, but there are {len(given)} arrays and "
            f"{len(shapes)} layers"
        )
    for number, (mask, shape) in enumerate(zip(given, shapes, strict=True)):
        if mask.dtype != bool or mask.shape != tuple(shape):
            raise ValueError(
                f"support {number} must be boolean of shape {tuple(shape)}, but it is {mask.dtype} "
                f"of shape {mask.shape}"
            )
        empty = ~mask.any(axis=0)
        if empty.any():
            raise ValueError(
                f"support {number} must leave each column an entry, but column "
                f"{int(np.argmax(empty))} has none"
            )
    return given


def rates(given: Any, of: Sequence[Array]) -> tuple[Array, ...]:
    """One positive number per column, from one number in all, one per layer or one per column."""
    if not isinstance(given, list | tuple) and _check.axes("rates", given) == 0:
        given = [given] * len(of)
    if len(given) != len(of):
        raise ValueError(
            f"rates must be one number or one entry per layer, but there are {len(given)} entries "
            f"and {len(of)} layers"
        )
    result = []
    for number, (rate, layer) in enumerate(zip(given, of, strict=True)):
        name = f"rates of layer {number}"
        values = _check.array(name, rate, _check.axes(name, rate), layer.dtype)
        if values.shape not in ((), (layer.shape[1],)):
            raise ValueError(
                f"{name} must be one number or one per column, {layer.shape[1]}, but the shape is "
                f"{values.shape}"
            )
        if _check.known(values) and (np.asarray(values) <= 0).any():
            raise ValueError(
                f"{name} must be positive, but the smallest is {float(values.min()):g}"
            )
        result.append(jnp.broadcast_to(values, (layer.shape[1],)))
    return tuple(result)


def floating(given: Any) -> np.dtype:
    """A type that weights may have."""
    try:
        dtype = np.dtype(given)
    except TypeError as unknown:
        raise ValueError(
            f"dtype must be a floating type, but it is {_check.shown(given)}"
        ) from unknown
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"dtype must be a floating type, but it is {dtype}")
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, but it is {dtype}")
    return dtype


def generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """Random numbers from a seed that was given: never from the clock."""
    if not isinstance(seed, np.random.Generator) and (seed is None or not whole(seed) or seed < 0):
        raise ValueError(
            "seed must be a non-negative whole number or a NumPy Generator, but it is "
            f"{_check.shown(seed)}"
        )
    return np.random.default_rng(seed)


def logits(
    shapes: Sequence[tuple[int, int]],
    seed: int | np.random.Generator | None,
    given: Sequence[Numbers] | None,
) -> list[np.ndarray]:
    """The logits that were given, or standard normal ones from the seed."""
    if given is not None:
        draws = [
            np.asarray(_check.array(f"logits {number}", z, 2))
            for number, z in enumerate(_check.listed("logits", given))
        ]
        if [z.shape for z in draws] != list(shapes):
            raise ValueError(
                f"logits must have the shapes {list(shapes)}, but they have "
                f"{[z.shape for z in draws]}"
            )
        return draws
    rng = generator(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def columns(logits: np.ndarray, mask: np.ndarray, floor: float) -> np.ndarray:
    """Softmax down each column over its support, mixed with a uniform share `floor`.

    Of one layer or a stack of them.
    """
    masked = np.where(mask, logits, -np.inf)
    grown = np.exp(masked - masked.max(axis=-2, keepdims=True))
    return (1 - floor) * grown / grown.sum(axis=-2, keepdims=True) + floor * mask / mask.sum(axis=0)
