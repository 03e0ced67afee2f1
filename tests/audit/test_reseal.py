"""A folder that was changed and sealed anew.

Every hash is right, and the change is found all the same.
"""

import json
import shutil
from dataclasses import replace

import pytest

import whorl_audit
from audit import forge
from whorl.study import lock
from whorl_audit import crate, folder, registry


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return forge.write_run(tmp_path_factory.mktemp("reseal") / "run")


@pytest.fixture
def run(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "run")


@pytest.fixture(scope="module")
def registered_here(tmp_path_factory):
    """A design that does not ship, registered and run with the whorl that is installed."""
    root = tmp_path_factory.mktemp("here")
    forge.write_run(root, ("threshold",))
    rename(root, "threshold", "mine")
    rewrite(root / "mine" / "lock.json", lambda said: said | {"sources": lock.sources("threshold")})
    forge.seal(root, registry.version())
    return root


@pytest.fixture
def mine(registered_here, tmp_path):
    return shutil.copytree(registered_here, tmp_path / "run")


def rewrite(path, change):
    said = json.loads(path.read_text())
    path.write_text(json.dumps(change(said) or said))


def rename(root, old, new):
    (root / old).rename(root / new)
    path = root / new / "design.toml"
    path.write_text(path.read_text().replace(f'name = "{old}"', f'name = "{new}"', 1))
    relock(root / new)
    rewrite(root / new / "verdict.json", lambda said: said | {"study": new})


def relock(study):
    digest = folder.sha256((study / "design.toml").read_bytes())
    rewrite(study / "lock.json", lambda said: said | {"design": digest})


def failures(root):
    return [finding.claim for finding in whorl_audit.audit(root).failures]


def lower(study, old, new):
    """Change a bound in design, lock and verdict."""
    path = study / "design.toml"
    assert f"bound = {old}" in path.read_text()
    path.write_text(path.read_text().replace(f"bound = {old}", f"bound = {new}"))
    relock(study)

    def judged(said):
        for gate in said["gates"]:
            if gate["bound"] == old:
                gate |= {"bound": new, "margin": gate["value"] - new, "passed": gate["value"] > new}

    rewrite(study / "verdict.json", judged)


# --- registration


def test_a_study_of_another_version_passes_and_is_said_to_be_registered_elsewhere(sound):
    result = whorl_audit.audit(sound)
    assert result.passed
    assert [note.partition(":")[0] for note in result.notes] == [
        "horizon",
        "structural",
        "threshold",
    ]
    assert all("registered elsewhere: it was made by whorl 0.0.0" in note for note in result.notes)


def test_a_design_of_ones_own_passes_and_is_said_to_be_registered_by_its_author(registered_here):
    result = whorl_audit.audit(registered_here)
    assert result.failures == ()
    assert result.notes == (
        f"mine: registered by its author: its design does not ship with whorl {registry.version()}",
    )


def test_a_bound_that_was_lowered_with_its_registration_does_not_pass_for_the_shipped_design(run):
    lower(run / "threshold", 0.5, 0.4)
    forge.seal(run, registry.version())
    assert "the registration of threshold is not another than the shipped one" in failures(run)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", ["one", "emptied", "fewer", "gone", "listed"])
def test_forged_sources_of_a_lock_are_found(mine, change):
    changes = {
        "one": lambda said: said["sources"].update({"system.py::System": "0" * 64}),
        "emptied": lambda said: said | {"sources": {}},
        "fewer": lambda said: said["sources"].pop("system.py::System") and None,
        "gone": lambda said: {"design": said["design"]},
        "listed": lambda said: said | {"sources": []},
    }
    assert failures(mine) == []
    rewrite(mine / "mine" / "lock.json", changes[change])
    forge.seal(mine, registry.version())
    found = failures(mine)
    assert found
    assert set(found) <= {
        "the registration of mine is not another than the shipped one",
        "the lock holds hashes",
    }


