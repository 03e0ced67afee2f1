"""`whorl replicate`: a study under many root seeds."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _kinds, _memory, _output, _study

STORY = """Run a study under many root seeds and keep its statistics: where would each published
number have fallen? The table that `whorl reproduce` compares with was made by

  whorl replicate STUDY --seeds 400

After an interrupt it goes on from the seeds that its file already holds. The table does not
depend on the engine, nor on the number of workers."""
ENGINES = ("local", "processes", "gpu", "cluster")


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "replicate", call, "a study under many root seeds", STORY)
    parser.add_argument(
        "study", metavar="STUDY", help=f"{', '.join(_kinds.names())}, or a design file"
    )
    parser.add_argument(
        "--seeds", type=int, required=True, metavar="N", help="number of root seeds"
    )
    parser.add_argument(
        "--first",
        type=int,
        default=1,
        metavar="SEED",
        help="first root seed; the others follow it (default: 1)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="table to write (default: runs/replicates/STUDY.parquet)",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="who computes (default: processes where workers are named, else local)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes of the engine of that name (default: every core)",
    )
    parser.add_argument(
        "--scheduler-file",
        type=Path,
        metavar="FILE",
        help="the file that `dask scheduler --scheduler-file` wrote",
    )
    parser.add_argument(
        "--quick", action="store_true", help="put the values under [quick] in place of the design's"
    )


def call(given: argparse.Namespace) -> int:
    """Run, keep, summarise."""
    from whorl import _check
    from whorl.study import cost, design, kinds, published, replicate

    _study.ready()
    if given.study not in kinds.names() and not Path(given.study).exists():
        raise ValueError(
            f"study must be {', '.join(kinds.names())} or a design file, but there is no "
            f"{given.study}"
        )
    study = (
        design.shipped(given.study)
        if given.study in kinds.names()
        else design.read(Path(given.study))
    )
    seeds = range(
        _check.count("first", given.first, 0), given.first + _check.count("seeds", given.seeds)
    )
    path = given.out or Path("runs") / "replicates" / f"{study.name}.parquet"
    engine = _engine(given)
    cost.check([(study.name, cost.estimate(study, given.quick))], path.parent, _memory.room())
    with _study.bar(study.name, given.seeds, given.json) as progress:
        table = replicate.replicate(
            study,
            seeds,
            path,
            quick=given.quick,
            engine=engine,
            progress=lambda seed: progress(f"seed {seed}"),
        )
    spread = replicate.summary(table)
    if given.json:
        _output.say(
            {
                "table": str(path),
                "seeds": given.seeds,
                "statistics": {
                    name: dict(zip(("median", "low", "high"), s, strict=True))
                    for name, s in spread.items()
                },
            }
        )
        return 0
    printed = {n.statistic: n.printed for n in published.numbers() if n.study == study.name}
    _output.line(f"{'statistic':<28}{'median':>13}{'central 95 %':>28}{'published':>14}")
    for name, (median, low, high) in spread.items():
        _output.line(
            f"{name:<28}{median:>13.6g}{low:>14.6g}{high:>14.6g}{printed.get(name, ''):>14}"
        )
    _output.line(f"{given.seeds} root seeds; table in {path}")
    return 0


def _engine(given: argparse.Namespace) -> Any:
    """The engine that was asked for; None for this process."""
    kind = given.engine or (
        "cluster" if given.scheduler_file else "processes" if given.workers is not None else "local"
    )
    if (given.scheduler_file is not None) != (kind == "cluster"):
        raise ValueError(
            "engine must be cluster where a scheduler file is named, and only there, but it is "
            f"{kind}"
        )
    if given.workers is not None and kind != "processes":
        raise ValueError(
            f"workers must be left out unless the engine is processes, but the engine is {kind}"
        )
    if kind == "local":
        return None
    from whorl import sweep

    if kind == "cluster":
        return sweep.Cluster(scheduler_file=given.scheduler_file)
    return sweep.Devices() if kind == "gpu" else sweep.Processes(given.workers)
