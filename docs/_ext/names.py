"""Names in backticks become links to the reference, on pages and in docstrings, so that both stay
plain Markdown in their files.

Docstrings are written as the rest of the project is: `name` in single backticks, mathematics
between dollars. Sphinx reads them as reStructuredText, so they are translated on the way.
"""

import importlib
import re
from functools import cache
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

# The alias behind annotations such as `inputs: Numbers`, written out as Python shows it.
NUMBERS = re.compile(
    r"~?(?:jaxlib\._jax\.|jax\.)?Array \| ~?[\w.]*ndarray \| [\w.~| "
    r"]*Sequence\[~?(?:typing\.)?Any\]"
)
PIECES = re.compile(
    r"\$\$(?P<display>.+?)\$\$|\$(?P<math>[^$]+)\$|(?<!`)`(?P<code>[^`]+)`(?!`)", re.S
)


def translated(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Inline Markdown of a docstring as reStructuredText; examples are left as they are."""
    # A formula may go over the end of a line, so that prose is translated between examples and not
    # line by line.
    parts = re.split(r"^(\s*(?:>>>|\.\.\.).*)$", "\n".join(lines), flags=re.M)
    lines[:] = "".join(
        part if number % 2 else _inline(part) for number, part in enumerate(parts)
    ).split("\n")


def _inline(text: str) -> str:
    def piece(found: re.Match[str]) -> str:
        if found["display"]:
            return f":math:`{' '.join(found['display'].split())}`"
        if found["math"]:
            return f":math:`{' '.join(found['math'].split())}`"
        return f"``{found['code']}``"

    return PIECES.sub(piece, text)


def shortened(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    answer: str | None,
) -> tuple[Any, Any]:
    """A signature in which what may be handed in as numbers is called that, and an array is called
    an array.
    """
    return tuple(
        part and NUMBERS.sub("Numbers", part).replace("jaxlib._jax.Array", "Array")
        for part in (signature, answer)
    )  # pyright: ignore[reportReturnType]


@cache
def looked_up(name: str) -> Any:
    """The object that a name means inside whorl.

    `curvature`, `wh.curvature`, `simplex.step`, `Response.gram`; None for anything else.
    """
    if not re.fullmatch(r"[A-Za-z_][\w.]*", name):
        return None
    path = re.sub(r"^(whorl|wh)\.", "", name).split(".")
    for root in ("whorl", f"whorl.{path[0]}"):
        try:
            found = importlib.import_module(root)
            for part in path if root == "whorl" else path[1:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        if callable(found):
            return found
    return None


class Links(SphinxPostTransform):
    """Turn literals that name something documented into references to it."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        documented = {
            id(looked_up(name)): name
            for name in self.env.domains["py"].objects
            if looked_up(name) is not None
        }  # pyright: ignore[reportAttributeAccessIssue]
        for literal in list(self.document.findall(nodes.literal)):
            if self._within(
                literal,
                (nodes.reference, addnodes.pending_xref, addnodes.download_reference, nodes.title),
            ):
                continue
            name = literal.astext().removesuffix("()")
            target = documented.get(id(looked_up(name))) if looked_up(name) is not None else None
            if target is None or self._is_own(literal, target):
                continue
            link = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=target,
                refexplicit=True,
                refwarn=True,
                refdoc=self.env.docname,
            )
            literal.replace_self(link)
            link += literal

    @staticmethod
    def _within(node: nodes.Element, kinds: tuple[type, ...]) -> bool:
        """Whether a name stands in a link or a title already."""
        parent = node.parent
        while parent is not None:
            if isinstance(parent, kinds):
                return True
            parent = parent.parent
        return False

    @staticmethod
    def _is_own(literal: nodes.Element, target: str) -> bool:
        """Whether a name stands in its own description."""
        parent = literal.parent
        while parent is not None:
            if isinstance(parent, addnodes.desc) and any(
                target in signature.get("ids", ())
                for signature in parent.findall(addnodes.desc_signature)
            ):
                return True
            parent = parent.parent
        return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    # Before napoleon, which reads sections and leaves what is in their lines.
    app.connect("autodoc-process-docstring", translated, priority=100)
    app.connect("autodoc-process-signature", shortened)
    app.add_post_transform(Links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
