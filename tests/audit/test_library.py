"""The auditor and the library share no code, and agree on every value that the library writes."""

import numpy as np
import pytest

import whorl as wh
import whorl_audit
from study.small import SMALL, made, small
from whorl.study import design, run
from whorl.study import kinds as ours
from whorl_audit import kinds, rows
from whorl_studies.foresight.audit import quarter_turn


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", SMALL)
def test_what_the_library_wrote_is_what_the_auditor_computes(kind, tmp_path):
    run.run(small(kind), tmp_path / "mine", registered={})
    findings = whorl_audit.check_study(whorl_audit.folder.read(tmp_path / "mine"))
    assert [finding.claim for finding in findings if not finding.passed] == []


@pytest.mark.parametrize("kind", ours.names())
def test_the_rows_of_a_table_are_foretold_by_arithmetic(kind):
    p = vars(design.shipped(kind).values(quick=True))
    made = kinds.find(kind).keys(p)
    foretold = kinds.find(kind).sizes(p)
    assert foretold == {name: len(next(iter(made[name].values()))) for name in foretold}


@pytest.mark.parametrize("width", range(3, 9))
def test_both_have_the_same_quarter_turn_at_every_width(width):
    np.testing.assert_allclose(quarter_turn(width), wh.quarter_turn(width), atol=1e-15)


def test_a_row_too_many_at_the_end_is_found():
    table = {"depth": np.arange(4)}
    assert list(rows._key_faults(table, {"depth": np.arange(3)})) == ["4 rows instead of 3"]
    assert list(rows._key_faults(table, {"depth": np.arange(5)})) == ["4 rows instead of 5"]


@pytest.mark.slow
def test_both_kinds_of_wrong_prediction_are_errors():
    p, tables = made("threshold")
    table = tables["configurations"]
    wrong = table["favourable"].copy()
    for value in (0, 1):
        wrong[np.flatnonzero(table["favourable"] == value)[0]] = 1 - value
    found = kinds.find("threshold").statistics(
        tables | {"configurations": table | {"predicted": wrong}}, vars(p)
    )
    assert set(table["favourable"]) == {0, 1}
    assert found["errors"].values == 2
