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
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest-sha256.txt"
DESIGN = "design.toml"
ENTRIES = 10_000  # names in a run folder
FOLDER = 4 << 30  # bytes of all its files
FILE = 512 << 20  # bytes of one file
COLUMNS = 100  # of a table
CELLS = 100_000_000  # rows times columns of a table
WORD = 200  # letters of a word in a table

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


def contents(path: Path) -> bytes:
    """The bytes of a regular file; a link is not followed, a pipe not waited for.

    Raises:
        OSError: If there is no such file, or it cannot be read.
        ValueError: If it is no regular file, or larger than a file of a run may be.
    """
    if path.is_symlink():
        raise ValueError(f"{path} must be a regular file, but it is a link")
    # The two flags are missing on systems that have neither links of this kind nor pipes with
    # names.
    number = os.open(
        path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    )
    with os.fdopen(number, "rb") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path} must be a regular file, but it is a pipe or a device")
        content = file.read(FILE + 1) if found.st_size <= FILE else b""
    if found.st_size > FILE or len(content) > FILE:
        raise ValueError(
            f"{path} must have at most {FILE} bytes, but it has {max(found.st_size, len(content))}"
        )
    return content
