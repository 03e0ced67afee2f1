"""Where a run was made: versions, machine and sources, as far as they bear on its numbers."""

import os
import platform
import sys
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from whorl import _version
from whorl.study.design import Design
from whorl.study.lock import lock

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "pyarrow")
# with these versions figures and page can be made again, byte by byte
DRAWING = ("jinja2", "matplotlib", "mpltern", "plotly")
# what a resumed run must share with the interrupted one
BEARING = ("whorl", "sources", "designs", "quick", "packages", "device")


def describe(designs: list[Design], quick: bool) -> dict[str, Any]:
    """Everything about this run that is not in its designs."""
    import jax

    digest = sha256(
        "".join(one for design in designs for one in lock(design)["sources"].values()).encode()
    ).hexdigest()
    return {
        "whorl": _version.installed(),
        "sources": digest,
        "designs": {design.name: design.sha256 for design in designs},
        "quick": quick,
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "drawing": drawing(),
        "device": str(jax.devices()[0].device_kind),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def drawing() -> dict[str, str]:
    """The versions on which figures and page depend, and no number does."""
    return {name: metadata.version(name) for name in DRAWING}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """In words, what two environments do not share and would have to."""
    words = []
    for key in BEARING:
        if one.get(key) != other.get(key):
            short = (str(side.get(key))[:60] for side in (one, other))
            words.append(f"{key} ({' then, '.join(short)} now)")
    return words


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()
