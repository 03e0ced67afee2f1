"""Check what the crate says of files, verdicts and software.

What it says of people, licence and date is not judged.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whorl_audit.finding import Finding, counted
from whorl_audit.folder import Study

NAME = "ro-crate-metadata.json"
STANDARD = "https://w3id.org/ro/crate/1.1"
FORMATS = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".json": "application/json",
    ".toml": "application/toml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".html": "text/html",
}
ARTICLE = {
    "@id": "#article",
    "@type": "ScholarlyArticle",
    "author": "Ruiwu Niu, Xiaowen Bi and Michaël Antonie van Wyk",
    "name": "Reciprocity Separates Gradient Flow from Rotation in Conservative Physical Learning",
}
OPEN = {
    "author",
    "creator",
    "contributor",
    "publisher",
    "funder",
    "identifier",
    "keywords",
    "license",
    "datePublished",
}  # of the folder
PEOPLE = {"Person", "Organization", "CreativeWork"}  # types that a depositor may add


def _file(path: Path, name: str) -> dict[str, Any]:
    kind = FORMATS.get(path.suffix, "application/octet-stream")
    return {
        "@id": name,
        "@type": "File",
        "contentSize": str(path.stat().st_size),
        "encodingFormat": kind,
        "name": name,
    }


def _entities(files: dict[str, Path], environment: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a crate of these files must hold besides the folder itself."""
    packages = environment.get("packages")
    versions = (
        ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))
        if isinstance(packages, dict)
        else ""
    )
    entities = [
        {
            "@id": NAME,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": STANDARD},
        },
        {
            "@id": "#whorl",
            "@type": "SoftwareApplication",
            "name": "whorl",
            "softwareRequirements": f"Python {environment.get('python')}, {versions}",
            "version": environment.get("whorl"),
        },
        ARTICLE,
        *(_file(path, name) for name, path in files.items()),
    ]
    return {str(entity["@id"]): entity for entity in entities}


def _root_faults(
    root: dict[str, Any], files: dict[str, Path], studies: list[Study]
) -> Iterator[str]:
    wanted = {
        "@id": "./",
        "@type": "Dataset",
        "citation": {"@id": "#article"},
        "isBasedOn": {"@id": "#whorl"},
        "name": "Registered studies of conservative physical learning",
    }
    yield from (f"{key} of the folder" for key, value in wanted.items() if root.get(key) != value)
    yield from (
        f"{key} of the folder"
        for key in sorted(set(root) - set(wanted) - OPEN - {"description", "hasPart"})
    )
    stamps = {
        study.path.name: "" if study.verdict.get("registered") is True else " (UNREGISTERED)"
        for study in studies
    }
    told = sorted(
        f"{study.path.name}: {study.verdict.get('verdict')}{stamps[study.path.name]}"
        for study in studies
    )
    if (
        not isinstance(root.get("description"), str)
        or sorted(root["description"].split("; ")) != told
    ):
        yield "description of the folder"
    parts = root.get("hasPart")
    if not isinstance(parts, list) or sorted(map(str, parts)) != sorted(
        str({"@id": name}) for name in files
    ):
        yield "parts of the folder"


def _faults(
    said: dict[str, Any], files: dict[str, Path], environment: dict[str, Any], studies: list[Study]
) -> Iterator[str]:
    graph = said.get("@graph")
    if (
        set(said) != {"@context", "@graph"}
        or said["@context"] != f"{STANDARD}/context"
        or not isinstance(graph, list)
    ):
        yield "it is no crate"
        return
    names = [entity.get("@id") if isinstance(entity, dict) else None for entity in graph]
    if len({str(name) for name in names}) != len(names) or not all(
        isinstance(name, str) for name in names
    ):
        yield "an entity has no name, or that of another"
        return
    there, wanted = dict(zip(map(str, names), graph, strict=True)), _entities(files, environment)
    yield from (name for name, entity in wanted.items() if there.get(name) != entity)
    yield from _root_faults(there.get("./", {}), files, studies)
    added = [there[name] for name in sorted(there.keys() - wanted.keys() - {"./"})]
    yield from (
        f"{entity['@id']} is no part of it"
        for entity in added
        if str(entity.get("@type")) not in PEOPLE
    )


def check(
    said: dict[str, Any], files: dict[str, Path], environment: dict[str, Any], studies: list[Study]
) -> Finding:
    """Compare the crate with the files of the folder by their paths, the environment and the
    verdicts.
    """
    return counted(
        "the crate describes these files, verdicts and versions",
        _faults(said, files, environment, studies),
        NAME,
    )
