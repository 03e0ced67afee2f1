"""The shards as one table."""

import numpy as np
import polars
import pyarrow.parquet as pq
import pytest

from sweep.small import RANDOM, design
from whorl import sweep
from whorl.study.kinds.horizon import figure


def test_the_table_has_every_case_once_in_order(undisturbed):
    frame = sweep.scan(undisturbed[0])
    assert isinstance(frame, polars.LazyFrame)
    rows = frame.collect()
    assert rows["case"].to_list() == list(range(120))
    assert np.allclose(
        rows["gap"], rows["even"] + rows["handedness"] + rows["step"] + rows["drift"], atol=1e-14
    )
    few = frame.filter(polars.col("imbalance") == 4.0).select("gap").collect()
    assert len(few) == 40


def test_conditions_are_means_over_trials_and_flips(undisturbed):
    table = sweep.conditions(undisturbed[0])
    rows = sweep.scan(undisturbed[0]).collect()
    assert table.columns[:3] == ["imbalance", "policy", "scale"]
    assert (len(table), table["cases"].to_list()) == (12, [10] * 12)
    one = table.row(
        by_predicate=(polars.col("imbalance") == 8.0)
        & (polars.col("policy") == "adaptive")
        & (polars.col("scale") == 0.2),
        named=True,
    )
    same = rows.filter(
        (rows["imbalance"] == 8.0) & (rows["policy"] == "adaptive") & (rows["scale"] == 0.2)
    )["gap"].to_numpy()
    assert abs(one["gap"] - same.mean()) < 1e-15
    assert abs(one["gap_error"] - same.std(ddof=1) / np.sqrt(10)) < 1e-15


def test_the_whole_table_can_be_one_file(undisturbed, tmp_path):
    sweep.export(undisturbed[0], tmp_path / "all.parquet")
    assert pq.read_table(tmp_path / "all.parquet")["case"].to_pylist() == list(range(120))
    assert [path.name for path in tmp_path.iterdir()] == ["all.parquet"]


def test_a_sweep_is_drawn_by_the_figure_of_the_horizon_study(undisturbed, tmp_path):
    tables = figure.of_cases(sweep.scan(undisturbed[0]))
    assert tables["conditions"]["gain"].size == 6
    assert len(figure.draw(tables).axes) >= 3
    rows = sweep.scan(undisturbed[0]).collect()
    one, other = (
        rows.filter(rows["policy"] == policy)["gap"].to_numpy()
        for policy in ("step_matched", "adaptive")
    )
    assert np.isclose(tables["conditions"]["gain"].mean(), one.mean() - other.mean(), rtol=1e-12)
    sweep.sweep(design(RANDOM), tmp_path / "thrown")
    with pytest.raises(ValueError, match=r"cases must have every trial .* once under each of step"):
        figure.of_cases(sweep.scan(tmp_path / "thrown"))


def test_a_case_that_is_there_twice_is_not_drawn(undisturbed):
    cases = sweep.scan(undisturbed[0])
    with pytest.raises(ValueError, match="but there are 240 rows of 60 trials"):
        figure.of_cases(polars.concat([cases, cases]))
