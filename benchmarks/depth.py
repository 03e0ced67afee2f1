"""When do hidden layers, a turn or another law help a regression?

Two questions, two tables. Held-back rows: how well does a matrix of limited rank (a hidden layer of
that width) predict rows that it has not seen? The way there: how far above the optimum is a learner
after the same number of updates? Teachers of known rank are drawn anew, `--draws` of them for each
rank and each number of counts per row; every number is a mean over them with the half-width of its
95 % interval. Measured tables are split in five folds instead.

    python benchmarks/depth.py                                 # three minutes
    python benchmarks/depth.py --data ../shared/data --write   # the page, its tables and its picture
"""

import argparse
import csv
import hashlib
import warnings
from pathlib import Path

import numpy as np
import timing
from scipy.stats import t
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from whorl.regress import FlowRegressor

LEARNERS = ("exponentiated", "natural", "reciprocal", "step_matched", "adaptive")
MODELS = ("rank 1", "rank 2", "rank 3", "one layer")
COUNTS = (60, 2000)  # per row: noisy and quiet
PASSES = (1, 5)
FRESH = 400  # rows that a teacher's models have not seen
DOCS = Path(__file__).parent.parent / "docs"
HELD, WAYS = DOCS / "data" / "depth.csv", DOCS / "data" / "depth_ways.csv"
PAGE, PICTURE = DOCS / "theory" / "depth.md", DOCS / "images" / "depth.png"
HEADS = {
    HELD: ["data", "model", "r2", "half", "gain", "gain_half", "draws"],
    WAYS: ["data", "learner", "passes", "left", "half", "ratio", "low", "high", "draws"],
}


def teacher(rank, counts, rows, seed, parts=4):
    """Inputs, and counts drawn around a matrix with a hidden layer of width `rank`, as shares."""
    rng = np.random.default_rng([seed, rank, counts])
    matrix = rng.dirichlet(np.full(parts, 0.5), rank).T @ rng.dirichlet(np.full(rank, 0.3), parts).T
    x = rng.dirichlet(np.ones(parts), rows + FRESH)
    y = rng.multinomial(counts, x @ matrix.T) / counts
    return (x[:rows], y[:rows]), (x[rows:], y[rows:])


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


def splits(rows, draws, folder):
    """Every data set with its pairs of rows to fit and rows to predict."""
    for rank in (1, 2, 3):
        for counts in COUNTS:
            name = f"teacher of rank {rank}, {counts} counts"
            yield name, [teacher(rank, counts, rows, seed) for seed in range(draws)]
    for name, (x, y) in measured(folder).items():
        folds = KFold(5, shuffle=True, random_state=0).split(x)
        yield name, [((x[fit], y[fit]), (x[rest], y[rest])) for fit, rest in folds]


def spread(values):
    """The mean, and the half-width of its 95 % interval."""
    values = np.asarray(values)
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(t.ppf(0.975, len(values) - 1) * error)


def held_back(problems):
    """R squared on rows that were not fitted, and what is gained on one layer without a limit."""
    lines = []
    for name, pairs in problems.items():
        width = min(pairs[0][0][0].shape[1], pairs[0][0][1].shape[1])
        models = {
            f"rank {m}": FlowRegressor((m,), n_starts=2, tol=1e-7, max_iter=200)
            for m in range(1, width)
        }
        models["one layer"] = FlowRegressor()
        scores = {
            key: np.array([model.fit(*known).score(*fresh) for known, fresh in pairs])
            for key, model in models.items()
        }
        for key, found in scores.items():
            numbers = (*spread(found), *spread(found - scores["one layer"]))
            lines.append([name, key, *(f"{number:.4f}" for number in numbers), str(len(pairs))])
    return lines


def ways(problems):
    """The share of the null loss that is left above the optimum, and its ratio to the reciprocal.

    Ratios are geometric means, each pair of learners from the same start and in the same order.
    """
    lines = []
    for name, pairs in problems.items():
        best = [FlowRegressor().fit(*known) for known, _ in pairs]
        for passes in PASSES:
            left = {
                learner: np.array(
                    [
                        (_trained(learner, passes, seed, known).loss_ - one.loss_) / one.null_loss_
                        for seed, ((known, _), one) in enumerate(zip(pairs, best, strict=True))
                    ]
                )
                for learner in LEARNERS
            }
            for learner, found in left.items():
                mean, half = spread(np.log(found / left["reciprocal"]))
                ratio = np.exp([mean, mean - half, mean + half])
                numbers = [f"{number:.4f}" for number in (*spread(found), *ratio)]
                lines.append([name, learner, str(passes), *numbers, str(len(pairs))])
    return lines


