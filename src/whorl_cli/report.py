"""`whorl report`: one page from the tables of a run folder."""

import argparse
from pathlib import Path
from typing import Any

from whorl_cli import _child, _output

STORY = """Make report.html in a run folder again, from what the folder holds: verdicts, tables,
figures and the audit, which is done first. The page is one file and needs no network.

A folder that does not pass the audit is refused, with the reason and exit code 1.
With --unverified the page is made all the same and says so in red; the folder's
manifest is then left as it is, so that what is wrong can still be found."""
REMADE = (
    "report.html",
    "ro-crate-metadata.json",
)  # what this command writes itself, besides the manifest


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "report", call, "one page from a run folder", STORY)
    parser.add_argument("folder", type=Path, metavar="DIR", help="run folder")
    parser.add_argument(
        "--unverified",
        action="store_true",
        help="make the page even where the audit fails, and say so on it in red",
    )


def call(given: argparse.Namespace) -> int:
    """Audit, write, seal."""
    from concurrent.futures import ThreadPoolExecutor

    _output.import_matplotlib()
    # The audit is a process of its own: what the page needs is loaded meanwhile.
    with ThreadPoolExecutor(1) as aside:
        audit = aside.submit(_child.audit, given.folder)
        from whorl.study import report
        from whorl.study.report import page

        page.plotly()
        findings = audit.result()["findings"]
    failed = [finding for finding in findings if not finding["passed"]]
    if failed and _ours(given.folder, failed):
        (given.folder / report.NAME).unlink(missing_ok=True)
        _seal(given.folder)
        findings = _child.audit(given.folder)["findings"]
        failed = [finding for finding in findings if not finding["passed"]]
    why = _why(failed, len(findings)) if failed else None
    if why and not given.unverified:
        _output.refuse(
            f"{given.folder} must pass the audit, but {why}; --unverified makes the page all the "
            "same",
            given,
        )
        return 1
    place = report.write(given.folder, unverified=why)
    if not why:
        _seal(given.folder)
    if given.json:
        _output.say({"report": str(place), "verified": not why, "reason": why})
    else:
        _output.line(f"{place}{f': UNVERIFIED, {why}' if why else ''}")
    return 0


def _why(failed: list[dict[str, Any]], total: int) -> str:
    first = failed[0]
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return (
        f"{len(failed)} of {total} claims of the audit fail: {first['claim']}"
        f" ({first['where']}){more}"
    )


def _ours(folder: Path, failed: list[dict[str, Any]]) -> bool:
    """Whether nothing is wrong but files that this command makes anew, such as a page left behind
    by an interrupted one.
    """
    from whorl.ground import store
    from whorl.study import layout

    if (
        any(not finding["where"].startswith((layout.MANIFEST, REMADE[1])) for finding in failed)
        or not (folder / layout.MANIFEST).exists()
    ):
        return False
    listed = {
        line[66:]: line[:64]
        for line in store.contents(folder / layout.MANIFEST).decode(errors="replace").splitlines()
    }
    present = {path.relative_to(folder).as_posix(): path for path in layout.files(folder)}
    differ = {
        name for name in listed.keys() | present.keys() if name not in listed or name not in present
    }
    differ |= {
        name
        for name in listed.keys() & present.keys()
        if store.hash_of(present[name]) != listed[name]
    }
    return differ <= set(REMADE)


def _seal(folder: Path) -> None:
    """Describe and list the folder anew, the page included.

    A folder without a manifest, or with more than a run writes, never is.
    """
    from whorl.study import layout, report
    from whorl.study.conduct import seal

    run = report.read(folder)
    if run.strange or not (folder / layout.MANIFEST).is_file():
        raise ValueError(
            f"{folder} must be sealed and hold what a run writes, but "
            f"{(*run.strange, 'its manifest is missing')[0]}"
        )
    seal(folder, run.environment, [study.verdict for study in run.studies])
