"""Compiled programs, kept in the user's cache folder from one command to the next.

JAX reads and writes them (its persistent compilation cache); this file says where, makes room, and
drops what is damaged. A program belongs to one version of jaxlib and to one kind of processor, so
that each such pair has a folder of its own. Two commands may use a folder at the same time: at
worst both compile the same program.
"""

import hashlib
import os
import platform
import sys
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

VARIABLE = "WHORL_CACHE"  # a folder in place of the user's, or "off"
ROOM = 1 << 30  # bytes; the programs that were made first make room
SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # many small ones take seconds together
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
}
CHECKED = "checked"  # a file whose time says up to when programs were looked at


def parent() -> Path | None:
    """The folder of all kept programs; None where keeping them was switched off."""
    asked = os.environ.get(VARIABLE, "")
    if asked:
        return None if asked.lower() in ("off", "0", "no") else Path(asked).absolute()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "whorl" / "programs"


def here() -> Path | None:
    """The folder for this machine and this jaxlib."""
    from importlib import metadata

    above = parent()
    if above is None:
        return None
    flags = ""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    kind = f"{platform.machine()} {platform.processor()} {flags}"
    return above / f"jaxlib-{metadata.version('jaxlib')}-{_short(kind)}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def entries(folder: Path) -> list[Path]:
    """All programs below a folder, the oldest first."""
    found = ((path.stat().st_mtime, path) for path in folder.rglob("*-cache") if path.is_file())
    return [path for _, path in sorted(found)]


@contextmanager
def programs(wanted: bool) -> Iterator[None]:
    """Whatever is compiled meanwhile is kept, unless the user has settled that otherwise.

    No trouble with the folder is worth a word: programs are then compiled as if there were none.
    """
    folder = here() if wanted else None
    settled = any(name.startswith("JAX_") and "CACHE" in name for name in os.environ)
    if folder is None or settled or not _ready(folder):
        yield
        return
    added = {"JAX_COMPILATION_CACHE_DIR": str(folder)} | SETTINGS
    os.environ.update(added)
    try:
        with warnings.catch_warnings():
            # Another command may just be writing what this one reads: it compiles instead.
            warnings.filterwarnings(
                "ignore", "Error (reading|writing) persistent compilation cache"
            )
            yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _ready(folder: Path) -> bool:
    """Make the folder, for this user alone, and look at what was written since the last time."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
        if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
            return False  # programs that others could write are not run
        _tidied(folder)
    except OSError:
        return False
    return True


def _tidied(folder: Path) -> None:
    """Drop damaged programs, and the oldest where there are too many."""
    stamp, all_of_them = folder / CHECKED, entries(folder)
    before = stamp.stat().st_mtime_ns if stamp.exists() else 0
    stamp.touch()
    for path in all_of_them:
        if path.stat().st_mtime_ns >= before and not _whole(path.read_bytes()):
            path.unlink(missing_ok=True)
    left = [path for path in all_of_them if path.exists()]
    size = sum(path.stat().st_size for path in left)
    for path in left:
        if size <= ROOM:
            break
        size -= path.stat().st_size
        path.unlink(missing_ok=True)


def _whole(data: bytes) -> bool:
    """Whether a program is complete, packed in one of the two ways that JAX knows."""
    if data[:4] == b"\x28\xb5\x2f\xfd":
        with suppress(ImportError):
            import zstandard  # pyright: ignore[reportMissingImports]

            unpacked = zstandard.ZstdDecompressor().decompressobj()
            try:
                unpacked.decompress(data)
            except zstandard.ZstdError:
                return False
            return unpacked.eof
        return True  # JAX could not read it either, and says so itself
    try:
        return bool(zlib.decompress(data))
    except zlib.error:
        return False
