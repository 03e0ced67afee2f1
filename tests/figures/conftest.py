"""Small run folders of invented tables, in the shape that docs/studies.md fixes."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from whorl.ground import store


def statistics(**values):
    return {"name": np.array(list(values)), "value": np.array(list(values.values()), dtype=float)}


def keys(**levels):
    grid = np.meshgrid(*levels.values(), indexing="ij")
    return {name: part.ravel() for name, part in zip(levels, grid, strict=True)}


@pytest.fixture
def structural():
    rng = np.random.default_rng(1)
    operators = keys(family=np.arange(5), depth=np.array([2, 6]))
    size = operators["family"].size
    operators["rank"] = np.where((operators["depth"] == 6) & (operators["family"] < 3), 5, 6)
    operators["rank"][1] = 4
    operators["condition"] = 10.0 ** rng.uniform(2, 9, size)
    operators["factorisation"] = np.where(
        np.arange(size) == 3, 0.0, rng.uniform(1e-17, 3e-16, size)
    )
    steps = np.array([1e-2, 1e-3, 1e-4])
    curvature = {
        "example": np.repeat(["negative", "positive"], 3),
        "step": np.tile(steps, 2),
        "coefficient": np.repeat([-0.9, 0.03], 3),
        "even_difference": np.concatenate([-0.9 * steps**2, 0.03 * steps**2]),
    }
    return {
        "operators": operators,
        "curvature": curvature,
        "statistics": statistics(**{"slope.negative": 1.99, "slope.positive": 2.01}),
    }


@pytest.fixture
def threshold():
    rng = np.random.default_rng(2)
    rows = keys(family=np.arange(8), depth=np.array([1, 4]), beta=np.array([0.0, 2.0, 8.0]))
    rows["ratio"] = rng.normal(1 + 5 * (rows["beta"] - 2), 3.0)
    rows["coefficient"] = -0.3 * (rows["ratio"] - 1) + rng.normal(0, 0.4, rows["ratio"].size)
    rows["favourable"], rows["predicted"] = (
        (rows["coefficient"] < 0).astype(int),
        (rows["ratio"] > 1).astype(int),
    )
    found = {
        "auc": 0.95,
        "auc.lower": 0.9,
        "auc.upper": 0.98,
        "accuracy": 0.9,
        "accuracy.lower": 0.85,
        "accuracy.upper": 0.93,
    }
    return {"configurations": rows, "statistics": statistics(**found)}


@pytest.fixture
def horizon():
    rng = np.random.default_rng(3)
    trials = keys(trial=np.arange(4), policy=np.array(["step_matched", "adaptive"]))
    trials["gap"], trials["step"], trials["drift"] = (
        rng.uniform(0, 0.01, 8),
        rng.uniform(0.02, 0.1, 8),
        rng.uniform(-0.1, 0, 8),
    )
    conditions = keys(
        depth=np.array([1, 4]), beta=np.array([0.0, 4.0, 8.0]), scale=np.array([0.1, 0.2])
    )
    conditions["gain"] = 10.0 ** rng.uniform(-5, -2, 12)
    conditions["lower"], conditions["upper"] = conditions["gain"] / 2, conditions["gain"] * 1.6
    found = {}
    for policy in ("step_matched", "adaptive"):
        here = trials["policy"] == policy
        for name in ("gap", "step", "drift"):
            found[f"{name}.{policy}"] = float(trials[name][here].mean())
        found[f"gap.{policy}.lower"], found[f"gap.{policy}.upper"] = (
            found[f"gap.{policy}"] * factor for factor in (0.7, 1.3)
        )
    return {"trials": trials, "conditions": conditions, "statistics": statistics(**found)}


@pytest.fixture
def run_folder(tmp_path):
    """Write tables as the study `name` of a run folder, with the verdict that goes with them."""

    def write(kind, tables, name=None, registered=True, quick=False, gates=()) -> Path:
        place, hashes = tmp_path / "run" / (name or kind), {}
        for table, columns in tables.items():
            path = place / "tables" / f"{table}.parquet"
            store.write(
                path,
                store.parquet(
                    pa.table(
                        {column: pa.array(values.tolist()) for column, values in columns.items()}
                    )
                ),
            )
            hashes[table] = {"sha256": store.hash_of(path), "rows": 1}
        verdict = {
            "kind": kind,
            "title": "invented",
            "registered": registered,
            "quick": quick,
            "tables": hashes,
            "gates": list(gates),
        }
        (place / "verdict.json").write_text(json.dumps(verdict))
        return place

    return write


@pytest.fixture
def laid_out():
    """A figure after layout, every text of it inside its page and no two words of a panel over each
    other.
    """

    def check(figure):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        page = figure.bbox
        for axes in figure.axes:
            box = axes.get_tightbbox(canvas.get_renderer())
            inside = (
                box.x0 >= page.x0 - 1,
                box.y0 >= page.y0 - 1,
                box.x1 <= page.x1 + 1,
                box.y1 <= page.y1 + 1,
            )
            assert all(inside), axes.get_title(loc="left")
            words = [text for text in axes.texts if text.get_text().strip()]
            boxes = [text.get_window_extent(canvas.get_renderer()) for text in words]
            for number, one in enumerate(boxes):
                for other in range(number):
                    assert not one.overlaps(boxes[other]), (
                        words[number].get_text(),
                        words[other].get_text(),
                    )
        return figure

    return check
