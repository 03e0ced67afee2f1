"""The columns of every table are those of the page."""

import re
from pathlib import Path

import pytest

from study.every_kind import expected_keys
from study.small import made
from whorl.study import design, kinds

PAGE = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
ALL = [(kind, name) for kind in kinds.paper() for name in kinds.get(kind).columns]


def documented(kind, name):
    """Role by column, as docs/studies.md has it; its rows name the keys."""
    section = PAGE.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    if name == "tasks" and kind != "structural":
        return documented("structural", "tasks") | {
            "family" if kind == "threshold" else "trial": "key"
        }
    cells = re.search(rf"^\| `{name}` \| ([^|]*) \| ([^|]*) \|$", section, flags=re.MULTILINE)
    assert cells is not None
    roles = dict.fromkeys(cells[1].split(", "), "key")
    role = None
    for word in (
        cells[2]
        .replace(",", " ")
        .replace(";", " ")
        .replace(" (Eq. 13)", "")
        .replace(" (J M J^T)", "")
        .split()
    ):
        if word in ("key", "drawn", "computed", "derived"):
            role = word
        elif many := re.fullmatch(r"(\w+_)0\.\.2", word):
            roles |= {f"{many[1]}{i}": role for i in range(3)}
        else:
            roles[word] = role
    return roles


@pytest.mark.parametrize(("kind", "name"), [pair for pair in ALL if pair[1] != "statistics"])
def test_columns_and_roles_are_those_of_the_page(kind, name):
    ours = {column.name: column.role for column in kinds.get(kind).columns[name]}
    wanted = documented(kind, name)
    if name == "tasks" and kind == "horizon":
        wanted.pop("family")
    assert ours == wanted


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
