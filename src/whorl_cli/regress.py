"""`whorl regress`: where did each share go?"""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _output

STORY = """Where did each share go? From two tables of compositions to a transition matrix.

BEFORE and AFTER are tables with one line per unit and one column per part: shares or counts. One
file will do: then --before and --after name its columns. Tables are CSV as programs and Excel write
it (commas, semicolons or tabs, decimal points or commas, # comments), Parquet, JSON lines or NumPy
archives; - is standard input.

Columns of text, and those called id, unit, name, code, key, index or row, name the lines and are no
parts. Where both files have such a column they are joined by it; else lines are in the same order.
docs/tutorials/composition.md has the details."""
EXIT = """exit codes:
  0  done
  2  bad input, a file that could not be read or written, or too little memory
  70  a fault of whorl itself: please report it
  130  interrupted by Ctrl-C"""


def add(commands: Any) -> None:
    """Put the command's arguments on the parser."""
    parser = _output.command(commands, "regress", call, "where did each share go?", STORY)
    parser.epilog = EXIT
    parser.add_argument("first", metavar="BEFORE", help="compositions before: a file, or -")
    parser.add_argument("second", nargs="?", metavar="AFTER", help="compositions after")
    parser.add_argument("--before", metavar="A,B,...", help="columns before (default: all numbers)")
    parser.add_argument("--after", metavar="P,Q,...", help="columns after (default: all numbers)")
    parser.add_argument(
        "--loss", choices=("squared", "kl"), default="kl", help="what is minimised (default kl)"
    )
    parser.add_argument(
        "--counts", action="store_true", help="a line weighs as much as its total after"
    )
    parser.add_argument("--weights", metavar="NAME", help="column of BEFORE with weights of lines")
    parser.add_argument(
        "--id", metavar="NAME", help="column that names the lines (default: text, id, unit, ...)"
    )
    parser.add_argument(
        "--empty",
        choices=("refuse", "drop", "zero"),
        default="refuse",
        help="an empty cell, or a line without partner: refuse, drop the line, or cell = zero",
    )
    parser.add_argument(
        "--repeats", type=int, default=1000, help="bootstrap fits and random orders (default 1000)"
    )
    parser.add_argument("--level", type=float, default=0.95, help="of intervals (default 0.95)")
    parser.add_argument("--seed", type=int, default=0, help="of the resampling (default 0)")
    parser.add_argument("--page", metavar="PAGE", help="also write one page with pictures, .html")


def call(args: argparse.Namespace) -> int:
    """Fit, resample, and say what came of it."""
    _output.check_page(args.page, ".html")
    from whorl import regress
    from whorl.fields import SEED

    SEED.check(args.seed, "--seed")
    before, after, weights = regress.read(
        args.first,
        args.second,
        before=args.before,
        after=args.after,
        weights=args.weights,
        key=args.id,
        empty=args.empty,
    )
    model = regress.FlowRegressor(loss=args.loss, counts=args.counts)
    given = {"sample_weight": weights, "repeats": args.repeats, "seed": args.seed}
    regress.bootstrap(model, before, after, level=args.level, **given)
    test = regress.permutation(model, before, after, **given)
    model.notes_ = [*before.remarks, *model.notes_]
    if not args.json:  # first: a page that cannot be written loses no words
        _output.line(model.summary(), f"permutation test of no effect: p = {test.p:.3g}")
    if args.page is not None:
        _output.import_matplotlib()
        source = " and ".join(Path(one).name for one in (args.first, args.second) if one)
        regress.write(model, args.page, X=before, test=test, source=source)
    if args.json:
        _output.say({**regress.to_dict(model), "p": test.p, "page": args.page})
    elif args.page is not None:
        _output.line(f"\nThe pictures are in {args.page}.")
    return 0
