"""Write the record of an audit into every study folder, with a digest that finds damage.

The manifest is older than the audit and cannot cover its record.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from whorl_audit import files
from whorl_audit.finding import Audit, Finding, counted
from whorl_audit.folder import studies
from whorl_audit.layout import OWN
from whorl_audit.types import UnreadableError

DIGEST = "sha256_of_the_rest"


def _text(record: dict[str, Any]) -> str:
    """A record as it is written: its own digest comes last."""
    rest = {name: value for name, value in record.items() if name != DIGEST}
    digest = files.sha256(json.dumps(rest, indent=2).encode())
    return json.dumps(rest | {DIGEST: digest}, indent=2) + "\n"


def check(study: Path) -> Iterator[Finding]:
    """Judge whether an earlier record is as an audit wrote it; what it says is judged anew."""
    path, faults = study / OWN, []
    if path.is_file() and not path.is_symlink():
        try:
            whole = files.read_text(path) == _text(files.read_json(path))
            faults = [] if whole else ["its digest is not that of its content"]
        except UnreadableError as error:
            faults = [str(error)]
    yield counted("an earlier audit.json is as it was written", faults, OWN)


def write(folder: Path, result: Audit) -> str | None:
    """Write audit.json into every study folder: its findings, and those on the folder as a whole.

    Returns:
        Why it was not written, or None.
    """
    for path in studies(folder):
        name = path.resolve().name
        findings = {"folder_findings": result.findings[""], "study_findings": result.findings[name]}
        passed = all(finding.passed for part in findings.values() for finding in part)
        listed = {part: [asdict(one) for one in found] for part, found in findings.items()}
        try:
            _placed(path / OWN, _text({"study": name, "passed": passed, **listed}))
        except OSError as error:
            return f"{OWN} was not written, because {path} cannot be written to: {error.strerror}"
    return None


def tidy(folder: Path) -> None:
    """Remove what an audit left behind that was killed while it wrote its record here."""
    for path in studies(folder):
        for left in path.glob(f".{OWN}.*"):
            number = left.name.rpartition(".")[2]
            if number.isdecimal() and len(number) < 10 and left.is_file() and not left.is_symlink():
                try:
                    os.kill(int(number), 0)
                except ProcessLookupError:
                    with suppress(OSError):
                        left.unlink()
                except OSError:
                    continue


def _placed(path: Path, text: str) -> None:
    """Put a text in its place at once, so that no reader sees half of it.

    A link that was there under either name is never written through.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("x") as file:
        file.write(text)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink()
        raise
