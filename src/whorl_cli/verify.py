"""`whorl verify`: the independent audit of a run folder."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _output, _study

STORY = """Let the independent auditor read a run folder: it draws every random number again,
rederives every stored value by another route, repeats every residual bit by bit, and
checks row counts, gates, verdicts, hashes and the manifest. It writes audit.json,
unless the folder cannot be written to or --no-write asks it not to.

The auditor (python -P -m whorl_audit DIR) needs NumPy and pyarrow alone, not whorl."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "verify", call, "audit a run folder", STORY)
    parser.add_argument("folder", type=Path, metavar="DIR", help="run folder, or the folder of one study")
    parser.add_argument("--no-write", action="store_true", help="write no audit.json")


def call(given: argparse.Namespace) -> int:
    """Audit, and say which claims hold."""
    said = _study.audit(given.folder, write=not given.no_write)
    if given.json:
        _output.say({"folder": str(given.folder), **said})
    else:
        _output.line(_study.audit_line(said["passed"], said["findings"]), *([said["unwritten"]] if said["unwritten"] else []))
    return 0 if said["passed"] else 1
