"""`whorl report`: a page for a folder that passes the audit, a refusal for one that does not."""

import argparse
import json

import pytest

import whorl_cli
from report import folders
from whorl.ground import store
from whorl.study import conduct, design, layout, lock, report
from whorl_cli import _child
from whorl_cli import report as command

SMALL = {"families": "2", "depths": "[1]", "betas": "[0.0, 8.0]", "resamples": "10"}


def small():
    """A threshold study of a user's own that runs in a moment."""
    lines = folders.own("threshold", "Ours", "ours").decode().splitlines()
    kept = []
    for line in lines:
        name = line.partition(" ")[0]
        kept.append(
            f'{name} = {{ value = {SMALL[name]}, origin = "own" }}'
            if name in SMALL and "{" in line
            else line
        )
    head = "\n".join(kept).partition("[[gates]]")[0].partition("[quick]")[0]
    gate = '[[gates]]\nname = "signs agree"\nstatistic = "sign_agreement"\nrelation = ">="\nbound = 0.9\norigin = "own"\n'
    return design.parse((head + gate).encode())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    study = small()
    folder = tmp_path_factory.mktemp("run") / "ours"
    conduct(study, folder, registered=lock.lock(study))
    return folder


def whorl(*words):
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    given = parser.parse_args(["report", *map(str, words)])
    return given.call(given)


def sealed(folder):
    listed = (folder / layout.MANIFEST).read_text().splitlines()
    return f"{store.hash_of(folder / report.NAME)}  {report.NAME}" in listed


def test_a_sound_folder_of_a_users_own_gets_its_page_and_stays_sound(run, capsys):
    assert whorl(run) == 0
    assert capsys.readouterr().out.strip() == str(run / report.NAME)
    page = (run / report.NAME).read_text()
    assert "Ours" in page
    assert '<div class="stamp' not in page
    assert sealed(run)
    assert _child.audit(run)["passed"]


@pytest.mark.slow
def test_the_page_of_an_interrupted_command_is_made_anew(run):
    with (run / report.NAME).open("a") as file:
        file.write("half of a pa")
    assert not _child.audit(run)["passed"]
    assert whorl(run) == 0
    assert '<div class="stamp' not in (run / report.NAME).read_text()
    assert _child.audit(run)["passed"]


@pytest.mark.slow
def test_a_folder_that_fails_the_audit_is_refused_unless_told_otherwise(run, capsys):
    whorl(run)
    before, manifest = (run / report.NAME).read_bytes(), (run / layout.MANIFEST).read_bytes()
    (run / "summary.json").write_text(json.dumps({"studies": {}}))
    capsys.readouterr()
    assert whorl(run) == 1
    refusal = capsys.readouterr().err
    assert "must pass the audit, but" in refusal
    assert "summary.json" in refusal
    assert (run / report.NAME).read_bytes() == before
    assert whorl(run, "--unverified", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["verified"], "summary.json" in said["reason"]) == (False, True)
    page = (run / report.NAME).read_text()
    assert '<div class="stamp unverified"' in page
    assert "summary.json" in page
    assert (run / layout.MANIFEST).read_bytes() == manifest, "sealing would hide what is wrong"


def test_what_is_no_run_folder_is_bad_input(tmp_path):
    with pytest.raises(ValueError, match=r"must|there is"):
        whorl(tmp_path / "none")


def test_the_command_is_known():
    assert whorl_cli.parser().parse_args(["report", "runs/paper"]).call is command.call
