"""`whorl verify` makes figures, page and meanings once more, so that a change of what they show is
found though all is sealed anew.
"""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from whorl.ground import store
from whorl.study import environment, figures
from whorl.study.conduct import seal
from whorl.study.report import again
from whorl_cli import _child

RUN = Path("runs/mine")


@pytest.fixture(scope="module")
def findings(study):
    return _child.audit(study / RUN)["findings"]


@pytest.fixture
def drawn(study, monkeypatch):
    """The figure of the sound folder is what is drawn: drawing has its own test."""
    made = {path.name: path.read_bytes() for path in (study / RUN / "mine" / "figures").iterdir()}
    monkeypatch.setattr(figures, "drawn_study", lambda _: made)


def resealed(root):
    """Tables in the verdict, crate and manifest anew, as a forger makes them."""
    path = root / "mine" / "verdict.json"
    verdict = store.read_json(path)
    for name, entry in verdict["tables"].items():
        entry["sha256"] = store.hash_of(root / "mine" / "tables" / f"{name}.parquet")
    store.write_json(path, verdict)
    seal(root, store.read_json(root / "environment.json"), [verdict])


def failed(root, findings):
    found, _ = again.compare(root, findings)
    return [finding["claim"] for finding in found if not finding["passed"]]


def test_a_sound_folder_passes_under_any_name_and_says_what_is_not_covered(copied, whorl):
    RUN.rename("other <name>")
    code, out, _ = whorl("verify", "other <name>", "--json")
    told = json.loads(out)
    assert (code, told["passed"]) == (0, True)
    assert any("its design does not ship" in note for note in told["notes"])
    assert any("clock" in one for one in told["not_covered"])
    assert not any("figures" in one for one in told["not_covered"])
    assert {"the page is what this folder gives", "every figure is what these tables give"} <= {
        one["claim"] for one in told["findings"]
    }


def test_a_forged_page_is_refused_though_it_was_sealed_anew(copied, whorl):
    place = RUN / "report.html"
    place.write_text(re.sub(r"(\d+) of \d+ gate", r"9\1 of 99 gate", place.read_text(), count=1))
    resealed(RUN)
    code, out, _ = whorl("verify", RUN)
    assert code == 1
    assert "the page is what this folder gives" in out
    assert "not covered who made the run" in out


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</body>", "<script>alert(1)</script></body>"),
        ('<script type="text/plain" id="plotly">', '<script type="text/plain" id="plotly">AAAA'),
        ("PASS", "FAIL"),
        ("<h1>mine</h1>", "<h1>mine<b>!</b></h1>"),
        ("</html>", "</html>\n<p>more</p>"),
        ("</html>", "</html>\n\n"),
        ('data-label="tolerance" class="number">0<', 'data-label="tolerance" class="number">1<'),
    ],
)
def test_a_change_of_the_page_is_found(copied, findings, drawn, old, new):
    place = RUN / "report.html"
    assert failed(RUN, findings) == []
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new, 1))
    assert failed(RUN, findings) == ["the page is what this folder gives"]


def test_errors_of_an_audit_on_another_machine_are_said_and_no_failure(copied, findings, drawn):
    place = RUN / "report.html"
    text = place.read_text()
    other = re.sub(
        r'(data-label="error" class="number">)[1-9][^<]*<', r"\g<1>1.23e-16<", text, count=1
    )
    assert other != text
    place.write_text(other)
    found, notes = again.compare(RUN, findings)
    assert all(finding["passed"] for finding in found)
    assert "audit elsewhere" in notes[0]


@pytest.mark.slow
def test_a_figure_of_other_data_is_found(copied, findings, monkeypatch):
    before = {path.name: path.read_bytes() for path in (RUN / "mine" / "figures").iterdir()}
    read = store.read_table
    with monkeypatch.context() as patch:
        patch.setattr(
            store,
            "read_table",
            lambda path: {name: values[::-1] for name, values in read(path).items()},
        )
        figures.draw_study(RUN / "mine")
    assert before != {path.name: path.read_bytes() for path in (RUN / "mine" / "figures").iterdir()}
    resealed(RUN)
    assert _child.audit(RUN)["passed"]  # the hashes that the forged figure names are right
    assert "every figure is what these tables give" in failed(RUN, findings)


@pytest.mark.parametrize("of", ["column", "table"])
def test_a_column_that_was_given_another_meaning_is_found(copied, findings, drawn, of):
    path = RUN / "mine" / "tables" / "configurations.parquet"
    table = pq.ParquetFile(path).read()
    at = table.schema.get_field_index("ratio")
    field = table.schema.field(at)
    if of == "column":
        schema = table.schema.set(
            at, field.with_metadata(field.metadata | {b"description": b"a measured resistance"})
        )
    else:
        schema = table.schema.with_metadata({"study": "threshold", "table": "measurements"})
    store.write(path, store.parquet(table.cast(schema)))
    resealed(RUN)
    assert "every column has the meaning that its table gives it" in failed(RUN, findings)


def test_what_another_version_drew_is_not_compared_and_this_is_said(copied, findings, monkeypatch):
    monkeypatch.setattr(environment, "drawing", lambda: {"matplotlib": "0"})
    found, notes = again.compare(RUN, findings)
    assert [finding["claim"] for finding in found] == [
        "every column has the meaning that its table gives it"
    ]
    assert "not drawn again" in notes[0]
    said = store.read_json(RUN / "environment.json")
    store.write_json(RUN / "environment.json", said | {"whorl": "0.0.0"})
    found, notes = again.compare(RUN, findings)
    assert (found, len(notes)) == ([], 1)
    assert "whorl 0.0.0" in notes[0]


def test_a_figure_that_was_removed_is_missed_on_the_page(copied, findings, drawn):
    for path in (RUN / "mine" / "figures").iterdir():
        path.unlink()
    resealed(RUN)
    assert _child.audit(RUN)["passed"]
    assert failed(RUN, findings) == ["the page is what this folder gives"]
