"""The shard store: one Parquet file a shard, whose name holds the SHA-256 of its bytes.

The folder is all that a sweep remembers. A shard is there when a file of its number is, and sound when its bytes have the hash of its
name; anything else is computed again. Equal shards are equal files under equal names, so that computing one twice changes nothing.
"""

import contextlib
import re
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl.study import store
from whorl.sweep.compute import NUMBERS, Rows
from whorl.sweep.design import RULES, Sweep, parse
from whorl.sweep.guard import failed
from whorl.sweep.plan import Cases, Plan, Shard

STALE = 600.0  # seconds after which an unfinished file is nobody's any more
NAME = re.compile(r"(\d{8,})-([0-9a-f]{64})\.parquet")
TYPES = {name: pa.int64() for name in ("mixtures", "depth", "width", "epochs")} | {
    name: pa.string() for name in ("policy", "gate", "order")
}
MEANING = {
    "case": "number of the case",
    "trial": "number of the trial; cases of a grid with one trial share task, logits, order and turns",
    "flip": "0: turns as drawn, 1: all reversed",
    "start": "mean loss before the first update",
    "final": "mean loss of the nonreciprocal learner after the last update",
    "native": "mean loss of the native learner after the last update",
    "gap": "final - native",
    "even": "sum over updates of what both senses of the turn do on average (Eq. C3)",
    "handedness": "sum of what the sense that was taken adds (Eq. C4)",
    "step": "sum of the cost of a step other than the native one (Eq. C5)",
    "drift": "sum of the difference of native progress from the two states (Eq. C6)",
    "closure": "how far the account is from the gap, relative to the largest loss",
    "made": "updates made",
    "failed": "whether there is no result",
    "reason": "why there is none; empty where there is one",
}


def _field(name: str, kind: pa.DataType, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"description": MEANING.get(name, f"{name}, as in the design")})


FIELDS = [
    *(_field(name, pa.int64()) for name in ("case", "trial", "flip")),
    *(_field(name, TYPES.get(name, pa.float64())) for name in RULES),
    *(_field(name, pa.float64(), nullable=True) for name in NUMBERS),
    _field("made", pa.int64()),
    _field("failed", pa.bool_()),
    _field("reason", pa.string()),
]


def table(design: Sweep, cases: Cases, rows: Rows) -> pa.Table:
    """Parameters and results side by side; a case without a result has nulls and a reason."""
    bad = np.array([bool(words) for words in rows["reason"]])
    columns: dict[str, np.ndarray] = {"case": cases.number, "trial": cases.trial, "flip": cases.flip}
    columns |= {name: np.full(len(cases), cases.shape[name]) if name in cases.shape else cases.free[name] for name in RULES}
    columns |= {"made": rows["made"], "failed": bad, "reason": rows["reason"]}
    arrays = [pa.array(rows[f.name], f.type, mask=bad) if f.name in NUMBERS else pa.array(_plain(columns[f.name]), f.type) for f in FIELDS]
    return pa.Table.from_arrays(arrays, schema=pa.schema(FIELDS, metadata={"sweep": design.name, "design": design.sha256}))


def _plain(values: np.ndarray) -> Any:
    return values.tolist() if values.dtype.kind in "OU" else values


class Store:
    """The folder of a sweep.

    Examples:
        >>> from whorl import sweep
        >>> list(sweep.Store(folder).files())
        []
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Path = folder
        self.shards: Path = folder / "shards"

    @classmethod
    def enter(cls, folder: Path, design: Sweep) -> "Store":
        """Make or reopen the folder of a design; refuse a folder that is another's."""
        self, place = cls(folder), folder / "design.toml"
        if place.exists():
            if place.read_bytes() != design.text:
                raise ValueError(f"{folder} must be a folder of this design, but its design.toml differs: name another folder")
            self.tidy()
            return self
        if folder.exists() and (not folder.is_dir() or any(not store.is_part(path, of=place) for path in folder.iterdir())):
            raise ValueError(f"{folder} must be empty, new, or the folder of a sweep, but it is none of these")
        store.sweep(folder)
        store.write(place, design.text)
        return self

    def tidy(self) -> None:
        """Remove what killed writers left behind, but not what another job on this folder may be writing now."""
        for path in self.folder.rglob(f".*{store.TEMPORARY}"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > STALE:
                    path.unlink()

    def design(self) -> Sweep:
        """What this folder is a sweep of."""
        place = self.folder / "design.toml"
        if not place.exists():
            raise ValueError(f"{self.folder} must be the folder of a sweep, but it holds no design.toml")
        return parse(place.read_bytes(), str(place))

    def put(self, number: int, rows: pa.Table) -> Path:
        """Write a shard, whole or not at all."""
        content = store.parquet(rows)
        path = self.shards / f"{number:08d}-{sha256(content).hexdigest()}.parquet"
        store.write(path, content)
        return path

    def found(self) -> dict[int, list[Path]]:
        """The files of each shard, by their names alone."""
        files: dict[int, list[Path]] = {}
        for path in sorted(self.shards.glob("*.parquet")) if self.shards.exists() else ():
            if match := NAME.fullmatch(path.name):
                files.setdefault(int(match[1]), []).append(path)
        return files

    def sound(self) -> dict[int, Path]:
        """The shards whose bytes have the hash of their name. Files that have not are removed, and so are second ones of a shard."""
        good: dict[int, Path] = {}
        for number, paths in self.found().items():
            for path in paths:
                if number not in good and is_sound(path):
                    good[number] = path
                else:
                    path.unlink(missing_ok=True)
        return good

    def missing(self, plan: Plan) -> list[int]:
        """Shards that are still to be computed."""
        good = self.sound()
        for number in sorted(good.keys() - range(plan.shards)):
            raise ValueError(f"{self.folder} must hold shards of this design, but it has none with the number {number}")
        return [number for number in range(plan.shards) if number not in good]

    def drop_failed(self) -> int:
        """Remove shards with a case that failed, so that they are computed again; answer with their number."""
        dropped = 0
        for path in (path for paths in self.found().values() for path in paths):
            with contextlib.suppress(pa.ArrowInvalid, OSError):
                if reported(path)[1]:
                    path.unlink()
                    dropped += 1
        return dropped

    def files(self) -> Iterable[Path]:
        """All shards in the order of their cases."""
        return [paths[0] for _, paths in sorted(self.found().items())]


def reported(path: Path) -> tuple[int, int]:
    """How many cases a shard has, and how many of them have no result."""
    failed = pq.read_table(path, columns=["failed"])["failed"].to_numpy(zero_copy_only=False)
    return len(failed), int(failed.sum())


def is_sound(path: Path) -> bool:
    """Whether the bytes of a shard have the hash of its name."""
    match = NAME.fullmatch(path.name)
    return bool(match) and store.hash_of(path) == match[2]


def lost(plan: Plan, shard: Shard, reason: str) -> pa.Table:
    """The table of a shard that nobody could compute: every case of it with the reason."""
    return table(plan.design, plan.of(shard), failed(shard.count, reason))
