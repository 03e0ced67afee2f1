"""The figures of a run folder, drawn from its stored tables and from nothing else.

Every file names in its metadata the SHA-256 of each table it was drawn from, and equal tables give
equal bytes.
"""

import json
from collections.abc import Mapping
from inspect import signature
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from whorl.fields import choice
from whorl.ground import store
from whorl.study import kinds
from whorl.study.figures import concept, style

PNG_KEY = "whorl-tables"  # of the text chunk; in a PDF the same text is the Keywords
DPI = 300
SCREEN = 200  # dots per inch, which a phone shows two to three of per pixel of a page


def draw_all(folder: Path, *, illustration: bool = True) -> list[Path]:
    """Draw the figure of every study in a run folder, and the concept where the paper's three are.

    Answer with the files written.

    The concept is the same in every folder and takes longest, since its networks are computed;
    `illustration=False` leaves it as it is.

    Examples:
        >>> from whorl.study import conduct, figures
        >>> done = conduct("threshold", folder / "run", quick=True)
        >>> [path.name for path in figures.draw_all(folder / "run")]
        ['threshold.pdf', 'threshold.png']
    """
    studies = sorted(path.parent for path in Path(folder).glob("*/verdict.json"))
    if not studies:
        raise ValueError(
            f"folder must hold studies, each with a verdict.json, but {folder} holds none"
        )
    written = [path for study in studies for path in draw_study(study)]
    if illustration and set(kinds.paper()) <= {study.name for study in studies}:
        written += _written(Path(folder) / "figures", drawn_concept())
    return written


def draw_study(study: Path) -> list[Path]:
    """Draw the figure of one study from its tables, which must be those that its verdict names.

    A kind without a figure gives none.

    Examples:
        >>> from whorl.study import design, figures, run
        >>> verdict = run.run(
        ...     design.shipped("threshold"), folder / "run", registered={}, quick=True
        ... )
        >>> [path.name for path in figures.draw_study(folder / "run")]
        ['threshold.pdf', 'threshold.png']
    """
    return _written(study / "figures", drawn_study(study))


def drawn_study(study: Path) -> dict[str, bytes]:
    """The files that `draw_study` writes, by their names, from the tables alone."""
    drawn = _figure(study)
    return {} if drawn is None else files(*drawn)


def narrow(study: Path) -> bytes | None:
    """The figure of a study for a screen as narrow as a phone, its panels below each other, as PNG.

    None where its kind draws none of that shape.
    """
    drawn = _figure(study, single=True)
    return None if drawn is None else _saved(drawn[0], "png", SCREEN, {"Software": None})


def _figure(study: Path, **shape: bool) -> tuple[Figure, str, dict[str, str], str] | None:
    """The figure of a study, its kind, the hashes of its tables, and its title."""
    verdict = store.read_json(study / "verdict.json")
    kind = verdict.get("kind") if isinstance(verdict, dict) else None
    named = choice(f"kind in {study.name}/verdict.json", kind, kinds.names())
    one = kinds.part(named, "figure")
    if one is None or not set(shape) <= set(signature(one.draw).parameters):
        return None
    hashes, tables = {}, {}
    for name in one.TABLES:
        path = study / "tables" / f"{name}.parquet"
        hashes[name] = verdict["tables"][name]["sha256"]
        found = store.hash_of(path) if path.exists() else "missing"
        if found != hashes[name]:
            raise ValueError(
                f"table {name} of {study.name} must have the SHA-256 {hashes[name]} of its "
                f"verdict, but it is {found}"
            )
        tables[name] = store.read_table(path)
    bounds = {gate["statistic"]: float(gate["bound"]) for gate in verdict["gates"]}
    options = {name: bounds[gate] for name, gate in one.OPTIONS.items() if gate in bounds}
    figure = one.draw(tables, **options, **shape)
    if words := stamp_of(verdict):
        style.stamp(figure, words)
    return figure, named, hashes, str(verdict.get("title", named))


def drawn_concept() -> dict[str, bytes]:
    """The files of the illustration, which is the same in every run folder."""
    return files(concept.draw(), "concept", {}, "Illustration of conservative physical learning")


def stamp_of(verdict: Mapping[str, Any]) -> str:
    """What must be written on a figure of a run that is not the registered one."""
    if verdict.get("registered") is True and not verdict.get("quick"):
        return ""
    return "UNREGISTERED" + " · quick run" * bool(verdict.get("quick"))


def files(figure: Figure, name: str, hashes: Mapping[str, str], title: str) -> dict[str, bytes]:
    """A figure as PDF and PNG, with the hashes of its tables and without anything that changes by
    itself.
    """
    text = json.dumps(dict(hashes), sort_keys=True)
    about = {
        "pdf": {
            "Title": title,
            "Keywords": text,
            "Creator": "whorl",
            "Producer": None,
            "CreationDate": None,
        },
        "png": {"Title": title, PNG_KEY: text, "Software": None},
    }
    return {f"{name}.{ending}": _saved(figure, ending, DPI, about[ending]) for ending in about}


def _saved(figure: Figure, ending: str, dpi: float, metadata: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    with style.settings():
        figure.savefig(buffer, format=ending, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def _written(folder: Path, made: Mapping[str, bytes]) -> list[Path]:
    for name, content in made.items():
        store.write(folder / name, content)
    return [folder / name for name in made]
