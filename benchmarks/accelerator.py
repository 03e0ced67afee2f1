"""How many coupled updates a second does an accelerator make, with the code that runs on a CPU?

Pairs of width three, 180 updates each with all five steps and the full ledger, float64, arrays on
the device. Also compares a sample of pairs with the general loop of `train`. Targets on an H200 at
262 144 pairs: 4e8 updates/s at depth 1 and 1e8 at depth 4.

    python benchmarks/accelerator.py --pairs 262144
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import timing

import whorl as wh
from whorl.ensemble import _lane_program
from whorl.fast.programs import BLOCK


def problem(depth: int, pairs: int, updates: int) -> tuple:
    """Random layers, inputs, targets, schedules and turns for every pair."""
    rng = np.random.default_rng(depth)
    weights = np.exp(4.0 * rng.standard_normal((depth, pairs, 3, 3)))
    layers = 0.9 * weights / weights.sum(axis=2, keepdims=True) + 0.1 / 3
    inputs = np.concatenate(
        [np.broadcast_to(np.eye(3), (pairs, 3, 3)), rng.dirichlet(np.ones(3), (pairs, 3))], axis=1
    )
    targets = inputs @ rng.dirichlet(np.ones(3), (pairs, 3))
    epochs = np.broadcast_to(np.arange(6, dtype=np.int32), (pairs, updates // 6, 6))
    turns = (2 * rng.integers(0, 2, (pairs, updates)) - 1).astype(np.int32)
    return layers, inputs, targets, rng.permuted(epochs, axis=2).reshape(pairs, updates), turns


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=16384, help="(default: %(default)s)")
    parser.add_argument("--updates", type=int, default=180, help="(default: %(default)s)")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 4], help="(default: 1 4)")
    asked = timing.asked(parser, pairs=BLOCK, updates=12, depths=[1])
    if asked.pairs % BLOCK:
        parser.error(f"--pairs must be a multiple of {BLOCK}, but it is {asked.pairs}")
    jax.config.update("jax_enable_x64", True)
    print(
        f"{jax.devices()[0].device_kind}, jax {jax.__version__}: {asked.pairs} pairs, "
        f"{asked.updates} updates, float64"
    )
    for depth in asked.depths:
        host = problem(depth, asked.pairs, asked.updates)
        numbers = np.broadcast_to(np.array([0.2, 1.0, 0.1]), (asked.pairs, 3))
        data = [
            [jnp.asarray(layer) for layer in host[0]],
            *(jnp.asarray(array) for array in (*host[1:], numbers)),
        ]
        for record in (False, True):
            program = _lane_program("step_matched", "curvature", record)
            start = time.perf_counter()
            jax.block_until_ready(program(*data))
            compiled = time.perf_counter() - start
            times = []
            for _ in range(3):
                start = time.perf_counter()
                out = jax.block_until_ready(program(*data))
                times.append(time.perf_counter() - start)
            kept = "every update kept" if record else "sums kept"
            print(
                f"depth {depth}, {kept:<18} {asked.pairs * asked.updates / min(times):10.3e} "
                f"updates/s  (first call {compiled:.1f} s)"
            )
        agreement(depth, host, out[3])


def agreement(depth: int, host: tuple, turning: list) -> None:
    """The first pairs again through the general loop, against the final layers of the nonreciprocal
    learners.
    """
    worst = 0.0
    for pair in range(3):
        inputs, targets, order, turns = (array[pair] for array in host[1:])
        one = wh.train(
            wh.Network(list(host[0][:, pair])),
            inputs,
            targets,
            policy=wh.step_matched(0.2),
            schedule=order,
            turns=turns,
        )
        for ours, theirs in zip(turning, one.nonreciprocal.layers, strict=True):
            worst = max(worst, float(np.abs(np.asarray(ours[pair]) - np.asarray(theirs)).max()))
    print(f"depth {depth}: largest difference of a final weight from the general loop {worst:.1e}")


if __name__ == "__main__":
    main()
