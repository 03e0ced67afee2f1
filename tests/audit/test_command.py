"""`python -m whorl_audit`: exit codes, sentences, and what it writes."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import whorl_audit
from audit import forge, tamper
from whorl_audit import record
from whorl_audit.__main__ import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return forge.write_run(tmp_path_factory.mktemp("command"))


def test_a_sound_folder_ends_with_zero_and_a_record_in_every_study(run, capsys):
    assert main([str(run)]) == 0
    assert "claims hold" in capsys.readouterr().out
    for kind in forge.PARAMETERS:
        record = json.loads((run / kind / "audit.json").read_text())
        assert (record["study"], record["passed"]) == (kind, True)
        assert set(record["study_findings"][0]) == {
            "claim",
            "error",
            "tolerance",
            "where",
            "passed",
        }
    assert not list(run.rglob(".audit*"))


def test_two_audits_write_the_same_record_and_the_folder_still_passes(run):
    main([str(run)])
    first = (run / "horizon" / "audit.json").read_bytes()
    assert main([str(run)]) == 0
    assert (run / "horizon" / "audit.json").read_bytes() == first


KILLED = """
import os, signal, sys
from whorl_audit import record
from whorl_audit.__main__ import main
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def test_an_audit_that_is_killed_in_the_middle_of_a_write_leaves_nothing_after_the_next(run):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(run)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = run.rglob(".audit.json.*")
    assert main([str(run), "--no-write"]) == 1  # an audit that writes nothing removes nothing
    assert left.exists()
    assert main([str(run)]) == 0
    assert not left.exists()


def test_each_flipped_bit_of_a_record_is_found(run, capsys):
    assert main([str(run)]) == 0
    path = run / "threshold" / "audit.json"
    sound, rng = path.read_bytes(), np.random.default_rng(1)
    assert [one.passed for one in record.check(path.parent)] == [True]
    for at in rng.choice(len(sound), 400, replace=False).tolist():
        content = bytearray(sound)
        content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(content))
        assert [one.passed for one in record.check(path.parent)] == [False], at
    assert main([str(run)]) == 1
    assert "an earlier audit.json is as it was written" in capsys.readouterr().out
    assert main([str(run)]) == 0  # the audit before wrote it anew


def test_a_study_can_be_audited_on_its_own(run):
    assert main([str(run / "threshold"), "--no-write"]) == 0
    assert list(whorl_audit.audit(run / "threshold").findings) == ["", "threshold"]


def test_nothing_is_written_when_nothing_shall_be(run):
    for path in run.rglob("audit.json"):
        path.unlink()
    assert main([str(run), "--no-write"]) == 0
    assert not list(run.rglob("audit.json"))


def test_every_finding_is_printed_for_machines(run, capsys):
    assert main([str(run), "--no-write", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["passed"]
    assert {finding["study"] for finding in said["findings"]} == {"", *forge.PARAMETERS}


def test_a_failure_ends_with_one_and_says_what_and_where(run, capsys):
    path = run / "threshold" / "verdict.json"
    with tamper.kept(path):
        path.write_text(path.read_text().replace('"FAIL"', '"PASS"'))
        assert main([str(run), "--no-write"]) == 1
    said = capsys.readouterr().out
    assert "the verdict follows from the gates" in said
    assert "verdict.json differs" in said


def spoil(name, text):
    return lambda run: (run / "structural" / name).write_text(text)


UNREADABLE = {
    "must be TOML": spoil("design.toml", "name = "),
    "must be one of budgets, foresight, horizon, rules, structural, threshold": spoil(
        "design.toml", 'kind = "other"'
    ),
    "parameters must be those of the kind": spoil(
        "design.toml", 'kind = "structural"\n[parameters]\nseed = { value = 1 }'
    ),
    "must be a table": spoil("design.toml", 'kind = "structural"\nparameters = 3'),
    "verdict.json must be JSON": spoil("verdict.json", "{"),
    "lock.json must hold a JSON object": spoil("lock.json", "[]"),
    "lock.json must be a readable file": lambda run: (run / "structural" / "lock.json").unlink(),
}


@pytest.mark.parametrize("sentence", UNREADABLE)
def test_a_folder_that_cannot_be_read_ends_with_two_and_one_sentence(run, capsys, sentence):
    path = run / "structural"
    with tamper.kept(path / "design.toml", path / "verdict.json", path / "lock.json"):
        UNREADABLE[sentence](run)
        assert main([str(run)]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert ", but " in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("seed", -1, "whole number"),
        ("families", '"many"', "whole number"),
        ("depths", "[0]", "whole numbers from 1 to 64"),
        ("omegas", "[]", "list of different numbers"),
        ("leak", "nan", "number"),
        ("width", 4, "be 3"),
    ],
)
def test_a_parameter_without_sense_is_named(run, capsys, name, value, rule):
    path = run / "structural" / "design.toml"
    with tamper.kept(path):
        given = json.dumps(forge.PARAMETERS["structural"][name])
        path.write_text(
            path.read_text().replace(f"{name} = {{ value = {given}", f"{name} = {{ value = {value}")
        )
        assert main([str(run)]) == 2
    assert f"{name} must " in (said := capsys.readouterr().err)
    assert rule in said


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_folder_without_a_study_is_refused(tmp_path, capsys, name):
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / name)]) == 2
    assert "the run folder must" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_said_to_be(run, capsys):
    (run / "structural" / "audit.json").mkdir()
    assert main([str(run)]) == 1
    said = capsys.readouterr().out
    assert "the folder structural/audit.json" in said
    assert "audit.json was not written" in said
    (run / "structural" / "audit.json").rmdir()
    assert not list(run.rglob(".audit*"))


def test_a_study_that_cannot_be_followed_to_its_end_fails(run, monkeypatch):
    monkeypatch.setattr(whorl_audit.values, "check", lambda *_: 1 / 0)
    assert [finding.claim for finding in whorl_audit.audit(run / "horizon").failures] == [
        "the study can be followed to its end"
    ]
