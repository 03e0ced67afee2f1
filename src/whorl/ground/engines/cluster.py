"""A cluster through dask.distributed, which schedules, retries and moves work away from workers
that die.

The scheduler knows nothing that the store does not: workers write their shards themselves, into a
folder that all of them see. When the connection is lost, the client looks again for a scheduler
under the same address or file, and asks for what the store does not hold yet.
"""

import contextlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from hashlib import sha256
from pathlib import Path
from typing import Any

from whorl.ground.engines import TRIES, Job, Strikes, remote

WINDOW = 2000  # shards that the scheduler knows of at a time
# of a shard whose work raised, before the sweep stops: a file system may have had a bad moment
RETRIES = 2
PULSE, ANSWER = 0.05, 30.0  # seconds between two looks, and for an answer that is there already
PATIENCE = 300.0  # seconds without a scheduler before the sweep gives up
LONELY = 30.0  # seconds without a shard before it looks whether anybody is at work


class Cluster:
    """Workers behind a scheduler, found by its address or by the file it wrote (`dask scheduler
    --scheduler-file`).

    `security` is a `distributed.Security` where the cluster speaks TLS; left out, it is what the
    configuration of dask says.

    Examples:
        >>> from whorl import sweep
        >>> engine = sweep.Cluster(scheduler_file="scheduler.json")
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        scheduler_file: Path | str | None = None,
        tries: int = TRIES,
        patience: float = PATIENCE,
        security: Any = None,
    ) -> None:
        if (address is None) == (scheduler_file is None):
            raise ValueError(
                "a cluster must have an address or a scheduler file, but it has "
                f"{'neither' if address is None else 'both'}"
            )
        self.place: dict[str, Any] = (
            {"address": address} if address is not None else {"scheduler_file": str(scheduler_file)}
        )
        self.tries: int = tries
        self.patience: float = patience
        self.security: Any = security
        self.workers = 1  # for estimates; a cluster may grow and shrink

    def run(self, work: Job, numbers: Sequence[int]) -> Iterator[Any]:
        left, strikes = set(numbers), Strikes(self.tries)
        while left:
            client = self._client()
            try:
                for report in _round(client, work, left, strikes, self._moved):
                    left.discard(report.number)
                    yield report
            finally:
                client.close(timeout=5)
            for report in work.kept(left):
                left.discard(report.number)
                yield report

    def _client(self) -> Any:
        from distributed import Client

        end = time.monotonic() + self.patience
        while True:
            try:
                if (
                    "scheduler_file" in self.place
                ):  # for which the client of dask would wait for ever
                    Path(self.place["scheduler_file"]).stat()
                return Client(
                    **self.place, timeout=10, security=self.security, set_as_default=False
                )
            except (
                OSError,
                TimeoutError,
                ValueError,
            ) as wrong:  # no file yet, a file half written, or nobody at the address
                if time.monotonic() > end:
                    where = next(iter(self.place.values()))
                    raise ValueError(
                        f"scheduler must answer at {where}, but it did not for {self.patience:g} s"
                    ) from wrong
                time.sleep(1.0)

    def _moved(self, client: Any) -> bool:
        """Whether the file names another scheduler by now.

        Whoever started ours has started another, and may have left ours behind.
        """
        if "scheduler_file" not in self.place:
            return False
        with contextlib.suppress(
            OSError, ValueError, KeyError, TypeError
        ):  # no file, or one half written
            return (
                json.loads(Path(self.place["scheduler_file"]).read_bytes())["address"]
                != client.scheduler.address
            )
        return False


def _round(
    client: Any, work: Job, left: set[int], strikes: Strikes, moved: Callable[[Any], bool]
) -> Iterator[Any]:
    """Work until all is done or the scheduler is gone."""
    from distributed import KilledWorker, as_completed

    waiting, numbers, under_way = sorted(left, reverse=True), {}, as_completed(loop=client.loop)
    name = sha256(repr(work).encode()).hexdigest()[
        :16
    ]  # of this design in this folder: others may use the same scheduler

    def submit() -> None:
        number = waiting.pop()
        key = f"whorl-{name}-{number}-{strikes.counts.get(number, 0)}"
        future = client.submit(remote, work, number, key=key, retries=RETRIES, pure=False)
        numbers[key] = number
        under_way.add(future)

    for _ in range(min(WINDOW, len(waiting))):
        submit()
    while numbers and (future := _next(client, under_way, numbers, moved)) is not None:
        number = numbers.pop(future.key)
        report, wrong = _outcome(future)
        if report is not None:
            yield report
        elif wrong is None:
            return
        elif not isinstance(wrong, KilledWorker):
            raise wrong
        elif strikes.against(number):
            yield work.give_up(number, strikes.reason(number))
        else:
            waiting.append(number)
        if waiting:
            submit()


def _next(
    client: Any, under_way: Any, numbers: dict[str, int], moved: Callable[[Any], bool]
) -> Any:
    """The next future that came to an end, or None where the scheduler that knew of them is gone,
    with them.
    """
    look = time.monotonic() + LONELY
    while not under_way.has_ready():
        if client.status != "running" or not numbers.keys() <= client.futures.keys():
            return None
        if time.monotonic() > look:
            if _alone(client) and moved(client):
                return None
            look = time.monotonic() + LONELY
        time.sleep(PULSE)
    return next(under_way)


def _alone(client: Any) -> bool:
    """Without workers a sweep waits, since a batch system may still start some.

    Whoever looks on should know.
    """
    with contextlib.suppress(OSError, TimeoutError):
        if not client.nthreads():
            words = (
                "a sweep must have workers, but none is connected to the scheduler: it waits"
                " for one"
            )
            warnings.warn(words, RuntimeWarning, stacklevel=2)
            return True
    return False


def _outcome(future: Any) -> tuple[Any, BaseException | None]:
    """What a shard's future came to: a report, an error, or neither where nobody is left to ask."""
    try:
        if future.status == "finished":
            return future.result(timeout=ANSWER), None
        return None, future.exception(timeout=ANSWER) if future.status == "error" else None
    except (CancelledError, TimeoutError, OSError):
        return None, None
