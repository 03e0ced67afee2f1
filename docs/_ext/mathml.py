r"""Mathematics as MathML, made when the pages are built.

Browsers draw it by themselves, and no script or font has to be fetched.

`\tag{7}` gives an equation the number that the paper gives it.
"""

import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

TAG = re.compile(r"\\tag\{([^}]*)\}")


def rendered(source: str, display: str) -> str:
    """MathML of a piece of LaTeX.

    A command that the converter does not know is an error, and not printed as it is.
    """
    markup = convert(source, display=display)
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


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
