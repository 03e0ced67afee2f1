"""The kinds of study that are installed, for help texts and choices, without importing JAX."""

import runpy
from importlib.util import find_spec
from pathlib import Path


def names() -> tuple[str, ...]:
    """Their names: the paper's in its order, then the others."""
    whorl = find_spec("whorl")
    assert whorl is not None
    assert whorl.origin is not None
    listed = Path(whorl.origin).with_name("study") / "kinds" / "listed.py"
    return runpy.run_path(str(listed))["names"]()
