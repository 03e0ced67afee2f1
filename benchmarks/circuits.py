"""What does one update of a circuit cost, against SciPy and against a short plain JAX program?

Random circuits: a tree and more edges, three sources, three outputs, one ground, one sample per
update, float64. All three end at the same conductances before anything is timed; the times are
those of the processor, per update, with threads switched off.

    python benchmarks/circuits.py
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import jax

jax.config.update("jax_enable_x64", True)

import numpy as np  # noqa: E402
import timing  # noqa: E402
from peers import plain_circuit, scipy_circuit  # noqa: E402

import whorl as wh  # noqa: E402

SIZES = ((20, 50, 20_000), (100, 300, 4000), (250, 700, 400), (1000, 3000, 20))
SMOKE = ((20, 50, 8),)
NUDGE = 0.1
RULES = {
    "coupled_learning": lambda: wh.coupled_learning(NUDGE),
    "equilibrium_propagation": lambda: wh.equilibrium_propagation(),
    "equilibrium_propagation, nudged": lambda: wh.equilibrium_propagation(NUDGE),
    "natural_gradient": lambda: wh.natural_gradient(),
}


def problem(nodes, edges, seed=0):
    """Edges, conductances, roles and six samples."""
    draws = np.random.default_rng(seed)
    ends = [(node, int(draws.integers(node))) for node in range(1, nodes)]
    while len(ends) < edges:
        one, other = map(int, draws.integers(nodes, size=2))
        if one != other:
            ends.append((one, other))
    sizes = np.exp(draws.standard_normal(len(ends)))
    roles = {"sources": [0, 1, 2], "outputs": [nodes - 1, nodes - 2, nodes - 3], "ground": [3]}
    return ends, sizes, roles, draws.uniform(0, 1, (6, 3)), draws.uniform(0, 0.3, (6, 3))


def case(nodes, edges, updates, rule):
    """The same run by each of the three."""
    ends, sizes, roles, x, y = problem(nodes, edges)
    order = np.random.default_rng(1).integers(6, size=updates)
    circuit, plain = wh.Circuit(ends, sizes, **roles), plain_circuit.Plain(ends, **roles)
    mine, name, scale = RULES[rule](), rule, 1e-3

    def ours():
        run = wh.learn(circuit, x, y, rule=mine, scale=scale, schedule=order, record=False)
        return np.asarray(run.system.conductances)

    by_jax = plain_circuit.learner(plain, x, y, name, NUDGE)
    by_scipy = scipy_circuit.learner(plain, x, y, name, NUDGE)
    few = max(updates // 100, 3)
    return {
        "whorl": (ours, updates),
        "plain JAX": (lambda: np.asarray(by_jax(sizes, order, scale)), updates),
        "SciPy": (lambda: by_scipy(sizes, order[:few], scale), few),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--most", type=int, default=1000, help="nodes (default: %(default)s)")
    asked = timing.asked(parser, rounds=1)
    print(timing.machine(("jax", "jaxlib", "numpy", "scipy")))
    rows = []
    for nodes, edges, updates in SMOKE if asked.smoke else SIZES:
        for rule in RULES if nodes <= asked.most else ():
            calls = case(nodes, edges, updates, rule)
            ends = {name: call() for name, (call, made) in calls.items() if made == updates}
            if not np.allclose(*ends.values(), rtol=1e-9):
                raise SystemExit(f"{rule} at {nodes} nodes ends elsewhere than its peer")
            found = timing.in_turns({name: call for name, (call, _) in calls.items()}, asked.rounds)
            each = {name: work / calls[name][1] for name, (_, work) in found.items()}
            times = [f"{1e3 * each[name]:.4f}" for name in calls]
            ratios = [f"{each[name] / each['whorl']:.3g}" for name in ("plain JAX", "SciPy")]
            rows.append([f"{nodes} nodes, {edges} edges", rule, *times, *ratios])
    head = ["circuit", "rule", *(f"{name}, ms" for name in calls), "JAX / whorl", "SciPy / whorl"]
    print(timing.table(head, rows))


if __name__ == "__main__":
    main()
