"""Who may compute when: warm programs side by side, cold ones one after the other, and never more waiting than a few.

A program that is not compiled yet takes seconds. Such work has a lane of its own, so that a visitor who opens a new width does not
stop the slider of another. Whoever finds too many in front of them is told so, and the page asks again.
"""

import contextlib
import gc
import os
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

CALM = 3.0  # seconds without a request after which nobody seems to play


class BusyError(RuntimeError):
    """More was asked than can be done soon."""


class Work:
    """Two lanes, and which programs are compiled."""

    def __init__(self, workers: int | None = None, waiting: int = 64, patience: float = 60.0) -> None:
        self._quick = threading.BoundedSemaphore(workers or max(2, os.cpu_count() or 1))
        self._cold = threading.BoundedSemaphore(1)
        self._room = threading.BoundedSemaphore(waiting)
        self._patience = patience
        self._compiled: set[Hashable] = set()
        self._asked = 0  # visitors who wait for a cold program
        self._last = -CALM  # when somebody asked for anything
        self._count = threading.Lock()
        self.warming: Warming = Warming()

    def do(self, program: Hashable, call: Callable[[], Any]) -> Any:
        """Call, in the lane that `program` belongs to."""
        if not self._room.acquire(blocking=False):
            raise BusyError("the explorer must finish what it was asked before, but too many requests wait: it tries again by itself")
        cold = program not in self._compiled
        self._last = time.monotonic()
        try:
            self._ask(cold)
            return self._in_lane(program, call)
        finally:
            self._ask(-cold)
            self._room.release()

    def _ask(self, more: int) -> None:
        with self._count:
            self._asked += more

    def _in_lane(self, program: Hashable, call: Callable[[], Any]) -> Any:
        warm = program in self._compiled
        lane = self._quick if warm else self._cold
        if not lane.acquire(timeout=self._patience):
            raise BusyError("the explorer must finish what it was asked before, but that takes long: it tries again by itself")
        try:
            result = call()
        finally:
            lane.release()
        self._compiled.add(program)
        return result

    def mark(self, program: Hashable) -> None:
        """Say that `program` is compiled."""
        self._compiled.add(program)

    def _step_back(self) -> None:
        """Warm on only while nobody waits or plays, and behind everything else that runs."""
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
        while self._asked or time.monotonic() - self._last < CALM:
            time.sleep(0.05)

    def is_warm(self, program: Hashable) -> bool:
        """Whether `program` is compiled."""
        return program in self._compiled

    def warm(self, jobs: Sequence[tuple[str, Hashable, Callable[[], Any]]], needed: int, *, alone: bool = False) -> threading.Thread:
        """Compile in the background; the page counts as ready after the first `needed` jobs. `alone`: nothing else uses this process."""
        self.warming = Warming(needed)

        def go() -> None:
            for number, (label, program, call) in enumerate(jobs):
                self.warming.label = label
                if number >= needed:
                    self._step_back()
                if not self.is_warm(program):
                    self._in_lane(program, call)
                self.warming.done = number + 1
                if alone and number + 1 == needed:
                    # What compiling left behind stays for ever; a collector that looks through it again costs a tenth of a second.
                    gc.collect()
                    gc.freeze()
            self.warming.label = ""

        thread = threading.Thread(target=go, name="whorl-warming", daemon=True)
        thread.start()
        return thread


class Warming:
    """How far the warming is."""

    def __init__(self, needed: int = 0) -> None:
        self.needed: int = needed
        self.done: int = 0
        self.label: str = ""

    @property
    def ready(self) -> bool:
        """Whether every control of the default width answers at once."""
        return self.done >= self.needed

    def report(self) -> dict[str, Any]:
        """For the page."""
        return {"ready": self.ready, "done": min(self.done, self.needed), "needed": self.needed, "label": self.label}
