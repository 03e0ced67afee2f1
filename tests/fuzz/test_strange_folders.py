"""Run folders with links, pipes, holes and endless nesting in any place.

Named or refused, soon, and by two readers in the same way.
"""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

import whorl_audit
from audit import forge
from fuzz.doors import ends_well, sentence
from fuzz.test_run_folders import SMALL
from report import folders
from whorl.ground import store
from whorl.study import design, layout, report
from whorl.study.report import page

FOLDERS = [
    "",
    "threshold/",
    "threshold/tables/",
    "threshold/figures/",
    "figures/",
    "other/",
    "tables/",
]
FILES = [
    "design.toml",
    "verdict.json",
    "lock.json",
    "audit.json",
    "manifest-sha256.txt",
    "environment.json",
    "summary.json",
    "report.html",
    "tasks.parquet",
    "tasks.csv",
    "one.png",
    "one.pdf",
    "threshold",
    "tables",
    "figures",
    "x",
    ".hidden",
    "Upper.png",
    "a.b.csv",
    "back\\slash",
    "new\nline.png",
]
DEEP = {".json": b"[" * 5000, ".toml": b"a" + b".a" * 5000 + b" = 1"}


def loop(path):
    path.symlink_to(path.parent)


def deep(path):
    path.write_bytes(DEEP.get(path.suffix, b"x"))


def hole(path):
    with path.open("wb") as file:
        file.truncate(store.FILE + 1)


WHAT = {
    "link to a file": lambda path: path.symlink_to(__file__),
    "link to itself": lambda path: path.symlink_to(path),
    "loop": loop,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "hole": hole,
    "deep": deep,
    "folder": lambda path: path.mkdir(),
    "nothing": lambda path: None,
}
CHANGES = st.lists(
    st.tuples(st.sampled_from(FOLDERS), st.sampled_from(FILES), st.sampled_from(sorted(WHAT))),
    min_size=1,
    max_size=3,
)


def changed(root, changes):
    for folder, name, what in changes:
        path = root / folder / name
        if path.parent.is_symlink() or (path.parent.exists() and not path.parent.is_dir()):
            continue  # an earlier change took its folder
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(
            missing_ok=True
        )
        WHAT[what](path)


def both(root):
    """What the two definitions say of a folder.

    The auditor's asks for a study, which the other leaves to who reads it.
    """
    theirs = layout.read(root)
    try:
        ours = whorl_audit.layout.read(root)
    except whorl_audit.UnreadableError as refusal:
        sentence(str(refusal))
        assert not theirs.studies
        return False
    # A study whose design is no regular file is refused by its name where it is read; here it is no
    # study.
    assert set(theirs.studies) <= set(ours.studies)
    assert (ours.alone, ours.files, ours.strange) == (theirs.alone, theirs.files, theirs.strange)
    return True


@pytest.fixture
def audited(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(forge.PARAMETERS, "threshold", SMALL)
        return forge.write_run(tmp_path / "sound", ("threshold",))


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.setattr(
        page, "plotly", lambda: "the chart library, which only takes long to compress"
    )
    return folders.write_run(tmp_path / "sound", [design.shipped("horizon").text], figures=("one",))


def on_a_copy(sound, changes, check):
    root = sound.parent / "changed"
    shutil.copytree(sound, root)
    try:
        changed(root, changes)
        return check(root)
    finally:
        shutil.rmtree(root)


@pytest.mark.filterwarnings("default")
def test_any_strange_folder_is_audited_or_refused_and_both_readers_agree(fuzz, audited):
    def check(root):
        both(root)
        return ends_well(whorl_audit.audit, root, also=(whorl_audit.UnreadableError,))

    fuzz(CHANGES, lambda changes: on_a_copy(audited, changes, check))


def test_any_strange_folder_is_drawn_or_refused(fuzz, told):
    def check(root):
        return ends_well(lambda: page.render(report.read(root)))

    fuzz(
        CHANGES,
        lambda changes: on_a_copy(
            told, [(a.replace("threshold", "horizon"), b, c) for a, b, c in changes], check
        ),
    )


def test_a_strange_file_takes_trust_away_from_the_page(told):
    os.mkfifo(told / "horizon" / "figures" / "two.png")
    run = report.read(told)
    assert run.strange == ("the pipe or device horizon/figures/two.png",)
    assert "which no run writes" in page.render(run)


@pytest.mark.parametrize(
    "reader",
    [
        lambda content: store.read_table(Path("one.parquet"), content),
        whorl_audit.files.parsed_table,
    ],
)
@pytest.mark.parametrize(
    "table",
    [{f"c{at}": [0.0] for at in range(101)}, {"name": ["x" * 201] * 3}],
    ids=["columns", "words"],
)
def test_a_table_beyond_the_limits_is_refused_by_both(reader, table):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(table), sink)
    with pytest.raises(ValueError, match=r"columns|letters"):
        reader(sink.getvalue().to_pybytes())


def test_the_limits_of_the_two_readers_are_the_same():
    names = ("ENTRIES", "FOLDER", "FILE", "COLUMNS", "CELLS", "WORD")
    assert [getattr(layout, name, None) or getattr(store, name) for name in names] == [
        getattr(whorl_audit.files, name) for name in names
    ]
