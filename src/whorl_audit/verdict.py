"""Gates, verdict, hashes, registration and summary.

What a run says about itself, against its own files.
"""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from whorl_audit import registry
from whorl_audit.finding import Finding, counted
from whorl_audit.folder import Study
from whorl_audit.types import Expected

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
MARGIN = 1e-12
_DIGEST = re.compile("[0-9a-f]{64}")


def margin(relation: str, value: float, bound: float) -> float:
    """How far inside its bound a value is; negative when it is outside."""
    return {"<": bound - value, ">": value - bound, "=": -abs(value - bound)}[relation[0]]


def _gate_fault(
    design: dict[str, Any], stored: dict[str, Any], statistics: dict[str, Expected]
) -> str | None:
    """What is wrong with a stored gate, if anything."""
    for name in ("name", "statistic", "relation", "bound", "origin"):
        if stored.get(name) != design.get(name):
            return f"{name} is {stored.get(name)!r} instead of {design.get(name)!r}"
    value, bound, relation = stored.get("value"), design.get("bound"), design.get("relation")
    if not isinstance(bound, int | float) or relation not in RELATIONS:
        return "its design has no bound or no relation"
    expected = statistics.get(str(design.get("statistic")))
    if expected is None:
        return (
            None
            if (value, stored.get("passed"), stored.get("margin")) == (None, False, None)
            else "its statistic does not exist"
        )
    if (
        not isinstance(value, int | float)
        or not float(expected.errors(np.asarray(value))) <= expected.tolerance
    ):
        return f"value is {value!r} instead of {float(expected.values)!r}"
    # The stored value agrees with ours; which side of the bound it is on is decided by it, so that
    # last bits cannot part the two.
    if stored.get("passed") is not RELATIONS[relation](value, bound):
        return f"passed is {stored.get('passed')!r}"
    room, given = margin(relation, value, bound), stored.get("margin")
    if not isinstance(given, int | float) or not abs(given - room) <= MARGIN * max(
        abs(room), abs(value), abs(bound)
    ):
        return f"margin is {given!r} instead of {room!r}"
    return None


def _records(value: object) -> list[dict[str, Any]]:
    return (
        [one if isinstance(one, dict) else {} for one in value] if isinstance(value, list) else []
    )


def gates(study: Study, statistics: dict[str, Expected]) -> Iterator[Finding]:
    """Judge the gates and the verdict."""
    wanted, stored = _records(study.design.get("gates", [])), _records(study.verdict.get("gates"))
    faults = [] if len(wanted) == len(stored) else [f"{len(stored)} gates instead of {len(wanted)}"]
    faults += [] if wanted else ["the design has none, so that nothing could fail"]
    for design, gate in zip(wanted, stored, strict=False):
        if fault := _gate_fault(design, gate, statistics):
            faults.append(f"{design.get('name')}: {fault}")
    yield counted("every gate follows from the design and the statistics", faults, "verdict.json")
    verdict = "PASS" if all(gate.get("passed") is True for gate in stored) else "FAIL"
    claimed = study.verdict.get("verdict")
    yield counted(
        "the verdict follows from the gates",
        [f"it is {claimed!r}"] if claimed != verdict else [],
        "verdict.json",
    )


def gates_of_ours(study: Study, ours: dict[str, float]) -> Finding:
    """Judge whether each gate that is said to hold does so for our own numbers.

    What is changed within a tolerance decides no gate.
    """
    faults = []
    for gate in _records(study.verdict.get("gates")):
        relation, bound, value = (
            gate.get("relation"),
            gate.get("bound"),
            ours.get(str(gate.get("statistic"))),
        )
        if (
            gate.get("passed") is not True
            or relation not in RELATIONS
            or not isinstance(bound, int | float)
            or value is None
        ):
            continue  # found with the gates themselves, or no claim
        same = relation == "==" and abs(value - bound) <= MARGIN * max(1.0, abs(bound))
        if not same and not RELATIONS[relation](value, bound):
            faults.append(
                f"{gate.get('name')}: ours is {value!r}, which is not {relation} {bound!r}"
            )
    return counted(
        "every gate that holds does so for the auditor's own numbers", faults, "verdict.json"
    )


