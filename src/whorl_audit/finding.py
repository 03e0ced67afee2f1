"""Findings of an audit: claim, largest error, tolerance and place."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


def printable(text: str) -> str:
    """A text with names from the folder that is audited.

    What would break the line, or speak to a terminal, is shown as its code.
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


@dataclass(frozen=True)
class Finding:
    """A claim that was checked.

    Attributes:
        claim: What should hold.
        error: The largest error seen, in units of the scale the tolerance refers to; None where
            nothing could be compared.
        tolerance: The largest error that is allowed.
        where: The table, column and row (or the file) of the largest error.
        passed: Whether the claim holds.
    """

    claim: str
    error: float | None
    tolerance: float
    where: str
    passed: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", printable(self.claim))
        object.__setattr__(self, "where", printable(self.where))


@dataclass(frozen=True)
class Audit:
    """All findings on a folder.

    Attributes:
        findings: Those on every study; the empty name holds what concerns the folder as a whole.
        notes: What a reader should know of claims that hold, such as a registration that cannot be
            compared with a shipped one.
        not_covered: What no audit can tell.
        left: What this one leaves to whorl.
    """

    findings: dict[str, tuple[Finding, ...]]
    notes: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    left: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(map(printable, self.notes)))

    @property
    def passed(self) -> bool:
        """Whether every claim holds."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The claims that do not hold."""
        return tuple(one for found in self.findings.values() for one in found if not one.passed)

    def to_json(self) -> dict[str, Any]:
        """Plain values, the same for the same folder.

        All findings in one list, each with the study it is about.
        """
        listed = [
            {"study": name, **asdict(one)}
            for name, findings in self.findings.items()
            for one in findings
        ]
        told = {"notes": list(self.notes), "not_covered": list(self.not_covered)}
        return {"passed": self.passed, "findings": listed, **told, "left_to_whorl": self.left}


def different(one: object, other: dict[str, Any]) -> list[str]:
    """The names, in order, under which two objects differ; what is no object has no names."""
    one = one if isinstance(one, dict) else {}
    return [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]


def measured(claim: str, error: float, tolerance: float, where: str) -> Finding:
    """A finding on a measured error; NaN does not pass."""
    error = float(error)
    finite = math.isfinite(error)
    passed = finite and error <= tolerance
    return Finding(claim, error if finite else None, float(tolerance), where, passed)


def counted(claim: str, faults: Iterable[str], where: str) -> Finding:
    """A finding on a list of faults, of which the first is shown."""
    faults = list(faults)
    where = f"{where}: {faults[0]}" if faults else where
    return Finding(claim, float(len(faults)), 0.0, where, not faults)


def impossible(claim: str, why: str) -> Finding:
    """A claim that could not be checked and therefore does not pass."""
    return Finding(claim, None, 0.0, why, False)
