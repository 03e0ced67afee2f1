"""Files of a run folder.

Which are written, what they carry, and that equal tables give equal bytes.
"""

import json

import numpy as np
import pytest

from whorl.ground import store
from whorl.study import figures
from whorl.study.figures import concept, style
from whorl_audit import figures as audit


@pytest.fixture
def hashes():
    def read(study):
        return {
            name: about["sha256"]
            for name, about in json.loads((study / "verdict.json").read_text())["tables"].items()
        }

    return read


def test_a_figure_is_written_as_pdf_and_png_with_the_hashes_of_its_tables(
    run_folder, threshold, hashes
):
    study = run_folder("threshold", threshold, name="mine")
    written = figures.draw_all(study.parent)
    assert [path.relative_to(study).as_posix() for path in written] == [
        "figures/threshold.pdf",
        "figures/threshold.png",
    ]
    wanted = {name: hashes(study)[name] for name in ("configurations", "statistics")}
    assert json.loads(audit.pdf_text(written[0].read_bytes())) == wanted
    assert json.loads(audit.png_text(written[1].read_bytes())) == wanted
    (finding,) = audit.check(study, "threshold", hashes(study))
    assert finding.passed
    (finding,) = audit.check(study, "threshold", hashes(study) | {"configurations": "0" * 64})
    assert not finding.passed


def test_equal_tables_give_equal_bytes_of_the_right_size_without_dates(run_folder, horizon):
    study = run_folder("horizon", horizon)
    pdf, png = (path.read_bytes() for path in figures.draw_study(study))
    assert [pdf, png] == [path.read_bytes() for path in figures.draw_study(study)]
    assert b"CreationDate" not in pdf
    assert b"tIME" not in png
    assert b"Software" not in png
    assert int.from_bytes(png[16:20], "big") == pytest.approx(17.8 / 2.54 * 300, abs=1)


def test_the_tolerance_comes_from_the_gate(run_folder, structural, monkeypatch):
    gate = {"statistic": "factorisation.max", "bound": 1e-8}
    study = run_folder("structural", structural, gates=[gate])
    seen = []
    monkeypatch.setattr(figures, "files", lambda figure, *_: seen.append(figure) or {})
    figures.draw_study(study)
    assert any(np.all(np.asarray(line.get_ydata()) == 1e-8) for line in seen[0].axes[0].lines)


@pytest.mark.parametrize(
    ("registered", "quick", "words"),
    [
        (True, False, None),
        (False, False, "UNREGISTERED"),
        (False, True, "UNREGISTERED · quick run"),
    ],
)
def test_what_is_not_registered_is_stamped(
    run_folder, threshold, monkeypatch, laid_out, registered, quick, words
):
    study = run_folder("threshold", threshold, registered=registered, quick=quick)
    seen = []
    monkeypatch.setattr(figures, "files", lambda figure, *_: seen.append(laid_out(figure)) or {})
    figures.draw_study(study)
    stamps = [text for text in seen[0].texts if text.get_gid() == "stamp"]
    assert [text.get_text() for text in stamps] == ([words] if words else [])
    for text in stamps:
        below = min(axes.get_tightbbox().y0 for axes in seen[0].axes)
        assert text.get_window_extent().y1 <= below


def test_a_stale_table_has_no_road_to_a_figure(run_folder, threshold):
    study = run_folder("threshold", threshold)
    path = study / "tables" / "configurations.parquet"
    store.write(path, path.read_bytes() + b"\0")
    with pytest.raises(
        ValueError,
        match=r"table configurations of threshold must have the SHA-256 \w+ of its verdict, but it is \w+",
    ):
        figures.draw_all(study.parent)
    path.unlink()
    with pytest.raises(ValueError, match="but it is missing"):
        figures.draw_all(study.parent)
    assert not (study / "figures").exists()


def test_a_folder_without_studies_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"folder must hold studies, each with a verdict\.json, but .* holds none"
    ):
        figures.draw_all(tmp_path)


def test_an_unknown_kind_is_refused(run_folder, threshold):
    study = run_folder("threshold", threshold)
    (study / "verdict.json").write_text('{"kind": "weather"}')
    with pytest.raises(
        ValueError,
        match=r"kind in threshold/verdict\.json must be one of structural, .*, but it is 'weather'",
    ):
        figures.draw_all(study.parent)


def test_the_concept_belongs_to_the_papers_three_studies(
    run_folder, structural, threshold, horizon, monkeypatch
):
    drawn = []
    monkeypatch.setattr(concept, "draw", lambda: drawn.append(1) or style.figure(4))
    for kind, tables in (("structural", structural), ("threshold", threshold)):
        study = run_folder(kind, tables)
    monkeypatch.setattr(figures, "draw_study", lambda study: [])
    assert figures.draw_all(study.parent) == []
    study = run_folder("horizon", horizon)
    assert [path.name for path in figures.draw_all(study.parent)] == ["concept.pdf", "concept.png"]
    assert json.loads(audit.png_text((study.parent / "figures" / "concept.png").read_bytes())) == {}
    assert figures.draw_all(study.parent, illustration=False) == []
    assert drawn == [1]
