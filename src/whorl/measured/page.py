"""The verdict as one page: HTML that needs no network, or PDF."""

import html
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from whorl.ground import store
from whorl.measured import figures, words
from whorl.measured.finding import Finding

# The page asks nothing of any network and runs nothing, whatever name from a table should ever find
# its way into it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5d6670; --paper: #fbfaf7; --card: #ffffff; --line: #d9d6ce; --accent: #c4621a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e4df; --soft: #a3a9b0; --paper: #16181b; --card: #1e2125; --line: #363b41; --accent: #f0985a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; text-wrap: balance; }
.source { color: var(--soft); margin: 0 0 .25rem; overflow-wrap: anywhere; }
.reason { font-size: 1.05rem; margin: 0 0 1.5rem; }
table { border-collapse: collapse; width: 100%; margin-bottom: 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; }
.notes { border-left: 4px solid var(--accent); padding: .25rem 0 .25rem 1rem; margin: 0 0 1.5rem; }
.notes p { margin: .25rem 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; color: var(--ink); }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .5rem; }
footer { color: var(--soft); font-size: .9rem; margin-top: 2rem; }
@media print { body { background: none; } figure { break-inside: avoid; } }
"""
FOOT = (
    "Method: weighted least squares on the zero-sum directions, with an offset; that the loop is "
    "symmetric is tested with random signs of independent units, that its eigenvalues are real by "
    "the distance of their discriminants from zero; intervals are for 95 of 100 experiments. It "
    "assumes that what was applied is known and that the loop did not change meanwhile."
)


def write(finding: Finding, path: str | Path) -> Path:
    """Write the page, HTML or PDF by the ending of `path`.

    It is there in the end, whole, or not at all.

    Args:
        finding: What `certify` or `judge` found.
        path: The file, which ends in .html or .pdf.

    Returns:
        Where the page is.

    Examples:
        >>> from whorl import measured
        >>> measured.write(measured.judge(measured.read("examples/measurements.csv")), folder / "verdict.html").name
        'verdict.html'
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".html", ".pdf"):
        raise ValueError(f"page must end in .html or .pdf, but it is {str(path)!r}")
    content = render(finding).encode() if kind == ".html" else _pdf(finding)
    store.write(target, content)
    return target


def render(finding: Finding) -> str:
    """The page as HTML."""
    title = _safe(words.headline(finding))
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
        "content='width=device-width, initial-scale=1'>"
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="referrer" '
        'content="no-referrer">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n"
        f"<body><main>{fragment(finding)}</main></body></html>\n"
    )


def fragment(finding: Finding) -> str:
    """Words, table and pictures, for a page or for a cell of a notebook."""
    loop = finding.leading
    rows = "".join(
        f"<tr><th scope='row'>{_safe(name)}</th><td>{_safe(text)}</td></tr>"
        for name, text in words.details(finding, loop)
    )
    notes = "".join(f"<p>{_safe(text)}</p>" for text in words.notes(finding))
    shown = "".join(_figure(number, *panel) for number, panel in enumerate(_panels(finding)))
    source = Path(finding.source).name if finding.source else "arrays"
    whose = (
        f", sample {loop.sample}, the clearest of {len(finding.loops)}"
        if len(finding.loops) > 1
        else ""
    )
    return (
        f"<p class='source'>{_safe(source + whose)}</p>\n"
        f"<h1 style='border-left:.35em solid {finding.verdict.colour};padding-left:.5em'>"
        f"{_safe(words.headline(finding))}</h1>\n<p "
        f"class='reason'>{_safe(words.reason(finding))}</p>\n<table><tbody>{rows}</tbody></table>\n"
        + (f"<div class='notes' role='note'>{notes}</div>\n" if notes else "")
        + f"<div class='grid'>{shown}</div>\n<footer>{FOOT}</footer>"
    )


def _panels(finding: Finding) -> list[tuple[str, str, tuple[int, int], Callable[[Any], None]]]:
    """Name, caption, rows and columns of axes, and how to draw, for every picture."""
    loop, samples, outputs = finding.leading, finding.samples, finding.outputs
    panels: list[tuple[str, str, tuple[int, int], Callable[[Any], None]]] = [
        (
            "The path of a residual",
            (
                "A residual of size one decays to the cross. The solid line is the fitted loop, thin "
                "lines are replicates."
            ),
            (1, 1),
            lambda axes: figures.spiral(axes, loop),
        ),
        (
            "The loop in two parts",
            (
                "Rows move, columns drive. Orange raises, blue lowers, on one scale; what stands in "
                "the right matrix turns."
            ),
            (1, 2),
            lambda pair: figures.parts(pair, loop, samples, outputs),
        ),
        (
            "Eigenvalues",
            (
                "To the right: faster decay. Off the line: rotation. Ellipses hold 95 of 100 "
                "replicates."
            ),
            (1, 1),
            lambda axes: figures.eigenvalues(axes, loop, finding.time_unit),
        ),
        (
            "What the fit leaves over",
            "Drift or a pattern here means that one linear loop is not the whole story.",
            (1, 1),
            lambda axes: figures.leftovers(axes, loop, samples, outputs),
        ),
    ]
    return panels if loop.fit.rank > 1 else panels[1:]


def _figure(
    number: int, title: str, caption: str, shape: tuple[int, int], draw: Callable[[Any], None]
) -> str:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({**_ink(), "svg.hashsalt": f"whorl-{number}"}):
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
    drawing = drawing.replace("<svg ", f'<svg role="img" aria-label="{_safe(title)}" ', 1)
    return f"<figure>{drawing}<figcaption><strong>{_safe(title)}.</strong> {_safe(caption)}</figcaption></figure>\n"


def _pdf(finding: Finding) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({**_ink(), "font.size": 8}):
        figure = Figure(figsize=(8.27, 11.69))
        text = words.verdict(finding)
        wrapped = "\n".join(_wrapped(line) for line in text.splitlines())
        figure.text(
            0.07,
            0.965,
            wrapped,
            va="top",
            family="monospace",
            fontsize=7,
            color=figures.INK,
            parse_math=False,
        )
        top = 0.95 - 0.0105 * (wrapped.count("\n") + 1)
        grids = figure.add_gridspec(
            2, 2, left=0.1, right=0.96, bottom=0.06, top=max(top, 0.5), hspace=0.3, wspace=0.3
        )
        for place, (title, _, shape, draw) in zip(
            [(0, 0), (0, 1), (1, 0), (1, 1)], _panels(finding), strict=False
        ):
            axes: Any = grids[place].subgridspec(*shape).subplots()
            draw(axes)
            if shape == (1, 1):
                axes.set_title(title, pad=18)
        content = io.BytesIO()
        figure.savefig(
            content, format="pdf", metadata={"CreationDate": None, "Title": words.headline(finding)}
        )
    return content.getvalue()


def _wrapped(line: str) -> str:
    import textwrap

    return (
        textwrap.fill(
            line, 118, subsequent_indent=" " * 13, drop_whitespace=True, replace_whitespace=False
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


def _safe(text: str) -> str:
    return html.escape(text)
