"""Every extension of docs/howto/extend.md is performed.

Its files are written, installed as a package of another's, and used by name in a process of its
own, as the page shows.
"""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

import session

PAGE = (session.DOCS / "howto" / "extend.md").read_text()
OPENING, *REST = re.split(r"^## ", PAGE, flags=re.M)
SECTIONS = {part.partition("\n")[0]: part for part in REST}
FILE = re.compile(r"# ([\w/]+\.\w+)\n")
PERFORMED = ("A law", "A policy", "A system", "A rule", "A view of the explorer")
PERFORM = """
import json, pathlib, sys
import whorl
print(json.dumps([name for name in sys.modules if name.startswith("whorl_more")]))
sys.path.insert(0, sys.argv[1])
import session
for name, text in json.load(sys.stdin).items():
    folder = pathlib.Path(name)
    folder.mkdir()
    outcome = session.run(text.replace("```pycon", "```python"), folder, name)
    print(json.dumps([name, outcome.examples, outcome.complaints]))
"""


def files(text):
    """The files that a part of the page shows, by name."""
    bodies = [body for _, body in session.FENCE.findall(text)]
    return {title[1]: body for body in bodies if (title := FILE.match(body))}


def install(folder, name, modules, points):
    """A package as an installer leaves it: its modules, its metadata and its entry points."""
    for path, body in {"__init__.py": "", **modules}.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text(body)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())
        for group, values in points.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups))


def run(folder, script, *arguments, **options):
    """A script in a process of its own that has the packages of a folder."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def performed(tmp_path_factory):
    """What became of the sessions of every part, and what importing whorl brought in."""
    pytest.importorskip("polars")
    pytest.importorskip("sklearn")
    folder = tmp_path_factory.mktemp("more")
    about = tomllib.loads(dict(session.FENCE.findall(OPENING))["toml"])["project"]
    assert about["name"] == "whorl-more"
    modules = {}
    for part in PERFORMED:
        modules |= files(SECTIONS[part])
    install(folder, "whorl_more", modules, about["entry-points"])
    first = OPENING[OPENING.rindex("```pycon") :]
    texts = {part: f"{first}\n{SECTIONS[part]}" for part in PERFORMED}
    brought, *lines = run(folder, PERFORM, str(session.DOCS / "_ext"), input=json.dumps(texts))
    told = [json.loads(line) for line in lines if line.startswith("[")]
    return json.loads(brought), {name: outcome for name, *outcome in told}


@pytest.mark.slow
def test_importing_whorl_loads_no_package_of_others(performed):
    assert performed[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", PERFORMED)
def test_an_extension_does_what_the_page_shows(performed, part):
    examples, complaints = performed[1][part]
    assert complaints == []
    assert examples > SECTIONS[part].count("\n>>> ")  # those of the opening, too


@pytest.mark.parametrize("part", PERFORMED)
def test_an_extension_takes_as_many_files_as_the_page_says(part):
    anchor = part.lower().replace(" ", "-")
    said = re.search(rf"\(#{anchor}\) \| (\d+) \|", OPENING)
    assert said is not None
    assert len(files(SECTIONS[part])) == int(said[1])


def test_a_session_that_is_wrong_is_found(tmp_path):
    page = "```python\n>>> 1 + 1\n3\n```\n"
    assert len(session.run(page, tmp_path).complaints) == 1


BROKEN = """
import json, warnings
import whorl as wh
from whorl import registry
from whorl.explorer import views
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    known = [registry.laws.names(), registry.policies.names(), [one.name for one in views.listed()]]
def refusal(name):
    try:
        return registry.laws.get(name).name
    except ValueError as sentence:
        return str(sentence)
asked = [refusal(name) for name in ("missing", "number", "leaky", "leaving")]
print(json.dumps([known, [str(one.message) for one in told], asked]))
"""


@pytest.fixture(scope="module")
def beside_broken(tmp_path_factory):
    """Names, warnings and refusals where a package brings nothing but trouble."""
    folder = tmp_path_factory.mktemp("broken")
    leaky = "from whorl.registry import laws\n@laws.register()\ndef leaky(): pass\n"
    modules = {
        "gone.py": "import no_such_package\n",
        "taken.py": leaky,
        "number.py": "number = 3\n",
        "leaving.py": "raise SystemExit(7)\n",
    }
    points = {
        "whorl.laws": {
            "missing": "whorl_broken.gone:missing",
            "leaky": "whorl_broken.taken:leaky",
            "number": "whorl_broken.number:number",
            "leaving": "whorl_broken.leaving:law",
        },
        "whorl.policies": {"Upper": "os:getcwd"},
        "whorl.views": {"gone": "whorl_broken.gone:figure"},
    }
    install(folder, "whorl_broken", modules, points)
    return json.loads(run(folder, BROKEN)[-1])


def test_a_broken_entry_leaves_all_others_as_they_are(beside_broken):
    laws, policies, places = beside_broken[0]
    assert laws[:5] == ["direct", "repair", "leaky", "spectral", "rotational"]
    assert policies[:3] == ["native", "step_matched", "adaptive"]
    assert {"network", "simplex", "many"} <= set(places)


def test_a_broken_entry_is_told_in_one_sentence_that_names_its_package(beside_broken):
    whose = "of the package whorl-broken must"
    said = "\n".join(beside_broken[1])
    assert len(beside_broken[1]) == 6
    for sentence in (
        f"law 'missing' {whose} load, but it does not: No module named 'no_such_package'",
        f"law 'number' {whose} be callable, but it is 3",
        f"law 'leaky' {whose} load, but it does not: law 'leaky' must have a name of its own,",
        f"law 'leaving' {whose} load, but it does not: 7",
        f"policy 'Upper' {whose} load, but it does not: the name of a policy must be lower-case",
        f"view 'gone' {whose} load, but it does not: No module named 'no_such_package'",
    ):
        assert sentence in said


def test_asking_for_a_broken_entry_says_why_there_is_none(beside_broken):
    missing, number, leaky, leaving = beside_broken[2]
    assert missing.startswith("law 'missing' of the package whorl-broken must load")
    assert number.endswith("must be callable, but it is 3")
    assert leaky == "leaky"
    assert leaving.startswith("law 'leaving'")
