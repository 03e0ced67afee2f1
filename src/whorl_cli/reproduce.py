"""`whorl reproduce`: the paper's three studies, audited, next to the paper's numbers."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _output, _study

STORY = """Run the paper's three registered studies, draw its figures, let an independent program
audit the tables, write report.html, and print every published number next to ours. After an
interrupt or a kill, the same command goes on where it stopped and ends with the same tables.

A study that is registered as FAIL, because the paper says that a gate of it does not hold,
succeeds here by failing in the same way."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(
        commands, "reproduce", call, "the paper's studies, audited, next to its numbers", STORY
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="run folder (default: runs/paper, or runs/quick)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="try every step on fewer families, in about 20 s; its numbers mean nothing",
    )
    parser.add_argument("--csv", action="store_true", help="write every table as CSV too")
    _study.add_memory(parser)


def call(given: argparse.Namespace) -> int:
    """Conduct, and compare."""
    from whorl.study import kinds
    from whorl.study.conduct import opened

    _study.ready()
    folder = given.out or Path("runs") / ("quick" if given.quick else "paper")
    with _study.hurried(given.quick):
        done = _study.conducted("studies", [opened(name) for name in kinds.paper()], folder, given)
    if given.json:
        _study.say(done, numbers=[row.asdict() for row in done.numbers])
        return 0 if done.as_expected else 1
    _show(done.numbers)
    for verdict in [] if given.quick else done.verdicts:
        _output.line(*_study.verdict_lines(verdict))
    _output.line(_study.audit_line(done.findings))
    if given.quick:
        _output.line(
            "This was a trial on fewer families: it shows that every step works, and its numbers "
            "mean nothing."
        )
    _output.line(
        f"look at {folder / 'report.html'}; tables, figures, verdicts and audit are beside it"
    )
    return 0 if done.as_expected else 1


def _show(rows: list[Any]) -> None:
    """The table "published | here | class | verdict", narrow enough for any terminal."""
    study = ""
    for row in rows:
        if row.study != study:
            study = row.study
            _output.line(
                f"\n{study:<27}{'published':>12}{'here':>13}  {'class':<12}verdict", "-" * 80
            )
        verdict = (
            row.verdict if row.percentile is None else f"{row.verdict} ({row.percentile:.0f} %)"
        )
        mark = " " if row.agrees else ">"
        _output.line(
            f"{mark}{row.statistic:<26}{row.published:>12}{row.here:>13}  {row.kind:<12}{verdict}"
        )
    if rows:
        agreed = sum(row.agrees for row in rows)
        _output.line(
            f"\n{agreed} of {len(rows)} numbers agree; those that do not are marked >. In brackets:"
            " the percentile of the published value among",
            "ours over many root seeds; inside is the central 95 %, so 1 in 20 is outside by "
            "chance.\n",
        )
