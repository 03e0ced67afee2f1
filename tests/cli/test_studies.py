"""Running, registering, verifying and replicating studies from the command line."""

import json
import shutil
import sys
from pathlib import Path

import jax
import pyarrow.parquet as pq
import pytest

from study.small import made, parquet, small, statistics, text
from study.trouble import contents, full_disk, open_folder, read_only
from whorl.study import Conducted, design, kinds, lock, published
from whorl_cli import _study


def spoken(whorl, *arguments, code=0):
    """What a command tells a machine: one object, and nothing else."""
    ended, out, err = whorl(*arguments, "--json")
    assert (ended, err) == (code, "")
    return json.loads(out)


def test_a_shipped_design_is_run_by_its_name_unless_a_file_has_it(
    tmp_path, monkeypatch, whorl, refused
):
    asked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        _study,
        "conducted",
        lambda title, studies, folder, given: (
            asked.append((studies, folder)) or Conducted(folder, [], [], [])
        ),
    )
    spoken(whorl, "run", "foresight")
    Path("horizon").write_text(text())
    spoken(whorl, "run", "horizon")
    ((shipped, registered),), ((own, none),) = (studies for studies, _ in asked)
    assert (shipped, registered) == (design.shipped("foresight"), lock.shipped_lock("foresight"))
    assert (own.sha256, none) == (small().sha256, {})
    assert asked[0][1] == Path("runs/foresight")
    assert refused("run", "hindsight") == (
        f"design must be a file or one of {', '.join(kinds.names())}, but it is hindsight"
    )


