"""What a run folder may hold, as docs/studies.md lists it, and what it holds besides.

No file is opened here, no link followed.

A folder with a `design.toml` is one study; any other is a run folder, whose folders with a
`design.toml` are its studies.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from whorl_audit.files import ENTRIES, FOLDER
from whorl_audit.types import UnreadableError, shown

MANIFEST = "manifest-sha256.txt"
OWN = "audit.json"
DESIGN = "design.toml"
RUN = ("report.html", "summary.json", "environment.json", "ro-crate-metadata.json", MANIFEST)
STUDY = (DESIGN, "lock.json", "verdict.json", OWN)
INNER = {"figures": ("pdf", "png"), "tables": ("parquet", "csv")}
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Layout:
    """The entries of a folder.

    Attributes:
        alone: Whether it is the folder of one study.
        studies: The folders of its studies, in the order of their names.
        files: The regular files that belong to it, in the order of their paths.
        strange: Whatever else is there, each in words.
    """

    alone: bool
    studies: tuple[Path, ...]
    files: tuple[Path, ...]
    strange: tuple[str, ...]


def listed(root: Path) -> dict[str, Path]:
    """The files that the manifest lists, by their paths in the run folder."""
    paths = {path.relative_to(root).as_posix(): path for path in read(root).files}
    return {name: path for name, path in paths.items() if name != MANIFEST and path.name != OWN}


class _Walk:
    """Entries sorted into files and what is strange, as far as the limits go."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries = self.bytes = 0
        self.files: list[Path] = []
        self.strange: list[str] = []

    def of(
        self, place: Path, file: Callable[[str], bool], folder: Callable[[Path], bool]
    ) -> list[Path]:
        """Take the files of a folder that may be there; answer with the folders that may."""
        folders = []
        for entry in self._listed(place):
            path = place / entry.name
            if entry.is_file(follow_symlinks=False) and file(entry.name):
                self.bytes += entry.stat(follow_symlinks=False).st_size
                self.files.append(path)
            elif entry.is_dir(follow_symlinks=False) and folder(path):
                folders.append(path)
            else:
                self.strange.append(f"{_what(entry)} {path.relative_to(self.root).as_posix()}")
        if self.bytes > FOLDER:
            raise UnreadableError(
                f"the run folder must hold at most {FOLDER} bytes, but {self.root} holds more"
            )
        return folders

    def _listed(self, place: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(place) as found:
                entries = list(islice(found, ENTRIES + 1 - self.entries))
        except OSError as error:
            raise UnreadableError(
                f"the run folder must be readable, but {place}: {error.strerror}"
            ) from error
        self.entries += len(entries)
        if self.entries > ENTRIES:
            raise UnreadableError(
                f"the run folder must hold at most {ENTRIES} entries, but {self.root} holds more"
            )
        return sorted(entries, key=lambda entry: entry.name)

    def study(self, place: Path) -> None:
        """Take the files of a study."""
        for inner in self.of(place, STUDY.__contains__, lambda path: path.name in INNER):
            self.inner(inner)

    def inner(self, place: Path) -> None:
        """Take the figures or the tables."""
        endings = INNER[place.name]

        def known(name: str) -> bool:
            stem, _, ending = name.partition(".")
            return ending in endings and NAME.fullmatch(stem) is not None

        self.of(place, known, lambda _: False)


def _what(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "the link"
    if entry.is_dir(follow_symlinks=False):
        return "the folder"
    return "the file" if entry.is_file(follow_symlinks=False) else "the pipe or device"


def _of_run(path: Path) -> bool:
    """Whether a folder in a run folder may be there: its figures, or a study."""
    return path.name == "figures" or (
        NAME.fullmatch(path.name) is not None
        and path.name not in INNER
        and os.path.lexists(path / DESIGN)
    )


def read(root: Path) -> Layout:
    """Sort the entries of a run folder, or of the folder of one study.

    Raises:
        UnreadableError: If there is no such folder, no study in it, or more in it than may be.
    """
    if not root.is_dir():
        raise UnreadableError(f"the run folder must be a folder, but {root} is none")
    walk, alone = _Walk(root), os.path.lexists(root / DESIGN)
    studies = [root]
    if alone:
        walk.study(root)
    else:
        folders = walk.of(root, RUN.__contains__, _of_run)
        studies = [path for path in folders if path.name != "figures"]
        for path in folders:
            (walk.inner if path.name == "figures" else walk.study)(path)
    if not studies:
        beside = f" (but {shown(walk.strange[0])})" if walk.strange else ""
        raise UnreadableError(
            f"the run folder must hold a study with a design.toml, but {root} holds none{beside}"
        )
    return Layout(alone, tuple(studies), tuple(sorted(walk.files)), tuple(sorted(walk.strange)))
