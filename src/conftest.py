"""Examples in docstrings begin where the session on the first page of the reference ends."""

import doctest
from pathlib import Path
from typing import Any

import jax
import pytest

HOME = Path(__file__).parent.parent
LONG = {  # examples that compile for several seconds: the second command runs them
    "whorl.budget.geometric",
    "whorl.budget.paired",
    "whorl.learning.ensemble.Ensemble",
    "whorl.flow.Flow",
    "whorl.flow.flow",
    "whorl.plot._simplex.spiral",
    "whorl.plot._graph.graph",
    "whorl.rules.adjoint_coupled_learning",
    "whorl.rules.coupled_learning",
    "whorl.settling.Settling",
    "whorl.study.conduct.Conducted",
    "whorl.study.run.run",
    "whorl.sweep.picture.picture",
    "whorl.systems.transport.Transport",
    "whorl.study.conduct.conduct",
    "whorl.study.figures.draw_all",
    "whorl.study.figures.draw_study",
    "whorl.study.kinds.horizon.figure.of_cases",
    "whorl.study.report.folder.RunFolder",
    "whorl.study.report.folder.read",
    "whorl.study.report.write",
    "whorl.study.replicate.replicate",
    "whorl.study.run.compute",
    "whorl.sweep.run.Result",
    "whorl.sweep.run.sweep",
    "whorl.sweep.work.Report",
    "whorl.learning.trajectory.update",
    "whorl.regress.page.write",
    "whorl.plot._simplex.phase_portrait",
    "whorl.sweep.table.conditions",
}
# Where the tests keep compiled programs, for those who run the examples alone.
jax.config.update("jax_compilation_cache_dir", str(HOME / ".pytest_cache" / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


@pytest.fixture(scope="session")
def opening() -> dict[str, Any]:
    """The names that the session leaves."""
    page = (HOME / "docs" / "reference" / "index.md").read_text()
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(
        page.split("```python\n")[1].split("```")[0]
    ):
        exec(example.source, names)
    return names


@pytest.fixture(autouse=True)
def _ground(
    doctest_namespace: dict[str, Any],
    opening: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(HOME)
    doctest_namespace.update(opening, folder=tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long examples behind the mark of the slow tests."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name in LONG:
            item.add_marker(pytest.mark.slow)
