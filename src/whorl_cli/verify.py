"""`whorl verify`: the independent audit of a run folder."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _output, _study

STORY = """Let the independent auditor read a run folder: it draws every random number again,
rederives every stored value by another route, repeats every residual bit by bit, and
checks row counts, gates, verdicts, hashes and the manifest. It writes audit.json.

The auditor (python -m whorl_audit DIR) needs NumPy and pyarrow alone, not whorl."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "verify", call, "audit a run folder", STORY)
    parser.add_argument("folder", type=Path, metavar="DIR", help="run folder")


def call(given: argparse.Namespace) -> int:
    """Audit, and say which claims hold."""
    sound, findings = _study.audited(given.folder)
    if given.json:
        _output.say({"folder": str(given.folder), "passed": sound, "findings": findings})
    else:
        _output.line(_study.audit_line(sound, findings))
    return 0 if sound else 1
