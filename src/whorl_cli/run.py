"""`whorl run`: one study from its design file."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _output, _study

STORY = """Run a study from a design file, draw its figure, audit it, write report.html, and print
its verdict. The folder can be deposited as it is. A design that was never registered, or has changed since, still
runs, and is stamped UNREGISTERED wherever it is shown.

  whorl run foresight                 # a shipped design, by its name: beyond the paper, about ten minutes
  whorl register --template threshold > mine.toml
  whorl register mine.toml
  whorl run mine.toml --out runs/mine"""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "run", call, "one study from its design file", STORY)
    parser.add_argument(
        "design", type=Path, metavar="DESIGN.toml", help="design file, or the name of a shipped one"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="run folder (default: runs/NAME, the design's name)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="put the values under [quick] in place of the design's"
    )
    parser.add_argument("--csv", action="store_true", help="write every table as CSV too")
    parser.add_argument(
        "--dry-run", action="store_true", help="say about what the run takes, and stop"
    )
    _study.add_memory(parser)


def call(given: argparse.Namespace) -> int:
    """Run and audit."""
    from whorl.study import design, kinds, lock

    _study.ready()
    name = str(given.design)
    own = given.design.exists() or name not in kinds.names()
    study, registered = (
        (design.read(given.design), lock.read(given.design))
        if own
        else (design.shipped(name), lock.shipped_lock(name))
    )
    if given.dry_run:
        return _study.planned(study, given.quick, given)
    folder = given.out or Path("runs") / study.name
    verdicts, sound, findings = _study.conducted(study.name, [(study, registered)], folder, given)
    good = _study.as_expected(verdicts, sound)
    if given.json:
        _output.say(
            {"folder": str(folder), "verdicts": verdicts, "audit": findings, "as_registered": good}
        )
    else:
        _output.line(
            *_study.verdict_lines(verdicts[0]),
            _study.audit_line(sound, findings),
            f"look at {folder / 'report.html'}",
        )
    return 0 if good else 1
