"""One study from design to verdict, in stages that survive an interruption."""

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from whorl.ground import store
from whorl.study import environment, gates, kinds, lock
from whorl.study.design import Design
from whorl.study.frames import Parts, Table, Tables
from whorl.study.kind import Arrays, Kind
from whorl.study.parameters import Parameters

WORK = ".work"
Progress = Callable[[str], None]  # told the name of every piece of work when it is done


def silent(_: str) -> None:
    """Progress that nobody looks at."""


def pieces(design: Design, quick: bool = False) -> int:
    """How often a run of this design reports progress."""
    return len(kinds.get(design.kind).stages(design.values(quick))) + 1


def enter(folder: Path, designs: list[Design], quick: bool) -> dict[str, Any]:
    """Make or reopen a run folder; refuse one that is not ours, or was made by another version."""
    now = environment.describe(designs, quick)
    place = folder / "environment.json"
    free = store.is_free(folder, place)
    if place.exists():
        then = store.read_json(place)
        if apart := environment.differences(then if isinstance(then, dict) else {}, now):
            raise ValueError(
                f"{folder} must be a folder of this version and this run, but it differs in "
                f"{'; '.join(apart)}"
            )
        store.sweep(folder)
        return now
    if not free:
        raise ValueError(
            f"{folder} must be empty, new, or a run folder of whorl, but it is none of these"
        )
    store.sweep(folder)
    store.write_json(place, now)
    return now


def run(
    design: Design,
    folder: Path,
    *,
    registered: dict[str, Any],
    quick: bool = False,
    csv: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Run a study into `folder`, or finish what an interrupted run left there.

    Answer with its verdict.

    Examples:
        >>> from whorl.study import design, run
        >>> mine = design.parse(design.template("threshold").encode())
        >>> run.run(mine, folder / "mine", registered={}, quick=True)["registered"]
        False
    """
    done = finished(folder)
    if done is not None:
        for stage in range(pieces(design, quick)):
            progress(f"{design.name}: kept {stage}")
        if csv:
            for name in kinds.get(design.kind).columns:
                store.write(
                    folder / "tables" / f"{name}.csv",
                    store.csv(pq.read_table(folder / "tables" / f"{name}.parquet")),
                )
        shutil.rmtree(folder / WORK, ignore_errors=True)
        return done
    store.write(folder / "design.toml", design.text)
    store.write(folder / "lock.json", lock.text(registered))
    hashes, judgement, seen = result(design, folder, quick, csv, progress)
    reason = lock.why_unregistered(design, registered, quick)
    verdict = {
        "study": design.name,
        "kind": design.kind,
        "title": design.title,
        "verdict": judgement,
        "expected": design.expected,
        "registered": reason is None,
        "why_unregistered": reason,
        "quick": quick,
        "design": store.hash_of(folder / "design.toml"),
        "lock": store.hash_of(folder / "lock.json"),
        "tables": hashes,
        "gates": seen,
    }
    store.write_json(folder / "verdict.json", verdict)
    shutil.rmtree(folder / WORK, ignore_errors=True)
    progress(f"{design.name}: verdict")
    return verdict


def result(
    design: Design, folder: Path, quick: bool, csv: bool, progress: Progress
) -> tuple[dict[str, Any], str, list[dict[str, Any]]]:
    """Make, store and judge the tables of a study: their hashes, the verdict, and its gates.

    What a lock covers begins here.
    """
    tables = _tables(design, folder / WORK, quick, progress)
    hashes = {
        name: _stored(kinds.get(design.kind), name, table, folder / "tables", csv)
        for name, table in tables.items()
    }
    return hashes, *gates.verdict(design, named(tables["statistics"]))


def finished(folder: Path) -> dict[str, Any] | None:
    """The verdict of a run that is complete and whole, else None."""
    place = folder / "verdict.json"
    if not place.exists():
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        verdict = store.read_json(place)
        names = kinds.get(verdict["kind"]).columns
        paths = {name: folder / "tables" / f"{name}.parquet" for name in names}
        if all(
            path.exists() and store.hash_of(path) == verdict["tables"][name]["sha256"]
            for name, path in paths.items()
        ):
            return verdict
    return None


def compute(design: Design, quick: bool = False, *, begin: int = 0, **others: Any) -> Tables:
    """All tables of a study in memory; `others` take the place of parameters.

    `begin` numbers the stage that is computed first, which changes nothing but the time: see
    `rotated`.

    Examples:
        >>> from whorl.study import design, run
        >>> tables = run.compute(design.shipped("threshold"), quick=True, families=2, depths=[1])
        >>> len(tables["configurations"]["ratio"])
        10
    """
    kind, p = kinds.get(design.kind), design.values(quick, **others)
    stages = rotated(kind.stages(p), begin)
    return judged(kind, p, {stage: kind.compute(p, stage) for stage in stages})


def rotated(stages: Sequence[Any], begin: int) -> list[Any]:
    """The same stages from another one on.

    Workers that share compiled programs shall not all compile the same one at first.
    """
    here = begin % len(stages)
    return [*stages[here:], *stages[:here]]


def judged(kind: Kind[Any, Any], p: Parameters, parts: Parts) -> Tables:
    """The tables of a study and its statistics, all of them finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        tables = kind.tables(p, parts)
        for name, table in tables.items():
            for column, values in table.items():
                _check_finite(f"column {column} of table {name}", values)
        found = {name: float(value) for name, value in kind.statistics(p, tables).items()}
    for name, value in found.items():
        _check_finite(f"statistic {name}", np.asarray(value))
    return tables | {
        "statistics": {"name": np.array(list(found)), "value": np.array(list(found.values()))}
    }


def named(statistics: Table) -> dict[str, float]:
    """The statistics by their names."""
    return dict(zip(statistics["name"].tolist(), statistics["value"].tolist(), strict=True))


def _check_finite(what: str, values: np.ndarray) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(
            f"{what} must be finite, but it is not: the design leaves too little to measure it on"
        )


def _tables(design: Design, work: Path, quick: bool, progress: Progress) -> Tables:
    kind, p = kinds.get(design.kind), design.values(quick)
    stages, parts = kind.stages(p), {}

    def part(stage: Any) -> Arrays:
        key = f"{design.sha256} {quick} {stage.name}"
        return _kept(work / f"{stage.name}.npz", key, lambda: kind.compute(p, stage))

    # Most of a first run is compilation, which lets go of the interpreter: stages side by side use
    # every core.
    with ThreadPoolExecutor(1 if kind.alone else os.cpu_count()) as pool:
        for stage, made in zip(stages, pool.map(part, stages), strict=True):
            parts[stage] = made
            progress(f"{design.name}: {stage.name}")
    return judged(kind, p, parts)


def _kept(path: Path, key: str, make: Callable[[], Arrays]) -> Arrays:
    """What an interrupted run had computed, or computed now and kept.

    A file that is not what it wrote is computed anew.
    """
    kept = store.read_arrays(path, key)
    if kept is not None:
        return kept
    made = make()
    store.write_arrays(path, made, key)
    return made


def _stored(
    kind: Kind[Any, Any], name: str, table: Table, folder: Path, csv: bool
) -> dict[str, Any]:
    rows = kind.arrow(name, table)
    path = folder / f"{name}.parquet"
    store.write(path, store.parquet(rows))
    if csv:
        store.write(folder / f"{name}.csv", store.csv(rows))
    return {"sha256": store.hash_of(path), "rows": rows.num_rows}
