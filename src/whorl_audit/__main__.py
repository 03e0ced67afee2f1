"""`python -P -m whorl_audit DIR`: verify a run folder.

Exit code 0: every claim holds; 1: one does not; 2: the folder cannot be read.

Without `-P` Python looks for modules in the current folder first, so it would run code from the
folder under audit.
"""

import argparse
import json
import sys
from pathlib import Path

from whorl_audit import Audit, UnreadableError, audit
from whorl_audit.record import tidy, write

MEMORY = 8


def _bound(gibibytes: float) -> None:
    """Keep this process from taking more memory than that, whatever a folder asks for.

    An earlier and lower bound stays.
    """
    try:
        import resource

        there = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = [
            there + int(gibibytes * 2**30),
            *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY),
        ]
        resource.setrlimit(resource.RLIMIT_AS, (min(wanted), hard))
    except (ImportError, OSError, ValueError):  # a system that has no such bound
        return


def _text(result: Audit, unwritten: str | None) -> str:
    lines = []
    for name, findings in result.findings.items():
        failed = [finding for finding in findings if not finding.passed]
        lines.append(
            f"{name or 'folder'}: {len(findings) - len(failed)} of {len(findings)} claims hold"
        )
        for one in failed:
            error = (
                "cannot be compared"
                if one.error is None
                else f"error {one.error:.3g}, allowed {one.tolerance:.3g}"
            )
            lines.append(f"  {one.claim}: {error} ({one.where})")
    lines += [
        *result.notes,
        *(f"not covered: {what}" for what in (*result.not_covered, result.left)),
    ]
    return "\n".join([*lines, unwritten] if unwritten else lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -P -m whorl_audit",
        description="Verify a run folder without the program that made it.",
    )
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="a run folder, or the folder of one study"
    )
    parser.add_argument("--json", action="store_true", help="print every finding as JSON")
    parser.add_argument(
        "--unsealed",
        action="store_true",
        help="the folder has no crate and no manifest yet: check everything else",
    )
    parser.add_argument("--no-write", action="store_true", help="leave audit.json alone")
    parser.add_argument(
        "--memory",
        type=float,
        default=MEMORY,
        metavar="GIB",
        help=f"the most memory to take (default: {MEMORY} GiB)",
    )
    given = parser.parse_args(arguments)
    if arguments is None:
        _bound(given.memory)
    try:
        if not given.no_write:
            tidy(given.folder)
        result = audit(given.folder, sealed=not given.unsealed)
        unwritten = None if given.no_write else write(given.folder, result)
        told = (
            json.dumps(result.to_json() | {"unwritten": unwritten}, indent=2)
            if given.json
            else _text(result, unwritten)
        )
    except UnreadableError as error:
        return _refused(str(error))
    except MemoryError:
        return _refused(
            f"the audit must fit into memory, but {given.folder} does not; --memory raises the "
            f"limit of {given.memory:g} GiB"
        )
    sys.stdout.write(told + "\n")
    return 0 if result.passed else 1


def _refused(sentence: str) -> int:
    sys.stderr.write(f"whorl_audit: {sentence}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
