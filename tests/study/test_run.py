"""A run ends with the same tables however often it was interrupted, and refuses folders that are
not its own.
"""

import json
import shutil
import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from study.small import made, parquet, sealed, small, statistics
from study.trouble import KilledError, contents, full_disk, kill_at, open_folder, read_only
from whorl.ground import store
from whorl.study import environment, kinds, lock, run


def conduct(folder, study=None, **options):
    study = study or small()
    return sealed([(study, lock.lock(study))], folder, **options)


def tables(folder):
    return {path.stem: path.read_bytes() for path in (folder / "mine" / "tables").glob("*.parquet")}


def whole(folder):
    """What a finished folder holds, less the times and the sizes that go with them."""
    return {
        name: content
        for name, content in contents(folder).items()
        if name.endswith((".parquet", ".toml", "verdict.json", "lock.json"))
    }


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_writes_the_tables_that_are_computed(finished):
    assert tables(finished) == parquet("threshold", made("threshold")[1])


def test_a_run_folder_holds_what_the_page_says(finished):
    names = set(contents(finished))
    tops = {"summary.json", "environment.json", "ro-crate-metadata.json", "manifest-sha256.txt"}
    files = {f"mine/{name}" for name in ("design.toml", "lock.json", "verdict.json")}
    stored = {
        f"mine/tables/{name}.{end}"
        for name in kinds.get("threshold").columns
        for end in ("parquet", "csv")
    }
    assert names == tops | files | stored
    assert (finished / "mine" / "design.toml").read_bytes() == small().text
    assert json.loads((finished / "mine" / "lock.json").read_text()) == lock.lock(small())
    assert json.loads((finished / "summary.json").read_text()) == {
        "studies": {
            "mine": {"verdict": "PASS", "expected": None, "registered": True, "quick": False}
        }
    }


def test_a_verdict_says_what_the_page_says(finished):
    verdict = json.loads((finished / "mine" / "verdict.json").read_text())
    about = {
        key: verdict[key]
        for key in (
            "study",
            "kind",
            "title",
            "verdict",
            "expected",
            "registered",
            "quick",
            "why_unregistered",
        )
    }
    assert about == {
        "study": "mine",
        "kind": "threshold",
        "title": "a small one",
        "verdict": "PASS",
        "expected": None,
        "registered": True,
        "quick": False,
        "why_unregistered": None,
    }
    assert verdict["design"] == store.hash_of(finished / "mine" / "design.toml") == small().sha256
    assert verdict["lock"] == store.hash_of(finished / "mine" / "lock.json")
    assert list(verdict["tables"]) == sorted(kinds.get("threshold").columns)
    assert [(gate["statistic"], gate["value"], gate["passed"]) for gate in verdict["gates"]] == [
        ("rows.configurations", 16.0, True)
    ]


def test_the_environment_names_what_bears_on_the_numbers(finished):
    about = json.loads((finished / "environment.json").read_text())
    assert {"jax", "jaxlib", "numpy", "scipy", "pyarrow"} <= about["packages"].keys()
    assert {
        "whorl",
        "python",
        "platform",
        "machine",
        "processor",
        "cores",
        "device",
    } <= about.keys()
    assert about["designs"] == {"mine": small().sha256}
    assert about == environment.describe([small()], quick=False)


def test_a_run_that_is_killed_at_any_write_is_finished_by_the_next(tmp_path, finished):
    number = 0
    while True:
        folder = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            moved = kill_at(patch, number, "before")
            try:
                conduct(folder)
                break
            except KilledError:
                pass
        for path in moved:  # whatever has its final name is whole
            assert path.suffix != ".parquet" or pq.read_table(path).num_rows
        conduct(folder)
        assert whole(folder) == whole(finished)
        assert contents(folder).keys() == {
            name for name in contents(finished) if not name.endswith(".csv")
        }
        shutil.rmtree(folder)
        number += 1
    assert number == len(moved) == 9 + len(kinds.get("threshold").columns)


def computing(monkeypatch, kind, compute):
    """Let a kind compute otherwise."""
    other = replace(kinds.get(kind), compute=compute)
    monkeypatch.setattr(kinds, "get", lambda _: other)


