"""What the commands that run studies share.

A progress bar, the audit, and the table of a verdict.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from whorl_cli import _child, _memory, _output

PREFIX = "whorl_audit: "  # of a sentence with which the auditor refuses


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


def conducted(
    title: str, studies: list[Any], folder: Path, given: Any
) -> tuple[list[dict[str, Any]], bool, list[dict[str, Any]]]:
    """Studies from design to report: verdicts, whether the audit passed, and its findings."""
    from whorl import figures, report
    from whorl.study import reproduce, run

    total = sum(run.pieces(design, given.quick) for design, _ in studies) + 3
    with bar(title, total, given.json) as progress:

        def adorn(place: Path) -> None:
            figures.draw_all(place, illustration=not given.quick)
            progress("figures")

        room = given.memory or _memory.room()
        verdicts = reproduce.conduct(
            studies,
            folder,
            quick=given.quick,
            csv=given.csv,
            progress=progress,
            adorn=adorn,
            memory=room,
        )
        sound, findings = audited(folder)
        progress("audit")
        report.write(
            folder,
            unverified=None if sound else "the audit of this folder found claims that do not hold",
        )
        reproduce.reseal(folder, verdicts)
        progress("report")
    return verdicts, sound, findings


def audit(folder: Path, *, write: bool = True) -> dict[str, Any]:
    """What the independent auditor says of the folder, in a process of its own that cannot see this
    one, nor run what the folder holds.
    """
    import json
    import subprocess  # nosec B404 # starts this interpreter only

    command = _child.python_command(
        "-m", "whorl_audit", "--json", *([] if write else ["--no-write"]), "--", str(folder)
    )
    # No shell, and a path as one argument.
    answer = subprocess.run(
        command, env=_child.environment(), capture_output=True, text=True, check=False
    )  # nosec B603
    if answer.returncode in (0, 1):
        with suppress(ValueError):
            return json.loads(answer.stdout)
    last = (answer.stderr.strip().splitlines() or [""])[-1]
    if last.startswith(PREFIX):
        raise ValueError(last.removeprefix(PREFIX))
    raise ValueError(
        f"the audit of {folder} must come to its end, but it ended with code {answer.returncode}: "
        f"{last[:200] or 'no word'}"
    )


def audited(folder: Path) -> tuple[bool, list[dict[str, Any]]]:
    """Whether every claim of the folder holds, and the findings."""
    said = audit(folder)
    return said["passed"], said["findings"]


def as_expected(verdicts: list[dict[str, Any]], sound: bool) -> bool:
    """Whether the audit found nothing, and every verdict is the one its design expects.

    Quick runs have no verdict to expect.
    """
    return sound and all(v["quick"] or v["expected"] in (None, v["verdict"]) for v in verdicts)


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


def audit_line(sound: bool, findings: list[dict[str, Any]]) -> str:
    """The audit in one line, or in one a failed claim."""
    if sound:
        return f"audit       {len(findings)} claims rederived by other routes, all hold"
    failed = [f for f in findings if not f["passed"]]
    shown = [
        f"            {f['claim']}: error {f['error']}, tolerance {f['tolerance']}, {f['where']}"
        for f in failed[:20]
    ]
    return "\n".join(
        [f"audit       {len(failed)} of {len(findings)} claims FAIL", *map(_output.plain, shown)]
    )
