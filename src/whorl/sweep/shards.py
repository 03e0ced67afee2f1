"""The shard store: one Parquet file per shard, whose name holds the SHA-256 of its bytes.

The folder is all that a sweep remembers. A shard is there when a file of its number is, and sound
when its bytes have the hash of its name and are the table that its number asks for; what is damaged
is set aside and computed again, and a shard of another design is refused. Equal shards are equal
files under equal names, so that computing one twice changes nothing.
"""

import contextlib
import re
import warnings
from collections.abc import Container
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl.ground import store
from whorl.sweep.compute import NUMBERS, Rows
from whorl.sweep.design import Range, Sweep, parse
from whorl.sweep.guard import failed
from whorl.sweep.plan import Cases, Plan, Shard

NAME = re.compile(r"(\d{8,})-([0-9a-f]{64})\.parquet")
TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
MEANING = {
    "case": "number of the case",
    "trial": (
        "number of the trial; cases of a grid with one trial share task, logits, order and turns"
    ),
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
    return pa.field(
        name,
        kind,
        nullable=nullable,
        metadata={"description": MEANING.get(name, f"{name}, as in the design")},
    )


def fields(design: Sweep) -> list[pa.Field]:
    """The columns of a shard: the parameters of its design, and the results."""
    kinds = {
        name: float if isinstance(values, Range) else type(values[0])
        for name, values in design.values.items()
    }
    return [
        *(_field(name, pa.int64()) for name in ("case", "trial", "flip")),
        *(_field(name, TYPES[kind]) for name, kind in kinds.items()),
        *(_field(name, pa.float64(), nullable=True) for name in NUMBERS),
        _field("made", pa.int64()),
        _field("failed", pa.bool_()),
        _field("reason", pa.string()),
    ]


def table(design: Sweep, cases: Cases, rows: Rows) -> pa.Table:
    """Parameters and results side by side; a case without a result has nulls and a reason."""
    bad = np.array([bool(words) for words in rows["reason"]])
    columns: dict[str, np.ndarray] = {
        "case": cases.number,
        "trial": cases.trial,
        "flip": cases.flip,
    }
    columns |= {
        name: np.full(len(cases), cases.shape[name]) if name in cases.shape else cases.free[name]
        for name in design.values
    }
    columns |= {"made": rows["made"], "failed": bad, "reason": rows["reason"]}
    columns_of = fields(design)
    arrays = [
        (
            pa.array(rows[f.name], f.type, mask=bad)
            if f.name in NUMBERS
            else pa.array(_plain(columns[f.name]), f.type)
        )
        for f in columns_of
    ]
    return pa.Table.from_arrays(
        arrays,
        schema=pa.schema(columns_of, metadata={"sweep": design.name, "design": design.sha256}),
    )


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
        free = store.is_free(folder, place)
        if not place.exists():
            if not free:
                raise ValueError(
                    f"{folder} must be empty, new, or the folder of a sweep, but it is none of "
                    "these"
                )
            store.write(place, design.text)
        if place.read_bytes() != design.text:
            raise ValueError(
                f"{folder} must be a folder of this design, but its design.toml differs: name "
                "another folder"
            )
        self.tidy()
        return self

    def tidy(self) -> None:
        """Remove what killed writers left behind, but not what another job on this folder may be
        writing now.
        """
        store.sweep(self.folder)

    def design(self) -> Sweep:
        """What this folder is a sweep of."""
        place = self.folder / "design.toml"
        if not place.exists():
            raise ValueError(
                f"{self.folder} must be the folder of a sweep, but it holds no design.toml"
            )
        return parse(place.read_bytes(), str(place))

    def put(self, number: int, rows: pa.Table) -> Path:
        """Write a shard, whole or not at all."""
        content = store.parquet(rows)
        path = self.shards / f"{number:08d}-{sha256(content).hexdigest()}.parquet"
        store.write(path, content, tidy=False)  # `tidy` looked once for all shards
        return path

    def found(self) -> dict[int, list[Path]]:
        """The files of each shard, by their names alone."""
        files: dict[int, list[Path]] = {}
        for path in sorted(self.shards.glob("*.parquet")) if self.shards.exists() else ():
            if match := NAME.fullmatch(path.name):
                files.setdefault(int(match[1]), []).append(path)
        return files

    def sound(self, plan: Plan, among: Container[int] | None = None) -> dict[int, Path]:
        """The shards of a plan that are there and whole.

        `among` some numbers, where others are not asked for.

        Damaged ones are set aside under another name, with a warning that names them. Second files
        of a shard are removed. A shard of another design is refused.
        """
        good: dict[int, Path] = {}
        for number, paths in self.found().items():
            for path in paths if among is None or number in among else ():
                if why := damage(path, plan, number):
                    _set_aside(path, why)
                elif number in good:
                    path.unlink(missing_ok=True)
                else:
                    good[number] = path
        return good

    def missing(self, plan: Plan, retry_failed: bool = False) -> list[int]:
        """Shards that are still to be computed.

        With `retry_failed` those with a case that failed are removed, to be computed again.
        """
        good = self.sound(plan)
        for number, path in list(good.items()) if retry_failed else ():
            if reported(path, plan.design)[1]:
                path.unlink()
                del good[number]
        return [number for number in range(plan.shards) if number not in good]

    def files(self) -> list[Path]:
        """All shards in the order of their cases."""
        return [paths[0] for _, paths in sorted(self.found().items())]


def reported(path: Path, design: Sweep) -> tuple[int, int]:
    """How many cases a shard has, and how many of them have no result."""
    check_design(path, design)
    failed = pq.read_table(path, columns=["failed"])["failed"].to_numpy(zero_copy_only=False)
    return len(failed), int(failed.sum())


def damage(path: Path, plan: Plan, number: int) -> str:
    """What is wrong with the file of a shard, in words; empty where nothing is.

    A shard of another design is refused.
    """
    match = NAME.fullmatch(path.name)
    if match is None or not path.is_file() or store.hash_of(path) != match[2]:
        return "its bytes do not have the hash in its name"
    try:
        columns = pq.read_schema(path)
        if not columns.equals(pa.schema(fields(plan.design))):
            return "it has not the columns of a shard"
        cases = pq.read_table(path, columns=["case"])["case"].to_numpy()
    except (pa.ArrowException, OSError):
        return "it is no table"
    check_design(path, plan.design)
    if number >= plan.shards:
        raise ValueError(
            f"{path} must be a shard of this design, but it has none with the number {number}"
        )
    shard = plan.shard(number)
    return (
        ""
        if np.array_equal(cases, shard.first + np.arange(shard.count))
        else "its cases are those of another shard"
    )


def _set_aside(path: Path, why: str) -> None:
    """Give a damaged file another name, and say so.

    Another job on the folder may have done it already.
    """
    with contextlib.suppress(FileNotFoundError):
        aside = path.rename(path.with_name(f"{path.name}.damaged"))
        words = (
            f"{path} must be a whole shard, but {why}: it is computed again, and the file is now"
            f" {aside.name}"
        )
        warnings.warn(words, RuntimeWarning, stacklevel=2)


def check_design(path: Path, design: Sweep) -> None:
    """Refuse a shard of another design, and a file that is not a shard."""
    try:
        found = (
            (pq.read_schema(path).metadata or {})
            .get(b"design", b"unknown")
            .decode(errors="replace")
        )
    except pa.ArrowException as wrong:
        raise ValueError(
            f"{path} must be a whole shard, but it cannot be read: start the sweep again"
        ) from wrong
    if found != design.sha256:
        rule = f"{path} must be a shard of the design {design.sha256}"
        raise ValueError(f"{rule}, but its design is {found}: move it away or name another folder")


def lost(plan: Plan, shard: Shard, reason: str) -> pa.Table:
    """The table of a shard that failed: all its cases, with the reason."""
    return table(plan.design, plan.of(shard), failed(shard.count, reason))
