"""Who computes when: one request of each portion at a time, and of those that wait the newest.

A page asks again whenever a setting changes, so that only the newest request matters. An older one
that still waits is answered at once with `BusyError`; a page that still wants its answer, such as
one in another window, asks again by itself. Portions do not wait for each other: while a program
for 300 networks is compiled, the slider goes on.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

CALM = 3.0  # seconds without a request after which programs are compiled ahead
Answer = TypeVar("Answer")
Task = tuple[str, Callable[[], Any]]  # the portion that it belongs to, and what to do


class BusyError(RuntimeError):
    """A newer request took the place of this one, or the explorer is closed."""

    def __init__(self) -> None:
        super().__init__("the explorer must answer a newer request first: ask again")


class Work:
    """What is computed for each portion, and which request comes next."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy: set[str] = set()
        self._waiting: dict[str, object] = {}  # the newest request of each portion
        self._closed = False
        self._asked = -CALM  # when the page last asked for something
        self._done, self._needed, self._warming = 0, 0, False

    def do(self, portion: str, call: Callable[[], Answer]) -> Answer:
        """Call when the portion is free.

        Args:
            portion: What waits for the same worker.
            call: What to compute.

        Returns:
            What the call returns.

        Raises:
            BusyError: Where a newer request of this portion comes while this one waits.
        """
        mine = object()
        with self._changed:
            self._asked = time.monotonic()
            self._waiting[portion] = mine
            self._changed.notify_all()  # an older request that waits sees that it is stale
            self._changed.wait_for(
                lambda: (
                    self._closed
                    or self._waiting.get(portion) is not mine
                    or portion not in self._busy
                )
            )
            if self._closed or self._waiting.get(portion) is not mine:
                raise BusyError
            del self._waiting[portion]
            self._busy.add(portion)
        return self._called(portion, call)

    def _called(self, portion: str, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        finally:
            with self._changed:
                self._busy.discard(portion)
                self._changed.notify_all()

    def warm(self, needed: list[Task], later: Iterable[Task] = ()) -> threading.Thread:
        """Do tasks in the background, each when its portion is free and no request waits for it.

        Args:
            needed: What the page counts while it says that it warms up.
            later: What is done afterwards, while nobody asks for anything.

        Returns:
            The thread, which has begun.
        """
        self._needed, self._warming = len(needed), True

        def go() -> None:
            for portion, call in needed:
                self._in_between(portion, call, 0.0)
                self._done += 1  # whether it ended well or not: the page waits for it
            for portion, call in later:
                self._in_between(portion, call, CALM)
            self._warming = False

        thread = threading.Thread(target=go, name="whorl-warming", daemon=True)
        thread.start()
        return thread

    def report(self) -> dict[str, Any]:
        """How far the warming is: `ready` as soon as what is needed was done."""
        done, needed = self._done, self._needed
        return {
            "ready": done >= needed,
            "done": done,
            "needed": needed,
            "warming": self._warming,
        }

    def _in_between(self, portion: str, call: Callable[[], Any], calm: float) -> None:
        with self._changed:
            while not self._closed and (
                portion in self._busy
                or portion in self._waiting
                or time.monotonic() - self._asked < calm
            ):
                self._changed.wait(0.2)
            if self._closed:
                return
            self._busy.add(portion)
        with contextlib.suppress(Exception):  # the page asks for the same, and shows why it fails
            self._called(portion, call)

    def close(self) -> None:
        """Begin nothing more, and wait for what is being computed.

        A thread that is still inside a compiler when Python ends would abort the process.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy)
