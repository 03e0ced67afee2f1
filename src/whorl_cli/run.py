"""`whorl run`: one study from its design file."""

import argparse
import shutil
import textwrap
from pathlib import Path
from typing import Any

from whorl_cli import _kinds, _output, _study

STORY = """Run a study from a design file, draw its figure, audit it, write report.html, and print
its verdict. The folder can be deposited as it is. A design that was never registered, or has changed since, still
runs, and is stamped UNREGISTERED wherever it is shown.

  whorl register --template KIND > mine.toml
  whorl register mine.toml
  whorl run mine.toml --out runs/mine

KIND is a study that comes with whorl ({kinds}); `whorl run KIND` runs its design by name."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    story = STORY.format(kinds=", ".join(_kinds.names()))
    parser = _output.command(commands, "run", call, "one study from its design file", story)
    parser.add_argument(
        "design",
        type=Path,
        nargs="?",
        metavar="DESIGN.toml",
        help="design file, or the name of a shipped one; without it, these are listed",
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


def _listed() -> int:
    """What there is to run, for whoever names nothing."""
    width = shutil.get_terminal_size().columns - 2
    found = [
        textwrap.fill(f"  {name:<12}{title}", width, subsequent_indent=" " * 14)
        for name, title in _kinds.titles().items()
    ]
    begin = "whorl run NAME runs one; whorl register --template NAME > mine.toml begins yours"
    _output.line("studies that come with whorl:", *found, textwrap.fill(begin, width))
    return 0


def call(given: argparse.Namespace) -> int:
    """Conduct it, or list what there is."""
    if given.design is None:
        return _listed()
    from whorl.study.conduct import opened

    _study.ready()
    study, registered = opened(given.design)
    if given.dry_run:
        return _study.planned(study, given.quick, given)
    folder = given.out or Path("runs") / study.name
    done = _study.conducted(study.name, [(study, registered)], folder, given)
    if given.json:
        _study.say(done)
    else:
        _output.line(
            *_study.verdict_lines(done.verdicts[0]),
            _study.audit_line(done.findings),
            f"look at {folder / 'report.html'}",
        )
    return 0 if done.as_expected else 1
