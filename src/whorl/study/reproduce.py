"""Several studies into one folder, described, sealed and audited."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from whorl.ground import store
from whorl.study import cost, crate, kinds, layout, lock, run
from whorl.study.design import Design, shipped
from whorl.study.run import Progress, silent


def paper() -> list[tuple[Design, dict[str, Any]]]:
    """The paper's designs with their locks."""
    return [(shipped(name), lock.shipped_lock(name)) for name in kinds.paper()]


def conduct(
    studies: list[tuple[Design, dict[str, Any]]],
    folder: Path,
    *,
    quick: bool = False,
    csv: bool = False,
    progress: Progress = silent,
    adorn: Callable[[Path], None] | None = None,
    memory: int | None = None,
) -> list[dict[str, Any]]:
    """Run studies, or finish them; `adorn` may add figures before the folder is sealed.

    Answers with the verdicts.

    A study that takes more than `memory` bytes, than the disk has left, or than a ceiling of `cost`
    is refused before anything is made.

    Examples:
        >>> from whorl.study import design, reproduce
        >>> mine = design.parse(design.template("threshold").encode())
        >>> [verdict["study"] for verdict in reproduce.conduct([(mine, {})], folder / "run", quick=True)]
        ['mine']
    """
    cost.check(
        [(design.name, cost.estimate(design, quick)) for design, _ in studies], folder, memory
    )
    environment = run.enter(folder, [design for design, _ in studies], quick)

    def one(design: Design, registered: dict[str, Any]) -> dict[str, Any]:
        return run.run(
            design,
            folder / design.name,
            registered=registered,
            quick=quick,
            csv=csv,
            progress=progress,
        )

    # Most of a run is compilation on one core: a study that need not be alone has the other one.
    with ThreadPoolExecutor(1) as pool:
        beside = {
            design.name: pool.submit(one, design, registered)
            for design, registered in studies
            if not kinds.get(design.kind).alone
        }
        verdicts = [
            beside[design.name].result() if design.name in beside else one(design, registered)
            for design, registered in studies
        ]
    if adorn is not None:
        adorn(folder)
    keys = ("verdict", "expected", "registered", "quick")
    store.write_json(
        folder / "summary.json",
        {"studies": {v["study"]: {key: v[key] for key in keys} for v in verdicts}},
    )
    seal(folder, environment, verdicts)
    return verdicts


def seal(folder: Path, environment: dict[str, Any], verdicts: list[dict[str, Any]]) -> None:
    """Describe the folder as a crate, and write the manifest over everything in it."""
    crate.write(folder, environment, verdicts)
    layout.seal(folder)


def reseal(folder: Path, verdicts: list[dict[str, Any]]) -> None:
    """Seal a finished folder again, after something was added to it."""
    seal(folder, store.read_json(folder / "environment.json"), verdicts)


def statistics(folder: Path) -> dict[str, float]:
    """The statistics of one study, from its stored table.

    Examples:
        >>> from whorl.study import design, reproduce, run
        >>> verdict = run.run(design.shipped("threshold"), folder / "run", registered={}, quick=True)
        >>> reproduce.statistics(folder / "run")["sign_agreement"]
        1.0
    """
    return run.named(store.read_table(folder / "tables" / "statistics.parquet"))
