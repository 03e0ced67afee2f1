"""How close is `K @ v` on a large looped graph to the two bare sparse solves that it needs?

A lattice, which SuperLU factorises, and a random graph, which BiCGSTAB solves without factors. The
bare solves are SciPy's, one of the matrix and one of its transpose, on the same equations with the
factors at hand. Target: at most 3 times both together, at 10 000 nodes and 60 000 edges, as a user
calls it and inside `jax.jit`.

    python benchmarks/graph.py
"""

import argparse

import equinox as eqx
import jax
import numpy as np
import timing

import whorl as wh
from whorl.systems.graph import _flat


def lattice(nodes, sinks):
    """A torus of six neighbours each, whose last nodes are sinks."""
    side = int(nodes**0.5)
    nodes = side**2
    row, column = np.divmod(np.arange(nodes - sinks), side)
    steps = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1)]
    heads = [(row + down) % side * side + (column + right) % side for down, right in steps]
    tails = np.tile(np.arange(nodes - sinks), len(steps))
    ends = list(zip(tails.tolist(), np.concatenate(heads).tolist(), strict=True))
    drawn = np.random.default_rng(0).exponential(size=len(ends))
    shares = drawn / np.bincount(tails, drawn)[tails]
    return wh.Graph(ends, shares, sources=range(10), sinks=range(nodes - sinks, nodes))


def measured(name, graph, rounds):
    """One line of the table."""
    rng = np.random.default_rng(1)
    potential = rng.standard_normal((1, graph.sizes[1]))
    inputs = rng.dirichlet(np.ones(graph.sizes[0]), 1)
    K = wh.response(graph, inputs)
    compiled = eqx.filter_jit(lambda K, potential: K @ potential)
    wiring = graph.wiring
    ready = wiring.pattern.equations(np.asarray(_flat(graph.splits)), graph.solver)
    side = rng.standard_normal(wiring.splitting)
    seen = timing.in_turns(
        {
            "K @ v": lambda: jax.block_until_ready(K @ potential),
            "jit": lambda: jax.block_until_ready(compiled(K, potential)),
            "solves": lambda: (ready.solve(side, True), ready.solve(side, False)),
        },
        rounds,
    )
    whole, inside, bare = seen["K @ v"], seen["jit"], seen["solves"]
    mass = abs(float(K.predictions.sum()) - 1)
    return [
        f"{name}, {graph.solver}",
        f"{len(wiring.nodes)}",
        f"{len(wiring.tails)}",
        f"{1e3 * whole[0]:.2f}",
        f"{1e3 * bare[0]:.2f}",
        f"{whole[0] / bare[0]:.2f} ({whole[1] / bare[1]:.2f})",
        f"{inside[0] / bare[0]:.2f} ({inside[1] / bare[1]:.2f})",
        f"{mass:.1e}",
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=10_000, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    asked = timing.asked(parser, nodes=400, rounds=1)
    jax.config.update("jax_enable_x64", True)
    print(timing.machine(("jax", "scipy")))
    sinks = asked.nodes // 100
    random = wh.Graph.random(asked.nodes, 6 * asked.nodes, inputs=10, outputs=max(3, sinks), seed=0)
    rows = [
        measured(*case, asked.rounds)
        for case in (("lattice", lattice(asked.nodes, sinks)), ("random", random))
    ]
    head = [
        "graph",
        "nodes",
        "edges",
        "K @ v, ms",
        "two solves, ms",
        "ratio (processor)",
        "in jit",
        "mass lost",
    ]
    print(timing.table(head, rows))


if __name__ == "__main__":
    main()
