"""The auditor and the library share no code, and agree on every value that the library writes."""

import pytest

import whorl_audit
from study.small import SMALL, small
from whorl.study import design, run
from whorl_audit import keys


@pytest.mark.parametrize("kind", SMALL)
def test_what_the_library_wrote_is_what_the_auditor_computes(kind, tmp_path):
    run.run(small(kind), tmp_path / "mine", registered={})
    findings = whorl_audit.check_study(whorl_audit.folder.read(tmp_path / "mine"))
    assert [finding.claim for finding in findings if not finding.passed] == []


@pytest.mark.parametrize("kind", design.SHIPPED)
def test_the_rows_of_a_table_are_foretold_by_arithmetic(kind):
    p = vars(design.shipped(kind).values(quick=True))
    made = keys.KEYS[kind](p)
    foretold = keys.sizes(kind, p)
    assert foretold == {name: len(next(iter(made[name].values()))) for name in foretold}
