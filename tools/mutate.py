"""Change the mathematics at random, one operator or number at a time, and ask whether the tests
notice.

Run with a Python that has cosmic-ray, on a copy of the tree, since sources are changed while it
runs; `make mutants` does both. A sample of all possible changes is drawn with a fixed seed, the
same number for every module. The answer is a table, and a patch for every survivor.

    python tools/mutate.py COPY --python COPY/.venv/bin/python --part core --sample 10
"""

import argparse
import json
import os
import random
import shlex
import subprocess
from pathlib import Path
from typing import Any

from cosmic_ray.work_db import WorkDB, use_db  # pyright: ignore[reportMissingImports]
from cosmic_ray.work_item import WorkerOutcome, WorkResult  # pyright: ignore[reportMissingImports]

CORE = {
    "simplex": "simplex layered",
    "systems/layered": "layered simplex response",
    "response": "response preconditioner",
    "feedback": "feedback reciprocity",
    "reciprocity": "reciprocity feedback",
    "preconditioner": "preconditioner",
    "curvature": "curvature turn",
    "turn": "turn curvature",
    "integrability": "integrability",
    "ledger": "trajectory policy",
    "policy": "policy trajectory",
    "trajectory": "trajectory policy",
    "schedule": "schedule trajectory",
    "fast/lanes": "ensemble",
    "foresight": "foresight",
    "fast/rollout": "foresight",
    "flow": "flow",
    "baseline": "baseline",
    "krylov": "krylov",
    "fast/small": "ensemble",
    "fast/exponential": "ensemble",
}
BEYOND = "tests/study/test_{}_study.py"  # where the auditor meets a run of another study
PYTEST = "-m pytest -x -q -p no:cacheprovider --no-header --tb=no"
NONE = 5  # pytest's word for no test of that kind


def targets(copy: Path, part: str) -> dict[str, tuple[str, str]]:
    """Files to change, each with the tests whose quick part must notice, or else their slow part,
    which some leave out.
    """
    if part == "core":
        files = {
            name: " ".join(f"tests/test_{test}.py" for test in tests.split())
            for name, tests in CORE.items()
        }
        return {f"src/whorl/{name}.py": (tests, tests) for name, tests in files.items()}
    own = (copy / "src" / "whorl_audit").rglob("*.py")
    kept = [file for file in sorted(own) if file.name not in ("__main__.py", "types.py")]
    found = {str(file.relative_to(copy)): ("tests/audit", "") for file in kept}
    for file in sorted((copy / "src" / "whorl_studies").glob("*/audit.py")):
        found[str(file.relative_to(copy))] = ("tests/audit", BEYOND.format(file.parent.name))
    return found


def overlay(copy: Path, python: str) -> Path:
    """An environment in which every process, however it was started, sees the copy's sources and
    otherwise what `python` sees.
    """
    place = copy / ".venv"
    subprocess.run([python, "-m", "venv", "--without-pip", "--clear", str(place)], check=True)
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    (own,) = place.glob("lib/python*/site-packages")
    (own / "overlay.pth").write_text(f"{copy / 'src'}\n{found.stdout.strip()}\n")
    return place / "bin" / "python"


def session(copy: Path, python: str, module: str, tests: tuple[str, str]) -> tuple[Path, Path]:
    """All changes of a module, in a database of cosmic-ray."""
    place = copy / "mutants" / module.replace("/", "-")
    place.parent.mkdir(exist_ok=True)
    config = place.with_suffix(".toml")
    marks = ("not slow and not browser", "slow and not browser")
    quick, slow = (
        f"{python} {PYTEST} -m '{mark}' {those}" for mark, those in zip(marks, tests, strict=True)
    )
    # only what the quick tests let pass meets the slow ones
    both = f"{quick} && {{ {slow} || [ $? -eq {NONE} ]; }}"
    command = f"sh -c {shlex.quote(both if tests[1] else quick)}"
    lines = [
        f"module-path = {json.dumps(module)}",
        "timeout = 600.0",
        "excluded-modules = []",
        f"test-command = {json.dumps(command)}",
    ]
    config.write_text(
        "\n".join(["[cosmic-ray]", *lines, "[cosmic-ray.distributor]", 'name = "local"', ""])
    )
    database = place.with_suffix(".sqlite")
    database.unlink(missing_ok=True)
    cosmic(copy, "init", config, database)
    return config, database


def cosmic(copy: Path, *arguments: object) -> None:
    """Run the tool on the copy."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        ["cosmic-ray", *map(str, arguments)],
        cwd=copy,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def keep(database: Path, sample: int, seed: int) -> int:
    """Leave `sample` changes to be tried, drawn at random; answer with the number of all."""
    with use_db(database, WorkDB.Mode.open) as db:
        items = sorted(db.pending_work_items, key=lambda item: item.job_id)
        items.sort(
            key=lambda item: [(m.start_pos, m.operator_name, m.occurrence) for m in item.mutations]
        )
        chosen = {
            item.job_id for item in random.Random(seed).sample(items, min(sample, len(items)))
        }
        for item in items:
            if item.job_id not in chosen:
                db.set_result(
                    item.job_id,
                    WorkResult(output="not drawn", worker_outcome=WorkerOutcome.SKIPPED),
                )
    return len(items)


def survivors(database: Path) -> tuple[int, list[tuple[Any, str]]]:
    """How many were tried, and the patches of those that nobody noticed."""
    with use_db(database, WorkDB.Mode.open) as db:
        tried = [
            (item, result)
            for item, result in db.completed_work_items
            if result.worker_outcome == WorkerOutcome.NORMAL
        ]
    return len(tried), [
        (item.mutations[0], result.diff) for item, result in tried if not result.is_killed
    ]


def main() -> None:
    """Draw, change, test, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("copy", type=Path)
    parser.add_argument(
        "--python", default="python", help="an interpreter that has what the tests need"
    )
    parser.add_argument("--part", choices=("core", "audit"), default="core")
    parser.add_argument("--sample", type=int, default=10, help="changes a module")
    parser.add_argument("--seed", type=int, default=20261116)
    parser.add_argument("--only", nargs="*", help="modules by a part of their path")
    asked = parser.parse_args()
    copy = asked.copy.resolve()
    python = str(overlay(copy, asked.python))
    total = caught = 0
    for module, tests in targets(copy, asked.part).items():
        if asked.only and not any(part in module for part in asked.only):
            continue
        config, database = session(copy, python, module, tests)
        possible = keep(database, asked.sample, asked.seed)
        cosmic(copy, "exec", config, database)
        tried, alive = survivors(database)
        total, caught = total + tried, caught + tried - len(alive)
        print(
            f"{module:<44}{tried - len(alive):>4} of {tried:>3} noticed, of {possible} possible",
            flush=True,
        )
        for mutation, patch in alive:
            print(
                f"  {mutation.operator_name} at line {mutation.start_pos[0]}\n{patch}", flush=True
            )
    print(f"{asked.part}: {caught} of {total} noticed ({100 * caught / max(total, 1):.1f} %)")


if __name__ == "__main__":
    main()
