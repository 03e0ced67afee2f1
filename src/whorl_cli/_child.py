"""This interpreter once more, without the current folder on its path.

Whoever stands in a stranger's folder runs none of its code.

`python -m` and `python -c` put the current folder first on the path, before the standard library.
`-P` does not, and `PYTHONSAFEPATH` says the same to whatever the child starts. `-I` would also hide
`PYTHONPATH` and the user's own packages, where this package may be installed, so it is not used;
entries of `PYTHONPATH` that depend on the current folder are left out.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def python_command(*arguments: str) -> list[str]:
    """The command line of a child; give it `environment()` too."""
    return [sys.executable, "-P", *arguments]


def environment(**more: str) -> dict[str, str]:
    """The environment of a child and of all that it starts.

    This one's, with a safe path, and `more`.
    """
    kept = [
        path
        for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if Path(path).is_absolute()
    ]
    return os.environ | {"PYTHONPATH": os.pathsep.join(kept), "PYTHONSAFEPATH": "1"} | more


@contextmanager
def safe() -> Iterator[None]:
    """Whatever is started meanwhile has the environment of a child.

    Afterwards this process has its own again.
    """
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    os.environ.update(environment())
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
