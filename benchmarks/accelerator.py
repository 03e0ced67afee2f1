"""How many coupled updates a second does an accelerator make, with the code that runs on a CPU?

Pairs of width three, 180 updates each with all five steps and the full ledger, float64, arrays on the device. Also compares a sample
of pairs with the general loop of `train`. Targets on an H200 at 262 144 pairs: 4e8 updates/s at depth 1 and 1e8 at depth 4.

    python benchmarks/accelerator.py --pairs 262144
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import whorl as wh
from whorl.ensemble import _lane_program


def problem(depth: int, pairs: int, updates: int) -> tuple:
    """Random networks, tasks, schedules and turns, the pairs along the last axis."""
    rng = np.random.default_rng(depth)
    weights = np.exp(4.0 * rng.standard_normal((depth, 3, 3, pairs)))
    layers = 0.9 * weights / weights.sum(axis=1, keepdims=True) + 0.1 / 3
    inputs = np.concatenate(
        [np.broadcast_to(np.eye(3)[:, :, None], (3, 3, pairs)), np.moveaxis(rng.dirichlet(np.ones(3), (3, pairs)), 2, 1)]
    )
    teacher = np.moveaxis(rng.dirichlet(np.ones(3), (3, pairs)), 1, 2)
    targets = np.einsum("sip,iap->sap", inputs, teacher)
    order = rng.permuted(np.broadcast_to(np.arange(6, dtype=np.int32)[:, None, None], (6, updates // 6, pairs)), axis=0)
    order = np.moveaxis(order, 0, 1).reshape(updates, pairs)
    turns = (2 * rng.integers(0, 2, (updates, pairs)) - 1).astype(np.int32)
    return layers, inputs, targets, order, turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=16384, help="(default: %(default)s)")
    parser.add_argument("--updates", type=int, default=180, help="(default: %(default)s)")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 4], help="(default: 1 4)")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}: {asked.pairs} pairs, {asked.updates} updates, float64")
    for depth in asked.depths:
        host = problem(depth, asked.pairs, asked.updates)
        numbers = np.repeat(np.array([[0.2], [1.0], [0.1]]), asked.pairs, axis=1)
        data = [jnp.asarray(array) for array in (host[0], host[1], host[2][:, :2], *host[3:], numbers)]
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
            print(f"depth {depth}, {kept:<18} {asked.pairs * asked.updates / min(times):10.3e} updates/s  (first call {compiled:.1f} s)")
        agreement(depth, host, out)


def agreement(depth: int, host: tuple, out: tuple) -> None:
    """The first pairs again through the general loop."""
    worst = 0.0
    for pair in range(3):
        layers, inputs, targets, order, turns = (array[..., pair] for array in host)
        one = wh.train(wh.Network(list(layers)), inputs, targets, policy=wh.step_matched(0.2), schedule=order, turns=turns)
        worst = max(worst, float(np.abs(np.asarray(out[2])[..., pair] - np.stack(one.nonreciprocal.layers)).max()))
    print(f"depth {depth}: largest difference of a final weight from the general loop {worst:.1e}")


if __name__ == "__main__":
    main()
