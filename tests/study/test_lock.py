"""A registration holds the hash of the design and of every source that its result depends on, and
notices a change of any.
"""

import ast
import copy
import dataclasses
import json
import shutil
import sys
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from study.small import small, text
from whorl.study import design, kinds, lock, modules, reach, run
from whorl_audit import registry

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the sources that may be changed."""
    root = tmp_path / "whorl"
    for package in lock.SHIPPED:
        ignored = shutil.ignore_patterns("__pycache__", "*.parquet")
        shutil.copytree(lock.ROOT.with_name(package), tmp_path / package, ignore=ignored)
    monkeypatch.setattr(lock, "ROOT", root)
    return root


@pytest.mark.parametrize("name", kinds.names())
def test_the_shipped_locks_are_current(name):
    assert lock.shipped_lock(name) == lock.lock(design.shipped(name))
    assert lock.why_unregistered(design.shipped(name), lock.shipped_lock(name), quick=False) is None


def files(found):
    return {name.partition("::")[0] for name in found}


@pytest.mark.parametrize("kind", kinds.names())
def test_the_definitions_of_a_study_are_what_makes_and_judges_its_tables(kind):
    found, home = lock.sources(kind), kinds.home(kind).removeprefix("whorl.").replace(".", "/")
    folder = kinds.place(kind).removeprefix("whorl.").replace(".", "/")
    path = f"{home}.py" if home.endswith("/kind") else f"{home}/__init__.py"
    others = [name for name in kinds.names() if name != kind]
    assert {
        f"{path}::KIND",
        "study/design.py::parse",
        "study/gates.py::verdict",
        "study/run.py::judged",
        "ground/store.py::parquet",
        "ground/streams.py::stream",
        "task.py::drawn",
    } <= found.keys()
    assert not [path for path in files(found) for other in others if f"/{other}/" in f"/{path}"]
    shown = {f"{folder}/{name}.py" for name in ("figure", "chart", "words")}
    aside = {f"study/{name}.py" for name in ("published", "crate", "replicate", "lock", "reach")}
    assert not (shown | aside) & files(found)
    assert list(found) == sorted(found)


def test_what_sets_the_kinds_apart():
    structural, threshold, horizon = (lock.sources(kind).keys() for kind in kinds.paper())
    assert {
        "fast/lanes.py::train",
        "learning/policy.py::Adaptive",
        "learning/policy.py::curvature_gate",
        "study/bootstrap.py::resampled",
    } <= horizon
    assert "curvature.py::curvature" in structural & threshold
    assert "feedback.py::leaky" not in threshold
    assert not {"fast/lanes.py", "learning/ensemble.py"} & files(structural | threshold)


@pytest.mark.parametrize("kind", kinds.paper())
def test_every_function_that_a_run_calls_is_among_the_definitions(kind, tmp_path):
    called, study = set(), small(kind)

    def seen(frame, event, _):
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        run.result(study, tmp_path / "run", False, True, lambda _: None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    found, missing = lock.sources(kind), set()
    own = {code for code in called if Path(code.co_filename).is_relative_to(lock.ROOT)}
    for code in own:
        path = Path(code.co_filename).relative_to(lock.ROOT).as_posix()
        if code.co_name == "<module>":
            continue
        for statement in ast.parse(Path(code.co_filename).read_text()).body:
            begin = min(one.lineno for one in ast.walk(statement) if hasattr(one, "lineno"))
            if begin <= code.co_firstlineno <= statement.end_lineno:
                name = f"{path}::{(modules.made(statement) or [''])[0]}".removesuffix("::")
                missing |= {name} - found.keys()
    assert len(own) > 30
    assert missing == set()


def located(path):
    return (lock.ROOT.parent if path.startswith("whorl_studies/") else lock.ROOT) / path


def changed(statement):
    """A copy of a statement with its first constant changed, or None without one."""
    tree = copy.deepcopy(statement)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    pieces = {id(one) for node in ast.walk(tree) for one in getattr(node, "values", ())}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) in pieces and isinstance(node.value, str):
            node.value += " changed"  # a piece of a formatted text can be nothing but text
            return tree
        if isinstance(node, ast.Constant):
            kind = type(node.value)
            more = {str: "x", bytes: b"x", int: 1, float: 1.0}.get(kind)
            node.value = not node.value if more is None else node.value + more
            return tree
    return None


@pytest.mark.parametrize("kind", kinds.names())
def test_a_changed_constant_in_any_definition_of_a_study_changes_its_fingerprint(kind):
    count = 0
    for name in lock.sources(kind):
        path, _, part = name.partition("::")
        if path.endswith(".toml"):
            continue
        source = located(path).read_text()
        module = modules.parsed(source, "whorl")
        for place, statement in enumerate(module.parts.get(part, [])):
            other = changed(statement)
            if other is not None:
                statements = [*module.parts[part]]
                statements[place] = other
                mutant = dataclasses.replace(module, parts={part: statements})
                assert modules.meaning(mutant, part) != modules.meaning(module, part)
                count += 1
    assert count > 100


def test_a_changed_constant_is_noticed_in_its_file_and_in_no_other_definition(copied):
    before = lock.sources("horizon")
    names = [name for name in before if "::" in name]
    noticed = 0
    for name in names[:: len(names) // 12]:
        path, _, part = name.partition("::")
        source = (copied / path).read_text()
        tree = ast.parse(source)
        for place, statement in enumerate(tree.body):
            if part in modules.made(statement) and (other := changed(statement)) is not None:
                tree.body[place] = other
                (copied / path).write_text(ast.unparse(tree))
                now = lock.sources("horizon")
                together = {f"{path}::{one}" for one in modules.made(statement)}
                assert {one for one in before if before[one] != now.get(one)} == (
                    together & before.keys()
                )
                noticed += 1
        (copied / path).write_text(source)
    assert noticed > 5


def test_a_changed_specification_breaks_the_lock_and_its_comments_do_not(copied):
    path, registered = copied / "study/kinds/threshold/spec.toml", lock.lock(small())
    path.write_text("# A remark.\n\n" + path.read_text())
    assert why(small(), registered) is None
    path.write_text(path.read_text().replace("to = 64", "to = 65"))
    assert why(small(), registered).endswith("ones: study/kinds/threshold/spec.toml")


ADDED = {
    "feedback.py": """
