"""`whorl cache`: compiled programs that are kept from one command to the next."""

import argparse
from typing import Any

from whorl_cli import _kept, _output

STORY = """Say where compiled programs are kept, how many they are and how large, or remove them.

Commands keep what they compile in the user's cache folder, so that the next command starts sooner.
The option --no-cache or WHORL_CACHE=off in the environment prevents this; WHORL_CACHE=DIR keeps
programs elsewhere. A damaged program is dropped and compiled again. Results do not depend on any of this."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "cache", call, "compiled programs that are kept", STORY)
    parser.add_argument("--clear", action="store_true", help="remove all of them")


def call(given: argparse.Namespace) -> int:
    """Show, or clear."""
    folder = _kept.parent()
    found = [] if folder is None else _kept.entries(folder)
    size = sum(path.stat().st_size for path in found)
    if given.clear:
        for path in found:
            path.unlink(missing_ok=True)
    if given.json:
        shown = None if folder is None else str(folder)
        _output.say(
            {"folder": shown, "programs": len(found), "bytes": size, "cleared": given.clear}
        )
    elif folder is None:
        _output.line(f"no programs are kept: {_kept.VARIABLE} is off")
    else:
        _output.line(
            f"{'removed ' if given.clear else ''}{len(found)} programs, {size / 1e6:.1f} MB, "
            f"{'from' if given.clear else 'in'} {folder}"
        )
    return 0