def origin(study: Study) -> Finding:
    """Judge whether the run was made from this design."""
    same = study.verdict.get("design") == study.hashes["design"]
    return counted(
        "the run was made from this design",
        [] if same else ["verdict.json names another"],
        "design.toml",
    )


def identity(study: Study) -> Iterator[Finding]:
    """Judge what the verdict says about names, hashes and numbers of rows."""
    said, design = study.verdict, study.design
    pairs = {
        "study": design.get("name"),
        "kind": design.get("kind"),
        "title": design.get("title"),
        "expected": design.get("expected"),
    }
    pairs["lock"] = study.hashes["lock"]
    faults = [
        f"{name} is {said.get(name)!r} instead of {value!r}"
        for name, value in pairs.items()
        if said.get(name) != value
    ]
    if not isinstance(said.get("quick"), bool):
        faults.append(f"quick is {said.get('quick')!r}")
    yield counted("the verdict names its design and lock", faults, "verdict.json")
    rows = {
        name: None if isinstance(table, str) else table.num_rows
        for name, table in study.tables.items()
    }
    there = {
        name: {"sha256": digest, "rows": rows[name]} for name, digest in study.table_hashes.items()
    }
    named = said.get("tables")
    named = named if isinstance(named, dict) else {}
    wrong = [name for name in sorted(set(there) | set(named)) if there.get(name) != named.get(name)]
    yield counted(
        "the verdict has the SHA-256 and the number of rows of every table", wrong, "verdict.json"
    )


def registration(study: Study) -> Iterator[Finding]:
    """Judge the lock, and whether the run may call itself registered."""
    lock, said = study.lock, study.verdict
    faults = []
    if lock:
        sources = lock.get("sources")
        digests = [lock.get("design"), *(sources.values() if isinstance(sources, dict) else [None])]
        faults = [
            f"{digest!r} is no SHA-256"
            for digest in digests
            if not (isinstance(digest, str) and _DIGEST.fullmatch(digest))
        ]
        faults += registry.shape_faults(study)
    yield counted("the lock holds hashes", faults, "lock.json")
    reasons = [
        *(["the run is quick"] if said.get("quick") else []),
        *(["there is no lock"] if not lock else []),
        *(
            ["the lock is of another design"]
            if lock and lock.get("design") != study.hashes["design"]
            else []
        ),
    ]
    registered, why = said.get("registered"), said.get("why_unregistered")
    wrong = []
    if registered is True and (reasons or why):
        wrong = [f"it says registered, but {(reasons or [why])[0]}"]
    elif registered is not True and (registered is not False or not why):
        wrong = [f"registered is {registered!r} for no reason"]
    yield counted("a run that says it is registered is", wrong, "verdict.json")


def shipped(study: Study, made_by: object) -> Finding:
    """Judge the registration against the designs, locks and sources that ship, as far as they can
    be compared.
    """
    faults, _ = registry.judge(study, made_by)
    return counted(
        f"the registration of {study.path.name} is not another than the shipped one",
        faults,
        f"{study.path.name}/lock.json",
    )


def summary(said: dict[str, Any], studies: list[Study]) -> Finding:
    """Judge whether the summary repeats the verdicts."""
    fields = ("verdict", "expected", "registered", "quick")
    there = {
        study.path.name: {name: study.verdict.get(name) for name in fields} for study in studies
    }
    named = said.get("studies")
    named = named if isinstance(named, dict) else {}
    faults = [f"{name} is no part of it" for name in said if name != "studies"]
    faults += [
        f"study {name}"
        for name in sorted(set(there) | set(named))
        if named.get(name) != there.get(name)
    ]
    faults += [
        f"study {study.path.name} is in the folder of another"
        for study in studies
        if study.verdict.get("study") != study.path.name
    ]
    return counted("the summary repeats the verdicts", faults, "summary.json")