@laws.register("new", parameters=(Field("knee", 0.05, 1e-6, 10.0),))
def new(knee): return leaky(knee)
""",
    "learning/policy.py": """
@policies.register("new", parameters=(SCALE,))
class New(Policy):
    def decide(self, view): return Decision(self.scale, 1.0)

@gates.register("newly")
def newly(view): return view.ratio > 2.0
""",
    "rules.py": """
@rules.register()
class New(Rule):
    def scores(self, system, inputs, residual): return 2.0 * residual
""",
    "systems/new.py": """
from whorl.registry import systems
from whorl.system import System

@systems.register("new")
class New(System):
    size: int = 3
""",
    "systems/__init__.py": "from whorl.systems.new import New as New",
    "__init__.py": "from whorl.systems.new import New as New",
    "explorer/views/new.py": """
from whorl.explorer.views import views

@views.register("new", label="New", order=9)
def new(run): return {}
""",
    "study/kinds/spiral/__init__.py": "KIND = 7",
}


def add(root, path, source):
    (root / path).parent.mkdir(exist_ok=True)
    with (root / path).open("a") as file:
        file.write(f"\n{source}\n")


@pytest.mark.parametrize("kind", kinds.names())
def test_a_new_law_policy_rule_system_view_or_kind_keeps_every_lock(kind, copied):
    before = lock.sources(kind)
    for path, source in ADDED.items():
        add(copied, path, source)
    assert lock.sources(kind) == before


def test_a_docstring_in_any_file_keeps_every_lock(copied):
    before = {kind: lock.sources(kind) for kind in kinds.names()}
    for path in copied.parent.rglob("*.py"):
        source = path.read_text()
        tree = ast.parse(source)
        lines = source.splitlines()
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
                line = node.body[0].lineno - 1
                lines[line] = lines[line].replace('"""', '"""Leaky. ', 1)
        path.write_text("# A comment.\n" + "\n".join(lines) + "\n")
    assert {kind: lock.sources(kind) for kind in kinds.names()} == before


MADE = """
import whorl.study.some
import numpy as np
from whorl import registry
from whorl.study.other import helper, Registry
from whorl.study import other as aside

FACTOR = 2.0
TABLE = {}
TABLE["one"] = FACTOR
shapes = Registry("shape")


