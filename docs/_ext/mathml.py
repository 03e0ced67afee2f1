r"""Mathematics as MathML, made when the pages are built.

Browsers draw it by themselves, and no script or font has to be fetched.

`\tag{7}` gives an equation the number that the paper gives it.

Browsers know no variants of letters but characters: a calligraphic Q has to be U+1D4AC, or it is
the covariance Q. A transpose is U+22A4, which is no letter at all. Few machines have a font with
these, so a small one with nothing else, cut from matplotlib's STIX, goes with the pages.
"""

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# Script capitals that were there before their block was made.
EARLY = dict(zip("BEFHILMR", "\u212c\u2130\u2131\u210b\u2110\u2112\u2133\u211b", strict=True))
SCRIPT = {
    letter: EARLY.get(letter, chr(0x1D49C + number))
    for number, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
BOLD = {str(digit): chr(0x1D7CE + digit) for digit in range(10)}
TRANSPOSE = "\u22a4"
FONT = "whorl-script.ttf"
TAG = re.compile(r"\\tag\{([^}]*)\}")


def rendered(source: str, display: str) -> str:
    """MathML of a piece of LaTeX.

    A command that the converter does not know is an error, and not printed as it is.
    """
    markup = convert(source, display=display)
    markup = re.sub(
        r'<mi mathvariant="script">([A-Z])</mi>', lambda one: f"<mi>{SCRIPT[one[1]]}</mi>", markup
    )
    markup = re.sub(
        r'<mn mathvariant="bold">(\d)</mn>', lambda one: f"<mn>{BOLD[one[1]]}</mn>", markup
    )
    markup = markup.replace("<mi>&#x1D5B3;</mi>", f"<mo>{TRANSPOSE}</mo>")
    if unknown := re.search(r"<m[a-z]+>\\[A-Za-z]+", markup):
        raise ExtensionError(f"no MathML for {unknown.group()} in {source!r}")
    return markup


def inline(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(rendered(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """A formula of its own, with its number at the end of the line."""
    source = node.astext()
    number = TAG.search(source)
    self.body.append(
        self.starttag(
            node, "div", CLASS="math", TABINDEX="0", ROLE="group", **{"ARIA-LABEL": "equation"}
        )
    )
    self.body.append(rendered(TAG.sub("", source), "block"))
    if number:
        self.body.append(f'<span class="eqno">({escape(number[1])})</span>')
    self.body.append("</div>")
    raise nodes.SkipNode


def font(app: Sphinx, wrong: Exception | None) -> None:
    """Write the small font beside the pages."""
    if wrong is not None or app.builder.format != "html":
        return
    import matplotlib
    from fontTools import subset
    from fontTools.ttLib import TTFont

    whole = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "STIXGeneral.ttf"
    cut = subset.Subsetter()
    cut.populate(text="".join([*SCRIPT.values(), *BOLD.values(), TRANSPOSE]))
    with TTFont(whole) as letters:
        cut.subset(letters)
        letters.save(Path(app.outdir) / "_static" / FONT)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
