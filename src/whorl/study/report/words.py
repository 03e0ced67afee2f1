"""What the page says in words, made from the gates.

Verdicts, what failed and what did not, and the stamps.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from whorl._show import plural
from whorl.study import kinds
from whorl.study.report.folder import RunFolder, Study

RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least", "==": "exactly"}
SIGNS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "="}
POWER = re.compile(r"(|< )(-?[\d.]+)e([+-]?\d+)")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
BREAKS: dict[str, np.ufunc] = {
    "<": np.greater_equal,
    "<=": np.greater,
    ">": np.less_equal,
    ">=": np.less,
    "==": np.not_equal,
}


@dataclass(frozen=True)
class Stamp:
    """What nobody may overlook."""

    level: str  # unverified, quick or unregistered
    title: str
    text: str


def number(value: Any) -> str:
    """A number that was computed, with four digits; counts are whole."""
    if value is None:
        return "none"
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if value != value or abs(value) == float("inf"):
        return "not a number" if value != value else ("infinite" if value > 0 else "minus infinite")
    if value == int(value) and abs(value) < 1e7:
        return typeset(f"{int(value)}")
    if not 1e-3 <= abs(value) < 1e7:
        return typeset(f"{value:.3e}")
    return typeset(f"{value:.{max(0, 3 - math.floor(math.log10(abs(value))))}f}")


def chosen(value: Any) -> str:
    """A number that somebody chose, as short as it was written."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return typeset(f"{value:.12g}") if plain and math.isfinite(value) else number(value)


def typeset(text: str) -> str:
    """A number as a page shows it: `-1.2e-03` is −1.2×10⁻³."""
    if found := POWER.fullmatch(text):
        before, lead, power = found.groups()
        text = f"{before}{'' if lead == '1' else f'{lead}×'}10{str(int(power)).translate(RAISED)}"
    return text.replace("-", "\N{MINUS SIGN}")


ENDINGS = {
    "lower": "lower end of the 95 % interval",
    "upper": "upper end of the 95 % interval",
    "max": "largest",
    "min": "smallest",
    "median": "median",
    "q1": "first quartile",
    "q3": "third quartile",
}
PAPER = (  # whose numbers are compared
    "Reciprocity Separates Gradient Flow from Rotation in Conservative Physical Learning",
    "R. Niu, X. Bi and M. A. van Wyk, manuscript, 2026",
)
ORIGINS = {
    "stated": "the paper states it",
    "reading": "our reading of what the paper leaves open",
    "own": "chosen by the author of this design",
}


def plain(statistic: str) -> str:
    """What a statistic is, in words made from its name."""
    statistic = re.sub(r"\bdepth(\d)", r"depth \1", statistic)
    name, _, last = statistic.rpartition(".")
    if statistic.startswith("rows."):
        return f"rows of {statistic[5:]}"
    if not name or last not in ENDINGS:
        return statistic.replace("_", " ").replace(".", ", ")
    about = name.replace("_", " ").replace(".", ", ")
    return f"{about}, {ENDINGS[last]}"


def answer(study: Study) -> tuple[str, str]:
    """The question of a study, and its answer: that of the shipped design, or what its gates say."""
    said, verdict = study.part("words"), study.verdict
    ships = study.kind in kinds.names() and kinds.file(study.kind, "design.toml")
    shipped = bool(ships) and ships.is_file() and ships.read_bytes() == study.design.text
    broken = [gate["name"] for gate in verdict["gates"] if not gate["passed"]]
    known = getattr(said, "HELD", "") if shipped else ""
    words = f"Not all of it; what did not hold: {listed(broken)}" if broken else known
    paper = shipped and verdict.get("expected") == verdict["verdict"] and hasattr(said, "FIGURE")
    question = getattr(said, "QUESTION", verdict["title"]) if shipped else verdict["title"]
    return question, f"{words}{', as the paper found' if paper and words else ''}." if words else ""


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def outcome(verdict: dict[str, Any]) -> tuple[str, str]:
    """How a verdict stands to what was expected: the state, for colour, and the words."""
    expected, registered = verdict.get("expected"), verdict["registered"]
    if verdict["quick"]:
        return "quick", "of a smoke run, which has no verdict to expect"
    if expected is None:
        return ("pass" if verdict["verdict"] == "PASS" else "fail"), "nothing was expected"
    if expected == verdict["verdict"]:
        return (
            "pass" if expected == "PASS" else "expected"
        ), f"as {'registered' if registered else 'its design expects'}"
    return "fail", f"but {expected} was {'registered' if registered else 'expected'}"


