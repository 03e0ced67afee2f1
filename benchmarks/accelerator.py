"""How many coupled updates per second does an accelerator make, with the code that runs on a CPU?

Pairs of learners with all five steps and the ledger, float64, arrays on the device. A sample of
pairs is compared with the general loop of `train`. Targets on an H200: at 262 144 pairs of width
three 1.2e9 updates/s at depth 1 and 2.1e8 at depth 4; at 65 536 pairs and depth 4, 5e7 at width
four and 2e7 at width eight; a first call under 15 s.

    python benchmarks/accelerator.py --widths 3 --pairs 262144
    python benchmarks/accelerator.py --widths 4 8 --depths 4 --pairs 65536
"""

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import timing
from peers import train_many_widths
from peers.widths import Case, problem

import whorl as wh
from whorl.learning.ensemble import device_chunk, prepared


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=16384, help="(default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=30, help="of six updates (default: 30)")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 4], help="(default: 1 4)")
    parser.add_argument("--widths", type=int, nargs="+", default=[3, 4, 8], help="(default: 3 4 8)")
    parser.add_argument("--record", action="store_true", help="keep every update, not the sums")
    asked = timing.asked(parser, pairs=64, epochs=1, depths=[1], widths=[3, 4])
    print(
        f"{jax.devices()[0].device_kind}, jax {jax.__version__}: {asked.pairs} pairs, "
        f"{6 * asked.epochs} updates, float64"
    )
    rows = []
    for width in asked.widths:
        for depth in asked.depths:
            case = Case((width,) * (depth + 1), asked.pairs, epochs=asked.epochs)
            rows.append([f"width {width}, depth {depth}", *measured(case, asked.record)])
            print(rows[-1], file=sys.stderr, flush=True)
    head = ["case", "updates/s", "first call, s", "largest difference from the general loop"]
    print(timing.table(head, rows))


def measured(case, record):
    """Updates a second, seconds of the first call, and how far a few pairs are from `train`."""
    given = problem(case)
    nets = train_many_widths.stacked(given["layers"], given["rates"])
    policy = train_many_widths.policy(case)
    names = ("inputs", "targets", "schedule", "turns")
    program, arrays = prepared(nets, policy, tuple(given[name] for name in names), record)
    size, times = device_chunk(nets, policy), []
    pieces = [
        jax.tree.map(lambda array, at=at: jnp.asarray(array[at : at + size]), arrays)
        for at in range(0, case.pairs, size)
    ]
    for _ in range(4):
        start = time.perf_counter()
        out = jax.block_until_ready([program(*piece) for piece in pieces])
        times.append(time.perf_counter() - start)
    first = times.pop(0)
    worst = max(apart(nets, policy, given, out[0][3], pair) for pair in range(2))
    return f"{case.pairs * case.updates / min(times):.3g}", f"{first:.1f}", f"{worst:.1e}"


def apart(nets, policy, given, ends, pair):
    """How far the final layers of one pair are from those of the general loop."""
    one = wh.train(
        jax.tree.map(lambda leaf: leaf[pair], nets),
        given["inputs"][pair],
        given["targets"][pair],
        policy=policy,
        schedule=given["schedule"][pair],
        turns=given["turns"][pair],
    )
    layers = zip(ends, one.nonreciprocal.layers, strict=True)
    return max(float(np.abs(np.asarray(a[pair]) - np.asarray(b)).max()) for a, b in layers)


if __name__ == "__main__":
    main()
