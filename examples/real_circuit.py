"""What whorl finds in the published measurements of a circuit that learns two tasks in turn.

The data are those of Dillavou, Guzman, Liu and Durian (arXiv:2505.22887), which are not part of this
repository. Give the folder that holds their CSV files:

    python examples/real_circuit.py FOLDER

A file `bowtie-exp*-*s.csv` has two rows, the two learning voltages over one full cycle, evenly
spaced; `measured-DG2-exp*.csv` has the time constant and the squared span of the cycle.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from whorl import measured
from whorl.measured import series


def cycle(path: Path) -> np.ndarray:
    """The two voltages over one cycle `(samples, 2)`."""
    with path.open(newline="") as file:
        return np.array([[float(cell) for cell in row] for row in csv.reader(file) if row]).T


def phases(state: np.ndarray) -> dict[str, np.ndarray]:
    """The samples of each task: those between two switches, of which each lies inside a step."""
    half = (len(state) + 1) // 2
    return {"first": state[1 : half + 1], "second": state[half + 1 :]}


def found(state: np.ndarray) -> dict[str, measured.History | str]:
    """The verdict on each task, with one sample as the unit of time, or why there is none."""
    answers: dict[str, measured.History | str] = {}
    for name, part in phases(state).items():
        try:
            answers[name] = measured.follow(np.arange(len(part)), part, time_unit="sample")
        except ValueError as refusal:
            answers[name] = str(refusal)
    return answers


def exponent(path: Path, limit: float = 0.1) -> tuple[float, float]:
    """How the squared span grows with the time constant below a limit: exponent and error."""
    time, span = np.loadtxt(path, delimiter=",").T
    fit: Any = stats.linregress(np.log(time[time < limit]), np.log(span[time < limit]))
    return float(fit.slope), float(fit.stderr)


def main() -> None:
    """Print everything that the page quotes."""
    parser = argparse.ArgumentParser(description="What whorl finds in a real circuit.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for path in sorted(folder.glob("bowtie-*.csv")):
        state = cycle(path)
        enclosed = series.area(state)
        print(
            f"{path.stem}: area {enclosed.estimate:.3g} ({enclosed.low:.3g} to {enclosed.high:.3g})"
        )
        for name, answer in found(state).items():
            if isinstance(answer, str):
                print(f"  {name}: {answer}")
                continue
            (phase,) = answer.phases
            span, noted = (
                phase.intervals.skewness,
                [n for n, p in phase.effects.items() if p <= 0.05],
            )
            print(
                f"  {name}: {phase.verdict}, p = {phase.p:.2g}; skew part {span.estimate:.2g} "
                f"({span.low:.2g} to {span.high:.2g}); {', '.join(noted) or 'nothing else seen'}"
            )
    for path in sorted(folder.glob("measured-DG2-*.csv")):
        slope, error = exponent(path)
        print(
            f"{path.stem}: squared span grows as the time constant to the {slope:.2f} +- {error:.2f}"
        )


if __name__ == "__main__":
    main()
