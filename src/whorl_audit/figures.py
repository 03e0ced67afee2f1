"""Check that figures carry the SHA-256 of the tables they were drawn from.

A figure of other tables is found by it.

PNG: a tEXt chunk `whorl-tables`; PDF: `Keywords` of the information dictionary. Both hold a JSON
object from table name to SHA-256.
"""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from whorl_audit import files, kinds
from whorl_audit.finding import Finding, counted
from whorl_audit.folder import Study

CONCEPT = "concept"  # the illustration that is drawn with all of the paper's studies
KEY = b"whorl-tables"
_LITERAL = re.compile(rb"/Keywords\s*\(((?:[^\\()]|\\.)*)\)", re.DOTALL)
_HEXADECIMAL = re.compile(rb"/Keywords\s*<([0-9A-Fa-f\s]*)>")
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


def png_text(content: bytes) -> str | None:
    """The text of the chunk `whorl-tables` of a PNG file."""
    at = 8
    while content.startswith(b"\x89PNG\r\n\x1a\n") and at + 8 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        if content[at + 4 : at + 8] == b"tEXt":
            key, _, text = content[at + 8 : at + 8 + length].partition(b"\0")
            if key == KEY:
                return text.decode("latin-1")
        at += 12 + length
    return None


def pdf_text(content: bytes) -> str | None:
    """The keywords of a PDF file."""
    if found := _LITERAL.search(content):
        plain = re.sub(rb"\\([0-7]{1,3})", lambda octal: bytes([int(octal[1], 8) & 255]), found[1])
        plain = re.sub(
            rb"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), plain, flags=re.DOTALL
        )
    elif found := _HEXADECIMAL.search(content):
        plain = bytes.fromhex(found[1].decode())
    else:
        return None
    return plain.decode("utf-16") if plain.startswith(b"\xfe\xff") else plain.decode("latin-1")


def fault(path: Path, hashes: dict[str, str]) -> str | None:
    """What is wrong with the tables that a figure names, if anything."""
    content = files.read_bytes(path)
    text = png_text(content) if path.suffix == ".png" else pdf_text(content)
    try:
        named = json.loads(text or "null")
    except ValueError:
        named = None
    if not isinstance(named, dict) or not named:
        return "it does not say from which tables it was drawn"
    stale = [name for name, digest in named.items() if hashes.get(name) != digest]
    return f"it was drawn from another table {stale[0]}" if stale else None


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "figures").glob("*"))


def _both(stem: str) -> list[str]:
    return [f"{stem}.pdf", f"{stem}.png"]


def check(study: Path, kind: str, hashes: dict[str, str]) -> Iterator[Finding]:
    """Compare every figure of a study with the tables that are there.

    A study has the figure of its kind, for screen and print, or none.
    """
    names, both = _names(study), _both(kind)
    if names:
        right = f"they are {', '.join(names)} instead of {' and '.join(both)}"
        named = ((name, fault(study / "figures" / name, hashes)) for name in both if name in names)
        faults = [*([] if names == both else [right]), *(f"{n}: {why}" for n, why in named if why)]
        yield counted("every figure was drawn from these tables", faults, "figures")


def illustration(folder: Path, studies: list[Study]) -> Finding:
    """Judge whether every figure is there where one is."""
    here, quick = _names(folder), any(study.verdict.get("quick") is not False for study in studies)
    wanted = {name for name in kinds.own() if kinds.find(name).paper}
    paper = {study.path.name for study in studies} >= wanted
    drawn = here or any(_names(study.path) for study in studies)
    faults = [
        f"{study.path.name} has no figure" for study in studies if drawn and not _names(study.path)
    ]
    if drawn and here != (_both(CONCEPT) if paper else []) and not (paper and quick and not here):
        faults.append(f"beside the studies they are {', '.join(here) or 'none'}")
    return counted("every figure is there that a run draws", faults, "figures")
