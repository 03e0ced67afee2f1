"""How do time and memory grow?

Exponents of K @ v, of the coefficient Q and of `train_many`, measured; and Q in forward passes.

Sizes double, times are the best of several turns, by the clock and by processor seconds, and an
exponent is the slope of a straight line through logarithms. Memory of K @ v and Q is what the
compiled program asks for beyond its arguments (XLA's temporary and output bytes); memory of
`train_many` is the rise of the resident peak during a call in a fresh process (Linux only). K @ v
and Q should be linear in depth and samples and quadratic in width. "Q" is one second-order jet with
the rotational potential given; "Q with scores" is all of `wh.curvature`, which finds it first, by
two times sixteen Krylov products for the one sample that drives the turn.

    python benchmarks/growth.py                   # about five minutes on two cores; writes
    benchmarks/results/growth.png
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "3"
)  # XLA warns at length when it folds the dense law's constants

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

import timing  # noqa: E402
from peers import train_many  # noqa: E402
from peers.problem import SAMPLES, problem  # noqa: E402

import whorl as wh  # noqa: E402
from whorl.fast import wide  # noqa: E402
from whorl.systems.layered import pull_back  # noqa: E402

HERE = pathlib.Path(__file__).parent
PRODUCTS = 16
SWEEPS = {  # one size varies, the others stay
    "width": ({"depth": 4, "samples": 64}, [256, 512, 1024, 2048]),
    "depth": ({"width": 512, "samples": 64}, [2, 4, 8, 16, 32]),
    "samples": ({"width": 512, "depth": 4}, [64, 128, 256, 512, 1024]),
}
ENSEMBLES = {
    "pairs": ({"updates": 180}, [1024, 2048, 4096, 8192, 16384]),
    "updates": ({"pairs": 1024}, [180, 360, 720, 1440, 2880]),
}
SMALL = {
    "width": ({"depth": 2, "samples": 4}, [128, 256]),
    "depth": ({"width": 128, "samples": 4}, [2, 4]),
}
SMALL_ENSEMBLES = {"pairs": ({"updates": 12}, [256, 512])}
KEPT = {
    "train_many": True,
    "train_many, sums": False,
}  # whether the account of every update is kept
CHILD = """
import json, pathlib, sys
import growth
print(json.dumps(growth.peak(**json.loads(sys.argv[1]))))
"""


def setting(width, depth, samples):
    """A network, inputs, targets, and a field over samples and outputs."""
    rng = np.random.default_rng(0)
    net = wh.Network.random([width] * (depth + 1), seed=1)
    inputs, targets = (jnp.asarray(rng.dirichlet(np.ones(width), samples)) for _ in range(2))
    return net, inputs, targets, jnp.asarray(rng.standard_normal((samples, width)))


def forward(net, inputs, targets, field):
    return net.outputs(inputs)


def product(net, inputs, targets, field):
    return wh.response(net, inputs) @ field


def law():
    """The leaky turn by products with the response of the driving sample alone."""
    return wh.rotational(base=wh.krylov(wh.leaky(0.1), most=PRODUCTS))


def rotational_potential(net, inputs, targets):
    """The rotational potential that sample 0 drives."""
    driven = wh.response(net, inputs, selected=0)
    return jax.jit(lambda driven, error: law().parts(driven, error)[1])(
        driven, targets[:1] - driven.predictions
    )


def jet_coefficient(net, inputs, targets, potential):
    """Q with the potential given: what `wh.curvature` does after it has it."""
    predictions, moved, bent = wide.jet_single(
        net, inputs, net.trace(inputs[:1]).flows, pull_back(net.layers, potential)
    )
    return (jnp.sum(moved**2) - jnp.sum((targets - predictions) * bent)) / (2 * inputs.shape[0])


def whole_coefficient(net, inputs, targets, field):
    return wh.curvature(net, inputs, targets, selected=0, law=law()).coefficient


def programs(sizes):
    """Compiled programs as (name, call without arguments, bytes beyond the arguments)."""
    net, inputs, targets, field = setting(**sizes)
    potential = rotational_potential(net, inputs, targets)
    made = {
        "forward pass": (forward, field),
        "K @ v": (product, field),
        "Q": (jet_coefficient, potential),
        "Q with scores": (whole_coefficient, field),
    }
    for name, (function, last) in made.items():
        compiled = jax.jit(function).lower(net, inputs, targets, last).compile()
        needs = compiled.memory_analysis()
        yield (
            name,
            lambda run=compiled, last=last: jax.block_until_ready(run(net, inputs, targets, last)),
            memory(needs),
        )


def memory(needs):
    return needs.temp_size_in_bytes + needs.output_size_in_bytes


def wide_growth(rounds, sweeps):
    """Seconds and bytes of K @ v and Q for every size, as {(quantity, size).

    [(size, processor seconds, bytes, seconds), ...]}.
    """
    seen = {}
    for varied, (fixed, values) in sweeps.items():
        for value in values:
            made = list(programs(fixed | {varied: value}))
            seconds = timing.in_turns({name: call for name, call, _ in made}, rounds, seconds=0.2)
            for name, _, needed in made:
                seen.setdefault((name, varied), []).append(
                    (value, seconds[name][1], needed, seconds[name][0])
                )
            print(
                f"  {varied} {value}: "
                + ", ".join(f"{name} {1e3 * clocks[0]:.1f} ms" for name, clocks in seconds.items()),
                flush=True,
            )
    return {key: points for key, points in seen.items() if key[0] != "forward pass"}


def ensemble_growth(rounds, sweeps):
    """The same for `train_many` at depth 1, with the account of every update kept, and with its
    sums alone.
    """
    seen = {}
    for varied, (fixed, values) in sweeps.items():
        for value in values:
            sizes = fixed | {varied: value}
            given = problem(sizes["pairs"], 1, epochs=sizes["updates"] // SAMPLES)
            calls = {
                name: lambda given=given, record=record: train_many.run(**given, record=record)
                for name, record in KEPT.items()
            }
            seconds = timing.in_turns(calls, rounds)
            for name, record in KEPT.items():
                seen.setdefault((name, varied), []).append(
                    (value, seconds[name][1], fresh_peak(**sizes, record=record), seconds[name][0])
                )
            print(
                f"  {varied} {value}: "
                + ", ".join(f"{name} {1e3 * clocks[0]:.1f} ms" for name, clocks in seconds.items()),
                flush=True,
            )
    return seen


def peak(pairs, updates, record):
    """How far one call raises the resident peak of this process, in bytes, once everything is
    compiled and the problem is made.
    """
    given = problem(pairs, 1, epochs=updates // SAMPLES)
    train_many.run(**{name: array[:256] for name, array in given.items()}, record=record)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = resident("VmRSS")
    train_many.run(**given, record=record)
    return max(resident("VmHWM") - before, 1)


def resident(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def fresh_peak(**sizes):
    """`peak` in a process of its own, or nothing where there is no such file system."""
    if not pathlib.Path("/proc/self/clear_refs").exists():
        return float("nan")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    }
    command = [sys.executable, "-c", CHILD, json.dumps(sizes)]
    return json.loads(
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    )


def exponent(points, at):
    """Slope of a straight line through logarithms."""
    sizes, values = (
        np.array([point[0] for point in points], dtype=float),
        np.array([point[at] for point in points], dtype=float),
    )
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def passes(rounds, width=512, depth=8, samples=64):
    """Q in forward passes at one size."""
    sizes = {"width": width, "depth": depth, "samples": samples}
    made = {name: call for name, call, _ in programs(sizes)}
    seconds = timing.in_turns(made, rounds)
    base = seconds["forward pass"]
    rows = [
        [name, f"{1e3 * clock[0]:.2f}", *(f"{a / b:.2f}" for a, b in zip(clock, base, strict=True))]
        for name, clock in seconds.items()
    ]
    print(f"\n**In forward passes**, width {width}, depth {depth}, {samples} samples, float64\n")
    print(
        timing.table(["program", "ms", "forward passes, clock", "forward passes, processor"], rows)
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=4, help="how many turns each program gets at each size"
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=HERE / "results" / "growth.png",
        help="where the plot goes",
    )
    options = timing.asked(
        parser, rounds=1, out=pathlib.Path(tempfile.gettempdir()) / "whorl-growth-smoke.png"
    )
    print(timing.machine())
    passes(options.rounds, *((128, 2, 4) if options.smoke else ()))
    print()
    wide_sweeps, many_sweeps = (SMALL, SMALL_ENSEMBLES) if options.smoke else (SWEEPS, ENSEMBLES)
    seen = wide_growth(options.rounds, wide_sweeps) | ensemble_growth(options.rounds, many_sweeps)
    rows = [
        [name, varied, *(f"{exponent(points, at):.2f}" for at in (3, 1, 2))]
        for (name, varied), points in seen.items()
    ]
    print()
    print(
        timing.table(
            [
                "quantity",
                "in",
                "exponent time, clock",
                "exponent time, processor",
                "exponent memory",
            ],
            rows,
        )
    )
    try:
        import growth_plot
    except ImportError as error:
        print(f"no plot: {error}")
        return
    growth_plot.draw(seen, exponent, options.out)
    print(f"\nplot written to {options.out.name}")


if __name__ == "__main__":
    main()
