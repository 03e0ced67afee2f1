"""A bar on the error stream, in terminals and notebooks alike, for whoever asks with
`progress=True`.

A compiled loop cannot be handed a new function at every call without being compiled again, so it
tells its share to one function of this module, which knows the bar that is open.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
from jaxtyping import Array

WIDTH, EVERY = 30, 0.1  # letters of a bar; seconds between two drawings of it
RARER = 10  # times, where each drawing is kept: in a notebook, a file, a pipe
# How often a compiled loop speaks: once per letter, at about a millisecond each time.
PARTS = WIDTH
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
