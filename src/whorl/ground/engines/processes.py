"""Every core of this machine: one process per core, from the standard library.

A pool whose worker was killed is of no more use and is made anew; what was under way is asked for
again. Workers end with this process, whatever ends it, and the folder of compiled programs that it
leaves then is removed by the next run.
"""

import multiprocessing
import os
import runpy
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from whorl import _check
from whorl.ground import store
from whorl.ground.engines import TRIES, Job, Strikes, lifeline, remote

COMPILED = "whorl-compiled-"
# One thread of linear algebra in a worker, which is a core already; and no modules from the folder
# that the sweep was started in.
INHERITED = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONSAFEPATH"), "1"
)
INHERITED |= {
    "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning"
}  # what an interrupted process left to others to clean up


class Processes:
    """Processes of this machine, each with one thread of linear algebra, which share what they
    compile while they run.

    Examples:
        >>> from whorl import sweep
        >>> sweep.Processes(2).workers
        2
    """

    def __init__(self, workers: int | None = None, tries: int = TRIES) -> None:
        self.workers: int = _check.count(
            "workers", (os.cpu_count() or 1) if workers is None else workers
        )
        self.tries = tries

    def run(self, work: Job, numbers: Sequence[int]) -> Iterator[Any]:
        waiting, strikes = list(reversed(numbers)), Strikes(self.tries)
        tidy()
        prefix = f"{COMPILED}{store.owner()}-"
        with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as compiled:
            while waiting:
                yield from self._round(work, waiting, strikes, compiled)

    def _round(
        self, work: Job, waiting: list[int], strikes: Strikes, compiled: str
    ) -> Iterator[Any]:
        """Work until all is done or a worker dies; what died with it is waiting again."""
        running: dict[Future[Any], int] = {}
        context = multiprocessing.get_context("spawn")
        line, end = context.Pipe(duplex=False)
        with _starting(compiled):
            pool = ProcessPoolExecutor(self.workers, context, runpy.run_path, lifeline.terms(line))
        try:
            while waiting or running:
                while (
                    waiting and len(running) < self.workers
                ):  # no more than that, so that every number under way has a worker
                    with _starting(compiled):
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
            if running:  # nobody wants to know any more
                end.close()
            pool.shutdown(wait=True, cancel_futures=True)
            end.close()
            line.close()


@contextmanager
def _starting(compiled: str) -> Iterator[None]:
    """What a worker inherits where nothing else was said.

    It reads this when it starts, and only then.
    """
    shared = {
        "JAX_COMPILATION_CACHE_DIR": compiled,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }
    wanted = INHERITED | (shared if "JAX_COMPILATION_CACHE_DIR" not in os.environ else {})
    fresh = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(fresh)
    try:
        with lifeline.deaf():
            yield
    finally:
        for name in fresh:
            os.environ.pop(name, None)


def tidy() -> None:
    """Remove the folders of compiled programs whose owners were killed."""
    for path in Path(gettempdir()).glob(f"{COMPILED}*"):
        if store.orphaned(path.name.removeprefix(COMPILED)):
            shutil.rmtree(path, ignore_errors=True)
