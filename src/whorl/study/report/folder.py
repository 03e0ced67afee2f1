"""A run folder as the page sees it: read once, checked as far as the page relies on it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from whorl.ground import store
from whorl.study import design, kinds, layout, published

VERDICT: dict[str, type] = {
    "study": str,
    "kind": str,
    "title": str,
    "verdict": str,
    "registered": bool,
    "quick": bool,
    "design": str,
    "lock": str,
    "tables": dict,
    "gates": list,
}


@dataclass(frozen=True)
class Figure:
    """A picture of the run, and the same picture for print."""

    name: str
    png: Path
    pdf: Path | None


@dataclass(frozen=True)
class Study:
    """One study of a run, as its files say."""

    folder: Path
    verdict: dict[str, Any]
    design: design.Design
    lock: dict[str, Any]
    statistics: dict[str, float]
    audit: list[dict[str, Any]] | None  # None: never audited
    figures: tuple[Figure, ...]
    stale: tuple[str, ...]  # tables that are not those the verdict was made from

    @property
    def name(self) -> str:
        """Its name, which is also that of its folder."""
        return self.folder.name

    @property
    def kind(self) -> str:
        """What is studied."""
        return self.verdict["kind"]

    def part(self, what: str) -> ModuleType | None:
        """The chart or the words of its kind, where it has any."""
        return kinds.part(self.kind, what) if self.kind in kinds.names() else None

    def table(self, name: str) -> dict[str, np.ndarray]:
        """A stored table as columns."""
        return _table(self.folder / "tables" / f"{name}.parquet")


@dataclass(frozen=True)
class RunFolder:
    """A finished run folder.

    Examples:
        >>> from whorl.study import conduct, report
        >>> done = conduct("threshold", folder / "run", quick=True)
        >>> report.read(folder / "run").quick
        True
    """

    folder: Path
    environment: dict[str, Any]
    studies: tuple[Study, ...]
    audit: list[dict[str, Any]]  # findings on the folder as a whole
    figures: tuple[Figure, ...]
    strange: tuple[str, ...] = ()  # what no run writes, in words; nothing of it is read

    @property
    def quick(self) -> bool:
        """Whether this was a smoke run."""
        return any(study.verdict["quick"] for study in self.studies)

    @property
    def paper(self) -> list[Study]:
        """The studies that the paper has numbers for, by their names; none of a quick run."""
        ours = [study for study in self.studies if study.name in kinds.paper() and not self.quick]
        return [study for study in ours if study.name == study.verdict["study"] == study.kind]

    @cached_property
    def numbers(self) -> list[published.Comparison]:
        """The paper's numbers next to those of this run."""
        return published.table({study.name: study.statistics for study in self.paper})


def read(folder: Path | str) -> RunFolder:
    """Read a finished run folder; the paper's studies come first, in its order.

    Examples:
        >>> from whorl.study import conduct, report
        >>> done = conduct("threshold", folder / "run", quick=True)
        >>> [study.name for study in report.read(folder / "run").studies]
        ['threshold']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a run folder of whorl, but it is no folder")
    folder = folder.resolve()
    found = layout.read(folder)
    if found.alone:
        raise ValueError(
            f"{folder.name} must be a run folder of whorl, but its design.toml makes it the folder "
            "of one study"
        )
    places, environment = sorted(found.studies, key=_order), folder / "environment.json"
    if not places or environment not in found.files:
        raise ValueError(
            f"{folder.name} must be a run folder of whorl, but it holds no studies and "
            "environment.json"
        )
    studies = tuple(_sound(place, found) for place in places)
    audit = _findings(places[0], "folder", found) or []
    return RunFolder(
        folder, _object(environment), studies, audit, _figures(folder, "", found), found.strange
    )


def _order(place: Path) -> tuple[int, str]:
    paper = kinds.paper()
    return paper.index(place.name) if place.name in paper else len(paper), place.name


def _sound(place: Path, found: layout.Layout) -> Study:
    """A study, from files that somebody may have changed or lost."""
    try:
        return _study(place, found)
    except OSError as wrong:
        raise ValueError(
            f"{place.name} must be a finished study, but a file of it cannot be read: "
            f"{_line(wrong)}"
        ) from wrong
    except (AttributeError, LookupError, TypeError) as wrong:
        raise ValueError(
            f"{place.name} must be a study as whorl wrote it, but a file of it was changed: "
            f"{_line(wrong)}"
        ) from wrong


def _line(wrong: Exception) -> str:
    """The first line of somebody else's refusal, cut to what fits into a sentence."""
    return (str(wrong).splitlines() or [""])[0][:200] or type(wrong).__name__


def _study(place: Path, found: layout.Layout) -> Study:
    if place / "verdict.json" not in found.files:
        raise ValueError(
            f"{place.name} must be a finished study, but it has no verdict: run the same command "
            "again to finish it"
        )
    verdict = _object(place / "verdict.json")
    for key, kind in VERDICT.items():
        if not isinstance(verdict.get(key), kind):
            raise ValueError(
                f"{place.name}/verdict.json must be a verdict of whorl, but its {key} is "
                f"{verdict.get(key)!r}"
            )
    stored = {name: place / "tables" / f"{name}.parquet" for name in verdict["tables"]}
    stale = tuple(
        name
        for name, path in stored.items()
        if path not in found.files or store.hash_of(path) != verdict["tables"][name].get("sha256")
    )
    statistics = _table(place / "tables" / "statistics.parquet")
    return Study(
        folder=place,
        verdict=verdict,
        design=design.parse(store.contents(place / "design.toml"), f"{place.name}/design.toml"),
        lock=_object(place / "lock.json"),
        statistics=dict(
            zip(statistics["name"].tolist(), statistics["value"].tolist(), strict=True)
        ),
        audit=_findings(place, "study", found),
        figures=_figures(place, verdict["kind"], found),
        stale=stale,
    )


def _object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(store.contents(path).decode())
    except (ValueError, RecursionError) as wrong:
        raise ValueError(
            f"{path.parent.name}/{path.name} must be JSON in UTF-8, but it cannot be read: "
            f"{_line(wrong)}"
        ) from wrong
    if not isinstance(content, dict):
        raise ValueError(
            f"{path.parent.name}/{path.name} must hold a JSON object, but it holds "
            f"{type(content).__name__}"
        )
    return content


def _table(path: Path) -> dict[str, np.ndarray]:
    return store.read_table(path, store.contents(path))


def _findings(place: Path, part: str, inside: layout.Layout) -> list[dict[str, Any]] | None:
    """What the audit said of a part, the study or its folder; None where there was none."""
    path = place / "audit.json"
    if path not in inside.files:
        return None
    found = _object(path).get(f"{part}_findings")
    return (
        [one for one in found if isinstance(one, dict) and "claim" in one and "passed" in one]
        if isinstance(found, list)
        else None
    )


def _figures(place: Path, first: str, found: layout.Layout) -> tuple[Figure, ...]:
    """The figures in a folder; the one that tells the study first."""
    pictures = [
        path for path in found.files if path.parent == place / "figures" and path.suffix == ".png"
    ]
    pictures.sort(key=lambda path: (path.stem != first, path.stem))
    return tuple(
        Figure(
            path.stem, path, beside if (beside := path.with_suffix(".pdf")) in found.files else None
        )
        for path in pictures
    )


def time_of(path: Path) -> str:
    """When a file was written, to the minute."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
