"""The manifest of a run folder.

Every file is in it but itself and what the audit writes, with the right SHA-256.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from whorl_audit import files, layout
from whorl_audit.finding import Finding, counted
from whorl_audit.layout import MANIFEST as NAME

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def _listed(text: str) -> tuple[dict[str, str], list[str]]:
    """The hash of every path listed, and the lines that are wrong."""
    listed, faults = {}, []
    *lines, rest = text.split("\n")
    if rest:
        faults.append("the last line does not end")
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            faults.append(f"line {number} is not a hash and a path")
        elif match[2] in listed:
            faults.append(f"line {number} lists {match[2]} again")
        elif Path(match[2]).is_absolute() or ".." in Path(match[2]).parts:
            faults.append(f"line {number} leaves the folder")
        else:
            listed[match[2]] = match[1]
    return listed, faults


def check(folder: Path) -> Iterator[Finding]:
    """Compare the manifest with the files of the folder."""
    present = set(layout.listed(folder))
    listed, faults = _listed(files.read_text(folder / NAME))
    yield counted("the manifest can be read", faults, NAME)
    more = [f"{name} is not listed" for name in sorted(present - set(listed))]
    yield counted("the manifest lists every file", more, NAME)
    less = [f"{name} is missing" for name in sorted(set(listed) - present)]
    yield counted("every file that the manifest lists exists", less, NAME)
    both = sorted(present & set(listed))
    wrong = [name for name in both if files.sha256_of(folder / name) != listed[name]]
    claim = "every file has the SHA-256 that the manifest gives"
    yield counted(claim, (f"{name} differs" for name in wrong), NAME)
