"""What the commands that run studies share.

A progress bar, and a verdict and an audit in words.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whorl_cli import _memory, _output


def ready() -> None:
    """Double precision, before anything is computed."""
    import jax

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
def bar(title: str, total: int, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """A progress bar with the time left, on the error stream, so that output can be piped.

    None where that is no terminal.
    """
    if quiet or total == 0 or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    shown = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(_output.plain(title), total=total)

        def told(what: Any) -> None:
            progress.update(
                task, advance=1, description=_output.plain(f"{title}: {what}")[:44].ljust(44)
            )

        yield told


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
        minutes, seconds = divmod(round(found.seconds), 60)
        _output.line(
            f"{found.rows} rows in its tables; about {minutes} min {seconds:02d} s on two cores, "
            f"{cost.size(found.memory)} of memory and {cost.size(found.disk)} on the disk"
        )
    return 0


def conducted(title: str, studies: list[Any], folder: Path, given: Any) -> Any:
    """Designs with their locks, conducted under a progress bar."""
    from whorl.study import conduct, run
    from whorl.study.conduct import LATER

    total = sum(run.pieces(design, given.quick) for design, _ in studies) + len(LATER)
    with bar(title, total, given.json) as progress:
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
