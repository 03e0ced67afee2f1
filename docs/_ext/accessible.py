"""What the theme leaves to be done for those who use a keyboard or a screen reader.

Axe finds it, and a test runs axe.
"""

import re
from typing import Any

from sphinx.application import Sphinx

SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.S)
# The lines of a long signature come as a list of definitions without terms.
LINES = {
    "<dl>": '<span class="sig-lines">',
    "</dl>": "</span>",
    "<dd>": '<span class="sig-line">',
    "</dd>": "</span>",
}


def mended(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give headings of the contents a level, let wide sessions and tables be scrolled by keyboard,
    and write signatures as lines.
    """
    body = (
        context.get("body", "")
        .replace("<pre>", '<pre tabindex="0">')
        .replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    )
    context["body"] = SIGNATURE.sub(
        lambda found: re.sub(r"</?d[ld]>", lambda tag: LINES[tag.group()], found.group()), body
    )
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
            'role="heading"', 'role="heading" aria-level="2"'
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("html-page-context", mended, priority=900)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
