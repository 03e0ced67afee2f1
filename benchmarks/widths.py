"""How much faster than vectorised NumPy is `train_many` at any width?

The work: pairs of learners, 180 updates each with the ledger, in float64, from host arrays to host
arrays, every core in use. Vectorised NumPy (`peers/numpy_widths.py`), whose products are stacks of
small matrices, is the 1.0; a hand-written C program, where there is a compiler, stands beside it at
width three in `ensemble.py`. Each program runs in a process of its own, they take turns, and the best
turn counts. Before anything is timed both must agree to 1e-10 in every ledger and final weight.

    python benchmarks/widths.py                   # about six minutes on two cores
    python benchmarks/widths.py --grid kinds      # policies, gates, laws, rates, supports, 8192 pairs
    python benchmarks/widths.py --grid all        # every width, depth and number of pairs of the target
    python benchmarks/widths.py --grid deep       # depth six, for the seconds of a first call
"""

import argparse
import itertools
import sys

import numpy as np
import timing
import workers
from peers.widths import Case

BASE, OURS, SUMS = "numpy_widths", "train_many_widths", "train_many_widths_sums"
TOLERANCE = 1e-10
WIDTHS = (3, 4, 6, 8, 12, 16)
SHORT = [
    *(Case((width,) * 5, 480) for width in WIDTHS),
    *(Case((width,) * 2, 480) for width in WIDTHS),
    Case((4, 7, 5, 3), 480),
    *(Case((6,) * 3, 480, policy=policy) for policy in ("native", "step_matched")),
    *(Case((6,) * 3, 480, gate=gate) for gate in ("always", "never")),
    *(Case((6,) * 3, 480, law=law) for law in ("direct", "repair", "spectral")),
    Case((6,) * 3, 480, rated=True),
    Case((6,) * 3, 480, full=False),
]
ALL = [
    Case(widths, pairs, epochs=30 if pairs == 480 else 3)
    for pairs, widths in itertools.product(
        (480, 8192), [(w,) * (d + 1) for w in WIDTHS for d in (1, 4)] + [(4, 7, 5, 3)]
    )
]
KINDS = [  # every policy, gate and law, rates and supports; more pairs
    Case(**{"widths": (width,) * 3, "pairs": 480, "epochs": 10} | more)
    for width in (3, 8)
    for more in (
        *({"policy": policy} for policy in ("native", "step_matched")),
        *({"gate": gate} for gate in ("always", "never")),
        *({"law": law} for law in ("direct", "repair", "spectral")),
        {"rated": True},
        {"full": False},
        {"pairs": 8192, "epochs": 5},
    )
]
DEEP = [Case((width,) * 7, 64, epochs=1) for width in WIDTHS]
PAGE = [
    *(Case((width,) * 5, 480, epochs=10) for width in (3, 4, 8, 16)),
    Case((4, 7, 5, 3), 480, epochs=10),
    Case((6,) * 3, 480, law="spectral", epochs=10),
]
SMOKE = [Case((4,) * 2, 8, epochs=1), Case((3, 4, 3), 8, law="spectral", full=False, epochs=1)]

GRIDS = {"short": SHORT, "all": ALL, "kinds": KINDS, "deep": DEEP, "page": PAGE, "smoke": SMOKE}


def disagreement(answer, wanted):
    """The largest difference in ledgers and final networks."""
    ledger = wanted[0].sum(-1) if answer[0].ndim == 2 else wanted[0]
    ends = zip(answer[1] + answer[2], wanted[1] + wanted[2], strict=True)
    return max(float(np.abs(a - b).max()) for a, b in [(answer[0], ledger), *ends])


def checked(group, case):
    """Stop unless all agree; the longer of the first calls of `train_many` on the way."""
    small = Case(**vars(case) | {"pairs": 8, "epochs": min(case.epochs, 3)})
    wanted = group[BASE].ask("answer", small)[0]
    longest = 0.0
    for name in (OURS, SUMS):
        answer, seconds = group[name].ask("answer", small)
        longest = max(longest, seconds)
        size = disagreement(answer, wanted)
        if not size <= TOLERANCE:
            sys.exit(f"{case}: {name} differs from NumPy by {size:.1e}, more than {TOLERANCE:g}")
    return size, longest


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--grid", choices=tuple(GRIDS), default="short")
    parser.add_argument("--rounds", type=int, default=2, help="how many turns each program gets")
    parser.add_argument("--only", default="", help="cases whose description contains this")
    options = timing.asked(parser, grid="smoke", rounds=1)
    print(timing.machine(("jax", "numpy")))
    group = {name: workers.Worker(name, "widths") for name in (BASE, OURS, SUMS)}
    head = ["case", "NumPy, updates/s", "train_many", "times NumPy", "by processor", "sums only"]
    head.append("first call, s")
    rows = []
    for case in GRIDS[options.grid]:
        if options.only not in str(case):
            continue
        size, seconds = checked(group, case)
        found = workers.in_turns(group, dict.fromkeys(group, (case,)), options.rounds, 0.3)
        work = case.pairs * case.updates
        base, ours, sums = (found[name] for name in (BASE, OURS, SUMS))
        rows.append(
            [
                str(case),
                f"{work / base[0]:.3g}",
                f"{work / ours[0]:.3g}",
                f"{base[0] / ours[0]:.1f}",
                f"{base[1] / ours[1]:.1f}",
                f"{base[0] / sums[0]:.1f}",
                f"{seconds:.1f}",
            ]
        )
        print(f"{rows[-1]}  (agree to {size:.0e})", file=sys.stderr)
    print(timing.table(head, rows))
    for worker in group.values():
        worker.stop()


if __name__ == "__main__":
    main()
