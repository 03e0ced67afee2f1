"""Schedules: the sample of each update and the sense of each turn, from seeds or as given."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from whorl import _check, _construct
from whorl._check import Numbers, Order

Drawn = Int[np.ndarray, "updates"]


def fixed(samples: int, epochs: int) -> Drawn:
    """Every epoch shows the samples in their own order.

    Examples:
        >>> from whorl.learning import schedule
        >>> schedule.fixed(samples=3, epochs=2).tolist()
        [0, 1, 2, 0, 1, 2]
    """
    return np.tile(
        np.arange(_check.count("samples", samples)), _check.count("epochs", epochs)
    ).astype(np.int32)


def permuted(samples: int, epochs: int, seed: int | np.random.Generator) -> Drawn:
    """Every epoch shows the samples in a fresh random order.

    Examples:
        >>> from whorl.learning import schedule
        >>> sorted(schedule.permuted(samples=3, epochs=1, seed=0).tolist())
        [0, 1, 2]
    """
    rng = _construct.generator(seed)
    return np.concatenate(
        [
            rng.permutation(_check.count("samples", samples))
            for _ in range(_check.count("epochs", epochs))
        ]
    ).astype(np.int32)


def fair_turns(updates: int, seed: int | np.random.Generator) -> Drawn:
    """A fair coin for every update: +1 or -1.

    Examples:
        >>> from whorl.learning import schedule
        >>> sorted(set(schedule.fair_turns(100, seed=0).tolist()))
        [-1, 1]
    """
    return (
        2 * _construct.generator(seed).integers(0, 2, size=_check.count("updates", updates)) - 1
    ).astype(np.int32)


def constant_turns(updates: int, turn: int = 1) -> Drawn:
    """The same sense at every update, which the laws of `whorl.budget` need.

    Args:
        updates: Number of updates.
        turn: +1 or -1.

    Returns:
        The turns, `(updates,)`.

    Examples:
        >>> from whorl.learning import schedule
        >>> schedule.constant_turns(3, turn=-1).tolist()
        [-1, -1, -1]
    """
    return flipping_turns(updates, 0.0, seed=0, turn=turn)


def flipping_turns(
    updates: int, frequency: float, seed: int | np.random.Generator, turn: int = 1
) -> Drawn:
    """A sense that flips with a given probability before every update but the first.

    Args:
        updates: Number of updates.
        frequency: Probability of a flip: 0 keeps the sense, one half draws it by a fair coin.
        seed: Of the flips: a whole number or a NumPy generator.
        turn: The first sense, +1 or -1.

    Returns:
        The turns, `(updates,)`.

    Examples:
        >>> from whorl.learning import schedule
        >>> schedule.flipping_turns(4, 1.0, seed=0).tolist()
        [1, -1, 1, -1]
    """
    frequency = _check.number("frequency", frequency, least=0.0, most=1.0)
    drawn = _construct.generator(seed).uniform(size=_check.count("updates", updates))
    flips = np.where(drawn < frequency, -1, 1)
    if turn not in (1, -1):
        raise ValueError(f"turn must be +1 or -1, but it is {_check.shown(turn)}")
    flips[0] = turn
    return np.cumprod(flips).astype(np.int32)


def checked_order(order: Any, samples: int) -> Order:
    """A user's own order: whole numbers that name samples.

    Of a traced one only shape and type can be checked.
    """
    traced = not _check.known(order)
    given: Any = jnp.asarray(order) if traced else _check.numpy("schedule", order)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise ValueError(
            f"schedule must be a row of whole numbers, but its shape is {given.shape} and its type "
            f"{given.dtype}"
        )
    if traced:
        return given.astype(np.int32)
    if given.min() < 0 or given.max() >= samples:
        where = int(np.argmax((given < 0) | (given >= samples)))
        raise ValueError(
            f"schedule must name samples from 0 to {samples - 1}, but entry {where} is "
            f"{given[where]}"
        )
    return given.astype(np.int32)


def checked_turns(turns: Numbers, updates: int) -> Order:
    """A user's own turns: +1 or -1 for every update."""
    traced = not _check.known(turns)
    given: Any = jnp.asarray(turns) if traced else _check.numpy("turns", turns)
    if given.shape != (updates,):
        raise ValueError(
            f"turns must have one entry per update, {updates}, but the shape is {given.shape}"
        )
    if traced:
        return given.astype(np.int32)
    bad = (given != 1) & (given != -1)
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(f"turns must be +1 or -1, but entry {where} is {given[where]}")
    return given.astype(np.int32)


def drawn(
    samples: int,
    epochs: int | None,
    seed: int | np.random.Generator | None,
    schedule: Any,
    turns: Any,
) -> tuple[Order, Order]:
    """The order and the turns of a run: as given, or drawn from the seed, the order first."""
    rng = None if seed is None else _construct.generator(seed)
    if isinstance(schedule, str):
        if schedule not in ("permuted", "fixed"):
            raise ValueError(
                "schedule must be 'permuted', 'fixed' or a row of samples, but it is "
                f"{_check.shown(schedule)}"
            )
        if epochs is None:
            raise ValueError("epochs must be a whole number of at least 1, but it is None")
        order = (
            fixed(samples, epochs)
            if schedule == "fixed"
            else permuted(samples, epochs, _needed(rng, "permuted schedule"))
        )
    else:
        if epochs is not None:
            raise ValueError(
                f"epochs must be left out where a schedule is given, but it is {epochs}"
            )
        order = checked_order(schedule, samples)
    if turns is None:
        return order, fair_turns(order.size, _needed(rng, "fair turn"))
    return order, checked_turns(turns, order.size)


def _needed(rng: np.random.Generator | None, what: str) -> np.random.Generator:
    if rng is None:
        raise ValueError(
            f"seed must be a non-negative whole number to draw a {what}, but it is None"
        )
    return rng
