"""What the commands share.

How they add themselves, how they refuse, and how they speak to machines.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMPILES = ("reproduce", "run", "replicate", "certify", "regress", "sweep", "explore")


def version() -> str:
    """The version of the installed package."""
    from importlib import (
        metadata,
    )  # only here: it takes longer to load than all else that --help needs

    try:
        return f"whorl {metadata.version('whorl-lab')}"
    except metadata.PackageNotFoundError:  # a checkout that was installed under the old name
        return f"whorl {metadata.version('whorl')}"


def command(
    commands: Any, name: str, call: Callable[[argparse.Namespace], int], summary: str, story: str
) -> argparse.ArgumentParser:
    """A parser for one command, with the options that all of them have, or all that compile."""
    parser = commands.add_parser(name, help=summary, description=story)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object, for machines, instead of text"
    )
    if name in COMPILES:
        parser.add_argument(
            "--no-cache",
            dest="cached",
            action="store_false",
            help="compile everything again and keep nothing (see whorl cache)",
        )
    parser.set_defaults(call=call, command=name)
    return parser


def import_matplotlib() -> None:
    """Import matplotlib without the `matplotlibrc` of the current folder, which could end it.

    matplotlib reads the first file of that name that it finds as it is imported: here, its own.
    """
    from contextlib import chdir
    from importlib.util import find_spec

    found = find_spec("matplotlib")
    foreign = Path("matplotlibrc").exists() or "MATPLOTLIBRC" in os.environ
    if found is not None and found.submodule_search_locations and foreign:
        with chdir(Path(found.submodule_search_locations[0], "mpl-data")):
            import matplotlib  # noqa: F401


SLOW = ("reproduce", "run", "replicate", "sweep", "explore", "verify")  # they import JAX


def soon(given: argparse.Namespace) -> None:
    """A word at once, where the first thing to see would be seconds away."""
    if getattr(given, "command", "") in SLOW and not given.json and sys.stderr.isatty():
        print(f"whorl {given.command}: starting", file=sys.stderr, flush=True)  # noqa: T201


def refuse(why: Any, given: argparse.Namespace) -> None:
    """One sentence on the error stream; as JSON where that was asked for."""
    sentence = plain(" ".join(spoken(why).split()))
    asked = getattr(given, "json", False)
    print(json.dumps({"error": sentence}) if asked else f"whorl: {sentence}", file=sys.stderr)  # noqa: T201


def spoken(why: Any) -> str:
    """A refusal of the operating system as a sentence that names the file; any other as it is."""
    if isinstance(why, OSError) and why.strerror:
        return f"{why.filename}: {why.strerror.lower()}" if why.filename else why.strerror.lower()
    return str(why)


def first_line(wrong: BaseException) -> str:
    """What an error says, cut to what fits into a sentence."""
    return next(iter(str(wrong).splitlines()), "")[:200]


def size(text: str) -> int:
    """Bytes, from a number with or without a unit."""
    units = {
        "": 1,
        "B": 1,
        "KB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "TB": 10**12,
        "KIB": 2**10,
        "MIB": 2**20,
        "GIB": 2**30,
        "TIB": 2**40,
    }
    digits = text.strip().rstrip("BKMGTIbkmgti ")
    try:
        found = float(digits) * units[text.strip()[len(digits) :].strip().upper()]
    except (ValueError, KeyError):
        found = 0.0
    if not 0 < found < 2**63:
        raise argparse.ArgumentTypeError(f"it must be a size such as 2GB, but it is {text!r}")
    return int(found)


def check_page(page: str | None, *endings: str) -> None:
    """Refuse a page that could not be written, before anything is computed for it."""
    if page is None:
        return
    if Path(page).suffix.lower() not in endings:
        raise ValueError(f"--page must end in {' or '.join(endings)}, but it is {page!r}")
    if not Path(page).parent.is_dir():
        raise ValueError(
            f"--page must name a file in a folder that exists, but {Path(page).parent} does not"
        )


def say(value: dict[str, Any]) -> None:
    """Print an object for machines."""
    print(json.dumps(value, indent=2, allow_nan=False))  # noqa: T201


def line(*lines: str) -> None:
    """Print lines for people."""
    for one in lines:
        print(plain(one, keep="\n"))  # noqa: T201


def plain(text: str, keep: str = "") -> str:
    """Text that may come from somebody's file.

    What would speak to a terminal, or break a line, is shown as its code.
    """
    return "".join(
        letter if letter.isprintable() or letter in keep else repr(letter)[1:-1] for letter in text
    )
