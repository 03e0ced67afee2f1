"""Reading a run folder: its studies, their designs, verdicts, locks and tables. Nothing is judged here."""

import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whorl_audit.limits import ceiling_fault
from whorl_audit.schema import PARAMETERS, joint_fault, parameter_fault
from whorl_audit.types import Parameters, UnreadableError, shown


@dataclass(frozen=True)
class Study:
    """One study of a run folder, as its files have it.

    Attributes:
        path: The folder of the study.
        kind: structural, threshold or horizon.
        design: The design, as written.
        parameters: The values of its parameters, those of a quick run where the verdict says that it was one.
        verdict: What verdict.json says.
        lock: What lock.json says.
        hashes: SHA-256 of `design` and `lock`.
        tables: The content of every table, or the sentence why it cannot be read.
        table_hashes: SHA-256 of every table file.
    """

    path: Path
    kind: str
    design: dict[str, Any]
    parameters: Parameters
    verdict: dict[str, Any]
    lock: dict[str, Any]
    hashes: dict[str, str]
    tables: dict[str, pa.Table | str]
    table_hashes: dict[str, str]


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes, as manifests write it."""
    return hashlib.sha256(content).hexdigest()


def studies(folder: Path) -> list[Path]:
    """The study folders of a run folder, or the folder itself where it is one."""
    if not folder.is_dir():
        raise UnreadableError(f"the run folder must be a folder, but {folder} is none")
    if (folder / "design.toml").exists():
        return [folder]
    found = sorted(path.parent for path in folder.glob("*/design.toml"))
    if not found:
        raise UnreadableError(f"the run folder must hold a study with a design.toml, but {folder} holds none")
    return found


def contents(path: Path) -> bytes:
    """The bytes of a file that must be there."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path.name} must be a readable file, but {path}: {error.strerror}") from error


def record(path: Path) -> dict[str, Any]:
    """A JSON object in a file."""
    content = contents(path)
    try:
        value = json.loads(content)
    except ValueError as error:
        raise UnreadableError(f"{path.name} must be JSON, but {path}: {error}") from error
    if not isinstance(value, dict):
        raise UnreadableError(f"{path.name} must hold a JSON object, but {path} holds {type(value).__name__}")
    return value


def _design(path: Path) -> tuple[dict[str, Any], bytes]:
    content = contents(path)
    try:
        design = tomllib.loads(content.decode())
    except ValueError as error:
        raise UnreadableError(f"design.toml must be TOML, but {path}: {error}") from error
    if not isinstance(design.get("kind"), str) or design["kind"] not in PARAMETERS:
        raise UnreadableError(f"the kind of a design must be one of {', '.join(PARAMETERS)}, but {path} says {shown(design.get('kind'))}")
    return design, content


def parameters(design: dict[str, Any], *, quick: bool) -> Parameters:
    """The values in force: those of `[parameters]`, and over them those of `[quick]` in a quick run."""
    given, names = _section(design, "parameters"), PARAMETERS[design["kind"]]
    _same_names("parameters", given, names)
    values = {name: entry["value"] if isinstance(entry, dict) and "value" in entry else entry for name, entry in given.items()}
    if quick:
        values |= _section(design, "quick")
        _same_names("quick parameters", values, names)
    for name, value in values.items():
        if rule := parameter_fault(design["kind"], name, value):
            raise UnreadableError(f"{name} must {rule}, but it is {shown(value)}")
    if fault := joint_fault(design["kind"], values) or ceiling_fault(design["kind"], values):
        raise UnreadableError(fault)
    return values


def _section(design: dict[str, Any], name: str) -> dict[str, Any]:
    section = design.get(name, {})
    if not isinstance(section, dict):
        raise UnreadableError(f"[{name}] of a design must be a table, but it is {shown(section)}")
    return section


def _same_names(what: str, given: Iterable[str], names: Iterable[str]) -> None:
    different = sorted(set(given) ^ set(names))
    if different:
        raise UnreadableError(f"{what} must be those of the kind, but {shown(different)} differ")


def _table(content: bytes) -> pa.Table | str:
    try:
        return pq.ParquetFile(pa.BufferReader(content)).read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return f"no Parquet file ({' '.join(str(error).split())[:200]})"


def read(path: Path) -> Study:
    """Read a study folder."""
    design, text = _design(path / "design.toml")
    verdict, lock = record(path / "verdict.json"), record(path / "lock.json")
    files = {file.stem: contents(file) for file in sorted((path / "tables").glob("*.parquet"))}
    return Study(
        path=path,
        kind=design["kind"],
        design=design,
        parameters=parameters(design, quick=verdict.get("quick") is True),
        verdict=verdict,
        lock=lock,
        hashes={"design": sha256(text), "lock": sha256(contents(path / "lock.json"))},
        tables={name: _table(content) for name, content in files.items()},
        table_hashes={name: sha256(content) for name, content in files.items()},
    )
