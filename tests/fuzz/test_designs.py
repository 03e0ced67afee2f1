"""Design files of studies and of sweeps: a design, or one line that says what is wrong with it."""

from pathlib import Path

import pytest
from hypothesis import strategies as st

from fuzz import texts
from fuzz.doors import command_ends_well, ends_well
from whorl.study import design, kinds, lock
from whorl.sweep import Plan
from whorl.sweep import design as sweeps

STUDIES = [design.shipped(name).text.decode() for name in kinds.names()]
STUDY_WORDS = [
    "name",
    "kind",
    "[parameters]",
    "[quick]",
    "[[gates]]",
    "value",
    "origin",
    "seed",
    "bound",
    '"threshold"',
    '"own"',
]
GRID = (Path(__file__).parents[2] / "examples" / "sweep.toml").read_text()
RANDOM = """name = "drawn"
title = "Points from ranges"
design = "random"
seed = 3
points = 40
trials = 2
[network]
depth = [1, 2]
imbalance = { from = 0.0, to = 8.0 }
[policy]
scale = { from = 0.01, to = 0.5, log = true }
"""
SWEEPS = [GRID, RANDOM]
SWEEP_WORDS = [
    "name",
    "design",
    '"grid"',
    '"random"',
    "[task]",
    "[network]",
    "[policy]",
    "points",
    "trials",
    "from",
    "to",
    "log",
]


def files(sources, words):
    return st.one_of(
        texts.soups(words),
        texts.mutations(sources, words),
        texts.shuffled(sources),
        texts.other_values(sources),
        texts.other_values(sources),
    )


def test_there_is_something_to_start_from():
    assert len(STUDIES) == 6
    assert all(ends_well(design.parse, text.encode()) for text in STUDIES)
    assert all(ends_well(sweeps.parse, text.encode()) for text in SWEEPS)


def test_any_study_file_is_a_design_or_a_sentence(fuzz):
    fuzz(files(STUDIES, STUDY_WORDS), lambda text: ends_well(design.parse, text, "mine.toml"))


def test_any_sweep_file_is_a_plan_or_a_sentence(fuzz):
    def planned(text):
        plan = Plan(sweeps.parse(text, "mine.toml"))
        assert plan.estimate(2)["cases"] == plan.cases
        assert (
            len(plan.of(plan.shard(plan.shards - 1))) > 0 if plan.design.shard <= 10_000 else True
        )

    fuzz(files(SWEEPS, SWEEP_WORDS), lambda text: ends_well(planned, text))


@pytest.mark.parametrize(
    "arguments", [["register"], ["sweep", "--dry-run"]], ids=["register", "sweep"]
)
def test_the_commands_refuse_with_one_line_and_code_two(fuzz, arguments, tmp_path, monkeypatch):
    # What a lock holds does not depend on what is read: hashing every source ten thousand times
    # would only take long.
    monkeypatch.setattr(lock, "lock", lambda study: {"design": study.sha256, "sources": {}})
    path = tmp_path / "mine.toml"
    sources = STUDIES if arguments == ["register"] else SWEEPS

    def called(text):
        path.write_bytes(text)
        return command_ends_well(*arguments, path)

    fuzz(files(sources, STUDY_WORDS + SWEEP_WORDS), called)


@pytest.mark.parametrize("locked", [b'{"design": "x", "sources": {}}'])
def test_any_lock_is_read_or_refused(fuzz, locked, tmp_path):
    path = tmp_path / "mine.toml"

    def read(content):
        lock.beside(path).write_bytes(content)
        return ends_well(lock.read, path)

    words = ['"design"', '"sources"', "{", "}", ":", "null"]
    fuzz(
        st.one_of(st.just(locked), texts.soups(words), texts.mutations([locked.decode()], words)),
        read,
    )
