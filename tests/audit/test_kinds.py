"""Kinds of study are found, not listed: those of the auditor's own folder, and those that other
packages bring.
"""

import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import whorl_audit
from audit import forge, tamper
from whorl_audit import kinds, spec
from whorl_audit.types import UnreadableError

# The smallest kind: a number that is drawn for every family, its square, and their mean.
SPIRAL = """
import numpy as np

from whorl_audit import draws, expect, spec
from whorl_audit.keys import grid
from whorl_audit.kinds import Kind


def expected(p):
    values = [draws.stream(p["seed"], family).normal() for family in range(p["families"])]
    return {"tasks": {"value": expect.drawn(np.array(values))}}


KIND = Kind(
    spec=spec.beside(__file__),
    keys=lambda p: {"tasks": grid(family=range(p["families"]))},
    sizes=lambda p: {"tasks": p["families"]},
    expected=expected,
    derived={"tasks": lambda t, p: {"square": expect.same(t["tasks"]["value"] ** 2)}},
    statistics=lambda t, p: expect.numbers({"square.mean": t["tasks"]["square"].mean()}),
)
"""
SPEC = """
[parameters]
seed = { type = "whole", from = 0, to = 100, help = "root seed" }
families = { type = "whole", from = 2, to = 100000, help = "numbers" }

[tables.tasks]
family = ["key", "int64", "", "number of the family"]
value = ["drawn", "float64", "", "a number"]
square = ["derived", "float64", "", "its square"]
"""
PARAMETERS = {"seed": 3, "families": 5}


@pytest.fixture
def bring(tmp_path, monkeypatch):
    """Install a package whose module brings kinds by entry points, until the test ends."""
    modules = []

    def install(package, entries, source=SPIRAL):
        place = tmp_path / "installed" / package
        place.mkdir(parents=True)
        (place / f"{package}.py").write_text(source)
        (place / "spec.toml").write_text(SPEC)
        about = place / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (about / "entry_points.txt").write_text("\n".join([f"[{kinds.GROUP}]", *lines, ""]))
        monkeypatch.syspath_prepend(place)
        kinds.installed.cache_clear()
        modules.append(package)

    yield install
    kinds.installed.cache_clear()
    for package in modules:
        sys.modules.pop(package, None)


@pytest.fixture
def spiral(bring, tmp_path, monkeypatch):
    """A run folder of a kind that another package brings."""
    bring("spirals", {"spiral": "spirals:KIND"})
    monkeypatch.setitem(forge.GATES, "spiral", [("squares", "square.mean", ">", 0.0)])
    monkeypatch.setitem(forge.PARAMETERS, "spiral", PARAMETERS)
    return forge.write_run(tmp_path / "run", ("spiral",))


def test_the_kinds_of_the_folder_are_found_and_each_says_all_there_is_to_say():
    assert set(kinds.own()) <= set(kinds.installed())
    assert set(forge.PARAMETERS) == set(kinds.own())
    for name in kinds.installed():
        kind = kinds.find(name)
        assert {column.role for table in kind.columns.values() for column in table} == {
            "key",
            "drawn",
            "computed",
            "derived",
        }
        assert {place[0] for place in kind.roundoff.values() if place} <= set(kind.columns)


def test_a_kind_that_another_package_brings_is_audited_like_ours(spiral):
    result = whorl_audit.audit(spiral)
    assert result.failures == ()
    claims = [finding.claim for finding in result.findings["spiral"]]
    assert "tasks.value follows from the seed" in claims
    assert "tasks.square follows from other columns by its formula" in claims
    assert "statistic square.mean follows from the tables" in claims


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('type = "whole", from = 2', 'type = "hole", from = 2', "a parameter must have a type"),
        ('["drawn",', '["seen",', "a role must be one of key, drawn, computed, derived, but"),
        ("[parameters]", "[parameter]", "KeyError: 'parameters'"),
        ("[parameters]", "[parameters", "TOMLDecodeError"),
    ],
)
def test_a_specification_that_is_none_is_refused_in_one_sentence(tmp_path, old, new, why):
    (tmp_path / "spec.toml").write_text(SPEC.replace(old, new))
    rule = f"spec.toml must be the specification of a kind, but there is .*{why}"
    with pytest.raises(UnreadableError, match=rule):
        spec.read(tmp_path / "spec.toml")


@pytest.mark.parametrize("column", ["family", "value", "square"])
def test_a_changed_value_of_such_a_kind_is_found(spiral, column):
    (one,) = [one for one in kinds.find("spiral").columns["tasks"] if one.name == column]
    rng = np.random.default_rng(0)
    assert tamper.value_is_found(spiral, "spiral", "tasks", one, rng)


def test_a_parameter_that_such_a_kind_does_not_allow_is_refused(spiral):
    path = spiral / "spiral" / "design.toml"
    path.write_text(path.read_text().replace("families = { value = 5", "families = { value = 1"))
    rule = "^families must be a whole number from 2 to 100000, but it is 1, in "
    with pytest.raises(UnreadableError, match=rule):
        whorl_audit.audit(spiral)


def test_a_kind_that_is_not_installed_is_refused_with_those_that_are(spiral):
    path = spiral / "spiral" / "design.toml"
    path.write_text(path.read_text().replace('kind = "spiral"', 'kind = "helix"'))
    known = ", ".join(kinds.installed())
    rule = f"^the kind of a design must be one of {known}, but .* says 'helix'$"
    with pytest.raises(UnreadableError, match=rule):
        whorl_audit.audit(spiral)


def test_a_name_that_is_taken_is_refused_and_both_are_named(bring, tmp_path):
    run = forge.write_run(tmp_path / "run", ("threshold",))
    bring("spirals", {"threshold": "spirals:KIND"})
    both = "whorl_audit.kinds.threshold:KIND and by spirals:KIND"
    with pytest.raises(UnreadableError, match=f"name of its own, but 'threshold' is .*{both}; "):
        whorl_audit.audit(run)


def test_two_packages_cannot_bring_the_same_name(bring):
    bring("spirals", {"spiral": "spirals:KIND"})
    bring("helices", {"spiral": "helices:KIND"})
    with pytest.raises(UnreadableError, match="helices:KIND and by spirals:KIND; rename or"):
        kinds.installed()


@pytest.mark.parametrize(
    ("value", "source", "why"),
    [
        ("spirals:KIND", "1 / 0", "but there is ZeroDivisionError: division by zero$"),
        ("spirals:KIND", "", "but there is AttributeError: .* has no attribute 'KIND'$"),
        ("nowhere:KIND", "", "but there is ModuleNotFoundError: No module named 'nowhere'$"),
        ("spirals:KIND", "KIND = 5", "^spirals:KIND must be a Kind, but it is 5$"),
    ],
)
def test_a_package_that_brings_no_kind_is_named_and_disturbs_no_other(
    bring, tmp_path, value, source, why
):
    bring("spirals", {"spiral": value}, source)
    with pytest.raises(UnreadableError, match=why):
        kinds.find("spiral")
    assert whorl_audit.audit(forge.write_run(tmp_path / "run", ("threshold",))).failures == ()


def test_the_place_of_a_kind_is_its_module():
    assert kinds.own()["threshold"] == EntryPoint(
        "threshold", "whorl_audit.kinds.threshold:KIND", kinds.GROUP
    )
