"""The kinds of study that are installed, for help texts and choices, without importing JAX."""

import runpy
import tomllib
from importlib.util import find_spec
from pathlib import Path


def names() -> tuple[str, ...]:
    """Their names: the paper's in its order, then the others."""
    return runpy.run_path(str(_folder() / "listed.py"))["names"]()


def titles() -> dict[str, str]:
    """Each name with the title of its shipped design; a kind of another package has its name."""
    designs = {name: _folder() / name / "design.toml" for name in names()}
    return {
        name: tomllib.loads(file.read_text(encoding="utf-8"))["title"] if file.exists() else name
        for name, file in designs.items()
    }


def _folder() -> Path:
    whorl = find_spec("whorl")
    assert whorl is not None
    assert whorl.origin is not None
    return Path(whorl.origin).with_name("study") / "kinds"
