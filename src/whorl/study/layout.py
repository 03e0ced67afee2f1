"""What a run folder may hold (docs/studies.md lists it), how much of it, and how its files are
opened.

A folder that somebody sends may hold links to anything, pipes that never answer, and more than fits
into memory. Only regular files under the names that a run writes are read, and none through a link;
everything else is named and left alone. The auditor has a definition of its own, and tests hold the
two against each other.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from whorl.ground import store

MANIFEST = "manifest-sha256.txt"
DESIGN = "design.toml"
UNLISTED = ("audit.json",)  # what a verifier writes afterwards
ENTRIES = 10_000  # names in a run folder
FOLDER = 4 << 30  # bytes of all its files
_NAME = "[a-z0-9][a-z0-9_-]{0,63}"
_STUDY = rf"(?:design\.toml|(?:lock|verdict|audit)\.json|tables/{_NAME}\.(?:parquet|csv)|figures/{_NAME}\.(?:pdf|png))"
_PLACE = rf"(?!(?:tables|figures)(?:/|\Z)){_NAME}"
_RUN = rf"report\.html|(?:summary|environment|ro-crate-metadata)\.json|{re.escape(MANIFEST)}|figures/{_NAME}\.(?:pdf|png)|{_PLACE}/{_STUDY}"
_RULES = {  # by whether the folder is one study: names of files, and of folders
    True: (re.compile(_STUDY), re.compile("tables|figures")),
    False: (re.compile(_RUN), re.compile(rf"figures|{_PLACE}|{_PLACE}/(?:tables|figures)")),
}


@dataclass(frozen=True)
class Layout:
    """The entries of a folder.

    Attributes:
        alone: Whether it is the folder of one study, which is one with a design.toml.
        studies: The folders of its studies.
        files: The regular files that belong to it, in a fixed order.
        strange: Whatever else is there, each in words.
    """

    alone: bool
    studies: tuple[Path, ...]
    files: tuple[Path, ...]
    strange: tuple[str, ...]


def read(folder: Path) -> Layout:
    """Sort the entries of a folder without opening a file or following a link.

    Raises:
        ValueError: If it holds more than a run folder may.
    """
    alone = os.path.lexists(folder / DESIGN)
    files, folders = _RULES[alone]
    known: list[Path] = []
    strange: list[str] = []
    size, seen, waiting = 0, 0, [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            seen += 1
            if seen > ENTRIES:
                raise ValueError(f"{folder} must hold at most {ENTRIES} entries, but it holds more")
            try:
                inside, found = path.relative_to(folder).as_posix(), path.lstat()
            except FileNotFoundError:  # what another process was writing has got its name
                continue
            study = alone or "/" in inside or inside == "figures" or os.path.lexists(path / DESIGN)
            if stat.S_ISREG(found.st_mode) and files.fullmatch(inside):
                size += found.st_size
                known.append(path)
            elif stat.S_ISDIR(found.st_mode) and folders.fullmatch(inside) and study:
                waiting.append(path)
            else:
                strange.append(f"{_what(found.st_mode)} {inside}")
    if size > FOLDER:
        raise ValueError(f"{folder} must hold at most {FOLDER} bytes, but it holds {size}")
    studies = [folder] if alone else sorted({path.parent for path in known if path.name == DESIGN})
    return Layout(alone, tuple(studies), tuple(sorted(known)), tuple(sorted(strange)))


def _what(mode: int) -> str:
    kinds = {stat.S_IFLNK: "the link", stat.S_IFDIR: "the folder", stat.S_IFREG: "the file"}
    return kinds.get(stat.S_IFMT(mode), "the pipe or device")


def files(folder: Path) -> Iterator[Path]:
    """Every file that belongs to a finished run folder and is listed in its manifest, in a fixed
    order.
    """
    yield from (path for path in read(folder).files if path.name not in (MANIFEST, *UNLISTED))


def seal(folder: Path) -> None:
    """Write the manifest: one hash per file, as `sha256sum` reads it."""
    lines = [
        f"{store.hash_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files(folder)
    ]
    store.write(folder / MANIFEST, "".join(lines))
