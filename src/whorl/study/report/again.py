"""What only whorl can check of a run folder.

It draws the figures, makes the page and describes the columns once more, and compares.

The auditor knows numbers, hashes and verdicts, and has no pen. With the same versions of what
draws, equal tables give equal bytes.
"""

import base64
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whorl import _version
from whorl.study import environment, figures, kinds
from whorl.study.report import NAME, page
from whorl.study.report.folder import RunFolder, Study, read

Finding = dict[str, Any]
_TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC")
_TITLE = re.compile(r"(<title>(?:\[[^]<]*\] )?)([^<]*)(: [^:<]*</title>)")
_HEADING = re.compile(r"<h1>([^<]*)</h1>")
_LIBRARY = re.compile(r'<script type="text/plain" id="plotly">([A-Za-z0-9+/=]*)</script>')
_MEASURED = re.compile(r'(data-label="(?:error|where)" class="(?:number|soft)">)[^<]*<')


def compare(folder: Path, findings: list[Finding]) -> tuple[list[Finding], list[str]]:
    """Make again what whorl made in a run folder that passes its audit.

    Args:
        folder: The run folder.
        findings: What the audit found just now, as it prints them.

    Returns:
        One finding for each claim, of the shape of the audit's, and what a reader should know
        besides.
    """
    run = read(folder)
    if (then := run.environment.get("whorl")) != (now := _version.installed()):
        return [], [
            (
                f"figures, page and meanings of columns are not made again: they are whorl {then}'s, "
                f"and this is whorl {now}"
            )
        ]
    found = [
        _finding(
            study.name,
            "every column has the meaning that its table gives it",
            _meanings(study),
            "tables",
        )
        for study in run.studies
    ]
    if (then := run.environment.get("drawing")) != (now := environment.drawing()):
        return found, [
            (
                f"figures and page are not drawn again: they were made with {_versions(then)}, and "
                f"here is {_versions(now)}"
            )
        ]
    for study in run.studies:
        if study.figures:
            faults = _unlike(study.folder / "figures", figures.drawn_study(study.folder))
            found.append(
                _finding(study.name, "every figure is what these tables give", faults, "figures")
            )
    if run.figures:
        faults = _unlike(run.folder / "figures", figures.drawn_concept())
        found.append(_finding("", "the illustration is what whorl draws", faults, "figures"))
    notes: list[str] = []
    if (run.folder / NAME).exists():
        found.append(
            _finding(
                "",
                "the page is what this folder gives",
                _page(_audited(run, findings), notes),
                NAME,
            )
        )
    return found, notes


def _finding(study: str, claim: str, faults: Iterator[str] | list[str], where: str) -> Finding:
    faults = list(faults)
    place = f"{where}: {faults[0]}" if faults else where
    return {
        "study": study,
        "claim": claim,
        "error": float(len(faults)),
        "tolerance": 0.0,
        "where": place,
        "passed": not faults,
    }


def _versions(packages: Any) -> str:
    return (
        ", ".join(f"{name} {version}" for name, version in packages.items())
        if isinstance(packages, dict)
        else "unknown versions"
    )


def _meanings(study: Study) -> Iterator[str]:
    """The columns of stored tables whose description is not ours."""
    for name in study.verdict["tables"]:
        stored, ours = (
            pq.read_schema(study.folder / "tables" / f"{name}.parquet"),
            kinds.get(study.kind).schema(name),
        )
        yield from (
            f"{name}.{one.name}"
            for one in ours
            if _described(stored.field(one.name)) != _described(one)
        )
        if _described(stored) != _described(ours):
            yield name


def _described(part: pa.Field | pa.Schema) -> dict[bytes, bytes]:
    return {
        key: value
        for key, value in (part.metadata or {}).items()
        if not key.startswith(b"PARQUET:")
    }


def _unlike(folder: Path, made: dict[str, bytes]) -> Iterator[str]:
    for name, content in made.items():
        if not (folder / name).is_file() or (folder / name).read_bytes() != content:
            yield f"{name} shows something else"


def _audited(run: RunFolder, findings: list[Finding]) -> RunFolder:
    """A run with the findings of now in place of those that lie in it."""
    by: dict[str, list[Finding]] = {"": [], **{study.name: [] for study in run.studies}}
    for one in findings:
        by[one["study"]].append({key: value for key, value in one.items() if key != "study"})
    return replace(
        run,
        audit=by[""],
        studies=tuple(replace(study, audit=by[study.name]) for study in run.studies),
    )


def _page(run: RunFolder, notes: list[str]) -> Iterator[str]:
    """Where the stored page differs from ours, except in what a page cannot know.

    The clock, the folder's name, how a library is packed.
    """
    stored = (run.folder / NAME).read_bytes().decode("utf-8", "replace")
    ours = page.render(run)
    if (
        (packed := _LIBRARY.search(ours))
        and (there := _LIBRARY.search(stored))
        and _unpacked(there[1]) == _unpacked(packed[1])
    ):
        stored = stored[: there.start()] + packed[0] + stored[there.end() :]
    stored, ours = (_anonymous(_TIME.sub("TIME", text)) for text in (stored, ours))
    if stored != ours and _MEASURED.sub(r"\1<", stored) == _MEASURED.sub(r"\1<", ours):
        notes.append(
            "the page shows errors of an audit elsewhere, in last digits or places other than "
            "those of this one"
        )
    elif stored != ours:
        pairs = enumerate(zip_longest(stored.split("\n"), ours.split("\n"), fillvalue=""), start=1)
        number, line = next(((n, one) for n, (one, other) in pairs if one != other), (0, "the end"))
        yield f"line {number}, {' '.join(line.split())[:60]!r}"


def _anonymous(text: str) -> str:
    return _HEADING.sub("<h1></h1>", _TITLE.sub(r"\1\3", text, count=1), count=1)


def _unpacked(packed: str) -> bytes | None:
    """A script that was compressed; none if it is larger than a chart library is."""
    limit = 32 << 20
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(base64.b64decode(packed))) as file:
            content = file.read(limit + 1)
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return content if len(content) <= limit else None
