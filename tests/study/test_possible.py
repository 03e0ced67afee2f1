"""A design that cannot pass is refused before anything is computed."""

import pytest

from study.small import quickly
from whorl.study import design, kinds, possible, published, run


@pytest.mark.parametrize("kind", kinds.names())
def test_every_kind_refuses_a_gate_on_a_statistic_that_it_does_not_have(kind):
    shipped = design.shipped(kind)
    gate = shipped.gates[-1].statistic
    text = shipped.text.replace(f'"{gate}"'.encode(), f'"{gate[:-1]}"'.encode())
    with pytest.raises(ValueError, match=rf"but it is on {gate[:-1]}: did you mean {gate}\?"):
        possible.check(design.parse(text, "mine.toml"))
    possible.check(shipped)


def test_a_depth_that_the_design_does_not_have_gives_no_statistic():
    text = design.shipped("structural").text.decode()
    own = text.replace("depths = { value = [2, 3, 4, 6]", "depths = { value = [2, 3, 5]")
    assert own != text
    names = possible.statistics(design.parse(own.encode(), "mine.toml"))
    assert "rank.full.depth5" in names
    assert "rank.full.depth6" not in names


@pytest.mark.parametrize("kind", kinds.paper())
def test_the_names_are_those_of_the_runs_that_were_kept(kind):
    assert set(published.distribution(kind)) <= set(possible.statistics(design.shipped(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds.names())
def test_the_names_are_those_of_a_run(kind, tmp_path):
    shipped = design.shipped(kind)
    quickly(shipped, tmp_path / "run")
    table = run.store.read_table(tmp_path / "run" / "tables" / "statistics.parquet")
    # Where all turns help there is no area under a curve, and where all operators of the structural
    # study keep their rank there is none without it; nothing else may be missing.
    assert set(table["name"]) <= set(possible.statistics(shipped, quick=True))
    missing = set(possible.statistics(shipped, quick=True)) - set(table["name"])
    allowed = {"auc", "auc.lower", "auc.upper"}
    if kind == "structural":
        operators = run.store.read_table(tmp_path / "run" / "tables" / "operators.parquet")
        if (operators["rank"] >= 6).all():
            allowed |= {f"condition.deficient.{end}" for end in ("min", "max")}
    assert missing <= allowed
