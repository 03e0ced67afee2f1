"""The verdict as one page: HTML that needs no network, or PDF."""

import html
import io
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from whorl import _html, _version
from whorl.ground import store
from whorl.measured import figures, history
from whorl.measured.finding import Finding
from whorl.measured.history import History
from whorl.plot._canvas import fixed

PAPER = (8.27, 11.69)  # inches

# The page asks nothing of any network and runs nothing, whatever name from a table should ever find
# its way into it.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action"
    " 'none'"
)
SPIRAL = (
    "of size one decays to the cross. The solid line is the fitted loop, thin lines are replicates."
)
PARTS = (
    "Columns drive rows. Orange raises, blue lowers, on one scale. The left matrix is symmetric, the "
    "right one is the skew part."
)
EIGENVALUES = (
    "To the right: faster decay. Off the line: rotation. Ellipses hold 95 of 100 replicates."
)
Panel = tuple[str, str, tuple[int, int], Callable[[Any], None]]
Found = Finding | History
PHASES = 4  # that have pictures
EACH = 4  # pictures on a sheet of paper
FOOT = (
    "Method: weighted least squares on the zero-sum directions, with an offset. Symmetry is tested "
    "with random signs of independent units, real eigenvalues by the distance of their "
    "discriminants from zero. Intervals have the level of the tests. Assumptions: the applied "
    "residuals are known, and the loop did not change during the measurement."
)
FOOT_SERIES = (
    "Method: the most likely linear loop with noise in the state and in its measurement, at the "
    "times of the samples. Symmetry is tested with random signs of neighbouring steps, real "
    "eigenvalues by the distance of their discriminants from zero. Intervals have the level of the "
    "tests. Assumptions: the loop did not change during the series, and only white noise drives the "
    "states."
)


