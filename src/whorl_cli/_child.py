"""This interpreter as a child process that imports nothing from the current folder.

`python -m` and `python -c` put the current folder first on the path, before the standard library,
so a file in it would replace a module. `-P` prevents this, and `PYTHONSAFEPATH` does the same for
what the child starts. `-I` would also hide `PYTHONPATH` and the user's own packages, where this
package may be installed, so it is not used. Relative entries of `PYTHONPATH` are left out.
"""

import os
import sys
from contextlib import suppress
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
