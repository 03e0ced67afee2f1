"""The run folder as a deposit: RO-Crate metadata, so that archives know what each file is."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from whorl.ground import store
from whorl.study import layout

NAME = "ro-crate-metadata.json"
FORMATS = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".json": "application/json",
    ".toml": "application/toml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".html": "text/html",
    ".txt": "text/plain",
}
ARTICLE = "#article"
SOFTWARE = "#whorl"


def write(folder: Path, environment: dict[str, Any], verdicts: list[dict[str, Any]]) -> None:
    """Describe every file of the folder; the manifest, written after this, holds their hashes."""
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.name = "Registered studies of conservative physical learning"
    crate.description = "; ".join(
        f"{v['study']}: {v['verdict']}{'' if v['registered'] else ' (UNREGISTERED)'}"
        for v in verdicts
    )
    # The day the folder was begun, so that writing the same folder again gives the same bytes.
    begun = datetime.fromtimestamp((folder / "environment.json").stat().st_mtime, UTC)
    crate.datePublished = begun.replace(hour=0, minute=0, second=0, microsecond=0)
    undecided = {
        "@type": "CreativeWork",
        "name": "not chosen yet",
        "description": "Whoever deposits these data chooses their licence.",
    }
    crate.license = crate.add(ContextEntity(crate, "#licence", undecided))
    about = {
        "@type": "SoftwareApplication",
        "name": "whorl",
        "version": environment["whorl"],
        "softwareRequirements": _packages(environment),
    }
    crate.root_dataset["isBasedOn"] = crate.add(ContextEntity(crate, SOFTWARE, about))
    title = "Reciprocity Separates Gradient Flow from Rotation in Conservative Physical Learning"
    article = {
        "@type": "ScholarlyArticle",
        "name": title,
        "author": "Ruiwu Niu, Xiaowen Bi and Michaël Antonie van Wyk",
    }
    crate.root_dataset["citation"] = crate.add(ContextEntity(crate, ARTICLE, article))
    for path in layout.files(folder):
        if path.name != NAME:
            inside = path.relative_to(folder).as_posix()
            properties = {
                "encodingFormat": FORMATS.get(path.suffix, "application/octet-stream"),
                "name": inside,
            }
            crate.add_file(
                dest_path=inside, properties=properties | {"contentSize": str(path.stat().st_size)}
            )
    store.write_json(folder / NAME, crate.metadata.generate())


def _packages(environment: dict[str, Any]) -> str:
    versions = ", ".join(
        f"{name} {version}" for name, version in sorted(environment["packages"].items())
    )
    return f"Python {environment['python']}, {versions}"
