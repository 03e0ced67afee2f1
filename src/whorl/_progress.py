"""The progress bar of `progress=True`, on the error stream of terminals and notebooks.

A compiled loop cannot be handed a new function at every call without being compiled again, so it
tells its share to one function of this module, which knows the bar that is open.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array

WIDTH, EVERY = 30, 0.1  # letters of a bar; seconds between two drawings of it
RARER = 10  # times, where each drawing is kept: in a notebook, a file, a pipe
# How often a compiled loop speaks: once per letter, at about a millisecond each time.
PARTS = WIDTH
PIECE = 0.2  # seconds after which a compiled loop comes back, so that an interrupt is heard
_open: list["Bar"] = []


class Bar:
    """What has been done of a whole."""

    def __init__(self, title: str) -> None:
        self.title: str = title
        self.began: float = time.monotonic()
        self.drawn: float = -1.0

    def to(self, share: float) -> None:
        """Draw the bar at a share between 0 and 1, unless it was drawn a moment ago."""
        now = time.monotonic()
        if share < 1 and now - self.drawn < EVERY * (1 if sys.stderr.isatty() else RARER):
            return
        self.drawn, elapsed = now, now - self.began
        left = f", {elapsed / share * (1 - share):.0f} s left" if 0 < share < 1 else ""
        filled = "#" * round(WIDTH * share)
        words = f"{self.title} [{filled:<{WIDTH}}] {share:4.0%} {elapsed:.0f} s{left}"
        sys.stderr.write(f"\r{words:<78}")
        sys.stderr.flush()


@contextmanager
def bar(title: str, shown: bool) -> Iterator[Bar | None]:
    """A bar while this lasts, or None where it was not asked for.

    Examples:
        >>> from whorl import _progress
        >>> with _progress.bar("train", shown=False) as here:
        ...     print(here)
        None
    """
    if not shown:
        yield None
        return
    _open.append(Bar(title))
    _open[-1].to(0.0)
    try:
        yield _open[-1]
        jax.effects_barrier()  # what a compiled loop still has to say
        _open[-1].to(1.0)
    finally:
        _open.pop()
        sys.stderr.write("\n")


def in_pieces(
    advance: Callable[[Any, Any, Any], Any],
    carry: Any,
    total: int,
    given: Any,
    shown: Bar | None = None,
) -> Any:
    """Run a compiled loop from 0 to `total`, and come back to Python several times a second.

    Python hears an interrupt, and a bar grows, only between two calls of a compiled program. Where
    numbers are traced there is one call.

    Args:
        advance: Takes what the loop carries, the first number and the one after the last. Results
            must not depend on where the loop is cut.
        carry: What the loop starts with.
        total: How many numbers there are.
        given: What else the loop reads.
        shown: The bar to move, if there is one.

    Returns:
        What the loop carries at its end.
    """
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((carry, given))):
        return advance(carry, 0, total)
    done, size = 0, 1
    while done < total:
        began, last = time.monotonic(), min(done + size, total)
        # Arrays, and not numbers, which would be compiled in.
        bounds = (jnp.asarray(one, dtype=jnp.int32) for one in (done, last))
        carry = jax.block_until_ready(advance(carry, *bounds))
        done, took = last, time.monotonic() - began
        size = 4 * size if took < PIECE / 4 else max(size // 2, 1) if took > PIECE else size
        if shown is not None:
            shown.to(done / total)
    return carry


def waited(tree: Any, stop: threading.Event | None = None) -> Any:
    """The arrays of a compiled call once they are there, while Python goes on hearing interrupts.

    Args:
        tree: What the call returned; it may still be at work.
        stop: Set by another thread when the arrays are no longer needed.

    Raises:
        InterruptedError: Where `stop` was set.
    """
    began = time.monotonic()
    leaves: list[Any] = jax.tree.leaves(tree)
    for leaf in leaves:
        while isinstance(leaf, jax.Array) and not getattr(leaf, "is_ready")():  # noqa: B009
            if stop is not None and stop.is_set():
                raise InterruptedError
            # Sleep for a fiftieth of the time so far, so that waiting adds at most 2 %.
            time.sleep(min(max((time.monotonic() - began) / 50, 1e-4), 0.05))
    return tree


def told(number: Array, total: int) -> None:
    """Tell the open bar, from inside a compiled loop, that `number` of `total` is done."""
    every = max(total // PARTS, 1)
    jax.lax.cond(
        number % every == 0,
        lambda: jax.debug.callback(_hear, number / total),
        lambda: None,
    )


def _hear(share: Any) -> None:
    if _open:
        _open[-1].to(float(share))
