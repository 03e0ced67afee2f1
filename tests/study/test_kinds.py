"""Kinds of study: those in the folder, and one that another package brings."""

import dataclasses
import subprocess
import sys

import pytest

from whorl.study import cost, design, kinds, lock, replicate, run
from whorl.study.kinds import listed
from whorl.study.parameters import Parameters

COMPUTE = """
from dataclasses import dataclass

import numpy as np

from whorl.study import spec
from whorl.study.draws import stream
from whorl.study.kind import Depth, Kind, Work
from whorl.study.parameters import Fault, Parameters

LENGTH = 1.0


@dataclass(frozen=True, kw_only=True)
class Pendulum(Parameters):
    def together(self) -> Fault | None:
        good = self.count <= self.most
        return None if good else ("count", f"count must be at most {self.most}", self.count)


def compute(p, stage):
    return {"angle": LENGTH * stream(p.seed, stage.depth).standard_normal(p.count)}


def tables(p, parts):
    (only,) = parts.values()
    return {"swings": {"swing": np.arange(p.count), "angle": only["angle"]}}


SPEC = spec.beside(__file__)
KIND = Kind(
    name="pendulum",
    parameters=SPEC.parameters(Pendulum),
    columns=SPEC.columns,
    known=SPEC.statistics,
    stages=lambda p: [Depth(1)],
    compute=compute,
    tables=tables,
    statistics=lambda p, t: {"largest": np.abs(t["swings"]["angle"]).max()},
    work=lambda p: Work({"swings": p.count}, programs=0, per_row=1e-6, per_program=0.0),
)
"""
SPEC = """statistics = ["largest"]

[parameters]
seed = { type = "whole", from = 0, to = 100, help = "root seed" }
count = { type = "whole", from = 1, to = 100, help = "swings" }
most = { type = "whole", from = 1, to = 100, help = "swings that are allowed" }

[tables.swings]
swing = ["key", "int64", "", "number"]
angle = ["computed", "float64", "", "angle"]
"""
DESIGN = """name = "pendulum"
kind = "pendulum"
title = "Swings"

[parameters]
seed = { value = 3, origin = "own" }
count = { value = 5, origin = "own" }
most = { value = 9, origin = "own" }

[[gates]]
name = "small"
statistic = "largest"
relation = "<"
bound = 100
origin = "own"
"""


