"""Child processes: this interpreter again, and never a module from the folder that it happens to be started in."""

import sys


def python_command(*arguments: str) -> list[str]:
    """The command that starts this interpreter with a safe path: neither `-c` nor `-m` puts the current folder on it."""
    return [sys.executable, "-P", *arguments]
