"""How often is the verdict on measured learners right? Simulates every cell of the slow tests.

    python tools/calibrate.py docs/data/calibration.csv [--experiments 1000] [--workers 2] [GROUP ...]

writes one line per cell: group, cell, experiments, share of experiments in which the event happened,
and its standard error. The groups are those of tests/measured/trials.py, which says what each event
is. All of them take about an hour and a half of one processor. `--picture docs/images/power.png` draws
the power curves of a table that is there, and simulates nothing.
"""

import argparse
import csv
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from measured import trials

PORTION = 50  # experiments of one piece of work


def portion(group: str, number: int, part: int, experiments: int) -> float:
    """The number of events in one portion of one cell, with a stream of its own."""
    import numpy as np

    trial, cells = trials.GROUPS[group]
    rng = np.random.default_rng([list(trials.GROUPS).index(group), number, part])
    return float(sum(trial(rng, **cells[number]) for _ in range(experiments)))


def main() -> None:
    """Simulate, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("groups", nargs="*", metavar="GROUP", default=list(trials.GROUPS))
    parser.add_argument("--experiments", type=int, default=trials.EXPERIMENTS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--picture", type=Path)
    given = parser.parse_intermixed_args()
    if given.picture:
        draw(given.table, given.picture)
        return
    parts = -(-given.experiments // PORTION)
    work = [
        (group, number, part)
        for group in given.groups
        for number in range(len(trials.GROUPS[group][1]))
        for part in range(parts)
    ]
    events: dict[tuple[str, int], list[float]] = {}
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = {pool.submit(portion, *one, PORTION): one for one in work}
        for count, job in enumerate(as_completed(jobs), 1):
            group, number, _ = jobs[job]
            events.setdefault((group, number), []).append(job.result())
            if count % 100 == 0 or count == len(work):
                print(f"{count} of {len(work)}", file=sys.stderr, flush=True)
                write(given.table, events)


def write(table: Path, events: dict[tuple[str, int], list[float]]) -> None:
    """All cells of which something is known."""
    with table.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["group", "cell", "experiments", "share", "error"])
        for (group, number), found in sorted(events.items()):
            many = PORTION * len(found)
            share = sum(found) / many
            error = (share * (1 - share) / many) ** 0.5
            cell = trials.label(trials.GROUPS[group][1][number])
            lines.writerow([group, cell, many, f"{share:.4f}", f"{error:.4f}"])


def draw(table: Path, picture: Path) -> None:
    """The power curves: a skew part that is seen, and a turn that is called one."""
    import matplotlib.pyplot as plt

    with table.open(newline="") as file:
        lines = list(csv.DictReader(file))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    groups = {"power of the skew part": "not reciprocal", "power of the turn": "turns"}
    for axis, (group, verdict) in zip(axes, groups.items(), strict=True):
        curves: dict[str, list[tuple[float, float, float]]] = {}
        for line in lines:
            if line["group"] == group:
                name, share = line["cell"].split(", share ")
                point = (float(share), float(line["share"]), 2 * float(line["error"]))
                curves.setdefault(name, []).append(point)
        for name, points in curves.items():
            at, seen, error = zip(*points, strict=True)
            axis.errorbar(at, seen, error, marker="o", markersize=3, label=name)
        axis.axhline(0.05, color="0.6", linewidth=0.8, linestyle=":")
        axis.set(title=f'called "{verdict}"', xlabel="true skew part, share of the loop")
    axes[0].set_ylabel("share of 1000 experiments")
    axes[0].legend(frameon=False, fontsize="small")
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main()
