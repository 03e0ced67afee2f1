"""The command `whorl`: parsing only.

One file per command, each with the same two members: `add` puts its arguments on the parser, `call`
does the work and answers with an exit code. Heavy packages are imported by `call`, never above it,
so that `--help` answers at once. This is a package beside the library, and not inside it, because
importing anything from `whorl` imports JAX.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

COMMANDS = (
    "reproduce",
    "run",
    "register",
    "verify",
    "report",
    "replicate",
    "certify",
    "regress",
    "sweep",
    "explore",
    "compare",
    "cache",
)
FIRST = """start with one of these:
  whorl explore         an interactive page: change a network, and see what a turn does
  whorl reproduce       the paper's studies next to its numbers, in about a minute on two cores
  whorl certify FILE    does a measured learner follow a gradient?
  whorl run             list the studies that come with whorl
  whorl COMMAND --help  what a command does, with examples
"""
EXIT = """exit codes:
  0  done, and every verdict is the expected one
  1  done, but a verdict differs
  2  bad input, a file that could not be read or written, too little memory or disk
  70  a fault of whorl itself: please report it; WHORL_TRACEBACK=1 in the environment shows where
  130  interrupted by Ctrl-C
  128 + n  ended by signal n (143 for SIGTERM, 129 for SIGHUP)"""
FAULT = 70
# Packages that only some commands need, with the extra of this distribution that brings each.
EXTRAS = {"flask": "explore", "distributed": "sweep", "dask": "sweep", "polars": "sweep"}


def parser() -> "argparse.ArgumentParser":
    """The whole command line."""
    import importlib

    from whorl_cli import _output
    from whorl_cli._parser import Completion, Parser

    top = Parser(
        prog="whorl",
        description=(
            "A laboratory for conservative physical learning: does a flow network follow a"
            " gradient, or does it turn?"
        ),
        epilog=EXIT,
    )
    top.add_argument("--version", action="version", version=_output.version())
    top.add_argument(
        "--completion",
        action=Completion,
        choices=("bash", "zsh", "fish"),
        help='print a script that completes whorl: eval "$(whorl --completion bash)"',
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"whorl_cli.{name}").add(commands)
    return top


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command.

    Refusals are one sentence on the error stream and exit code 2, faults of whorl one sentence and
    70. Without `arguments` this process is the command: it then becomes two (see `_process`).
    """
    from whorl_cli import _output, _process

    divided = arguments is None and _process.listen()
    reader = parser()
    given = reader.parse_args(arguments)
    if not hasattr(given, "call"):
        sys.stderr.write(f"{reader.format_usage()}\n{FIRST}")
        return 2
    _output.soon(given)
    try:
        code = _process.supervise(given) if divided else None
    except OSError as refusal:  # too many processes, or too little memory for another one
        _output.refuse(refusal, given)
        return 2
    return _called(given) if code is None else code


def _called(given: "argparse.Namespace") -> int:
    """Do the work in this process."""
    import signal

    from whorl_cli import _kept, _memory, _output, _process

    try:
        with _kept.programs(getattr(given, "cached", False)):
            _memory.check(given.command)
            code = given.call(given)
        # Flush now, and not when Python ends and an error can no longer be caught. Unlike
        # `sys.stdout.flush`, this also works where the shell closed the stream.
        print(end="", flush=True)  # noqa: T201
        return code
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except (ValueError, OSError) as refusal:
        _output.refuse(refusal, given)
        return 2
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            return _unexpected(missing, given)
        extra = EXTRAS[missing.name]
        _output.refuse(
            f"whorl {given.command} needs {missing.name} here, which is not installed: in the "
            f"folder of whorl's sources, pip install '.[{extra}]' adds it",
            given,
        )
        return 2
    except KeyboardInterrupt as why:
        number = next(iter(why.args), signal.SIGINT)  # the worker's handler names another one
        _output.refuse(_process.sentence(given.command, number), given)
        return 128 + number
    except (
        Exception
    ) as wrong:  # whatever it is, it must not end with a code that means something else
        return _unexpected(wrong, given)


def _unexpected(wrong: Exception, given: "argparse.Namespace") -> int:
    import traceback

    from whorl_cli import _memory, _output

    if os.environ.get("WHORL_TRACEBACK"):
        traceback.print_exception(wrong)
    if _memory.lacking(wrong):
        _output.refuse(
            f"there is too little memory: {_output.first_line(wrong) or 'an allocation failed'}",
            given,
        )
        return 2
    about = f"{type(wrong).__name__}: {_output.first_line(wrong)}".rstrip(": ")
    _output.refuse(
        f"a fault of whorl itself, please report it ({about}); WHORL_TRACEBACK=1 in the "
        "environment shows where",
        given,
    )
    return FAULT
