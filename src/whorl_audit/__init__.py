"""An independent verifier of run folders.

It shares no code with whorl, and needs NumPy and a Parquet reader only.

Everything in a run folder follows from its design: seeds give the drawn numbers, the physics gives
the computed ones, formulas give the rest. The audit goes that way again by other routes
(complex-step Jacobians, Gauss-Newton in parameter space, 2 x 2 algebra in the zero-sum plane, Gram
factors without cancellation), and compares every stored value, every hash and every verdict.
"""

from collections.abc import Iterator
from pathlib import Path

from whorl_audit import (
    copies,
    figures,
    folder,
    layout,
    manifest,
    record,
    rows,
    values,
    verdict,
    whole,
)
from whorl_audit.finding import Audit as Audit
from whorl_audit.finding import Finding as Finding
from whorl_audit.finding import counted, impossible
from whorl_audit.kinds import find
from whorl_audit.types import Tables
from whorl_audit.types import UnreadableError as UnreadableError


def check_study(study: folder.Study) -> Iterator[Finding]:
    """Every finding on a study, as it is made.

    A study that cannot be followed to its end fails: what was tampered with may be anything.
    """
    try:
        yield from _claims(study)
    except MemoryError as error:
        raise UnreadableError(
            f"a study must be audited in memory, but {study.path} needs more; --memory raises the "
            "limit"
        ) from error
    except Exception as error:
        yield impossible("the study can be followed to its end", f"{type(error).__name__}: {error}")


def _claims(study: folder.Study) -> Iterator[Finding]:
    yield (origin := verdict.origin(study))
    yield from verdict.identity(study)
    yield from verdict.registration(study)
    yield from record.check(study.path)
    yield from figures.check(study.path, study.kind, study.table_hashes)
    if not origin.passed:
        yield impossible(
            "the tables follow from the design",
            "design.toml is not the design that the run was made from",
        )
        return
    kind, p = find(study.kind), study.parameters
    if more := rows.beyond(kind, p, study.tables):
        yield impossible("the tables follow from the design", more)
        return
    tables = Tables()
    yield from rows.check(kind, p, study.tables, tables)
    yield from copies.check(study.path / "tables", tables)
    statistics = values.statistics(kind, p, tables)
    yield from values.check(kind, p, tables, statistics)
    mine = values.own(kind, p, tables)
    if statistics is None or mine is None or "statistics" not in tables:
        yield impossible(
            "the gates follow from the statistics",
            "a table that the statistics need does not have its columns and rows",
        )
    else:
        yield from values.roundoff(kind, p, tables, mine)
        yield from verdict.gates(study, statistics)
        yield verdict.gates_of_ours(study, mine[1])


def check_folder(path: Path, studies: list[folder.Study], sealed: bool = True) -> Iterator[Finding]:
    """Every finding on a run folder as a whole.

    What it holds, its manifest, summary, environment, crate and figures.

    A single study has none of these of its own, and one that is not `sealed` no manifest and crate.
    """
    found = layout.read(path)
    yield counted(
        "the folder holds what a run writes, and nothing else",
        found.strange,
        "folder of one study" if found.alone else "folder",
    )
    if not found.alone:
        yield from manifest.check(path) if sealed else ()
        yield from whole.check(path, studies, sealed)


def audit(path: str | Path, *, sealed: bool = True) -> Audit:
    """Verify a run folder, or one study of it.

    Args:
        path: A folder with studies in it, or the folder of a study.
        sealed: Whether a run folder must have its manifest and its crate, which are made last.

    Returns:
        All findings, by the name of the study's folder; those on the folder as a whole under the
        empty name.

    Raises:
        UnreadableError: If there is no such folder, or a design, a verdict or a lock in it cannot
            be read.
    """
    path = Path(path)
    studies = [folder.read(one) for one in folder.studies(path)]
    findings = {"": tuple(check_folder(path, studies, sealed))}
    findings |= {study.path.resolve().name: tuple(check_study(study)) for study in studies}
    return Audit(findings, whole.notes(studies, whole.made_by(path)), whole.NOT_COVERED, whole.LEFT)
