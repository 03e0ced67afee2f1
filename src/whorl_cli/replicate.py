"""`whorl replicate`: a study under many root seeds."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _output, _study

STORY = """Run a study under many root seeds and keep its statistics: where would each published
number have fallen? The table that `whorl reproduce` compares with was made by

  whorl replicate structural --seeds 400   (and threshold, and horizon)

Interrupted, it goes on from the seeds that its file already holds."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "replicate", call, "a study under many root seeds", STORY)
    parser.add_argument("study", metavar="STUDY", help="structural, threshold, horizon, or a design file")
    parser.add_argument("--seeds", type=int, required=True, metavar="N", help="number of root seeds")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="first root seed; the others follow it (default: 1)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="table to write (default: runs/replicates/STUDY.parquet)")
    parser.add_argument("--quick", action="store_true", help="put the values under [quick] in place of the design's")


def call(given: argparse.Namespace) -> int:
    """Run, keep, summarise."""
    from whorl import _check
    from whorl.study import design, published, replicate

    _study.ready()
    study = design.shipped(given.study) if given.study in design.PAPER else design.read(Path(given.study))
    seeds = range(_check.count("first", given.first, 0), given.first + _check.count("seeds", given.seeds))
    path = given.out or Path("runs") / "replicates" / f"{study.name}.parquet"
    with _study.bar(study.name, len(seeds), given.json) as progress:
        table = replicate.replicate(study, seeds, path, quick=given.quick, progress=lambda seed: progress(f"seed {seed}"))
    spread = replicate.summary(table)
    if given.json:
        _output.say(
            {
                "table": str(path),
                "seeds": len(seeds),
                "statistics": {name: dict(zip(("median", "low", "high"), s, strict=True)) for name, s in spread.items()},
            }
        )
        return 0
    printed = {n.statistic: n.printed for n in published.numbers() if n.study == study.name}
    _output.line(f"{'statistic':<28}{'median':>13}{'central 95 %':>28}{'published':>14}")
    for name, (median, low, high) in spread.items():
        _output.line(f"{name:<28}{median:>13.6g}{low:>14.6g}{high:>14.6g}{printed.get(name, ''):>14}")
    _output.line(f"{len(seeds)} root seeds; table in {path}")
    return 0
