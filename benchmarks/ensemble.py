"""How much faster than vectorised NumPy is `train_many`?

The work: pairs of learners with 3x3 layers, 180 updates each under the step-matched policy, the
ledger of every update kept, in float64, from host arrays to host arrays, every core in use; depth 1
and 4, 480 and 8192 pairs. Vectorised NumPy, which uses one core, is the 1.0; the folder `peers`
holds the others. Each peer runs in a process of its own, they take turns, and the best of all turns
counts. Two ratios are printed: by the clock, and by processor seconds, which other people's work
disturbs less and which does not reward a program for taking two cores. Before anything is timed,
all peers must agree with the plainest of them to 1e-12.

    python benchmarks/ensemble.py                 # about ten minutes on two cores
    python benchmarks/ensemble.py --pairs 480 --rounds 2

PyTorch, Numba and a C compiler are used where they are found; none is a dependency of the library.
"""

import argparse
import sys

import numpy as np
import timing
import workers
from peers.problem import UPDATES

BASE, LOOP, ALGEBRA, OURS = "numpy_vectorised", "numpy_loop", "numpy_reduced", "train_many"
TITLES = {
    BASE: "NumPy, vectorised",
    LOOP: "NumPy, one pair at a time",
    "numpy_threads": "NumPy, vectorised, threads",
    ALGEBRA: "NumPy, reduced algebra",
    "torch_vectorised": "PyTorch, vectorised",
    "numba_loops": "Numba, scalar loops",
    "jax_vmap": "whorl, general route (vmap)",
    OURS: "whorl.train_many",
    "train_many_sums": "whorl.train_many, sums only",
    "c_lanes": "C, eight pairs per register",
}
LOOP_PAIRS = 4  # one at a time: the time of a pair does not depend on how many there are
TOLERANCE = 1e-12


def started(names):
    """The workers that can work here; a line for each that cannot."""
    all_workers = {name: workers.Worker(name) for name in names}
    for name, worker in all_workers.items():
        if worker.missing is not None:
            print(f"skipped {TITLES[name]}: {worker.missing}")
    return {name: worker for name, worker in all_workers.items() if worker.missing is None}


def disagreement(answer, wanted):
    """The largest difference in ledgers and final networks.

    A ledger without updates is compared with the sums.
    """
    ledger = wanted[0].sum(-1) if answer[0].ndim == 2 else wanted[0]
    return max(
        float(np.abs(a - b).max()) for a, b in zip(answer, (ledger, *wanted[1:]), strict=True)
    )


def validate(group, depths):
    """Stop unless everybody agrees with the loop over pairs."""
    for depth in depths:
        wanted = group[LOOP].ask("answer", 16, depth, 5)[0]
        found = {
            name: disagreement(worker.ask("answer", 16, depth, 5)[0], wanted)
            for name, worker in group.items()
        }
        for name, size in found.items():
            if not size <= TOLERANCE:
                sys.exit(
                    f"{TITLES[name]} differs from {TITLES[LOOP]} by {size:.1e} at depth {depth}, "
                    f"more than {TOLERANCE:g}"
                )
        print(f"depth {depth}: all agree with {TITLES[LOOP]} to {max(found.values()):.1e}")


def measure(group, depth, pairs, rounds):
    """Seconds a pair by both clocks, for each peer."""
    sizes = dict.fromkeys(group, pairs) | {LOOP: LOOP_PAIRS}
    rounds = rounds if pairs < 2000 else max(2, rounds // 2)  # a long run is its own average
    seconds = workers.in_turns(
        group, {name: (size, depth) for name, size in sizes.items()}, rounds, seconds=0.5
    )
    return {
        name: tuple(clock / sizes[name] for clock in clocks) for name, clocks in seconds.items()
    }


def show(results, depth, pairs):
    wall, cpu = results[BASE]
    rows = [
        [
            TITLES[name],
            f"{UPDATES / seconds[0]:.3g}",
            f"{wall / seconds[0]:.3g}",
            f"{cpu / seconds[1]:.3g}",
            f"{seconds[1] / seconds[0]:.2f}",
        ]
        for name, seconds in results.items()
    ]
    print(f"\n**Depth {depth}, {pairs} pairs**\n")
    print(
        timing.table(
            ["program", "updates/s", "times NumPy, clock", "times NumPy, processor", "cores busy"],
            rows,
        ),
        flush=True,
    )


def split(cases):
    """How much of the factor is algebra, and how much the engine does with it."""
    rows = []
    for (depth, pairs), results in cases.items():
        algebra, engine = (
            [results[a][i] / results[b][i] for i in (0, 1)]
            for a, b in ((BASE, ALGEBRA), (ALGEBRA, OURS))
        )
        whole = [results[BASE][i] / results[OURS][i] for i in (0, 1)]
        cells = [f"{factor[0]:.1f} ({factor[1]:.1f})" for factor in (algebra, engine, whole)]
        rows.append([f"depth {depth}, {pairs} pairs", *cells])
    print("\n**Where the factor comes from**, by the clock (by processor seconds)\n")
    print(timing.table(["case", "algebra, in NumPy", "engine", "together"], rows))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pairs",
        type=int,
        nargs="+",
        default=[480, 8192],
        help="numbers of pairs, multiples of eight",
    )
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 4], help="numbers of layers")
    parser.add_argument(
        "--rounds",
        type=int,
        default=4,
        help="how many turns each peer gets; half as many from 2000 pairs on",
    )
    options = timing.asked(parser, pairs=[16], depths=[1], rounds=1)
    print(timing.machine(("jax", "numpy", "torch", "numba")))
    group = started(TITLES)
    validate(group, options.depths)
    cases = {}
    for depth in options.depths:
        for pairs in options.pairs:
            cases[depth, pairs] = measure(group, depth, pairs, options.rounds)
            show(cases[depth, pairs], depth, pairs)
    split(cases)
    for worker in group.values():
        worker.stop()


if __name__ == "__main__":
    main()
