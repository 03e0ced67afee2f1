"""How close is K v on a wide network to the bare matrix products it needs?

Prints, for one machine and one run, the time of `K @ v` over the time of the same products with
nothing in between (a way back, one product per layer for the scores, a way forward and one product per
layer for the velocities), and for a single sample over the time of reading every layer three times.
Targets: at most 1.3 and at most 2 on a CPU; at least 85 % of the bare rate on an H200.

    python benchmarks/wide.py                                     # width 512, depth 8, 64 samples
    python benchmarks/wide.py --width 4096 --samples 4096         # an accelerator
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import timing

import whorl as wh


def network(width: int, depth: int) -> wh.Network:
    """Random columns, made layer by layer on the device.

    Drawing them on the host would take longer than the benchmark.
    """
    layers = []
    for key in jax.random.split(jax.random.key(0), depth):
        weights = 0.1 + jax.random.uniform(key, (width, width), dtype=jnp.float64)
        layers.append(weights / weights.sum(axis=0, keepdims=True))
    return wh.Network(layers)


@jax.jit
def bare(layers, flows, potential):
    """The products of K v and nothing else."""
    fields = [potential]
    for layer in reversed(layers[1:]):
        fields.append(fields[-1] @ layer)
    scores = [field.T @ flow for field, flow in zip(reversed(fields), flows[:-1], strict=True)]
    moved = flows[0] @ scores[0].T
    for layer, flow, score in zip(layers[1:], flows[1:-1], scores[1:], strict=True):
        moved = moved @ layer.T + flow @ score.T
    return moved


@jax.jit
def three_reads(layers, flow):
    """Three matrix-vector products per layer."""
    for layer in layers:
        flow = flow @ layer.T
    for layer in reversed(layers):
        flow = flow @ layer
    for layer in layers:
        flow = flow @ layer.T
    return flow


def best(calls: dict, repeats: int) -> dict:
    """The shortest time of each call, taken in turn so that all see the same machine."""
    times = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        jax.block_until_ready(call())
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("width", 512), ("depth", 8), ("samples", 64), ("repeats", 30)):
        parser.add_argument(f"--{name}", type=int, default=default, help="(default: %(default)s)")
    asked = timing.asked(parser, width=128, depth=2, samples=4, repeats=2)
    jax.config.update("jax_enable_x64", True)
    net = network(asked.width, asked.depth)
    rng = np.random.default_rng(0)
    inputs = jnp.asarray(rng.dirichlet(np.ones(asked.width), asked.samples))
    potential = jnp.asarray(rng.standard_normal((asked.samples, asked.width)))
    joint, single = wh.response(net, inputs), wh.response(net, inputs, selected=0)
    apply = eqx.filter_jit(lambda response, field: response @ field)
    print(
        f"{jax.devices()[0].device_kind}: width {asked.width}, depth {asked.depth}, "
        f"{asked.samples} samples, float64"
    )
    many = best(
        {
            "K v": lambda: apply(joint, potential),
            "bare": lambda: bare(net.layers, joint.trace.flows, potential),
        },
        asked.repeats,
    )
    flops = 2 * asked.samples * asked.width**2 * (4 * asked.depth - 2)
    times, rate = many["K v"] / many["bare"], many["bare"] / many["K v"]
    speed = f"{flops / many['bare'] / 1e9:.0f} GFLOP/s"
    rows = [
        [
            "K v",
            f"{1e3 * many['K v']:.3f}",
            f"{times:.3f} of the bare products, {rate:.0%} of their rate",
        ],
        ["bare products", f"{1e3 * many['bare']:.3f}", speed],
    ]
    one = best(
        {
            "K* v": lambda: apply(single, potential[:1]),
            "reads": lambda: three_reads(net.layers, inputs[:1]),
        },
        3 * asked.repeats,
    )
    reads = f"{one['K* v'] / one['reads']:.3f} of reading each layer three times"
    rows.append(["K* v", f"{1e3 * one['K* v']:.3f}", reads])
    print(timing.table(["quantity", "ms", "against"], rows))


if __name__ == "__main__":
    main()
