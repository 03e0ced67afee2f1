"""How long until the first answer?

Import, compile and run 480 pairs at depth 1 and 4, in a fresh process.

The work is that of `ensemble.py`: 180 updates with full ledger in float64. No compilation cache is
used. A second call of each depth, which does not count towards the total, tells compiling from
running. The total runs from the start of the interpreter to the second depth's answer on the host.

    python benchmarks/cold_start.py               # less than a minute
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import timing

CHILD = """
import json, sys, time
stages, last = {}, float(sys.argv[1])
def done(stage):
    global last
    stages[stage], last = time.time() - last, time.time()
import numpy
from peers.problem import problem
pairs, *depths = map(int, sys.argv[2:])
given = {depth: problem(pairs, depth) for depth in depths}
done("start, make the problem")
from peers import train_many
done("import")
for depth in depths:
    train_many.run(**given[depth])
    done(f"depth {depth}, first")
for depth in depths:
    train_many.run(**given[depth])
    done(f"depth {depth}, again")
print(json.dumps(stages))
"""


def fresh(pairs, depths):
    """The seconds of each stage in a new process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    )
    command = [sys.executable, "-c", CHILD, str(time.time()), str(pairs), *map(str, depths)]
    seen = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return stages(json.loads(seen.stdout), depths)


def stages(seen, depths):
    """Compile and run from the first and second call.

    The second calls are not part of the total.
    """
    again = {depth: seen.pop(f"depth {depth}, again") for depth in depths}
    result = {name: seconds for name, seconds in seen.items() if not name.startswith("depth")}
    for depth, run in again.items():
        result[f"depth {depth}: compile"] = seen[f"depth {depth}, first"] - run
        result[f"depth {depth}: run"] = run
    return result | {"total": sum(seen.values())}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="fresh processes")
    parser.add_argument("--pairs", type=int, default=480)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 4])
    options = timing.asked(parser, repeats=1, pairs=64, depths=[1])
    print(timing.machine())
    runs = [fresh(options.pairs, options.depths) for _ in range(options.repeats)]
    rows = []
    for stage in runs[0]:
        seconds = [run[stage] for run in runs]
        rows.append([stage, f"{min(seconds):.2f}", f"{statistics.median(seconds):.2f}"])
    print(timing.table(["stage", "best, s", "median, s"], rows))


if __name__ == "__main__":
    main()
