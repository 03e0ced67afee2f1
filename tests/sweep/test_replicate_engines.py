"""Root seeds on engines.

The table is the same, byte for byte, however the seeds were shared out.
"""

from dataclasses import replace

import pytest

from study.small import small
from whorl import sweep
from whorl.study import kinds, replicate, run


def test_seeds_of_the_horizon_study_taken_together_give_what_each_gives_alone():
    study = small("horizon")
    together = replicate.statistics(study, False, [1, 2, 3])
    for seed, found in together.items():
        assert found == run.named(run.compute(study, seed=seed)["statistics"])


@pytest.mark.parametrize("kind", ["threshold", "horizon"])
def test_the_stage_that_comes_first_changes_nothing(kind):
    assert replicate.statistics(small(kind), False, [1, 2], begin=1) == replicate.statistics(
        small(kind), False, [1, 2]
    )
    assert run.rotated([0, 1, 2], 4) == [1, 2, 0]


def test_a_batch_in_which_one_seed_fails_is_taken_apart(monkeypatch):
    study = small("horizon")
    failing = replace(
        kinds.get("horizon"), many=lambda *_: (_ for _ in ()).throw(ValueError("one of them"))
    )
    monkeypatch.setattr(kinds, "get", lambda _: failing)
    assert list(replicate.statistics(study, False, [1, 2])) == [1, 2]


def test_an_engine_gives_the_same_table(tmp_path, monkeypatch):
    monkeypatch.setattr(replicate, "BATCH", 2)
    told = []
    replicate.replicate(small("horizon"), range(1, 6), tmp_path / "one.parquet")
    replicate.replicate(small("horizon"), [2], tmp_path / "many.parquet")
    replicate.replicate(
        small("horizon"),
        range(1, 6),
        tmp_path / "many.parquet",
        engine=sweep.InProcess(),
        progress=told.append,
    )
    assert sorted(told) == [1, 2, 3, 4, 5]
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "many.parquet").read_bytes()


def test_a_seed_that_no_worker_survives_is_told():
    work = replicate.Seeds(small().text, False, (4, 5, 6), size=2)
    with pytest.raises(
        ValueError,
        match="every root seed must have statistics, but for seed 6 and those after it the worker ended",
    ):
        work.give_up(1, "the worker ended 3 times in a row without a result")
    assert list(work.kept({0})) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["structural", "threshold", "horizon"])
def test_two_processes_give_the_table_of_one(tmp_path, kind):
    replicate.replicate(small(kind), range(1, 24), tmp_path / "one.parquet")
    replicate.replicate(
        small(kind), range(1, 24), tmp_path / "two.parquet", engine=sweep.Processes(2)
    )
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
