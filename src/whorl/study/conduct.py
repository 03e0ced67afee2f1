"""Studies from design to report: run, draw, audit, report, seal.

Every step can be done again over what an earlier one left, and gives the same bytes. The manifest
goes first and comes last: a folder that has one is whole.
"""

import difflib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whorl import _child
from whorl._show import Shown, plural
from whorl.ground import store
from whorl.study import cost, crate, kinds, layout, lock, run
from whorl.study.design import Design, read, shipped
from whorl.study.published import Comparison
from whorl.study.run import Progress, silent

Given = Design | Path | str
Lock = Mapping[str, Any]
LATER = ("figures", "audit", "report")  # told as progress after the studies themselves
UNSOUND = "the audit of this folder found claims that do not hold"


@dataclass(frozen=True, repr=False)
class Conducted(Shown):
    """What came of studies.

    Attributes:
        folder: The run folder.
        verdicts: The verdict of each study, in the order in which they were given.
        findings: What the audit found, claim by claim.
        numbers: The paper's numbers next to those of its studies; none of a quick run.

    Examples:
        >>> from whorl import study
        >>> study.conduct("threshold", folder / "run", quick=True).numbers
        []
    """

    folder: Path
    verdicts: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    numbers: list[Comparison]

    def __str__(self) -> str:
        agreed = sum(finding["passed"] for finding in self.findings)
        return "\n".join(
            [f"{self.folder}: {agreed} of {plural(len(self.findings), 'claim')} of the audit hold"]
            + [f"  {one['study']}   {one['verdict']}   {one['title']}" for one in self.verdicts]
        )

    @property
    def sound(self) -> bool:
        """Whether every claim of the audit holds."""
        return all(finding["passed"] for finding in self.findings)

    @property
    def as_expected(self) -> bool:
        """Whether the audit is content and every verdict is the one that its design expects.

        Quick runs have no verdict to expect.
        """
        return self.sound and all(
            one["quick"] or one["expected"] in (None, one["verdict"]) for one in self.verdicts
        )


def conduct(
    designs: Given | Sequence[Given],
    folder: Path | str,
    *,
    registered: Lock | Sequence[Lock] | None = None,
    quick: bool = False,
    csv: bool = False,
    memory: int | None = None,
    progress: Progress = silent,
) -> Conducted:
    """Conduct studies, or finish what an interrupted call left: run, draw, audit, report, seal.

    JAX must be in double precision.

    Args:
        designs: One study or several: a `Design`, the path of a design file, or the name of a
            shipped design.
        folder: The run folder: new, empty, or one that the same call began.
        registered: The lock of the design, or one lock per design. Without it, that of a file is
            the lock beside it, and that of a shipped design the one that ships; any other design
            is run unregistered.
        quick: Whether to make a smoke run with the values under `[quick]`.
        csv: Whether to write every table as CSV too.
        memory: What the studies may take, in bytes.
        progress: Told the name of every piece of work that is done.

    Returns:
        Verdicts, findings of the audit, and the comparison with the paper.

    Raises:
        ValueError: If a design cannot be read, the folder belongs to something else, or the
            studies take more than `memory`, than the disk has left, or than `cost` allows. Nothing
            is written then.

    Examples:
        >>> from whorl import study
        >>> from whorl.study import design
        >>> mine = design.parse(design.template("threshold").encode())
        >>> done = study.conduct(mine, folder / "run", quick=True)
        >>> [verdict["study"] for verdict in done.verdicts], done.sound
        (['mine'], True)
    """
    from whorl.study import figures, report  # what draws is loaded when something is drawn

    folder = Path(folder)
    studies = _studies(designs, registered)
    environment, verdicts = ran(studies, folder, quick, csv, memory, progress)
    figures.draw_all(folder, illustration=not quick)
    progress(LATER[0])
    findings = _child.audit(folder, sealed=False)["findings"]
    progress(LATER[1])
    made = report.read(folder)
    done = Conducted(folder, verdicts, findings, made.numbers)
    report.write(made, unverified=None if done.sound else UNSOUND)
    seal(folder, environment, verdicts)
    progress(LATER[2])
    return done


def opened(given: Given) -> tuple[Design, Lock]:
    """A design and its lock, which is empty where it was never registered."""
    if isinstance(given, Design):
        place = kinds.file(given.kind, "design.toml")
        ships = place.is_file() and place.read_bytes() == given.text
        return given, lock.shipped_lock(given.kind) if ships else {}
    if str(given) in kinds.names() and not Path(given).exists():
        return shipped(str(given)), lock.shipped_lock(str(given))
    if not Path(given).suffix and not Path(given).exists():
        close = difflib.get_close_matches(str(given), kinds.names(), 1)
        raise ValueError(
            f"design must be a file or one of {', '.join(kinds.names())}, but it is {given}"
            + (f": did you mean {close[0]}?" if close else "")
        )
    return read(Path(given)), lock.read(Path(given))


def _studies(
    designs: Given | Sequence[Given], registered: Lock | Sequence[Lock] | None
) -> list[tuple[Design, Lock]]:
    given = [designs] if isinstance(designs, Design | Path | str) else list(designs)
    locks = [registered] if isinstance(registered, Mapping) else registered
    found = [opened(one) for one in given]
    names = [design.name for design, _ in found]
    if not names or len({*names}) < len(names):
        raise ValueError(
            "designs must be studies with different names, but they are"
            f" {', '.join(names) or 'none'}"
        )
    if locks is None:
        return found
    if len(locks) != len(found):
        raise ValueError(
            f"registered must hold one lock per design, but it holds {len(locks)} for {len(found)}"
        )
    return [(design, own) for (design, _), own in zip(found, locks, strict=True)]


def ran(
    studies: Sequence[tuple[Design, Lock]],
    folder: Path,
    quick: bool = False,
    csv: bool = False,
    memory: int | None = None,
    progress: Progress = silent,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run studies with their locks into a folder that is not sealed yet: environment, verdicts."""
    designs = [design for design, _ in studies]
    cost.check([(one.name, cost.estimate(one, quick)) for one in designs], folder, memory)
    environment = run.enter(folder, designs, quick)
    (folder / layout.MANIFEST).unlink(missing_ok=True)

    def one(design: Design, own: Lock) -> dict[str, Any]:
        place = folder / design.name
        return run.run(design, place, registered=dict(own), quick=quick, csv=csv, progress=progress)

    # Most of a run is compilation on one core: a study that need not be alone has the other one.
    with ThreadPoolExecutor(1) as pool:
        beside = {
            design.name: pool.submit(one, design, own)
            for design, own in studies
            if not kinds.get(design.kind).alone
        }
        verdicts = [
            beside[design.name].result() if design.name in beside else one(design, own)
            for design, own in studies
        ]
    keys = ("verdict", "expected", "registered", "quick")
    summary = {verdict["study"]: {key: verdict[key] for key in keys} for verdict in verdicts}
    store.write_json(folder / "summary.json", {"studies": summary})
    return environment, verdicts


def seal(folder: Path, environment: dict[str, Any], verdicts: list[dict[str, Any]]) -> None:
    """Describe the folder as a crate, and write the manifest over everything in it."""
    crate.write(folder, environment, verdicts)
    layout.seal(folder)
