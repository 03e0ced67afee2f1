"""A queue in which visitors take turns, however much each of them asks for.

The turn is that of whoever has had none for the longest time: first among addresses, then among the
visitors of an address. So a flood of requests is a matter between its own. Where the queue is full,
whoever has the most in it loses the newest of that.
"""

import threading
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

Client = tuple[Hashable, ...]  # an address, and a visitor of that address


class Job:
    """One computation, and everybody who waits for it."""

    def __init__(self, program: Hashable, call: Callable[[], Any], key: Hashable = None) -> None:
        self.program, self.call, self.key = program, call, key
        self.number = 0  # in the order in which jobs came
        self.clients: list[Client] = []
        self.done: threading.Event = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def end(self, result: Any = None, error: BaseException | None = None) -> None:
        """Answer everybody who waits."""
        self.result, self.error = result, error
        self.done.set()


class Turns:
    """The queue. Whoever uses it from several threads has a lock."""

    def __init__(self, most: int) -> None:
        self.jobs: list[Job] = []
        self._most = most
        self._turns: dict[Client, int] = {}  # the last turn of each address and visitor
        self._count = 0

    def add(self, job: Job, client: Client, taken: int = 0) -> Job | None:
        """Let a job wait for its turn.

        What comes back has to go instead, which may be the same job. `taken`: already under way.
        """
        job.clients.append(client)
        self._count += 1
        job.number = self._count
        self.jobs.append(job)
        if len(self.jobs) + taken <= self._most:
            return None
        held = Counter(
            part for one in self.jobs for client in one.clients for part in (client[:1], client)
        )
        last = max(
            self.jobs,
            key=lambda one: (min((held[who[:1]], held[who]) for who in one.clients), one.number),
        )
        self.jobs.remove(last)
        return last

    def take(self, fits: Callable[[Job], bool]) -> Job | None:
        """The job whose turn it is, among those that fit."""
        job = min(
            filter(fits, self.jobs),
            key=lambda job: (min(map(self._turn, job.clients)), job.number),
            default=None,
        )
        if job is not None:
            self.jobs.remove(job)
            for client in job.clients:
                self._count += 1
                for who in (client[:1], client):
                    self._turns.pop(who, None)
                    self._turns[who] = self._count
            for gone in list(self._turns)[
                : -4 * self._most
            ]:  # visitors whose last turn is long ago
                del self._turns[gone]
        return job

    def _turn(self, client: Client) -> tuple[int, int]:
        return self._turns.get(client[:1], 0), self._turns.get(client, 0)
