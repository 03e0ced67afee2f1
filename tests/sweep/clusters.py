"""Real schedulers and workers on this machine, and a hand that kills them."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil

HERE = Path(__file__).parents[1]
# An unlucky shard may lose several workers in a row before it is finished.
QUIET = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "20",
    "DASK_LOGGING__DISTRIBUTED": "critical",
    "OMP_NUM_THREADS": "1",
}


class Cluster:
    """A scheduler and its workers as `docs/sweeps.md` starts them.

    Processes that know each other by a file.
    """

    def __init__(self, folder, workers, *options):
        self.file, self.workers, self.options, self.processes = (
            Path(folder) / "scheduler.json",
            workers,
            options,
            [],
        )
        self.log = (Path(folder) / "cluster.log").open("ab")

    def start(self):
        self.file.unlink(
            missing_ok=True
        )  # a worker must not find the file of a scheduler that is no more
        self.processes = [self.begin("dask_scheduler", "--port", "0")]
        self.processes += [self.worker() for _ in range(self.workers)]

    def worker(self):
        alone = [
            "--nthreads",
            "1",
            "--memory-limit",
            "0",
            "--local-directory",
            str(self.file.parent),
        ]
        return self.begin("dask_worker", *alone, *self.options)

    def begin(self, name, *options):
        paths = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
        local = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(self.file)]
        command = [sys.executable, "-m", f"distributed.cli.{name}", *options, *local]
        return subprocess.Popen(
            command,
            env=os.environ | QUIET | {"PYTHONPATH": paths},
            stdout=self.log,
            stderr=self.log,
        )

    def worker_processes(self):
        """The processes that compute, below the nannies that watch over them.

        A nanny whose worker is killed before it has answered ends as well; a new one takes its
        place, as a batch system would see to.
        """
        found = []
        for place, nanny in enumerate(self.processes[1:], 1):
            if nanny.poll() is not None:
                self.processes[place] = self.worker()
                continue
            try:
                found += [
                    one
                    for one in psutil.Process(nanny.pid).children()
                    if "spawn_main" in " ".join(one.cmdline())
                ]
            except psutil.Error:
                continue
        return found

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                below = psutil.Process(process.pid).children(recursive=True)
                for one in [process, *below]:
                    try:
                        one.kill()
                    except psutil.Error:
                        continue
                process.wait()
        self.processes = []


@contextmanager
def cluster(folder, workers, *options):
    made = Cluster(folder, workers, *options)
    made.start()
    try:
        yield made
    finally:
        made.end()
        made.log.close()


def kill_one(found, rng):
    """SIGKILL for one of the processes, if there is one that was up long enough to be computing."""
    ready = []
    for one in found:
        try:
            if one.cpu_times().user > 1.0:
                ready.append(one)
        except psutil.Error:
            continue
    if not ready:
        return 0
    os.kill(rng.choice(ready).pid, signal.SIGKILL)
    return 1


def killing(found, kills, seed, stop, pause=0.4):
    """Kill at random moments until the number is reached or the work is done.

    Answer with how often.
    """
    rng, done = random.Random(seed), 0
    while done < kills and not stop():
        time.sleep(rng.uniform(0, pause))
        done += kill_one(found(), rng)
    return done
