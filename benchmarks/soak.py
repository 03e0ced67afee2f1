"""Does a long sweep stay as fast, as small and as tidy as it began?

Sweeps for a given time on an engine, and writes every few seconds: cases done, memory of all
processes, files in the store.

    python benchmarks/soak.py --minutes 30 --workers 2 --memory 2GB
"""

import argparse
import contextlib
import csv
import os
import tempfile
import threading
import time
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import psutil
import timing

from whorl import sweep
from whorl_cli._output import size

DESIGN = """name = "soak"
title = "one shape after the other, for as long as it takes"
design = "grid"
seed = 1
trials = 10000000
flips = true
chunk = 256
shard = {shard}

[network]
depth = {depth}
imbalance = [0.0, 4.0, 8.0]

[policy]
policy = "adaptive"
scale = [0.1, 0.2]

[schedule]
epochs = 30
"""


class EnoughError(Exception):
    """The time is up."""


def memory():
    """Proportional set size of this process and all below it, so that shared pages count once."""
    total = 0
    for one in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--engine", choices=("local", "processes", "gpu"), default="processes")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--memory", type=size, default=size("2GB"))
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--shard", type=int, default=8192)
    parser.add_argument("--folder", type=Path, help="where to sweep (default: a temporary folder)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
    out = Path(tempfile.gettempdir()) / "whorl-soak-smoke"
    asked = timing.asked(parser, minutes=0.05, engine="local", shard=256, every=0.2, out=out)
    jax.config.update("jax_enable_x64", True)
    engine = {"local": sweep.InProcess, "gpu": sweep.Devices}.get(
        asked.engine, lambda: sweep.Processes(asked.workers)
    )()
    design = sweep.parse(DESIGN.format(shard=asked.shard, depth=asked.depth).encode())
    begun, cases, rows, over = time.monotonic(), 0, [], threading.Event()
    with tempfile.TemporaryDirectory() as spare:
        folder = asked.folder or Path(spare) / "soak"

        def watch():
            while not over.wait(asked.every):
                rows.append(
                    (
                        round(time.monotonic() - begun, 1),
                        cases,
                        memory(),
                        sum(1 for _ in folder.rglob("*")),
                    )
                )

        def progress(report):
            nonlocal cases
            cases += report.cases
            if time.monotonic() - begun > 60 * asked.minutes:
                raise EnoughError

        watcher = threading.Thread(target=watch)
        watcher.start()
        with contextlib.suppress(EnoughError):
            sweep.sweep(design, folder, engine=engine, memory=asked.memory, progress=progress)
        over.set()
        watcher.join()
        stored = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    told(asked, rows, cases, stored)


def told(asked, rows, cases, stored):
    asked.out.mkdir(parents=True, exist_ok=True)
    with (asked.out / "soak.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("seconds", "cases", "memory", "files"), *rows])
    late = [row for row in rows if row[0] > rows[-1][0] / 5]  # after compiling
    rate = (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0])
    sizes = [row[2] / 1e6 for row in late]
    told = [
        ["cases", f"{cases} in {rows[-1][0]:.0f} s"],
        ["cases/s after the first fifth", f"{rate:.0f}"],
        ["bytes per case", f"{stored / max(cases, 1):.0f}"],
        ["memory, MB", f"{min(sizes):.0f} to {max(sizes):.0f}, last {sizes[-1]:.0f}"],
        ["files", str(rows[-1][3])],
    ]
    print(timing.table(["of the soak", "measured"], told))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    for ax, column, scale, label in zip(
        axes,
        (1, 2, 3),
        (1e6, 1e9, 1),
        ("million cases", "memory, GB", "files in the folder"),
        strict=True,
    ):
        ax.plot(
            [row[0] / 60 for row in rows], [row[column] / scale for row in rows], color="#0072B2"
        )
        ax.set(xlabel="minutes", ylabel=label, ylim=(0, None))
    figure.savefig(asked.out / "soak.png", dpi=120)


if __name__ == "__main__":
    main()
