r"""Mathematics as MathML, made when the pages are built.

Browsers draw it by themselves, and no script or font has to be fetched.

`\tag{7}` gives an equation the number that the paper gives it.

Browsers know no variants of letters but characters: a calligraphic Q has to be U+1D4AC, or it is
the covariance Q. A transpose is U+22A4, which is no letter at all. Few machines have a font with
these, so two small ones go with the pages: script letters, cut from matplotlib's STIX, and all
other characters with the measures of formulas (how large a sum is, how far its limits lie below
it), cut from the STIX Two Math of ziamath. Chromium has no measures of its own.
"""

import importlib.util
import itertools
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
FONTS = {"whorl-script.ttf": "STIXGeneral.ttf", "whorl-math.ttf": "STIXTwoMath-Regular.ttf"}
# Letters of formulas are written plainly, and browsers put italic ones in their places.
LETTERS = [(0x20, 0x7F), (0x391, 0x3CA), (0x3D1, 0x3D7), (0x1D434, 0x1D468), (0x1D6E2, 0x1D71C)]
PLAIN = "".join(chr(code) for first, end in LETTERS for code in range(first, end))
SIGNS = "ℎℓı¯±·×˙…′→∂∇∏∑−√∝∞∫∮≈≠≤≥⋆⟨⟩‖" + TRANSPOSE
# The bars of a norm, one that opens and one that closes in turn. Without a form, a browser lets the
# first grow alone and puts the space of a relation around both; those of `\left` have theirs.
BAR = re.compile(r"<mo(?: fence=\"false\")?(?: stretchy=\"false\")?>(&#x02016;|&#x0007C;)</mo>")
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
    for letter in ("<mi>&#x1D5B3;</mi>", '<mi mathvariant="sans-serif">T</mi>'):
        markup = markup.replace(letter, f"<mo>{TRANSPOSE}</mo>")
    forms = itertools.cycle(("prefix", "postfix"))
    markup = BAR.sub(lambda bar: f'<mo stretchy="false" form="{next(forms)}">{bar[1]}</mo>', markup)
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


def fonts(app: Sphinx, wrong: Exception | None) -> None:
    """Write the small fonts beside the pages."""
    if wrong is not None or app.builder.format != "html":
        return
    import matplotlib
    from fontTools import subset
    from fontTools.ttLib import TTFont

    here = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    found = importlib.util.find_spec("ziamath")
    there = Path(found.origin or "").parent / "fonts" if found else here
    script = "".join([*SCRIPT.values(), *BOLD.values()])
    for (name, whole), text in zip(FONTS.items(), (script, PLAIN + SIGNS), strict=True):
        place = next((one / whole for one in (here, there) if (one / whole).is_file()), None)
        if place is None:
            continue  # without ziamath, the reader's own fonts have to do
        options = subset.Options(layout_features=["*"], hinting=False)
        options.drop_tables += ["FFTM"]
        cut = subset.Subsetter(options)
        cut.populate(text=text)
        with TTFont(place) as letters:
            cut.subset(letters)
            letters.save(Path(app.outdir) / "_static" / name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", fonts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
