"""How often do the bootstrap intervals of a regression hold the truth?

Data sets are drawn from a known matrix. In every row each column of it is drawn anew around its mean
(units differ), then 200 counts are drawn; rows are fitted as shares. Tables like 212 precincts and
tables of 30 rows, a truth inside, one with exact zeros, and one of five parts. Four ways to read the same draws:
percentiles; percentiles at a level that makes up for few rows, as Student's t does (`expanded`,
Hesterberg 2015); the further of these and their mirror images in the fit (`mirrored`: what `bootstrap`
gives); and BCa (Efron 1987), which is told of skewness by leaving out one row at a time.

    python benchmarks/coverage.py                 # three minutes
    python benchmarks/coverage.py --csv docs/data/coverage.csv
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import timing
from scipy.stats import norm

from whorl.regress import FlowRegressor, bootstrap
from whorl.regress.descent import minimise
from whorl.regress.losses import LOSSES
from whorl.regress.resample import _tail

TRUTHS = {
    "inside": np.array([[0.7, 0.2, 0.3], [0.2, 0.6, 0.3], [0.1, 0.2, 0.4]]),
    "with zeros": np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.05], [0.0, 0.1, 0.95]]),
    "five parts": np.array(
        [
            [0.8, 0.05, 0.0, 0.0, 0.1],
            [0.1, 0.9, 0.1, 0.2, 0.0],
            [0.1, 0.0, 0.85, 0.0, 0.3],
            [0.0, 0.05, 0.0, 0.8, 0.0],
            [0.0, 0.0, 0.05, 0.0, 0.6],
        ]
    ),
}
HEAD = ["rows", "truth", "loss", "intervals", "positive", "worst", "zero", "width", "sets"]


def drawn(rng, rows, truth, spread=30, trials=200):
    """Inputs, and counts of units whose columns differ."""
    x = rng.dirichlet(np.linspace(2.0, 1.0, len(truth)), rows)
    own = rng.standard_gamma(np.broadcast_to(spread * truth, (rows, *truth.shape)))
    own = own / own.sum(axis=1, keepdims=True)
    return x, rng.multinomial(trials, np.einsum("rij,rj->ri", own, x))


def corrected(draws, best, x, y, loss):
    """The two levels of every entry by which BCa reads its draws."""
    n = len(x)
    shares = y / y.sum(axis=1, keepdims=True)
    posed = LOSSES[loss](x, shares, np.ones((n, n)) - np.eye(n))
    without = minimise(posed, np.full((n, *best.shape), 1 / len(best)), 1e-9, 500).layer
    apart = without.mean(axis=0) - without
    skew = np.sum(apart**3, axis=0) / (6 * np.maximum(np.sum(apart**2, axis=0), 1e-60) ** 1.5)
    below = np.mean(draws < best, axis=0) + np.mean(draws == best, axis=0) / 2
    bias = norm.ppf(np.clip(below, 1 / len(draws), 1 - 1 / len(draws)))
    ends = [bias + z for z in norm.ppf([0.025, 0.975])]
    return [norm.cdf(bias + end / np.maximum(1 - skew * end, 1e-3)) for end in ends]


def ways(found, model, x, y):
    """Low and high ends of 95 % intervals, by four readings of the same draws."""
    draws, tail = found.draws, _tail(0.025, *x.shape)
    yield "percentile", *np.quantile(draws, [0.025, 0.975], axis=0)
    yield "expanded", *np.quantile(draws, [tail, 1 - tail], axis=0)
    yield "mirrored", found.low, found.high
    low, high = corrected(draws, model.matrix, x, y, model.loss)
    ordered, last = np.sort(draws, axis=0), len(draws) - 1
    read = (
        np.take_along_axis(ordered, np.rint(at * last).astype(int)[None], 0)[0]
        for at in (low, high)
    )
    yield "BCa", *read


def cell(rows, truth, loss, sets, repeats):
    """How often every entry was held, and how wide its intervals were, by every reading."""
    held, width = {}, {}
    for seed in range(sets):
        x, y = drawn(np.random.default_rng([seed, rows]), rows, truth)
        model = FlowRegressor(loss=loss)
        found = bootstrap(model, x, y, repeats=repeats, seed=seed)
        for name, low, high in ways(found, model, x, y):
            held.setdefault(name, []).append((low <= truth) & (truth <= high))
            width.setdefault(name, []).append(high - low)
    return {name: (np.mean(held[name], axis=0), np.mean(width[name], axis=0)) for name in held}


def table(sizes, losses, sets, repeats):
    lines = []
    for rows, loss, (name, truth) in (
        (rows, loss, truth) for rows in sizes for loss in losses for truth in TRUTHS.items()
    ):
        for way, (held, width) in cell(rows, truth, loss, sets, repeats).items():
            inside, zero = held[truth > 0], held[truth == 0]
            lines.append(
                [
                    *(str(rows), name, loss, way),
                    *(f"{inside.mean():.3f}", f"{inside.min():.3f}"),
                    *(f"{zero.mean():.3f}" if zero.size else "", f"{width.mean():.3f}", str(sets)),
                ]
            )
    return lines


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=(30, 212), help="of the tables")
    parser.add_argument("--loss", nargs="+", default=tuple(LOSSES), help="squared, kl")
    parser.add_argument("--sets", type=int, default=300, help="data sets per cell")
    parser.add_argument("--repeats", type=int, default=500, help="bootstrap fits per data set")
    parser.add_argument("--csv", help="where to write the table")
    given = timing.asked(parser, sets=3, repeats=20)
    lines = table(given.rows, given.loss, given.sets, given.repeats)
    print(timing.table(HEAD, lines))
    if given.csv:
        with Path(given.csv).open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *lines])


if __name__ == "__main__":
    main()
