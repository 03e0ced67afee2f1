"""Who computes when.

Visitors take turns, nobody waits longer than stated, and what several ask for is computed once.

Three lanes: programs that are compiled run side by side, those that are not one after the other,
and files that visitors opened one after the other too; so a visitor who opens a new width or a
large file does not stop the slider of another. Whoever has no answer within `PATIENCE` seconds is
asked to come again; what was begun goes on meanwhile, and is there the next time.
"""

import contextlib
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from whorl.explorer.turns import Client, Job, Turns

CALM = 3.0  # seconds without a request after which nobody seems to play
PATIENCE = 10.0  # seconds after which whoever waits has an answer, if only to come again
WAITING = 256  # requests that may wait
FILE = "file"  # the program of an opened file


class BusyError(RuntimeError):
    """More was asked than can be done soon."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the explorer must finish what it was asked before, but {why}: it tries again by "
            "itself"
        )


class Work:
    """The queue, its lanes, and which programs are compiled."""

    def __init__(
        self, workers: int | None = None, waiting: int = WAITING, patience: float = PATIENCE
    ) -> None:
        self._lanes: dict[str, int] = {
            "quick": workers or max(2, os.cpu_count() or 1),
            "cold": 1,
            FILE: 1,
        }
        self._running: Counter[str] = Counter()
        self._turns = Turns(waiting)
        self._asked: dict[Hashable, Job] = {}  # what is waited for or computed, by what was asked
        self._compiled: set[Hashable] = set()
        self._patience = patience
        self._last = -CALM  # when somebody asked for anything
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self.warming: Warming = Warming()

    def do(
        self,
        program: Hashable,
        call: Callable[[], Any],
        *,
        key: Hashable = None,
        client: Client = ("", ""),
    ) -> Any:
        """Call when it is the turn of `client`, or share the answer to whoever asked for the same
        `key` before.
        """
        job = self._joined(Job(program, call, key), client)
        if not job.done.wait(self._patience):
            self._leave(job, client)
            raise BusyError("that takes long")
        if job.error is not None:
            raise job.error
        return job.result

    def _joined(self, job: Job, client: Client) -> Job:
        with self._changed:
            self._last = time.monotonic()
            if self._closed:
                raise BusyError("it was closed")
            if job.key is not None and job.key in self._asked:
                self._asked[job.key].clients.append(client)
                return self._asked[job.key]
            if job.key is not None:
                self._asked[job.key] = job
            refused = self._turns.add(job, client, self._running.total())
            if refused is not None:
                self._asked.pop(refused.key, None)
                refused.end(error=BusyError("too many requests wait"))
            self._start()
            self._changed.notify_all()
            return job

    def _leave(self, job: Job, client: Client) -> None:
        """Wait no more; what nobody waits for and nobody has begun is not begun."""
        with self._changed:
            job.clients.remove(client)
            if not job.clients and job in self._turns.jobs:
                self._turns.jobs.remove(job)
                self._asked.pop(job.key, None)

    def _start(self) -> None:
        """The threads that compute, when there is something to compute."""
        if not any(thread.name == "whorl-work" for thread in self._threads):
            for lane in (lane for lane, number in self._lanes.items() for _ in range(number)):
                self._begin(lambda lane=lane: self._serve(lane), "whorl-work")

    def _begin(self, target: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _lane(self, job: Job) -> str:
        return FILE if job.program == FILE else "quick" if job.program in self._compiled else "cold"

    def _serve(self, lane: str) -> None:
        while (job := self._next(lane)) is not None:
            result, error = None, None
            try:
                result = job.call()
                self.mark(job.program)
            except BaseException as wrong:  # for whoever asked, and not for this thread
                error = wrong
            self._free(lane, job.key)
            job.end(result, error)

    def _next(self, lane: str) -> Job | None:
        """The job whose turn it is, as soon as there is one and room for it; None at the end."""
        with self._changed:
            while not self._closed:
                free = self._running[lane] < self._lanes[lane]
                job = self._turns.take(lambda one: self._lane(one) == lane) if free else None
                if job is not None:
                    self._running[lane] += 1
                    return job
                self._changed.wait()
        return None

    def _free(self, lane: str, key: Hashable = None) -> None:
        with self._changed:
            self._running[lane] -= 1
            self._asked.pop(key, None)
            self._changed.notify_all()

    def mark(self, program: Hashable) -> None:
        """Say that `program` is compiled."""
        self._compiled.add(program)

    def is_warm(self, program: Hashable) -> bool:
        """Whether `program` is compiled."""
        return program in self._compiled

    def close(self) -> None:
        """Refuse what waits, and come back when nothing runs.

        A thread left inside a compiler would abort a process that ends.
        """
        with self._changed:
            self._closed = True
            for job in self._turns.jobs:
                job.end(error=BusyError("it was closed"))
            self._turns.jobs.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def warm(
        self,
        jobs: Sequence[tuple[str, Hashable, Callable[[], Any]]],
        needed: int,
        *,
        alone: bool = False,
    ) -> threading.Thread:
        """Compile in the background; the page counts as ready after the first `needed` jobs.

        `alone`: nothing else uses this process.
        """
        self.warming = Warming(needed)

        def go() -> None:
            for number, (label, program, call) in enumerate(jobs):
                self.warming.label = label
                if number >= needed:
                    self._step_back()
                self._compile(program, call)
                if self._closed:
                    return
                self.warming.done = number + 1
                if alone and number + 1 == needed:
                    # What compiling left behind stays for ever; a collector that looks through it
                    # again costs a tenth of a second.
                    gc.collect()
                    gc.freeze()
            self.warming.label = ""

        return self._begin(go, "whorl-warming")

    def _compile(self, program: Hashable, call: Callable[[], Any]) -> None:
        """Compile as soon as no visitor waits for a compiler."""

        def waits() -> bool:
            return bool(self._running["cold"]) or any(
                self._lane(job) == "cold" for job in self._turns.jobs
            )

        with self._changed:
            while waits() and not self._closed:
                self._changed.wait()
            if self._closed or self.is_warm(program):
                return
            self._running["cold"] += 1
        try:
            call()
            self.mark(program)
        finally:
            self._free("cold")

    def _step_back(self) -> None:
        """Warm on only while nobody waits or plays, and behind everything else that runs."""
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
        while not self._closed and (self._turns.jobs or time.monotonic() - self._last < CALM):
            time.sleep(0.05)


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
        return {
            "ready": self.ready,
            "done": min(self.done, self.needed),
            "needed": self.needed,
            "label": self.label,
        }
