"""Many root seeds: each is kept once it is there, and a file belongs to one design."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from study.small import made, small, statistics
from study.trouble import contents
from whorl.study import replicate, run


@pytest.fixture
def computed(monkeypatch):
    """The seeds that were really computed."""
    seeds, real = [], run.compute

    def compute(design, quick=False, **others):
        seeds.append(others["seed"])
        return real(design, quick, **others)

    monkeypatch.setattr(run, "compute", compute)
    return seeds


def by_seed(table):
    found = {}
    for row in table.to_pylist():
        found.setdefault(row["seed"], {})[row["statistic"]] = row["value"]
    return found


def test_the_root_seed_of_the_design_gives_the_statistics_of_the_run(tmp_path):
    p, tables = made("threshold")
    table = replicate.replicate(small(), [p.seed, 5], tmp_path / "many.parquet")
    assert by_seed(table)[p.seed] == statistics(tables)
    assert by_seed(table)[5] != statistics(tables)
    assert pq.read_table(tmp_path / "many.parquet").equals(table)
    about = pq.read_schema(tmp_path / "many.parquet").metadata
    assert (about[b"study"], about[b"design"], about[b"quick"]) == (
        b"mine",
        small().sha256.encode(),
        b"False",
    )


def test_seeds_that_are_there_are_kept(tmp_path, computed):
    path, told = tmp_path / "many.parquet", []
    first = by_seed(replicate.replicate(small(), [5, 3], path))
    again = by_seed(replicate.replicate(small(), [3, 4, 5], path, progress=told.append))
    assert (computed, told) == ([5, 3, 4], [3, 4, 5])
    assert list(again) == [3, 4, 5]
    assert {seed: again[seed] for seed in first} == first


def test_a_file_does_not_depend_on_the_order_or_the_number_of_calls(tmp_path):
    replicate.replicate(small(), [1, 2], tmp_path / "one.parquet")
    replicate.replicate(small(), [2], tmp_path / "other.parquet")
    replicate.replicate(small(), [1], tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()


@pytest.mark.parametrize("wrong", [KeyboardInterrupt, ValueError])
def test_an_interruption_keeps_what_was_finished(tmp_path, monkeypatch, wrong):
    real = run.compute

    def compute(design, quick=False, **others):
        if others["seed"] == 3:
            raise wrong("enough")
        return real(design, quick, **others)

    monkeypatch.setattr(run, "compute", compute)
    with pytest.raises(wrong, match="enough"):
        replicate.replicate(small(), [1, 2, 3], tmp_path / "many.parquet")
    assert list(by_seed(pq.read_table(tmp_path / "many.parquet"))) == [1, 2]
    with pytest.raises(wrong, match="enough"):
        replicate.replicate(small(), [3], tmp_path / "none.parquet")
    assert not (tmp_path / "none.parquet").exists()


def test_a_long_series_is_written_as_it_grows(tmp_path, monkeypatch):
    path, sizes = tmp_path / "many.parquet", []
    monkeypatch.setattr(replicate, "KEEP", 2)
    replicate.replicate(
        small(),
        [1, 2, 3, 4, 5],
        path,
        progress=lambda _: sizes.append(len(by_seed(pq.read_table(path))) if path.exists() else 0),
    )
    assert sizes == [0, 2, 2, 4, 4]


@pytest.mark.parametrize("other", [{"resamples": 41}, {"name": "other"}])
def test_a_file_of_another_design_is_refused_and_left_alone(tmp_path, other):
    path = tmp_path / "many.parquet"
    replicate.replicate(small(), [1], path)
    before = contents(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"many\.parquet must hold replicates of this design, but it was made from another",
    ):
        replicate.replicate(small(**other), [1], path)
    with pytest.raises(ValueError, match="must hold replicates of this design"):
        replicate.replicate(small(), [1], path, quick=True)
    assert contents(tmp_path) == before


def test_a_file_that_is_no_table_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "many.parquet"
    path.write_text("my notes")
    with pytest.raises((ValueError, OSError)):
        replicate.replicate(small(), [1], path)
    assert path.read_text() == "my notes"


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize("seed", [-1, 2**63, 1.5])
def test_a_seed_that_is_none_is_refused(tmp_path, seed):
    with pytest.raises(
        ValueError,
        match=rf"seed must be a whole number from 0 to 9223372036854775807, but it is {seed}",
    ):
        replicate.replicate(small(), [seed], tmp_path / "many.parquet")


def test_the_summary_is_median_and_central_95_per_cent(tmp_path):
    table = replicate.replicate(small(), range(1, 6), tmp_path / "many.parquet")
    values = [found["auc"] for found in by_seed(table).values()]
    assert replicate.summary(table)["auc"] == tuple(np.quantile(values, [0.5, 0.025, 0.975]))
    assert list(replicate.summary(table)) == list(statistics(made("threshold")[1]))
