"""What a run will take, by arithmetic on its design, and the refusal of what cannot fit.

Nothing is computed and nothing is made.

Constants are fits to measured runs on two cores, good to a factor of two or three; memory is on the
generous side.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from whorl.study import arms, columns
from whorl.study.comparators import LEARNERS
from whorl.study.design import Design

ROWS = 100_000_000  # of all tables of a study together; the auditor has the same ceiling
DRAWS = 100_000_000  # numbers that a bootstrap draws
FORESEEN = 10**11  # updates that are foreseen
PROGRAM = 700 * 10**6  # bytes of Python, JAX and compiled programs
TABLES = (
    8  # times the bytes of all tables: arrays of the stages, tables, their sorted copies, Parquet
)
# bytes of one configuration of the threshold study, per layer, while it is compiled into one call
CONFIGURATION = 40_000
SECONDS = {
    "structural": 2e-6,
    "threshold": 2e-5,
    "horizon": 2e-6,
    "foresight": 2e-6,
}  # for every row, audit included
COMPILING = {
    "structural": 6.0,
    "threshold": 5.0,
    "horizon": 8.0,
    "foresight": 2.0,
}  # for every stage


@dataclass(frozen=True)
class Cost:
    """What a run takes.

    Seconds on two cores, bytes of memory and of disk; and what its ceilings count.
    """

    rows: int
    draws: int
    foreseen: int
    seconds: float
    memory: int
    disk: int


def rows(kind: str, p: SimpleNamespace) -> dict[str, int]:
    """The rows of every table but the statistics."""
    count = p.families if kind in ("structural", "threshold") else p.trials
    depths, deep, resamples = len(p.depths), 9 * sum(p.depths), getattr(p, "resamples", 0)
    found = {"tasks": 6 * count}
    if kind == "structural":
        states = count * (p.updates + 1)
        found |= {
            "weights": count * deep,
            "responses": 324 * count * depths,
            "operators": count * depths,
        }
        found |= {
            "modes": count * depths * len(p.omegas),
            "trajectory_weights": states * deep,
            "trajectories": states * depths,
        }
        found |= {
            "control_weights": deep,
            "control_responses": 9 * depths,
            "controls": depths,
            "curvature": 2 * len(p.steps),
        }
        return found
    if kind == "threshold":
        places = count * len(p.betas)
        return found | {
            "weights": places * deep,
            "configurations": places * depths,
            "draws": resamples,
        }
    updates, places = 6 * p.epochs, len(p.betas) * len(p.scales)
    found["schedule"] = count * updates
    if kind == "horizon":
        pairs = 4 * count * places
        found |= {
            "weights": count * len(p.betas) * deep,
            "trajectories": pairs * depths,
            "updates": pairs * depths * updates,
        }
        found |= {
            "final_weights": pairs * deep,
            "trials": 2 * count,
            "conditions": depths * places,
            "draws": resamples,
        }
        return found
    horizons, calls = (
        len(p.horizons),
        [(arm, len(arm.horizons) * len(arm.depths) * places) for arm in arms.arms(p)],
    )
    found |= {
        "weights": count * len(p.betas) * 9 * sum(dict.fromkeys([*p.depths, p.deep])),
        "readings": 3 * count * updates,
    }
    found["trajectories"] = sum(one * arm.trials for arm, one in calls)
    found["choices"] = sum(
        one * arm.trials * p.epochs * (6 if arm.width == 3 else arm.width + 3) for arm, one in calls
    )
    found |= {
        "conditions": sum(one for _, one in calls),
        "advantages": (len(arms.MAIN) - 1) * horizons * depths * places,
    }
    found |= {"payoff": len(arms.MAIN) * depths * places, "costs": horizons}
    compared = len(LEARNERS) * horizons * depths * places
    return found | {"comparators": compared * count, "comparisons": compared}


def estimate(design: Design, quick: bool = False) -> Cost:
    """What a run of this design takes.

    Examples:
        >>> from whorl.study import cost, design
        >>> cost.estimate(design.shipped("horizon")).rows
        206832
    """
    kind, p = design.kind, design.values(quick)
    found = rows(kind, p)
    total, cells = (
        sum(found.values()),
        sum(count * len(columns.columns(kind, name)) for name, count in found.items()),
    )
    draws = getattr(p, "resamples", 0) * (
        p.families if hasattr(p, "families") else getattr(p, "trials", 0)
    )
    foreseen = _foreseen(p) if kind == "foresight" else 0
    memory = PROGRAM + 8 * TABLES * cells + 24 * draws
    if kind == "threshold":
        memory += CONFIGURATION * p.families * len(p.betas) * max(p.depths)
    if hasattr(p, "chunk"):
        memory += 400 * p.chunk * p.epochs * 6 + 4000 * p.chunk * max(p.depths)
    stages = len(p.depths) * (len(p.scales) * 2 if kind == "horizon" else 1)
    if kind == "foresight":
        stages = sum(len(arm.horizons) * len(arm.depths) for arm in arms.arms(p)) + len(
            LEARNERS
        ) * len(p.depths)
    seconds = 20 + COMPILING[kind] * stages + SECONDS[kind] * total + 1e-7 * foreseen + 1e-7 * draws
    return Cost(total, draws, foreseen, seconds, memory, 2 * 10**6 + 10 * cells)


def _foreseen(p: SimpleNamespace) -> int:
    """Updates that all arms foresee, three actions at a time."""
    places, found = len(p.betas) * len(p.scales), 0
    for arm in arms.arms(p):
        updates = p.epochs * (6 if arm.width == 3 else arm.width + 3)
        ahead = sum(
            min(updates if horizon < 0 else horizon + 1, updates) for horizon in arm.horizons
        )
        found += 3 * places * len(arm.depths) * arm.trials * updates * ahead
    return found


def check(costs: list[tuple[str, Cost]], folder: Path, memory: int | None = None) -> None:
    """Refuse studies that are beyond a ceiling, or that this memory or the disk of the folder
    cannot hold.

    Raises:
        ValueError: In one sentence with the study, what it takes, the limit and how to raise it.
    """
    for name, cost in costs:
        for what, here, most in (
            ("rows in its tables", cost.rows, ROWS),
            ("numbers in its bootstrap", cost.draws, DRAWS),
            ("foreseen updates", cost.foreseen, FORESEEN),
        ):
            if here > most:
                raise ValueError(
                    f"study {name} must have at most {most} {what}, but its design asks for "
                    f"{here}: split it into several"
                )
        if memory is not None and cost.memory > memory:
            raise ValueError(
                f"study {name} must fit into {size(memory)} of memory, but it takes about "
                f"{size(cost.memory)}: "
                "ask for less, or say with --memory how much it may take"
            )
    there = next(
        parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.is_dir()
    )
    free, wanted = shutil.disk_usage(there).free, sum(cost.disk for _, cost in costs)
    if wanted > free:
        raise ValueError(
            f"{folder} must have room for {size(wanted)}, but {size(free)} are free on its disk"
        )


def size(count: float) -> str:
    """Bytes for people."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
