"""The documentation.

Sphinx with MyST, built by `make docs` without a network and with warnings as errors.
"""

import logging
import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
# Most of a build is compilation by JAX, which is kept for the next one.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE / "_build" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
for chatty in (
    "fontTools",
    "jax",
):  # these tell of every glyph, and of every device that is not there
    logging.getLogger(chatty).setLevel(logging.WARNING)
sys.path.insert(0, str(HERE / "_ext"))

project = "whorl"
author = "The whorl developers"
copyright = "2026, the whorl developers"  # noqa: A001  (Sphinx wants this name)
release = version = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"][
    "version"
]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "pages",
    "names",
    "accessible",
]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = True
# Types of other packages, whose pages would have to be fetched to be linked to, and types in
# signatures that the reference does not list.
nitpick_ignore_regex = [("py:.*", r"(?!whorl\.).*"), ("py:class", r"whorl\.([a-z_]+\.)+_?[A-Z]\w*")]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_dmath_double_inline = True
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_attr_annotations = False  # shapes such as "*updates" are no markup
add_module_names = True

html_theme = "furo"
html_title = f"whorl {release}"
html_static_path = ["_static"]
html_css_files = ["whorl.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5a8a", "color-brand-content": "#0b5a8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f0", "color-brand-content": "#7cc4f0"},
}
