"""What the commands that run studies share.

A progress bar, and a verdict and an audit in words.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whorl_cli import _memory, _output

STEP = 0.005  # of the work, between two lines of progress in a file
# A notebook gives commands a terminal of their own and keeps every frame of a bar that they draw.
IN_NOTEBOOK = "JPY_PARENT_PID" in os.environ


def ready() -> None:
    """Double precision, before anything is computed, and matplotlib with its own settings."""
    import jax

    _output.import_matplotlib()

    jax.config.update("jax_enable_x64", True)


@contextmanager
def hurried(quick: bool) -> Iterator[None]:
    """A smoke run compiles fast instead of running fast.

    Programs of the two kinds differ in last bits and never serve each other.
    """
    import jax

    if not quick:
        yield
        return
    before = jax.config.read("jax_disable_most_optimizations")
    jax.clear_caches()
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)
        jax.clear_caches()


@contextmanager
def bar(
    title: str,
    pieces: int,
    quiet: bool,
    weigh: Callable[[Any], float] = lambda _: 1.0,
    seconds: float | None = None,
) -> Iterator[Callable[[Any], None]]:
    """Progress on the error stream: a bar on a terminal, a line per piece where it is piped.

    `seconds` is what all pieces together should take, in the unit of `weigh`: the time left begins
    there and follows what is measured.
    """
    if quiet or pieces == 0 or not _has_reader():
        yield lambda _: None
        return
    total = seconds or float(pieces)
    began, done, kept, count = time.monotonic(), 0.0, 0.0, 0

    def left(seen: float) -> str:
        doubt = 0.1 if seconds else 0.0  # how much of the work the expectation counts for
        share, elapsed = seen / max(total - kept, 1e-9), time.monotonic() - began
        if share + doubt <= 0:
            return "-:--"
        whole = (elapsed + doubt * (seconds or 0.0)) / (share + doubt)
        minutes, rest = divmod(round(max(whole * (1 - share), 0.0)), 60)
        return f"{minutes}:{rest:02d}"

    with _shown(title, total, left) as show:
        show(title, f"0/{pieces}", 0.0, 0.0)

        def told(what: Any) -> None:
            nonlocal done, kept, count
            count += 1
            size = weigh(what)
            if ": kept " in str(what):  # done before: it says nothing about the time of the rest
                kept += size
            else:
                done += size
            words = str(what).removeprefix(f"{title}: ")
            show(_output.plain(f"{title}: {words}"), f"{count}/{pieces}", done, kept)

        yield told


def _has_reader() -> bool:
    """Whether the error stream is a terminal, a file or a pipe, and not something of Python's."""
    try:
        return sys.stderr.isatty() or sys.stderr.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False


@contextmanager
def _shown(
    title: str, total: float, left: Callable[[float], str]
) -> Iterator[Callable[[str, str, float, float], None]]:
    """What draws a state: a bar, or a line."""
    if IN_NOTEBOOK or not sys.stderr.isatty():
        said, step = -1.0, 0.1 if IN_NOTEBOOK else STEP

        def line(what: str, count: str, done: float, kept: float) -> None:
            nonlocal said
            share = min((done + kept) / total, 1.0)
            if share - said < step and share < 1:
                return
            said = share
            print(f"whorl: {what} ({count}, {left(done)} left)", file=sys.stderr, flush=True)  # noqa: T201

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]} left"),
    )
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(_output.plain(title), total=total, count="", left=left(0.0))

        def drawn(what: str, count: str, done: float, kept: float) -> None:
            progress.update(
                task,
                completed=done + kept,
                description=what[:44].ljust(44),
                count=count,
                left=left(done),
            )

        yield drawn


def add_memory(parser: Any) -> None:
    """The option that says how much a study may take."""
    parser.add_argument(
        "--memory",
        type=_output.size,
        metavar="SIZE",
        help="what it may take, such as 64GB (default: what is available)",
    )


def planned(study: Any, quick: bool, given: Any) -> int:
    """Say what a run would take, and stop."""
    from dataclasses import asdict

    from whorl.study import cost

    found = cost.estimate(study, quick)
    if given.json:
        _output.say(asdict(found))
    else:
        whole, compiling = _minutes(found.seconds), _minutes(found.compiling)
        _output.line(
            f"{found.rows} rows in its tables; about {whole} on two cores, {compiling} of it to "
            f"compile programs, {cost.size(found.memory)} of memory and {cost.size(found.disk)} "
            "on the disk"
        )
    return 0


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def conducted(title: str, studies: list[Any], folder: Path, given: Any) -> Any:
    """Designs with their locks, conducted under a progress bar."""
    from whorl.study import conduct, cost, run
    from whorl.study.conduct import LATER

    costs = {design.name: cost.estimate(design, given.quick).seconds for design, _ in studies}
    each = {
        design.name: costs[design.name] / run.pieces(design, given.quick) for design, _ in studies
    }
    rest = 0.07 * sum(costs.values())  # figures, audit and report, each

    def weigh(what: Any) -> float:
        return each.get(str(what).partition(":")[0], rest)

    pieces = sum(run.pieces(design, given.quick) for design, _ in studies) + len(LATER)
    seconds = sum(costs.values()) + len(LATER) * rest
    with bar(title, pieces, given.json, weigh, seconds) as progress:
        return conduct(
            [design for design, _ in studies],
            folder,
            registered=[lock for _, lock in studies],
            quick=given.quick,
            csv=given.csv,
            memory=given.memory or _memory.room(),
            progress=progress,
        )


def say(done: Any, **more: Any) -> None:
    """What came of studies, for machines."""
    _output.say(
        {
            "folder": str(done.folder),
            "verdicts": done.verdicts,
            "audit": done.findings,
            **more,
            "as_registered": done.as_expected,
        }
    )


def verdict_lines(verdict: dict[str, Any]) -> list[str]:
    """One study in a few lines: its verdict, and the gates that failed."""
    stamp = "" if verdict["registered"] else f"  [UNREGISTERED: {verdict['why_unregistered']}]"
    lines = [
        (
            f"{verdict['study']:<12}{verdict['verdict']}, expected "
            f"{verdict['expected'] or 'nothing'}{stamp}"
        )
    ]
    for gate in verdict["gates"]:
        if not gate["passed"] and not verdict["quick"]:
            seen = "missing" if gate["value"] is None else f"{gate['value']:g}"
            wanted = f"{gate['statistic']} is {seen}, wanted {gate['relation']} {gate['bound']:g}"
            lines.append(f"            gate not met: {gate['name']} ({wanted})")
    return [_output.plain(one) for one in lines]


def audit_line(findings: list[dict[str, Any]]) -> str:
    """The audit in one line, or in one line per failed claim."""
    failed = [f for f in findings if not f["passed"]]
    if not failed:
        return f"audit       {len(findings)} claims rederived by other routes, all hold"
    shown = [
        f"            {f['claim']}: error {f['error']}, tolerance {f['tolerance']}, {f['where']}"
        for f in failed[:20]
    ]
    return "\n".join(
        [f"audit       {len(failed)} of {len(findings)} claims FAIL", *map(_output.plain, shown)]
    )
