"""The rules of the house.

Which module may know which, what an import may do, and what no file may hold.
"""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import whorl

SOURCE = Path(whorl.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
ORDER = re.findall(
    r"`(\w+)(?:\.py|/)`(?=[^\n]* \|)", PAGE.read_text().split("## Contracts")[0]
)  # the order that the page shows is the law
PUBLIC = [
    name
    for name, value in vars(whorl).items()
    if not name.startswith("_") and not inspect.ismodule(value)
]


def arrows(source):
    """The modules of whorl that a source imports, wherever in it and in whatever form."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (
                "whorl" * bool(node.level)
                + "." * bool(node.level and node.module)
                + (node.module or "")
            )
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "whorl" else [base]
        else:
            continue
        yield from (
            name.partition(".")[2].partition(".")[0] or "whorl"
            for name in names
            if name.partition(".")[0] == "whorl"
        )


def broken(name, source):
    return [arrow for arrow in arrows(source) if arrow not in ORDER[: ORDER.index(name)]]


def packages(root):
    return [path for path in root.iterdir() if path.is_dir() and (path / "__init__.py").exists()]


def test_every_module_has_its_place():
    modules = [path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")]
    assert sorted([*modules, *(path.name for path in packages(SOURCE))]) == sorted(ORDER)


@pytest.mark.parametrize("name", [name for name in ORDER if (SOURCE / f"{name}.py").exists()])
def test_a_module_knows_only_those_before_it(name):
    assert broken(name, (SOURCE / f"{name}.py").read_text()) == []


@pytest.mark.parametrize(
    "path",
    sorted(file for package in packages(SOURCE) for file in package.glob("**/*.py")),
    ids=lambda p: p.name,
)
def test_a_package_knows_only_itself_and_those_before_it(path):
    package = path.relative_to(SOURCE).parts[0]
    assert [arrow for arrow in broken(package, path.read_text()) if arrow != package] == []


@pytest.mark.parametrize(
    ("line", "arrow"),
    [
        ("from whorl import flow", "flow"),
        ("from whorl.flow import Flow", "flow"),
        ("import whorl.reciprocity", "reciprocity"),
        ("import whorl", "whorl"),
        ("from . import curvature", "curvature"),
        ("from .curvature import Curvature", "curvature"),
        ("def late():\n    from whorl.feedback import Law", "feedback"),
    ],
)
def test_a_broken_arrow_is_found(line, arrow):
    source = "import jax\nfrom whorl import _check, simplex\nfrom whorl.system import System\n"
    assert broken("response", source) == []
    assert broken("response", f"{source}{line}\n") == [arrow]


def test_importing_the_library_brings_in_no_optional_package():
    optional = {
        "matplotlib",
        "plotly",
        "dask",
        "dash",
        "flask",
        "polars",
        "optax",
        "sklearn",
        "pandas",
    }
    script = f"import sys, whorl; print(*sorted({optional} & set(sys.modules)))"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()
        == []
    )


def test_importing_the_library_leaves_the_settings_of_jax_alone():
    script = "import jax; was = dict(jax.config.values); import whorl; print(jax.config.values == was, jax.config.read('jax_enable_x64'))"
    assert subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split() == ["True", "False"]


def test_nothing_in_the_auditor_names_a_kind_but_the_file_of_a_kind():
    auditor = SOURCE.parent / "whorl_audit"
    files = [path for path in (auditor / "kinds").glob("*.py") if path.stem != "__init__"]
    beside = [path for path in auditor.with_name("whorl_studies").iterdir() if path.is_dir()]
    names = "|".join(path.stem for path in [*files, *beside] if not path.stem.startswith("_"))
    # In quotes, or as a module of the folder: a name may be a common word.
    named = re.compile(rf"[\"'`]({names})[\"'`]|kinds(\.| import )({names})\b")
    others = set(auditor.rglob("*.py")) - set(files)
    assert [path.name for path in others if named.search(path.read_text())] == []
    assert named.search('kind = kinds.find("horizon")')
    assert named.search("from whorl_audit.kinds import threshold")


STUDIES = SOURCE.with_name("whorl_studies")
OURS = sorted(path for path in STUDIES.rglob("*.py") if path.name != "audit.py")
SHARED = re.findall(
    r"^\| `(whorl[\w.]*)` \|",
    (PAGE.parent / "howto" / "extend.md").read_text(),
    re.MULTILINE,
)


def taken(path):
    """What a file takes from whorl: modules and the names out of each."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "*") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", OURS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_study_beyond_the_paper_uses_public_names_of_whorl_only(path):
    used = [(module, name) for module, name in taken(path) if module.partition(".")[0] == "whorl"]
    strange = [
        f"{module}.{name}"
        for module, name in used
        if name.startswith("_") or (module not in SHARED and f"{module}.{name}" not in SHARED)
    ]
    assert strange == []
    assert {name for module, name in used if module == "whorl"} <= set(PUBLIC) | {"palette"}
    others = {
        module.split(".")[1] for module, _ in taken(path) if "whorl_studies." in (module or "")
    }
    assert others <= {path.parent.name}


def test_what_a_kind_may_import_is_there():
    for name in SHARED:
        assert not any(part.startswith("_") for part in name.split("."))
        assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_says_what_it_is(name):
    # A dataclass without a sentence of its own is given its signature for one.
    sentence = getattr(whorl, name).__doc__
    assert sentence
    assert not sentence.startswith(f"{name}(")


def test_no_file_names_a_place_on_one_machine_or_a_package_registry():
    roots = ["home", "root", "work", "tmp", "Users", "mnt", "opt", "private"]
    hosts = ["pypi", "pythonhosted", "anaconda", "jfrog", "artifactory"]
    place = re.compile(
        rf"(?<![\w.~$)}}>*-])/({'|'.join(roots)})/|[A-Z]:\\\\?Users|://[^\s/]*({'|'.join(hosts)})".encode()
    )
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    home = Path(__file__).parent.parent
    names = subprocess.run(
        listing, cwd=home, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    files = [home / name for name in names if (home / name).is_file()]
    assert home / "pyproject.toml" in files
    assert [
        f"{path.name}: {found.group()}"
        for path in files
        for found in place.finditer(path.read_bytes())
    ] == []
    assert place.search(b"see " + b"/".join([b"", b"home", b"me", b"x"]))
    assert place.search(b":".join([b"https", b"//pypi.org/simple"]))
