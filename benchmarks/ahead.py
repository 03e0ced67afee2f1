"""Does a policy that looks ahead cost no more at width six than its share of the work?

The arms of the foresight study at depth four: `train_many` with sums only, at width three and at
width six, in turns. The work of an update is its products of matrices, which grow with the cube of
the width: eight times as much at twice the width.

    python benchmarks/ahead.py
"""

import argparse

import jax

jax.config.update("jax_enable_x64", True)

import timing  # noqa: E402
from peers import train_many_widths  # noqa: E402
from peers.widths import Case, problem  # noqa: E402

import whorl as wh  # noqa: E402

NARROW, WIDE, DEPTH = 3, 6, 4


def call(width, policy, pairs, epochs):
    case = Case((width,) * (DEPTH + 1), pairs, epochs=epochs)
    given = problem(case)
    nets = train_many_widths.stacked(given["layers"], given["rates"])
    data = {name: given[name] for name in ("inputs", "targets", "schedule", "turns")}
    return lambda: wh.train_many(nets, **data, policy=policy, record=False)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1024, help="(default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=5, help="of six updates (default: 5)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    asked = timing.asked(parser, pairs=8, epochs=1, rounds=1)
    print(timing.machine())
    rows = []
    for name, policy in (
        ("adaptive", wh.adaptive(0.2)),
        *((f"rollout, horizon {k}", wh.rollout(0.2, horizon=k)) for k in (1, 6, 18)),
    ):
        calls = {width: call(width, policy, asked.pairs, asked.epochs) for width in (NARROW, WIDE)}
        found = timing.in_turns(calls, asked.rounds)
        work = asked.pairs * asked.epochs * 6
        each = (f"{1e6 * found[width][0] / work:.3g}" for width in (NARROW, WIDE))
        ratios = (f"{found[WIDE][clock] / found[NARROW][clock]:.1f}" for clock in (0, 1))
        rows.append([name, *each, *ratios, f"{(WIDE / NARROW) ** 3:.0f}"])
    head = ["policy", f"width {NARROW}, us per update", f"width {WIDE}", "ratio, clock"]
    print(timing.table([*head, "ratio, processor", "ratio of the work"], rows))


if __name__ == "__main__":
    main()