@pytest.mark.parametrize("name", ["structural", "threshold", "horizon", "foresight"])
def test_the_lock_of_a_shipped_design_is_the_one_that_ships(sound, name):
    ships = registry.locks()[name]
    study = folder.read(sound / "threshold")
    study = replace(study, kind=name, lock=ships, hashes=study.hashes | {"design": ships["design"]})
    assert registry.judge(study, registry.version()) == ([], None)
    forged = replace(
        study, lock=ships | {"sources": ships["sources"] | {"system.py::System": "0" * 64}}
    )
    assert registry.judge(forged, registry.version()) == (
        ["system.py::System is not as in the lock that ships"],
        None,
    )
    assert "made by whorl 0.0.0" in str(registry.judge(forged, "0.0.0")[1])
    assert "not known" in str(registry.judge(forged, None)[1])


def test_the_lock_of_a_kind_is_found_where_its_design_lies(tmp_path, monkeypatch):
    place = "study/kinds/threshold/design.lock.json"
    said = {"design": "0" * 64, "sources": {"study/kinds/threshold/compute.py::stages": "1" * 64}}
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(json.dumps(said))
    monkeypatch.setattr(registry, "HOME", tmp_path)
    assert registry.locks.__wrapped__() == {"threshold": said}


@pytest.mark.parametrize(
    ("sources", "faults"),
    [
        (["study/threshold.py::stages"], []),
        (["study/kinds/threshold/compute.py::stages", "ground/store.py::write"], []),
        (
            ["study/kinds/horizon/compute.py::threshold"],
            ["no file of the kind threshold is among its sources"],
        ),
        (["threshold_of_pain.py", ""], ["no file of the kind threshold is among its sources"]),
        ([], ["no file of the kind threshold is among its sources"]),
    ],
)
def test_a_lock_covers_a_file_of_its_kind(sound, sources, faults):
    study = folder.read(sound / "threshold")
    lock = study.lock | {"sources": dict.fromkeys(sources, "0" * 64)}
    assert registry.shape_faults(replace(study, lock=lock)) == faults
    brought = ["it has no sources"] if not sources else []
    assert registry.shape_faults(replace(study, lock=lock, kind="spiral")) == brought


def test_without_whorl_beside_it_the_auditor_says_that_it_cannot_compare(sound, monkeypatch):
    monkeypatch.setattr(registry, "version", lambda: None)
    faults, where = registry.judge(folder.read(sound / "threshold"), "0.0.0")
    assert faults == []
    assert where == "registered elsewhere: there is no whorl beside this auditor to compare with"


def test_a_source_outside_of_the_package_is_never_read():
    outside = ["../whorl_audit/__init__.py::audit", "/etc/hostname", "no_such.py::none"]
    assert registry._installed(outside) == {}
    inside = ["system.py::System", "system.py::NoSuch"]
    assert set(registry._installed(inside)) == {"system.py::System"}


def test_a_design_whose_gates_were_taken_out_does_not_pass(run):
    path = run / "threshold" / "design.toml"
    path.write_text(path.read_text().partition("[[gates]]")[0])
    relock(run / "threshold")
    rewrite(
        run / "threshold" / "verdict.json", lambda said: said | {"gates": [], "verdict": "PASS"}
    )
    forge.seal(run)
    assert failures(run) == ["every gate follows from the design and the statistics"]


# --- what lies beside the studies


@pytest.mark.parametrize("name", ["environment.json", "summary.json", crate.NAME])
def test_a_file_that_was_taken_out_is_missed(run, name):
    (run / name).unlink()
    if name != crate.NAME:
        rewrite(run / crate.NAME, lambda said: without(said, name))
    forge.write_manifest(run)
    assert f"{name} can be read" in failures(run)


def without(said, name):
    said["@graph"] = [entity for entity in said["@graph"] if entity["@id"] != name]
    root = next(entity for entity in said["@graph"] if entity["@id"] == "./")
    root["hasPart"] = [part for part in root["hasPart"] if part["@id"] != name]


