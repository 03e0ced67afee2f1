"""The page: everything the templates show, gathered, and the templates filled in."""

import base64
import gzip
import re
import struct
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from whorl import _html
from whorl._show import plural
from whorl.ground import store
from whorl.study import crate, figures, kinds, layout
from whorl.study.report import charts, comparison, gates, words
from whorl.study.report.folder import Figure, RunFolder, Study, time_of

CAPTION = (  # of the illustration
    "What the words mean: a directed network with conserved flow and the loop around it, a "
    "straight and a turning path on one loss landscape, and how curvature decides a step. An "
    "illustration, computed from small networks."
)
POLICY = (  # of the page itself: nothing is asked of any network
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: "
    "blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def render(run: RunFolder, unverified: str | None = None) -> str:
    """The whole page as HTML."""
    try:
        return _rendered(run, unverified)
    # The folder may have been changed in any way, and what breaks then may be anything.
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
        jinja2.TemplateError,
    ) as wrong:
        why = " ".join(str(wrong).split())[:200] or type(wrong).__name__
        raise ValueError(
            f"{run.folder.name} must hold what whorl wrote, but its page cannot be drawn: {why}"
        ) from wrong


def _rendered(run: RunFolder, unverified: str | None) -> str:
    lines = comparison.rows(run)
    published = [line for line in lines if not line.agrees]
    context = {
        "paper": words.PAPER if lines else None,
        "found": [text for study in run.studies if (text := _found(study)) and not run.quick],
        "disagree": published,
        "plain": words.plain,
        "typeset": words.typeset,
        "origins": words.ORIGINS,
        "run": run,
        "policy": POLICY,
        "stamps": words.stamps(run, unverified),
        "studies": [_study(run, study) for study in run.studies],
        "lines": lines,
        "others": comparison.others(run) if lines else [],
        "replication": charts.replication(choices)
        if (choices := comparison.replication(run, lines))
        else None,
        "figures": [_figure(run, figure) for figure in run.figures],
        "audits": _audits(run),
        "provenance": _provenance(run),
        "begun": time_of(run.folder / "environment.json"),
        "number": words.number,
        "plural": plural,
    }
    probed = (
        any(study["charts"] for study in context["studies"]) or context["replication"] is not None
    )
    return (
        _html.templates("whorl.study.report")
        .get_template("report.html.j2")
        .render(context | {"plotly": plotly() if probed else None})
    )


@cache
def plotly() -> str:
    """The chart library as the installed package has it, compressed: a third of its size."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()


def _link(run: RunFolder, path: Path) -> str:
    """A path inside the folder as a relative address."""
    return quote(path.relative_to(run.folder).as_posix())


def _image(png: bytes) -> dict[str, Any]:
    """An image inside the page; its size, from its head, keeps the page from jumping."""
    whole = len(png) >= 24 and png.startswith(b"\x89PNG")  # of a broken one the words are shown
    return {
        "source": f"data:image/png;base64,{base64.b64encode(png).decode()}",
        "size": struct.unpack(">II", png[16:24]) if whole else (600, 400),
    }


def _narrow(study: Study) -> bytes | None:
    """The figure of a study as a phone shows it; None where it cannot be drawn."""
    try:
        return figures.narrow(study.folder)
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError):  # a folder was changed
        return None


def _figure(run: RunFolder, figure: Figure, small: bytes | None = None) -> dict[str, Any]:
    """A figure inside the page, with where its files are."""
    content = store.contents(figure.png)
    return {
        "name": figure.name,
        "caption": _caption(figure.name),
        "number": _number(figure.name),
        **_image(content),
        "narrow": None if small is None else _image(small),
        "links": [
            (path.suffix[1:].upper(), _link(run, path))
            for path in (figure.pdf, figure.png)
            if path is not None
        ],
    }


def _number(name: str) -> str:
    """The number of a figure in the paper, for those that it has."""
    if name == "concept":
        return "Fig. 1"
    said = kinds.part(name, "words") if name in kinds.names() else None
    return getattr(said, "FIGURE", "")


def _caption(name: str) -> str:
    """What a figure shows: a kind's figure has the name of the kind."""
    if name == "concept":
        return CAPTION
    said = kinds.part(name, "words") if name in kinds.names() else None
    return said.CAPTION if said else f"{name.replace('_', ' ')}, drawn from the tables of this run."


