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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PREFIX = "whorl_audit: "  # of a sentence with which the auditor refuses


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


def audit(folder: Path, *, write: bool = True, sealed: bool = True) -> dict[str, Any]:
    """What the independent auditor says of the folder, in a process of its own that cannot see this
    one, nor run what the folder holds.

    Raises:
        ValueError: If it refuses the folder, or does not come to its end.
    """
    import json
    import subprocess  # nosec B404 # starts this interpreter only

    options = [*([] if write else ["--no-write"]), *([] if sealed else ["--unsealed"])]
    command = python_command("-m", "whorl_audit", "--json", *options, "--", str(folder))
    # No shell, and a path as one argument.
    answer = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)  # nosec B603
    if answer.returncode in (0, 1):
        with suppress(ValueError):
            return json.loads(answer.stdout)
    last = (answer.stderr.strip().splitlines() or [""])[-1]
    if last.startswith(PREFIX):
        raise ValueError(last.removeprefix(PREFIX))
    raise ValueError(
        f"the audit of {folder} must come to its end, but it ended with code {answer.returncode}: "
        f"{last[:200] or 'no word'}"
    )