FORGED = {
    "designs": {"threshold": "0" * 64},
    "quick": True,
    "sources": "0" * 64,
    "packages": {"numpy": "1.0"},
    "whorl": None,
    "cores": -1,
    "processor": 5,
}


def resealed(run):
    """The crate and the manifest of a folder, made anew."""
    verdicts = {
        path.name: json.loads((path / "verdict.json").read_text())
        for path in forge.study_folders(run)
    }
    forge.describe(run, verdicts)
    forge.write_manifest(run)


@pytest.mark.parametrize("field", FORGED)
def test_a_forged_environment_is_found(run, field):
    rewrite(run / "environment.json", lambda said: said | {field: FORGED[field]})
    resealed(run)
    assert "the environment is that of these studies" in failures(run)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["studies"]["threshold"].update(verdict="PASS"),
        lambda said: said["studies"]["threshold"].update(note="checked by hand"),
        lambda said: said["studies"].pop("threshold") and None,
        lambda said: said | {"note": "checked by hand"},
    ],
)
def test_a_forged_summary_is_found(run, change):
    rewrite(run / "summary.json", change)
    resealed(run)
    assert failures(run) == ["the summary repeats the verdicts"]


def entity(said, name):
    return next(one for one in said["@graph"] if one["@id"] == name)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: entity(said, "./").update(
            description="structural: PASS; threshold: PASS; horizon: PASS"
        ),
        lambda said: entity(said, "./")["hasPart"].pop() and None,
        lambda said: entity(said, "./").update(abstract="better than published"),
        lambda said: entity(said, "summary.json").update(contentSize="1"),
        lambda said: entity(said, "#whorl").update(version="9.9"),
        lambda said: entity(said, "#article").update(name="Another article"),
        lambda said: said["@graph"].append({"@id": "other.csv", "@type": "File"}),
        lambda said: said["@graph"].append(entity(said, "./")),
        lambda said: said | {"@graph": []},
        lambda said: said | {"@context": "https://example.org"},
    ],
)
def test_a_forged_crate_is_found(run, change):
    rewrite(run / crate.NAME, change)
    forge.write_manifest(run)
    assert failures(run) == ["the crate describes these files, verdicts and versions"]


def test_whoever_deposits_a_folder_may_name_authors_and_a_licence(run):
    def signed(said):
        entity(said, "./").update(
            author={"@id": "#somebody"}, datePublished="2030-01-01", license={"@id": "#mine"}
        )
        said["@graph"] += [
            {"@id": "#somebody", "@type": "Person"},
            {"@id": "#mine", "@type": "CreativeWork"},
        ]

    rewrite(run / crate.NAME, signed)
    forge.write_manifest(run)
    assert failures(run) == []


def test_a_study_that_was_taken_out_is_missed(run):
    shutil.rmtree(run / "structural")
    shutil.rmtree(run / "figures")
    rewrite(run / "summary.json", lambda said: said["studies"].pop("structural") and None)
    resealed(run)
    assert failures(run) == ["the environment is that of these studies"]


def test_a_study_in_the_folder_of_another_is_found(run):
    (run / "threshold").rename(run / "other")
    shutil.rmtree(run / "figures")
    forge.seal(run)
    assert failures(run) == ["the summary repeats the verdicts"]


@pytest.mark.parametrize("change", ["renamed", "removed", "half", "concept"])
def test_figures_that_were_renamed_or_removed_are_found(run, change):
    figures = run / "horizon" / "figures"
    if change == "renamed":
        (figures / "horizon.png").rename(figures / "better.png")
    elif change == "removed":
        shutil.rmtree(figures)
    elif change == "half":
        (figures / "horizon.pdf").unlink()
    else:
        shutil.rmtree(run / "figures")
    forge.seal(run)
    assert failures(run)


def test_the_honest_folder_passes_and_what_is_not_covered_is_listed(sound):
    result = whorl_audit.audit(sound)
    assert result.failures == ()
    told = result.to_json()
    assert any("author" in line for line in told["not_covered"])
    assert any("clock" in line for line in told["not_covered"])
    assert "whorl verify" in told["left_to_whorl"]