def test_what_was_computed_before_an_interruption_is_not_computed_again(tmp_path, monkeypatch):
    computed, real = [], kinds.get("threshold").compute

    def compute(p, stage):
        computed.append(stage.name)
        if computed.count("depth1") == 1 and stage.name == "depth1":
            raise KilledError
        return real(p, stage)

    computing(monkeypatch, "threshold", compute)
    with pytest.raises(KilledError):
        conduct(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run" / "mine" / ".work").iterdir()] == ["depth2.npz"]
    conduct(tmp_path / "run")
    assert sorted(computed) == ["depth1", "depth1", "depth2"]


@pytest.mark.parametrize("kind", ["structural", "threshold"])
def test_programs_that_call_lapack_are_never_run_side_by_side(kind, tmp_path, monkeypatch):
    # Two of them at once have been seen to wait for each other forever.
    running, most = [], []

    def compute(p, stage):
        running.append(stage)
        most.append(len(running))
        time.sleep(0.02)
        running.remove(stage)
        return {}

    computing(monkeypatch, kind, compute)
    monkeypatch.setattr(run, "judged", lambda kind, p, parts: {stage.name: {} for stage in parts})
    study = small(kind, depths=[4, 3, 2, 1])
    stages = kinds.get(kind).stages(study.values())
    made = run._tables(study, tmp_path, False, run.silent)
    assert list(made) == [stage.name for stage in stages]
    assert max(most) == 1


def test_a_damaged_piece_of_work_is_computed_again(tmp_path, finished):
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, 5, "after")
        with pytest.raises(KilledError):
            conduct(tmp_path / "run")
    for path in (tmp_path / "run" / "mine" / ".work").iterdir():
        path.write_bytes(path.read_bytes()[:-50])
    conduct(tmp_path / "run", csv=True)
    assert whole(tmp_path / "run") == whole(finished)


def test_a_finished_run_is_kept_and_reports_its_progress(copied, monkeypatch):
    before, told = contents(copied), []
    computing(monkeypatch, "threshold", lambda p, stage: pytest.fail("it is computed again"))
    verdicts = conduct(copied, progress=told.append)
    assert len(told) == run.pieces(small())
    assert verdicts == [json.loads((copied / "mine" / "verdict.json").read_text())]
    assert contents(copied) == before


def test_a_run_reports_every_piece_of_work(tmp_path):
    told = []
    conduct(tmp_path / "run", progress=told.append)
    assert told == ["mine: depth2", "mine: depth1", "mine: verdict"]


def test_text_can_be_asked_for_afterwards(tmp_path, finished):
    conduct(tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.csv"))
    conduct(tmp_path / "run", csv=True)
    assert contents(tmp_path / "run").keys() == contents(finished).keys()
    for path in (tmp_path / "run").rglob("*.csv"):
        assert path.read_bytes() == (finished / path.relative_to(tmp_path / "run")).read_bytes()


@pytest.mark.parametrize("damage", ["lost", "changed", "verdict"])
def test_a_folder_that_was_damaged_is_made_whole(copied, finished, damage):
    if damage == "lost":
        (copied / "mine" / "tables" / "draws.parquet").unlink()
    elif damage == "changed":
        (copied / "mine" / "tables" / "draws.parquet").write_bytes(b"something else")
    else:
        (copied / "mine" / "verdict.json").write_text("{")
    conduct(copied, csv=True)
    assert whole(copied) == whole(finished)


def test_a_failed_gate_stays_failed(tmp_path):
    study = small(
        gates=[("rows.configurations", "==", 16), ("auc", ">", 2), ("errors", ">=", 0)],
        expected="PASS",
    )
    for _ in range(2):
        (verdict,) = conduct(tmp_path / "run", study)
        assert (verdict["verdict"], verdict["expected"]) == ("FAIL", "PASS")
        assert [gate["passed"] for gate in verdict["gates"]] == [True, False, True]
        assert verdict["gates"][1]["margin"] == verdict["gates"][1]["value"] - 2 < 0
    assert (
        json.loads((tmp_path / "run" / "summary.json").read_text())["studies"]["mine"]["verdict"]
        == "FAIL"
    )


def test_a_gate_on_a_statistic_that_the_run_does_not_have_is_not_met(tmp_path):
    (verdict,) = conduct(tmp_path / "run", small(gates=[("acu", ">", 0)]))
    assert verdict["verdict"] == "FAIL"
    assert (
        verdict["gates"][0]["value"],
        verdict["gates"][0]["margin"],
        verdict["gates"][0]["passed"],
    ) == (None, None, False)


def test_a_run_of_a_design_that_was_never_registered_is_stamped(tmp_path):
    (verdict,) = sealed([(small(), {})], tmp_path / "run")
    assert (verdict["registered"], verdict["why_unregistered"]) == (
        False,
        "the design was never registered",
    )
    assert (tmp_path / "run" / "mine" / "lock.json").read_text() == "{}\n"
    assert "(UNREGISTERED)" in (tmp_path / "run" / "ro-crate-metadata.json").read_text()
    assert not json.loads((tmp_path / "run" / "summary.json").read_text())["studies"]["mine"][
        "registered"
    ]


def test_a_quick_run_takes_the_quick_values_and_is_stamped(tmp_path):
    study = small(quick={"resamples": 7})
    (verdict,) = conduct(tmp_path / "run", study, quick=True)
    assert (verdict["quick"], verdict["registered"], verdict["tables"]["draws"]["rows"]) == (
        True,
        False,
        7,
    )
    with pytest.raises(ValueError, match="differs in quick"):
        conduct(tmp_path / "run", study)


def test_several_studies_share_a_folder(tmp_path):
    one, other = small(name="one"), small(name="other", seed=3)
    conducted = sealed([(one, {}), (other, lock.lock(other))], tmp_path / "run")
    assert [(v["study"], v["registered"]) for v in conducted] == [("one", False), ("other", True)]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["studies"].keys() == {
        "one",
        "other",
    }
    stored = store.read_table(tmp_path / "run" / "one" / "tables" / "statistics.parquet")
    assert statistics({"statistics": stored}) == statistics(made("threshold")[1])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("whorl", "0.0.1"),
        ("sources", "0" * 64),
        ("designs", {}),
        ("packages", {"jax": "0.1"}),
        ("device", "tpu"),
        ("quick", None),
    ],
)
def test_a_folder_of_another_version_or_run_is_left_alone(copied, key, value):
    about = json.loads((copied / "environment.json").read_text())
    (copied / "environment.json").write_text(json.dumps(about | {key: value}))
    before = contents(copied)
    with pytest.raises(
        ValueError,
        match=rf"run must be a folder of this version and this run, but it differs in {key} \(.* then, .* now\)$",
    ):
        conduct(copied)
    assert contents(copied) == before


