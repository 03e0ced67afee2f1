"""A sweep from its design to a full store."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from whorl._show import Shown, plural
from whorl.ground.engines import Engine, InProcess, processes
from whorl.sweep.design import Sweep
from whorl.sweep.plan import Plan, case_bytes
from whorl.sweep.shards import Store, reported
from whorl.sweep.work import TRAIN, Report, Work

PROCESS = (
    450 * 10**6
)  # bytes of a worker before its first case: Python, JAX and a few compiled programs, measured


@dataclass(frozen=True, repr=False)
class Result(Shown):
    r"""What a call of `sweep` found and did.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1"
        ... )
        >>> result = sweep.sweep(design, folder / "few")
        >>> result.shards, result.failed
        (1, 0)
    """

    folder: str
    cases: int
    shards: int
    computed: int  # shards computed now; the others were there
    failed: int  # cases without a result, in all shards

    def __str__(self) -> str:
        lost = f", {self.failed} of them without a result" if self.failed else ""
        made = f"{plural(self.shards, 'shard')}, {self.computed} of them computed now"
        return f"{plural(self.cases, 'case')}{lost}, in {made}; whorl.sweep.conditions reads {self.folder}"


def sweep(
    design: Sweep,
    folder: Path | str,
    *,
    engine: Engine | None = None,
    memory: int | None = None,
    limit: float | None = None,
    retry_failed: bool = False,
    train: str = TRAIN,
    progress: Callable[[Report], None] = lambda _: None,
) -> Result:
    r"""Compute every shard that the folder does not hold yet.

    Args:
        design: What to compute.
        folder: The folder of the sweep: new, empty, or one that the same design began.
        engine: Who computes; this process if left out.
        memory: Bytes that all workers together may take.
        limit: Seconds that one chunk may take.
        retry_failed: Whether shards in which a case failed are computed again.
        train: Another function in place of `train_many`, as `module:function`.
        progress: Told the report of every shard.

    Returns:
        What was found and done.

    Raises:
        ValueError: Where the folder belongs to something else, or `memory` holds not even a chunk.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1"
        ... )
        >>> sweep.sweep(design, folder / "few").cases
        1
    """
    engine = InProcess() if engine is None else engine
    plan, path = Plan(design), Path(folder).absolute()
    kept = Store.enter(path, design)
    missing = kept.missing(plan, retry_failed)
    work = Work(design.text, str(path), train, limit, share(plan, memory, engine.workers))
    processes.tidy()
    reports = engine.run(work, missing)
    try:
        for report in reports:
            progress(report)
    finally:
        getattr(reports, "close", lambda: None)()  # workers end before anything else is done
        kept.tidy()  # what they were writing
    found = kept.found()
    if absent := plan.shards - len(found):
        raise ValueError(
            f"{folder} must hold {plan.shards} shards at the end, but {absent} are missing: were "
            "files removed?"
        )
    failed = sum(reported(paths[0], design)[1] for paths in found.values())
    return Result(str(folder), plan.cases, plan.shards, len(missing), failed)


def share(plan: Plan, memory: int | None, workers: int) -> int | None:
    """What each worker may use for its cases.

    Refuse a budget in which not even one chunk fits beside the program.
    """
    if memory is None:
        return None
    left = memory // workers - PROCESS
    least = plan.design.chunk * max(case_bytes(shape, plan.updates(shape)) for shape in plan.shapes)
    if left < least:
        need = (PROCESS + least) * workers
        rule = (
            f"memory must be at least {need / 1e9:.2g} GB for {workers} worker{'s' * (workers > 1)}"
            " on this design"
        )
        raise ValueError(f"{rule}, but it is {memory / 1e9:.2g} GB")
    return left


def summary(result: Result) -> dict[str, Any]:
    """The same for machines."""
    return asdict(result)
