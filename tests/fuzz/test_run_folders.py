"""Run folders that somebody sends.

Audited or drawn, or refused in one sentence, whatever was done to their files.
"""

import contextlib
import io
import json

import pytest
from hypothesis import strategies as st

import whorl_audit
import whorl_audit.__main__ as command
from audit import forge
from fuzz import texts
from fuzz.doors import ends_well, sentence
from fuzz.folders import Folder, changes
from report import folders
from whorl.study import design, report
from whorl.study.report import page

SMALL = forge.PARAMETERS["threshold"] | {
    "families": 2,
    "depths": [1],
    "betas": [0.0, 2.0],
    "resamples": 3,
}


@pytest.fixture
def audited(tmp_path):
    """The smallest folder that passes its audit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(forge.PARAMETERS, "threshold", SMALL)
        forge.write_run(tmp_path / "run", ("threshold",))
    assert whorl_audit.audit(tmp_path / "run").passed
    return Folder(tmp_path / "run")


def audit(folder, changed):
    """The command of the auditor on a changed folder: findings, or code 2 and a sentence."""
    out, err = io.StringIO(), io.StringIO()
    folder.put(changed)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main([str(folder.root), "--json"])
    finally:
        folder.restore(changed)
    if code == 2:
        assert not out.getvalue()
        sentence(err.getvalue().removeprefix("whorl_audit: ").rstrip("\n"))
        return False
    told = json.loads(out.getvalue(), parse_constant=pytest.fail)
    assert told["passed"] is (code == 0)
    assert all(len(finding["where"].splitlines()) <= 1 for finding in told["findings"])
    return True


@pytest.mark.filterwarnings(
    "default"
)  # the auditor is a process of its own, whose warnings nobody raises
def test_any_run_folder_is_audited_or_refused(fuzz, audited):
    fuzz(changes(audited.contents), lambda changed: audit(audited, changed))


@pytest.mark.filterwarnings("default")
def test_any_design_in_a_folder_is_audited_or_refused_though_its_hashes_fit(fuzz, audited):
    text = audited.contents["threshold/design.toml"].decode()

    def forged(written):
        verdict = json.loads(audited.contents["threshold/verdict.json"])
        verdict["design"] = forge.sha256(written)
        return audit(
            audited,
            {
                "threshold/design.toml": written,
                "threshold/verdict.json": json.dumps(verdict).encode(),
            },
        )

    fuzz(
        st.one_of(texts.other_values([text]), texts.mutations([text], []), texts.shuffled([text])),
        forged,
    )


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A run folder with something of everything that a page shows."""
    monkeypatch.setattr(
        page, "plotly", lambda: "the chart library, which only takes long to compress"
    )
    return Folder(
        folders.write_run(tmp_path / "run", [design.shipped("horizon").text], figures=("one",))
    )


def test_any_run_folder_is_drawn_or_refused(fuzz, told):
    def drawn(changed):
        told.put(changed)
        try:
            return ends_well(lambda: page.render(report.read(told.root)))
        finally:
            told.restore(changed)

    fuzz(changes(told.contents), drawn)
