"""The kinds of study that are installed, for help texts and choices, without importing JAX."""

import runpy
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def names() -> tuple[str, ...]:
    """Their names: the paper's in its order, then the others."""
    return _listed()["names"]()


def titles() -> dict[str, str]:
    """Each name with the title of its shipped design, or with itself where there is none."""
    listed = _listed()
    files = {name: folder / "design.toml" for name, folder in listed["folders"]().items()}
    return {
        name: tomllib.loads(files[name].read_text(encoding="utf-8"))["title"]
        if name in files and files[name].is_file()
        else name
        for name in listed["names"]()
    }


def _listed() -> dict[str, Any]:
    whorl = find_spec("whorl")
    assert whorl is not None
    assert whorl.origin is not None
    return runpy.run_path(str(Path(whorl.origin).with_name("study") / "kinds" / "listed.py"))