def test_the_same_run_on_a_machine_with_more_cores_goes_on(copied):
    about = json.loads((copied / "environment.json").read_text())
    (copied / "environment.json").write_text(
        json.dumps(about | {"cores": 96, "platform": "elsewhere"})
    )
    conduct(copied)


def test_a_folder_of_another_design_is_left_alone(copied):
    before = contents(copied)
    with pytest.raises(ValueError, match=r"differs in (sources|designs)"):
        conduct(copied, small(seed=2))
    assert contents(copied) == before


@pytest.mark.parametrize("content", [b"{", b"[]", b'"text"'])
def test_an_environment_that_cannot_be_read_is_refused(copied, content):
    (copied / "environment.json").write_bytes(content)
    before = contents(copied)
    with pytest.raises(
        ValueError, match=r"environment\.json must be JSON|must be a folder of this version"
    ):
        conduct(copied)
    assert contents(copied) == before


def test_a_foreign_folder_or_file_is_left_alone(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("words")
    (tmp_path / "file").write_text("words")
    for name in ("thesis", "file"):
        with pytest.raises(
            ValueError,
            match=rf"{name} must be empty, new, or a run folder of whorl, but it is none of these$",
        ):
            conduct(tmp_path / name)
    assert contents(tmp_path) == {"thesis/chapter.tex": b"words", "file": b"words"}


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "run").mkdir()
    conduct(tmp_path / "run")


def test_a_full_disk_ends_in_one_sentence_and_the_next_run_goes_on(tmp_path, finished):
    for room in (200, 5000, 9000):
        with full_disk(room), pytest.raises(OSError, match="File too large"):
            conduct(tmp_path / "run", csv=True)
        assert not [name for name in contents(tmp_path) if name.endswith(".part")]
    conduct(tmp_path / "run", csv=True)
    assert whole(tmp_path / "run") == whole(finished)


def test_a_read_only_folder_ends_in_one_sentence_and_loses_nothing(finished):
    with open_folder() as folder:
        shutil.copytree(finished, folder / "run")
        (folder / "run" / "mine" / "verdict.json").unlink()
        before = contents(folder)
        with read_only(folder), pytest.raises(PermissionError):
            conduct(folder / "run", csv=True)
        with read_only(folder), pytest.raises(PermissionError):
            conduct(folder / "new")
        assert contents(folder) == before
        conduct(folder / "run", csv=True)
        assert whole(folder / "run") == whole(finished)


def test_numbers_that_are_not_finite_are_refused_by_name():
    tables = {
        "draws": {
            "draw": np.arange(2),
            "name": np.array(["a", "b"]),
            "auc": np.array([1.0, 2.0]),
        }
    }
    kind = replace(
        kinds.get("threshold"),
        tables=lambda p, parts: tables,
        statistics=lambda p, t: {"fine": 1, "empty": float("nan")},
    )
    with pytest.raises(
        ValueError,
        match=r"^statistic empty must be finite, but it is not: the design leaves too little to measure it on$",
    ):
        run.judged(kind, small().values(), {})
