"""The rows of every table are those that the page describes."""

import pytest

from study.every_kind import expected_keys
from study.small import made
from whorl.study import design, kinds


def test_the_full_designs_have_the_rows_that_the_paper_counts():
    structural, threshold, horizon = (
        expected_keys(kind, design.shipped(kind).values()) for kind in kinds.paper()
    )
    counts = {
        name: len(structural[name])
        for name in ("operators", "modes", "trajectories", "controls", "curvature")
    }
    assert counts == {
        "operators": 100,
        "modes": 400,
        "trajectories": 900,
        "controls": 4,
        "curvature": 14,
    }
    assert len(threshold["configurations"]) == 1000
    assert [len(horizon[name]) for name in ("updates", "trajectories", "conditions")] == [
        172800,
        960,
        12,
    ]


def test_a_table_with_other_columns_is_not_stored():
    _, tables = made("threshold")
    draws = dict(tables["draws"])
    draws["more"] = draws.pop("auc")
    with pytest.raises(
        ValueError,
        match=r"table draws must have the columns \['draw', 'auc', .* but it has \['draw', 'accuracy'",
    ):
        kinds.get("threshold").arrow("draws", draws)
