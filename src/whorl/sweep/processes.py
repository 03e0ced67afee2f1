"""Every core of this machine: one process a core, from the standard library.

A pool whose worker was killed is of no more use and is made anew; what was under way is asked for again.
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from whorl import _check
from whorl.sweep.engines import TRIES, Job, Strikes, remote


class Processes:
    """Processes of this machine, each with one thread of computation.

    Examples:
        >>> from whorl import sweep
        >>> sweep.Processes(2).workers
        2
    """

    def __init__(self, workers: int | None = None, tries: int = TRIES) -> None:
        self.workers: int = _check.count("workers", (os.cpu_count() or 1) if workers is None else workers)
        self.tries = tries

    def run(self, work: Job, numbers: Sequence[int]) -> Iterator[Any]:
        waiting, strikes = list(reversed(numbers)), Strikes(self.tries)
        while waiting:
            yield from self._round(work, waiting, strikes)

    def _round(self, work: Job, waiting: list[int], strikes: Strikes) -> Iterator[Any]:
        """Work until all is done or a worker dies; what died with it is waiting again."""
        running: dict[Future[Any], int] = {}
        with ProcessPoolExecutor(self.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < self.workers:  # no more than that, so that every number under way has a worker
                        running[pool.submit(remote, work, waiting[-1])] = waiting[-1]
                        waiting.pop()
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        report = future.result()
                        del running[future]
                        yield report
            except BrokenProcessPool:
                for future, number in running.items():
                    if future.done() and future.exception() is None:
                        yield future.result()
                    elif strikes.against(number):
                        yield work.give_up(number, strikes.reason(number))
                    else:
                        waiting.append(number)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
