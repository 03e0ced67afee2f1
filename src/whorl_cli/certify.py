"""`whorl certify`: is this measured learner reciprocal?"""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _output

STORY = """Is this measured learner reciprocal, or does it turn?

FILE is CSV (any separator, decimal commas, units in headers, # comments), Parquet, JSON lines or a NumPy archive. In wide form a line is one measurement:
  residual_1 residual_2 residual_3 velocity_1 velocity_2 velocity_3
In long form a line is one output of one measurement:
  measurement output residual velocity
A series has a line per sample, with the time and the outputs or learning degrees of freedom:
  time state_1 state_2 (and run, phase where there are several)
Optional columns of measurements: sample, repeat, uncertainty, residual_uncertainty. A column
potential_1 ... in place of residual_1 ... tests the physical response; with both, the test tells
the device from its controller. docs/certify.md has the details."""
EXIT = """exit codes:
  0  a verdict was reached, whatever it says
  2  bad input, a file that could not be read or written, or too little memory
  70  a fault of whorl itself: please report it
  130  interrupted by Ctrl-C
With --exit-code, the code tells the verdict:
  0  "reciprocal" is not rejected, with power (or there is one direction, and nothing can turn)
  1  it turns
  3  a gradient in another metric: it is not reciprocal, and it surely does not turn
  4  no answer: borderline, inconclusive or cannot tell; the verdict says what would decide"""


def add(commands: Any) -> None:
    """Put the command's arguments on the parser."""
    parser = _output.command(
        commands, "certify", call, "is this measured learner reciprocal?", STORY
    )
    parser.epilog = EXIT
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="measurements: CSV, Parquet, JSON lines or .npz; - reads standard input",
    )
    parser.add_argument(
        "--rename",
        type=_renamed,
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="take the column OLD for NEW, such as err1=residual_1; may be given several times",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse rows with empty cells instead of counting them",
    )

    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="tell the verdict by the exit code (see below) instead of 0, for scripts",
    )
    parser.add_argument(
        "--page", metavar="PAGE", help="also write one page with pictures, .html or .pdf"
    )
    parser.add_argument(
        "--time-scale",
        type=float,
        default=1.0,
        metavar="T",
        help="velocities are divided by this (default 1)",
    )
    parser.add_argument(
        "--time-unit",
        default="unit time",
        metavar="NAME",
        help="name of the unit of time, for words, such as s",
    )
    parser.add_argument(
        "--alpha", type=float, default=0.05, help="accepted chance of a false alarm (default 0.05)"
    )
    parser.add_argument(
        "--skew",
        type=float,
        default=0.1,
        help="say how many repeats would show a skew part of this share (default 0.1)",
    )
    parser.add_argument(
        "--tol",
        type=float,
        default=1e-4,
        help="directions excited less than this are left out (default 1e-4)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random signs (default 0)")
    parser.add_argument(
        "--template",
        nargs="?",
        const="measurements.csv",
        metavar="NEW",
        help="write a table to fill in, and stop",
    )
    parser.add_argument(
        "--repeats", type=int, default=12, help="repeats of the template (default 12)"
    )
    parser.add_argument(
        "--outputs", type=int, default=3, help="outputs of the template (default 3)"
    )


def _renamed(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"it must be OLD=NEW, but it is {text!r}")
    return old, new


def call(args: argparse.Namespace) -> int:
    """Judge a table, or write an empty one."""
    if args.template is not None:
        return _template(args)
    if args.file is None:
        raise ValueError(
            "FILE must be given, or --template to write one to fill in, but both are missing"
        )
    _output.check_page(args.page, ".html", ".pdf")
    from whorl import measured
    from whorl.fields import SEED
    from whorl.ground.tables import Table
    from whorl.measured.history import is_series
    from whorl.measured.layout import called

    SEED.check(args.seed, "--seed")
    renamed = dict(args.rename)
    if is_series(Table(args.file, renamed, called=called).names):
        return _series(args)
    measurements = measured.read(
        args.file, time_scale=args.time_scale, rename=renamed, strict=args.strict
    )
    finding = measured.judge(
        measurements,
        alpha=args.alpha,
        skew=args.skew,
        tol=args.tol,
        time_unit=args.time_unit.strip() or "unit time",
        seed=args.seed,
    )
    return _told(args, finding)


def _series(args: argparse.Namespace) -> int:
    from whorl import measured

    unit = args.time_unit.strip()
    named = None if unit in ("", "unit time") else unit
    found = measured.read_series(
        args.file,
        alpha=args.alpha,
        skew=args.skew,
        time_unit=named,
        rename=dict(args.rename),
        strict=args.strict,
    )
    return _told(args, found)


def _told(args: argparse.Namespace, found: Any) -> int:
    """Words or numbers of what was found, its page, and its exit code.

    A page that cannot be written loses no words.
    """
    from whorl import measured

    if not args.json:
        _output.line(str(found))
    if args.page is not None:
        _output.import_matplotlib()
        measured.write(found, args.page)
    if args.json:
        _output.say({**found.to_dict(), "page": args.page})
    elif args.page is not None:
        _output.line(f"\nThe pictures are in {args.page}.")
    return found.verdict.code if args.exit_code else 0


def _template(args: argparse.Namespace) -> int:
    from whorl import measured

    target = Path(args.template)
    if target.suffix.lower() != ".csv":
        raise ValueError(
            f"--template must name a file that ends in .csv, but it is {args.template!r}"
        )
    if target.exists():
        raise ValueError(f"--template must name a new file, but {args.template} exists")
    measured.write_template(target, args.outputs, repeats=args.repeats)
    if args.json:
        _output.say({"template": args.template, "outputs": args.outputs})
    else:
        _output.line(
            f"Fill in the velocities in {args.template}, then: whorl certify {args.template}"
        )
    return 0
