"""Check gates, verdict, hashes, registration and summary.

What a run says about itself, against its own files.
"""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from whorl_audit import registry
from whorl_audit.finding import Finding, counted, different
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
        absent = (value, stored.get("passed"), stored.get("margin")) == (None, False, None)
        return None if absent else "its statistic does not exist"
    number = isinstance(value, int | float)
    if not number or not float(expected.errors(np.asarray(value))) <= expected.tolerance:
        return f"value is {value!r} instead of {float(expected.values)!r}"
    # The stored value agrees with ours; which side of the bound it is on is decided by it, so that
    # last bits cannot part the two.
    if stored.get("passed") is not RELATIONS[relation](value, bound):
        return f"passed is {stored.get('passed')!r}"
    room, given = margin(relation, value, bound), stored.get("margin")
    allowed = MARGIN * max(abs(room), abs(value), abs(bound))
    if not isinstance(given, int | float) or not abs(given - room) <= allowed:
        return f"margin is {given!r} instead of {room!r}"
    return None


def _records(value: object) -> list[dict[str, Any]]:
    listed = value if isinstance(value, list) else []
    return [one if isinstance(one, dict) else {} for one in listed]


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
    wrong = [f"it is {claimed!r}"] if claimed != verdict else []
    yield counted("the verdict follows from the gates", wrong, "verdict.json")


def gates_of_ours(study: Study, ours: dict[str, float]) -> Finding:
    """Judge whether each gate that is said to hold does so for our own numbers.

    What is changed within a tolerance decides no gate.
    """
    faults = []
    for gate in _records(study.verdict.get("gates")):
        relation, bound = gate.get("relation"), gate.get("bound")
        value = ours.get(str(gate.get("statistic")))
        if gate.get("passed") is not True or value is None or relation not in RELATIONS:
            continue  # found with the gates themselves, or no claim
        if not isinstance(bound, int | float):
            continue
        same = relation == "==" and abs(value - bound) <= MARGIN * max(1.0, abs(bound))
        if not same and not RELATIONS[relation](value, bound):
            why = f"ours is {value!r}, which is not {relation} {bound!r}"
            faults.append(f"{gate.get('name')}: {why}")
    claim = "every gate that holds does so for the auditor's own numbers"
    return counted(claim, faults, "verdict.json")


def origin(study: Study) -> Finding:
    """Judge whether the run was made from this design."""
    same = study.verdict.get("design") == study.hashes["design"]
    faults = [] if same else ["verdict.json names another"]
    return counted("the run was made from this design", faults, "design.toml")


def identity(study: Study) -> Iterator[Finding]:
    """Judge what the verdict says about names, hashes and numbers of rows."""
    said, design = study.verdict, study.design
    pairs = {
        "study": design.get("name"),
        **{name: design.get(name) for name in ("kind", "title", "expected")},
        "lock": study.hashes["lock"],
    }
    faults = [
        f"{name} is {said.get(name)!r} instead of {value!r}"
        for name, value in pairs.items()
        if said.get(name) != value
    ]
    if not isinstance(said.get("quick"), bool):
        faults.append(f"quick is {said.get('quick')!r}")
    yield counted("the verdict names its design and lock", faults, "verdict.json")
    there = {
        name: {"sha256": digest, "rows": getattr(study.tables[name], "num_rows", None)}
        for name, digest in study.table_hashes.items()
    }
    claim = "the verdict has the SHA-256 and the number of rows of every table"
    yield counted(claim, different(said.get("tables"), there), "verdict.json")


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
    other = lock and lock.get("design") != study.hashes["design"]
    possible = {
        "the run is quick": said.get("quick"),
        "there is no lock": not lock,
        "the lock is of another design": other,
    }
    reasons = [reason for reason, holds in possible.items() if holds]
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
    name, (faults, _) = study.path.name, registry.judge(study, made_by)
    claim = f"the registration of {name} is not another than the shipped one"
    return counted(claim, faults, f"{name}/lock.json")


def summary(said: dict[str, Any], studies: list[Study]) -> Finding:
    """Judge whether the summary repeats the verdicts."""
    fields = ("verdict", "expected", "registered", "quick")
    there = {
        study.path.name: {name: study.verdict.get(name) for name in fields} for study in studies
    }
    faults = [f"{name} is no part of it" for name in said if name != "studies"]
    faults += [f"study {name}" for name in different(said.get("studies"), there)]
    faults += [
        f"study {study.path.name} is in the folder of another"
        for study in studies
        if study.verdict.get("study") != study.path.name
    ]
    return counted("the summary repeats the verdicts", faults, "summary.json")
