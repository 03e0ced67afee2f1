"""The paper's numbers, each compared as its class demands and never as another."""

import tomllib

import numpy as np
import pyarrow.parquet as pq
import pytest

from study import every_kind
from study.small import HOME
from whorl.study import design, kinds, published, run
from whorl.study.published import Number, compare, percentile


def number(printed, kind, bound=None, roundoff=True):
    return Number("threshold", "auc", printed, kind, "here", bound, roundoff, "")


def full_statistics(kind):
    """The statistics of a full run, as the page names them."""
    return every_kind.statistics_of(kind, design.shipped(kind).values(), deficient=True)


@pytest.mark.parametrize("study", kinds.paper())
def test_every_published_number_is_a_statistic_of_its_study(study):
    wanted = {one.statistic for one in published.numbers() if one.study == study}
    assert wanted
    assert wanted <= full_statistics(study)
    for one in design.shipped(study).gates:
        assert one.statistic in full_statistics(study)


def test_the_table_of_numbers_is_well_formed():
    rows = [
        {"study": study} | row
        for study in kinds.paper()
        for row in tomllib.loads((HOME / study / "published.toml").read_text())["numbers"]
    ]
    assert len(rows) == len(published.numbers()) >= 60
    assert len({(one.study, one.statistic) for one in published.numbers()}) == len(rows)
    for one, row in zip(published.numbers(), rows, strict=True):
        assert row.keys() <= {
            "study",
            "statistic",
            "printed",
            "class",
            "where",
            "bound",
            "roundoff",
            "note",
        }
        assert one.kind in ("exact", "identity", "statistical")
        assert one.study in kinds.paper()
        assert one.where
        assert (one.bound is not None) == (one.kind == "identity")
        float(one.printed.removesuffix("...").removeprefix("<"))


@pytest.mark.parametrize("study", kinds.paper())
def test_our_distribution_is_of_the_registered_design_over_many_seeds(study):
    table = pq.read_table(HOME / study / "distribution.parquet")
    about = table.schema.metadata
    assert (about[b"study"], about[b"design"], about[b"quick"]) == (
        study.encode(),
        design.shipped(study).sha256.encode(),
        b"False",
    )
    assert len(set(table["seed"].to_pylist())) >= 200
    found = published.distribution(study)
    assert found.keys() <= full_statistics(study)
    assert sum(values.size for values in found.values()) == table.num_rows
    for one in published.numbers():
        if one.study == study and one.kind == "statistical":
            assert found[one.statistic].size >= 200
            assert np.isfinite(found[one.statistic]).all()


@pytest.mark.parametrize(
    ("printed", "value", "agrees"),
    [
        ("-0.9271875", -0.92718750000001, True),
        ("-0.9271875", -0.9271874, False),
        ("-0.9271875", 0.9271875, False),
        ("0.026666...", 0.02666666666666667, True),
        ("0.026666...", 0.0266669, True),
        ("0.026666...", 0.02667, False),
        ("0.026666...", 0.02665999, False),
        ("1.999921", 1.9999214, True),
        ("1.999921", 1.9999216, False),
        ("1.999405", 1.999405, True),
        ("1.000", 1.0, True),
        ("1.000", 0.999, False),
        ("100", 100.0, True),
        ("100", 99.0, False),
        ("100", 100.4, False),
        ("0", 0.0, True),
        ("0", -0.0, True),
        ("0", 0.3, False),
        ("0", 1e-16, False),
        ("0", float("nan"), False),
    ],
)
def test_exact_numbers_agree_in_every_digit_that_was_printed(printed, value, agrees):
    line = compare(number(printed, "exact"), value)
    assert (line.agrees, line.verdict) == (agrees, "equal" if agrees else "DIFFERS")
    assert line.percentile is None


@pytest.mark.parametrize(
    ("value", "bound", "roundoff", "agrees"),
    [
        (3e-16, 1e-10, True, True),
        (0.0, 1e-10, True, True),
        (1e-12, 1e-10, True, False),  # below the bound, but not at round-off
        (2e-15, 1e-15, True, False),
        (2e-6, 1e-4, False, True),
        (2e-4, 1e-4, False, False),
        (-1.0, 1e-4, False, False),
        (float("nan"), 1e-4, False, False),
    ],
)
def test_identities_hold_below_the_bound_and_at_round_off(value, bound, roundoff, agrees):
    line = compare(number("1.0e-15", "identity", bound, roundoff), value)
    assert (line.agrees, line.verdict, line.percentile) == (
        agrees,
        "holds" if agrees else "FAILS",
        None,
    )


