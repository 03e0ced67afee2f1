"""A run folder as the page sees it: read once, checked as far as the page relies on it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from whorl.study import design, store

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
        """structural, threshold or horizon."""
        return self.verdict["kind"]

    def table(self, name: str) -> dict[str, np.ndarray]:
        """A stored table as columns."""
        return store.read_table(self.folder / "tables" / f"{name}.parquet")


@dataclass(frozen=True)
class Run:
    """A finished run folder.

    Examples:
        >>> from whorl import report
        >>> from whorl.study import design, reproduce
        >>> done = reproduce.conduct([(design.shipped("threshold"), {})], folder / "run", quick=True)
        >>> report.read(folder / "run").quick
        True
    """

    folder: Path
    environment: dict[str, Any]
    studies: tuple[Study, ...]
    audit: list[dict[str, Any]]  # findings on the folder as a whole
    figures: tuple[Figure, ...]

    @property
    def quick(self) -> bool:
        """Whether this was a smoke run."""
        return any(study.verdict["quick"] for study in self.studies)


def read(folder: Path) -> Run:
    """Read a finished run folder; the paper's studies come first, in its order.

    Examples:
        >>> from whorl import report
        >>> from whorl.study import design, reproduce
        >>> done = reproduce.conduct([(design.shipped("threshold"), {})], folder / "run", quick=True)
        >>> [study.name for study in report.read(folder / "run").studies]
        ['threshold']
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a run folder of whorl, but it is no folder")
    folder = folder.resolve()
    places = sorted((path.parent for path in folder.glob("*/design.toml")), key=_order)
    if not places or not (folder / "environment.json").exists():
        raise ValueError(f"{folder.name} must be a run folder of whorl, but it holds no studies and environment.json")
    studies = tuple(_sound(place) for place in places)
    return Run(folder, _object(folder / "environment.json"), studies, _findings(places[0], "folder") or [], _figures(folder, ""))


def _order(place: Path) -> tuple[int, str]:
    return (design.PAPER.index(place.name) if place.name in design.PAPER else len(design.PAPER), place.name)


def _sound(place: Path) -> Study:
    """A study, from files that somebody may have changed or lost."""
    try:
        return _study(place)
    except OSError as wrong:
        raise ValueError(f"{place.name} must be a finished study, but a file of it cannot be read: {_line(wrong)}") from wrong
    except (AttributeError, LookupError, TypeError) as wrong:
        raise ValueError(f"{place.name} must be a study as whorl wrote it, but a file of it was changed: {_line(wrong)}") from wrong


def _line(wrong: Exception) -> str:
    """The first line of somebody else's refusal, cut to what fits into a sentence."""
    return (str(wrong).splitlines() or [""])[0][:200] or type(wrong).__name__


def _study(place: Path) -> Study:
    if not (place / "verdict.json").exists():
        raise ValueError(f"{place.name} must be a finished study, but it has no verdict: run the same command again to finish it")
    verdict = _object(place / "verdict.json")
    for key, kind in VERDICT.items():
        if not isinstance(verdict.get(key), kind):
            raise ValueError(f"{place.name}/verdict.json must be a verdict of whorl, but its {key} is {verdict.get(key)!r}")
    stored = {name: place / "tables" / f"{name}.parquet" for name in verdict["tables"]}
    stale = tuple(
        name for name, path in stored.items() if not path.exists() or store.hash_of(path) != verdict["tables"][name].get("sha256")
    )
    found = store.read_table(place / "tables" / "statistics.parquet")
    return Study(
        folder=place,
        verdict=verdict,
        design=design.parse((place / "design.toml").read_bytes(), f"{place.name}/design.toml"),
        lock=_object(place / "lock.json"),
        statistics=dict(zip(found["name"].tolist(), found["value"].tolist(), strict=True)),
        audit=_findings(place, "study"),
        figures=_figures(place, verdict["kind"]),
        stale=stale,
    )


def _object(path: Path) -> dict[str, Any]:
    content = store.read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path.parent.name}/{path.name} must hold a JSON object, but it holds {type(content).__name__}")
    return content


def _findings(place: Path, part: str) -> list[dict[str, Any]] | None:
    """What the audit said of a part, the study or its folder; None where there was none."""
    path = place / "audit.json"
    if not path.exists():
        return None
    found = _object(path).get(f"{part}_findings")
    return [one for one in found if isinstance(one, dict) and "claim" in one and "passed" in one] if isinstance(found, list) else None


def _figures(place: Path, first: str) -> tuple[Figure, ...]:
    """The figures in a folder; the one that tells the study first."""
    found = sorted((place / "figures").glob("*.png"), key=lambda path: (path.stem != first, path.stem))
    return tuple(Figure(path.stem, path, beside if (beside := path.with_suffix(".pdf")).exists() else None) for path in found)


def time_of(path: Path) -> str:
    """When a file was written, to the minute."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
