"""Pages are run when they are read.

A page that does not do what it shows fails the build, and its pictures come from its own code.
"""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

import session

LOGGER = logging.getLogger(__name__)
PICTURE = re.compile(r"\]\(([\w-]+\.(?:svg|png))\)")
# Pages of the repository that the site shows under another name; links to them work in both places.
OUTSIDE = {
    "CONTRIBUTING.md": "/design/contributing.md",
    "CHANGELOG.md": "/about/changelog.md",
    "SECURITY.md": "/about/security.md",
    "benchmarks/README.md": "/about/benchmarks.md",
    "benchmarks/mutants.md": "/about/mutants.md",
    "examples/slurm/README.md": "/howto/slurm.md",
}
LINK = re.compile(rf"\]\((?:\.\./)+({'|'.join(map(re.escape, OUTSIDE))})")
FOOT = "\n\n---\n\nEverything on this page was run when it was built. [Take it home as a notebook](/_build/notebooks/{name}.ipynb).\n"


def run(app: Sphinx, docname: str, source: list[str]) -> None:
    """Run a page, keep its pictures, and offer it as a notebook."""
    text = source[0] = LINK.sub(lambda link: f"]({OUTSIDE[link[1]]}", source[0])
    if all(kind == "text" for kind, _ in session.blocks(text)):
        return
    kept = Path(app.srcdir) / "_build" / "pictures" / docname
    with tempfile.TemporaryDirectory() as folder:
        outcome = session.run(text, Path(folder), docname)
        for complaint in outcome.complaints:
            LOGGER.warning("the page does not do what it shows:\n%s", complaint, location=docname)
        for name in PICTURE.findall(text):
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(folder) / name, kept)
    source[0] = PICTURE.sub(rf"](/_build/pictures/{docname}/\1)", text)
    if docname.startswith("tutorials/") or docname == "certify":
        place = Path(app.srcdir) / "_build" / "notebooks" / f"{docname}.ipynb"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(session.notebook(text))
        source[0] += FOOT.format(name=docname)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", run)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