def test_a_percentile_counts_equal_values_half():
    among = np.array([1.0, 2.0, 2.0, 3.0])
    assert [percentile(value, among) for value in (0.0, 1.0, 1.5, 2.0, 3.0, 4.0)] == [
        0,
        12.5,
        25,
        50,
        87.5,
        100,
    ]
    assert percentile(0.0, np.zeros(9)) == 50


@pytest.mark.parametrize(
    ("printed", "agrees", "at"),
    [
        ("0.5", True, 50.0),
        ("0.03", True, 3.0),
        ("0.02", False, 2.0),
        ("0.975", True, 97.5),
        ("0.985", False, 98.5),
    ],
)
def test_statistical_numbers_lie_inside_the_central_95_per_cent(monkeypatch, printed, agrees, at):
    monkeypatch.setattr(
        published, "distribution", lambda study: {"auc": (np.arange(200) + 0.5) / 200}
    )
    line = compare(number(printed, "statistical"), 0.123456789)
    assert (line.agrees, line.verdict) == (agrees, "inside" if agrees else "outside")
    assert line.percentile == pytest.approx(at, abs=0.26)
    assert line.here == published.alike(printed, 0.123456789)


@pytest.mark.parametrize(
    ("printed", "value", "said"),
    [
        ("8.00995e-3", 0.00643367, "6.43367e-3"),
        ("10.63e-3", 0.826794, "8.27e-1"),
        ("0.963", 0.9625, "0.963"),
        ("29", 37.0, "37"),
        ("0", 0.004, "0.004"),
        ("1.0e-3", float("nan"), "nan"),
    ],
)
def test_ours_is_written_as_theirs_was(printed, value, said):
    assert published.alike(printed, value) == said


def test_a_number_is_never_compared_as_one_of_another_class(monkeypatch):
    monkeypatch.setattr(
        published, "distribution", lambda study: pytest.fail("this class has no distribution")
    )
    assert not compare(number("0.5", "exact"), 0.6).agrees
    assert not compare(number("0.5", "identity", 1e-10), 0.5).agrees
    monkeypatch.setattr(published, "distribution", lambda study: {"auc": np.array([0.4, 0.5, 0.6])})
    assert compare(number("0.5", "statistical"), 7.0).agrees
    assert not compare(number("7.0", "statistical"), 7.0).agrees


def test_a_number_that_a_run_does_not_have_does_not_agree():
    for kind in ("exact", "identity", "statistical"):
        line = compare(number("0.5", kind, 1.0), None)
        assert (line.agrees, line.verdict, line.here) == (False, "no such value here", "none")


def test_the_table_has_a_line_for_every_number_of_the_studies_that_were_run(monkeypatch):
    spread = {
        one.statistic: np.array([float(one.printed)])
        for one in published.numbers()
        if one.kind == "statistical"
    }
    monkeypatch.setattr(published, "distribution", lambda study: spread)
    lines = published.table(
        {"threshold": {"rows.configurations": 1000.0, "auc": 0.9, "sign_agreement": 1.0}}
    )
    assert [line.statistic for line in lines] == [
        one.statistic for one in published.numbers() if one.study == "threshold"
    ]
    assert [line.statistic for line in lines if line.agrees] == [
        "rows.configurations",
        "auc",
        "sign_agreement",
    ]
    assert lines[0].asdict()["published"] == "1000"


@pytest.mark.slow
@pytest.mark.parametrize("study", kinds.paper())
def test_our_distribution_can_be_made_again(study):
    table = pq.read_table(HOME / study / "distribution.parquet").to_pylist()
    seed = table[len(table) // 2]["seed"]
    stored = {row["statistic"]: row["value"] for row in table if row["seed"] == seed}
    made_again = run.compute(design.shipped(study), seed=seed)["statistics"]
    found = dict(zip(made_again["name"].tolist(), made_again["value"].tolist(), strict=True))
    assert found.keys() == stored.keys()
    for name, value in stored.items():
        assert found[name] == pytest.approx(value, rel=1e-6, abs=1e-12)