def _trained(learner, passes, seed, known):
    return FlowRegressor(learner=learner, epochs=passes, scale=0.3, random_state=seed).fit(*known)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path, lines):
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADS[path], *lines])


def renewed(path, lines, order):
    """The rows of a CSV with these in the place of those of the same data sets."""
    fresh = {line[0] for line in lines}
    kept = (
        [list(row.values()) for row in read(path) if row["data"] not in fresh]
        if path.exists()
        else []
    )
    return sorted([*kept, *lines], key=lambda line: order.index(line[0]))


def held_table(rows):
    """The first table of the page, from the rows of its CSV."""
    lines = [f"| data | {' | '.join(MODELS)} |", "|---|" + "--:|" * len(MODELS)]
    for name in dict.fromkeys(row["data"] for row in rows):
        own = {row["model"]: row for row in rows if row["data"] == name}
        cells = [
            f"{float(own[key]['r2']):.3f} ± {float(own[key]['half']):.3f}" if key in own else ""
            for key in MODELS
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def ways_table(rows):
    """The second table of the page, from the rows of its CSV."""
    others = [learner for learner in LEARNERS if learner != "reciprocal"]
    heads = ["reciprocal, left", *(f"{learner}, times" for learner in others)]
    lines = [f"| data | passes | {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) + 1)]
    for name, passes in dict.fromkeys((row["data"], row["passes"]) for row in rows):
        own = {
            row["learner"]: row for row in rows if (row["data"], row["passes"]) == (name, passes)
        }
        left = f"{float(own['reciprocal']['left']):.4f} ± {float(own['reciprocal']['half']):.4f}"
        times = [
            "{:.2f} ({:.2f} to {:.2f})".format(
                *(float(own[learner][key]) for key in ("ratio", "low", "high"))
            )
            for learner in others
        ]
        lines.append(f"| {name} | {passes} | {left} | {' | '.join(times)} |")
    return "\n".join(lines)


def paged(page, table):
    """The page with a table in the place of the one that has the same head."""
    lines, head = page.splitlines(), table.splitlines()[0]
    first = next(
        at for at, line in enumerate(lines) if line.startswith(head[: head.index("|", 10)])
    )
    last = first
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    return "\n".join([*lines[:first], *table.splitlines(), *lines[last:]]) + "\n"


def digest():
    """What the picture was drawn from."""
    return hashlib.sha256(HELD.read_bytes()).hexdigest()


def picture(rows, path, drawn_from=""):
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for i, model in enumerate(MODELS[:-1]):
        own = [row for row in rows if row["model"] == model]
        axes.errorbar(
            [float(row["gain"]) for row in own],
            [names.index(row["data"]) + 0.22 * (i - 1) for row in own],
            xerr=[float(row["gain_half"]) for row in own],
            fmt="os^"[i],
            color=f"C{i}",
            label=model,
        )
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=0.02)  # gains are small, losses may be large
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel("held-back R squared, less that of one layer")
    axes.legend(frameon=False, fontsize="small", ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    figure.savefig(path, dpi=130, metadata={"Software": None, "Source": drawn_from})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with measured tables")
    parser.add_argument("--rows", type=int, default=60, help="of the teachers' tables")
    parser.add_argument("--draws", type=int, default=20, help="teachers of every kind")
    parser.add_argument("--only", default="", help="data sets whose name holds this")
    parser.add_argument("--write", action="store_true", help="CSV, picture and tables of the page")
    given = timing.asked(parser, rows=15, draws=2)
    warnings.simplefilter("ignore", ConvergenceWarning)
    known = dict(splits(given.rows, given.draws, given.data))
    problems = {name: pairs for name, pairs in known.items() if given.only in name}
    found = {HELD: held_back(problems)}
    found[WAYS] = ways({name: pairs for name, pairs in problems.items() if "rank 1" not in name})
    for path, lines in found.items():
        rows = [dict(zip(HEADS[path], line, strict=True)) for line in lines]
        print(f"{(held_table if path == HELD else ways_table)(rows)}\n")
    if given.write:
        for path, lines in found.items():
            write(path, renewed(path, lines, list(known)))
            table = (held_table if path == HELD else ways_table)(read(path))
            PAGE.write_text(paged(PAGE.read_text(), table))
        picture(read(HELD), PICTURE, digest())


if __name__ == "__main__":
    main()
