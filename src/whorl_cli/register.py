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
    parser.add_argument(
        "--again",
        action="store_true",
        help="register a design again that was registered before; the old lock is kept beside it",
    )


def _kept(place: Path, again: bool) -> Path:
    """A free name for the lock that is replaced, where that is wanted."""
    if not again:
        raise ValueError(
            f"{place} must not be replaced silently, but the design or the sources have "
            "changed since; give --again to register the changed design"
        )
    stem = place.name.removesuffix(".json")
    names = (place.with_name(f"{stem}.{number}.json") for number in range(1, 10**6))
    return next(name for name in names if not name.exists())


def call(given: argparse.Namespace) -> int:
    """Check the design and write its lock."""
    from whorl.ground import store
    from whorl.study import design, lock, possible

    if given.template:
        text = design.template(given.template)
        _output.say({"template": text}) if given.json else _output.line(text)
        return 0
    study = design.read(given.design)
    possible.check(study)
    content, before = lock.lock(study), lock.read(given.design)
    place = lock.beside(given.design)
    if before not in ({}, content):
        kept = _kept(place, given.again)
        store.write(kept, place.read_text())
        _output.line(f"the lock before is kept in {kept}") if not given.json else None
    store.write(place, lock.text(content))
    if given.json:
        _output.say({"lock": str(place), **content})
    else:
        _output.line(
            f"registered {study.name} with {len(content['sources'])} definitions in {place}"
        )
    return 0