def failed(gate: dict[str, Any]) -> str:
    """One gate that did not hold, as a sentence."""
    if gate["value"] is None:
        wanted = f"{RELATIONS[gate['relation']]} {chosen(gate['bound'])}"
        return (
            f"{plain(gate['statistic'])} had to be {wanted}, but this run has no such statistic,"
            " which meets no bound."
        )
    return (
        f"{plain(gate['statistic'])} is {number(gate['value'])}, and had to be "
        f"{RELATIONS[gate['relation']]} {chosen(gate['bound'])}: "
        f"it misses by {number(abs(gate['margin']))}."
    )


def culprits(study: Study, gate: dict[str, Any]) -> str | None:
    """How many rows broke a gate, and at which depths; None where no table says so."""
    said = study.part("words")
    place = said.ROWS.get(gate["statistic"]) if said else None
    if place is None or gate["value"] is None or place[0] in study.stale:
        return None
    table = study.table(place[0])
    broke = BREAKS[gate["relation"]](table[place[1]], gate["bound"])
    sentence = f"{int(broke.sum())} of {broke.size} rows of {place[0]} break it"
    depths, at = np.unique(table["depth"], return_inverse=True)
    counts, sizes = np.bincount(at, weights=broke).astype(int), np.bincount(at)
    some = [
        f"{count} of {size} at depth {depth}"
        for depth, count, size in zip(depths, counts, sizes, strict=True)
        if count
    ]
    none = [str(depth) for depth, count in zip(depths, counts, strict=True) if not count]
    return (
        f"{sentence}: {listed(some)}{f', none at depth {listed(none)}' if none else ''}."
        if some
        else None
    )


def groups(gates: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Gates that held, by what they are about, under a word for one or for several."""
    sorts: dict[tuple[str, str], list[str]] = {
        (counts := ("count of rows", "counts of rows")): [],
        (residuals := ("residual below its bound", "residuals below their bound")): [],
        (others := ("other condition", "other conditions")): [],
    }
    for gate in gates:
        small = gate["relation"] in ("<", "<=") and 0 < gate["bound"] <= 1e-3
        which = counts if gate["statistic"].startswith("rows.") else residuals if small else others
        sorts[which].append(gate["name"])
    return [(words[len(names) > 1], names) for words, names in sorts.items() if names]


def closing(study: Study) -> str:
    """What a FAIL means for the run as a whole."""
    verdict = study.verdict
    held = sum(gate["passed"] for gate in verdict["gates"])
    rule = "One gate that does not hold is enough for FAIL, and a failed gate stays failed"
    if verdict["quick"]:
        return f"{rule}; but this was a smoke run on fewer families, and its verdict means nothing."
    others = f"; the other {plural(held, 'gate')} held, and what they say stands" if held else ""
    if verdict.get("expected") == "FAIL":
        return (
            f"{rule}{others}. The design expects FAIL: this run fails as it was said to fail before"
            " it began."
        )
    return f"{rule}{others}."


def stamps(run: RunFolder, unverified: str | None) -> list[Stamp]:
    """Everything that takes trust away from the page, the worst first."""
    reasons = [unverified] if unverified else doubts(run)
    found = [
        Stamp("unverified", "UNVERIFIED", f"Do not cite this page: {reason}.") for reason in reasons
    ]
    if run.quick:
        found.append(
            Stamp(
                "quick",
                "QUICK RUN · UNREGISTERED",
                "A smoke run on fewer families: it shows that everything works, and no number on "
                "this page means anything.",
            )
        )
    for study in run.studies:
        if not study.verdict["registered"] and not study.verdict["quick"]:
            why = study.verdict.get("why_unregistered") or "it does not say why"
            found.append(Stamp("unregistered", "UNREGISTERED", f"{study.name}: {why}."))
    return found


def doubts(run: RunFolder) -> list[str]:
    """What the page can see by itself that is wrong with the folder."""
    found = (
        [f"it holds {listed(list(run.strange[:3]))}, which no run writes"] if run.strange else []
    )
    if missing := [study.name for study in run.studies if study.audit is None]:
        found.append(f"{listed(missing)} {'was' if len(missing) == 1 else 'were'} never audited")
    broken = [
        one["claim"] for study in run.studies for one in study.audit or [] if not one["passed"]
    ]
    broken += [one["claim"] for one in run.audit if not one["passed"]]
    if broken:
        found.append(
            f"{plural(len(broken), 'claim')} did not pass the audit, the first: {broken[0]}"
        )
    for study in run.studies:
        if study.stale:
            found.append(
                f"{study.name} has other tables than those its verdict was made from: "
                f"{listed(list(study.stale))}"
            )
    return found
