"""One self-contained page from the tables, verdicts, audit and figures of a run folder.

Data flows one way: folder -> words, gates, charts, comparison -> page. Nothing is computed here
that is not in the folder, but counts and histograms. The page asks no network: style, scripts,
figures and the chart library are inside it, and its own policy forbids the rest.
"""

from pathlib import Path

from whorl.ground import store
from whorl.study.report import page
from whorl.study.report.folder import RunFolder as RunFolder
from whorl.study.report.folder import read as read

NAME = "report.html"


def write(folder: Path | str | RunFolder, *, unverified: str | None = None) -> Path:
    """Make `report.html` in a finished run folder.

    Args:
        folder: A run folder, as `whorl.study.conduct` makes them, or one that was read.
        unverified: Why the folder is not to be trusted, in words; the page says it in red. What the
            page can see by itself (no audit, an audit that failed, a table that is not the one its
            verdict names) it says in any case.

    Returns:
        Where the page is.

    Raises:
        ValueError: If the folder is not a finished run folder.

    Examples:
        >>> from whorl.study import conduct, report
        >>> done = conduct("threshold", folder / "run", quick=True)
        >>> report.write(folder / "run").name
        'report.html'
    """
    run = folder if isinstance(folder, RunFolder) else read(Path(folder))
    place = (run.folder if isinstance(folder, RunFolder) else Path(folder)) / NAME
    store.write(place, page.render(run, unverified))
    return place
