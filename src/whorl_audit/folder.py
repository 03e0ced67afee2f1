"""Read a run folder: its studies, their designs, verdicts, locks and tables.

Nothing is judged here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from whorl_audit import files, kinds, layout
from whorl_audit.files import sha256 as sha256
from whorl_audit.limits import ceiling_fault
from whorl_audit.types import Parameters, UnreadableError, shown


@dataclass(frozen=True)
class Study:
    """One study of a run folder, as its files have it.

    Attributes:
        path: The folder of the study.
        kind: The name of its kind, which is installed.
        design: The design, as written.
        parameters: The values of its parameters, those of a quick run where the verdict says that
            it was one.
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


def studies(folder: Path) -> list[Path]:
    """The study folders of a run folder, or the folder itself where it is one."""
    return list(layout.read(folder).studies)


def _design(path: Path) -> tuple[dict[str, Any], bytes]:
    design, content = files.read_toml(path)
    if not isinstance(design.get("kind"), str) or design["kind"] not in kinds.installed():
        raise UnreadableError(
            f"the kind of a design must be one of {', '.join(kinds.installed())}, but {path} says "
            f"{shown(design.get('kind'))}"
        )
    return design, content


def parameters(design: dict[str, Any], *, quick: bool) -> Parameters:
    """The values in force.

    Those of `[parameters]`, and over them those of `[quick]` in a quick run.
    """
    given, kind = _section(design, "parameters"), kinds.find(design["kind"])
    _same_names("parameters", given, kind.parameters)
    values = {
        name: entry["value"] if isinstance(entry, dict) and "value" in entry else entry
        for name, entry in given.items()
    }
    if quick:
        values |= _section(design, "quick")
        _same_names("quick parameters", values, kind.parameters)
    for name, value in values.items():
        if not (rule := kind.parameters[name]).allows(value):
            raise UnreadableError(f"{name} must {rule.words}, but it is {shown(value)}")
    if fault := kind.joint(values) or ceiling_fault(kind, values):
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
        return files.parsed_table(content)
    except ValueError as error:
        return str(error)


def read(path: Path) -> Study:
    """Read a study folder."""
    design, text = _design(path / "design.toml")
    verdict, lock = (files.read_json(path / name) for name in ("verdict.json", "lock.json"))
    try:
        values = parameters(design, quick=verdict.get("quick") is True)
    except UnreadableError as error:
        raise UnreadableError(f"{error}, in {path / 'design.toml'}") from error
    tables, hashes = {}, {}
    for file in layout.read(path).files:
        if file.suffix == ".parquet":
            try:
                content = files.read_bytes(file)
                tables[file.stem], hashes[file.stem] = _table(content), sha256(content)
            except MemoryError as error:
                raise UnreadableError(
                    f"{file.name} must fit into memory, but {file} does not; --memory raises the "
                    "limit"
                ) from error
    return Study(
        path=path,
        kind=design["kind"],
        design=design,
        parameters=values,
        verdict=verdict,
        lock=lock,
        hashes={"design": sha256(text), "lock": files.sha256_of(path / "lock.json")},
        tables=tables,
        table_hashes=hashes,
    )
