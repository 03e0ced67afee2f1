"""What the table of simulations says, against what the documentation says of it."""

import csv
from pathlib import Path

import numpy as np
import pytest

from measured import trials

TABLE = Path(__file__).parents[2] / "docs/data/calibration.csv"
LINES = list(csv.DictReader(TABLE.read_text().splitlines()))
ERRORS = 3.0  # standard errors of a share that are chance, with some four hundred of them


def wanted(line):
    """The least and the most that the page gives for the share of an event; None where it is free."""
    group, event = line["group"], line["event"]
    cell = dict(part.split(" ", 1) for part in line["cell"].split(", "))
    few = int(cell.get("rows", 100)) == 14 and int(cell["outputs"]) > 3
    if event == "not reciprocal" and (group == "level" or cell.get("share") == "0.0"):
        return (0.02, 0.05) if few else (0.035, 0.065)
    if group == "skewed" and event == "interval holds":
        return 0.93, 1.0 if few or float(cell["share"]) <= 0.1 else 0.97
    if event == "turns" and group in ("gradient", "edge", "triple"):
        return (0.035 if group == "edge" else 0.0), 0.05 if group != "edge" else 0.065
    if group not in trials.SERIES or event == "refused":
        return None
    short = cell.get("steps") == "100" and cell.get("kind") == "stationary"
    if "interval holds" in event:
        return 0.9 if short else 0.93, 1.0
    if event == "turns" and cell["loop"] != "turns":
        return 0.0, 0.1 if short else 0.075
    if event == "not reciprocal" and cell["loop"] == "reciprocal":
        return 0.035, 0.09 if short else 0.075
    return None


def test_the_table_says_what_the_page_says():
    off = []
    for line in LINES:
        if (edges := wanted(line)) is not None:
            many = int(line["experiments"])
            least, most = (ERRORS * np.sqrt(edge * (1 - edge) / many) for edge in edges)
            share = float(line["hits"]) / many
            if not edges[0] - least <= share <= edges[1] + most:
                off.append((line["group"], line["cell"], line["event"], share, edges))
    assert not off


def test_promised_power_is_what_is_seen():
    found = {(line["cell"], line["event"]): line for line in LINES if line["group"] == "promised"}
    for cell in {cell for cell, _ in found}:
        promised, seen = (found[cell, event] for event in ("promised", "not reciprocal"))
        many = int(seen["experiments"])
        apart = (float(promised["hits"]) - float(seen["hits"])) / many
        assert abs(apart) <= 0.05 + 2 * np.sqrt(0.25 / many), cell


def test_every_cell_is_in_the_table():
    there = {(line["group"], line["cell"]) for line in LINES}
    for group, (_, cells) in trials.GROUPS.items():
        assert {(group, trials.label(cell)) for cell in cells} <= there


def test_portions_have_streams_of_their_own_and_can_be_repeated():
    cell = trials.GROUPS["edge"][1][0]
    first, again, second = (trials.simulate("edge", cell, part, 20) for part in (0, 0, 1))
    assert first == again
    assert set(first) == set(second) == {"turns"}


SLOW = [
    (group, cell)
    for group, (_, cells) in trials.GROUPS.items()
    for cell in cells
    if group not in ("promised", "long series")
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "cell"), SLOW, ids=lambda one: one if isinstance(one, str) else trials.label(one)
)
def test_new_experiments_say_the_same(group, cell):
    # Streams beyond those of the table; a share must lie where the page says, or near the table's.
    counts = trials.simulate(group, cell, 10_000, 200)
    for event, hits in counts.items():
        line = {"group": group, "cell": trials.label(cell), "event": event}
        if (edges := wanted(line)) is not None:
            low, high = edges
            error = 3.5 * np.sqrt(np.array([low * (1 - low), high * (1 - high)]) / 200) + 0.01
            assert low - error[0] <= hits / 200 <= high + error[1], event
