"""A registration holds the hash of the design and of every source that its result depends on, and
notices a change of any.
"""

import ast
import json
import re
import shutil
from hashlib import sha256

import pytest

from study.small import small, text
from whorl.study import design, kinds, lock
from whorl_audit import registry


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the sources that may be changed."""
    root = tmp_path / "whorl"
    shutil.copytree(lock.ROOT, root, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    monkeypatch.setattr(lock, "ROOT", root)
    return root


@pytest.mark.parametrize("name", kinds.names())
def test_the_shipped_locks_are_current(name):
    assert lock.shipped_lock(name) == lock.lock(design.shipped(name))
    assert lock.why_unregistered(design.shipped(name), lock.shipped_lock(name), quick=False) is None


@pytest.mark.parametrize("kind", kinds.names())
def test_the_sources_of_a_study_are_all_it_imports_and_nothing_of_other_kinds(kind):
    found = lock.sources(kind)
    folder = lock.ROOT / "study" / "kinds" / kind
    own = {path.relative_to(lock.ROOT).as_posix() for path in folder.glob("*.py")}
    shown = {f"study/kinds/{kind}/{name}.py" for name in ("figure", "chart", "words")}
    others = [name for name in kinds.names() if name != kind]
    assert own - shown <= found.keys()
    assert {f"ground/{name}.py" for name in ("reader", "rules", "store")} <= found.keys()
    judges = ("columns", "design", "gates", "kind", "parameters", "run", "kinds/__init__")
    assert {f"study/{name}.py" for name in judges} <= found.keys()
    assert {"simplex.py", "system.py", "study/draws.py"} <= found.keys()
    assert not [path for path in found for other in others if f"/{other}/" in path]
    assert not found.keys() & shown
    assert not {"study/published.py", "study/crate.py", "study/replicate.py"} & found.keys()
    assert list(found) == sorted(found)
    for path, hash_ in found.items():
        assert (
            registry.fingerprint((lock.ROOT / path).read_bytes()) == hash_
        )  # the auditor's own route


def test_what_sets_the_kinds_apart():
    structural, threshold, horizon = (lock.sources(kind).keys() for kind in kinds.paper())
    assert {
        "fast/lanes.py",
        "learning/ensemble.py",
        "learning/policy.py",
        "learning/trajectory.py",
        "study/bootstrap.py",
    } <= horizon
    assert {"learning/baseline.py", "curvature.py"} <= structural
    assert {"curvature.py", "study/bootstrap.py"} <= threshold
    assert not {"fast/lanes.py", "learning/ensemble.py"} & (structural | threshold)


@pytest.mark.parametrize("kind", kinds.names())
def test_the_closure_is_closed_under_what_python_would_import(kind):
    # The second route: every `whorl` name in an import, by text.
    found = lock.sources(kind).keys()
    for path in found:
        source = (lock.ROOT / path).read_text()
        assert not any(
            node.level for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)
        )
        for module, names in re.findall(
            r"^\s*from whorl([\w.]*) import ([^\n(]+|\([^)]+\))", source, flags=re.MULTILINE
        ):
            place = module.strip(".").replace(".", "/")
            taken = [name.partition(" as ")[0].strip() for name in re.split("[,()]", names)]
            wanted = [f"{place}.py", *(f"{place}/{name}.py".strip("/") for name in taken)]
            wanted += [f"{place}/{name}/__init__.py".strip("/") for name in taken if name]
            assert {one for one in wanted if (lock.ROOT / one).is_file()} <= found


@pytest.mark.parametrize(
    ("line", "modules"),
    [
        ("import whorl.turn", ["turn"]),
        ("from whorl import turn, feedback", ["turn", "feedback"]),
        ("from whorl.study import draws", ["study.draws"]),
        ("from . import draws", ["study.draws"]),
        ("from .draws import task", ["study.draws"]),
        ("from whorl.ground.streams import stream", ["ground.streams"]),
        ("def late():\n    from whorl.feedback import Law", ["feedback"]),
        ("import numpy\nfrom json import loads\nimport whorlwind.turn", []),
        # a package that is named counts, whatever it holds; one around a module where it acts
        ("from whorl.systems import layered", ["systems.layered"]),
        ("from whorl.study.kinds import listed", ["study.kinds.listed", "study.kinds"]),
        ("from whorl.study import kinds", ["study.kinds"]),
        ("from whorl.plot import response", ["plot"]),
        ("import whorl as wh", [""]),
        ("from whorl import Network", [""]),
    ],
)
def test_an_import_in_any_form_is_followed(line, modules, tmp_path):
    path = tmp_path / "some.py"
    path.write_text(line)
    found = lock._needed("whorl.study.some", path, {"whorl"})
    assert list(found) == [f"whorl.{name}".rstrip(".") for name in modules]


@pytest.mark.parametrize(
    ("source", "acts"),
    [
        ("", False),
        ('"""What it is."""\nfrom json import loads as loads\n__version__ = "1"', False),
        ("KIND = 1", True),
        ("def late():\n    pass", True),
        ("if True:\n    import json", True),
    ],
)
def test_a_package_counts_where_it_does_more_than_import(source, acts):
    assert lock._acts(source) == acts


def test_a_design_without_a_lock_was_never_registered():
    assert lock.why_unregistered(small(), {}, quick=False) == "the design was never registered"


def test_a_quick_run_is_not_the_registered_study():
    study = small()
    assert (
        lock.why_unregistered(study, lock.lock(study), quick=True)
        == "a quick run is a smoke test, not the registered study"
    )


def test_a_changed_design_is_noticed():
    registered = lock.lock(small())
    assert lock.why_unregistered(small(), registered, quick=False) is None
    assert (
        lock.why_unregistered(small(seed=1), registered, quick=False)
        == "the design differs from the registered one"
    )


def test_a_changed_source_is_noticed_and_named(copied):
    study = small("horizon")
    registered = lock.lock(study)
    with (copied / "study" / "published.py").open("a") as file:
        file.write("# no result depends on this\n")
    assert lock.why_unregistered(study, registered, quick=False) is None
    with (copied / "fast" / "lanes.py").open("a") as file:
        file.write("ANOTHER = 1\n")
    assert (
        lock.why_unregistered(study, registered, quick=False)
        == "sources differ from the registered ones: fast/lanes.py"
    )
    assert lock.why_unregistered(small(), lock.lock(small()), quick=False) is None


@pytest.mark.parametrize(
    ("path", "noticed"),
    [
        ("study/run.py", True),
        ("study/gates.py", True),
        ("ground/store.py", True),
        ("study/kinds/__init__.py", True),
        ("study/kinds/threshold/tables.py", True),
        ("study/kinds/threshold/words.py", False),
        ("study/kinds/threshold/figure.py", False),
        ("study/kinds/horizon/tables.py", False),
        ("study/kinds/structural/compute.py", False),
        ("study/replicate.py", False),
    ],
)
def test_a_change_of_a_judge_breaks_the_lock_and_one_of_another_kind_keeps_it(
    copied, path, noticed
):
    registered = lock.lock(small("threshold"))
    with (copied / path).open("a") as file:
        file.write("\nANOTHER = 1\n")
    why = f"sources differ from the registered ones: {path}" if noticed else None
    assert lock.why_unregistered(small("threshold"), registered, quick=False) == why


def test_a_reworded_sentence_keeps_the_lock_and_a_changed_constant_breaks_it(copied):
    study, path = small("horizon"), copied / "learning/policy.py"
    registered, source = lock.lock(study), path.read_text()
    reworded = source.replace('"""Never turn; take', '"""It never turns, and takes').replace(
        "import jax\n", "import jax  # of course\n\n\n"
    )
    assert reworded != source
    path.write_text(reworded)
    assert lock.why_unregistered(study, registered, quick=False) is None
    path.write_text(source.replace("jnp.maximum(1.0, spread)", "jnp.maximum(2.0, spread)"))
    assert (
        lock.why_unregistered(study, registered, quick=False)
        == "sources differ from the registered ones: learning/policy.py"
    )


SAID = '''"""Of a module."""


class One:
    """Of a class."""


async def two(x=1, *y, z: int = 3.5, **w):
    """Of a function."""
    f"{x!r:>3}"
'''


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = 1",
        "'alone'",
        SAID,
        "def f():\n    x = {1: b'2', **{}}\n    'no docstring'\n",
        "x: 'y' = (yield)",
    ],
)
def test_the_fingerprint_is_the_same_by_both_routes(source):
    assert lock.meaning(source) == registry.fingerprint(source.encode())


def test_a_source_that_came_or_went_is_noticed(copied):
    study = small()
    registered = lock.lock(study)
    (copied / "extra.py").write_text("")
    with (copied / "turn.py").open("a") as file:
        file.write("import whorl.extra\n")
    assert (
        lock.why_unregistered(study, registered, quick=False)
        == "sources differ from the registered ones: extra.py, turn.py"
    )
    gone = {"design": study.sha256, "sources": lock.sources("threshold") | {"lost.py": "0" * 64}}
    assert (
        lock.why_unregistered(study, gone, quick=False)
        == "sources differ from the registered ones: lost.py"
    )


def test_a_lock_is_written_beside_the_design_and_read_back(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text())
    assert lock.read(path) == {}
    content = lock.lock(design.read(path))
    assert lock.beside(path) == tmp_path / "mine.lock.json"
    lock.beside(path).write_text(lock.text(content))
    assert lock.read(path) == content


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it does not hold a design and its sources"),
        (b"{}", "it does not hold a design and its sources"),
        (b'{"design": "0", "sources": []}', "it does not hold a design and its sources"),
        (b'{"design": "0", "sources": {}, "more": 1}', "it does not hold a design and its sources"),
    ],
)
def test_a_corrupt_lock_is_refused_in_one_sentence(tmp_path, content, rule):
    path = tmp_path / "mine.toml"
    lock.beside(path).write_bytes(content)
    with pytest.raises(
        ValueError,
        match=rf"mine\.lock\.json must be a lock written by `whorl register`, but {rule}$",
    ):
        lock.read(path)


def test_registering_the_shipped_designs_anew_writes_what_a_user_would(copied):
    places = {name: copied / "study" / "kinds" / name for name in kinds.names()}
    for place in places.values():
        (place / "design.lock.json").unlink(missing_ok=True)
    lock.register_shipped()
    for name, place in places.items():
        written = (place / "design.lock.json").read_text()
        assert written == lock.text(lock.lock(design.shipped(name)))
        design_hash = sha256((place / "design.toml").read_bytes()).hexdigest()
        assert json.loads(written)["design"] == design_hash