def write(finding: Found, path: str | Path) -> Path:
    """Write the page, HTML or PDF by the ending of `path`.

    It is there in the end, whole, or not at all.

    Args:
        finding: What `certify`, `judge`, `follow` or `read_series` found.
        path: The file, which ends in .html or .pdf.

    Returns:
        Where the page is.

    Examples:
        >>> from whorl import measured
        >>> measured.write(
        ...     measured.judge(measured.read("examples/measurements.csv")), folder / "verdict.html"
        ... ).name
        'verdict.html'
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".html", ".pdf"):
        raise ValueError(f"page must end in .html or .pdf, but it is {str(path)!r}")
    content = render(finding).encode() if kind == ".html" else _pdf(finding)
    store.write(target, content)
    return target


def render(finding: Found) -> str:
    """The page as HTML."""
    page = _html.templates("whorl.measured").get_template("certify.html.j2")
    return page.render(policy=POLICY, made=_made(finding), **_filled(finding))


def fragment(finding: Found) -> str:
    """Words, table and pictures, for a cell of a notebook."""
    part = _html.templates("whorl.measured").get_template("finding.html.j2")
    return part.render(**_filled(finding))


def _filled(finding: Found) -> dict[str, Any]:
    """What the templates say and show."""
    said, source = finding.said, Path(finding.source).name if finding.source else "arrays"
    pictures = [
        (title, caption, _drawing(number, title, shape, draw))
        for number, (title, caption, shape, draw) in enumerate(_panels(finding))
    ]
    shown = {"source": source, "colour": finding.verdict.colour, "pictures": pictures}
    return {**vars(said), **shown, "method": _method(finding)}


def _method(finding: Found) -> str:
    return FOOT_SERIES if isinstance(finding, History) else FOOT


def _made(finding: Found) -> str:
    """Version, date, and which file it was."""
    today = datetime.now(UTC).date().isoformat()
    file = Path(finding.source) if finding.source else None
    whole = file is not None and file.is_file()
    digest = sha256(file.read_bytes()).hexdigest() if whole and file is not None else ""
    of = f", from a file with the SHA-256 {digest}" if digest else ""
    return f"Made by whorl {_version.installed()} on {today}{of}."


def _panels(finding: Found) -> list[Panel]:
    """Name, caption, rows and columns of axes, and how to draw, for every picture."""
    if isinstance(finding, History):
        return [one for phase in finding.phases[:PHASES] for one in _phase(finding, phase)]
    loop, samples, outputs = finding.leading, finding.samples, finding.outputs
    panels: list[Panel] = [
        (
            "The data",
            (
                "Every measured velocity over what was applied to the same output, one mark per"
                " output."
            ),
            (1, 1),
            lambda axes: figures.raw(axes, loop, samples, outputs),
        ),
        (
            "The path of a residual",
            f"A residual {SPIRAL}",
            (1, 1),
            lambda axes: figures.spiral(axes, loop.fit, loop.intervals),
        ),
        (
            "The loop in two parts",
            PARTS,
            (1, 2),
            lambda pair: figures.parts(
                pair, loop.fit, figures.lift(samples, outputs) @ loop.fit.basis
            ),
        ),
        (
            "Eigenvalues",
            EIGENVALUES,
            (1, 1),
            lambda axes: figures.eigenvalues(axes, loop.intervals, finding.time_unit),
        ),
        (
            "Residuals of the fit",
            "Drift or a pattern here contradicts one linear loop.",
            (1, 1),
            lambda axes: figures.leftovers(axes, loop, samples, outputs),
        ),
    ]
    return panels if loop.fit.rank > 1 else [panels[0], *panels[2:]]


def _phase(found: History, phase: history.Phase) -> list[Panel]:
    """The same pictures of one phase of series."""
    course, unit = phase.course, found.time_unit
    named = f"{phase.called}: " if phase.called else ""
    panels: list[Panel] = [
        (
            f"{named}the data" if named else "The data",
            "Every sample; dashed lines are the operating point.",
            (1, 1),
            lambda axes: figures.states(axes, course, unit),
        ),
        (
            f"{named}the path of an error" if named else "The path of an error",
            f"An error {SPIRAL}",
            (1, 1),
            lambda axes: figures.spiral(axes, course, phase.intervals, "error"),
        ),
        (
            f"{named}the loop in two parts" if named else "The loop in two parts",
            PARTS,
            (1, 2),
            lambda pair: figures.parts(pair, course, course.span.basis, "state"),
        ),
        (
            f"{named}eigenvalues" if named else "Eigenvalues",
            EIGENVALUES,
            (1, 1),
            lambda axes: figures.eigenvalues(axes, phase.intervals, unit),
        ),
        (
            f"{named}residuals of the fit" if named else "Residuals of the fit",
            "Drift or a pattern here contradicts one linear loop.",
            (1, 1),
            lambda axes: figures.unforeseen(axes, course),
        ),
    ]
    return panels if course.rank > 1 else [panels[0], panels[-1]]


def _drawing(number: int, title: str, shape: tuple[int, int], draw: Callable[[Any], None]) -> str:
    """A picture as SVG that takes its ink from the page."""
    from matplotlib.figure import Figure

    with fixed({**_ink(), "svg.hashsalt": f"whorl-{number}"}):
        figure = Figure(figsize=(5.2, 3.9 if shape == (1, 1) else 3.1), layout="constrained")
        draw(figure.subplots(*shape))
        text = io.StringIO()
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    drawing = text.getvalue()
    drawing = drawing[drawing.index("<svg") :].replace(figures.INK, "currentColor")
    # Identifiers of two drawings on one page must not meet.
    drawing = (
        drawing.replace('id="', f'id="p{number}-')
        .replace('href="#', f'href="#p{number}-')
        .replace("url(#", f"url(#p{number}-")
    )
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)


def _pdf(finding: Found) -> bytes:
    """Words on the first page, pictures with their captions on the next ones, four on each."""
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    about = {"CreationDate": None, "Title": finding.said.headline}
    content = io.BytesIO()
    with (
        fixed({**_ink(), "font.size": 8}),
        PdfPages(content, metadata=about) as pages,
    ):
        sheet = Figure(figsize=PAPER)
        lines = [*str(finding).splitlines(), "", _method(finding), "", _made(finding)]
        text = "\n".join(_wrapped(line) for line in lines)
        look: dict[str, Any] = {"family": "monospace", "fontsize": 8, "color": figures.INK}
        sheet.text(0.07, 0.955, text, va="top", parse_math=False, **look)
        pages.savefig(sheet)
        panels = _panels(finding)
        for first in range(0, len(panels), EACH):
            sheet = Figure(figsize=PAPER, layout="constrained")
            pages.savefig(_sheet(sheet, panels[first : first + EACH]))
    return content.getvalue()


def _sheet(sheet: Any, panels: list[Panel]) -> Any:
    """Up to four pictures, each in a part of the sheet with its title and caption."""
    parts = sheet.subfigures(EACH, 1, hspace=0.04)
    for part, (title, caption, shape, draw) in zip(parts, panels, strict=False):
        part.suptitle(title, fontsize=10, weight="bold", color=figures.INK)
        part.supxlabel(caption, fontsize=8, color=figures.INK)
        draw(part.subplots(*shape))
    return sheet


def _wrapped(line: str) -> str:
    import textwrap

    return (
        textwrap.fill(
            line, 104, subsequent_indent=" " * 13, drop_whitespace=True, replace_whitespace=False
        )
        if line
        else ""
    )


def _ink() -> dict[Any, Any]:
    inked = (
        "text.color",
        "axes.edgecolor",
        "axes.labelcolor",
        "axes.titlecolor",
        "xtick.color",
        "ytick.color",
    )
    plain = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "font.size": 9,
    }
    return {**dict.fromkeys(inked, figures.INK), **plain, "axes.titlesize": 9}
