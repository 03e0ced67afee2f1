"""Studies are conducted from design to sealed report in one call, each part once."""

import json
import shutil

import pytest

from study.small import small, text
from study.trouble import KilledError, contents, kill_at
from whorl import _child
from whorl.ground import store
from whorl.study import conduct, crate, design, figures, layout, lock, published, report
from whorl.study.conduct import LATER, opened
from whorl_cli._child import audit


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small study from a file that was registered; do not change it."""
    place = tmp_path_factory.mktemp("conducted") / "mine.toml"
    place.write_text(text(expected="PASS"))
    store.write(lock.beside(place), lock.text(lock.lock(design.read(place))))
    return conduct(place, place.parent / "run")


@pytest.fixture
def bare(monkeypatch):
    """Neither draw nor audit: both have tests of their own."""
    picture = b"\x89PNG, or nearly so"
    monkeypatch.setattr(
        figures, "draw_all", lambda at, **_: store.write(at / "mine/figures/threshold.png", picture)
    )
    monkeypatch.setattr(_child, "audit", lambda folder, **_: {"findings": [{"passed": True}]})


def test_a_study_ends_audited_with_its_page_and_sealed(done):
    assert (done.sound, done.as_expected, done.numbers) == (True, True, [])
    assert [(one["study"], one["registered"]) for one in done.verdicts] == [("mine", True)]
    assert audit(done.folder, write=False)["passed"]
    listed = {line[66:] for line in (done.folder / layout.MANIFEST).read_text().splitlines()}
    assert listed >= {"report.html", crate.NAME, "mine/figures/threshold.png"}
    assert '<div class="stamp' not in (done.folder / "report.html").read_text()


def test_the_audit_of_a_run_leaves_out_the_seal_and_the_page_does_too(done):
    seal = (layout.MANIFEST, crate.NAME)
    later = audit(done.folder, write=False)["findings"]
    assert [one for one in later if not one["where"].startswith(seal)] == done.findings
    assert len(later) == len(done.findings) + 5
    assert (
        layout.MANIFEST not in (done.folder / "report.html").read_text().partition("Provenance")[0]
    )


@pytest.mark.usefixtures("bare")
def test_manifest_crate_and_comparison_are_made_once(tmp_path, monkeypatch):
    made = []
    for module, name in ((layout, "seal"), (crate, "write"), (published, "table")):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *args, real=real, name=name: made.append(name) or real(*args)
        )
    found = conduct(small(name="threshold"), tmp_path / "run")
    assert sorted(made) == ["seal", "table", "write"]
    assert [row.asdict() for row in found.numbers] == [
        row.asdict() for row in report.read(tmp_path / "run").numbers
    ]
    assert len(found.numbers) > 20


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("finished", [False, True])
def test_killed_at_any_write_it_has_no_manifest_and_the_same_call_ends_with_the_same_bytes(
    tmp_path, monkeypatch, finished
):
    monkeypatch.setattr(report.page, "time_of", lambda path: "then")
    conduct(small(), tmp_path / "whole" / "run")
    whole = contents(tmp_path / "whole" / "run")
    first = number = 0 if finished else 10  # earlier writes of a new folder: see the tests of `run`
    while True:
        folder = tmp_path / str(number) / "run"
        if finished:
            shutil.copytree(tmp_path / "whole" / "run", folder)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, number, "before")
            try:
                conduct(small(), folder)
                break
            except KilledError:
                assert not (folder / layout.MANIFEST).exists()
        conduct(small(), folder)
        assert contents(folder) == whole
        number += 1
    assert number - first >= 5  # picture, summary, page, crate, manifest
    assert contents(folder) == whole


def test_a_design_is_a_file_a_name_or_itself(tmp_path):
    place = tmp_path / "mine.toml"
    place.write_text(text())
    assert opened(place) == opened(str(place)) == (small(), {})
    assert opened(small()) == (small(), {})
    ships = design.shipped("threshold"), lock.shipped_lock("threshold")
    assert opened("threshold") == opened(ships[0]) == ships
    store.write(lock.beside(place), lock.text(lock.lock(small())))
    assert opened(place) == (small(), lock.lock(small()))


@pytest.mark.usefixtures("bare")
def test_locks_can_be_given_one_per_design(tmp_path):
    one, other = small(name="one"), small(name="other", seed=3)
    told = []
    found = conduct(
        [one, other], tmp_path / "run", registered=[{}, lock.lock(other)], progress=told.append
    )
    assert [v["registered"] for v in found.verdicts] == [False, True]
    assert told[-len(LATER) :] == [*LATER]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["studies"].keys() == {
        "one",
        "other",
    }


@pytest.mark.parametrize(
    ("designs", "options", "sentence"),
    [
        ([], {}, "designs must be studies with different names, but they are none"),
        ([small(), small(seed=3)], {}, "different names, but they are mine, mine"),
        ([small()], {"registered": [{}, {}]}, "one lock per design, but it holds 2 for 1"),
        (small(), {"memory": 1}, "memory"),
    ],
)
def test_what_cannot_be_conducted_is_refused_and_nothing_is_written(
    tmp_path, designs, options, sentence
):
    with pytest.raises(ValueError, match=sentence):
        conduct(designs, tmp_path / "run", **options)
    with pytest.raises(OSError, match="nowhere"):
        conduct("nowhere.toml", tmp_path / "run")
    assert not (tmp_path / "run").exists()
