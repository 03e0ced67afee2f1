"""The folder describes itself for an archive: every file, and the same bytes every time."""

import json
import shutil

from study.small import small
from study.trouble import contents
from whorl.study import crate, environment
from whorl.study.conduct import seal


def described(folder):
    graph = json.loads((folder / crate.NAME).read_text())["@graph"]
    return {entity["@id"]: entity for entity in graph}


def test_every_file_is_described_with_its_format_and_size(finished):
    entities = described(finished)
    there = contents(finished)
    files = {name for name, entity in entities.items() if entity["@type"] == "File"}
    assert files == there.keys() - {crate.NAME, "manifest-sha256.txt"}
    for name in files:
        assert entities[name]["contentSize"] == str(len(there[name]))
        assert entities[name]["encodingFormat"] == crate.FORMATS["." + name.rpartition(".")[2]]
    assert {part["@id"] for part in entities["./"]["hasPart"]} == files


def test_the_root_names_licence_software_and_article(finished):
    entities = described(finished)
    root = entities["./"]
    assert {
        "name",
        "description",
        "datePublished",
        "license",
        "citation",
        "isBasedOn",
    } <= root.keys()
    for link in ("license", "citation", "isBasedOn"):
        assert root[link]["@id"] in entities
    assert root["description"] == "mine: PASS"
    assert (
        entities[crate.SOFTWARE]["version"]
        == json.loads((finished / "environment.json").read_text())["whorl"]
    )
    assert "jax" in entities[crate.SOFTWARE]["softwareRequirements"]


def test_describing_a_folder_again_gives_the_same_bytes(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)  # with the times of its files
    before = contents(folder)
    verdicts = [json.loads((folder / "mine" / "verdict.json").read_text())]
    seal(folder, environment.describe([small()], quick=False), verdicts)
    assert contents(folder) == before
