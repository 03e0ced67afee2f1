"""The page on depth shows the numbers of its tables, and its picture is drawn from them."""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def depth():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("depth")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_the_page_shows_its_tables(depth):
    page = depth.PAGE.read_text()
    for path, table in ((depth.HELD, depth.held_table), (depth.WAYS, depth.ways_table)):
        rows = depth.read(path)
        assert list(rows[0]) == depth.HEADS[path]
        assert table(rows) in page
        changed = [row | {list(row)[3]: "0.12345"} for row in rows]
        assert table(changed) not in page
        assert depth.paged(page, table(rows)) == page
        assert table(changed) in depth.paged(page, table(changed))


def test_the_picture_was_drawn_from_its_table(depth, tmp_path):
    depth.picture(depth.read(depth.HELD), tmp_path / "again.png", depth.digest())
    with Image.open(depth.PICTURE) as shown, Image.open(tmp_path / "again.png") as again:
        assert shown.text["Source"] == depth.digest()
        assert shown.size == again.size


def test_every_teacher_is_drawn_at_least_twenty_times_at_two_levels_of_noise(depth):
    taught = [row for row in depth.read(depth.HELD) if row["data"].startswith("teacher")]
    assert min(int(row["draws"]) for row in taught) >= 20
    assert {row["data"] for row in taught} == {
        f"teacher of rank {rank}, {counts} counts" for rank in (1, 2, 3) for counts in depth.COUNTS
    }
    (one, _), (other, _) = depth.teacher(2, 60, 30, 0), depth.teacher(2, 60, 30, 1)
    assert np.abs(one[1] - other[1]).max() > 0.01


def test_half_a_width_is_that_of_student_s_interval(depth):
    mean, half = depth.spread([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    assert half == pytest.approx(3.182446 * np.sqrt(5 / 3) / 2, rel=1e-6)


def test_the_tutorial_shows_how_often_intervals_held_the_truth(depth):
    with (depth.DOCS / "data" / "coverage.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    page = (depth.DOCS / "tutorials" / "composition.md").read_text()
    lines = []
    for number, way in sorted({(row["rows"], row["intervals"]) for row in rows}):
        some = [row for row in rows if (row["rows"], row["intervals"]) == (number, way)]
        values = [
            [row[name] for row in some if row[name]] for name in ("positive", "worst", "zero")
        ]
        lines.append([number, way, *(f"{min(these)} to {max(these)}" for these in values)])
    assert {row["sets"] for row in rows} == {"300"}
    assert [line for line in lines if f"| {' | '.join(line)} |" not in page] == []
