"""How often is the verdict on measured learners right? Simulates thousands of learners per cell.

    python tools/calibrate.py docs/data/calibration.csv [--experiments 1000] [--minutes 9] [GROUP ...]

writes one line per cell and event: group, cell, event, hits, experiments, sources. The groups are
those of tests/measured/trials.py, which says what each event is. The hits of a chance, such as the
power that is promised, are the sum of all chances. A run goes on where the table ends, as long as the
sources are the same (their digest is the last column), and stops after the time that is given.
Groups that are not named keep their lines. All take about four hours of one processor.

`--picture docs/images/certify_power.png` draws the power curves of a table that is there, and
simulates nothing.
"""

import argparse
import csv
import hashlib
import importlib
import os
import sys
import time
import types
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

# One thread of linear algebra per process, before anything loads it.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

COLUMNS: tuple[str, ...] = ("group", "cell", "event", "hits", "experiments", "sources")
Key = tuple[str, str]  # group and cell


def loaded() -> types.ModuleType:
    """The trials; with NumPy, SciPy, JAX and jaxtyping alone where nothing else is installed."""
    try:
        importlib.import_module("whorl.measured")
    except ImportError:
        # Reading files and drawing pages is left out, and so is the rest of the library.
        for name in [name for name in sys.modules if name.split(".")[0] == "whorl"]:
            del sys.modules[name]
        bare = types.ModuleType("whorl")
        bare.__path__ = [str(ROOT / "src" / "whorl")]
        sys.modules["whorl"] = bare
        arrow = ("pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet")
        for name in (*arrow, "jinja2", "equinox"):
            sys.modules.setdefault(name, mock.MagicMock())
    return importlib.import_module("measured.trials")


trials = loaded()