def _found(study: Study) -> str:
    """One sentence on what came out, where the kind has one."""
    said = study.part("words")
    return said.found(study.statistics) if said is not None and hasattr(said, "found") else ""


def _study(run: RunFolder, study: Study) -> dict[str, Any]:
    """Everything about one study."""
    verdict = study.verdict
    state, standing = words.outcome(verdict)
    anchor = "study-" + re.sub(r"[^a-z0-9_-]+", "-", study.name.lower())
    broken = [gate for gate in verdict["gates"] if not gate["passed"]]
    held = [gate for gate in verdict["gates"] if gate["passed"]]
    return {
        "name": study.name,
        "anchor": anchor,
        "answer": words.answer(study),
        "verdict": verdict,
        "state": state,
        "standing": standing,
        "held": len(held),
        "failed": [
            (gate["name"], words.failed(gate), words.culprits(study, gate)) for gate in broken
        ],
        "groups": words.groups(held),
        "closing": words.closing(study),
        "gates": gates.rows(verdict["gates"]),
        "figures": [
            _figure(run, figure, _narrow(study) if figure.name == study.kind else None)
            for figure in study.figures
        ],
        "charts": charts.of(study, anchor),
        "statistics": [(name, words.number(value)) for name, value in study.statistics.items()],
        "tables": [_table(run, study, name) for name in sorted(verdict["tables"])],
        "parameters": _parameters(study),
        "sources": len(study.lock.get("sources", {})),
        "finished": time_of(study.folder / "verdict.json"),
        "files": [
            (name, _link(run, study.folder / name))
            for name in ("design.toml", "lock.json", "verdict.json")
        ],
    }


def _table(run: RunFolder, study: Study, name: str) -> dict[str, Any]:
    """A stored table: how long it is, and where."""
    paths = [study.folder / "tables" / f"{name}{ending}" for ending in (".parquet", ".csv")]
    rows = study.verdict["tables"][name].get("rows")
    return {
        "name": name,
        "rows": rows,
        "links": [(path.suffix[1:], _link(run, path)) for path in paths if path.exists()],
    }


def _parameters(study: Study) -> list[tuple[str, str, str, str]]:
    """The design as it was run: value, origin and note of every parameter."""
    run = vars(study.design.values(study.verdict["quick"]))
    shown = []
    for name, entry in study.design.parameters.items():
        value = run[name]
        text = (
            ", ".join(map(words.chosen, value)) if isinstance(value, list) else words.chosen(value)
        )
        quick = "quick run; " if value != entry["value"] else ""
        shown.append((name, text, entry["origin"], f"{quick}{entry.get('note', '')}".rstrip("; ")))
    return shown


def _about_seal(finding: dict[str, Any]) -> bool:
    """Whether a claim on manifest or crate holds: they list this page, and are made after it."""
    seal = (layout.MANIFEST, crate.NAME)
    return finding["passed"] and str(finding.get("where")).startswith(seal)


def _audits(run: RunFolder) -> list[dict[str, Any]]:
    """The findings on the folder and on every study; those that failed also by themselves."""
    parts = [
        ("the folder as a whole", [one for one in run.audit if not _about_seal(one)]),
        *((study.name, study.audit) for study in run.studies),
    ]
    return [
        {
            "name": name,
            "audited": found is not None,
            "findings": found or [],
            "failed": [one for one in found or [] if not one["passed"]],
        }
        for name, found in parts
        if found != []
    ]


def _provenance(run: RunFolder) -> list[tuple[str, str]]:
    """Where and with what the run was made."""
    told = run.environment
    packages = told.get("packages")
    versions = (
        ", ".join(f"{name} {version}" for name, version in packages.items())
        if isinstance(packages, dict)
        else "not recorded"
    )
    machine = [str(told[key]) for key in ("processor", "machine", "platform") if told.get(key)]
    return [
        ("whorl", str(told.get("whorl", "not recorded"))),
        ("Python", str(told.get("python", "not recorded"))),
        ("packages", versions),
        (
            "machine",
            "; ".join(
                [*machine, plural(told["cores"], "core")]
                if isinstance(told.get("cores"), int)
                else machine
            ),
        ),
        ("computed on", str(told.get("device", "not recorded"))),
    ]
