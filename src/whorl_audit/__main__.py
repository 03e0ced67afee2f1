"""`python -m whorl_audit DIR`: verify a run folder. Exit code 0: every claim holds; 1: one does not; 2: the folder cannot be read."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from whorl_audit import Audit, UnreadableError, audit
from whorl_audit.folder import studies
from whorl_audit.manifest import OWN


def _write(path: Path, content: dict[str, Any]) -> None:
    """Put a record in its place at once, so that no reader sees half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(content, indent=2) + "\n")
        temporary.replace(path)
    except OSError as error:
        raise UnreadableError(f"{path.name} must be writable (or use --no-write), but {path}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write(folder: Path, result: Audit) -> None:
    """Write audit.json into every study folder: its findings, and those on the folder as a whole."""
    for path in studies(folder):
        name = path.resolve().name
        findings = {"folder_findings": result.findings[""], "study_findings": result.findings[name]}
        passed = all(finding.passed for part in findings.values() for finding in part)
        _write(path / OWN, {"study": name, "passed": passed, **{part: [asdict(one) for one in found] for part, found in findings.items()}})


def _text(result: Audit) -> str:
    lines = []
    for name, findings in result.findings.items():
        failed = [finding for finding in findings if not finding.passed]
        lines.append(f"{name or 'folder'}: {len(findings) - len(failed)} of {len(findings)} claims hold")
        for one in failed:
            error = "cannot be compared" if one.error is None else f"error {one.error:.3g}, allowed {one.tolerance:.3g}"
            lines.append(f"  {one.claim}: {error} ({one.where})")
    lines += [*result.notes, *(f"not covered: {what}" for what in (*result.not_covered, result.left))]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m whorl_audit", description="Verify a run folder without the program that made it.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder, or the folder of one study")
    parser.add_argument("--json", action="store_true", help="print every finding as JSON")
    parser.add_argument("--no-write", action="store_true", help="leave audit.json alone")
    given = parser.parse_args(arguments)
    try:
        result = audit(given.folder)
        if not given.no_write:
            write(given.folder, result)
    except UnreadableError as error:
        sys.stderr.write(f"whorl_audit: {error}\n")
        return 2
    sys.stdout.write((json.dumps(result.to_json(), indent=2) if given.json else _text(result)) + "\n")
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