def test_a_registered_run_is_audited_and_stored(study):
    run = study / "runs" / "mine"
    verdict = json.loads((run / "mine" / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["expected"], verdict["registered"]) == (
        "PASS",
        "PASS",
        True,
    )
    for name, content in parquet("threshold", made("threshold")[1]).items():
        assert (run / "mine" / "tables" / f"{name}.parquet").read_bytes() == content
    assert (run / "mine" / "audit.json").exists()
    assert (run / "report.html").exists()
    manifest = (run / "manifest-sha256.txt").read_text()
    assert "  report.html\n" in manifest
    assert "audit.json" not in manifest


def test_a_second_run_answers_from_what_is_there(copied, whorl, tables_of):
    before = tables_of("runs")
    told = spoken(whorl, "run", "mine.toml")
    assert told.keys() == {"folder", "verdicts", "audit", "as_registered"}
    assert (told["folder"], told["as_registered"]) == ("runs/mine", True)
    assert all(finding["passed"] for finding in told["audit"])
    assert told["verdicts"][0]["gates"][0]["passed"]
    assert tables_of("runs") == before


@pytest.mark.usefixtures("bare")
def test_a_run_in_words(copied, whorl):
    code, out, _ = whorl("run", "mine.toml", "--csv")
    assert code == 0
    assert "mine        PASS, expected PASS\n" in out
    assert "1 claims rederived by other routes, all hold\n" in out
    assert "runs/mine" in out.splitlines()[-1]
    assert "UNREGISTERED" not in out
    assert Path("runs/mine/mine/tables/statistics.csv").exists()


@pytest.mark.usefixtures("bare")
def test_exit_code_1_says_that_a_verdict_is_not_the_expected_one(tmp_path, monkeypatch, whorl):
    monkeypatch.chdir(tmp_path)
    Path("other.toml").write_text(text(name="other", expected="FAIL"))
    code, out, _ = whorl("run", "other.toml")
    assert code == 1
    assert "other       PASS, expected FAIL  [UNREGISTERED: the design was never registered]" in out
    told = spoken(whorl, "run", "other.toml", code=1)
    assert (told["as_registered"], told["verdicts"][0]["verdict"]) == (False, "PASS")


def test_exit_code_1_says_that_the_audit_of_a_run_found_something(copied, whorl, bare):
    bare(False)
    code, out, _ = whorl("run", "mine.toml")
    assert code == 1
    assert "1 of 1 claims FAIL" in out
    assert not spoken(whorl, "run", "mine.toml", code=1)["as_registered"]


def test_a_folder_that_was_tampered_with_is_not_verified(copied, whorl):
    path = copied / "runs" / "mine" / "mine" / "design.toml"
    path.write_bytes(path.read_bytes() + b"# a remark\n")
    told = spoken(whorl, "verify", "runs/mine", code=1)
    assert not told["passed"]
    assert [finding for finding in told["findings"] if not finding["passed"]]


def test_an_untouched_folder_is_verified(copied, whorl):
    code, out, _ = whorl("verify", "runs/mine")
    assert code == 0
    assert out.splitlines()[0].endswith("claims rederived by other routes, all hold")


def test_what_is_no_run_folder_cannot_be_verified(tmp_path, refused):
    assert "missing" in refused("verify", tmp_path / "missing")


@pytest.mark.usefixtures("bare")
def test_a_changed_design_or_source_is_stamped(copied, whorl):
    with Path("mine.toml").open("a") as file:
        file.write("# a remark\n")
    told = spoken(whorl, "run", "mine.toml", "--out", "again")
    assert told["verdicts"][0]["why_unregistered"] == "the design differs from the registered one"
    content = lock.lock(design.read(Path("mine.toml")))
    content["sources"]["turn.py"] = "0" * 64
    Path("mine.lock.json").write_text(lock.text(content))
    code, out, _ = whorl("run", "mine.toml", "--out", "once more")
    assert code == 0
    assert "[UNREGISTERED: sources differ from the registered ones: turn.py]" in out


def test_a_registration_is_written_beside_the_design(tmp_path, whorl):
    path = tmp_path / "mine.toml"
    path.write_text(text())
    code, out, _ = whorl("register", path)
    assert (code, out) == (
        0,
        (
            f"registered mine with {len(lock.sources('threshold'))} definitions in "
            f"{tmp_path / 'mine.lock.json'}\n"
        ),
    )
    told = spoken(whorl, "register", path)
    assert (
        {"design": told["design"], "sources": told["sources"]}
        == lock.read(path)
        == lock.lock(small())
    )
    assert told["lock"] == str(tmp_path / "mine.lock.json")


@pytest.mark.parametrize("kind", kinds.paper())
def test_a_template_is_printed_as_it_can_be_registered(tmp_path, whorl, kind):
    code, out, err = whorl("register", "--template", kind)
    assert (code, err) == (0, "")
    (tmp_path / "mine.toml").write_text(out)
    assert whorl("register", tmp_path / "mine.toml")[0] == 0
    assert spoken(whorl, "register", "--template", kind) == {"template": design.template(kind)}


def test_a_bad_design_is_refused_by_line_and_leaves_nothing(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(text(depths=[0]))
    before = contents(tmp_path)
    for command in ("run", "register"):
        assert "mine.toml, line " in refused(command, "mine.toml")
        assert refused(command, "missing.toml") == "missing.toml: no such file or directory"
        assert refused(command, tmp_path) == f"{tmp_path} must be a design file, but it is a folder"
    assert contents(tmp_path) == before


def test_an_unknown_study_is_refused(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    sentence = (
        f"study must be {', '.join(kinds.names())} or a design file, but there is no spectral"
    )
    assert refused("replicate", "spectral", "--seeds", "1") == sentence
    assert contents(tmp_path) == {}


def test_a_folder_that_is_not_the_runs_own_is_left_alone(copied, refused):
    Path("thesis").mkdir()
    Path("thesis/chapter.tex").write_text("words")
    about = json.loads(Path("runs/mine/environment.json").read_text())
    shutil.copytree("runs/mine", "old")
    Path("old/environment.json").write_text(json.dumps(about | {"whorl": "0.0.1"}))
    before = contents(copied)
    assert (
        refused("run", "mine.toml", "--out", "thesis")
        == "thesis must be empty, new, or a run folder of whorl, but it is none of these"
    )
    sentence = refused("run", "mine.toml", "--out", "old")
    assert (
        sentence
        == f"old must be a folder of this version and this run, but it differs in whorl (0.0.1 then, {about['whorl']} now)"
    )
    assert refused("run", "mine.toml", "--out", "mine.toml").startswith(
        "mine.toml must be empty, new"
    )
    assert contents(copied) == before


def test_a_corrupt_lock_is_refused(copied, refused):
    Path("mine.lock.json").write_text("{")
    assert refused("run", "mine.toml", "--out", "again").endswith("but it is not JSON")


@pytest.mark.usefixtures("bare")
def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(
    copied, whorl, refused, tables_of
):
    before = tables_of("runs/mine")
    with full_disk(6000):
        assert refused("run", "mine.toml", "--out", "again").endswith(": file too large")
    assert whorl("run", "mine.toml", "--out", "again")[0] == 0
    assert tables_of("again") == before


def test_a_read_only_folder_is_one_sentence_and_loses_nothing(study, refused):
    with open_folder() as folder:
        (folder / "mine.toml").write_text(text())
        shutil.copytree(study / "runs", folder / "runs")
        before = contents(folder)
        with read_only(folder):
            assert refused("run", folder / "mine.toml", "--out", folder / "new").endswith(
                ": permission denied"
            )
            assert refused("register", folder / "mine.toml").endswith(
                "mine.lock.json: permission denied"
            )
        assert contents(folder) == before


def test_replicates_are_kept_and_summarised(tmp_path, monkeypatch, whorl):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(text())
    seed = small().values().seed
    told = spoken(whorl, "replicate", "mine.toml", "--seeds", "1", "--first", seed)
    assert (told["table"], told["seeds"]) == ("runs/replicates/mine.parquet", 1)
    expected = statistics(made("threshold")[1])
    assert {name: spread["median"] for name, spread in told["statistics"].items()} == expected
    code, out, _ = whorl("replicate", "mine.toml", "--seeds", "2", "--first", seed)
    assert code == 0
    assert out.endswith("2 root seeds; table in runs/replicates/mine.parquet\n")
    assert set(pq.read_table("runs/replicates/mine.parquet")["seed"].to_pylist()) == {
        seed,
        seed + 1,
    }


def test_replicates_that_cannot_be_made_are_refused(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(text())
    assert refused("replicate", "mine.toml", "--seeds", "0").startswith("seeds must be ")
    assert refused("replicate", "mine.toml", "--seeds", "1", "--first", "-1").startswith(
        "first must be "
    )
    assert refused("replicate", "mine.toml", "--seeds", "1", "--first", 2**63).startswith(
        "first must be a whole number of at most 63 bits"
    )
    Path("notes.parquet").write_text("words")
    assert refused("replicate", "mine.toml", "--seeds", "1", "--out", "notes.parquet")
    assert contents(tmp_path).keys() == {"mine.toml", "notes.parquet"}


@pytest.fixture
def small_paper(monkeypatch):
    """A paper with one small study under the name of a real one."""

    def put(expected):
        one = small(name="threshold", expected=expected, quick={"resamples": 30})
        monkeypatch.setattr(kinds, "paper", lambda: ("threshold",))
        monkeypatch.setattr(
            sys.modules["whorl.study.conduct"], "opened", lambda _: (one, lock.lock(one))
        )

    return put


@pytest.mark.usefixtures("bare")
def test_reproducing_prints_every_published_number_next_to_ours(
    tmp_path, monkeypatch, whorl, small_paper
):
    monkeypatch.chdir(tmp_path)
    small_paper("PASS")
    told = spoken(whorl, "reproduce")
    assert (told["folder"], told["as_registered"]) == ("runs/paper", True)
    published_here = [number for number in published.numbers() if number.study == "threshold"]
    assert [row["statistic"] for row in told["numbers"]] == [
        number.statistic for number in published_here
    ]
    by_name = {row["statistic"]: row for row in told["numbers"]}
    assert (by_name["rows.configurations"]["verdict"], by_name["rows.configurations"]["here"]) == (
        "DIFFERS",
        "16",
    )
    assert by_name["sign_agreement"]["verdict"] == "equal"
    assert by_name["response_residual.max"]["verdict"] == "holds"
    assert by_name["auc"]["verdict"] in ("inside", "outside")
    code, out, _ = whorl("reproduce")
    assert code == 0
    assert f"of {len(published_here)} numbers agree" in out
    for number in published_here:
        (line,) = [
            line for line in out.splitlines() if number.statistic in line.lstrip(" >").split()
        ]
        assert number.printed in line
        assert by_name[number.statistic]["verdict"] in line


@pytest.mark.slow
@pytest.mark.usefixtures("bare")
def test_reproducing_answers_1_when_a_verdict_differs(tmp_path, monkeypatch, whorl, small_paper):
    monkeypatch.chdir(tmp_path)
    small_paper("FAIL")
    assert whorl("reproduce", "--out", "full")[0] == 1
    code, out, _ = whorl("reproduce", "--quick")
    assert code == 0
    assert "its numbers mean nothing" in out
    assert "numbers agree" not in out
    assert Path("runs/quick/threshold/verdict.json").exists()
    assert (
        jax.config.read("jax_disable_most_optimizations") is False
    )  # what runs later is compiled as ever


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_papers_studies_are_reproduced(tmp_path, process):
    start = process("reproduce", "--json", "--out", tmp_path / "paper")
    out, err = start.communicate()
    assert (start.returncode, err) == (0, "")
    told = json.loads(out)
    assert {v["study"]: v["verdict"] for v in told["verdicts"]} == {
        "structural": "FAIL",
        "threshold": "PASS",
        "horizon": "PASS",
    }
    assert [v["why_unregistered"] for v in told["verdicts"]] == [None, None, None]
    failed = [gate["name"] for v in told["verdicts"] for gate in v["gates"] if not gate["passed"]]
    assert failed == ["joint rank"]
    assert all(finding["passed"] for finding in told["audit"])
    assert [
        row["statistic"]
        for row in told["numbers"]
        if row["kind"] != "statistical" and not row["agrees"]
    ] == []
    drawn = [row["agrees"] for row in told["numbers"] if row["kind"] == "statistical"]
    assert sum(drawn) >= 0.9 * len(drawn)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_smoke_run_works(tmp_path, process):
    start = process("reproduce", "--quick", "--csv", "--out", tmp_path / "quick")
    out, _ = start.communicate()
    assert start.returncode == 0
    assert "all hold" in out
    assert "its numbers mean nothing" in out
    for name in kinds.paper():
        verdict = json.loads((tmp_path / "quick" / name / "verdict.json").read_text())
        assert (verdict["quick"], verdict["registered"]) == (True, False)
        assert "UNREGISTERED" in (tmp_path / "quick" / "report.html").read_text()
