"""How long do many root seeds of the three studies take, on every core or on an accelerator?

    python benchmarks/replicate.py --seeds 1000
    python benchmarks/replicate.py --seeds 1000 --together
    python benchmarks/replicate.py --seeds 1000 --engine gpu

Targets for 1000 seeds of all three: 10 minutes on two cores, 60 s on an H200.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import timing

from whorl import sweep
from whorl.study import design, kinds, replicate


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--engine", choices=("local", "processes", "gpu"), default="processes")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--studies", nargs="+", default=list(kinds.paper()))
    parser.add_argument(
        "--together",
        action="store_true",
        help="all studies at once, each with its share of the workers",
    )
    asked = timing.asked(parser, seeds=2, engine="local", studies=["threshold"])
    jax.config.update("jax_enable_x64", True)
    begun = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(len(asked.studies) if asked.together else 1) as pool,
    ):
        rows = list(pool.map(lambda name: replicated(name, asked, Path(folder)), asked.studies))
    cores = f"{asked.workers} processes" if asked.engine == "processes" else asked.engine
    print(f"{cores}{', all studies together' * asked.together}")
    rows.append(["all", str(asked.seeds), f"{time.perf_counter() - begun:.1f}", "", ""])
    print(timing.table(["study", "seeds", "seconds", "to the first", "per seed then"], rows))


def replicated(name, asked, folder):
    """One study under all seeds."""
    share = asked.workers if not asked.together else max(1, -(-asked.workers // len(asked.studies)))
    engine = {"local": lambda: None, "gpu": sweep.Devices}.get(
        asked.engine, lambda: sweep.Processes(share)
    )()
    begun, marks = time.perf_counter(), []
    seeds = range(1, asked.seeds + 1)
    replicate.replicate(
        design.shipped(name),
        seeds,
        folder / f"{name}.parquet",
        engine=engine,
        progress=lambda _: marks.append(time.perf_counter()),
    )
    taken, middle = time.perf_counter() - begun, len(marks) // 2
    steady = (marks[-1] - marks[middle]) / max(1, len(marks) - 1 - middle)
    first = marks[0] - begun
    return [name, str(asked.seeds), f"{taken:.1f}", f"{first:.1f}", f"{steady:.3f}"]


if __name__ == "__main__":
    main()
