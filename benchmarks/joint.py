"""Does the leaky law over all samples cost what Gauss-Newton costs?

`learn` with `full_batch=True`, both rules on the same networks and data, in turns; both end at the
same loss to 1e-9 before anything is timed. The first case has fewer fields (samples times outputs less one)
than parameters, the second as many of each, the third more fields: one factorisation in the smaller space.

    python benchmarks/joint.py
"""

import argparse

import jax

jax.config.update("jax_enable_x64", True)

import numpy as np  # noqa: E402
import timing  # noqa: E402

import whorl as wh  # noqa: E402

SIZES = ((4, 4, 4), (4, 16, 4), (4, 80, 4))  # width, samples, depth
SMOKE = ((3, 4, 2),)


def case(width, samples, depth, epochs):
    rng = np.random.default_rng(0)
    net = wh.Network.random((width,) * (depth + 1), seed=rng)
    x = rng.dirichlet(np.ones(width), samples)
    y = x @ rng.dirichlet(np.ones(width), width)
    order = np.zeros(epochs, dtype=int)  # only counts: all samples drive every update
    rules = {"leaky": wh.boundary(wh.leaky(0.1)), "Gauss-Newton": wh.gauss_newton(0.1)}

    def made(rule):
        return wh.learn(net, x, y, rule=rule, scale=0.2, schedule=order, full_batch=True).final

    return {name: lambda rule=rule: float(made(rule)) for name, rule in rules.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=30, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    asked = timing.asked(parser, updates=2, rounds=1)
    print(timing.machine())
    rows = []
    for width, samples, depth in SMOKE if asked.smoke else SIZES:
        calls = case(width, samples, depth, asked.updates)
        one, other = (call() for call in calls.values())
        if not abs(one - other) <= 1e-9 * other:
            raise SystemExit(f"leaky ends at {one!r}, but Gauss-Newton at {other!r}")
        found = timing.in_turns(calls, asked.rounds)
        (ours, our_work), (base, base_work) = found.values()
        label = f"width {width}, depth {depth}, {samples} samples"
        each = (f"{1e3 * seconds / asked.updates:.3g}" for seconds in (ours, base))
        rows.append([label, *each, f"{ours / base:.2f}", f"{our_work / base_work:.2f}"])
    head = ["case", "leaky, ms", "Gauss-Newton, ms", "ratio, clock", "ratio, processor"]
    print(timing.table(head, rows))


if __name__ == "__main__":
    main()
