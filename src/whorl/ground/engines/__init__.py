"""Engines: who does the work.

One small interface: `run` takes a job and the numbers of its pieces, and yields a report for each.

An engine may do a piece twice, and may lose its workers; it remembers nothing. What a sweep has
done is in its store alone, so that any engine can go on where another was stopped.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any, Protocol, runtime_checkable

import jax

from whorl import _check

TRIES = 10  # workers that a piece may cost before it counts as failed


@runtime_checkable
class Job(Protocol):
    """Work in numbered pieces, small enough to be sent to every worker.

    The shards of a sweep, or the root seeds of a study.

    Reports have the `number` of their piece.

    Examples:
        >>> from whorl import sweep
        >>> isinstance(print, sweep.Job)
        False
    """

    def __call__(self, number: int, /) -> Any:
        """Do a piece and report it.

        What it raises ends the run: a case that fails is no reason to, a full disk is.
        """
        ...

    def kept(self, left: set[int], /) -> Iterator[Any]:
        """Reports of pieces that were finished while nobody listened."""
        ...

    def give_up(self, number: int, reason: str) -> Any:
        """Report a piece that no worker survives."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Whoever does the work.

    Examples:
        >>> from whorl import sweep
        >>> sweep.InProcess().workers
        1
    """

    workers: int

    def run(self, work: Job, numbers: Sequence[int]) -> Iterator[Any]:
        """Do the pieces and report each as soon as it is done, in any order."""
        ...


class InProcess:
    """Here, one shard after the other.

    Examples:
        >>> from whorl import sweep
        >>> engine = sweep.InProcess()
    """

    workers = 1

    def run(self, work: Job, numbers: Sequence[int]) -> Iterator[Any]:
        for number in numbers:
            yield _on(None, work, number)


class Devices:
    """Every accelerator of this process, each with a thread that takes the next shard, and one more
    that prepares its data meanwhile.

    Pairs know nothing of each other, so a mesh over the devices would add nothing but a program
    whose shape, and with it the last bits of a result, depends on how many devices there are.

    Examples:
        >>> from whorl import sweep
        >>> engine = sweep.Devices()
    """

    def __init__(self, devices: Sequence[Any] | None = None, ahead: int = 1) -> None:
        self.devices: list[Any] = list(jax.devices() if devices is None else devices)
        self.ahead: int = _check.count("ahead", ahead, 0)
        self.workers: int = len(self.devices) * (1 + ahead)

    def run(self, work: Job, numbers: Sequence[int]) -> Iterator[Any]:
        limit = getattr(work, "limit", None)
        if limit is not None:
            raise ValueError(
                "limit must be left out on devices of this process, which cannot be taken back, "
                f"but it is {limit}"
            )
        waiting = iter(numbers)
        with ThreadPoolExecutor(self.workers) as pool:
            running = {}
            for device in self.devices * (1 + self.ahead):
                if (number := next(waiting, None)) is not None:
                    running[pool.submit(_on, device, work, number)] = device
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    device = running.pop(future)
                    yield future.result()
                    if (number := next(waiting, None)) is not None:
                        running[pool.submit(_on, device, work, number)] = device


def _on(device: Any, work: Job, number: int) -> Any:
    """A piece in this process, in double precision whatever its owner has set for the rest."""
    with jax.enable_x64(True), jax.default_device(device):
        return work(number)


def remote(work: Job, number: int) -> Any:
    """A piece in a process that is nobody else's: double precision first."""
    jax.config.update("jax_enable_x64", True)
    return work(number)


class Strikes:
    """How many workers each piece has cost."""

    def __init__(self, tries: int = TRIES) -> None:
        self.tries: int = _check.count("tries", tries)
        self.counts: dict[int, int] = {}

    def against(self, number: int) -> bool:
        """Count one more, and say whether it was one too many."""
        self.counts[number] = self.counts.get(number, 0) + 1
        return self.counts[number] >= self.tries

    def reason(self, number: int) -> str:
        """Why a piece that nobody survived has no result."""
        return f"the worker ended {self.counts[number]} times in a row without a result"