def digest(group: str) -> str:
    """Of the sources that the numbers of a group rest on."""
    names = ["estimate", "flips", "bootstrap", "turning", "power"]
    names += ["likelihood", "series"] if group in trials.SERIES else []
    files = [ROOT / "src/whorl/measured" / f"{name}.py" for name in names]
    files += [ROOT / "tests/measured" / name for name in ("trials.py", "loops.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


class Counts:
    """Hits of every cell, as far as its portions are there without a gap."""

    def __init__(self, table: Path, groups: list[str]) -> None:
        """Read what is there."""
        self.table, self.sources = table, {group: digest(group) for group in groups}
        self.kept: list[dict[str, str]] = []
        self.hits: dict[Key, dict[str, float]] = {}
        self.parts: dict[Key, int] = {}
        self.ahead: dict[tuple[Key, int], dict[str, float]] = {}
        for line in read(table) if table.exists() else []:
            key = line["group"], line["cell"]
            if key[0] not in groups:
                self.kept.append(line)
            elif line["sources"] == self.sources[key[0]]:
                self.hits.setdefault(key, {})[line["event"]] = float(line["hits"])
                self.parts[key] = int(line["experiments"]) // trials.PORTION

    def add(self, key: Key, part: int, found: dict[str, float]) -> None:
        """Take one portion in, and those behind it that were waiting for it."""
        self.ahead[key, part] = found
        while (new := self.ahead.pop((key, self.parts.get(key, 0)), None)) is not None:
            own = self.hits.setdefault(key, {})
            for event, count in new.items():
                own[event] = own.get(event, 0.0) + count
            self.parts[key] = self.parts.get(key, 0) + 1

    def write(self) -> None:
        """All lines, in the order of the trials, in one step."""
        lines = list(self.kept)
        for key, events in self.hits.items():
            many = trials.PORTION * self.parts[key]
            for event, hits in events.items():
                values = (*key, event, f"{hits:.6g}", many, self.sources[key[0]])
                lines.append(dict(zip(COLUMNS, values, strict=True)))
        places = {
            (group, trials.label(cell)): (at, number)
            for at, (group, (_, cells)) in enumerate(trials.GROUPS.items())
            for number, cell in enumerate(cells)
        }
        lines = [line for line in lines if (line["group"], line["cell"]) in places]
        lines.sort(key=lambda line: places[line["group"], line["cell"]])
        beside = self.table.with_suffix(".new")
        with beside.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
        beside.replace(self.table)


def read(table: Path) -> list[dict[str, str]]:
    """The lines of a table."""
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def work(counts: Counts, groups: list[str], experiments: int) -> Iterator[tuple[str, dict, int]]:
    """Portions to be simulated: the first of all cells, then the second, so that all grow alike."""
    for part in range(-(-experiments // trials.PORTION)):
        for group in groups:
            for cell in trials.GROUPS[group][1]:
                if part >= counts.parts.get((group, trials.label(cell)), 0):
                    yield group, cell, part


def simulate(given: argparse.Namespace) -> None:
    """Keep all processes busy until the work or the time is over, and write the table."""
    end = time.monotonic() + 60 * given.minutes
    counts = Counts(given.table, given.groups)
    left = work(counts, given.groups, given.experiments)
    jobs: dict[Future, tuple[Key, int]] = {}
    done, told = 0, time.monotonic()
    with ProcessPoolExecutor(given.workers, mp_context=get_context("fork")) as pool:
        while True:
            while len(jobs) < given.workers + 2 and time.monotonic() < end:
                if (one := next(left, None)) is None:
                    break
                group, cell, part = one
                jobs[pool.submit(trials.simulate, *one)] = (group, trials.label(cell)), part
            if not jobs:
                break
            for job in wait(jobs, return_when=FIRST_COMPLETED).done:
                counts.add(*jobs.pop(job), job.result())
                done += 1
            if time.monotonic() > told + 20:
                told = time.monotonic()
                counts.write()
                print(f"{done} portions of {trials.PORTION}", file=sys.stderr, flush=True)
    counts.write()
    least = min((counts.parts.get(key, 0) for key in counts.hits), default=0)
    print(f"{done} portions; every cell has at least {least * trials.PORTION}", file=sys.stderr)


def draw(table: Path, picture: Path) -> None:
    """The power curves: a skew part that is seen, and a turn that is called one."""
    import matplotlib.pyplot as plt
    from scipy import stats

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    sizes = {(3, 14): "C0", (3, 36): "C1", (6, 36): "C2", (6, 72): "C3", (3, 200): "C4"}
    for axis, event in zip(axes, ("not reciprocal", "turns"), strict=True):
        for (outputs, rows), colour in sizes.items():
            name = f"rows {rows}, outputs {outputs}, kind gaussian, share "
            points = []
            for line in read(table):
                if line["event"] == event and line["cell"].startswith(name):
                    hits, many = float(line["hits"]), int(line["experiments"])
                    span = stats.binomtest(round(hits), many).proportion_ci(method="wilson")
                    points.append((float(line["cell"][len(name) :]), hits / many, *span))
            at, seen, low, high = zip(*sorted(points), strict=True)
            axis.plot(at, seen, "o-", color=colour, markersize=3, label=f"{outputs}, {rows}")
            axis.fill_between(at, low, high, color=colour, alpha=0.25, linewidth=0)
        axis.axhline(0.05, color="0.6", linewidth=0.8, linestyle=":")
        axis.set(title=f'called "{event}"', xlabel="true skew part, share of the loop")
    axes[0].set_ylabel("share of experiments")
    axes[0].legend(frameon=False, fontsize="small", title="outputs, rows")
    figure.savefig(picture, dpi=150)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("groups", nargs="*", metavar="GROUP", default=list(trials.GROUPS))
    parser.add_argument("--experiments", type=int, default=trials.EXPERIMENTS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--picture", type=Path)
    given = parser.parse_intermixed_args()
    if given.picture:
        draw(given.table, given.picture)
    else:
        simulate(given)


if __name__ == "__main__":
    main()
