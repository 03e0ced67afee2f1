"""`whorl verify`: the independent audit of a run folder, and once more what only whorl can make."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _child, _output, _study

STORY = """Let the independent auditor read a run folder: it draws every random number again,
rederives every stored value by another route, repeats every residual bit by bit, and
checks row counts, gates, verdicts, registration, environment, crate, hashes and the
manifest. It writes audit.json, unless the folder cannot be written to or --no-write
asks it not to. Then whorl draws the figures, makes report.html and describes the
columns again, and compares them with the folder, so a folder that was changed and
sealed again is found too. What files cannot tell is listed as not covered.

The auditor (python -P -m whorl_audit DIR) needs NumPy and pyarrow alone, not whorl."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "verify", call, "audit a run folder", STORY)
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="run folder, or the folder of one study"
    )
    parser.add_argument("--no-write", action="store_true", help="write no audit.json")


def call(given: argparse.Namespace) -> int:
    """Audit, make again, and say which claims hold."""
    said = _child.audit(given.folder, write=not given.no_write)
    findings, notes, open_ends = said["findings"], said["notes"], said["not_covered"]
    notes = [*notes, said["unwritten"]] if said["unwritten"] else notes
    if not said["passed"] or (given.folder / "design.toml").exists():
        open_ends = [*open_ends, said["left_to_whorl"]]
    else:
        more, told = _again(given.folder, findings)
        findings, notes = [*findings, *more], [*notes, *told]
    sound = all(finding["passed"] for finding in findings)
    if given.json:
        told = {
            "findings": findings,
            "notes": notes,
            "not_covered": open_ends,
            "unwritten": said["unwritten"],
        }
        _output.say({"folder": str(given.folder), "passed": sound, **told})
    else:
        _output.line(_study.audit_line(findings), *(f"note        {one}" for one in notes))
        _output.line(*(f"not covered {one}" for one in open_ends))
    return 0 if sound else 1


def _again(folder: Path, findings: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Figures, page and meanings of columns, made once more; what cannot be made is no pass."""
    _study.ready()
    from whorl.study.report import again

    try:
        return again.compare(folder, findings)
    except (
        LookupError,
        OSError,
        TypeError,
        ValueError,
    ) as wrong:  # whatever passed the audit and still cannot be drawn
        claim = "figures and page can be made again"
        return [
            {
                "study": "",
                "claim": claim,
                "error": None,
                "tolerance": 0.0,
                "where": _output.spoken(wrong),
                "passed": False,
            }
        ], []
