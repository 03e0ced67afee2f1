"""One process for each peer, so that idle threads of one do not slow the others and every clock
counts one peer alone.

A worker prepares a problem, then waits at its pipe. Only the worker whose turn it is runs; the
pause before each turn lets the threads of the last one fall asleep. OpenMP threads wait asleep, not
spinning, unless the environment says otherwise: on a machine with other work spinning threads cost
PyTorch a factor of ten and more.
"""

import functools
import importlib
import multiprocessing
import os
import time

import timing

PAUSE = 0.1


def serve(pipe, name, problems):
    """Import one peer and do what comes through the pipe.

    ("answer" or "prepare", what the module `problems` makes a problem of), or ("time", seconds).
    """
    os.environ.setdefault(
        "OMP_WAIT_POLICY", "PASSIVE"
    )  # read when the first OpenMP library is loaded
    try:
        problem = importlib.import_module(f"peers.{problems}").problem
        run = importlib.import_module(f"peers.{name}").run
    except ImportError as error:
        pipe.send(str(error))
        return
    pipe.send(None)
    given = {}
    while (job := pipe.recv()) is not None:
        what, *rest = job
        if what == "time":
            pipe.send(timing.several(functools.partial(run, **given), *rest))
            continue
        given = problem(*rest)
        start = time.perf_counter()
        answer = run(**given)
        pipe.send((answer if what == "answer" else None, time.perf_counter() - start))


class Worker:
    """A peer in a process of its own; `missing` says why it cannot run here."""

    def __init__(self, name, problems="problem"):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, name, problems), daemon=True)
        self.process.start()
        self.missing = self.pipe.recv()

    def ask(self, *job):
        self.pipe.send(job)
        return self.pipe.recv()

    def stop(self):
        if self.missing is None:
            self.pipe.send(None)
        self.process.join()


def in_turns(workers, problems, rounds, seconds):
    """The best time of each worker, in turns, on the problem made of `problems[name]`.

    The first call of each is not counted.
    """
    for name, worker in workers.items():
        worker.ask("prepare", *problems[name])
    seen = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            time.sleep(PAUSE)
            seen[name].append(worker.ask("time", seconds))
    return {name: timing.best(results) for name, results in seen.items()}
