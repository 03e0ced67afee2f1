"""`whorl register`: lock a design and the sources it depends on, before the run."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _kinds, _output

STORY = """Write DESIGN.lock.json beside a design: the SHA-256 of the design and of every source
file of whorl that its result depends on. Do this before the run, and keep both files
under version control: the date of a registration is that of its commit."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "register", call, "lock a design before its run", STORY)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("design", type=Path, nargs="?", metavar="DESIGN.toml", help="design file")
    what.add_argument(
        "--template", choices=_kinds.names(), help="print a design to start from, and lock nothing"
    )


def call(given: argparse.Namespace) -> int:
    """Check the design and write its lock."""
    from whorl.ground import store
    from whorl.study import design, lock

    if given.template:
        text = design.template(given.template)
        _output.say({"template": text}) if given.json else _output.line(text)
        return 0
    study = design.read(given.design)
    content = lock.lock(study)
    place = lock.beside(given.design)
    store.write(place, lock.text(content))
    if given.json:
        _output.say({"lock": str(place), **content})
    else:
        _output.line(
            f"registered {study.name} with {len(content['sources'])} source files in {place}"
        )
    return 0
