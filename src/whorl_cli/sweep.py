"""`whorl sweep`: many cases over any parameter, here or on a cluster."""

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whorl_cli import _memory, _output, _study

STORY = """Train coupled pairs over a grid or a random design of parameters, from ten to 1e8 and more.
The folder is all that a sweep remembers: after an interrupt it goes on with the shards that are
missing, on this or any other engine, and ends with the same files.

  whorl sweep examples/sweep.toml --dry-run
  whorl sweep examples/sweep.toml --out runs/mine --engine processes
  whorl sweep examples/sweep.toml --out runs/mine --scheduler-file scheduler.json

A case that fails is a row with a reason. docs/sweeps.md has the details."""
EXIT = """exit codes:
  0  done, and every case has a result
  1  done, but cases failed: the column `reason` says why
  2  bad input, a file that could not be read or written, or too little memory
  70  a fault of whorl itself: please report it
  130  interrupted by Ctrl-C"""


class Choices(argparse.Action):
    """List what a design may name, and stop."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Laws, policies and gates, each with its parameters."""
        from whorl.registry import gates, laws, policies

        for known in (laws, policies, gates):
            _output.line(f"{known.kind}:", known.table(where="sweep"), "")
        parser.exit()


ENGINES = ("local", "processes", "gpu", "cluster")


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(
        commands, "sweep", call, "many cases over any parameter, here or on a cluster", STORY
    )
    parser.epilog = EXIT
    parser.add_argument("design", type=Path, metavar="DESIGN.toml", help="design file")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the sweep (default: runs/NAME, the design's name)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say how many cases there are and about what they cost, and stop",
    )
    parser.add_argument(
        "--choices",
        action=Choices,
        nargs=0,
        help="list the laws, policies and gates that a design may name, and stop",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="who computes (default: local; cluster where a scheduler is named)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes of the engine of that name (default: every core)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="address of a dask scheduler, such as tcp://host:8786",
    )
    parser.add_argument(
        "--scheduler-file",
        type=Path,
        metavar="FILE",
        help="the file that `dask scheduler --scheduler-file` wrote",
    )
    parser.add_argument(
        "--memory",
        type=_output.size,
        metavar="SIZE",
        help="what all workers may use, such as 2GB (default: what is available)",
    )
    parser.add_argument(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="what one chunk of cases may take before it is ended",
    )
    parser.add_argument(
        "--plot", action="store_true", help="draw the mean gap over what was swept, as DIR.png"
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="compute shards in which a case failed again"
    )


def call(given: argparse.Namespace) -> int:
    """Plan, or run what is missing."""
    from whorl import sweep
    from whorl.fields import Field

    _study.ready()
    design = sweep.read(given.design)
    plan, folder = sweep.Plan(design), given.out or Path("runs") / design.name
    engine = _engine(given)
    if given.dry_run:
        return _plan_only(given, plan, engine.workers)
    if given.limit is not None:
        Field("limit", above=0).check(given.limit)
    with _plain_warnings(), _study.bar(design.name, plan.shards, given.json) as progress:
        done = sweep.sweep(
            design,
            folder,
            engine=engine,
            memory=given.memory or _room(engine),
            limit=given.limit,
            retry_failed=given.retry_failed,
            progress=lambda report: progress(f"shard {report.number}"),
        )
    if given.json:
        _output.say(
            {
                "folder": done.folder,
                "cases": done.cases,
                "shards": done.shards,
                "computed": done.computed,
                "failed": done.failed,
            }
        )
    else:
        kept = (
            f", {done.shards - done.computed} of them there already"
            if done.computed < done.shards
            else ""
        )
        _output.line(
            f"{done.cases} cases in {done.shards} shards{kept}; {done.failed} cases failed",
            f"one row per case is in {folder}; to read it, in Python:",
            f'  from whorl import sweep; print(sweep.conditions("{folder}"))',
        )
    if given.plot:
        from whorl.sweep.picture import draw

        drawn = draw(folder)
        if not given.json:
            _output.line(f"look at {drawn}")
    return 1 if done.failed else 0


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as sentences, such as those on damaged shards, without the lines of code that they
    come from.
    """
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"whorl: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _room(engine: Any) -> int | None:
    """What is available here, which says nothing about the machines of a cluster or about a GPU."""
    from whorl import sweep

    return _memory.room() if isinstance(engine, sweep.InProcess | sweep.Processes) else None


def _engine(given: argparse.Namespace) -> Any:
    from whorl import sweep

    named = given.scheduler is not None or given.scheduler_file is not None
    kind = given.engine or ("cluster" if named else "local")
    if named != (kind == "cluster"):
        raise ValueError(
            f"engine must be cluster where a scheduler is named, and only there, but it is {kind}"
        )
    if given.workers is not None and kind != "processes":
        raise ValueError(
            f"workers must be left out unless the engine is processes, but the engine is {kind}"
        )
    if kind == "cluster":
        return sweep.Cluster(given.scheduler, scheduler_file=given.scheduler_file)
    if kind == "processes":
        return sweep.Processes(given.workers)
    return sweep.InProcess() if kind == "local" else _devices()


def _devices() -> Any:
    """The accelerators of this machine."""
    import jax

    from whorl import sweep

    if jax.default_backend() == "cpu":
        raise ValueError(
            "engine gpu must have a GPU that JAX can use, but JAX sees none here: install its "
            "build for your GPU (docs/howto/gpu.md), or take --engine processes"
        )
    return sweep.Devices()


def _plan_only(given: argparse.Namespace, plan: Any, workers: int) -> int:
    about = plan.estimate(workers)
    if given.json:
        _output.say(about | {"workers": workers})
        return 0
    hours, rest = divmod(round(about["seconds"]), 3600)
    cores = f"{workers} core{'s' * (workers > 1)}"
    _output.line(
        f"{about['cases']} cases of {about['shapes']} compiled shapes in {about['shards']} shards; "
        f"{about['updates']:.3g} updates",
        f"about {hours} h {rest // 60:02d} min {rest % 60:02d} s on {cores}, "
        f"{about['bytes'] / 1e6:.3g} MB on the disk",
    )
    return 0
