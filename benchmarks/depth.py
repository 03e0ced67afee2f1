"""When do hidden layers, a turn or another law help a regression?

Two questions, two tables. Held-back rows: how well does a matrix of limited rank (a hidden layer of
that width) predict rows that it has not seen, for teachers of known rank and for measured data? The
way there: how far above the optimum is a learner after the same number of updates?

    python benchmarks/depth.py                         # five minutes
    python benchmarks/depth.py --data ../shared/data   # with measured tables
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import timing
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from whorl.regress import FlowRegressor, compare

LEARNERS = ("exponentiated", "natural", "reciprocal", "step_matched", "adaptive")


def taught(rank, rows=60, parts=4, trials=60, seed=0):
    """Inputs, and counts drawn around a teacher with a hidden layer of width `rank`."""
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(parts), rows)
    teacher = (
        rng.dirichlet(np.full(parts, 0.5), rank).T @ rng.dirichlet(np.full(rank, 0.3), parts).T
    )
    return x, rng.multinomial(trials, x @ teacher.T) / trials


def measured(folder):
    """White cells and precincts, where they are on this machine."""
    found = {}
    for name, place in (
        ("white cells", "compositions/white_cells.csv"),
        ("precincts", "elections/senc.csv"),
    ):
        if folder is None or not (Path(folder) / place).exists():
            continue
        lines = list(csv.DictReader((Path(folder) / place).read_text().splitlines()))
        if name == "white cells":
            groups = [
                [line for line in lines if line["Experiment"] == one]
                for one in ("ImageAnalysis", "MicroscopicInspection")
            ]
            names = ("GLM", "GLM")
        else:
            groups, names = [lines, lines], (("white", "black", "natam"), ("dem", "rep", "non"))
        tables = (
            [[float(line[part]) for part in of] for line in group]
            for group, of in zip(groups, names, strict=True)
        )
        found[name] = tuple(np.array(rows) / np.sum(rows, axis=1, keepdims=True) for rows in tables)
    return found


def depths(problems, folds=5):
    """R squared on held-back rows and its standard error, for every rank."""
    cv, table = KFold(folds, shuffle=True, random_state=0), {}
    for name, (x, y) in problems.items():
        models = {
            f"rank {m}": FlowRegressor((m,), n_starts=2, tol=1e-7, max_iter=200)
            for m in range(1, min(x.shape[1], y.shape[1]))
        }
        table[name] = compare(x, y, models | {"one layer": FlowRegressor()}, cv=cv)
    return table


def ways(problems, epochs=(1, 5), scale=0.3, starts=5):
    """The share of the null loss that is left above the optimum, the median of some starts."""
    table = {}
    for name, (x, y) in problems.items():
        best = FlowRegressor().fit(x, y)
        for learner in LEARNERS:
            table[name, learner] = [
                float(
                    np.median(
                        [
                            (
                                FlowRegressor(
                                    learner=learner, epochs=many, scale=scale, random_state=seed
                                )
                                .fit(x, y)
                                .loss_
                                - best.loss_
                            )
                            / best.null_loss_
                            for seed in range(starts)
                        ]
                    )
                )
                for many in epochs
            ]
    return table


RANKS = ("rank 1", "rank 2", "rank 3", "one layer")


def picture(deep, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for i, rank in enumerate(RANKS):
        there = [place for place, found in enumerate(deep.values()) if rank in found]
        rows = [found for found in deep.values() if rank in found]
        axes.errorbar(
            np.array(there) + 0.15 * i,
            [found[rank][0] - found["one layer"][0] for found in rows],
            [found[rank][1] for found in rows],
            fmt="o",
            color=f"C{i}",
            label=rank,
        )
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set_yscale("symlog", linthresh=0.2)  # white cells are far below all others
    axes.set_xticks(np.arange(len(deep)) + 0.2, list(deep), fontsize="small")
    axes.set_ylabel("held-back R squared,\nless that of one layer")
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="lower left")
    figure.savefig(path, dpi=130, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with measured tables")
    parser.add_argument("--figure", help="where to draw the first table, .png")
    parser.add_argument("--rows", type=int, default=60, help="of the teachers' tables")
    given = timing.asked(parser, rows=15)
    warnings.simplefilter("ignore", ConvergenceWarning)
    problems = {
        f"teacher of rank {rank}": taught(rank, given.rows) for rank in (1, 2, 3)
    } | measured(given.data)
    deep = depths(problems)
    print("| data | rank 1 | rank 2 | rank 3 | one layer |\n|---|--:|--:|--:|--:|")
    for name, found in deep.items():
        cells = [
            f"{found[key][0]:.3f} ({found[key][1]:.3f})" if key in found else "" for key in RANKS
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
    if given.figure:
        picture(deep, given.figure)
    way = ways({name: problems[name] for name in problems if name != "teacher of rank 1"})
    print("\n| data | learner | after 1 pass | after 5 passes |\n|---|---|--:|--:|")
    for (name, learner), (one, five) in way.items():
        print(f"| {name} | {learner} | {one:.4f} | {five:.4f} |")
    return deep, way


if __name__ == "__main__":
    main()
