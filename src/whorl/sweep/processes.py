"""Every core of this machine: one process a core, from the standard library.

A pool whose worker was killed is of no more use and is made anew; what was under way is asked for again.
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import jax

from whorl import _check
from whorl.sweep.engines import TRIES, Job, Strikes, remote, undisturbed

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # of linear algebra in a worker, which is a core already


class Processes:
    """Processes of this machine, each with one thread of linear algebra, which share what they compile while they run.

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
        with TemporaryDirectory(prefix="whorl-compiled-", ignore_cleanup_errors=True) as compiled:
            while waiting:
                yield from self._round(work, waiting, strikes, compiled)

    def _round(self, work: Job, waiting: list[int], strikes: Strikes, compiled: str) -> Iterator[Any]:
        """Work until all is done or a worker dies; what died with it is waiting again."""
        running: dict[Future[Any], int] = {}
        context = multiprocessing.get_context("spawn")
        with _worker():  # a process that watches over what the others share is started here
            made = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_share, initargs=(compiled,))
        with made as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < self.workers:  # no more than that, so that every number under way has a worker
                        with _worker():
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
            except KeyboardInterrupt:
                for process in list(pool._processes.values()):
                    process.kill()  # they did not hear it
                raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _worker() -> Iterator[None]:
    """What a worker inherits where nothing else was said; it reads this when it starts, and only then."""
    quiet = {"PYTHONWARNINGS": "ignore:resource_tracker:UserWarning"}  # of what an interrupted process left to others to clean up
    fresh = {name: text for name, text in (dict.fromkeys(THREADS, "1") | quiet).items() if name not in os.environ}
    os.environ.update(fresh)
    try:
        with undisturbed():
            yield
    finally:
        for name in fresh:
            os.environ.pop(name, None)


def _share(folder: str) -> None:
    """Let a worker keep what it compiles where the others find it, unless such a place was named before."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