@shapes.register("round")
def ring(): return helper(1)


@shapes.register()
def square(): return helper(2)


def first(x: aside.Noted): return FACTOR * x


def second(first): return first + 1


def third(name): return shapes.get(name)


def fourth(): return third("round")


class Fifth(aside.Base):
    def apply(self): return helper(3)


def sixth():
    from whorl.study.other import late as soon
    return soon()


def seventh(): return TABLE


def eighth(): return getattr(aside, "late")


@ring.extended
def ninth(): return np.sin(1)


def tenth(): return whorl.study.some.first


def eleventh(): return [first for first in TABLE]


def twelfth(): return aside.swift()
"""
OTHER = """
class Registry:
    def get(self, name): return known(name)

class Base: pass
class Noted: pass
def helper(x): return x
def known(x): return x
def late(): return LATE
LATE = 5
print(LATE)
try:
    from whorl.study.third import quick as swift
except ImportError:
    swift = None
"""
THIRD = "def quick(): pass"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("first", "first FACTOR"),
        ("second", "second"),  # a local name stands for nothing
        ("third", "third shapes other.Registry other.known"),
        ("fourth", "fourth third shapes other.Registry other.known ring other.helper"),
        ("Fifth", "Fifth other.Base other.helper"),
        ("sixth", "sixth other.late"),
        ("seventh", "seventh TABLE FACTOR"),
        (
            "eighth",
            "eighth other.Registry other.Base other.Noted other.helper other.known other.late",
        ),
        ("ring", "ring other.helper"),
        ("twelfth", "twelfth other.swift"),
        ("tenth", "tenth first FACTOR"),
        ("eleventh", "eleventh TABLE FACTOR"),
    ],
)
def test_a_name_in_any_form_is_followed(name, found, tmp_path):
    (tmp_path / "some.py").write_text(MADE)
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "third.py").write_text(THIRD)

    def find(module):
        path = tmp_path / f"{module.rpartition('.')[2]}.py"
        return path if module.startswith("whorl.study.") and path.is_file() else None

    reached = reach.Reach(find)
    reached.begin("whorl.study.some", name)
    ours = {
        (f"{module.rpartition('.')[2]}.{part}").removeprefix("some.")
        for module, part in reached.parts
    }
    # What `other` prints when it is imported counts whatever is used.
    always = {"", "other.", "other.LATE", "third.", "third.quick"}
    assert ours - always == set(found.split())
    assert always <= ours


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


def why(study, registered):
    return lock.why_unregistered(study, registered, quick=False)


def test_a_changed_definition_is_noticed_and_named(copied):
    study, path = small("horizon"), copied / "fast" / "lanes.py"
    registered, other = lock.lock(study), lock.lock(small())
    add(copied, "study/published.py", "ANOTHER = 1")
    add(copied, "fast/lanes.py", "ANOTHER = 1")
    assert why(study, registered) is None
    path.write_text(path.read_text().replace("def train(", "def train(\n    more,", 1))
    assert why(study, registered) == "sources differ from the registered ones: fast/lanes.py::train"
    assert why(small(), other) is None


def test_many_changed_definitions_are_counted():
    registered = lock.lock(small())
    first = list(registered["sources"])[:7]
    forged = registered["sources"] | dict.fromkeys(first, "0" * 64)
    assert (
        why(small(), registered | {"sources": forged})
        == f"sources differ from the registered ones: {', '.join(first[:5])} and 2 more"
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("study/run.py", "judged"),
        ("study/gates.py", "evaluate"),
        ("ground/store.py", "parquet"),
        ("study/kinds/__init__.py", "get"),
        ("study/kinds/threshold/tables.py", "_draws"),
        ("study/kinds/threshold/words.py", None),
        ("study/kinds/threshold/figure.py", None),
        ("study/kinds/horizon/tables.py", None),
        ("study/kinds/structural/compute.py", None),
        ("study/replicate.py", None),
    ],
)
def test_a_change_of_a_judge_breaks_the_lock_and_one_of_another_kind_keeps_it(copied, path, name):
    registered, place = lock.lock(small("threshold")), copied / path
    if name is None:
        place.write_text(place.read_text().replace(":\n    return", ":\n    0\n    return"))
        assert why(small("threshold"), registered) is None
        return
    tree = ast.parse(place.read_text())
    (function,) = [one for one in tree.body if getattr(one, "name", "") == name]
    function.body.insert(1, ast.parse("ANOTHER = 1").body[0])
    place.write_text(ast.unparse(tree))
    expected = f"sources differ from the registered ones: {path}::{name}"
    assert why(small("threshold"), registered) == expected


def test_a_reworded_sentence_keeps_the_lock_and_a_changed_constant_breaks_it(copied):
    study, path = small("horizon"), copied / "learning/policy.py"
    registered, source = lock.lock(study), path.read_text()
    reworded = source.replace('"""Never turn; take', '"""It never turns, and takes').replace(
        "import jax\n", "import jax  # of course\n\n\n"
    )
    assert reworded != source
    path.write_text(reworded)
    assert why(study, registered) is None
    changed = source.replace("pace: ArrayLike = 1.0) ->", "pace: ArrayLike = 2.0) ->")
    assert changed.count("2.0) ->") == 1
    path.write_text(changed)
    assert (
        why(study, registered)
        == "sources differ from the registered ones: learning/policy.py::admitted"
    )


def test_a_name_that_another_file_hands_on_from_elsewhere_breaks_the_lock(copied):
    budgets = lock.sources("budgets")
    assert "study/compute.py::tangent_basis" in budgets
    path = copied / "study/compute.py"
    text = path.read_text()
    path.write_text(text.replace("import tangent_basis as", "import covariance as", 1))
    now = lock.sources("budgets")
    assert budgets["study/compute.py::tangent_basis"] != now["study/compute.py::tangent_basis"]


def test_an_import_of_another_function_under_the_same_name_breaks_the_lock(copied):
    path, registered = copied / "study/kinds/threshold/tables.py", lock.lock(small())
    path.write_text(path.read_text().replace("import numpy as np", "import jax.numpy as np"))
    assert "tables.py::_configurations" in str(why(small(), registered))


SAID = '''"""Of a module."""

import os.path
import numpy as np, json
from dataclasses import field as made
from typing import TYPE_CHECKING
from whorl.registry import Registry

if TYPE_CHECKING:
    from whorl import System

for letter in "ab":
    print(letter)
try:
    import whorl.fast.lanes as quick
except ImportError:
    quick = None
things = Registry("thing")


class One:
    """Of a class."""

    x: int = made(default=os.sep)


@things.register()
async def two(x=1, *y, z: int = 3.5, **w):
    """Of a function."""
    f"{x!r:>3}" + np.pi


@np.vectorize
def three(): return json.dumps(one)


@three.extended
def four(): pass


one, another = 1, {}
another[one].x = 5
another.update({})
one += 1
three: int = 3
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
def test_the_fingerprints_are_the_same_by_both_routes(source):
    module = modules.parsed(source, "whorl")
    names = [*(name for name, parts in module.parts.items() if parts), *module.imports]
    made = {name: modules.meaning(module, name) for name in names}
    assert made == registry.definitions(source.encode())


def test_the_fingerprints_of_what_ships_are_the_same_by_both_routes():
    found = {name: hash_ for kind in kinds.names() for name, hash_ in lock.sources(kind).items()}
    assert registry._installed(found) == found


def test_a_definition_that_came_or_went_is_noticed(copied):
    study = small()
    registered = lock.lock(study)
    add(copied, "extra.py", "print('imported')")
    add(copied, "turn.py", "import whorl.extra")
    assert why(study, registered) == "sources differ from the registered ones: extra.py"
    gone = {"design": study.sha256, "sources": lock.sources("threshold") | {"lost.py": "0" * 64}}
    assert why(study, gone) == "sources differ from the registered ones: lost.py"


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
    beyond = copied.with_name("whorl_studies")
    places = {
        name: beyond / name if (beyond / name).is_dir() else copied / "study" / "kinds" / name
        for name in kinds.names()
    }
    for place in places.values():
        (place / "design.lock.json").unlink(missing_ok=True)
    lock.register_shipped()
    for name, place in places.items():
        written = (place / "design.lock.json").read_text()
        assert written == lock.text(lock.lock(design.shipped(name)))
        design_hash = sha256((place / "design.toml").read_bytes()).hexdigest()
        assert json.loads(written)["design"] == design_hash