def forget():
    for one in (listed.places, listed.paper, kinds.place, kinds.get):
        one.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "swinging"]:
        del sys.modules[name]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that brings a kind, as far as the import system can tell."""

    def installed(entry="pendulum = swinging.pendulum", source="from .core import KIND as KIND"):
        folder, about = tmp_path / "swinging" / "pendulum", tmp_path / "swinging-1.dist-info"
        folder.mkdir(parents=True)
        about.mkdir()
        (tmp_path / "swinging" / "__init__.py").write_text("")
        (folder / "__init__.py").write_text(source)
        (folder / "core.py").write_text(COMPUTE)
        (folder / "words.py").write_text("CLOSING = 'It swings.'")
        (folder / "design.toml").write_text(DESIGN)
        (folder / "spec.toml").write_text(SPEC)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: swinging\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[whorl.kinds]\n{entry}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        forget()
        return folder

    yield installed
    monkeypatch.undo()
    forget()


def test_the_papers_kinds_come_first_and_in_its_order():
    assert kinds.paper() == ("structural", "threshold", "horizon")
    others = kinds.names()[3:]
    assert kinds.names() == (*kinds.paper(), *sorted(others))
    assert {"budgets", "foresight", "rules"} <= set(others)


@pytest.mark.parametrize("name", kinds.names())
def test_a_kind_has_typed_parameters_each_with_a_rule_and_a_line_of_help(name):
    kind = kinds.get(name)
    assert kind.name == name
    assert issubclass(kind.parameters, Parameters)
    for field in dataclasses.fields(kind.parameters):
        declared = kind.parameters.declared()[field.name]
        assert declared.allows(vars(design.shipped(name).values())[field.name])
        assert 0 < len(declared.help) <= 80
    with pytest.raises(dataclasses.FrozenInstanceError):
        design.shipped(name).values().seed = 1


@pytest.mark.parametrize("name", kinds.names())
def test_stages_are_values_with_names_of_their_own(name):
    stages = kinds.get(name).stages(design.shipped(name).values())
    assert len({stage.name for stage in stages}) == len(set(stages)) == len(stages)


def test_the_command_lists_kinds_without_importing_jax():
    script = (
        "import sys; from whorl_cli import _kinds; print(*_kinds.names(), 'jax' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [*kinds.names(), "False"]


def test_a_kind_of_another_package_is_designed_run_locked_and_replicated(install, tmp_path):
    folder = install()
    assert "pendulum" in kinds.names()[3:]
    assert kinds.paper() == ("structural", "threshold", "horizon")
    assert kinds.part("pendulum", "words").CLOSING == "It swings."
    assert kinds.part("pendulum", "figure") is None
    study = design.shipped("pendulum")
    assert cost.estimate(study).rows == 5
    assert lock.shipped_lock("pendulum") == {}
    registered = lock.lock(study)
    assert run.run(study, tmp_path / "run", registered=registered)["registered"]
    assert not (tmp_path / "run" / ".work").exists()
    table = replicate.replicate(study, [1, 2], tmp_path / "seeds.parquet")
    assert table["statistic"].to_pylist() == ["largest"] * 2
    with pytest.raises(ValueError, match=r"line 7: count must be at most 9, but it is 10"):
        design.parse(DESIGN.replace("value = 5", "value = 10").encode())
    (folder / "words.py").write_text("CLOSING = 'It swung.'")
    assert lock.why_unregistered(study, registered, quick=False) is None
    (folder / "core.py").write_text(COMPUTE.replace("LENGTH = 1.0", "LENGTH = 2.0"))
    assert lock.why_unregistered(study, registered, quick=False).endswith(
        ": swinging/pendulum/core.py::LENGTH"
    )


def test_a_lock_of_another_package_covers_its_definitions_and_those_of_whorl_that_it_uses(install):
    folder = install()
    (folder.parent / "shared.py").write_text(
        "import whorl as wh\n\ndef law(): return wh.leaky(1.0)"
    )
    added = "from swinging import shared\nfrom .. import shared as again"
    source = COMPUTE.replace("LENGTH = 1.0", "LENGTH = again.law().mu")
    (folder / "core.py").write_text(added + source)
    found = lock.sources("pendulum")
    assert [name for name in found if name.startswith("swinging/")] == [
        "swinging/pendulum/core.py::KIND",
        "swinging/pendulum/core.py::LENGTH",
        "swinging/pendulum/core.py::Pendulum",
        "swinging/pendulum/core.py::SPEC",
        "swinging/pendulum/core.py::compute",
        "swinging/pendulum/core.py::tables",
        "swinging/pendulum/spec.toml",
        "swinging/shared.py::law",
    ]
    assert {
        "feedback.py::leaky",
        "study/run.py::result",
        "ground/streams.py::stream",
    } <= found.keys()
    assert not [name for name in found if "horizon" in name]


def test_an_entry_of_a_registry_is_locked_where_it_is_chosen(install):
    folder = install()
    asked = "NAME = 'leaky'\nLENGTH = registry.laws.get(NAME).make(leak=1.0).mu"
    source = f"from whorl import registry{COMPUTE}".replace("LENGTH = 1.0", asked)
    (folder / "core.py").write_text(source)
    assert "feedback.py::leaky" in lock.sources("pendulum")
    assert "feedback.py::repair" not in lock.sources("pendulum")
    # By a parameter of the design.
    (folder / "core.py").write_text(source.replace("'leaky'", "str(7)"))
    assert "feedback.py::leaky" not in lock.sources("pendulum")
    assert "feedback.py::leaky" in lock.sources("pendulum", frozenset({"leaky"}))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"entry": "horizon = swinging.pendulum"},
            (
                "kind horizon must come from one package, but whorl.study.kinds.horizon and "
                "swinging.pendulum give it: uninstall all but one"
            ),
        ),
        (
            {"source": "KIND = 7"},
            (
                "kind pendulum must be a package with a Kind of this name as KIND, but "
                "swinging.pendulum has int"
            ),
        ),
        (
            {"source": ""},
            (
                "kind pendulum must be a package with a Kind of this name as KIND, but "
                "swinging.pendulum has NoneType"
            ),
        ),
        (
            {"entry": "pendulum = swinging.pendulum.core"},
            (
                "kind pendulum must be a package with a Kind of this name as KIND, but "
                "swinging.pendulum.core is no package and has Kind"
            ),
        ),
        (
            {"entry": "spring = swinging.pendulum"},
            (
                "kind spring must be a package with a Kind of this name as KIND, but the Kind in "
                "swinging.pendulum is called pendulum"
            ),
        ),
        (
            {"entry": "pendulum = swinging.lost"},
            (
                "kind pendulum must be a package with a Kind of this name as KIND, but swinging.lost "
                "cannot be imported: No module named 'swinging.lost'"
            ),
        ),
    ],
)
def test_an_entry_that_is_taken_or_no_kind_is_refused_in_one_sentence(install, given, sentence):
    install(**given)
    (name,) = [name for name, package in listed.places() if package.startswith("swinging")]
    with pytest.raises(ValueError) as refused:
        kinds.get(name)
    assert str(refused.value) == sentence
    kinds.get("threshold")


def test_a_design_of_a_kind_that_is_not_installed_is_refused_by_line():
    with pytest.raises(
        ValueError, match=r"line 2: kind must be one of structural, .*, but it is 'pendulum'$"
    ):
        design.parse(DESIGN.encode(), "mine.toml")


def test_a_kind_without_a_design_says_so(install):
    (install() / "design.toml").unlink()
    with pytest.raises(
        ValueError, match=r"^kind pendulum must ship a design, but swinging\.pendulum has none$"
    ):
        design.shipped("pendulum")
