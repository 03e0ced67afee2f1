"""What a run will take, by arithmetic on its design, and the refusal of what cannot fit.

Nothing is computed and nothing is made. A kind of study counts its work.

Constants are fits to measured runs on two cores, good to a factor of two or three; memory is on the
generous side.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from whorl.study import kinds
from whorl.study.design import Design

ROWS = 100_000_000  # of all tables of a study together; the auditor has the same ceiling
DRAWS = 100_000_000  # numbers that a bootstrap draws
FORESEEN = 10**11  # updates that are foreseen
PROGRAM = 700 * 10**6  # bytes of Python, JAX and compiled programs
# times the bytes of all tables: arrays of the stages, tables, their sorted copies, Parquet
TABLES = 8


@dataclass(frozen=True)
class Cost:
    """What a run takes.

    Seconds on two cores, those of them that compile programs, bytes of memory and of disk; and
    what its ceilings count.
    """

    rows: int
    draws: int
    foreseen: int
    seconds: float
    compiling: float
    memory: int
    disk: int


def estimate(design: Design, quick: bool = False) -> Cost:
    """What a run of this design takes.

    Examples:
        >>> from whorl.study import cost, design
        >>> cost.estimate(design.shipped("horizon")).rows
        206832
    """
    kind, p = kinds.get(design.kind), design.values(quick)
    work = kind.work(p)
    rows = sum(work.rows.values())
    cells = sum(count * len(kind.columns[name]) for name, count in work.rows.items())
    compiling = work.per_program * work.programs
    seconds = 20 + compiling + work.per_row * rows
    seconds = seconds + 1e-7 * work.foreseen + 1e-7 * work.draws
    memory = PROGRAM + 8 * TABLES * cells + 24 * work.draws + work.memory
    return Cost(rows, work.draws, work.foreseen, seconds, compiling, memory, 2 * 10**6 + 10 * cells)


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
