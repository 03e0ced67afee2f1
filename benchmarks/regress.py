"""How much faster than EM is a one-layer fit, and how long do a thousand refits take?

Every solver starts from even columns and runs until its loss is 1e-8 above the optimum or less; EM
and SQUAREM are told the optimum and stop themselves there, which no user of theirs could; after
`--limit` seconds they are stopped, and their ratio is a lower bound (">"). Ratios are of one run, in
processor seconds of one thread (set OPENBLAS_NUM_THREADS=1). SLSQP and a quadratic program
(quadprog, where it is installed) solve the squared problem.

    python benchmarks/regress.py            # two minutes: EM on 100 000 rows takes most of it
    python benchmarks/regress.py --rows 10000
"""

import argparse
import itertools
import time

import numpy as np
import timing
from scipy.optimize import minimize

from whorl.regress import FlowRegressor, bootstrap
from whorl.regress.descent import minimise
from whorl.regress.losses import LOSSES

ABOVE = 1e-8


def problem(rows, width, seed=0, trials=200):
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(width), rows)
    moves = rng.dirichlet(np.full(width, 0.2), width).T
    return x, rng.multinomial(trials, x @ moves.T) / trials


def clocked(work, repeats=1):
    """Processor seconds of the least of some calls, in this thread: other work does not count."""
    times, found = [], None
    for _ in range(repeats):
        start = time.thread_time()
        found = work()
        times.append(time.thread_time() - start)
    return min(times), found


def entropy(y):
    return np.sum(y[y > 0] * np.log(y[y > 0])) / len(y)


def value(p, x, y):
    with np.errstate(divide="ignore"):
        return entropy(y) - np.sum(np.where(y > 0, y * np.log(x @ p.T), 0.0)) / len(y)


def turned(p, x, y):
    """One round of EM."""
    p = p * ((y / (x @ p.T)).T @ x)
    return p / p.sum(axis=0)


def late(until):
    return time.thread_time() > until


def em(x, y, best, limit):
    until = time.thread_time() + limit
    p = np.full((y.shape[1], x.shape[1]), 1 / y.shape[1])
    for number in itertools.count(1):
        p = turned(p, x, y)
        if number % 10 == 0 and ((above := value(p, x, y) - best) <= ABOVE or late(until)):
            return number, above
    return None


def squarem(x, y, best, limit):
    """EM with squared extrapolation (Varadhan and Roland 2008, third steplength).

    An extrapolation may leave the simplex. Entries that it would take to zero or below keep a
    thousandth of what two rounds of EM leave them: a zero would never return. If the loss has grown
    after all, those two rounds are the step.
    """
    p, last = np.full((y.shape[1], x.shape[1]), 1 / y.shape[1]), np.inf
    until = time.thread_time() + limit
    for number in itertools.count(3, 3):
        one = turned(p, x, y)
        two = turned(one, x, y)
        first, second = one - p, two - 2 * one + p
        length = min(-np.linalg.norm(first) / max(np.linalg.norm(second), 1e-300), -1.0)
        tried = np.maximum(p - 2 * length * first + length**2 * second, 1e-3 * two)
        p = turned(tried / tried.sum(axis=0), x, y)
        now = value(p, x, y)
        if not now <= last:
            p, now = two, value(two, x, y)
        last = now
        if now - best <= ABOVE or late(until):
            return number, now - best
    return None


def program(x, y):
    import quadprog

    (n, d), k = x.shape, y.shape[1]
    sums = np.tile(np.eye(d), (k, 1))
    sides = np.r_[np.ones(d), np.zeros(k * d)]
    hessian, linear = np.kron(np.eye(k), x.T @ x / n), (y.T @ x / n).ravel()
    return quadprog.solve_qp(hessian, linear, np.hstack([sums, np.eye(k * d)]), sides, d)


def slsqp(x, y):
    (n, d), k = x.shape, y.shape[1]
    second, cross = x.T @ x / n, y.T @ x / n
    return minimize(
        lambda v: 0.5 * np.sum((v.reshape(k, d) @ second) * v.reshape(k, d)) - v @ cross.ravel(),
        np.full(k * d, 1 / k),
        jac=lambda v: (v.reshape(k, d) @ second - cross).ravel(),
        bounds=[(0, 1)] * (k * d),
        constraints={
            "type": "eq",
            "fun": lambda v: v.reshape(k, d).sum(axis=0) - 1,
            "jac": lambda v: np.tile(np.eye(d), (1, k)),
        },
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-12},
    )


def compared(rows, width, limit, repeats, seed=0):
    x, y = problem(rows, width, seed)
    even, ones = np.full((1, width, width), 1 / width), np.ones(rows)
    table = []
    for loss, others in (
        ("kl", {"EM": em, "EM with SQUAREM": squarem}),
        ("squared", {"SLSQP": slsqp, "quadprog": program}),
    ):
        best = minimise(LOSSES[loss](x, y, ones), even, 1e-14).value[0]
        own, found = clocked(lambda: minimise(LOSSES[loss](x, y, ones), even, ABOVE), repeats)  # noqa: B023
        table.append([f"{loss}, whorl", f"{own * 1e3:.2f}", "1.0", f"{found.steps[0]} steps"])
        for name, solve in others.items():
            arguments = (x, y, best, limit) if loss == "kl" else (x, y)
            try:
                spent, ended = clocked(lambda: solve(*arguments), min(repeats, 3))  # noqa: B023
            except ImportError:
                table.append([f"{loss}, {name}", "not installed", "", ""])
                continue
            told, ratio = "", f"{spent / own:.1f}"
            if loss == "kl":
                told = f"{ended[0]} rounds"
                if ended[1] > ABOVE:
                    told, ratio = f"{told}, still {ended[1]:.0e} above", f"> {ratio}"
            table.append([f"{loss}, {name}", f"{spent * 1e3:.2f}", ratio, told])
    print(f"\n{rows} x {width} x {width}, seed {seed}\n")
    print(timing.table(["loss, program", "ms", "times whorl", "took"], table))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=20)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of EM at most")
    parser.add_argument("--problems", type=int, default=5, help="of the small size")
    given = timing.asked(parser, rows=500, width=4, limit=1.0, problems=1)
    print(timing.machine(("numpy", "scipy")))
    for seed in range(given.problems):  # EM takes from 200 to 2000 rounds, whorl 4 or 5 steps
        compared(212, 3, given.limit, 20, seed)
    compared(given.rows, given.width, given.limit, 1)
    x, y = problem(212, 3)
    for loss in LOSSES:
        spent, _ = clocked(lambda: bootstrap(FlowRegressor(loss=loss), x, y), 3)  # noqa: B023
        print(f"\n1000 refits of 212 x 3 x 3, {loss}: {spent:.2f} s")


if __name__ == "__main__":
    main()
