"""The page says what the folder holds: no more, no less, and nothing in it is taken for markup."""

import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from report import folders
from report.conftest import SCRIPT
from whorl.ground import store
from whorl.study import design, published, report
from whorl.study.kinds.threshold import chart as scatter
from whorl.study.report import charts, comparison, gates, page, words
from whorl_studies.foresight import chart as ahead


class Tree(HTMLParser):
    """Tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.silent = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.silent += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.silent -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.silent:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def tree(root):
    return Tree(re.sub(r'(id="plotly">)[^<]*', r"\1", (root / "report.html").read_text()))


def stamps(seen):
    return [
        attrs["class"].split()[1]
        for _, attrs in seen.tags
        if attrs.get("class", "").startswith("stamp ")
    ]


def test_every_verdict_gate_and_statistic_is_there(paper):
    seen = tree(paper)
    for study in report.read(paper).studies:
        assert f"{study.name} {study.verdict['verdict']}, as registered" in seen.text
        for gate in study.verdict["gates"]:
            assert gate["name"] in seen.text
        for name in study.statistics:
            assert name in seen.text
    assert stamps(seen) == []


def test_every_published_number_is_a_row(paper):
    text = (paper / "report.html").read_text()
    rows = re.findall(
        r'<tr role="row" data-study="(\w+)" data-class="(\w+)" data-agrees="(\w+)">', text
    )
    assert [row[:2] for row in rows] == [
        (number.study, number.kind) for number in published.numbers()
    ]
    seen = tree(paper)
    assert all(
        number.statistic in seen.text and words.typeset(number.printed) in seen.text
        for number in published.numbers()
    )
    agreed = sum(row[2] == "yes" for row in rows)
    assert f"{agreed} of {len(rows)} published numbers agree" in seen.text


def test_every_finding_of_the_audit_is_there(tmp_path):
    audit = [folders.HOLDS | {"claim": f"claim {number}"} for number in range(30)]
    root = folders.write_run(tmp_path / "run", [folders.own("threshold")], audit=audit)
    report.write(root)
    text = tree(root).text
    assert all(f"claim {number} " in text for number in range(30))
    assert "Audit: 31 of 31 claims" in text


def test_a_failure_is_explained_from_the_gates_and_tables(paper):
    text = tree(paper).text
    assert "joint rank : rank, smallest is 5, and had to be at least 6: it misses by 1." in text
    assert "2 of 6 rows of operators break it: 2 of 3 at depth 6, none at depth 2." in text
    assert "5 counts of rows : 100 operators; 400 modes;" in text
    assert "the other 22 gates held, and what they say stands. The design expects FAIL" in text


def test_an_unexpected_failure_is_not_excused(tmp_path):
    root = folders.write_run(
        tmp_path / "run", [design.shipped("threshold").text], sign_agreement=0.5
    )
    seen = report.read(root).studies[0]
    assert words.outcome(seen.verdict) == ("fail", "but PASS was registered")
    assert "expects" not in words.closing(seen)


def test_a_title_is_text_and_no_markup(mine):
    text = (mine / "report.html").read_text()
    assert SCRIPT not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert SCRIPT in tree(mine).text


def test_no_word_of_a_folder_is_taken_for_markup(tmp_path):
    evil = "<img src=x onerror=alert(1)>\"'</script>"
    root = folders.write_run(
        tmp_path / "run",
        [folders.own("horizon")],
        audit=[folders.HOLDS | {"where": evil, "claim": evil}],
    )
    place = root / "mine" / "verdict.json"
    verdict = store.read_json(place)
    verdict["gates"][0] |= {"name": evil, "statistic": evil, "origin": evil}
    verdict |= {"title": evil, "why_unregistered": evil, "registered": False}
    store.write_json(place, verdict)
    report.write(root, unverified=evil)
    seen = tree(root)
    assert [attrs for tag, attrs in seen.tags if tag == "img" and "onerror" in attrs] == []
    assert evil in seen.text
    assert len([tag for tag, _ in seen.tags if tag == "script"]) == len(
        re.findall(r"</script>", (root / "report.html").read_text())
    )


def test_a_registered_run_has_no_stamp_and_a_users_has_one(paper, mine):
    assert stamps(tree(paper)) == []
    assert stamps(tree(mine)) == ["unregistered"]
    assert "UNREGISTERED mine: the design was never registered." in tree(mine).text


def test_a_quick_run_says_so_and_compares_with_nothing(tmp_path):
    root = folders.write_run(tmp_path / "run", folders.paper(), quick=True)
    report.write(root)
    seen = tree(root)
    assert stamps(seen) == ["quick"]
    assert "QUICK RUN · UNREGISTERED" in seen.text
    assert "no number on this page means anything" in seen.text
    assert "Published and here" not in seen.text


def test_what_is_wrong_with_a_folder_is_said_in_red(tmp_path):
    root = folders.write_run(
        tmp_path / "run", [folders.own("horizon")], audit=(folders.HOLDS, folders.FAILS)
    )
    report.write(root)
    assert stamps(tree(root)) == ["unverified"]
    assert (
        "1 claim did not pass the audit, the first: losses follow from <weights>" in tree(root).text
    )
    report.write(root, unverified="somebody said so")
    assert "UNVERIFIED Do not cite this page: somebody said so." in tree(root).text
    assert "[UNVERIFIED]" in tree(root).text


def test_a_folder_without_an_audit_is_not_taken_for_a_verified_one(tmp_path):
    root = folders.write_run(tmp_path / "run", [folders.own("horizon")], audit=None)
    report.write(root)
    assert stamps(tree(root)) == ["unverified"]
    assert "mine was never audited" in tree(root).text


def test_a_table_that_was_exchanged_is_noticed_and_not_drawn(tmp_path):
    root = folders.write_run(tmp_path / "run", [folders.own("threshold")])
    table = root / "mine" / "tables" / "configurations.parquet"
    table.write_bytes((root / "mine" / "tables" / "statistics.parquet").read_bytes())
    report.write(root)
    seen = tree(root)
    assert "mine has other tables than those its verdict was made from: configurations" in seen.text
    assert not [attrs for tag, attrs in seen.tags if attrs.get("class") == "plot"]


def test_figures_are_inside_with_links_to_files_that_exist(paper):
    seen = tree(paper)
    pictures = [attrs for tag, attrs in seen.tags if tag == "img" and attrs.get("alt")]
    assert len(pictures) == 4
    assert all(attrs["src"].startswith("data:image/png;base64,") for attrs in pictures)
    links = [
        attrs["href"]
        for tag, attrs in seen.tags
        if tag == "a" and not attrs["href"].startswith("#")
    ]
    assert "structural/figures/one.pdf" in links
    assert "horizon/tables/trials.parquet" in links
    assert all((paper / link).is_file() for link in links)


def test_a_broken_figure_leaves_its_words(tmp_path):
    root = folders.write_run(tmp_path / "run", [folders.own("horizon")], figures=("horizon",))
    (root / "mine" / "figures" / "horizon.png").write_bytes(b"no picture")
    report.write(root)
    assert "Where the gap to the native learner comes from" in tree(root).text


def test_a_folder_without_figures_has_a_page(mine):
    assert "No figures were drawn for this study." in tree(mine).text


def test_the_page_names_nothing_outside_itself(paper):
    seen = tree(paper)
    for tag, attrs in seen.tags:
        for name in ("src", "href", "action", "srcset", "data", "poster"):
            assert not re.match(r"(\w+:)?//", attrs.get(name) or ""), (tag, attrs)
    assert not [tag for tag, _ in seen.tags if tag in ("link", "iframe", "object", "embed", "base")]
    (policy,) = [attrs["content"] for _, attrs in seen.tags if attrs.get("http-equiv")]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_a_page_has_one_title_and_headings_without_gaps(paper):
    levels = [int(tag[1]) for tag, _ in tree(paper).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    ids = [attrs["id"] for _, attrs in tree(paper).tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_the_same_folder_gives_the_same_bytes(paper):
    before = (paper / "report.html").read_bytes()
    page.plotly.cache_clear()
    with folders.known_middle():
        assert report.write(paper) == paper / "report.html"
    assert (paper / "report.html").read_bytes() == before


def test_provenance_is_there(paper):
    text = tree(paper).text
    for word in (
        "jax 0.10.2",
        "A Processor",
        "2 cores",
        "3.11.7",
        design.shipped("horizon").sha256,
        "5" * 64,
    ):
        assert word in text


def test_a_folder_that_is_no_finished_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be a run folder of whorl, but it is no folder"):
        report.write(tmp_path / "none")
    with pytest.raises(ValueError, match="must be a run folder of whorl, but it holds no studies"):
        report.write(tmp_path)
    root = folders.write_run(tmp_path / "run", [folders.own("horizon")])
    verdict = store.read_json(root / "mine" / "verdict.json")
    store.write_json(
        root / "mine" / "verdict.json",
        {key: value for key, value in verdict.items() if key != "gates"},
    )
    with pytest.raises(ValueError, match="must be a verdict of whorl, but its gates is None"):
        report.write(root)
    (root / "mine" / "verdict.json").unlink()
    with pytest.raises(ValueError, match="mine must be a finished study, but it has no verdict"):
        report.write(root)


def gate(relation, bound, value, passed=True):
    margin = {"<": bound - value, ">": value - bound, "=": -abs(value - bound)}[relation[0]]
    return {
        "relation": relation,
        "bound": bound,
        "value": value,
        "passed": passed,
        "margin": margin,
        "statistic": "s",
        "name": "n",
    }


@pytest.mark.parametrize(
    ("one", "said", "length"),
    [
        (gate("==", 100.0, 100.0), "met exactly", 0),
        (gate(">=", 6.0, 4.0, False), "misses by 2", 33.33),
        (gate(">=", 2.0, 2.0), "met, with nothing to spare", 0),
        (gate("<", 1e-10, 1.47e-16), "680\u202f000 times below", 100),
        (gate("<", 1e-10, 0.0), "zero", 100),
        (gate("<", 1e-4, 5e-5), "5.000×10⁻⁵ to spare", 50),
        (gate(">", 0.0, 0.5), "0.5000 to spare", 100),
        (gate("<=", 0.0, 0.0), "met, with nothing to spare", 0),
        (gate("<", 1e-10, 2.8e-18), "4×10⁷ times below", 100),
    ],
)
def test_the_margin_of_a_gate(one, said, length):
    assert gates.margin(one) == said
    assert gates.length(one) == length


def test_a_gate_on_a_statistic_that_is_missing():
    one = gate("<", 1.0, 0.0, False) | {"value": None, "margin": None}
    assert gates.margin(one) == "no such statistic"
    assert gates.length(one) == 100
    assert (
        words.failed(one)
        == "s had to be below 1, but this run has no such statistic, which meets no bound."
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (4.0, "4"),
        (1.999920711, "2.000"),
        (-0.0843869, "−0.08439"),
        (1.4710732e-16, "1.471×10⁻¹⁶"),
        (12345.6, "12346"),
        (None, "none"),
        (float("nan"), "not a number"),
        (-0.0, "0"),
    ],
)
def test_a_number_as_people_read_it(value, said):
    assert words.number(value) == said


def test_a_number_that_was_chosen_is_as_short_as_it_was_written():
    assert [words.chosen(one) for one in (1e-10, 0.9, 2.5e-3, 100.0, True)] == [
        "10⁻¹⁰",
        "0.9",
        "0.0025",
        "100",
        "True",
    ]


def test_values_that_coincide_are_one_bar_that_can_be_seen_beside_the_published_one():
    bars, counts, wide = comparison._bars(np.full(9, 0.0066666) + 1e-12 * np.arange(9), 0.006649)
    assert (len(bars), counts.tolist(), wide) == (1, [9], False)
    width = bars[0][1] - bars[0][0]
    assert 0.05 < width / (0.0066666 - 0.006649) < 0.2
    bars, _, _ = comparison._bars(np.full(9, 25.0), 25.0)
    assert bars.tolist() == [[24.5, 25.5]]


def test_condition_numbers_have_bars_of_equal_ratio():
    bars, counts, wide = comparison._bars(np.geomspace(2.0, 2e8, 300), 5e6)
    assert wide
    np.testing.assert_allclose(bars[:, 1] / bars[:, 0], bars[0, 1] / bars[0, 0])
    assert counts.tolist() == [10] * 30


def data(root, chart):
    text = (root / "report.html").read_text()
    part = text[text.index(f'<figure class="chart" id="{chart}"') :]
    return json.loads(
        part.partition('<script type="application/json" class="data">')[2].partition("</script>")[0]
    )


def test_the_scatter_holds_every_configuration_and_rings_the_wrong_ones(paper):
    table = folders.tables_of("threshold")["configurations"]
    helps, hurts, wrong = data(paper, "study-threshold-scatter")["figure"]["data"]
    drawn = sorted(row[4] for row in helps["customdata"] + hurts["customdata"])
    assert np.allclose(drawn, np.sort(table["coefficient"]), rtol=1e-5)
    assert len(wrong["x"]) == (table["predicted"] != table["favourable"]).sum() == 1
    assert all(row[4] < 0 for row in helps["customdata"])


def test_the_gap_is_drawn_against_what_was_foreseen(tmp_path):
    gaps = {
        f"gap.turns.{k}{end}": value
        for k in ("k0", "k6", "end")
        for end, value in (("", -0.01), (".lower", -0.02), (".upper", 0.03))
    }
    rivals = {
        "against.random.k0.wins": 2,
        "against.random.k0.loses": 7,
        "against.random.end.wins": 0,
        "against.random.end.loses": 5,
    }
    root = folders.write_run(tmp_path / "run", [folders.own("foresight")], **gaps, **rivals)
    report.write(root)
    turns, random = data(root, "study-mine-ahead")["figure"]["data"]
    assert (turns["name"], random["name"]) == ("turns", "random directions")
    assert turns["x"] == random["x"] == [0, 1, 2]
    assert [row[:3] for row in turns["customdata"]] == [[-0.01, -0.02, 0.03]] * 3
    assert [row[3] for row in turns["customdata"]] == ["0 of 2", "0 of 2", "2 of 2"]
    assert np.allclose(turns["y"], charts.signed_log(np.array([-0.01] * 3), ahead.GAP), rtol=1e-5)
    assert np.all(np.array(turns["error_y"]["array"]) > 0)
    assert np.all(np.array(turns["error_y"]["arrayminus"]) > 0)
    words = (root / "report.html").read_text()
    assert "in 0, 0 and 2 of 2 conditions, from left to right" in words
    assert (
        "Beside “random directions” turns end lower in 2 and higher in 7 at the left, in 0 and 5 "
        "at the right." in words
    )
    assert (
        "Beside “along the residual”" not in words
    )  # a run without these statistics says nothing of them


def test_the_trials_hold_both_policies_in_one_order(paper):
    table = folders.tables_of("horizon")["trials"]
    joined, matched, adaptive, *means = data(paper, "study-horizon-trials")["figure"]["data"]
    assert np.allclose(matched["y"], np.sort(table["gap"][::2]), rtol=1e-5)
    assert [row[0] for row in matched["customdata"]] == [row[0] for row in adaptive["customdata"]]
    assert joined["y"][:3] == [matched["y"][0], adaptive["y"][0], None]
    assert len(means) == 2


def test_the_distributions_hold_every_statistical_number(paper):
    choices = data(paper, "replication")["choices"]
    numbers = [number for number in published.numbers() if number.kind == "statistical"]
    assert [(c["study"], c["name"], c["published"]) for c in choices] == [
        (n.study, words.plain(n.statistic), float(n.printed)) for n in numbers
    ]
    assert all(len(c["bars"]) == len(c["counts"]) for c in choices)


def test_a_large_study_does_not_make_a_large_page():
    size = 20_000
    table = {
        "family": np.arange(size),
        "depth": np.ones(size, int),
        "beta": np.zeros(size),
        "ratio": np.linspace(-5, 500, size),
    }
    table["coefficient"] = 1 - table["ratio"]
    table |= {
        "favourable": (table["coefficient"] < 0).astype(int),
        "predicted": (table["ratio"] > 1).astype(int),
    }
    chart = scatter.chart({}, table, "a")
    assert sum(len(trace["x"]) for trace in chart.figure["data"]) <= scatter.MOST
    assert "points are drawn" in chart.summary


def test_signed_logarithms_are_odd_and_end_in_decades():
    at = charts.signed_log(np.array([-100.0, 0.0, 10.0, 100.0]), 0.01)
    assert at[1] == 0
    assert at[0] == -at[3]
    assert at[3] - at[2] == pytest.approx(1, abs=1e-6)


def test_the_page_begins_with_the_paper_and_what_was_found(paper):
    text = (paper / "report.html").read_text()
    head = text[: text.index('id="published"')]
    assert "Reciprocity Separates Gradient Flow from Rotation" in head
    assert "the joint rank falls to 5 of 6" in head
    assert "what did not hold: joint rank, as the paper found." in head
    assert "<strong>Fig. 1.</strong>" in head
    for link in re.findall(r'href="#(number-[\w.-]+)"', head):
        assert text.count(f'id="{link}"') == 1


def test_a_design_of_ones_own_is_not_answered_with_the_papers_words(mine):
    text = (mine / "report.html").read_text()
    assert "as the paper found" not in text
    assert "Over many updates, does a turn" not in text
