"""What the commands share.

How they add themselves, how they refuse, and how they speak to machines.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any


def version() -> str:
    """The version of the installed package."""
    from importlib import (
        metadata,
    )  # only here: it takes longer to load than all else that --help needs

    return f"whorl {metadata.version('whorl')}"


def command(
    commands: Any, name: str, call: Callable[[argparse.Namespace], int], summary: str, story: str
) -> argparse.ArgumentParser:
    """A parser for one command, with the option that all of them have."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(
        name, help=summary, description=story, formatter_class=shape, allow_abbrev=False
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object, for machines, instead of text"
    )
    parser.set_defaults(call=call, command=name)
    return parser


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
